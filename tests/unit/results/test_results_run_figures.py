"""Figures of a run for the trend of its branch."""

from eval_gate.model.comparison import Outcome, Verdict
from eval_gate.model.execution import Status, Trial
from eval_gate.model.result import CaseDetails
from eval_gate.results.run_figures import RunFigures, measure_run
from eval_gate.results.run_history import trim_to_run
from eval_gate.struct import replace
from tests.support.results import make_baseline_run, make_result, make_suite_result
from tests.support.reuse import build_history


def test_measure_run__of_cases__is_of_one_execution_of_each() -> None:
    trials = tuple(Trial(status=status, score=0.0, duration_ms=300.0) for status in (Status.FAILED, Status.PASSED))
    rerun = replace(make_result("b", duration_ms=600.0, cost_usd=0.06, reruns=1), trials=trials)
    cases = [
        make_result("a", duration_ms=100.0, cost_usd=0.01, judge_cost_usd=0.001),
        rerun,
        make_result("c", "error", cost_usd=0.5),
        make_result("d", duration_ms=9_000.0, cost_usd=9.0, details=CaseDetails(replayed=True)),
    ]
    run = make_baseline_run(make_suite_result(cases), verdict=Verdict(outcome=Outcome.FAILED, exit_code=1, reasons=()))
    figures = measure_run(run)
    assert (figures.outcome, figures.latency_ms, round(figures.cost_usd or 0, 6)) == (Outcome.FAILED, 200.0, 0.541)


def test_measure_run__nothing_known__has_no_figures() -> None:
    run = make_baseline_run(make_suite_result([make_result("a", duration_ms=0.0)]))
    assert measure_run(run) == RunFigures()


def test_trim_to_run__other_figures__are_no_reason_to_distrust_a_history() -> None:
    run = make_baseline_run({"a": "passed"})
    history = build_history([run])
    other = replace(history, runs=(replace(history.runs[0], figures=RunFigures(cost_usd=7.0)),))
    assert trim_to_run(other, run) == other
