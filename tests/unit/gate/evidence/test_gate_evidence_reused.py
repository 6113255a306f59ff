"""Evidence out of a history in which some runs reused results: what the executed runs alone would say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from eval_gate.gate.case_matching import GateCases
from eval_gate.gate.comparison_refinement import PriorEvidence, collect_prior_evidence
from eval_gate.gate.evidence.case_history import CaseEvidence, HistoryEvidence
from eval_gate.gate.evidence.suite.branch_level import MAX_RUNS
from eval_gate.model.case import CaseKey
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.results.baseline import Baseline
from eval_gate.struct import replace
from tests.support.reuse import CARE, PAY, build_history, make_branch_runs
from tests.support.verdicts import REGRESSIONS, make_executed

SCORED = st.lists(st.sampled_from(("P", "PP", "F", "FP", "FFF", "FPP")), min_size=3, max_size=3)
STEP = st.one_of(st.just("="), SCORED)
STEPS = st.lists(st.tuples(STEP, STEP), min_size=1, max_size=25)


def runs_of(steps: Sequence[tuple[Sequence[str], Sequence[str]]]) -> list[RunResult]:
    """The runs of a branch, oldest first: how the cases of both suites ended, or `=` for the run before's result."""

    def make_cases(_file: str, words: Sequence[str]) -> list[CaseResult]:
        return [make_executed(f"c{number}", word) for number, word in enumerate("PPP" if words == "=" else words)]

    return make_branch_runs(steps, make_cases, reruns=6)


def baseline_of(runs: Sequence[RunResult]) -> Baseline:
    return Baseline(runs[-1], "main", history=build_history(runs))


def only(run: RunResult, file: str) -> RunResult:
    return replace(run, suites=tuple(one for one in run.suites if one.eval_file == file))


def evidence_of(baseline: Baseline, now: RunResult) -> PriorEvidence:
    return collect_prior_evidence(GateCases.pair(baseline.result, now), baseline, REGRESSIONS)


def of_suite(evidence: Mapping[CaseKey, CaseEvidence], file: str) -> dict[CaseKey, CaseEvidence]:
    return {key: one for key, one in evidence.items() if key.suite == file}


@given(st.lists(st.one_of(st.just("="), st.tuples(SCORED, SCORED)), min_size=1, max_size=30))
def test_evidence__whole_runs_reused__is_that_of_the_executed_runs(steps) -> None:
    runs = runs_of([("=", "=") if step == "=" else step for step in steps])
    executed = [run for run in runs if not run.baseline_suites]
    now = replace(runs[0], run_id="now")
    found, alone = evidence_of(baseline_of(runs), now), evidence_of(baseline_of(executed), now)
    assert found.case_evidence == alone.case_evidence
    assert replace(found.evidence, baseline_run_id="") == replace(alone.evidence, baseline_run_id="")


@given(STEPS)
def test_evidence__any_mixture_of_suites__is_for_each_case_that_of_its_executed_runs(steps) -> None:
    runs = runs_of(steps)
    for file in (CARE, PAY):
        own = [only(run, file) for run in runs if file not in run.baseline_suites]
        mixed, alone = HistoryEvidence(baseline_of(runs), 1.0), HistoryEvidence(baseline_of(own), 1.0)
        # what else the branch executed may tell that its level changed, and whose fix was chance
        assume(alone.level_run_count == len(own[-MAX_RUNS:]))
        assume(mixed._fixed_looking_cases == alone._fixed_looking_cases)
        assume(mixed.level_run_count == max(own[-1] + 1 for own in map(mixed._list_columns, _rows(mixed))))
        now = replace(runs[0], run_id="now")
        found = mixed.get_case_evidence(GateCases.pair(runs[-1], now))
        expected = alone.get_case_evidence(GateCases.pair(own[-1], only(now, file)))
        assert of_suite(found, file) == expected


def _rows(evidence: HistoryEvidence) -> list[str]:
    return [runs for runs, _ in evidence._own_kinds]


def test_evidence__suite_executed_in_every_fifth_run__has_twenty_of_its_own_runs() -> None:
    steps = [(["P", "P", "P"], ["P", "P", "P"] if number % 4 == 0 else "=") for number in range(96)]
    baseline = baseline_of(runs_of(steps))
    found = evidence_of(baseline, replace(baseline.result, run_id="now"))
    counts = {key.suite: one.history.counts.passes for key, one in found.case_evidence.items()}
    assert counts == {CARE: 20, PAY: 20}
    assert found.evidence.history_runs == 20


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ("P P F = = F =", "r2"),
        ("P P F = = F = = = P = =", None),
        ("= P = = F = = =", "r4"),
    ],
)
def test_evidence__main_broke_a_case_and_reused_since__names_the_run_that_executed_it(steps, expected) -> None:
    words = [word if word == "=" else [word * (1 if word == "P" else 4)] * 3 for word in steps.split()]
    baseline = baseline_of(runs_of([(word, ["P", "P", "P"]) for word in words]))
    found = evidence_of(baseline, replace(baseline.result, run_id="now")).case_evidence[CaseKey(CARE, "c0")].history
    assert (found.broken_since.run_id if found.broken_since else None) == expected
    assert found.newest_failed is (expected is not None)


def test_evidence__newest_execution_is_older_than_the_baseline__is_left_out_of_the_suite_test() -> None:
    steps = [(["F", "P", "P"], ["P", "P", "P"]), (["P", "P", "P"], ["P", "P", "P"]), ("=", ["P", "P", "P"])]
    baseline = baseline_of(runs_of(steps))
    found = evidence_of(baseline, replace(baseline.result, run_id="now")).case_evidence[CaseKey(CARE, "c0")]
    assert (found.history.counts.passes, found.history.counts.failures) == (1, 1)
    assert (found.history.without_newest_run.passes, found.history.without_newest_run.failures) == (0, 1)
    assert found.newest_result is not None
    assert found.newest_result.run is None  # the baseline has this very result
