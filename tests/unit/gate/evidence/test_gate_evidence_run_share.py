"""Executions of one run that belong together: what main's runs say of it, and what a verdict makes of that."""

from __future__ import annotations

import math
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.config.policy import FailOn, Policy
from eval_gate.errors import ExitCode
from eval_gate.gate.base_agent_cases import select_base_agent_cases
from eval_gate.gate.evidence.execution_groups import ExecutionGroup, compute_log_group_chance
from eval_gate.gate.evidence.flakiness import CaseRun
from eval_gate.gate.evidence.prior import DEFAULT_PRIOR, Prior, learn_prior
from eval_gate.gate.evidence.rerun_decision import RerunCriteria, RerunStep, Suspicion, compute_e_value
from eval_gate.gate.evidence.run_share import (
    NO_SHARES,
    ShareBelief,
    compute_rerun_wait,
    discount_rounds,
    learn_run_shares,
)
from eval_gate.gate.evidence.suite.failures import Stratum, compute_suite_finding
from eval_gate.gate.evidence.thresholds import EvidenceThresholds, ExecutionLimits, compute_thresholds
from eval_gate.gate.reruns import RerunInterval, Reruns
from eval_gate.gate.verdict_decision import GateInputs, decide_verdict
from eval_gate.model.comparison import CaseClass
from eval_gate.model.evidence import BranchRun, Counts, GroundKind, RunShare
from eval_gate.model.selection import BaseAgentCases
from eval_gate.struct import replace
from tests.support.histories import Asked, Branch, Engine
from tests.support.verdicts import make_waiver, make_waivers

RULES = Policy(frozenset({FailOn.REGRESSIONS}))
RUNS, CASES = 10, 60


def shares(*parts: tuple[float, float, float]) -> tuple[RunShare, ...]:
    return tuple(RunShare(trials=trials, reruns=reruns, weight=weight) for trials, reruns, weight in parts)


HALF_APART = shares((0.3, 0.3, 0.4), (0.3, 0.0, 0.3), (0.05, 0.025, 0.3))
SHARED = replace(DEFAULT_PRIOR, shares=HALF_APART)


def counts(letters: str) -> Counts:
    return Counts(passes=letters.count("P"), failures=letters.count("F"))


def simulate(
    share: float,
    *,
    seed: int,
    trials: int = 1,
    rerun_share: float | None = None,
    rates: tuple[float, ...] = (0.05,) * CASES,
) -> list[list[CaseRun]]:
    """Simulate main's runs, newest first: what failed is run again until it passes twice, or fails three times."""
    random, cases = Random(seed), []
    for usual in rates:
        runs = []
        for run in range(RUNS):
            rate = _draw(random, usual, share)
            later = rate if rerun_share is None or random.random() * share < rerun_share else usual
            first = "".join("F" if random.random() < rate else "P" for _ in range(trials))
            again = ""
            while first.count("F") * 2 >= trials and again.count("P") < 2 and again.count("F") < 4:
                again += "F" if random.random() < later else "P"
            runs.append(CaseRun(f"run-{run}", counts(first), counts(again)))
        cases.append(runs)
    return cases


def _draw(random: Random, rate: float, share: float) -> float:
    worth = (1 - share) / share if share else 0.0
    return random.betavariate(rate * worth, (1 - rate) * worth) if share else rate


def learn(cases: list[list[CaseRun]], *, waits: tuple[int, ...] = (0,) * RUNS, wait: int = 0) -> ShareBelief:
    failures = [sum(one[run].first.failures for one in cases) for run in range(RUNS)]
    usual = sum(failures) / RUNS
    days = [BranchRun(failures=one, expected=usual, variance=usual) for one in failures]
    totals = [(sum(run.first.passes for run in one), sum(run.first.failures for run in one)) for one in cases]
    return learn_run_shares(
        [(list(enumerate(one)), 1) for one in cases], learn_prior(Counter(totals)), days, waits, wait
    )


