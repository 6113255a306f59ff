"""Evaluators and tags in both runs: what counts, what is left out, and which rows are marked."""

from __future__ import annotations

import random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.gate.case_matching import GateCases
from eval_gate.gate.metric_changes import find_metric_changes
from eval_gate.gate.verdict_decision import GateInputs, decide_provisional_verdict, decide_verdict
from eval_gate.model.comparison import Outcome
from eval_gate.model.execution import EvaluatorResult, Status, Trial
from eval_gate.model.limits import EVALUATORS_DEPTH, METRIC_NAME, METRIC_ROWS
from eval_gate.model.metric_change import MetricChange, MetricChanges, MetricKind
from eval_gate.model.result import CaseFingerprints, CaseResult, CaseText
from eval_gate.results.baseline import Baseline
from eval_gate.results.detail_truncation import drop_passing_details
from eval_gate.struct import replace
from tests.support.graded import make_evaluator, make_graded, make_graded_baseline, make_graded_run
from tests.support.results import make_baseline_run, make_result, make_run, make_suite_result
from tests.support.verdicts import REGRESSIONS

EVALUATOR, TAG = MetricKind.EVALUATOR, MetricKind.TAG


def compare(then: list[CaseResult], now: list[CaseResult]):
    """The run of these cases with its verdict against a baseline of those."""
    baseline = Baseline(make_graded_baseline(then), "main")
    return decide_verdict(make_graded_run(now), GateInputs(baseline, REGRESSIONS))


def find(then: list[CaseResult], now: list[CaseResult]) -> MetricChanges:
    found = compare(then, now).comparison.metric_changes
    assert found is not None
    return found


def rows(then: list[CaseResult], now: list[CaseResult]) -> dict[str, MetricChange]:
    return {row.name: row for row in find(then, now).rows}


def graded(number: int, style: float, *tags: str, **more: float) -> list[CaseResult]:
    """Cases with this score of `style`, and of further evaluators."""
    return [make_graded(f"c{n}", evaluators={"style": style, **more}, tags=tags) for n in range(number)]


def test_rows__an_evaluator_falls_and_another_does_not__is_the_only_marked() -> None:
    found = find(graded(10, 0.9, "refunds", tone=0.5), graded(10, 0.6, "refunds", tone=0.5))
    assert [(row.kind, row.name, row.changed) for row in found.rows] == [
        (EVALUATOR, "style", True),
        (EVALUATOR, "tone", False),
        (TAG, "refunds", True),
    ]
    assert (found.tested, found.changed) == (3, 2)
    style, tone, refunds = found.rows
    assert (style.baseline_score, style.current_score, style.difference, style.cases) == (0.9, 0.6, -0.3, 10)
    assert style.p_value == 2 / 2**10
    assert style.low < -0.3 < style.high < 0
    assert (tone.difference, tone.low, tone.high, tone.p_value) == (0.0, None, None, 1.0)
    assert (refunds.baseline_score, refunds.current_score) == (0.7, 0.55)


def test_rows__many_rows__are_marked_at_5_percent_together() -> None:
    """Six cases all fall: 1 in 32 alone, which is too often among two rows."""
    alone = rows(graded(6, 0.9, "refunds"), graded(6, 0.6))
    assert alone == {}
    two = rows(graded(6, 0.9, tone=0.5), graded(6, 0.6, tone=0.5))
    assert (two["style"].p_value, two["style"].changed) == (2 / 2**6, False)


@pytest.mark.parametrize(
    ("then", "now", "expected"),
    [
        (graded(3, 0.5), graded(3, 0.5), []),
        (graded(3, 0.5, "a"), graded(3, 0.5, "a"), ["style", "a"]),
        (graded(3, 0.5, tone=1.0), graded(3, 0.5, tone=1.0), ["style", "tone"]),
        (graded(1, 0.5, "a", tone=1.0), graded(1, 0.5, "a", tone=1.0), []),
        (graded(3, 0.5, tone=1.0), graded(3, 0.5), []),
        (graded(3, 0.5, "old"), graded(3, 0.5, "new", "new"), ["style", "new"]),
    ],
)
def test_rows__of_these_cases__are(then, now, expected) -> None:
    """Not for one evaluator without tags, nor for what fewer than two cases have. Tags are those of now."""
    assert list(rows(then, now)) == expected


