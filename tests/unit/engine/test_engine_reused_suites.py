"""A run that has the results of some suites already: it executes the others, and its result has all of them."""

import asyncio
from pathlib import Path

import pytest

from eval_gate.engine.journal import JOURNAL_NAME
from eval_gate.engine.result_builder import build_initial_result
from eval_gate.engine.run import Run
from eval_gate.engine.run_plan import RunPlan
from eval_gate.model.agent import SuiteAgent
from eval_gate.model.conversation import Response, ToolCall
from eval_gate.model.execution import CaseDetails, Status, Trial
from eval_gate.model.result import RunResult, StaleFact, StaleKind, ToolFacts
from eval_gate.model.reuse import ReusedResult, ReuseSource, ReuseSummary, RunReason, SuiteDecision
from eval_gate.model.specs.evaluator import Rubric, RubricDimension, ToolsCalled
from eval_gate.results.run_parsing import parse_run
from eval_gate.results.run_reader import read_resumed_run
from eval_gate.results.run_writer import write_result
from eval_gate.staleness.staleness_checks import Staleness
from eval_gate.targets.base import TargetError
from tests.support.cases import ScriptedTarget, Watching, make_case, make_plan, make_suite
from tests.support.results import make_result, make_suite_result

FILES = ("evals/a.yaml", "evals/b.yaml", "evals/c.yaml")
ORIGIN = ReusedResult(source=ReuseSource.BASELINE, run_id="earlier", timestamp="2026-11-19T10:00:00Z", sha="abc1234")
RUBRIC = Rubric(question="q", dimensions=(RubricDimension(name="kindness", max_score=4, criteria="is kind"),))


def reuse(plan: RunPlan, *files: str, status: str = "passed", **fields) -> RunPlan:
    """The plan with a reused result for these files, of one case with this outcome."""
    case = make_result("old", status, **({"cost_usd": 0.5} | fields))
    results = {name: make_suite_result([case], eval_file=name, reused=ORIGIN) for name in files}
    decisions = tuple(
        SuiteDecision(suite=suite.file, reused=ORIGIN)
        if suite.file in files
        else SuiteDecision(suite=suite.file, reason=RunReason.FILES_CHANGED)
        for suite in plan.suites
    )
    return plan.with_reused(results, ReuseSummary(suites=decisions, saved_executions=len(files)))


def plan_three(target: ScriptedTarget, **fields) -> RunPlan:
    """A plan of three suites with one case each."""
    return make_plan(*[make_suite(make_case("own"), file=name) for name in FILES], target=target, **fields)


def execute(plan: RunPlan, folder: Path, observer: Watching | None = None) -> RunResult:
    return asyncio.run(Run(plan, folder, observer or Watching()).execute())


def refuse() -> None:
    raise TargetError("nobody is asked here")


def test_run__every_suite_is_reused__asks_nobody_and_is_complete(tmp_path):
    target, watching = ScriptedTarget(healthy=refuse), Watching()
    plan = reuse(plan_three(target), *FILES)

    result = execute(plan, tmp_path, watching)

    assert (target.asked, watching.total, watching.records) == ([], 0, [])
    assert (result.complete, result.stop_reason, result.reuse) == (True, None, plan.reuse)
    assert [(one.eval_file, one.run_id, one.timestamp) for one in result.suites] == [
        (name, plan.run_id, plan.timestamp) for name in FILES
    ]
    assert {one.reused for one in result.suites} == {ORIGIN}
    summary = result.summary
    assert (summary.total_cases, summary.passed, summary.pass_rate) == (3, 3, 1.0)
    assert (summary.total_duration_ms, summary.estimated_cost_usd, summary.judge_cost_usd) == (0, None, None)


def test_run__all_reused__is_stored_like_any_run_and_read_again(tmp_path):
    result = execute(reuse(plan_three(ScriptedTarget()), *FILES), tmp_path)

    file = write_result(tmp_path, result).file

    assert {one.name for one in file.parent.iterdir()} == {"run.json", "a.json", "b.json", "c.json", JOURNAL_NAME}
    assert parse_run(file.read_bytes(), str(file)) == result


def test_run__one_of_three_is_reused__stands_at_its_place_and_costs_nothing(tmp_path):
    target = ScriptedTarget()

    result = execute(reuse(plan_three(target), FILES[1]), tmp_path)

    assert target.asked == ["own", "own"]
    assert [(one.eval_file, one.reused) for one in result.suites] == [
        (FILES[0], None),
        (FILES[1], ORIGIN),
        (FILES[2], None),
    ]
    executed = [case for suite in result.suites if suite.reused is None for case in suite.cases]
    assert (result.summary.total_cases, result.summary.passed) == (3, 3)
    assert result.summary.total_duration_ms == round(sum(case.duration_ms for case in executed), 3)
    assert result.summary.estimated_cost_usd is None
    (case,) = result.suites[1].cases
    assert (case.cost_usd, case.duration_ms) == (0.5, 120.0)