@pytest.mark.parametrize(
    ("share", "least", "most"), [(0.0, 0.0, 0.02), (0.1, 0.02, 0.2), (0.3, 0.2, 0.4), (0.95, 0.7, 0.95)]
)
@pytest.mark.parametrize("trials", [1, 3])
def test_learn_run_shares__ten_runs_of_main__is_near_the_share(share, least, most, trials) -> None:
    found = [learn(simulate(share, seed=seed, trials=trials)).run_share for seed in range(12)]
    assert least <= sum(found) / len(found) <= most


def test_learn_run_shares__one_execution_a_run__is_none() -> None:
    cases = [[CaseRun(f"run-{run}", counts("F" if run == case else "P")) for run in range(RUNS)] for case in range(9)]
    assert learn(cases) == NO_SHARES


def test_learn_run_shares__main_broke_cases_in_one_run__is_none() -> None:
    for many in (1, 2, 12):
        cases = simulate(0.0, seed=3)
        for one in cases[:many]:
            one[4] = CaseRun("run-4", counts("F"), counts("FFF"))
        assert learn(cases).run_share < 0.03, many


def test_learn_run_shares__a_bad_day__is_no_share() -> None:
    found = []
    for seed in range(6):
        cases, bad = (
            simulate(0.0, seed=seed, rates=(0.1,) * CASES),
            simulate(0.0, seed=seed + 100, rates=(0.3,) * CASES),
        )
        found.append(learn([[*usual[:9], day[9]] for usual, day in zip(cases, bad, strict=True)]).run_share)
    assert sum(found) / len(found) < 0.03


def test_learn_run_shares__some_cases_flake_half_of_the_time__is_no_share() -> None:
    rates = (0.5,) * 6 + (0.03,) * (CASES - 6)
    found = [learn(simulate(0.0, seed=seed, rates=rates)).run_share for seed in range(6)]
    assert sum(found) / len(found) < 0.03


def test_learn_run_shares__reruns_that_share_nothing__have_no_part_in_that_of_the_trials() -> None:
    found = learn(simulate(0.3, seed=5, trials=3, rerun_share=0.0))
    mean = math.fsum(one.trials * one.weight for one in found.shares)
    assert mean > 0.15
    assert math.fsum(one.reruns * one.weight for one in found.shares) < mean / 3
    assert found.history_worth == pytest.approx(1 / (1 + 2 * mean))


def test_learn_run_shares__reruns_wait__half_of_the_belief_is_that_they_share_nothing_until_runs_waited() -> None:
    def rerun_share(belief: ShareBelief) -> float:
        return math.fsum(one.reruns * one.weight for one in belief.shares)

    prompt = simulate(0.3, seed=1)
    known = learn(prompt)
    unknown = learn(prompt, wait=180)
    assert rerun_share(unknown) == pytest.approx(rerun_share(known) / 2, rel=0.02)
    assert unknown.run_share == pytest.approx(known.run_share)
    late = simulate(0.3, seed=2, rerun_share=0.0)
    mixed = [[*waited[:4], *usual[4:]] for waited, usual in zip(late, prompt, strict=True)]
    assert rerun_share(learn(mixed, waits=(180,) * 4 + (0,) * 6, wait=180)) < rerun_share(unknown) / 2
    # once all runs waited, the wait stays: what they do not share is because of it
    assert learn(late, waits=(180,) * RUNS, wait=180).run_share == pytest.approx(0.3)


def test_rerun_wait__grows_with_the_share() -> None:
    assert [compute_rerun_wait(share) for share in (0.0, 0.01, 0.1, 0.3, 0.95)] == pytest.approx([0, 0, 60, 180, 300])


@given(st.floats(0.01, 0.99), st.integers(1, 4), st.integers(0, 4))
def test_group_chance__all_results_together__have_chance_one(rate, trials, reruns) -> None:
    total = math.fsum(
        math.comb(trials, failures)
        * math.comb(reruns, later)
        * math.exp(
            compute_log_group_chance(
                rate, ExecutionGroup(trials - failures, failures, reruns - later, later), HALF_APART
            )
        )
        for failures in range(trials + 1)
        for later in range(reruns + 1)
    )
    assert total == pytest.approx(1)


