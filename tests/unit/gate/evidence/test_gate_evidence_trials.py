"""A case that is executed several times whatever comes of it: the bar is that of all these executions."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_gate.config.policy import FailOn, Policy
from eval_gate.gate.evidence.prior import Prior, learn_prior
from eval_gate.gate.evidence.rerun_decision import RerunCriteria, compute_e_value
from eval_gate.gate.evidence.thresholds import THRESHOLD_SHARE, ExecutionLimits, compute_run_thresholds
from eval_gate.gate.power.case_groups import CaseGroup, CaseGroups
from eval_gate.gate.power.loss_detection import ExecutionTree
from eval_gate.gate.verdict_decision import GateInputs, decide_verdict
from eval_gate.model.comparison import Outcome
from eval_gate.model.evidence import CaseHistorySummary, Counts
from tests.support.histories import Asked, Branch, Engine

RULES = Policy(frozenset({FailOn.REGRESSIONS}))
ALPHA = 0.05


def reached(prior: Prior, history: Counts, executions: ExecutionLimits, bar: float) -> float:
    """The chance, if nothing has changed, that a case fails at first and comes to the bar: every way there is."""
    unchanged = prior.add_history(history)

    def chance(passes: int, failures: int) -> float:
        here = Counts(passes=passes, failures=failures)
        if failures >= 2 and compute_e_value(prior, history, here) >= bar:
            return math.exp(unchanged.compute_log_chance(here))
        if here.executions == executions.max_total:
            return 0.0
        return chance(passes + 1, failures) + chance(passes, failures + 1)

    trials = executions.trials
    firsts = [(passes, trials - passes) for passes in range(trials + 1) if passes * 2 <= trials]
    return math.fsum(math.comb(trials, passes) * chance(passes, failures) for passes, failures in firsts)


@settings(max_examples=25)
@given(
    st.dictionaries(st.tuples(st.integers(1, 30), st.integers(0, 6)), st.integers(1, 60), min_size=1, max_size=3),
    st.integers(1, 5),
    st.integers(1, 5),
)
def test_bar__so_many_trials_and_re_runs__what_is_believed_comes_to_it_as_seldom_as_is_allowed(
    histories, trials, again
) -> None:
    prior, executions = learn_prior(Counter(histories)), ExecutionLimits(again, trials)
    number = sum(histories.values())
    asked = compute_run_thresholds(prior, histories, number, executions, ALPHA)
    assert asked is not None
    spent = math.fsum(
        many * reached(prior, Counts(passes=passes, failures=failures), executions, asked.threshold)
        for (passes, failures), many in histories.items()
    )
    assert spent <= ALPHA * THRESHOLD_SHARE * 1.001 or asked.threshold == pytest.approx(number / ALPHA)


def found(rates: list[float], trials: int, worse: float | None = None) -> float:
    """Regressions that are expected by single cases after ten runs, or, with `worse`, the mean chance of one such."""
    draw, runs = random.Random(5).random, 10 * trials
    failed = [sum(draw() < rate for _ in range(runs)) for rate in rates]
    histories = Counter((runs - failures, failures) for failures in failed)
    prior, executions = learn_prior(histories), ExecutionLimits(6, trials)
    asked = compute_run_thresholds(prior, histories, len(rates), executions, ALPHA)
    confirmation = RerunCriteria(len(rates), prior, ALPHA, executions.reruns, asked, trials=executions.trials)
    trees = {}
    for passes, failures in histories:
        kind = CaseGroup(CaseHistorySummary(counts=Counts(passes=passes, failures=failures)), 1)
        trees[failures] = ExecutionTree(kind, CaseGroups((kind,), confirmation, 10))
    chances = [
        trees[failures].compute_regression_chance(rate if worse is None else worse)
        for failures, rate in zip(failed, rates, strict=True)
    ]
    return math.fsum(chances) / (1 if worse is None else len(chances))


@pytest.mark.slow
@pytest.mark.parametrize("trials", [1, 2, 3, 5])
@pytest.mark.parametrize("rate", [0.02, 0.05, 0.1])
def test_trials__nothing_changed__no_more_than_two_of_a_hundred_runs_are_red_and_a_dead_case_is_found(
    trials, rate
) -> None:
    assert found([rate] * 100, trials) <= 0.02
    assert found([rate] * 100, trials, worse=1.0) >= 0.99


@pytest.mark.parametrize("trials", [3, 5])
def test_trials__a_fifth_of_the_cases_flakes__a_dead_one_is_found_and_the_others_are_left_alone(trials) -> None:
    mixed = [0.01] * 80 + [0.2 + 0.3 * at / 20 for at in range(20)]
    assert found(mixed, trials) <= 0.02
    assert found(mixed, trials, worse=1.0) >= 0.97


def tapes(number: int, trials: int, rate: float, seed: int, dead: int | None = None) -> list[Asked]:
    draw = random.Random(seed).random
    return [
        Asked("a.json", f"c{at}", "F" if at == dead else "".join("FP"[draw() >= rate] for _ in range(trials + 7)))
        for at in range(number)
    ]


@pytest.fixture(scope="module")
def branches() -> list[Branch]:
    """Default branches of 60 cases that fail one time in twenty and are run three times each, five runs long."""
    made = []
    for seed in range(4):
        branch = Branch()
        for number in range(5):
            branch = branch.pushed(tapes(60, 3, 0.05, 100 * seed + number), RULES, number, trials=3)
        made.append(branch)
    return made


def verdicts(branches: list[Branch], dead: int | None = None) -> list[tuple[bool, object]]:
    found = []
    for at, branch in enumerate(branches):
        for seed in range(4):
            question = GateInputs(branch.baseline, RULES)
            engine = Engine(tapes(60, 3, 0.05, 9_000 + 10 * at + seed, dead), trials=3)
            run = decide_verdict(engine.run(question), question)
            found.append((run.verdict.outcome is Outcome.FAILED, run.comparison))
    return found


@pytest.mark.slow
def test_decide_verdict__three_trials_flat_five_percent__hardly_a_run_is_red_and_a_dead_case_always_is_one(
    branches,
) -> None:
    assert sum(red for red, _ in verdicts(branches)) <= 1  # of sixteen; of five hundred such runs, two were
    dead = verdicts(branches, dead=7)
    assert all(red for red, _ in dead)
    assert {comparison.evidence.trials for _, comparison in dead} == {3}


@pytest.mark.slow
def test_decide_verdict__three_trials__sure_takes_as_many_failures_as_were_made_at_least(branches) -> None:
    comparison = verdicts(branches[:1], dead=7)[0][1]
    grounds = next(one.grounds for one in comparison.changes if one.case_id == "c7")
    assert (grounds.current.passes, grounds.current.failures >= 3, grounds.required_failures >= 3) == (0, True, True)
