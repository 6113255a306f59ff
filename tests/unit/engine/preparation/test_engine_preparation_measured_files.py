"""What suites measure: files as they are on disk, whatever git says of them, and links to them."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from eval_gate.engine.preparation.measured_files import MeasuredFiles
from eval_gate.model import limits
from eval_gate.model.reuse import MeasuredSuite
from tests.support.git import commit_all, git
from tests.unit.engine.preparation.test_engine_preparation_program_files import write

SUITE = "evals/a.yaml"
AGENTS = ["agents/.hidden", "agents/a.py", "agents/deep/b.py", "agents/deep/notes.md"]
FILES = dict.fromkeys([*AGENTS, "prompts/p.md", "lock.json", "README.md"], "1\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    write(folder, FILES)
    return folder


def measure(root: Path, *patterns: str, agent: tuple[str, ...] = (), **environment: str) -> MeasuredSuite:
    return MeasuredFiles(root, environment).measure(SUITE, patterns, [str(root / name) for name in agent])


def names(root: Path, *patterns: str) -> list[str]:
    return list(MeasuredFiles(root, {}).list_files(patterns))


NAMED = {
    ("agents/**",): AGENTS,
    ("agents",): AGENTS,
    ("./agents/",): AGENTS,
    ("agents/*",): AGENTS,
    ("agents/**", "!**/*.md"): [name for name in AGENTS if not name.endswith(".md")],
    ("agents/**", "!agents/deep"): ["agents/.hidden", "agents/a.py"],
    ("!agents/deep/", "agents/**"): ["agents/.hidden", "agents/a.py"],
    ("agents/*.py", "lock.json"): ["agents/a.py", "lock.json"],
    ("**/*.md",): ["README.md", "agents/deep/notes.md", "prompts/p.md"],
    ("Agents/**",): [],
    (".", "!agents", "!prompts"): ["README.md", "lock.json"],
    ("env:HOME",): [],
}


@pytest.mark.parametrize("patterns", NAMED, ids=" ".join)
def test_list_files__patterns__name_these(root, patterns) -> None:
    assert names(root, *patterns) == NAMED[patterns]


def test_list_files__ignored_generated_and_untracked__are_measured_but_not_caches_and_results(root) -> None:
    others = ["agents/a.log", "agents/build/out.js", "agents/models/latest.json"]
    left_out = "node_modules/p/i.js __pycache__/a.pyc env/pyvenv.cfg results/latest.json results/r1/run.json"
    write(root, {".gitignore": "*.log\nbuild/\n"} | dict.fromkeys(others, "1"))
    write(root / "agents", dict.fromkeys(left_out.split(), "1"))
    commit_all(root / "agents/node_modules/p")  # a repository of its own
    files = MeasuredFiles(root, {}, results="agents/results")
    assert sorted(files.list_files(["agents/**"])) == sorted([*AGENTS, *others])


def test_list_files__what_git_tracks_in_a_cache_or_in_the_results__is_measured(root) -> None:
    write(root, {"agents/__pycache__/a.pyc": "1", "agents/results/latest.json": "1"})
    commit_all(root)
    write(root, {"agents/__pycache__/b.pyc": "1", "agents/results/r1/run.json": "1"})
    files = MeasuredFiles(root, {}, results="agents/results")
    found = set(files.list_files(["agents/**"])) - set(AGENTS)
    assert found == {"agents/__pycache__/a.pyc", "agents/results/latest.json"}


def test_list_files__only_below_the_folders_of_the_patterns__is_searched(root, monkeypatch) -> None:
    listed: list[str] = []
    scan = os.scandir
    monkeypatch.setattr(os, "scandir", lambda place: listed.append(os.path.relpath(place, root)) or scan(place))
    names(root, "agents/deep/*.py", "lock.json")
    assert listed == [".", "agents", "agents/deep"]


# ---- what the digest depends on ----------------------------------------------------------------------------------


def edit(name: str, text: str) -> Callable[[Path], object]:
    return lambda root: (root / name).write_bytes(text.encode())


def link_to(place: Path, target: str) -> None:
    place.unlink(missing_ok=True)
    place.symlink_to(target)


CHANGES: dict[str, tuple[Callable[[Path], object], bool]] = {
    "another byte": (edit("agents/a.py", "2\n"), True),
    "another line ending": (edit("agents/a.py", "1\r\n"), True),
    "a new file": (edit("agents/new", ""), True),
    "a file less": (lambda root: (root / "agents/deep/b.py").unlink(), True),
    "another name": (lambda root: (root / "agents/a.py").rename(root / "agents/A.py"), True),
    "an executable file": (lambda root: (root / "agents/a.py").chmod(0o755), True),
    "another time": (lambda root: os.utime(root / "agents/a.py", (1, 1)), False),
    "an empty folder": (lambda root: (root / "agents/empty").mkdir(), False),
    "a file that is left out": (edit("agents/deep/notes.md", "2"), False),
    "a file elsewhere": (edit("README.md", "2"), False),
    "a link in the place of a file": (lambda root: link_to(root / "agents/a.py", "deep/b.py"), True),
}


@pytest.mark.parametrize("change", CHANGES)
def test_measure__change__changes_the_digest_or_not(root, change) -> None:
    do, matters = CHANGES[change]
    (root / "agents/a.py").chmod(0o644)
    patterns = "agents/**", "!**/*.md"
    before = measure(root, *patterns)
    assert (before.patterns, before.files, before.problem) == (("!**/*.md", "agents/**"), 3, None)
    do(root)
    after = measure(root, *patterns)
    assert after.problem is None
    assert (after.digest != before.digest) is matters


def test_measure__two_checkouts__have_one_digest(root, tmp_path) -> None:
    (root / "agents/link").symlink_to("../prompts")
    commit_all(root)
    git(tmp_path, "clone", "--quiet", str(root), "other/deep")
    (tmp_path / "way").symlink_to(tmp_path / "other")
    digests = {
        measure(one, "agents/**", "env:IMAGE", agent=("agents/a.py",), IMAGE="a").digest
        for one in (root, tmp_path / "other/deep", tmp_path / "way/deep")
    }
    assert len(digests) == 1
    assert None not in digests


def test_measure__variable__counts_by_its_value_and_is_a_problem_without_one(root) -> None:
    one, other = (measure(root, "env:IMAGE", IMAGE=value) for value in "ab")
    assert one.digest != other.digest
    assert measure(root, "env:IMAGE", IMAGE="a", OTHER="x") == one
    for variables in ({}, {"IMAGE": ""}, {"IMAGES": "a"}):
        suite = measure(root, "lock.json", "env:IMAGE", **variables)
        assert (suite.digest, suite.problem) == (None, "`env:IMAGE` is not set")


def test_measure__file_of_every_suite__counts_also_if_it_comes_and_goes(root) -> None:
    def digest() -> str | None:
        files, read = MeasuredFiles(root, {}), (".github/workflows/evals.yml",)
        assert files.measure(SUITE, (), (), read).digest is None
        return files.measure(SUITE, ["lock.json"], (), read).digest

    seen = [digest()]
    for text in ("1", "2"):
        write(root, {".github/workflows/evals.yml": text})
        seen.append(digest())
    assert len(set(seen)) == 3


# ---- links -------------------------------------------------------------------------------------------------------


def test_measure__link_to_a_folder_of_the_repository__measures_what_it_leads_to(root) -> None:
    (root / "agents/shared").symlink_to("../prompts")
    write(root, {"node_modules/p/i.js": "1"})
    (root / "agents/p").symlink_to("../node_modules/p")
    assert "agents/p/i.js" in names(root, "agents/**")
    assert "agents/shared/p.md" in names(root, "agents/**")
    seen = [measure(root, "agents/shared/*.md").digest]
    write(root, {"prompts/p.md": "2"})
    seen.append(measure(root, "agents/shared/*.md").digest)
    write(root, {"prompts/p.md": "1\n", "other/p.md": "1\n"})
    link_to(root / "agents/shared", "../other")
    seen.append(measure(root, "agents/shared/*.md").digest)
    assert len(set(seen)) == 3


LINKS = {
    "out of the repository": ("../..", "`agents/x` is a link that leads out of the repository"),
    "to an absolute file": ("/etc/hosts", "`agents/x` is a link that leads out of the repository"),
    "to nothing": ("nothing", "`agents/x` is a link to nothing"),
    "to itself": ("x", "`agents/x` is a link to nothing"),
    "to a folder above": ("..", "`agents/x` is a link that leads to a folder above it"),
    "to its folder": (".", "`agents/x` is a link that leads to a folder above it"),
}


@pytest.mark.parametrize("link", LINKS)
def test_measure__link_that_leads_to_no_file__is_a_problem_unless_it_is_left_out(root, link) -> None:
    target, problem = LINKS[link]
    (root / "agents/x").symlink_to(target)
    suite = measure(root, "agents/**")
    assert (suite.digest, suite.problem) == (None, problem)
    assert measure(root, "agents/**", "!agents/x").problem is None
    assert measure(root, "prompts/**").problem is None


def test_measure__folders_that_link_to_each_other__end_at_the_limit(root, monkeypatch) -> None:
    monkeypatch.setattr(limits, "MEASURED_ENTRIES", 200)
    for number in range(12):
        write(root, {f"agents/l{number}/x": "1"})
        for name in "abc":
            (root / f"agents/l{number}/{name}").symlink_to(f"../l{number + 1}")
    write(root, {"agents/l12/x": "1"})
    assert measure(root, "agents/**").problem == "`measures` leads to more files than the limit"


# ---- what cannot be measured -------------------------------------------------------------------------------------


def test_measure__without_patterns__is_no_problem_and_nothing_is_read(root, monkeypatch) -> None:
    monkeypatch.setattr(os, "scandir", None)
    assert measure(root) == MeasuredSuite(suite=SUITE)


PROBLEMS = {
    ("agents/**", "agnts/**"): "`agnts/**` matches no file",
    ("agents/**", "Prompts/**"): "`Prompts/**` matches no file",
    ("agents/**", "agents/**/*.md", "!**/*.md"): "`agents/**/*.md` matches no file",
    ("!agents/**",): "`!agents/**` only leaves files out, and no other pattern names one",
    ("agents/**", "!nothing/**"): None,
    ("agents/**", "env:NOT_SET"): "`env:NOT_SET` is not set",
}


@pytest.mark.parametrize("patterns", PROBLEMS, ids=" ".join)
def test_measure__pattern_that_matches_nothing__is_a_problem_unless_it_leaves_out(root, patterns) -> None:
    suite = measure(root, *patterns)
    assert suite.problem == PROBLEMS[patterns]
    assert (suite.digest is None) is (suite.problem is not None)


def test_measure__pipe_or_socket__is_a_problem_and_nobody_waits(root) -> None:
    os.mkfifo(root / "agents/pipe")
    assert measure(root, "agents/**").problem == "`agents/pipe` is not a regular file"
    (root / "agents/pipe").unlink()
    with socket.socket(socket.AF_UNIX) as server:
        at = os.open(root / "agents", os.O_RDONLY)
        server.bind(f"/proc/self/fd/{at}/s")
        os.close(at)
        assert measure(root, "agents/**").problem == "`agents/s` is not a regular file"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("name", ["agents/deep", "agents/a.py"])
def test_measure__file_or_folder_that_cannot_be_read__is_a_problem(root, name) -> None:
    (root / name).chmod(0)
    try:
        assert measure(root, "agents/**").problem == f"`{name}` cannot be read: Permission denied"
    finally:
        (root / name).chmod(0o755)


def test_measure__file_or_folder_that_goes_away__is_a_problem(root, monkeypatch) -> None:
    scan = os.scandir

    def scan_gone(place: str) -> object:
        return scan(f"{place}/gone" if place.endswith("deep") else place)

    files = MeasuredFiles(root, {})
    files.list_files(["lock.json"])
    (root / "lock.json").unlink()
    assert files.measure(SUITE, ["lock.json"]).problem == "`lock.json` cannot be read: No such file or directory"
    monkeypatch.setattr(os, "scandir", scan_gone)
    assert measure(root, "agents/**").problem == "`agents/deep` cannot be read: No such file or directory"


def test_measure__submodule_that_was_not_checked_out__is_a_problem_where_it_may_be_measured(root) -> None:
    git(root, "init", "--quiet")
    lines = f"160000 {'1' * 40}\tagents/vendor\n"
    git(root, "update-index", "--add", "--index-info", lines=lines)
    (root / "agents/vendor").mkdir()
    problem = "`agents/vendor` is empty, but git tracks it: the submodule is not checked out"
    for patterns in (["agents/**"], ["**/*.py"], ["agents/vendor/lib/**", "lock.json"]):
        assert measure(root, *patterns).problem == problem
    assert measure(root, "agents/**", "!agents/vendor").problem is None
    assert measure(root, "agents/a.py").problem is None
    write(root, {"agents/vendor/.git": "gitdir: ../../x", "agents/vendor/lib.py": "1"})
    assert measure(root, "agents/**").problem is None
    assert "agents/vendor/lib.py" in names(root, "agents/**")
    write(root, {"agents/vendor/node_modules/x.js": "1"})  # which its own git may track
    assert "agents/vendor/node_modules/x.js" in names(root, "agents/**")


def test_measure__file_that_a_sparse_checkout_leaves_out__is_a_problem_where_it_is_measured(root) -> None:
    git(root, "init", "--quiet")
    commit_all(root)
    git(root, "sparse-checkout", "set", "--no-cone", "/*", "!/agents/deep")
    problem = f"`{AGENTS[2]}` is tracked by git, but not checked out"
    assert measure(root, "agents/**").problem == problem
    assert measure(root, "**/*.py", "lock.json").problem == problem
    assert measure(root, "agents/**", "!agents/deep").problem is None
    assert measure(root, "agents/*.py").problem is None


LIMITS = [("FILES", 3, "leads to more files than the limit"), ("BYTES", 5, "is beyond the limit of 5 bytes")]


@pytest.mark.parametrize(("limit", "value", "problem"), LIMITS)
def test_measure__more_than_the_limit__is_a_problem(root, monkeypatch, limit, value, problem) -> None:
    monkeypatch.setattr(limits, f"MEASURED_{limit}", value)
    write(root, dict.fromkeys(["z1/a", "z2/a"], "1"))
    suite = measure(root, "agents/**", "z1/**", "z2/**")
    assert (suite.digest, str(suite.problem).partition("` ")[2]) == (None, problem)


def test_measure__program_of_the_agent__has_to_be_measured(root) -> None:
    (root / "agents/main.py").symlink_to("../prompts/p.md")
    assert measure(root, "agents/**", agent=("agents/a.py", "agents/main.py", "prompts/p.md")).problem is None
    for program, patterns in (("lock.json", ["agents/**"]), ("agents/a.py", ["agents/**", "!agents/a.py"])):
        suite = measure(root, *patterns, agent=(program,))
        assert (suite.digest, suite.problem) == (None, f"`{program}` is run by the target, but not measured")


def test_measure__names_that_nobody_expects__are_told_on_one_line(root) -> None:
    (root / os.fsdecode(b"agents/\xff`\n")).symlink_to("nothing")
    assert b"\n" not in measure(root, "agents/**").problem.encode()
    (root / os.fsdecode(b"agents/\xff`\n")).unlink()
    (root / os.fsdecode(b"agents/\xff")).write_text("1")
    assert measure(root, "agents/**").digest is not None
