"""A slow provider: many answers of one run come too late, and nothing is decided by that."""

from __future__ import annotations

import pytest

from eval_gate.config.policy import FailOn, Policy
from eval_gate.errors import ExitCode
from eval_gate.gate.evidence.timeouts import TimeoutCounts
from eval_gate.gate.verdict_decision import GateInputs, decide_verdict
from eval_gate.model.comparison import CaseClass
from eval_gate.model.evidence import GroundKind
from eval_gate.model.result import RunResult, Shard
from tests.support.histories import Asked, Branch, Engine

RULES = Policy(frozenset({FailOn.REGRESSIONS}))
LATE = ["TPTTPTT"] * 8
"""Cases on a slow day: now and then they answer."""


def judged(mine: str, others: list[str], passing: int = 10) -> RunResult:
    """A case with this tape beside others, and so many that pass, after six runs in which all of them passed."""

    def cases(*tapes: str) -> tuple[Asked, ...]:
        return tuple(Asked("a.json", f"case-{at}", tape) for at, tape in enumerate(tapes))

    steady, branch = ["P"] * (len(others) + passing + 1), Branch()
    for number in range(6):
        branch = branch.pushed(cases(*steady), RULES, number)
    question = GateInputs(branch.baseline, RULES)
    return decide_verdict(Engine(cases(mine, *others, *steady[:passing])).run(question), question)


def of_mine(run: RunResult) -> tuple[CaseClass, GroundKind | None]:
    assert run.comparison is not None
    change = next(one for one in run.comparison.changes if one.case_id == "case-0")
    return change.change, change.grounds.kind if change.grounds else None


def exit_code(run: RunResult) -> ExitCode:
    assert run.verdict is not None
    return run.verdict.exit_code


@pytest.mark.slow
@pytest.mark.contract("verdict.crash")
@pytest.mark.parametrize(
    ("hanging", "passing"), [(1, 7), (4, 4), (5, 10), (5, 11), (5, 13), (5, 15), (6, 12), (7, 14), (13, 27)]
)
def test_decide_verdict__hangs_whenever_it_is_asked_and_most_others_answer__is_a_regression(hanging, passing) -> None:
    run = judged("T", ["T"] * (hanging - 1), passing)
    assert (of_mine(run)[0], exit_code(run)) == (CaseClass.REGRESSION, ExitCode.FAILED)


@pytest.mark.slow
@pytest.mark.contract("verdict.crash")
def test_decide_verdict__some_of_the_late_cases_answer_when_they_are_run_again__is_no_proof_that_any_hangs() -> None:
    run = judged("T", ["T", "TP", "TP", "TP"], 11)
    assert (of_mine(run), exit_code(run)) == ((CaseClass.ERRORED, GroundKind.TIMEOUTS), ExitCode.INCOMPLETE)


@pytest.mark.slow
@pytest.mark.contract("verdict.crash")
@pytest.mark.parametrize("tape", ["FT", "FTPT", "FPT", "TFT", "TTFF"])
def test_decide_verdict__flaked_once_and_was_late_when_asked_again__is_no_regression_and_no_pass(tape) -> None:
    run = judged(tape, LATE)
    assert of_mine(run) == (CaseClass.ERRORED, GroundKind.TIMEOUTS)
    assert exit_code(run) is ExitCode.INCOMPLETE


@pytest.mark.slow
@pytest.mark.contract("verdict.crash")
@pytest.mark.parametrize("tape", ["F", "TF", "FTF", "C", "TC"])
def test_decide_verdict__answers_wrong_whenever_it_answers_in_time__is_a_regression(tape) -> None:
    run = judged(tape, ["T" if tape.startswith("T") else "TP"] * 8)
    assert of_mine(run)[0] is CaseClass.REGRESSION
    assert exit_code(run) is ExitCode.FAILED


@pytest.mark.slow
@pytest.mark.contract("verdict.crash")
@pytest.mark.parametrize("tape", ["TP", "FTPPPPPP", "TFPPPPPP"])
def test_decide_verdict__passed_again_when_it_answered__is_no_unknown(tape) -> None:
    assert of_mine(judged(tape, LATE))[0] is CaseClass.INCONCLUSIVE


@pytest.mark.slow
@pytest.mark.contract("verdict.crash")
@pytest.mark.parametrize("others", [["T"] * 4, ["T"] * 7, [*["T"] * 4, "FPPP"]])
def test_decide_verdict__a_fifth_and_more_hang_in_every_rerun_while_most_answer__they_are_regressions(others) -> None:
    run = judged("T", others, passing=20)
    assert of_mine(run)[0] is CaseClass.REGRESSION
    assert exit_code(run) is ExitCode.FAILED


@pytest.mark.slow
@pytest.mark.contract("verdict.crash")
def test_decide_verdict__more_than_a_third_hangs__is_not_decided_by_their_reruns() -> None:
    run = judged("T", ["T"] * 5)
    assert of_mine(run) == (CaseClass.ERRORED, GroundKind.TIMEOUTS)
    assert exit_code(run) is ExitCode.INCOMPLETE


@pytest.mark.parametrize(
    ("late", "reruns", "late_reruns", "hang"),
    [
        (5, 5, 5, True),
        (5, 4, 4, False),
        (5, 10, 5, False),
        (5, 10, 9, True),
        (8, 20, 8, False),
        (6, 6, 5, False),
        (6, 6, 6, True),
        (7, 20, 20, False),
        (0, 0, 0, False),
    ],
)
def test_lateness__reruns_beside_first_executions__tell_cases_that_hang_from_a_slow_day(
    late, reruns, late_reruns, hang
) -> None:
    assert TimeoutCounts(20, late, late, 0, reruns, late_reruns).has_hanging_cases is hang


@pytest.mark.contract("verdict.crash")
def test_decide_verdict__few_are_late__being_late_counts_as_a_crash() -> None:
    run = judged("FT", ["P"] * 8)
    assert of_mine(run)[0] is CaseClass.REGRESSION


@pytest.mark.contract("verdict.crash")
@pytest.mark.parametrize("shard", [None, Shard(index=1, count=4)])
def test_reruns__few_are_late_here__a_shard_asks_on_until_its_answers_decide(shard) -> None:
    """The whole may be slow, and judges by answers then."""
    cases = tuple(Asked("a.json", f"case-{at}", "P") for at in range(12))
    branch = Branch()
    for number in range(6):
        branch = branch.pushed(cases, RULES, number)
    mine = Asked("a.json", "case-0", "FTF")
    part = Engine((mine, *cases[1:]), fields={"shard": shard} if shard else {})
    made = part.run(GateInputs(branch.baseline, RULES)).index_cases()[mine.key]
    answered = [trial for trial in made.trials if not trial.timed_out]
    assert len(made.trials) == len(answered) + 1
    assert len(answered) == (2 if shard else 1)
