"""A fall of all scores is found, and scores that only vary are none."""

from __future__ import annotations

import itertools
import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.config.policy import FailOn, Policy
from eval_gate.gate.evidence.suite import score_drop as suite_scores
from eval_gate.gate.evidence.suite.score_drop import (
    MIN_RUNS,
    ScoredCase,
    compute_score_finding,
    compute_sum_chance,
    drop_largest_falls,
    select_testable_cases,
)
from eval_gate.model.case import CaseKey
from eval_gate.model.evidence import ScoreFinding
from eval_gate.model.result import CaseFingerprints
from eval_gate.results.baseline import Baseline
from eval_gate.results.history import build_history
from tests.support.graded import make_graded, make_graded_baseline, make_graded_run
from tests.support.verdicts import judge_against, rules_of

LIMIT = 0.005
GRADES = st.integers(0, 20).map(lambda twentieths: twentieths / 20)
CASES = st.integers(1, 8).flatmap(
    lambda runs: st.lists(st.tuples(GRADES, st.lists(GRADES, min_size=runs, max_size=runs)), min_size=5, max_size=8)
)
"""Score here, and those on record."""


def scored(cases) -> list[ScoredCase]:
    return [ScoredCase(CaseKey("s", str(at)), here, tuple(history)) for at, (here, history) in enumerate(cases)]


def drawn(random: Random, cases: int, runs: int, *, noise=lambda _at: 0.03, fell: float = 0.0, days: float = 0.0):
    """Grades between 0 and 1 about a mean of each case's own; `days` is by how much whole runs differ."""
    means = [random.uniform(0.7, 0.95) for _ in range(cases)]
    off = [random.gauss(0, days) for _ in range(runs + 1)]

    def grade(at: int, run: int) -> float:
        return round(min(max(random.gauss(means[at] + off[run] - fell * (run == runs), noise(at)), 0.0), 1.0), 3)

    return scored((grade(at, runs), [grade(at, run) for run in range(runs)]) for at in range(cases))


def found(cases: list[ScoredCase]) -> ScoreFinding:
    return compute_score_finding(select_testable_cases(cases), LIMIT)


def by_enumeration(cases) -> float:
    pools = [[round(score * 10_000) for score in (here, *history)] for here, history in cases]
    seen = sum(pool[0] for pool in pools)
    sums = [sum(one) for one in itertools.product(*pools)]
    return sum(one <= seen for one in sums) / len(sums)


@given(st.lists(st.tuples(GRADES, st.lists(GRADES, min_size=1, max_size=3)), min_size=1, max_size=5))
def test_chance_of_sum__few_steps__is_the_share_of_all_draws(cases) -> None:
    assert compute_sum_chance(cases) == pytest.approx(by_enumeration(cases))


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "fell"), [(1, 0.02), (2, 0.03), (3, 0.03), (4, 0.04), (5, 0.05)])
def test_chance_of_sum__fine_scores__is_nearly_the_share_of_all_draws(seed, fell) -> None:
    """Five cases of ten runs have 161,051 draws: more sums than are taken one by one."""
    cases = [(one.score, one.history) for one in drawn(Random(seed), 5, 10, fell=fell)]
    exact = by_enumeration(cases)
    assert compute_sum_chance(cases) == pytest.approx(exact, rel=0.15)


def test_chance_of_sum__every_score_lower_than_ever__is_that_of_this_one_draw() -> None:
    cases = [(0.5 - at / 10_000, [0.9 + run / 1000 for run in range(10)]) for at in range(7)]
    assert compute_sum_chance(cases) == pytest.approx(11**-7)


def test_chance_of_sum__always_the_same__says_nothing() -> None:
    assert compute_sum_chance([(0.8, [0.8] * 10)] * 50) == 1.0


@given(CASES, st.randoms())
def test_score_finding__order_of_cases__does_not_matter(cases, random) -> None:
    mixed = scored(cases)
    random.shuffle(mixed)
    assert found(mixed) == found(scored(cases))


@given(CASES, st.integers(0, 4), st.integers(1, 20))
def test_score_finding__one_score_falls_further__is_never_milder(cases, at, less) -> None:
    lower = [*cases]
    lower[at] = (max(cases[at][0] - less / 20, 0.0), cases[at][1])
    assert found(scored(lower)).chance <= found(scored(cases)).chance * (1 + 1e-6)
    assert found(scored(lower)).is_drop >= found(scored(cases)).is_drop


@given(CASES)
def test_score_finding__no_score_below_its_record__is_no_drop(cases) -> None:
    assert not found(scored((max(history), history) for _, history in cases)).is_drop


@pytest.mark.parametrize("runs", [1, 2, MIN_RUNS, 20])
@pytest.mark.parametrize("grade", [0.0, 0.5, 1.0])
def test_score_finding__all_equal__is_no_drop(runs, grade) -> None:
    assert not found(scored([(grade, [grade] * runs)] * 60)).is_drop


@pytest.mark.slow
@pytest.mark.parametrize("runs", [1, 2, 4, MIN_RUNS, 10])
def test_score_finding__more_noise_on_record__is_no_surer(runs) -> None:
    for seed in range(10):
        cases = drawn(Random(seed), 30, runs, fell=0.02)
        noisier = [
            one._replace(
                history=tuple(
                    sum(one.known_scores) / runs + 2 * (x - sum(one.known_scores) / runs) for x in one.known_scores
                )
            )
            for one in cases
        ]
        if runs > 1 and found(cases).fall > 0:
            assert found(noisier).chance >= found(cases).chance or found(noisier).chance < LIMIT / 100