def test_run__single_suite_is_reused__sums_leave_it_out(tmp_path):
    result = execute(reuse(make_plan(make_suite(file=FILES[0])), FILES[0]), tmp_path)

    assert (result.summary.passed, result.summary.estimated_cost_usd, result.summary.total_duration_ms) == (1, None, 0)
    assert result.suites[0].summary.estimated_cost_usd == 0.5


def test_run__reused_suite__has_the_staleness_of_this_run_and_no_comparison_of_the_earlier_one(tmp_path):
    fact = StaleFact(kind=StaleKind.VERSION, recorded="1", current="2")
    stale = Staleness(ToolFacts(tool_version="2.0.0"), ("stale",), (fact,), ("not checked",))
    plan = reuse(
        plan_three(ScriptedTarget(), staleness={FILES[0]: stale}),
        FILES[0],
        base_agent_trials=(Trial(status=Status.PASSED, score=1.0, duration_ms=1.0),),
    )

    suite = execute(plan, tmp_path).suites[0]

    assert (suite.stale, suite.stale_facts, suite.staleness_warnings) == (True, (fact,), ("stale",))
    assert (suite.metadata, suite.notices) == (stale.facts, stale.notices)
    assert (suite.baseline_run_id, suite.regressions, suite.new_passes) == (None, (), ())
    assert suite.cases[0].base_agent_trials == ()


def test_plan__reused_suites__take_no_part_in_the_budget_of_re_runs():
    plan = plan_three(ScriptedTarget())

    assert reuse(plan, *FILES[1:]).compute_rerun_budget() == make_plan(plan.suites[0]).compute_rerun_budget()
    assert [case.suite for case in reuse(plan, *FILES[1:]).list_runnable_cases()] == [FILES[0]]


def test_plan__suite_with_its_own_agent_is_reused__the_result_names_the_agent():
    agent = SuiteAgent(name="helper", model="m", instructions="help")
    plan = make_plan(*[make_suite(make_case("own", agent=agent), file=name) for name in FILES])

    whole, less = build_initial_result(plan), build_initial_result(reuse(plan, FILES[0]))

    assert sorted(less.suite_agents, key=lambda one: one.name) == list(whole.suite_agents)


def test_initial_result__reused_suites__are_in_it_and_counted(tmp_path):
    initial = build_initial_result(reuse(plan_three(ScriptedTarget()), FILES[0]))

    assert [suite.eval_file for suite in initial.suites] == [FILES[0]]
    assert (initial.complete, initial.summary.total_cases) == (False, 3)
    assert (initial.summary.passed, initial.summary.not_run) == (1, 2)


@pytest.mark.parametrize(("calls", "status"), [(("search",), Status.FAILED), ((), Status.ERROR)])
def test_run__only_a_reused_response_lists_tool_calls__the_target_is_known_to_list_them(calls, status, tmp_path):
    async def answer(request):
        return Response(text="ok", tool_calls_known=None, tool_calls_location="a list at `calls`")

    suites = [make_suite(make_case("own", expect=[ToolsCalled(names=("x",))]), file=name) for name in FILES]
    plan = reuse(make_plan(*suites, target=ScriptedTarget(answer)), *FILES[1:], details=CaseDetails(tools_called=calls))

    assert execute(plan, tmp_path).suites[0].cases[0].status is status


def test_run__interrupted_with_reused_suites__is_resumed_by_executing_what_is_missing(tmp_path):
    async def stop_at_c(request):
        if request.case_id == "last":
            running.stop("interrupted (SIGINT)")
        return Response(text="ok", tool_calls=(ToolCall(name="search"),))

    suites = [make_suite(make_case(name), file=file) for name, file in zip(("own", "b", "last"), FILES, strict=True)]
    plan = make_plan(*suites, target=ScriptedTarget(stop_at_c))
    running = Run(reuse(plan, FILES[1]), tmp_path, Watching())
    asyncio.run(running.execute())
    stored = read_resumed_run(tmp_path, plan.run_id)
    assert [suite.eval_file for suite in stored.suites] == [FILES[1]]

    target = ScriptedTarget()
    resumed = execute(make_plan(*suites, target=target), tmp_path)

    assert "b" in target.asked
    assert "own" not in target.asked
    assert (resumed.complete, [suite.reused for suite in resumed.suites]) == (True, [None] * 3)
