"""`make demo` and `make test` on a machine that lacks something: one sentence, before anything is set up."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.integration.test_integration_run import wait_until

ROOT = Path(__file__).parents[2]
MAKE = shutil.which("make")
pytestmark = pytest.mark.skipif(MAKE is None, reason="there is no make here")

# as on Debian, where `ensurepip` comes with a package of its own
WITHOUT_VENV = """#!{python}
import sys
sys.modules["ensurepip"] = None
assert sys.argv[1] == "-c", "nothing is set up"
exec(sys.argv[2])
"""


def make(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Make, with an empty PATH and an environment still to be made in `folder`."""
    (folder / "bin").mkdir()
    return subprocess.run(
        [MAKE, "--no-print-directory", f"VENV={folder / 'venv'}", *words],
        cwd=ROOT,
        env={"PATH": str(folder / "bin"), "LC_ALL": "C"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("target", ["demo", "lint"])
def test_make__python_without_venv__names_the_package_to_install(tmp_path, target) -> None:
    python = tmp_path / "python"
    python.write_text(WITHOUT_VENV.format(python=sys.executable))
    python.chmod(0o755)
    done = make(tmp_path, target, f"PYTHON={python}")
    package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
    said, *more = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert said.endswith(f"(Debian, Ubuntu: apt-get install {package}).")
    assert all(line.startswith("make: ***") for line in more)
    assert not (tmp_path / "venv").exists()


def test_make__no_python__says_which_one_is_needed(tmp_path) -> None:
    done = make(tmp_path, "demo")
    assert done.returncode == 2
    assert "Eval Gate needs Python 3.11 or later" in done.stderr
    assert "-venv" not in done.stderr


def test_make_test__no_git__says_so_before_anything_is_set_up(tmp_path) -> None:
    done = make(tmp_path, "test", f"PYTHON={sys.executable}")
    said, *more = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert said == "The tests need git, which is not installed here (Debian, Ubuntu: apt-get install git)."
    assert all(line.startswith("make: ***") for line in more)
    assert not (tmp_path / "venv").exists()


# --- .ci/run


def ci(folder: Path, make: str = "", container: str = "", *, limits: bool = False) -> subprocess.CompletedProcess[str]:
    """`.ci/run` beside this script for the container's, with this one for `make`, and all other steps done at once.

    `limits` makes hundredths of a second of its minutes.
    """
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci")
    scripts = {".ci/container": container, ".ci/pages": "", ".ci/host": "", "bin/make": make, "bin/npm": make}
    if limits:
        scripts["bin/timeout"] = f'shift; minutes=$1; shift; exec {shutil.which("timeout")} "0.${{minutes%m}}" "$@"'
    (folder / "bin").mkdir()
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/bash\n{script}\n")
        (folder / name).chmod(0o755)
    return subprocess.run(
        [folder / ".ci" / "run"],
        env={"PATH": f"{folder / 'bin'}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


needs_timeout = pytest.mark.skipif(shutil.which("timeout") is None, reason="there is no `timeout` here")


@needs_timeout
def test_ci__step_hangs__is_stopped_and_named(tmp_path) -> None:
    done = ci(tmp_path, 'case "$*" in *lint) sleep 60;; esac', limits=True)
    assert done.returncode == 124
    assert "*** STOPPED: style and import rules: not done after 10 minutes" in done.stderr
    assert [re.sub(r"-- \d:\d\d", "-- 0:00", line) for line in done.stdout.splitlines() if line] == [
        "== demo, as a newcomer runs it",
        "-- 0:00 min: demo, as a newcomer runs it",
        "== what a developer needs",
        "-- 0:00 min: what a developer needs",
        "== style and import rules",
        "-- 0:00 min: style and import rules",
    ]


@needs_timeout
def test_ci__step_fails__is_the_last_and_its_code_counts(tmp_path) -> None:
    done = ci(tmp_path, 'case "$*" in *types) exit 7;; esac', limits=True)
    assert done.returncode == 7
    assert "STOPPED" not in done.stderr
    assert done.stdout.splitlines()[-1].endswith("min: types")


def test_ci__types_beside_other_steps__are_said_in_one_piece_and_their_code_counts(tmp_path) -> None:
    done = ci(tmp_path, 'case "$*" in *types) echo checked; echo wrong >&2; exit 9;; esac')
    assert done.returncode == 9
    said = [line for line in done.stdout.splitlines() if line]
    at = said.index("== types")
    assert said[at + 1 : at + 3] == ["checked", "wrong"]
    assert said[-1].endswith("min: types")


@needs_timeout
def test_ci__step_fails_while_types_are_checked__those_are_ended_too(tmp_path) -> None:
    there = tmp_path / "there"
    types = f"trap 'touch {there}.ended; exit 143' TERM; touch {there}; sleep 60 & wait"
    lint = f"while [ ! -e {there} ]; do sleep 0.05; done; exit 6"
    done = ci(tmp_path, f'case "$*" in *types) {types};; *lint) {lint};; esac')
    assert done.returncode == 6
    wait_until(lambda: there.with_suffix(".ended").exists())


def test_ci__image_fails__is_the_last_and_its_code_counts(tmp_path) -> None:
    done = ci(tmp_path, container="echo built; echo broken >&2; exit 9")
    assert done.returncode == 9
    assert done.stdout.splitlines()[-1].endswith("min: the container image, by its smoke tests")


def test_ci__on_github__runs_every_step_in_some_job() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    made = set(re.findall(r"make --no-print-directory ([\w-]+(?: ARGS=\S+)?)", script))
    started = set(re.findall(r'^step .*" (\.ci/.+)$', script, re.MULTILINE))
    assert (len(made), len(started)) == (5, 2)
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))["jobs"].values()
    run = {step["run"].removeprefix("make ") for job in jobs for step in job["steps"] if "run" in step}
    assert made | started <= run


# --- .ci/bare

MADE = 'case "$*" in *{unreached}*) exit 1;; esac; for tar; do case $tar in *.tar) touch "$tar";; esac; done'
INSTEAD = "*** NOT TRIED ON UBUNTU 24.04, WHOSE PACKAGES ARE NOT REACHED: DEBIAN 13 TAKES ITS PLACE. ***"


def bare(folder: Path, unreached: str = "nothing", user: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
    """`.ci/bare` of this user, where the packages of one suite are not reached; `make` says what it is to test."""
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "bare", folder / ".ci")
    (folder / "bin").mkdir()
    scripts = {"id": f"echo {user}", "mmdebstrap": MADE.format(unreached=unreached), "apt-get": "", "apt-config": ""}
    for name, script in (scripts | {"make": 'ls "$EVAL_GATE_BARE_SYSTEMS"'}).items():
        (folder / "bin" / name).write_text(f"#!/bin/bash\n{script}\n")
        (folder / "bin" / name).chmod(0o755)
    return subprocess.run(
        [folder / ".ci" / "bare"],
        env={"PATH": f"{folder / 'bin'}:/usr/bin:/bin", "XDG_CACHE_HOME": str(folder / "kept"), **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_bare_systems__all_packages_reached__both_are_tried(tmp_path) -> None:
    done = bare(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert {"debian-12.tar", "ubuntu-24.04.tar"} == {line for line in done.stdout.split() if line.endswith(".tar")}


@pytest.mark.parametrize(("required", "code"), [("0", 0), ("1", 1)])
def test_bare_systems__ubuntu_not_reached__debian_13_takes_its_place_and_that_is_said(tmp_path, required, code) -> None:
    done = bare(tmp_path, "noble", EVAL_GATE_REQUIRE_BARE=required)
    assert (done.returncode, INSTEAD in done.stderr) == (code, True), done.stderr
    if not code:
        assert {"debian-12.tar", "debian-13.tar"} == {line for line in done.stdout.split() if line.endswith(".tar")}


@pytest.mark.parametrize(("required", "code"), [("0", 0), ("1", 1)])
@pytest.mark.parametrize(("user", "unreached", "why"), [(1000, "x", "IT NEEDS ROOT"), (0, "bookworm", "DEBIAN 12")])
def test_bare_systems__none_can_be_made__is_said_in_capitals(tmp_path, required, code, user, unreached, why) -> None:
    done = bare(tmp_path, unreached, user, EVAL_GATE_REQUIRE_BARE=required)
    assert (done.returncode, ".tar" in done.stdout) == (code, False)
    assert "*** GETTING STARTED WAS NOT TRIED ON BARE SYSTEMS: " in done.stderr
    assert why.lower() in done.stderr.lower()
