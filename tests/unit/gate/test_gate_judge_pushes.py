"""Several pushes of one change: one verdict wherever a push is judged, by what its record says of those before it."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eval_gate.action.relay import unjudged
from eval_gate.config.policy import FailOn, Policy
from eval_gate.gate.evidence.past import ledger_after
from eval_gate.gate.judge import GateQuestion, judge
from eval_gate.model.comparison import CaseClass
from eval_gate.model.grounds import Counts
from eval_gate.model.result import GitFacts, RunResult, Shard
from eval_gate.results.merge import merge
from eval_gate.results.pushes import Pushes
from eval_gate.results.read import read_run
from eval_gate.results.write import write_ledger, write_result
from eval_gate.struct import replace
from tests.support.histories import Asked, Branch, Engine
from tests.support.sizes import size

POLICY = Policy(frozenset({FailOn.REGRESSIONS}))
CASES = 20
HALF, THEN = "FFPPPPP", "PFFFFFF"


def asked(tape: str) -> list[Asked]:
    """A suite of which only one case does not always pass."""
    return [Asked("a.json", f"c{number}", tape if number == 0 else "P", line=number + 1) for number in range(CASES)]


@pytest.fixture(scope="module")
def branch() -> Branch:
    branch = Branch()
    for number in range(3):
        branch = branch.pushed(asked("P"), POLICY, number)
    return branch


def push(branch: Branch, tape: str, pushes: Pushes | None, number: int, **fields) -> RunResult:
    question = GateQuestion(branch.baseline, POLICY, pushes=pushes)
    made = Engine(asked(tape), fields={"run_id": f"push-{number}", **fields}).run(question)
    return judge(made, question)


def pushed(branch: Branch, *tapes: str, remember: bool = True) -> tuple[RunResult, Pushes]:
    """The last of these pushes, and what it was told of those before it."""
    pushes = Pushes()
    for number, tape in enumerate(tapes[:-1]):
        pushes = pushes.with_run(push(branch, tape, pushes if remember else None, number))
    return push(branch, tapes[-1], pushes if remember else None, len(tapes)), pushes


def said(run: RunResult) -> object:
    assert run.comparison is not None
    assert run.verdict is not None
    return run.verdict.exit_code, {one.key: (one.change, one.grounds, one.earlier) for one in run.comparison.changes}


def the_case(run: RunResult):
    assert run.comparison is not None
    return next(one for one in run.comparison.changes if one.case_id == "c0")


def test_judge__doubtful_push_and_one_that_passes_at_first__is_a_regression_by_both(branch) -> None:
    found, _ = pushed(branch, HALF, THEN)
    assert the_case(found).change is CaseClass.REGRESSION
    assert the_case(found).earlier == (Counts(passes=3, failures=2),)
    alone, _ = pushed(branch, HALF, THEN, remember=False)
    assert (the_case(alone).change, the_case(alone).earlier) == (CaseClass.STILL_PASSING, ())


TAPE = st.text("PF", min_size=1, max_size=7)


@pytest.mark.slow
@settings(max_examples=size(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tapes=st.lists(TAPE, min_size=2, max_size=4))
def test_judge__again_without_the_pushes__says_the_same_by_its_own_record(branch, tmp_path, tapes) -> None:
    run, pushes = pushed(branch, *tapes)
    again = GateQuestion(branch.baseline, POLICY)
    write_ledger(tmp_path, run.run_id, ledger_after(run, branch.baseline))
    write_result(tmp_path, run, pushes.with_run(run))
    stored = read_run(run.run_id, tmp_path)
    assert said(judge(stored, again)) == said(run)


@pytest.mark.slow
@settings(max_examples=size(40))
@given(tapes=st.lists(TAPE, min_size=2, max_size=4))
def test_judge__in_parts_that_are_merged__says_what_the_whole_says(branch, tapes) -> None:
    run, pushes = pushed(branch, *tapes)
    question, parts = GateQuestion(branch.baseline, POLICY, pushes=pushes), []
    for index in range(2):
        fields = {"run_id": f"part-{index}", "shard": Shard(index=index + 1, count=2)}
        made = Engine(asked(tapes[-1])[index::2], planned=CASES, fields=fields).run(question)
        parts.append(judge(made, question))
    assert said(judge(merge(parts, "merged"), GateQuestion(branch.baseline, POLICY))) == said(run)


@pytest.mark.slow
@settings(max_examples=size(60))
@given(tapes=st.lists(TAPE, min_size=1, max_size=3), last=TAPE)
def test_judge__with_what_came_before__is_never_milder(branch, tapes, last) -> None:
    run, _ = pushed(branch, *tapes, last)
    alone, _ = pushed(branch, last)
    assert run.verdict is not None
    assert alone.verdict is not None
    assert run.verdict.exit_code >= alone.verdict.exit_code


def test_judge__compared_with_another_baseline__keeps_what_earlier_pushes_saw(branch) -> None:
    run, _ = pushed(branch, HALF, THEN)
    newer = branch.pushed(asked("P"), POLICY, 3)
    assert the_case(judge(run, GateQuestion(newer.baseline, POLICY))).earlier == the_case(run).earlier


def test_judge__relayed_run_of_a_fork__says_nothing_of_earlier_pushes(branch) -> None:
    run, _ = pushed(branch, HALF, THEN)
    relayed = judge(unjudged(run, GitFacts(sha="f" * 40)), GateQuestion(branch.baseline, POLICY))
    assert the_case(relayed).earlier == ()


def test_judge__whoever_asks_knows_of_no_pushes__does_not_believe_the_run(branch) -> None:
    run, _ = pushed(branch, HALF, THEN)
    assert the_case(judge(run, GateQuestion(branch.baseline, POLICY, pushes=Pushes()))).earlier == ()


def test_judge__regression_only_by_earlier_pushes_is_accepted_by_allowing_one__passes(branch) -> None:
    run, pushes = pushed(branch, HALF, THEN)
    assert run.verdict is not None
    allowed = replace(POLICY, allowed_regressions=1)
    verdict = judge(run, GateQuestion(branch.baseline, allowed, pushes=pushes)).verdict
    assert verdict is not None
    assert (run.verdict.exit_code, verdict.exit_code) == (1, 0)
