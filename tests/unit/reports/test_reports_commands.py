"""The commands that a summary offers for copying: run these cases again, accept these regressions."""

from __future__ import annotations

import fnmatch
import shlex

import pytest

from eval_gate.config.policy import FailOn, Policy
from eval_gate.model.result import RunResult, SuiteResult
from eval_gate.reports.rerun_command import (
    MAX_NAMES,
    build_case_rerun_command,
    build_rerun_command,
    find_preparatory_cases,
)
from eval_gate.reports.wording.waivers import build_waive_command
from eval_gate.results.baseline import NOT_REQUESTED, Baseline
from eval_gate.struct import replace
from eval_gate.text.globs import matches_glob
from tests.support.results import FILE, make_baseline_run, make_result, make_run, make_suite_result
from tests.support.verdicts import judge_against

STRICT = Policy(frozenset({FailOn.REGRESSIONS}))


def regressed(*ids: str) -> RunResult:
    """A run in which these cases, which passed, fail."""
    then = make_baseline_run(dict.fromkeys(ids, "passed"))
    return judge_against(make_run(dict.fromkeys(ids, "failed")), Baseline(then, "latest"), STRICT)


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
    baseline = Baseline(make_baseline_run({"a": "passed"}), "latest", exact_reference="r1")
    behind = given[given.index("--") :] if "--" in given else []
    said = shlex.split(build_rerun_command(given, run, baseline).command)
    assert said == ["eval-gate", *kept, "--baseline", "r1", "--case", "a", *behind]


def test_rerun__baseline_that_was_named__stays_as_it_was_given() -> None:
    run = regressed("a")
    for baseline in (Baseline(make_baseline_run({"a": "passed"}), "r1"), NOT_REQUESTED, None):
        command, left_out = build_rerun_command(["run", "--baseline", "r1"], run, baseline)
        assert (command, left_out) == ("eval-gate run --baseline r1 --case a", 0)


@pytest.mark.parametrize(
    "case_id",
    ["a\n::error::b", "##[error]", "it's $(id)", "a,b", "x[1]*?", " a ", "\u202eab", "a\0b", "-a", "\ud800", " "],
)
def test_rerun__hostile_id__is_one_line_that_finds_this_case(case_id) -> None:
    command = build_rerun_command(["run"], regressed(case_id)).command
    assert len(command.splitlines()) == 1
    assert "##[" not in command
    glob = shlex.split(command.replace("$'", "'").replace("\\x23", "#"))[-1]
    assert fnmatch.fnmatchcase(case_id, glob.strip())
    assert "," not in glob


def test_rerun__long_ids__are_as_many_as_a_line_takes_and_the_rest_is_counted() -> None:
    command, left_out = build_rerun_command(["run"], regressed(*(f"{number}{'x' * 150}" for number in range(5))))
    assert (command.count(","), left_out) == (1, 3)
    assert len(command) < MAX_NAMES + 100


def test_rerun__more_cases_than_a_line_takes__are_patterns_that_find_no_other_case() -> None:
    failing = [*(f"refund/{number}" for number in range(9)), *(f"faq/late-{number}" for number in range(3)), "a", "b"]
    now = dict.fromkeys(failing, "failed") | {"faq/early": "passed", "order": "passed"}
    run = judge_against(make_run(now), Baseline(make_baseline_run(dict.fromkeys(now, "passed")), "r"), Policy())
    command, left_out = build_rerun_command(["run"], run)
    patterns = shlex.split(command)[-1].split(",")
    assert (patterns, left_out) == (["refund/*", "faq/late-*", "a", "b"], 0)
    assert {case for case in now if any(matches_glob(one, case) for one in patterns)} == set(failing)


def test_rerun__many_cases_with_nothing_in_common__are_five_and_the_rest_is_counted() -> None:
    assert build_rerun_command(["run"], regressed(*"abcdefgh")) == ("eval-gate run --case a,b,c,d,e", 3)


def test_rerun__only_chosen_cases_were_run__no_pattern_finds_what_was_not() -> None:
    run = replace(regressed(*(f"a/{number}" for number in range(7))), partial=True)
    assert build_rerun_command(["run"], run) == ("eval-gate run --case a/0,a/1,a/2,a/3,a/4", 2)


