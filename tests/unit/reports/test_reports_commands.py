"""The commands that a summary offers for copying: run these cases again."""

from __future__ import annotations

import fnmatch
import shlex

import pytest

from runner.gate.baseline import NOT_ASKED_FOR, Baseline
from runner.gate.fail_on import FailOn
from runner.gate.judge import judge
from runner.gate.limits import Policy
from runner.model.result import RunResult
from runner.reports.rerun import MAX_NAMES, rerun_command
from tests.support.results import make_baseline_run, make_run

STRICT = Policy(frozenset({FailOn.REGRESSIONS}))


def regressed(*ids: str) -> RunResult:
    """A run in which these cases, which passed, fail."""
    then = make_baseline_run(dict.fromkeys(ids, "passed"))
    return judge(make_run(dict.fromkeys(ids, "failed")), Baseline(then, "latest"), STRICT)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["run", "evals", "--baseline", "latest", "-q"], ["run", "evals", "-q"]),
        (["run", "--baseline=latest", "--shard", "2/4", "--resume=x", "--case=b"], ["run"]),
        (["run", "--", "--baseline", "evals"], ["run"]),
    ],
)
def test_rerun__latest__names_the_run_that_it_was(given, kept) -> None:
    run = regressed("a")
    baseline = Baseline(make_baseline_run({"a": "passed"}), "latest", exact="r1")
    behind = given[given.index("--") :] if "--" in given else []
    said = shlex.split(rerun_command(given, run, baseline))
    assert said == ["eval-gate", *kept, "--baseline", "r1", "--case", "a", *behind]


def test_rerun__baseline_that_was_named__stays_as_it_was_given() -> None:
    run = regressed("a")
    for baseline in (Baseline(make_baseline_run({"a": "passed"}), "r1"), NOT_ASKED_FOR, None):
        assert rerun_command(["run", "--baseline", "r1"], run, baseline) == "eval-gate run --baseline r1 --case a"


@pytest.mark.parametrize(
    "case_id",
    ["a\n::error::b", "##[error]", "it's $(id)", "a,b", "x[1]*?", " a ", "\u202eab", "a\0b", "-a", "\ud800", " "],
)
def test_rerun__hostile_id__is_one_line_that_finds_this_case(case_id) -> None:
    command = rerun_command(["run"], regressed(case_id))
    assert len(command.splitlines()) == 1
    assert "##[" not in command
    glob = shlex.split(command.replace("$'", "'").replace("\\x23", "#"))[-1]
    assert fnmatch.fnmatchcase(case_id, glob.strip())
    assert "," not in glob


def test_rerun__long_ids__are_as_many_as_a_line_takes() -> None:
    command = rerun_command(["run"], regressed(*(f"{number}{'x' * 300}" for number in range(12))))
    assert command.count(",") == 5
    assert len(command) < MAX_NAMES + 100
