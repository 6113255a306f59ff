"""The two tiers of tests: what the fast one leaves out, and that naming a file or `--full` leaves nothing out."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]

PROCESSES = """
import pytest

ROWS = pytest.mark.parametrize("row", range(6))

@ROWS
def test_table(row): ...

@pytest.mark.rows_each("reader")
@pytest.mark.parametrize("reader", ["a", "b"])
@ROWS
def test_readers(row, reader): ...

@ROWS
def test_golden_files(row, golden): ...

def test_run__one(): ...
def test_run__two(): ...
@ROWS
def test_run__three(row): ...
def test_run__four(): ...
def test_check__one(): ...

@pytest.mark.slow
def test_slow(): ...

@pytest.mark.slow
@pytest.mark.contract("rule.of_slow_tests")
def test_rule(): ...

@pytest.mark.slow
@pytest.mark.contract("rule.of_slow_tests")
def test_rule_again(): ...
"""
FUNCTIONS = """
import pytest

@pytest.mark.parametrize("row", range(6))
def test_table(row): ...
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copy(TESTS / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow\n    contract\n    rows_each\n")
    for name, text in {"integration/test_processes.py": PROCESSES, "unit/test_functions.py": FUNCTIONS}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    return tmp_path


def collected(project: Path, *words: str) -> dict[str, int]:
    """How many rows of each test are run."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-p",
        "no:randomly",
        "-p",
        "no:cacheprovider",
        *words,
    ]
    done = subprocess.run(
        command, cwd=project, env={"PYTHONPATH": str(TESTS.parent)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    names = [line.partition("::")[2].partition("[")[0] for line in done.stdout.splitlines() if "::" in line]
    return {name: names.count(name) for name in names}


def test_fast_tier__by_default__keeps_a_row_each_reader_golden_files_three_situations_and_a_test_of_each_rule(
    project,
) -> None:
    assert collected(project, "integration") == {
        "test_table": 1,
        "test_readers": 2,
        "test_golden_files": 6,
        "test_run__one": 1,
        "test_run__two": 1,
        "test_run__three": 1,
        "test_check__one": 1,
        "test_rule": 1,
    }
    assert collected(project, "unit") == {"test_table": 1}


@pytest.mark.parametrize("words", [("--full", "integration"), ("integration/test_processes.py",)])
def test_full_tier__asked_for_or_a_file_named__leaves_nothing_out(project, words) -> None:
    assert collected(project, *words) == {
        "test_table": 6,
        "test_readers": 12,
        "test_golden_files": 6,
        "test_run__one": 1,
        "test_run__two": 1,
        "test_run__three": 6,
        "test_run__four": 1,
        "test_check__one": 1,
        "test_slow": 1,
        "test_rule": 1,
        "test_rule_again": 1,
    }