def test_rows__cases_that_are_not_compared__are_left_out() -> None:
    then = [
        *graded(2, 0.5, "a"),
        make_graded("changed", evaluators={"style": 0.1}, tags=("a",), fingerprint="1"),
        make_graded("unscored", status="error", tags=("a",)),
        make_graded("broken", evaluators={"style": 0.1}, tags=("a",)),
        make_graded("removed", evaluators={"style": 0.1}, tags=("a",)),
    ]
    now = [
        *graded(2, 0.5, "a"),
        make_graded("changed", evaluators={"style": 0.9}, tags=("a",), fingerprint="2"),
        make_graded("unscored", evaluators={"style": 0.9}, tags=("a",)),
        make_graded("broken", status="error", tags=("a",)),
        make_graded("added", evaluators={"style": 0.9}, tags=("a",)),
    ]
    assert {name: row.cases for name, row in rows(then, now).items()} == {"style": 2, "a": 2}


def execute(case: CaseResult, *scores: float, reruns: int = 0, decisive: int = 0) -> CaseResult:
    """A case with these executions, of which the `decisive` one is stored with the case."""
    trials = tuple(
        Trial(
            status=Status.PASSED if score >= 1 else Status.FAILED,
            score=score,
            duration_ms=1.0,
            decisive=at == decisive,
            evaluator_results=() if at == decisive else (make_evaluator("style", score),),
        )
        for at, score in enumerate(scores)
    )
    decided = (make_evaluator("style", scores[decisive]),)
    return replace(case, trials=trials, reruns=reruns, evaluator_results=decided)


def test_rows__trials_and_reruns__are_means_of_the_trials_alone() -> None:
    then = graded(2, 1.0, "a")
    now = [execute(case, 0.0, 0.5, 1.0, 1.0, reruns=2, decisive=2) for case in then]
    for row in rows(then, now).values():
        assert (row.baseline_score, row.current_score) == (1.0, 0.25)
        assert (row.baseline_pass_rate, row.current_pass_rate) == (1.0, 0.0)


def test_rows__trials_without_stored_evaluators__count_by_the_first() -> None:
    then = graded(2, 1.0, "a")
    now = [execute(case, 0.5, 1.0, 1.0) for case in then]
    now = [replace(case, trials=tuple(replace(one, evaluator_results=()) for one in case.trials)) for case in now]
    found = rows(then, now)
    assert found["style"].current_score == 0.5
    assert found["a"].current_score == pytest.approx(2.5 / 3)


def test_rows__first_execution_without_stored_evaluators__is_left_out_of_them() -> None:
    then = graded(3, 1.0, "a", tone=1.0)
    lost = execute(then[0], 0.5, 1.0, 1.0, decisive=1)
    lost = replace(lost, trials=tuple(replace(one, evaluator_results=()) for one in lost.trials))
    found = rows(then, [lost, *then[1:]])
    assert (found["style"].cases, found["a"].cases) == (2, 3)


def check(score: float, kind: str = "llm_judge", **fields) -> EvaluatorResult:
    return EvaluatorResult(name="style", type=kind, score=score, **fields)


@pytest.mark.parametrize(
    ("result", "pass_score", "rate"),
    [
        (check(1.0), 1.0, 1.0),
        (check(0.8), 1.0, 0.0),
        (check(0.8), 0.8, 1.0),
        (check(1.0, vetoed=True), 1.0, 0.0),
        (check(0.7, "check", hits=("reached 0.5",)), 1.0, 1.0),
        (check(0.7, "check", misses=("below 0.9",)), 0.5, 0.0),
        (check(0.7, "check"), 0.5, None),
        (check(0.7, "score"), 0.5, None),
        (check(1.0, "score"), 1.0, 1.0),
        (check(0.0, "score"), 1.0, 0.0),
    ],
)
def test_pass_rate__of_an_evaluator__is(result, pass_score, rate) -> None:
    cases = [make_graded(f"c{n}", tags=("a",), evaluator_results=(result,)) for n in range(2)]
    run = compare(cases, cases)
    found = find_metric_changes(
        run.comparison, replace(GateCases.pair(make_graded_baseline(cases), run), pass_score=pass_score)
    )
    row = next(row for row in found.rows if row.name == "style")
    assert (row.baseline_pass_rate, row.current_pass_rate) == (rate, rate)


