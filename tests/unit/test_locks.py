"""Locks of dependencies: complete, installed by one script, and not changed by what is released after them."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution, distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "requirements"
INSTALL = REQUIREMENTS / "install.py"

# --------------------------------------------------------------------------------------- one way to install a lock

NOT_OURS = {
    "tests/integration/test_integration_init_place.py": "what a user's own workflow installs",
    "tests/unit/test_locks.py": "examples of what is refused",
}
"""Files that show how a lock is installed and install none."""
SHOWN_TO_USERS = ("docs/", "examples/", "runner/", "tests/golden/", "README.md", "CHANGELOG.md", "CONTRIBUTING.md")
WORD = re.compile(r"[^\s\"',\[\]()`]+")
WORDS_OF_A_COMMAND = 14


def find_lock_installations(text: str) -> Iterator[list[str]]:
    """The words of each `pip install` of a requirements file, in a shell, a workflow, JavaScript or Python."""
    words = [word.removeprefix("...") for word in WORD.findall(text.replace("\\\n", " "))]
    for at, word in enumerate(words):
        if not re.search(r"(^|[/(*])(pip|PIP)[\d.]*\)?$", word) or "install" not in words[at + 1 : at + 6]:
            continue
        command = words[at : at + WORDS_OF_A_COMMAND]
        if any(re.match(r"-r$|--requirement|--require-hashes", one) for one in command):
            yield command


@pytest.mark.parametrize(
    "text",
    [
        "\t@$(PIP) install --require-hashes -r requirements/runtime.txt\n",
        "RUN pip --python /opt/gate/bin/python install --require-hashes \\\n   --no-compile -r lock.txt\n",
        "run: |\n  pip install --requirement requirements/runtime.txt\n",
        '[python, "-m", "pip", "install", "--quiet"],\n...["--requirement", LOCK],\n',
        'pip = ["-m", "pip", "--quiet"]\nsubprocess.run([*pip, "install", "-r", wanted], check=True)\n',
    ],
)
def test_lock_installations__in_each_language__are_found(text: str) -> None:
    commands = list(find_lock_installations(text))
    assert commands
    assert not any("--no-deps" in command for command in commands)


def test_repository__every_installation_of_a_lock__resolves_nothing() -> None:
    # in a container the checkout may belong to another user
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip(f"git lists no files here: {listed.stderr.strip()}")
    names = [name for name in listed.stdout.split("\0") if name and not name.startswith(SHOWN_TO_USERS)]
    found = {}
    for name in names:
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
        if commands := list(find_lock_installations(text)):
            found[name] = commands
    assert set(found) - set(NOT_OURS) == {"requirements/install.py"}, "use requirements/install.py"
    assert all("--no-deps" in command for command in found["requirements/install.py"])
    assert set(NOT_OURS) <= set(found), "no exception is needed for what is not found any more"


# ------------------------------------------------------------------------------------------------- complete locks


def read_pins(lock: Path) -> dict[str, str]:
    """The version of each package of a lock file."""
    text = lock.read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9._-]+)(?:\[[^]]*\])?==([^\s;]+)", text, re.MULTILINE))


def list_requirements(requirement: Requirement) -> Iterator[Requirement]:
    """What an installed package asks for with these extras, on this machine."""
    try:
        asked = distribution(requirement.name).requires or []
    except PackageNotFoundError:
        return
    for line in asked:
        one = Requirement(line)
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in ("", *requirement.extras)):
            yield one


PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
EVERYTHING = [
    *PROJECT["dependencies"],
    *(line for name in ("github", "inspect", "mcp", "models", "store") for line in EXTRAS[name]),
]


@pytest.mark.parametrize(
    ("lock", "roots"),
    [
        ("runtime.txt", EVERYTHING),
        ("http.txt", [*PROJECT["dependencies"], *EXTRAS["github"]]),
        ("dev.txt", [*EVERYTHING, *PYPROJECT["dependency-groups"]["dev"]]),
    ],
)
def test_lock__holds_all_that_its_packages_ask_for__with_their_extras(lock: str, roots: list[str]) -> None:
    locked = read_pins(REQUIREMENTS / lock)
    queue = [Requirement(line) for line in roots]
    seen: set[str] = set()
    while queue:
        requirement = queue.pop()
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        version = locked.get(canonicalize_name(requirement.name))
        assert version is not None, f"{lock} lacks {requirement}: make lock"
        assert requirement.specifier.contains(version, prereleases=True), f"{lock} has {version} for {requirement}"
        queue += list_requirements(requirement)
    assert len(seen) > 20


def test_every_lock__has_hashes_for_every_package() -> None:
    locks = [
        path
        for path in ROOT.rglob("*.txt")
        if "requirements" in str(path.relative_to(ROOT)) and ".venv" not in path.parts
    ]
    locks = [path for path in locks if "==" in path.read_text(encoding="utf-8")]
    for lock in locks:
        blocks = re.split(r"\n(?=[a-z])", lock.read_text(encoding="utf-8"), flags=re.IGNORECASE)
        bare = [block for block in blocks if "==" in block and "--hash=sha256:" not in block]
        assert not bare, f"{lock}: {bare}"
    assert len(locks) > 10


# --------------------------------------------------------------- what is released later, with the pips of Python 3.11

PIPS = Path(sys.prefix) / "pips"


class Index:
    """A package index in a folder, as pip reads one: a page of links for each package."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hashes: dict[str, str] = {}

    @property
    def options(self) -> list[str]:
        return ["--index-url", self.folder.as_uri(), "--only-binary", ":all:"]

    def release(self, name: str, version: str, *metadata: str) -> None:
        """Publish a wheel of a module with nothing in it."""
        place = self.folder / name
        place.mkdir(parents=True, exist_ok=True)
        wheel = place / f"{name}-{version}-py3-none-any.whl"
        info = f"{name}-{version}.dist-info"
        files = {
            f"{name}.py": f"version = {version!r}\n",
            f"{info}/METADATA": "\n".join(
                ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *metadata, ""]
            ),
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        record = "".join(f"{file},sha256={encode_digest(text.encode())},{len(text)}\n" for file, text in files.items())
        with zipfile.ZipFile(wheel, "w") as archive:
            for file, text in files.items():
                archive.writestr(file, text)
            archive.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")
        self.hashes[f"{name}=={version}"] = hashlib.sha256(wheel.read_bytes()).hexdigest()
        links = "".join(f'<a href="{one.name}">{one.name}</a>\n' for one in sorted(place.glob("*.whl")))
        (place / "index.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")

    def lock(self, *packages: str) -> Path:
        """A lock file of these releases."""
        path = self.folder / "lock.txt"
        path.write_text("".join(f"{one} --hash=sha256:{self.hashes[one]}\n" for one in packages))
        return path


