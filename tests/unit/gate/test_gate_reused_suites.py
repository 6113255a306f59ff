"""The verdict of a run that reused results: what it executed is evidence, and the rest stands as it was."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest

from eval_gate.config.policy import Policy
from eval_gate.gate.base_agent_cases import find_clearable_cases
from eval_gate.gate.case_matching import GateCases
from eval_gate.gate.missing_tool_calls import mark_unknown_calls
from eval_gate.gate.reruns import Reruns
from eval_gate.gate.verdict_decision import GateInputs, decide_verdict
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass, Outcome, ReasonCode, RuleCode
from eval_gate.model.execution import NO_DETAILS, NO_TRACE, CaseDetails, EvaluatorResult
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.model.reuse import ReuseSource
from eval_gate.reports.wording.power import describe_first_runs, describe_power
from eval_gate.results.baseline import Baseline
from eval_gate.struct import replace
from tests.support.histories import Asked, Branch, Engine
from tests.support.results import FILE, make_baseline_run, make_result, make_run, make_suite_result
from tests.support.reuse import CARE, PAY, reuse_suites
from tests.support.verdicts import REGRESSIONS, judge_against, make_waiver, make_waivers, rules_of

EVERYTHING = frozenset({CARE, PAY})
POLICY = replace(REGRESSIONS, reruns=6)


def cases_of(care: str = "P" * 8, pay: str = "P" * 8, **fields) -> list[Asked]:
    """Cases of both suites: a letter each, which all its executions repeat, or a digit for a tape of its own."""
    tapes = {"1": "FPPPPPP", "2": "FPFPPPP"}
    return [
        Asked(file, f"{file[6]}{number}", tapes.get(letter, letter), **fields)
        for file, letters in ((CARE, care), (PAY, pay))
        for number, letter in enumerate(letters)
    ]


def main_of(*steps: tuple[Sequence[Asked], Collection[str]]) -> Branch:
    """The default branch after these runs: their cases, and which suites they reused from the run before."""
    branch = Branch()
    for number, (cases, reused) in enumerate(steps):
        branch = branch.pushed(cases, POLICY, number, reused=frozenset(reused))
    return branch


def steady(runs: int = 6, cases: Sequence[Asked] | None = None) -> Branch:
    return main_of(*[(cases or cases_of(), ())] * runs)


def judged(branch: Branch, cases: Sequence[Asked], reused: Collection[str] = (), policy: Policy = POLICY) -> RunResult:
    question = GateInputs(branch.baseline, policy)
    return decide_verdict(Engine(cases, reused=frozenset(reused)).run(question), question)


def classes(run: RunResult) -> dict[str, str]:
    return {one.case_id: one.change.value for one in run.comparison.changes}


def outcome(run: RunResult) -> tuple[Outcome, int, set[str]]:
    return run.verdict.outcome, run.verdict.exit_code, {str(one.code) for one in run.verdict.reasons}


@pytest.mark.parametrize("reruns", [0, 6])
@pytest.mark.parametrize("runs", [1, 6])
def test_verdict__everything_reused__passes_and_compares_every_case(runs, reruns) -> None:
    branch = steady(runs)
    run = replace(judged(branch, cases_of(), EVERYTHING), reruns=reruns, comparison=None)
    run = judge_against(run, branch.baseline, replace(POLICY, min_coverage=1.0, min_pass_rate=1.0))
    assert outcome(run) == (Outcome.PASSED, 0, {ReasonCode.PASSED.value})
    assert set(classes(run).values()) == {"still_passing"}


def test_verdict__reused_failures__are_classified_as_in_the_baseline_and_never_news() -> None:
    known = cases_of("PPPPPPPP", "PPPPPPFP")
    branch = main_of(*[(known, ())] * 5, (cases_of("PPPP1PPP", "PPPPPPFP"), ()))
    run = judged(branch, known, EVERYTHING)
    assert {case: kind for case, kind in classes(run).items() if kind != "still_passing"} == {
        "c4": "flaky",
        "p6": "still_failing",
    }
    assert outcome(run)[:2] == (Outcome.PASSED, 0)


def test_verdict__reused_case_that_came_and_went_on_main__is_no_regression() -> None:
    # the baseline failed it, every run before passed it: an execution with this result would be suspected
    branch = main_of(*[(cases_of(), ())] * 5, (cases_of("FPPPPPPP"), ()))
    run = judged(Branch(branch.newest, steady(5).ledger), cases_of(), EVERYTHING)
    assert classes(run)["c0"] == "still_failing"
    assert outcome(run)[:2] == (Outcome.PASSED, 0)


def test_verdict__executed_suite_drops__counts_only_its_cases() -> None:
    branch = steady(6)
    run = judged(branch, cases_of("1111PPPP"), {PAY})
    assert (run.comparison.suite_finding.cases, run.comparison.suite_finding.failures) == (8, 4)
    assert run.comparison.error_finding.executions == 8


def test_verdict__reused_suite__does_not_change_that_of_the_other_cases() -> None:
    cases = cases_of("FPPP1PPP")
    whole, half = (judged(steady(6), cases, reused) for reused in ((), {PAY}))
    for one in (whole, half):
        assert classes(one)["c0"] == "regression"
        assert classes(one)["c4"] == "inconclusive"
    assert whole.comparison.evidence == half.comparison.evidence
    assert outcome(whole) == outcome(half)


def test_verdict__agent_errors_in_every_executed_case__are_not_hidden_by_reused_ones() -> None:
    run = judged(steady(6), cases_of("U" * 8), {PAY})
    assert outcome(run)[1] == 3
    assert ReasonCode.NO_SCORED_CASES.value in outcome(run)[2]
    broken = judged(steady(6), cases_of("C" * 8), {PAY})
    assert outcome(broken)[:2] == (Outcome.FAILED, 1)
    late = judged(steady(6), cases_of("T" * 8), {PAY})  # nothing responded in this run
    assert outcome(late)[:2] == outcome(judged(steady(6), cases_of("T" * 8)))[:2] == (Outcome.INCONCLUSIVE, 3)


def test_verdict__pull_request_executes_what_main_reused__is_held_against_its_executions() -> None:
    branch = main_of(*[(cases_of(), ())] * 4, (cases_of(), {CARE}), (cases_of(), EVERYTHING), (cases_of(), {CARE}))
    run = judged(branch, cases_of("FPPPPPPP"), {PAY})
    change = next(one for one in run.comparison.changes if one.case_id == "c0")
    assert (change.change, change.compared_with) == (CaseClass.REGRESSION, None)
    assert change.case_history.counts.passes == 4


def test_verdict__stored_run__is_decided_again_without_a_history() -> None:
    branch = steady(6)
    run = judged(branch, cases_of("FPPP1PPP"), {PAY})
    alone = Baseline(branch.baseline.result, branch.baseline.source)
    again = judge_against(run, alone, POLICY)
    assert (classes(again), outcome(again)) == (classes(run), outcome(run))


def test_verdict__usage__is_compared_over_executed_cases_only() -> None:
    branch = steady(6, cases_of(pay="P" * 12))
    run = judged(branch, cases_of(pay="P" * 12), {PAY})
    slower = {key: replace(case, duration_ms=case.duration_ms * 3 + 300) for key, case in run.iter_cases()}
    care = {key: case for key, case in slower.items() if key.suite == CARE}
    then = branch.baseline.result
    quick = {key: replace(case, duration_ms=100.0) for key, case in then.iter_cases()}
    baseline = replace(branch.baseline, result=then.replace_cases(quick))
    run = judge_against(run.replace_cases(care), baseline, replace(POLICY, max_latency_increase=50))
    assert outcome(run)[2] == {RuleCode.LATENCY.value}


def test_verdict__metrics_and_behaviour__are_those_of_executed_cases() -> None:
    cases = cases_of(tags=("refund",))
    run = judged(steady(6, cases), cases, {PAY})
    assert {row.cases for row in run.comparison.metric_changes.rows} == {8}


def test_verdict__graded_reused_cases__have_no_change_of_score() -> None:
    policy = replace(POLICY, pass_score=0.8, max_score_drop=0.1)
    branch = steady(6, cases_of(graded=True))
    run = judged(branch, cases_of("F" * 8, graded=True), {PAY}, policy)
    compared = {one.suite for one in run.comparison.changes if one.score_change is not None}
    assert compared == {CARE}


@pytest.mark.parametrize("source", ReuseSource)
def test_reruns__reused_suite__is_never_re_run(source) -> None:
    question = GateInputs(steady(6).baseline, POLICY)
    first = Engine(cases_of("FPPPPPPP"), reruns=0).run(question)
    assert {key.case_id for key in Reruns(question, 6).find_rerun_candidates(first)} == {"c0"}
    reused = reuse_suites(first, first, {CARE}, source)
    assert not Reruns(question, 6).find_rerun_candidates(reused)


def test_verdict__suite_of_an_own_run__is_an_ordinary_execution() -> None:
    branch = steady(6)
    first = replace(judged(branch, cases_of()), comparison=None)
    run = judge_against(reuse_suites(first, first, {CARE}, ReuseSource.OWN_RUN), branch.baseline, POLICY)
    assert run.comparison.suite_finding.cases == 16


def test_verdict__waived_failure_in_a_reused_suite__counts_when_the_waiver_is_taken_away() -> None:
    cases, waivers = cases_of("FPPPPPPP"), make_waivers(make_waiver("c0"))
    branch = steady(6)
    question = GateInputs(branch.baseline, POLICY, waivers=waivers)
    merged = decide_verdict(Engine(cases, fields={"run_id": "main-9"}).run(question), question)
    assert merged.permitted_regressions
    after = Branch(merged, branch.ledger.with_run(merged))
    reused = Engine(cases, reused=EVERYTHING).run(GateInputs(after.baseline, POLICY))
    assert outcome(judge_against(reused, after.baseline, POLICY, waivers=waivers))[1] == 0
    assert outcome(judge_against(reused, after.baseline, POLICY))[1] == 1


@pytest.mark.parametrize(
    ("before", "newest", "rule"), [("F", "F", {"must_pass": ("c0",)}), ("P", "1", {"fail_on": rules_of("flaky")})]
)
def test_verdict__rule_about_a_case_of_a_reused_suite__counts_it_as_the_baseline_did(before, newest, rule) -> None:
    branch = main_of(*[(cases_of(f"{before}PPPPPPP"), ())] * 5, (cases_of(f"{newest}PPPPPPP"), ()))
    assert outcome(judged(branch, cases_of(), EVERYTHING))[1] == 0
    assert outcome(judged(branch, cases_of(), EVERYTHING, replace(POLICY, **rule)))[1] == 1


def test_power__reused_suites__is_about_the_executed_cases() -> None:
    branch = steady(10)
    assert describe_power(judged(branch, cases_of(), {PAY}), "on main")[0].startswith("with these 8 cases and")
    assert describe_power(judged(branch, cases_of()), "on main")[0].startswith("with these 16 cases and")
    assert describe_power(judged(branch, cases_of(), EVERYTHING), "on main") == ()
    short = describe_first_runs(judged(steady(3), cases_of(), {PAY}), "on main")
    assert short.startswith("With 3 runs of history, the gate finds")


def test_recent_runs__runs_that_only_reused__are_left_out() -> None:
    branch = main_of((cases_of(), ()), (cases_of(), {CARE}), (cases_of(), EVERYTHING))
    run = judged(branch, cases_of("FPPPPPPP"))
    assert [(one.run_id, one.passed) for one in run.comparison.recent_runs] == [("main-1", 8), ("main-0", 16)]
    change = next(one for one in run.comparison.changes if one.key == CaseKey(CARE, "c0"))
    assert change.recent_results == "-P"


def of_suites(make, **files: list[CaseResult]) -> RunResult:
    return make(*(make_suite_result(cases, eval_file=f"evals/{name}.json") for name, cases in files.items()))


def test_verdict__another_model__is_counted_over_executed_cases() -> None:
    models = [CaseDetails(tools_called=(), response="it", response_length=2, model=name) for name in ("m1", "m2")]
    old, new = ([make_result(f"c{at}", details=details) for at in range(2)] for details in models)
    baseline = of_suites(make_baseline_run, care=old, pay=old)
    run = reuse_suites(of_suites(make_run, care=new, pay=new), baseline, {PAY})
    notes = judge_against(run, Baseline(baseline, "main")).comparison
    (note,) = (note for note in notes.notes if "model behind" in note)
    assert note.startswith("the model behind the agent changed since the baseline: from m1 to m2 (2 of 2 cases).")


def test_verdict__calls_of_reused_cases__do_not_show_that_this_run_lists_any() -> None:
    known = EvaluatorResult(name="calls", type="tool_trajectory", score=1.0)
    lacking = replace(known, score=0.0, misses=(NO_TRACE,))
    fields = {"graded": True, "details": NO_DETAILS}
    old = [make_result("c0", evaluator_results=(known,), **fields)]
    baseline = of_suites(make_baseline_run, care=old, pay=old)
    now = [make_result("c0", "failed", evaluator_results=(lacking,), **fields)]
    run = reuse_suites(of_suites(make_run, care=now, pay=now), baseline, {PAY})
    marked = mark_unknown_calls(GateCases.pair(baseline, run), 1.0).index_cases()
    assert {key.suite: case.status.value for key, case in marked.items()} == {CARE: "error", PAY: "passed"}


def test_base_agent__suite_of_a_reused_result__is_not_asked() -> None:
    branch = steady(6)
    run = judged(branch, cases_of("1111PPPP"), {PAY})
    asked = find_clearable_cases(run, GateInputs(branch.baseline, POLICY))
    assert {key.suite for key in asked} == {CARE}


@pytest.mark.parametrize("reused", [frozenset(), frozenset({PAY})])
def test_comparison__totals_of_runs__are_compared_only_where_both_executed_everything(reused) -> None:
    run = judged(main_of((cases_of(), ())), cases_of(), reused)
    assert (run.comparison.baseline.total_duration_ms is None) == bool(reused)


def test_verdict__reused_from_one_baseline_and_compared_with_another__is_a_regression_of_that() -> None:
    first = make_baseline_run(make_suite_result({"a": "failed"}), run_id="first")
    other = make_baseline_run(make_suite_result({"a": "passed"}), run_id="other")
    run = reuse_suites(make_run(make_suite_result({"a": "failed"})), first, {FILE})
    assert classes(judge_against(run, Baseline(first, "first"), REGRESSIONS)) == {"a": "still_failing"}
    decided = judge_against(run, Baseline(other, "other"), REGRESSIONS)
    assert (classes(decided), outcome(decided)[0]) == ({"a": "regression"}, Outcome.FAILED)
