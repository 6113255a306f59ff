"""What holds of every verdict, on the path of a user's run: main's runs with their ledger, re-runs, then the gate."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_gate.config.policy import DEFAULT_RERUNS, FailOn, Policy
from eval_gate.gate.verdict_decision import GateInputs, decide_verdict
from eval_gate.model.comparison import Outcome
from eval_gate.model.result import RunResult
from tests.support.histories import Asked, Branch, Engine
from tests.support.sizes import size

pytestmark = pytest.mark.slow

RULES = Policy(frozenset({FailOn.REGRESSIONS}))


def judged(here: str, passing: int, history: str, reruns: int = DEFAULT_RERUNS) -> RunResult:
    """One case that does this here (re-runs after the first), and so on record, beside so many that always pass."""

    def cases(tape: str) -> tuple[Asked, ...]:
        return (Asked("a.json", "mine", tape), *(Asked("a.json", f"other-{at}", "P") for at in range(passing)))

    branch = Branch()
    for number, letter in enumerate(history):
        branch = branch.pushed(cases(letter), RULES, number, reruns=reruns)
    question = GateInputs(branch.baseline, RULES)
    return decide_verdict(Engine(cases(here), reruns).run(question), question)


def red(run: RunResult) -> bool:
    assert run.verdict is not None
    return run.verdict.outcome is Outcome.FAILED


@pytest.mark.contract("verdict.evidence")
@settings(max_examples=size(25))
@given(st.integers(0, 30), st.integers(1, 60), st.integers(1, 8))
def test_decide_verdict__cases_that_pass_on_both_sides_are_added__a_case_that_always_fails_stays_red(
    few, added, runs
) -> None:
    assert red(judged("F", few, "P" * runs))
    assert red(judged("F", few + added, "P" * runs))


@pytest.mark.contract("verdict.evidence")
@settings(max_examples=size(40))
@given(st.text("FP", min_size=2, max_size=8), st.integers(5, 40), st.integers(1, 12))
def test_decide_verdict__one_more_passing_run_on_record__never_turns_red_green(again, others, runs) -> None:
    if red(judged(f"F{again}P", others, "P" * runs)):
        assert red(judged(f"F{again}P", others, "P" * (runs + 1)))


@pytest.mark.contract("verdict.evidence", "verdict.monotone")
@settings(max_examples=size(40))
@given(st.data(), st.text("FP", min_size=8, max_size=8), st.integers(5, 40), st.text("PPPPPPPPF", max_size=10))
def test_decide_verdict__a_rerun_that_fails_instead_of_passing__never_turns_red_green(
    data, again, others, history
) -> None:
    at = data.draw(st.integers(0, 7))
    if red(judged(f"F{again}P", others, f"{history}P")):
        assert red(judged(f"F{again[:at]}F{again[at + 1 :]}P", others, f"{history}P"))