def test_pass_rate__unknown_for_one_result__is_unknown_on_both_sides() -> None:
    then = [make_graded(f"c{n}", tags=("a",), evaluator_results=(check(1.0, "score"),)) for n in range(2)]
    now = [replace(then[0], evaluator_results=(check(0.7, "score"),)), then[1]]
    row = rows(then, now)["style"]
    assert (row.baseline_pass_rate, row.current_pass_rate) == (None, None)


def test_rows__evaluators_of_one_name__are_one() -> None:
    cases = [make_graded(f"c{n}", tags=("a",), evaluator_results=(check(1.0), check(0.5))) for n in range(2)]
    row = rows(cases, cases)["style"]
    assert (row.cases, row.baseline_score, row.baseline_pass_rate) == (2, 0.75, 0.5)


def judged(number: int, *members: EvaluatorResult, **fields) -> list[CaseResult]:
    """Cases with one composite of these members, whose score is their mean."""
    mean = sum(one.score for one in members) / len(members)
    policy = EvaluatorResult(name="policy", type="composite", score=mean, evaluator_results=members)
    return [make_graded(f"c{n}", evaluator_results=(policy,), score=mean, **fields) for n in range(number)]


def test_members__one_of_a_composite_falls__is_a_row_of_its_own() -> None:
    then = judged(10, make_evaluator("facts", 0.9), make_evaluator("tone", 0.7))
    now = judged(10, make_evaluator("facts", 0.5), make_evaluator("tone", 0.7))
    assert {name: (row.kind, row.cases, row.difference, row.changed) for name, row in rows(then, now).items()} == {
        "policy": (EVALUATOR, 10, -0.2, True),
        "policy / facts": (EVALUATOR, 10, -0.4, True),
        "policy / tone": (EVALUATOR, 10, 0.0, False),
    }


def test_members__they_change_against_each_other__are_marked_where_the_composite_is_not() -> None:
    then = judged(10, make_evaluator("facts", 0.9), make_evaluator("tone", 0.5))
    now = judged(10, make_evaluator("facts", 0.5), make_evaluator("tone", 0.9))
    assert {name: row.changed for name, row in rows(then, now).items()} == {
        "policy": False,
        "policy / facts": True,
        "policy / tone": True,
    }


def test_members__all_rows__count_for_the_adjustment() -> None:
    """Seven cases fall: 1 in 64 alone. Two rows may be marked for that, and no row of four."""
    then, now = (graded(7, style, tone=0.5) for style in (0.9, 0.5))
    assert rows(then, now)["style"].changed
    then, now = (judged(7, *(make_evaluator(name, 0.5) for name in "ab"), make_evaluator("c", c)) for c in (0.9, 0.5))
    assert not any(row.changed for row in rows(then, now).values())


def test_members__a_single_one__has_no_row_beside_its_composite() -> None:
    cases = judged(2, make_evaluator("facts", 0.5), tags=("a",))
    assert list(rows(cases, cases)) == ["policy", "a"]


def nest(depth: int) -> EvaluatorResult:
    members = (nest(depth - 1), make_evaluator("x", 0.5)) if depth else ()
    return EvaluatorResult(name="n", type="composite", score=0.5, evaluator_results=members)


def test_members__of_members__have_the_whole_path_up_to_a_depth() -> None:
    cases = judged(2, nest(1), make_evaluator("tone", 0.5))
    assert {"policy / n / n", "policy / n / x"} < rows(cases, cases).keys()
    cases = judged(2, nest(30), make_evaluator("tone", 0.5))
    deepest = max(rows(cases, cases), key=len)
    assert deepest.count(" / ") == EVALUATORS_DEPTH


def checked(case_id: str, *scores: float, **fields) -> CaseResult:
    """A case of yes-or-no checks, with the texts and fingerprints that a run stores."""
    names = ("toolsCalled", "responseContains")
    results = tuple(
        EvaluatorResult(name=name, type=name, score=score) for name, score in zip(names, scores, strict=False)
    )
    return make_result(
        case_id,
        "passed" if all(scores) else "failed",
        evaluator_results=results,
        text=CaseText(prompt="?"),
        fingerprints=CaseFingerprints(expectation="e" * 16),
        **fields,
    )