def dependent(name: str, **cases: str) -> SuiteResult:
    """A suite whose cases work on each other's files."""
    return make_suite_result(
        [make_result(one, status, dependent=True) for one, status in cases.items()], eval_file=name
    )


@pytest.mark.contract("agent_evals.run.cases_before")
def test_rerun__cases_that_work_on_files_of_others__name_these_before_them() -> None:
    first = dependent("a.json", write="passed", look="passed", delete="failed", say="passed")
    run = make_run(first, dependent("b.json", begin="passed", look="passed", write="passed"))
    assert find_preparatory_cases(["delete"], run) == [
        "write",
        "look",
        "begin",
    ]  # both files have a case of these names
    command, left_out = build_rerun_command(["run"], run)
    assert (command, left_out) == ("eval-gate run --case write,look,begin,delete", 0)
    assert build_case_rerun_command("delete", command, find_preparatory_cases(["delete"], run)) == command
    assert find_preparatory_cases(["write"], make_run(first)) == []


def test_rerun__one_id_in_two_files__is_named_once() -> None:
    files = (make_suite_result({"a": "failed"}, eval_file=name) for name in ("a.json", "b.json"))
    assert build_rerun_command(["run"], make_run(*files)) == ("eval-gate run --case a", 0)


@pytest.mark.contract("agent_evals.run.cases_before")
def test_rerun__too_many_cases_before_one__leaves_it_out() -> None:
    early, late = {"first": "failed"}, {f"{number}{'x' * 100}": "passed" for number in range(30)}
    run = make_run(dependent("a.json", **early, **late, last="failed"))
    assert build_rerun_command(["run"], run) == ("eval-gate run --case first", 1)
    alone = make_run(dependent("a.json", **late, last="failed"))
    assert build_rerun_command(["run"], alone) is None
    assert build_case_rerun_command("last", "eval-gate run --case first", find_preparatory_cases(["last"], run)) is None


def test_waive_line__regressions__are_named_and_the_reason_is_left_to_the_person() -> None:
    assert build_waive_command(regressed("a", "b c"), None) == "eval-gate waive a 'b c' --reason '…' --until 14d"
    assert (
        build_waive_command(regressed("-a"), "x.yaml") == "eval-gate waive --reason '…' --until 14d --file x.yaml -- -a"
    )
    assert build_waive_command(regressed("a\nb"), None) is None


def test_waive_line__no_regression_or_no_red_gate__is_not_there() -> None:
    assert build_waive_command(judge_against(make_run({"a": "failed"}), NOT_REQUESTED, Policy()), None) is None
    lenient = judge_against(
        make_run({"a": "failed"}),
        Baseline(make_baseline_run({"a": "passed"}), "latest"),
        Policy(frozenset({FailOn.NEVER})),
    )
    assert build_waive_command(lenient, None) is None


def test_waive_line__id_that_another_file_has_too__comes_with_its_file() -> None:
    def suites(status: str):
        here = make_suite_result([make_result("a", status)])
        return here, make_suite_result([make_result("a")], eval_file="evals/other.json")

    run = judge_against(make_run(*suites("failed")), Baseline(make_baseline_run(*suites("passed")), "latest"), STRICT)
    assert build_waive_command(run, None) == f"eval-gate waive a --reason '…' --until 14d --suite {FILE}"


KEY = "sk-example-QwXaBcDZkEfGhIVjJkLmN99"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (["--agent-endpoint", f"http://bot:pw@h:1/chat?key={KEY}"], ["--agent-endpoint", "http://***@h:1/chat?***"]),
        ([f"--snapshot=https://h/s?key={KEY}"], ["--snapshot=https://h/s?***"]),
        (["--judge", KEY], ["--judge", "***"]),
        ([f"--judge={KEY}"], ["--judge=***"]),
        (["evals/RefundsV2Of2026Late1.json"], ["evals/RefundsV2Of2026Late1.json"]),
        (["--baseline", "runs/3f786850e387550fdab836ed7e6dc881de23001b"],) * 2,
    ],
)
def test_rerun__what_nobody_may_see__is_masked(given, shown) -> None:
    command = build_rerun_command(["run", *given], regressed("a")).command
    assert shlex.split(command) == ["eval-gate", "run", *shown, "--case", "a"]
