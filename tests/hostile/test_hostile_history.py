"""Forged records of earlier runs, `history.json` beside a baseline: a sentence with file and place, and no verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eval_gate.results.run_writer import write_result
from tests.support.measured import measured
from tests.support.program import gate
from tests.support.results import FILE, make_baseline_run, make_run

COMPARE = ("--fail-on", "regressions", "--output-dir", "out")


@pytest.fixture
def folder(tmp_path) -> Path:
    """A baseline in which a case passed, and a run in which it fails."""
    for name, run in (("main", make_baseline_run({"a": "passed"})), ("here", make_run({"a": "failed"}))):
        write_result(tmp_path / name, run)
        (found,) = (tmp_path / name).glob("*/run.json")
        found.parent.rename(tmp_path / f"{name}-run")
    return tmp_path


def ledger(words: str, *runs: str) -> dict[str, Any]:
    told = [{"runId": one, "timestamp": "2026-11-20T10:00:00Z", "cases": 1, "scored": 1} for one in runs]
    return {"schemaVersion": 1, "runs": told, "suites": {FILE: {"a": {"fingerprints": ["y"], "runs": words}}}}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("0P*" + "9" * 5_000, '"0P*9999'),
        ("0P 0P*²", '"0P*²"'),
        ("hello", '"hello"'),
        ("0P " * 20 + "0P|", '"0P|"'),
    ],
)
def test_compare__word_of_the_history_that_is_none__is_refused_by_file_and_case(folder, words, said) -> None:
    (folder / "main-run" / "history.json").write_text(json.dumps(ledger(words, "older")))
    ended = gate(folder, "compare", "main-run", "here-run", *COMPARE)
    assert (ended.returncode, "error[invalid-history]" in ended.stderr) == (2, True), ended.stderr
    assert f"main-run/history.json is not a valid history: suites.{FILE}.a.runs: {said}" in ended.stderr
    assert "Traceback" not in ended.stderr


MISTAKES = {
    "cases": json.dumps({"suites": {"f": dict.fromkeys(map(str, range(600_000)), 1)}}),
    "fingerprints": json.dumps({"suites": {"f": {"a": {"fingerprints": [1] * 2_000_000}}}}),
    "runs": json.dumps({"runs": [1] * 2_000_000}),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_compare__history_of_a_million_mistakes__costs_as_much_as_one(folder, kind) -> None:
    (folder / "main-run" / "history.json").write_text(MISTAKES[kind])
    done = measured(folder, "compare", "main-run", "here-run", *COMPARE)
    assert (done.code, "error[invalid-history]" in done.stderr) == (2, True), done.stderr
    assert done.peak_mb < 350
