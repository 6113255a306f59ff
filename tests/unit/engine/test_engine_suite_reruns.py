"""Re-runs of cases that work on files of earlier ones: their suite up to them, in a fresh folder."""

from __future__ import annotations

import asyncio

import pytest

from eval_gate.config.settings import RunLimits
from eval_gate.engine.journal import JOURNAL_NAME, read_lines
from eval_gate.engine.run import Run
from eval_gate.engine.run_plan import SUITE_RERUNS
from eval_gate.model.conversation import Response
from eval_gate.model.execution import ErrorKind, Status
from eval_gate.model.result import RerunStopReason, RunResult
from eval_gate.model.usage import Usage
from eval_gate.results.run_writer import make_run_folder
from eval_gate.targets.base import TargetError, TargetFault
from tests.support.cases import EVAL_FILE, ScriptedTarget, Watching, make_case, make_plan, make_suite
from tests.unit.engine.test_engine_rerun_policy import Again, cases
from tests.unit.engine.test_engine_workspaces_shared import sharing

pytestmark = pytest.mark.contract("agent_evals.run.again")

ABCD = sharing("a", "b", "c", "d", file=EVAL_FILE)


class Folders(ScriptedTarget):
    """Remembers in which folder (suite and trial) each case was asked; costs something."""

    def __init__(self, *broken: tuple[str, int], fault: TargetFault = TargetFault.UNREACHABLE) -> None:
        super().__init__(self._told)
        self.folders: list[str] = []
        self._broken, self._fault = broken, fault

    async def _told(self, request) -> Response:
        self.folders.append(f"{request.case_id}{request.trial}")
        if (request.case_id, request.trial) in self._broken:
            raise TargetError("not there", fault=self._fault)
        return Response(text="ok", cost_usd=0.5, usage=Usage(input_tokens=2, output_tokens=1))


def run(folder, confirming, target=None, *suites, observer=None, **fields) -> RunResult:
    plan = make_plan(*(suites or [ABCD]), target=target or Folders(), **fields)
    made = Run(plan.with_rerun_policy(confirming, 6), folder, watching := observer or Watching())
    watching.run = made
    return asyncio.run(made.execute())


def test_rerun__several_suspects_of_one_suite__share_a_run_of_it_up_to_the_last(tmp_path) -> None:
    target = Folders()
    result = run(tmp_path, Again(b=2, c=1), target)
    assert target.folders == ["a0", "b0", "c0", "d0", "a1", "b1", "c1", "a2", "b2"]
    assert {name: (one.reruns, one.preparatory_executions) for name, one in cases(result).items()} == {
        "a": (0, 2),
        "b": (2, 0),
        "c": (1, 0),
        "d": (0, 0),
    }
    assert {name: len(one.trials) for name, one in cases(result).items()} == {"a": 1, "b": 3, "c": 2, "d": 1}


def test_rerun__suspect_that_is_decided__is_only_a_case_before_the_next_one(tmp_path) -> None:
    result = run(tmp_path, Again(b=1, c=2), target := Folders())
    assert target.folders[4:] == ["a1", "b1", "c1", "a2", "b2", "c2"]
    assert (cases(result)["b"].reruns, cases(result)["b"].preparatory_executions) == (1, 1)


def test_rerun__first_case_of_a_suite__needs_no_other(tmp_path) -> None:
    run(tmp_path, Again(a=2), target := Folders())
    assert target.folders[4:] == ["a1", "a2"]


def test_rerun__after_trials__has_a_folder_that_none_of_them_had(tmp_path) -> None:
    run(tmp_path, Again(b=1), target := Folders(), limits=RunLimits(trials=2))
    assert target.folders[8:] == ["a2", "b2"]


def test_rerun__other_suites__are_run_again_by_themselves(tmp_path) -> None:
    more, alone = sharing("x", "y", file="other.json"), make_suite(make_case("alone"), file="alone.json")
    run(tmp_path, Again(b=1), target := Folders(), ABCD, more, alone)
    assert target.folders[7:] == ["a1", "b1"]


