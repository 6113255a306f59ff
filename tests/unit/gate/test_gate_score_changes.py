"""Scores against those of the baseline: what is shown as a drop, and what fails the gate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.config.policy import FailOn, Policy
from eval_gate.gate.score_changes import exceeds_limit, format_limit
from eval_gate.model.comparison import CaseChange, Comparison, Outcome, ReasonCode, Verdict
from eval_gate.model.result import RunResult
from eval_gate.model.setup import TargetIdentity
from eval_gate.results.baseline import NOT_REQUESTED, Baseline, NoBaseline
from eval_gate.struct import replace
from tests.support.graded import make_evaluator, make_graded, make_graded_baseline, make_graded_run
from tests.support.results import make_baseline_run, make_run
from tests.support.verdicts import compare_with, judge_against, rules_of

ONLY_REGRESSIONS = frozenset({FailOn.REGRESSIONS})


def compared(then: RunResult, now: RunResult, tolerance: float = 0.1) -> Comparison:
    return compare_with(Baseline(then, "b"), now, score_tolerance=tolerance)


def change_of(then: float, now: float, tolerance: float = 0.1) -> CaseChange:
    return compared(make_graded_baseline({"a": then}), make_graded_run({"a": now}), tolerance).changes[0]


def verdict(now: RunResult, then: RunResult | NoBaseline | None, policy: Policy) -> Verdict:
    baseline = Baseline(then, "b") if isinstance(then, RunResult) else then or NOT_REQUESTED
    found = judge_against(now, baseline, policy).verdict
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("then", "now", "change", "difference", "drop"),
    [
        (0.9, 0.67, "still_failing", -0.23, True),
        (0.8, 0.7, "still_failing", -0.1, False),
        (0.9, 0.85, "still_failing", -0.05, False),
        (0.6, 0.9, "still_failing", 0.3, False),
        (0.7, 0.7, "still_failing", 0.0, False),
        (1.0, 0.95, "regression", -0.05, False),
        (1.0, 0.5, "regression", -0.5, True),
        (0.8, 1.0, "new_pass", 0.2, False),
        (1.0, 1.0, "still_passing", 0.0, False),
    ],
)
def test_compare__graded_case__says_how_its_score_changed(then, now, change, difference, drop) -> None:
    found = change_of(then, now)
    assert (found.change, found.graded, found.score_change, found.score_drop) == (change, True, difference, drop)
    assert found.baseline is not None
    assert found.current is not None
    assert (found.baseline.score, found.current.score) == (then, now)


def test_compare__drop_within_a_pass__shows_under_a_pass_score() -> None:
    policy = Policy(ONLY_REGRESSIONS, pass_score=0.6)
    judged = judge_against(make_graded_run({"a": 0.67}), Baseline(make_graded_baseline({"a": 0.9}), "b"), policy)
    assert judged.comparison is not None
    change = judged.comparison.changes[0]
    assert (change.change, change.score_drop) == ("still_passing", True)
    assert judged.comparison.list_score_drops() == (change,)


def test_score_drops__several__the_largest_first_and_no_regression() -> None:
    then = {"a": 0.9, "b": 0.9, "c": 1.0, "d": 0.5}
    found = compared(make_graded_baseline(then), make_graded_run({"a": 0.7, "b": 0.1, "c": 0.2, "d": 0.5}))
    assert [change.case_id for change in found.list_score_drops()] == ["b", "a"]
    assert found.score_tolerance == 0.1
    other = compared(make_graded_baseline(then), make_graded_run({"a": 0.7}), 0.15)
    assert other.score_tolerance == 0.15  # reports say over which tolerance a drop is named


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (make_graded_baseline([make_graded("a", 0.9, fingerprint="another")]), make_graded_run({"a": 0.1})),
        (make_graded_baseline([make_graded("a", status="error")]), make_graded_run({"a": 0.1})),
        (make_graded_baseline({"b": 0.9}), make_graded_run({"a": 0.1})),
        (make_graded_baseline({"a": 0.9}), make_graded_run([make_graded("a", status="error")])),
        (make_graded_baseline({"a": 0.9}), make_graded_run([make_graded("a", status="not_run")])),
    ],
    ids=["incomparable", "then-an-error", "added", "error", "not-run"],
)
def test_compare__nothing_to_compare_the_score_with__is_no_drop(then, now) -> None:
    change = compared(then, now).changes[0]
    assert (change.graded, change.score_change, change.score_drop) == (True, None, False)
    assert (
        verdict(now, then, Policy(ONLY_REGRESSIONS, max_errors=5, max_score_drop=0.0)).reasons[0].code
        != "max-score-drop"
    )


def test_compare__scores_that_are_none__are_taken_as_the_nearest_that_is() -> None:
    change = change_of(1e308, -1e308)
    assert (change.score_change, change.score_drop) == (-1.0, True)


def test_compare__yes_or_no__has_no_score_change() -> None:
    change = compared(make_baseline_run({"a": "passed"}), make_run({"a": "failed"})).changes[0]
    assert (change.graded, change.score_change, change.score_drop) == (False, None, False)


def test_compare__evaluators__keeps_the_earlier_scores_that_changed() -> None:
    then = [make_graded("a", evaluators={"policy": 0.9, "style": 0.5, "gone": 0.1})]
    now = [make_graded("a", evaluators={"policy": 0.3, "style": 0.5, "new": 0.2})]
    assert compared(make_graded_baseline(then), make_graded_run(now)).changes[0].baseline_evaluator_scores == {
        "policy": 0.9
    }


def test_compare__two_evaluators_of_one_name__are_not_told_apart() -> None:
    same = tuple(make_evaluator("same", score) for score in (0.1, 0.9))
    then = make_graded_baseline([make_graded("a", 0.5, evaluator_results=same)])
    now = make_graded_run([make_graded("a", evaluators={"same": 0.4})])
    assert compared(then, now).changes[0].baseline_evaluator_scores == {}


def test_compare__other_targets__are_noted() -> None:
    agent, other = (TargetIdentity(name=name, provider="cli", identity=name) for name in ("agent", "other"))
    then = make_graded_baseline([make_graded("a", 0.9)], target=agent, targets=(agent, other))
    assert compared(then, make_graded_run([make_graded("a", 0.9)], target=agent)).notes == (
        "the baseline evaluated another target: agent (cli), other (cli)",
    )


@pytest.mark.parametrize(
    ("drop", "limit", "over"), [(0.8 - 0.7, 0.1, False), (0.11, 0.1, True), (0.0, 0.0, False), (-0.5, 0.0, False)]
)
def test_exceeds__drop_and_limit__is_exact_to_six_decimals(drop, limit, over) -> None:
    assert exceeds_limit(drop, limit) is over


@pytest.mark.parametrize(("value", "words"), [(0.2, "0.20"), (0.125, "0.1250"), (1.0, "1.00"), (0.00004, "0.000040")])
def test_limit_words__value__is_not_rounded_to_another_limit(value, words) -> None:
    assert format_limit(value) == words


@pytest.mark.parametrize(
    ("then", "now", "allowed", "outcome"),
    [
        ({"a": 0.9}, {"a": 0.4}, None, "passed"),
        ({"a": 0.9}, {"a": 0.4}, 0.5, "passed"),
        ({"a": 0.9}, {"a": 0.4}, 0.49, "failed"),
        ({"a": 0.9}, {"a": 0.9}, 0.0, "passed"),
        ({"a": 0.1}, {"a": 0.9}, 0.0, "passed"),
        ({"b": 0.9, "c": 0.9}, {"a": 0.1, "c": 0.9}, 0.0, "passed"),
    ],
)
def test_decide__max_score_drop__fails_on_what_drops_further(then, now, allowed, outcome) -> None:
    policy = Policy(ONLY_REGRESSIONS, max_score_drop=allowed)
    assert verdict(make_graded_run(now), make_graded_baseline(then), policy).outcome == outcome


@pytest.mark.contract("agentv.results.compare-per-case")
def test_decide__one_score_drops_and_the_mean_rises__fails_all_the_same() -> None:
    then, now = {"a": 0.9, "b": 0.1, "c": 0.1}, {"a": 0.5, "b": 0.9, "c": 0.9}
    found = verdict(make_graded_run(now), make_graded_baseline(then), Policy(ONLY_REGRESSIONS, max_score_drop=0.3))
    assert [reason.code for reason in found.reasons] == ["max-score-drop"]


def test_decide__score_drops_too_far__says_how_many_and_how_far() -> None:
    then, now = {"a": 0.9, "b": 0.9, "c": 1.0}, {"a": 0.4, "b": 0.85, "c": 0.7}
    found = verdict(make_graded_run(now), make_graded_baseline(then), Policy(ONLY_REGRESSIONS, max_score_drop=0.2))
    assert [reason.code for reason in found.reasons] == ["regressions", "max-score-drop"]
    assert found.reasons[1].message == "the score of 2 cases fell by more than 0.20 (largest drop: 0.50)"
    rule = next(rule for rule in found.rules if rule.name == "Score drop")
    assert (rule.value, rule.limit, rule.ok) == ("0.50", "0.20", False)


def test_decide__max_score_drop_without_a_baseline__passes_and_says_so() -> None:
    found = verdict(make_graded_run({"a": 1.0}), None, Policy(max_score_drop=0.2))
    assert [reason.code for reason in found.reasons] == ["no-baseline"]


@pytest.mark.parametrize(("score", "outcome"), [(0.7, "inconclusive"), (0.9, "passed")])
def test_decide__baseline_could_not_be_had__is_missed_where_a_score_may_have_dropped(score, outcome) -> None:
    absent = NoBaseline(ReasonCode.BASELINE_UNAVAILABLE, "GitHub responded with 502", unavailable=True)
    found = verdict(make_graded_run({"a": score}), absent, Policy(pass_score=0.5, max_score_drop=0.2))
    assert found.outcome == outcome
    if outcome == "inconclusive":
        assert found.reasons[0].message == "1 low score cannot be compared with the baseline: GitHub responded with 502"


def test_decide__pass_score__holds_for_failures_regressions_and_the_pass_rate() -> None:
    then, now = make_graded_baseline({"a": 0.9, "b": 0.9}), make_graded_run({"a": 0.85, "b": 0.7})
    strict = verdict(now, then, Policy(frozenset({FailOn.FAILURES}), 0.5))
    assert [rule.value for rule in strict.rules] == ["0", "2", "0.0 %", "0"]
    held = verdict(now, then, Policy(frozenset({FailOn.FAILURES}), 0.5, pass_score=0.8))
    assert [(rule.name, rule.value) for rule in held.rules] == [
        ("Regressions", "1"),
        ("Failures", "1"),
        ("Pass rate", "50.0 %"),
        ("Errors", "0"),
    ]
    milder = verdict(now, then, Policy(frozenset({FailOn.FAILURES}), 0.5, pass_score=0.7))
    assert milder.outcome is Outcome.PASSED


def test_decide__pass_score_above_both_sides__is_no_regression_and_still_a_drop() -> None:
    """The baseline is held to the same score: what was not good enough then cannot be lost. Its score can drop."""
    then, now = make_graded_baseline({"a": 0.85}), make_graded_run({"a": 0.6})
    assert verdict(now, then, Policy(ONLY_REGRESSIONS, pass_score=0.8)).outcome is Outcome.FAILED
    assert verdict(now, then, Policy(ONLY_REGRESSIONS, pass_score=0.9)).outcome is Outcome.PASSED
    assert verdict(now, then, Policy(ONLY_REGRESSIONS, pass_score=0.9, max_score_drop=0.2)).outcome is Outcome.FAILED


GRADES = st.sampled_from([0.0, 0.3, 0.5, 0.79, 0.8, 0.85, 0.9, 1.0])
CASES = st.one_of(
    st.builds(lambda score: {"score": score}, GRADES),
    st.builds(lambda grades: {"trials": tuple(grades)}, st.lists(GRADES, min_size=2, max_size=3)),
    st.sampled_from([{"status": word} for word in ("error", "skipped", "not_run")]),
)
SIDES = st.dictionaries(st.sampled_from("abcdef"), CASES, min_size=1, max_size=6)
STRICT_RULES = st.sampled_from([("failures",), ("failures", "flaky"), ("failures", "stale")])
RULES = st.sampled_from([("failures",), ("regressions",), ("failures", "flaky"), ("regressions", "flaky")])
LIMITS = st.none() | st.sampled_from([0.0, 0.1, 0.25, 0.5])
SEVERITY = {Outcome.PASSED: 0, Outcome.FAILED: 1, Outcome.INCONCLUSIVE: 1}


def sides(then: dict, now: dict) -> tuple[RunResult, RunResult]:
    return (
        make_graded_baseline([make_graded(name, **fields) for name, fields in then.items()]),
        make_graded_run([make_graded(name, **fields) for name, fields in now.items()]),
    )


@pytest.mark.slow
@given(SIDES, SIDES, STRICT_RULES, st.floats(0.01, 1), st.floats(0.01, 1), LIMITS)
def test_decide__higher_pass_score__is_never_milder_where_failures_count(then, now, rules, one, other, most) -> None:
    """Where only regressions count it may be: the test above shows how, and what then stands against it."""
    earlier, run = sides(then, now)
    policies = [Policy(rules_of(*rules), 0.5, 1, pass_score=score, max_score_drop=most) for score in (one, other)]
    for baseline in (earlier, None):
        found = [SEVERITY[verdict(run, baseline, policy).outcome] for policy in policies]
        assert (found[0] <= found[1]) if one <= other else (found[1] <= found[0])


@pytest.mark.slow
@given(SIDES, SIDES, RULES, st.floats(0, 1), st.floats(0, 1), st.sampled_from([0.8, 1.0]), LIMITS)
def test_decide__score_tolerance__changes_nothing_but_what_is_pointed_out(
    then, now, rules, one, other, score, most
) -> None:
    earlier, run = sides(then, now)
    found = []
    for tolerance in (one, other):
        policy = Policy(rules_of(*rules), pass_score=score, score_tolerance=tolerance, max_score_drop=most)
        judged = judge_against(run, Baseline(earlier, "b"), policy)
        assert judged.comparison is not None
        found.append((judged.verdict, [change.change for change in judged.comparison.changes]))
        assert all(change.graded for change in judged.comparison.list_score_drops())
    assert found[0] == found[1]


@pytest.mark.slow
@given(SIDES, SIDES, RULES, st.sampled_from([0.5, 0.8, 1.0]), LIMITS, st.randoms())
def test_decide__order_of_graded_cases__does_not_matter(then, now, rules, score, most, random) -> None:
    policy = Policy(rules_of(*rules), 0.5, pass_score=score, max_score_drop=most)
    mixed = [dict(random.sample(list(side.items()), len(side))) for side in (then, now)]
    found = [verdict(run, earlier, policy) for earlier, run in (sides(then, now), sides(*mixed))]
    codes = [[reason.code for reason in one.reasons] for one in found]
    assert (found[0].outcome, found[0].rules, codes[0]) == (found[1].outcome, found[1].rules, codes[1])


@pytest.mark.slow
@given(SIDES, SIDES, RULES, LIMITS)
def test_decide__pass_score_of_one__is_what_the_record_says(then, now, rules, most) -> None:
    """With the default nothing changes: graded or not, the same verdict."""
    earlier, run = sides(then, now)
    plain = [
        replace(
            one,
            suites=tuple(
                replace(suite, cases=tuple(replace(case, graded=False) for case in suite.cases)) for suite in one.suites
            ),
        )
        for one in (earlier, run)
    ]
    policy = Policy(rules_of(*rules))
    assert verdict(run, earlier, policy) == verdict(plain[1], plain[0], policy)