def encode_digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


class Environment:
    """A virtual environment with one release of pip and nothing else."""

    def __init__(self, folder: Path, pip: str) -> None:
        wheels = list((PIPS / pip).glob("pip-*.whl"))
        assert wheels, f"no pip in {PIPS / pip}: make .venv/dev"
        venv.create(folder, with_pip=False)
        self.python = folder / "bin" / "python"
        (packages,) = folder.glob("lib/python*/site-packages")
        with zipfile.ZipFile(wheels[0]) as wheel:
            wheel.extractall(packages)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Python with these words, and nothing of this machine's own configuration of pip."""
        return subprocess.run(
            [str(self.python), *words],
            env={"PATH": os.environ["PATH"], "PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def installed(self) -> dict[str, str]:
        """The version of each package beside pip."""
        (packages,) = self.python.parents[1].glob("lib/python*/site-packages")
        found = {one.metadata["Name"]: one.version for one in distributions(path=[str(packages)])}
        return {name: version for name, version in found.items() if name != "pip"}


@pytest.fixture
def index(tmp_path: Path) -> Index:
    """An index in which `broker` got a newer release after the lock was made, as google-auth did on 2026-11-24."""
    made = Index(tmp_path / "index")
    made.release("client", "1.0", "Requires-Dist: broker[fast]>=1.0")
    made.release("broker", "1.0", "Provides-Extra: fast", 'Requires-Dist: engine; extra == "fast"')
    made.release("broker", "1.1", "Provides-Extra: fast", 'Requires-Dist: engine; extra == "fast"')
    made.release("engine", "1.0")
    return made


@pytest.mark.parametrize("pip", ["23.2.1", "newest", pytest.param("22.3.1", marks=pytest.mark.slow)])
def test_install__a_newer_release_and_an_extra__takes_what_the_lock_says(
    pip: str, index: Index, tmp_path: Path
) -> None:
    environment = Environment(tmp_path / "venv", pip)
    lock = index.lock("client==1.0", "broker==1.0", "engine==1.0")
    done = environment.run(str(INSTALL), str(lock), *index.options)
    assert done.returncode == 0, done.stderr
    assert environment.installed() == {"client": "1.0", "broker": "1.0", "engine": "1.0"}


@pytest.mark.slow
def test_install__an_old_pip_that_resolves__refuses_the_same_lock(index: Index, tmp_path: Path) -> None:
    environment = Environment(tmp_path / "venv", "23.2.1")
    lock = index.lock("client==1.0", "broker==1.0", "engine==1.0")
    done = environment.run("-m", "pip", "install", "--require-hashes", "-r", str(lock), *index.options)
    assert done.returncode == 1
    assert "broker[fast]>=1.0" in done.stderr


@pytest.mark.slow
def test_install__a_lock_that_lacks_a_package__is_refused_by_name(index: Index, tmp_path: Path) -> None:
    environment = Environment(tmp_path / "venv", "23.2.1")
    done = environment.run(str(INSTALL), str(index.lock("client==1.0", "engine==1.0")), *index.options)
    assert done.returncode == 1
    assert "client 1.0 requires broker, which is not installed." in done.stderr
    assert "lock.txt could not be installed" in done.stderr


@pytest.mark.slow
def test_install__a_file_with_another_hash__is_refused(index: Index, tmp_path: Path) -> None:
    environment = Environment(tmp_path / "venv", "newest")
    index.hashes["engine==1.0"] = "0" * 64
    done = environment.run(str(INSTALL), str(index.lock("engine==1.0")), *index.options)
    assert done.returncode == 1
    assert environment.installed() == {}
