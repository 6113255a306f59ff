"""What a test run says of the processor seconds it used, and that a budget breaks where one is set."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processor_time import BUDGET, TESTS, get_package
from tests.support.program import CLEAN

PROGRAM_OF_A_TEST = "sum(range(10_000_000))"
TEST = f"""
import subprocess, sys

def test_program():
    subprocess.run([sys.executable, "-c", {PROGRAM_OF_A_TEST!r}], check=True)

def test_none(): ...
"""


def run_tests(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(TESTS / "conftest.py", folder)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow\n    contract\n    rows_each\n")
    (folder / "test_few.py").write_text(TEST)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words],
        cwd=folder,
        env=CLEAN | {"PYTHONPATH": str(TESTS.parent)} | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def read_seconds(text: str) -> dict[str, float]:
    return {what: float(seconds) for seconds, what in re.findall(r"(?m)^ *(\d+[.]\d)  (.+)$", text)}


@pytest.mark.parametrize("words", [(), pytest.param(("-n", "1"), marks=pytest.mark.slow)])
def test_run__without_a_budget__passes_and_lists_what_it_used_with_its_programs(tmp_path, words) -> None:
    done = run_tests(tmp_path, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    seconds = read_seconds(done.stdout)
    assert seconds["elsewhere (2 tests)"] > 0.05
    assert seconds.pop("in all") == pytest.approx(sum(seconds.values()), abs=0.3)


@pytest.mark.parametrize("words", [(), pytest.param(("-n", "1"), marks=pytest.mark.slow)])
def test_run__over_its_budget__fails_and_says_by_which_variable(tmp_path, words) -> None:
    done = run_tests(tmp_path, *words, **{BUDGET: "0.01"})
    assert done.returncode == 1
    assert f"more than the budget of 0.01 ({BUDGET})" in done.stdout
    assert "2 passed" in done.stdout


def test_run__within_its_budget__passes(tmp_path) -> None:
    assert run_tests(tmp_path, **{BUDGET: "600"}).returncode == 0


def test_package__of_a_file__is_its_folder_and_in_unit_that_of_the_package() -> None:
    assert get_package(TESTS / "unit" / "gate" / "waivers" / "test_a.py") == "unit/gate"
    assert get_package(TESTS / "integration" / "action" / "test_a.py") == "integration"
    assert get_package(TESTS / "unit" / "test_a.py") == "unit"
    assert get_package(Path("/elsewhere/test_a.py")) == "elsewhere"