@given(st.text("PF", max_size=20), st.integers(0, 2), st.integers(0, 2))
def test_e_value__executions_belong_together__has_mean_one_whenever_one_stops(history, enough, passes) -> None:
    """Stops at any evidence, and after any number of passes: what a gate does with re-runs."""

    def mean(first: str, again: str) -> float:
        stops = again.count("P") > passes or len(again) == 4 or again.count("F") > enough + 1
        if stops or (first == "P" and again == ""):
            value = compute_e_value(SHARED, counts(history), counts(first), reruns=counts(again))
            unchanged = SHARED.add_history(counts(history))
            return value * math.exp(unchanged.compute_log_chance(counts(first), counts(again)))
        return mean(first, again + "P") + mean(first, again + "F")

    assert mean("P", "") + mean("F", "") == pytest.approx(1)


@given(st.text("PF", max_size=20), st.text("PF", max_size=6))
def test_e_value__executions_belong_together__grows_with_failures(history, again) -> None:
    def value(letters: str) -> float:
        return compute_e_value(SHARED, counts(history), counts("F"), reruns=counts(letters))

    assert value(f"{again}P") <= value(again) * 1.05
    assert value(f"{again}F") >= value(again) * 0.95


def test_thresholds__executions_belong_together__all_cases_stay_within_the_error_rate() -> None:
    prior = replace(Prior.from_counts(38, 2), shares=shares((0.3, 0.3, 1.0)))
    found = compute_thresholds(prior, (((10, 0), 60),), ExecutionLimits(6), 0.05)
    unchanged = prior.add_history(Counts(passes=10))
    independent = compute_thresholds(replace(prior, shares=()), (((10, 0), 60),), ExecutionLimits(6), 0.05)
    assert independent.never_failed_threshold == 0.0
    seven = unchanged.compute_log_chance(counts("F"), counts("FFFFFF"))
    assert 60 * math.exp(seven) > 0.015  # so that failing every time is no proof
    assert found.never_failed_threshold > 0.0


def test_next_step__never_failed_and_fails_every_time__asks_for_another_run() -> None:
    criteria = RerunCriteria(60, SHARED, thresholds=EvidenceThresholds(1e6, None, 1e6))
    for again in range(6):
        step = criteria.decide_next_step(
            Suspicion.REGRESSION, counts("P" * 10), counts("F"), 6 - again, reruns=counts("F" * again)
        )
        assert step is RerunStep.AGAIN
    last = criteria.decide_next_step(Suspicion.REGRESSION, counts("P" * 10), counts("F"), 0, reruns=counts("F" * 6))
    assert last is RerunStep.ANOTHER_RUN
    passed = criteria.decide_next_step(Suspicion.REGRESSION, counts("P" * 10), counts("F"), 5, reruns=counts("P"))
    assert passed is RerunStep.INCONCLUSIVE


@given(st.integers(1, 8), st.integers(1, 10), st.integers(0, 30), st.floats(0.01, 0.9))
def test_stratum__trials_belong_together__has_the_same_mean_and_a_larger_variance(
    trials, runs, failures, share
) -> None:
    total = trials * (runs + 1)
    failures = min(failures, total - trials)
    here = min(failures, trials)
    plain = Stratum(trials * runs - (failures - here), failures - here, trials - here, here)
    shared = plain._replace(share=share)
    least, chances = shared.chances
    mean = math.fsum(number * chance for number, chance in enumerate(chances, start=least))
    assert math.fsum(chances) == pytest.approx(1)
    assert mean == pytest.approx(plain.expected_failures)
    assert shared.variance >= plain.variance * (1 - 1e-6)


def test_suite_finding__trials_that_repeat_themselves__count_as_one_execution() -> None:
    once = [Stratum(10, 0, 0, 1)] * 4 + [Stratum(9, 1, 1, 0)] * 4
    thrice = [Stratum(30, 0, 0, 3)] * 4 + [Stratum(27, 3, 3, 0)] * 4
    repeated = [one._replace(share=0.999) for one in thrice]
    assert compute_suite_finding(repeated).chance == pytest.approx(compute_suite_finding(once).chance, rel=0.05)
    assert compute_suite_finding(thrice).chance < compute_suite_finding(repeated).chance / 10


