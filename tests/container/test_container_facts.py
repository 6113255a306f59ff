"""What is in the image and what is not."""

from __future__ import annotations

import json
import subprocess
import zlib
from typing import Any

import pytest

from tests.container.runner_shape import DOCKER, PYTHON, docker

COMPRESSED_LIMIT = 150_000_000
"""Every run of the action waits until this much is pulled."""


@pytest.fixture(scope="module")
def config(image: str) -> dict[str, Any]:
    """The image's own settings."""
    return json.loads(docker("image", "inspect", image))[0]["Config"]


def test_entry_point__is_a_list_without_a_shell(config) -> None:
    assert config["Entrypoint"] == [PYTHON, "-I", "-m", "eval_gate", "action"]
    assert not config.get("Cmd")


def test_image__leaves_user_and_folder_to_the_runner(config) -> None:
    assert config.get("User", "") == ""
    assert config.get("WorkingDir", "") in {"", "/"}


def test_image__says_what_it_is(config) -> None:
    labels = config["Labels"]
    assert labels["org.opencontainers.image.title"] == "Eval Gate"
    assert labels["org.opencontainers.image.licenses"] == "MIT"


def packed_size(image: str) -> int:
    """The bytes to pull, and a few more."""
    size = 0
    packer = zlib.compressobj(level=1)  # quick and a little too large: the registry packs better
    with subprocess.Popen([DOCKER, "save", image], stdout=subprocess.PIPE) as saved:
        assert saved.stdout is not None
        while block := saved.stdout.read(1 << 20):
            size += len(packer.compress(block))
    assert saved.returncode == 0
    return size


def test_image__is_small_enough_to_be_pulled_in_every_run(image) -> None:
    assert 10_000_000 < packed_size(image) < COMPRESSED_LIMIT


def test_program__runs_by_its_name_too(step) -> None:
    done = step(entrypoint="eval-gate", args=["--version"])
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("eval-gate ")


def test_demo__runs_without_any_network(python) -> None:
    done = python("-m", "eval_gate", "demo", network="none")
    assert done.exit_code == 0, done.stderr
    assert "In a pull request, this gate would exit with 1" in done.stderr


def test_every_module__can_be_imported(python) -> None:
    done = python("-c", _IMPORT_ALL)
    assert done.exit_code == 0, done.stderr
    assert int(done.stdout) > 50


def test_bytecode__is_there_for_everything_and_holds_whatever_the_times_are(python) -> None:
    done = python("-c", _FIND_WITHOUT_BYTECODE)
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout) == []


def test_templates__are_compiled_and_found_so(python) -> None:
    done = python("-c", _FIND_TEMPLATES)
    assert (done.exit_code, done.stderr) == (0, "")
    assert int(done.stdout) > 5


def test_venv__holds_no_installer_and_nothing_that_builds(python) -> None:
    done = python("-c", _FIND, "pip", "setuptools", "hatchling", "pytest", "mypy")
    assert json.loads(done.stdout) == []


def test_image__has_git_and_keeps_nothing_of_its_build(step) -> None:
    left = ("/src", "/opt/build", "/etc/pip.conf", "/root/.cache")
    done = step(entrypoint=PYTHON, args=("-I", "-c", _LEFT_OVER, *left))
    assert json.loads(done.stdout) == {"git": "/usr/bin/git", "left": []}


_IMPORT_ALL = """
import importlib, pkgutil, eval_gate
names = [found.name for found in pkgutil.walk_packages(eval_gate.__path__, "eval_gate.")]
names.remove("eval_gate.__main__")
for name in names:
    importlib.import_module(name)
print(len(names))
"""

# The second word of a bytecode file says how it is checked: 1 is "by nobody" (a hash, unchecked).
_FIND_WITHOUT_BYTECODE = """
import importlib.util, json, pathlib, sysconfig
site = pathlib.Path(sysconfig.get_path("purelib"))
def missing(source):
    made = pathlib.Path(importlib.util.cache_from_source(str(source)))
    return not made.is_file() or int.from_bytes(made.read_bytes()[4:8], "little") != 1
print(json.dumps([str(source) for source in site.rglob("*.py") if missing(source)]))
"""

_FIND = "import importlib.util, json, sys; print(json.dumps([n for n in sys.argv[1:] if importlib.util.find_spec(n)]))"

_LEFT_OVER = """
import json, pathlib, shutil, sys
print(json.dumps({"git": shutil.which("git"), "left": [p for p in sys.argv[1:] if pathlib.Path(p).exists()]}))
"""


_FIND_TEMPLATES = """
import jinja2
from eval_gate.reports.template_compilation import compile_templates
from eval_gate.reports.template_engine import CACHE_FOLDER

def never(*_, **__):
    raise SystemExit("a template is compiled when it is needed")

jinja2.Environment._generate = never
compile_templates()
print(len(list(CACHE_FOLDER.glob("template-*"))))
"""