def test_rows__baseline_stored_without_passed_checks__are_those_of_the_whole_baseline() -> None:
    """Else only what failed in the baseline would count, and every change would be an improvement."""
    passing = [checked(f"p{n}", 1.0, 1.0) for n in range(4)]
    whole = make_baseline_run(make_suite_result([*passing, checked("f", 0.0)]))
    stored = drop_passing_details(whole).run
    assert not any(case.evaluator_results for _, case in stored.iter_cases() if case.passed)
    here = make_run(make_suite_result([checked("p0", 1.0, 0.0), *passing[1:], checked("f", 1.0, 1.0)]))
    found = [
        decide_verdict(here, GateInputs(Baseline(one, "main"), REGRESSIONS)).comparison.metric_changes
        for one in (whole, stored)
    ]
    assert found[0] == found[1]
    assert {row.name: (row.cases, row.difference) for row in found[0].rows} == {
        "toolsCalled": (5, 0.2),
        "responseContains": (4, -0.25),
    }


@pytest.mark.parametrize(
    ("fields", "cases"),
    [
        ({"text": None}, 3),
        ({}, 2),
        ({"text": None, "flaky": True}, 2),
        ({"text": None, "graded": True}, 2),
        ({"text": None, "fingerprints": CaseFingerprints(expectation="f" * 16)}, 2),
        ({"text": None, "fingerprints": CaseFingerprints()}, 2),
    ],
)
def test_rows__passed_case_without_checks__counts_only_where_they_were_dropped(fields, cases) -> None:
    whole = [checked(f"p{n}", 1.0, 1.0) for n in range(3)]
    then = make_baseline_run(make_suite_result([replace(whole[0], evaluator_results=(), **fields), *whole[1:]]))
    here = make_run(make_suite_result(whole))
    found = decide_verdict(here, GateInputs(Baseline(then, "main"), REGRESSIONS)).comparison.metric_changes
    assert {row.cases for row in found.rows} == {cases}


def test_rows__older_baseline_without_evaluators__are_those_of_tags_alone() -> None:
    then = [replace(case, evaluator_results=()) for case in graded(3, 0.5, "a", tone=0.5)]
    assert list(rows(then, graded(3, 0.5, "a", tone=0.5))) == ["a"]


def test_rows__stored_run_that_lost_its_evaluators__stay_as_they_were() -> None:
    made = compare(graded(8, 0.9, "a"), graded(8, 0.5, "a"))
    less = made.replace_cases({key: replace(case, evaluator_results=()) for key, case in made.iter_cases()})
    again = decide_verdict(less, GateInputs(Baseline(make_graded_baseline(graded(8, 0.9, "a")), "main"), REGRESSIONS))
    assert again.comparison.metric_changes == made.comparison.metric_changes


def test_rows__another_baseline__are_made_anew() -> None:
    made = compare(graded(8, 0.9, "a"), graded(8, 0.5, "a"))
    other = make_graded_baseline(graded(2, 0.5, "a"), run_id="other")
    again = decide_verdict(made, GateInputs(Baseline(other, "main"), REGRESSIONS)).comparison.metric_changes
    assert {row.cases for row in again.rows} == {2}


def test_rows__more_than_the_limit__are_counted() -> None:
    tags = [f"t{n}" for n in range(METRIC_ROWS + 50)]
    found = find(graded(2, 0.5, *tags, "x" * 1_000), graded(2, 0.5, *tags, "x" * 1_000))
    assert len(found.rows) == METRIC_ROWS
    assert (found.tested, found.changed) == (METRIC_ROWS + 52, 0)
    assert len(rows(graded(2, 0.5, "x" * 1_000), graded(2, 0.5, "x" * 1_000))["x" * METRIC_NAME].name) == METRIC_NAME


def test_verdict__every_row_falls__is_the_same() -> None:
    run = compare(graded(12, 0.95, "a"), graded(12, 0.9, "a"))
    assert run.comparison.metric_changes.changed == 2
    assert run.verdict.outcome is Outcome.PASSED