def test_decide_verdict__cache_on_main__a_case_that_fails_every_time_needs_another_run() -> None:
    """Main's re-runs repeat their first execution, so that seven failures are one."""
    branch = Branch()
    for run in range(RUNS):
        tapes = {case: "F" for case in range(CASES) if case % 20 == run}
        branch = branch.pushed(
            [Asked("a.json", f"case-{case}", tapes.get(case, "P")) for case in range(CASES)], RULES, run
        )
    question = GateInputs(branch.baseline, RULES)
    cases = [Asked("a.json", f"case-{case}", "F" if case == 15 else "P") for case in range(CASES)]
    judged = decide_verdict(Engine(cases).run(question), question)
    (change,) = [one for one in judged.comparison.changes if one.case_id == "case-15"]
    assert change.change is CaseClass.SUSPECTED_REGRESSION
    assert change.grounds.kind is GroundKind.RUN_SHARE
    assert judged.verdict.exit_code is ExitCode.INCOMPLETE
    says = judged.verdict.reasons[0].message
    assert "executions of one run belong together here: run the job again" in says
    assert "if they fail again, fix or waive them: attempts are not added up, and no base agent is asked" in says
    assert select_base_agent_cases(judged, question, frozenset({change.key})) == BaseAgentCases()
    waived = replace(question, waivers=make_waivers(make_waiver("case-15")))
    assert decide_verdict(judged, waived).verdict.exit_code is ExitCode.PASSED
    again = decide_verdict(judged, question)  # as a stored run is judged
    assert (again.verdict, again.comparison.changes) == (judged.verdict, judged.comparison.changes)
    assert judged.comparison.evidence.run_share > 0.5


@pytest.mark.parametrize(
    ("share", "groups", "worth"),
    [(0.0, ["a"] * 10, 1.0), (0.4, ["a"] * 10, 1 / 2.8), (0.4, ["b", "c", "a", "a", "a"], (2 + 3 / 1.4) / 5)],
)
def test_discount_rounds__executions_of_one_run_belong_together__count_less_than_whole_runs(
    share, groups, worth
) -> None:
    belief = ShareBelief(run_share=share, history_worth=0.5)
    assert discount_rounds(belief, groups).history_worth == pytest.approx(0.5 * worth)


@pytest.mark.parametrize(("tape", "waits"), [("FFFFFFF", True), ("FPPPPPP", False)])
def test_reruns__wait_as_long_as_main_s_own_runs_say(tape, waits) -> None:
    """Cases come and go on main: all executions of a run fail together, or each by itself."""
    names, branch = [f"c{number}" for number in range(40)], Branch()
    for number in range(10):
        failing = {(number * 7) % 40, (number * 7 + 3) % 40, (number * 11 + 5) % 40}
        cases = [Asked("a", name, tape if at in failing else "P") for at, name in enumerate(names)]
        branch = branch.pushed(cases, Policy(frozenset({FailOn.NEVER})), number)
    question = GateInputs(branch.baseline, RULES)
    run = Engine([Asked("a", name, "F" if name == "c1" else "P") for name in names], reruns=0).run(question)
    found = Reruns(question, 6, interval=RerunInterval(most_s=math.inf))
    assert found.find_rerun_candidates(run)
    assert (found.rerun_wait > 0) is waits


@pytest.mark.parametrize("broken", [(4,), (4, 7), (4, 5, 6, 7)])
def test_reruns__main_broke_a_case_in_some_runs__do_not_wait(broken) -> None:
    names, branch = [f"c{number}" for number in range(8)], Branch()
    for number in range(10):
        cases = [Asked("a", name, "F" if number in broken and name == "c0" else "P") for name in names]
        branch = branch.pushed(cases, Policy(frozenset({FailOn.NEVER})), number)
    question = GateInputs(branch.baseline, RULES)
    run = Engine([Asked("a", name, "F" if name == "c1" else "P") for name in names], reruns=0).run(question)
    found = Reruns(question, 6, interval=RerunInterval(most_s=math.inf))
    assert found.find_rerun_candidates(run)
    assert found.rerun_wait == 0
