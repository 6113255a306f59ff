"""What is known of all cases, out of the ledger that ends with the baseline."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from eval_gate.gate.case_matching import GateCases
from eval_gate.gate.evidence.case_history import CaseEvidence, HistoryEvidence, count_case_responses
from eval_gate.model.case import CaseKey
from eval_gate.model.evidence import CaseHistorySummary, Counts
from eval_gate.model.execution import ErrorKind
from eval_gate.model.result import RunResult
from eval_gate.model.setup import TargetIdentity
from eval_gate.results.baseline import NOT_REQUESTED, Baseline
from eval_gate.results.history import CaseHistory, build_history
from eval_gate.session.history_update import build_next_history
from eval_gate.struct import replace
from tests.support.graded import make_graded
from tests.support.results import FILE, make_baseline_run, make_result, make_run, make_suite_result


def earlier(number: int, cases, **fields):
    """A run of the default branch, `number` days before the baseline of the 19th."""
    values = {"run_id": f"day-{number}", "timestamp": f"2026-11-{19 - number:02}T10:00:00Z"}
    return make_baseline_run(make_suite_result(cases) if isinstance(cases, list) else cases, **(values | fields))


def counted(baseline: Baseline, now=None) -> dict[str, tuple[int, int]]:
    found = histories(baseline, now or make_run({"a": "failed", "b": "passed"}))
    return {key.case_id: (one.counts.passes, one.counts.executions) for key, one in found.items()}


def histories(baseline: Baseline, now) -> dict[CaseKey, CaseHistorySummary]:
    past = evidence_of(baseline, now)
    return {key: one.history for key, one in past.items() if one.history.counts.executions}


def evidence_of(baseline: Baseline, now: RunResult) -> Mapping[CaseKey, CaseEvidence]:
    return HistoryEvidence(baseline, 1.0).get_case_evidence(GateCases.pair(baseline.result, now))


def branch(newest, *older) -> Baseline:
    """A baseline with the runs of its branch, in whatever order they are named."""
    runs = sorted((newest, *older), key=lambda run: run.timestamp, reverse=True)
    return Baseline(newest, "b", history=build_history(runs))


@pytest.mark.contract("verdict.record")
def test_records__baseline_and_history__counts_red_runs_too_and_each_run_once() -> None:
    newest = earlier(0, {"a": "passed", "b": "passed"})
    older = earlier(2, {"a": "failed", "b": "error"}), earlier(1, {"a": "passed", "b": "passed"})
    assert counted(branch(newest, *older)) == {"a": (2, 3), "b": (2, 2)}


def test_records__baseline_alone__is_a_record_of_one_run() -> None:
    baseline = Baseline(earlier(0, {"a": "passed", "b": "skipped"}), "b")
    assert counted(baseline) == {"a": (1, 1)}
    assert histories(baseline, make_run({"a": "failed"}))[CaseKey(FILE, "a")].evidence_run_ids == ()


@pytest.mark.contract("verdict.record", "verdict.record.changed")
@pytest.mark.parametrize(
    "other",
    [
        earlier(1, {"a": "failed"}, partial=True),
        earlier(1, {"a": "failed"}, complete=False),
        earlier(1, {"a": "failed"}, target=TargetIdentity(name="other", provider="http", identity="x")),
        earlier(1, {"a": "failed"}, target=TargetIdentity(name="agent", provider="http", identity="x", model="m")),
        earlier(-1, {"a": "failed"}),
        earlier(1, [make_result("a", "failed", fingerprint="another")]),
        earlier(1, make_suite_result({"a": "failed"}, eval_file="other.json")),
    ],
    ids=["partial", "incomplete", "another target", "another model", "after the baseline", "changed", "another file"],
)
def test_records__runs_that_say_nothing_about_this_case__are_left_out(other) -> None:
    baseline = earlier(0, {"a": "passed"})
    assert counted(branch(baseline, other)) == {"a": (1, 1)}


def test_records__runs_without_fingerprints__go_by_id() -> None:
    foreign = earlier(1, [make_result("a", "failed", fingerprint=None)])
    assert counted(branch(earlier(0, {"a": "passed"}), foreign)) == {"a": (1, 2)}


@pytest.mark.contract("verdict.record")
def test_records__many_runs__takes_the_newest_twenty() -> None:
    history = tuple(
        earlier(0, {"a": "passed"}, run_id=f"r{hour}", timestamp=f"2026-11-18T{hour % 24:02}:00:0{hour // 24}Z")
        for hour in range(40)
    )
    assert counted(branch(earlier(0, {"a": "passed"}), *history)) == {"a": (20, 20)}


@pytest.mark.contract("verdict.record.broken-branch")
def test_records__the_branch_lost_many_cases_at_once__starts_there_for_all() -> None:
    names = [f"c{number}" for number in range(40)]
    good = dict.fromkeys(names, "passed")
    bad = good | dict.fromkeys(names[:8], "failed")
    history = tuple(earlier(day, bad if day < 2 else good) for day in range(1, 12))
    found = counted(branch(earlier(0, bad), *history), make_run(bad))
    assert found["c0"] == (0, 2)
    assert found["c39"] == (2, 2)


@pytest.mark.contract("verdict.trials")
@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (make_result("a", "passed", trials="PPF"), Counts(passes=2, failures=1)),
        (make_result("a", "failed", trials="EEF"), Counts(failures=1)),
        (make_result("a", "passed"), Counts(passes=1)),
        (make_result("a", "error"), Counts()),
        (make_result("a", "error", trials="EE"), Counts()),
    ],
    ids=["trials", "with errors", "without trials", "error", "errors"],
)
def test_counts__case__is_of_its_judged_trials(case, expected) -> None:
    assert count_case_responses(case, 1.0).first == expected


def test_past__case_with_fewer_words_than_there_are_runs__was_in_none_of_the_others() -> None:
    baseline = branch(earlier(0, {"a": "passed", "b": "passed"}), earlier(1, {"a": "failed", "b": "passed"}))
    suites = {suite: dict(cases) for suite, cases in baseline.history.suites.items()}
    suites[FILE]["c"] = CaseHistory(fingerprints=("fingerprint of ",), runs="-")
    suites[FILE]["b"] = replace(suites[FILE]["b"], runs="0P")
    known = replace(baseline, history=replace(baseline.history, suites=suites))
    now = make_run({"a": "failed", "b": "passed", "c": "passed"})
    assert counted(known, now) == {"a": (1, 2), "b": (1, 1)}
    assert HistoryEvidence(known, 1.0).level_run_count == 2
    assert evidence_of(known, now)[CaseKey(FILE, "c")].newest_result is None


def test_past__scores_before_the_branch_changed__say_nothing_about_how_scores_vary() -> None:
    def cases(status: str, score: float) -> list:
        return [*(make_result(f"c{at}", status) for at in range(8)), make_graded("g", score, location=None)]

    after = [earlier(day, cases("passed", 0.8)) for day in range(3)]
    before = [earlier(day, cases("failed", 0.2)) for day in range(3, 6)]
    now = make_run(make_suite_result(cases("passed", 0.8)))
    scores = evidence_of(branch(*after, *before), now)[CaseKey(FILE, "g")].score_history
    assert scores is not None
    assert (scores.runs, scores.mean, scores.spread, scores.degrees_of_freedom) == (
        3,
        pytest.approx(0.8),
        pytest.approx(0),
        2,
    )


def test_records__baseline_that_mostly_could_not_be_measured__counts_for_what_it_judged() -> None:
    newest = earlier(0, {"a": "passed", "b": "error", "c": "error"})
    unmeasured, measured = earlier(1, {"a": "failed", "b": "error", "c": "error"}), earlier(2, {"a": "failed"})
    assert counted(branch(newest, unmeasured, measured), make_run({"a": "failed"})) == {"a": (1, 2)}


def test_history_after__run_without_a_baseline__begins_a_history() -> None:
    assert [one.run_id for one in build_next_history(earlier(0, {"a": "passed"}), NOT_REQUESTED).runs] == ["day-0"]
    baseline = branch(earlier(1, {"a": "passed"}), earlier(2, {"a": "passed"}))
    assert [one.run_id for one in build_next_history(earlier(0, {"a": "passed"}), baseline).runs] == [
        "day-0",
        "day-1",
        "day-2",
    ]


def test_past__case_that_was_graded_and_is_not_any_more__is_compared_by_passes() -> None:
    baseline = branch(earlier(0, [make_graded("g", 0.8, location=None)]))
    graded, plain = (
        evidence_of(baseline, make_run(make_suite_result([now])))[CaseKey(FILE, "g")].newest_result
        for now in (make_graded("g", 0.7, location=None), make_result("g"))
    )
    assert graded is not None
    assert plain is not None
    assert (graded.tally.score, plain.tally.score) == (0.8, 0.0)


def statuses(text: str) -> dict[str, str]:
    """Cases `a`, `b`, … from letters."""
    words = {"P": "passed", "F": "failed", "C": "error"}
    return dict(zip("abcdefghij", (words[letter] for letter in text), strict=False))


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        pytest.param(("PPPPPPPPPP", "CCCCCCCCCC"), (1, 1), id="nothing judged"),
        pytest.param(("PPPPPPPPPP", "CCCCCPPPPP"), (1, 1), id="half of the cases"),
        pytest.param(("PPPPPPPPPP", "CCCCCCPPPP", "CCCCCCPPPP"), (1, 1), id="two in a row"),
        pytest.param(("PPPPPPPPPP", "CCCCCPPPPP", "PPPPPPPPPP"), (2, 2), id="an older one"),
        pytest.param(("PPPPPPPPPP", "CCPPPPPPPP"), (1, 1), id="two cases"),
        pytest.param(("PPCCCCPPPP", "CCCCPPPPPP", "CCCCCPPPPP"), (1, 1), id="as many errors as always"),
        pytest.param(("PPPPPPPPPP", "FCCCCCPPPP"), (1, 2), id="a wrong answer counts"),
    ],
)
def test_records__a_run_of_main_with_many_errors__says_nothing_of_the_cases_without_a_response(runs, expected) -> None:
    made = [earlier(len(runs) - 1 - at, crashing(statuses(letters))) for at, letters in enumerate(runs)]
    passes, executions = expected
    history = histories(branch(made[-1], *made[:-1]), make_run({"a": "failed"}))[CaseKey(FILE, "a")]
    assert (history.counts.passes, history.counts.executions) == (passes, executions)


def crashing(cases: dict[str, str]):
    """Cases whose errors are the agent's."""
    return [
        make_result(case, status, **({"error_kind": ErrorKind.AGENT_ERROR} if status == "error" else {}))
        for case, status in cases.items()
    ]