def test_provisional_verdict__any_run__has_no_rows() -> None:
    inputs = GateInputs(Baseline(make_graded_baseline(graded(3, 0.9, "a")), "main"), REGRESSIONS)
    assert decide_provisional_verdict(make_graded_run(graded(3, 0.5, "a")), inputs).comparison.metric_changes is None


SCORES = st.lists(st.tuples(st.floats(-1, 2), st.floats(-1, 2)), min_size=2, max_size=12)


@given(SCORES)
def test_rows__any_scores__agree_with_the_means(pairs) -> None:
    """Scores beyond 0 and 1, which only a file from elsewhere has, count as 0 and 1."""
    then, now = (
        [
            make_graded(f"c{n}", tags=("a",), evaluator_results=(check(pair[side]),), score=pair[side])
            for n, pair in enumerate(pairs)
        ]
        for side in (0, 1)
    )
    for row in find(then, now).rows:
        clamped = [[min(max(one, 0.0), 1.0) for one in pair] for pair in pairs]
        for mean, side in ((row.baseline_score, 0), (row.current_score, 1)):
            assert mean == pytest.approx(sum(pair[side] for pair in clamped) / len(pairs), abs=1e-6)
        assert row.difference == pytest.approx(row.current_score - row.baseline_score, abs=1e-6)
        assert (row.low is None) == all(round(one - other, 9) == 0 for one, other in clamped)
        assert row.low is None or row.low - 1e-6 <= row.difference <= row.high + 1e-6


def draw_world(rng: random.Random, cases: int, fall: float) -> MetricChanges:
    """Both runs of cases with a composite of three members, of which the first may fall, a check and four tags."""
    sides: tuple[list[CaseResult], list[CaseResult]] = ([], [])
    for number in range(cases):
        quality = rng.choice((0.2, 0.6, 0.9, 0.97, 1.0))
        tags = tuple(tag for tag in "abcd" if rng.random() < 0.5)
        for side, shift in zip(sides, (0.0, fall), strict=True):
            scores = [rng.gauss(quality - shift, 0.1), float(rng.random() < quality), rng.gauss(quality, 0.1)]
            members = tuple(make_evaluator(f"m{at}", min(max(one, 0.0), 1.0)) for at, one in enumerate(scores))
            policy = EvaluatorResult(
                name="policy", type="composite", score=fmean(one.score for one in members), evaluator_results=members
            )
            results = (policy, make_evaluator("check", float(rng.random() < quality)))
            mean = fmean(one.score for one in results)
            side.append(make_graded(f"c{number}", mean, evaluator_results=results, tags=tags))
    return find(*sides)


@pytest.mark.slow
@pytest.mark.parametrize("cases", [8, 20])
def test_rows__worlds_without_a_change__are_marked_in_at_most_5_percent(cases) -> None:
    """Counted are worlds with any marked row; 4.6 % are three standard deviations of this many worlds."""
    rng, worlds = random.Random(cases), 200
    assert sum(draw_world(rng, cases, 0.0).changed > 0 for _ in range(worlds)) <= worlds * (0.05 + 0.046)


@pytest.mark.slow
def test_rows__worlds_in_which_a_member_falls__are_found_by_its_row() -> None:
    rng, worlds = random.Random(1), 100
    marked = [[row.name for row in draw_world(rng, 20, 0.15).rows if row.changed] for _ in range(worlds)]
    assert sum("policy / m0" in names for names in marked) >= 80
    assert sum("policy" in names for names in marked) <= 30


def test_rows__conversations__evaluators_have_no_turns_in_their_names() -> None:
    def make_cases(style: float) -> list[CaseResult]:
        turns = [
            EvaluatorResult(
                name=f"turn {turn}", type="turn", score=style, evaluator_results=(make_evaluator("style", style),)
            )
            for turn in (1, 2)
        ]
        whole = EvaluatorResult(
            name="conversation", type="conversation", score=1, evaluator_results=(make_evaluator("tone"),)
        )
        return [make_graded(f"c{number}", style, evaluator_results=(*turns, whole)) for number in range(10)]

    found = rows(make_cases(0.9), make_cases(0.6))
    assert list(found) == ["style", "tone"]
    assert (found["style"].difference, found["style"].changed, found["tone"].changed) == (-0.3, True, False)
