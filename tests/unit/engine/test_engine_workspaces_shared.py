"""Cases that share a folder: what each runs after, and that a resumed run finishes a suite in one folder."""

from __future__ import annotations

import asyncio

import pytest

from eval_gate.config.settings import RunLimits
from eval_gate.engine.run import Run
from eval_gate.engine.workspaces import digest_preceding_cases
from eval_gate.model.agent import SuiteAgent
from eval_gate.model.case import CaseWorkspace, EvalSuite
from eval_gate.model.conversation import Message, Response
from eval_gate.model.result import RunResult
from eval_gate.struct import replace
from eval_gate.targets.base import TargetError, TargetFault
from tests.support.cases import ScriptedTarget, Watching, make_case, make_plan, make_suite


def agent(*tools: str) -> SuiteAgent:
    return SuiteAgent(name="a", model="gpt-5-mini", instructions="", tools=tools)


WRITER, READER = agent("readFile", "writeFile"), agent("readFile", "listFiles")


def sharing(*ids: str, file: str = "s.json", of: SuiteAgent = WRITER, **fields) -> EvalSuite:
    return make_suite(*(make_case(one, agent=of, **fields) for one in ids), file=file)


def before(suite: EvalSuite) -> dict[str, str]:
    return {key.case_id: digest for key, digest in digest_preceding_cases(suite).items()}


def test_cases_before__another_one_or_another_order__is_another_measure_of_those_after_it() -> None:
    usual = before(sharing("a", "b", "c"))
    assert before(sharing("a", "b", "c", "d")).items() >= usual.items()
    assert len(set(usual.values())) == 3
    swapped, more = before(sharing("b", "a", "c")), before(sharing("a", "new", "b", "c"))
    assert [name for name in usual if swapped[name] == usual[name]] == []
    assert [name for name in usual if more[name] == usual[name]] == ["a"]
    assert before(sharing("a", "b", of=agent("deleteFile"))).items() <= usual.items()  # the agent is what is tested


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({"messages": (Message(role="user", content="something else"),)}, True),
        ({"timeout_ms": 1}, True),
        ({"id": "another"}, False),
        ({"evaluators": ()}, False),
        ({"tags": ("x",)}, False),
    ],
    ids=str,
)
def test_cases_before__change_of_one__matters_where_it_may_leave_other_files(change, differs) -> None:
    usual = sharing("a", "b")
    first, second = usual.cases
    changed = replace(usual, cases=(replace(first, **change), second))
    assert (before(changed)["b"] != before(usual)["b"]) is differs


def test_cases_before__suite_without_an_agent__has_none() -> None:
    assert digest_preceding_cases(make_suite(make_case("a"), make_case("b"))) == {}


class Broken(ScriptedTarget):
    """A target that breaks over these cases, which then are not judged."""

    def __init__(self, *cases: str, trial: int = 0) -> None:
        super().__init__(self._unless)
        self._cases, self._trial = cases, trial

    async def _unless(self, request) -> Response:
        if request.case_id in self._cases and request.trial == self._trial:
            raise TargetError("agent error", fault=TargetFault.REFUSED)
        return Response(text="ok")


def resumed(folder, *runs: tuple[tuple[EvalSuite, ...], ScriptedTarget], trials: int = 1) -> RunResult:
    """One run that was resumed as often; the result of the last process."""
    limits = RunLimits(trials=trials)
    for suites, target in runs:
        result = asyncio.run(Run(make_plan(*suites, target=target, limits=limits), folder, Watching()).execute())
    return result


@pytest.mark.contract("agent_evals.run.resume")
def test_resume__one_case_is_not_finished__all_of_its_suite_are_made_anew_and_no_others(tmp_path) -> None:
    suites = sharing("a", "b"), sharing("r1", "r2", file="r.json", of=READER), make_suite(make_case("c"))
    target = ScriptedTarget()
    result = resumed(tmp_path, (suites, Broken("b", "r2")), (suites, target))
    assert target.asked == ["a", "b", "r2"]
    assert result.summary.passed == 5


@pytest.mark.contract("agentv.today.workspace")
def test_resume__cases_of_one_workspace__are_made_anew_together_and_those_of_their_own_are_not(tmp_path) -> None:
    def suite(file: str, *, shared: bool) -> EvalSuite:
        workspace = CaseWorkspace(folder=str(tmp_path), shared=shared)
        return make_suite(*(make_case(f"{file} {one}", workspace=workspace) for one in "ab"), file=file)

    suites, target = (suite("shared", shared=True), suite("apart", shared=False)), ScriptedTarget()
    resumed(tmp_path, (suites, Broken("shared b", "apart b")), (suites, target))
    assert target.asked == ["shared a", "shared b", "apart b"]


@pytest.mark.contract("agent_evals.run.resume")
def test_resume__suite_is_finished__is_taken_over(tmp_path) -> None:
    target = ScriptedTarget()
    resumed(tmp_path, ((sharing("a", "b"),), Broken()), ((sharing("a", "b"),), target))
    assert target.asked == []


@pytest.mark.contract("agent_evals.run.resume")
def test_resume__trial_that_is_finished__stays_since_each_has_a_folder(tmp_path) -> None:
    target, suites = ScriptedTarget(), (sharing("a", "b"),)
    resumed(tmp_path, (suites, Broken("a", trial=1)), (suites, target), trials=2)
    assert target.asked == ["a", "b"]


@pytest.mark.contract("agent_evals.run.resume")
def test_resume__every_case_is_finished_but_by_two_processes__is_made_anew(tmp_path) -> None:
    """The first left `c` behind, the second `a` and `b`, in another folder."""
    suites, target = (sharing("a", "b", "c"),), ScriptedTarget()
    resumed(tmp_path, (suites, Broken("a", "b")), (suites, Broken("c")), (suites, target))
    assert target.asked == ["a", "b", "c"]


@pytest.mark.contract("agent_evals.run.resume")
@pytest.mark.parametrize(
    "now", [sharing("b", "a"), sharing("b"), sharing("a", "b", timeout_ms=9)], ids=["order", "one less", "time limit"]
)
def test_resume__cases_before_are_others__is_made_anew(tmp_path, now) -> None:
    target = ScriptedTarget()
    resumed(tmp_path, ((sharing("a", "b"),), Broken()), ((now,), target))
    assert target.asked == [case.id for case in now.cases]