def test_rerun__executions_before_it__are_in_cost_and_nothing_else(tmp_path) -> None:
    result = run(tmp_path, Again(c=2))
    first = cases(result)["a"]
    assert (first.cost_usd, first.usage, first.attempts) == (1.5, Usage(input_tokens=6, output_tokens=3), 3)
    assert (first.status, first.flaky, len(first.trials)) == (Status.PASSED, False, 1)
    assert result.summary.estimated_cost_usd == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("budget", "reruns", "end"), [("6", 2, RerunStopReason.DECIDED), ("5", 1, RerunStopReason.BUDGET_USED)]
)
def test_rerun__budget__counts_every_execution_that_it_takes(tmp_path, budget, reruns, end) -> None:
    result = run(tmp_path, Again(c=2), limits=RunLimits(rerun_budget=budget))
    assert (cases(result)["c"].reruns, cases(result)["c"].rerun_stop_reason) == (reruns, end)


def test_rerun_budget__long_suite_of_cases_that_need_each_other__reaches_for_a_few_runs_of_it() -> None:
    long = sharing(*map(str, range(90)), file="long.json")
    alone = make_suite(*(make_case(str(number)) for number in range(90)))
    assert make_plan(long).compute_rerun_budget().executions == SUITE_RERUNS * 90
    assert make_plan(alone).compute_rerun_budget().executions == 100


def test_rerun__case_before_it_fails__counts_and_says_so(tmp_path) -> None:
    result = run(tmp_path, Again(c=1), Folders(("a", 1), fault=TargetFault.REFUSED))
    suspect = cases(result)["c"]
    assert [one.status for one in suspect.trials] == [Status.PASSED, Status.PASSED]
    assert suspect.warnings == ("re-run after cases that did not pass: a",)
    assert cases(result)["a"].status is Status.PASSED


def test_rerun__agent_is_not_reached_for_a_case_before_it__is_not_made(tmp_path) -> None:
    result = run(tmp_path, Again(b=1, d=2), target := Folders(("a", 1), ("c", 2)))
    assert target.folders[4:] == ["a1", "a2", "b2", "c2"]
    (_, first), (_, second, third) = cases(result)["b"].trials, cases(result)["d"].trials
    assert [(one.status, one.error_kind) for one in (first, second, third)] == [
        (Status.ERROR, ErrorKind.AGENT_UNREACHABLE)
    ] * 3
    assert second.error == "not re-run: the agent was unreachable in a, which runs before it"
    assert cases(result)["d"].status is Status.PASSED


class Killed(Watching):
    """Ends the process after so many executions."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self._after = after

    def on_trial(self, record) -> None:
        super().on_trial(record)
        if len(self.records) == self._after:
            self.run.stop("killed")


def test_resume__killed_in_a_run_before_a_case__keeps_what_is_finished_and_begins_in_a_fresh_folder(tmp_path) -> None:
    run(tmp_path, Again(b=2, d=2), observer=Killed(after=10))  # a0 to d0, a1 to d1, a2, b2
    target = Folders()
    result = run(tmp_path, Again(b=2, d=2), target, limits=RunLimits(rerun_budget="10"))
    assert target.folders == ["a3", "b3", "c3", "d3"]
    assert {name: (one.reruns, one.preparatory_executions) for name, one in cases(result).items()} == {
        "a": (0, 3),
        "b": (2, 1),
        "c": (0, 2),
        "d": (2, 0),
    }
    records = [record for record, _ in read_lines(make_run_folder(tmp_path, result.run_id) / JOURNAL_NAME)]
    assert len(records) == 14
    assert result.summary.estimated_cost_usd == pytest.approx(7.0)


def test_resume__what_was_run_again_before__counts_in_the_budget(tmp_path) -> None:
    run(tmp_path, Again(b=2, d=2), observer=Killed(after=10))
    target = Folders()
    result = run(tmp_path, Again(b=2, d=2), target, limits=RunLimits(rerun_budget="9"))
    assert (target.folders, cases(result)["d"].rerun_stop_reason) == ([], RerunStopReason.BUDGET_USED)


def test_resume__first_executions_are_made_anew__so_are_their_re_runs(tmp_path) -> None:
    run(tmp_path, Again(b=1), Folders(("d", 0), fault=TargetFault.REFUSED))
    result = run(tmp_path, Again(b=1), target := Folders())
    assert target.folders == ["a0", "b0", "c0", "d0", "a1", "b1"]
    assert (cases(result)["b"].reruns, cases(result)["a"].preparatory_executions) == (1, 1)