@pytest.mark.parametrize(("cases", "dropped"), [(4, False), (7, False), (8, True)])
def test_score_finding__one_run_of_history__needs_eight_cases(cases, dropped) -> None:
    chosen = select_testable_cases(scored([(0.6, [0.9])] * cases))
    assert (compute_score_finding(chosen, LIMIT).is_drop if chosen else False) is dropped


def test_score_finding__less_than_a_hundredth__is_no_drop() -> None:
    assert not found(scored([(0.795, [0.8] * 10)] * 100)).is_drop
    assert found(scored([(0.785, [0.8] * 10)] * 100)).is_drop


@pytest.mark.slow
@pytest.mark.parametrize("since", [1, 2, 5, 9])
def test_score_finding__what_main_itself_lost__is_not_of_this_change(since) -> None:
    red = 0
    for seed in range(40):
        random = Random(f"{since}/{seed}")
        cases = drawn(random, 50, 10)
        lost = [
            one._replace(
                score=one.score - 0.06, history=tuple(x - 0.06 * (at < since) for at, x in enumerate(one.known_scores))
            )
            for one in cases
        ]
        red += found(lost).is_drop
    assert red <= 4  # 1 in 40 each


@pytest.mark.slow
@pytest.mark.parametrize("runs", [1, 3, 10])
@pytest.mark.parametrize("noise", [lambda _at: 0.1, lambda at: 0.2 if at % 5 == 0 else 0.0], ids=["wide", "uneven"])
def test_score_finding__nothing_changed__is_red_no_oftener_than_it_says(noise, runs) -> None:
    red = sum(found(drawn(Random(seed), 30, runs, noise=noise)).is_drop for seed in range(300))
    assert red <= 6


@pytest.mark.slow
def test_score_finding__whole_runs_differ__a_low_one_is_no_drop() -> None:
    red = [sum(found(drawn(Random(seed), 40, runs, days=0.04)).is_drop for seed in range(150)) for runs in (1, 10)]
    assert red[1] <= 4
    assert red[0] > 20  # one run of history cannot know: the page says so


def test_without_the_lowest__allowed__stand_for_the_largest_falls() -> None:
    cases = scored([(0.1, [0.9]), (0.9, [0.9]), (0.8, [0.9]), (1.0, [0.9])])
    assert [one.key.case_id for one in drop_largest_falls(cases, 1)] == ["1", "2", "3"]
    assert [one.key.case_id for one in drop_largest_falls(cases, 9)] == ["1", "3"]


def branch(judge: str | None = None) -> Baseline:
    beside = CaseFingerprints(judge=judge) if judge else None
    runs = [
        make_graded_baseline(
            [make_graded(f"c{at}", 0.8 + (at * 7 + day * 3) % 5 / 100, fingerprints=beside) for at in range(20)],
            run_id=f"main-{day}",
            timestamp=f"2026-11-{19 - day:02}T10:00:00Z",
        )
        for day in range(6)
    ]
    return Baseline(runs[0], "main", history=build_history(runs))


def here(judge: str | None = None, reruns: int = 6, fell: float = 0.06):
    beside = CaseFingerprints(judge=judge) if judge else None
    return make_graded_run([make_graded(f"c{at}", 0.82 - fell, fingerprints=beside) for at in range(20)], reruns=reruns)


RULES = Policy(rules_of("regressions"), pass_score=0.5, reruns=6)


def reasons(judged) -> list[str]:
    return [reason.code for reason in judged.verdict.reasons]


def test_decide_verdict__scores_fell_together__blocks_and_counts_first() -> None:
    judged = judge_against(here(), branch(), RULES)
    assert reasons(judged) == ["suite-score-drop"]
    rule = next(rule for rule in judged.verdict.rules if rule.name == "All scores together")
    assert (rule.value, rule.ok) == ("-0.06 on average", False)
    assert judged.verdict.reasons[0].message.startswith("scores of 20 graded cases fell by 0.06 on average; 20 of 20")
    assert judged.comparison.suite_finding.limit == judged.comparison.score_finding.limit == pytest.approx(LIMIT)
    again = judge_against(judged, Baseline(branch().result, "main"), RULES)
    assert again.verdict == judged.verdict  # without the ledger: all of it is on record


def test_decide_verdict__another_judge_grades__is_no_drop() -> None:
    assert "suite-score-drop" in reasons(judge_against(here("one"), branch("one"), RULES))
    assert "suite-score-drop" not in reasons(judge_against(here("two"), branch("one"), RULES))


def test_decide_verdict__report_only_or_no_reruns__does_not_block() -> None:
    only = judge_against(here(), branch(), Policy(frozenset({FailOn.NEVER}), pass_score=0.5, reruns=6))
    assert only.verdict.outcome == "passed"
    assert only.comparison.score_finding.is_drop
    assert judge_against(here(reruns=0), branch(), RULES).comparison.score_finding is None


def test_decide_verdict__as_ever__spends_half_on_scores() -> None:
    judged = judge_against(here(fell=0.0), branch(), RULES)
    assert reasons(judged) == ["passed"]
    assert math.isclose(judged.comparison.score_finding.limit, LIMIT)


@pytest.mark.slow
def test_chance_of_sum__very_many_cases__is_the_same_by_the_normal_distribution(monkeypatch) -> None:
    random = Random(3)
    cases = [
        (round(random.gauss(0.798, 0.05), 3), [round(random.gauss(0.8, 0.05), 3) for _ in range(5)]) for _ in range(600)
    ]
    exact = compute_sum_chance(cases)
    monkeypatch.setattr(suite_scores, "_MANY", 100)
    assert compute_sum_chance(cases) == pytest.approx(exact, rel=0.05)
    assert compute_sum_chance([(0.1, [0.9])] * 200) == suite_scores._MIN_NORMAL_CHANCE
