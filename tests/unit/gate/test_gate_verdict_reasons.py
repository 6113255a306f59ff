"""What fails the gate, and that nothing unseen ever passes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic.alias_generators import to_camel

from eval_gate.config.loader import load_config
from eval_gate.config.policy import FailOn, Policy
from eval_gate.errors import GateError
from eval_gate.model.comparison import Outcome, ReasonCode, RuleCode, Verdict
from eval_gate.model.execution import ErrorKind
from eval_gate.model.policy import EvaluationSetup
from eval_gate.model.result import Shard
from eval_gate.model.selection import CaseSelection
from eval_gate.model.waiver import RefusedCommand
from eval_gate.results.baseline import NOT_REQUESTED, Baseline, NoBaseline
from tests.support.graded import make_graded_run
from tests.support.results import make_baseline_run, make_result, make_run, make_suite_result
from tests.support.verdicts import judge_against, make_waiver, make_waivers, rules_of

SEVERITY = {Outcome.PASSED: 0, Outcome.FAILED: 1, Outcome.INCONCLUSIVE: 1}


def verdict(now, then=None, *fail_on: str, **policy) -> Verdict:
    run = now if not isinstance(now, dict) else make_run(now)
    baseline = Baseline(make_baseline_run(then), "b") if then is not None else NOT_REQUESTED
    judged = judge_against(run, baseline, Policy(rules_of(*fail_on), **policy)).verdict
    assert judged is not None
    return judged


def said(found: Verdict) -> tuple[str, int, list[str]]:
    return found.outcome.value, int(found.exit_code), [reason.code for reason in found.reasons]


@pytest.mark.parametrize(
    ("now", "then", "fail_on", "expected"),
    [
        ({"a": "passed"}, None, ("failures",), ("passed", 0, ["passed"])),
        ({"a": "failed", "b": "passed"}, None, ("failures",), ("failed", 1, ["failures"])),
        ({"a": "failed", "b": "passed"}, {"a": "failed"}, ("regressions",), ("passed", 0, ["passed"])),
        ({"a": "failed", "b": "passed"}, {"a": "passed"}, ("regressions",), ("failed", 1, ["regressions"])),
        ({"a": "failed", "b": "passed"}, {"a": "passed"}, ("failures",), ("failed", 1, ["regressions", "failures"])),
        ({"a": "failed"}, None, ("regressions",), ("passed", 0, ["no-baseline"])),
        ({"a": "failed"}, {"a": "passed"}, ("never",), ("passed", 0, ["report-only"])),
        ({}, None, ("failures",), ("inconclusive", 3, ["no-scored-cases"])),
        ({}, None, ("never",), ("inconclusive", 3, ["no-scored-cases"])),
        ({"a": "skipped"}, None, ("never",), ("inconclusive", 3, ["no-scored-cases"])),
        ({"a": "error"}, None, ("failures",), ("inconclusive", 3, ["no-scored-cases"])),
        (
            {"a": "error", "b": "error", "c": "passed"},
            None,
            ("failures",),
            ("inconclusive", 3, ["too-few-scored-cases"]),
        ),
        ({"a": "error", "b": "passed"}, None, ("failures",), ("failed", 1, ["max-errors"])),
        ({"a": "error", "b": "passed"}, None, ("never",), ("passed", 0, ["report-only"])),
        ({"a": "passed", "b": "not_run"}, None, ("failures",), ("inconclusive", 3, ["run-incomplete"])),
        ({"a": "passed", "b": "not_run"}, None, ("never",), ("inconclusive", 3, ["run-incomplete"])),
        ({"a": "failed", "b": "not_run"}, None, ("failures",), ("failed", 1, ["failures", "run-incomplete"])),
        (
            {"a": "passed", "b": "error", "c": "not_run"},
            None,
            ("failures",),
            ("inconclusive", 3, ["run-incomplete", "max-errors"]),
        ),
        ({"a": "passed", "b": "skipped"}, None, ("failures",), ("passed", 0, ["passed"])),
    ],
    ids=str,
)
def test_decide__run_and_policy__gives_this_verdict(now, then, fail_on, expected) -> None:
    assert said(verdict(now, then, *fail_on)) == expected


@pytest.mark.parametrize(
    ("blames", "allowed", "expected"),
    [
        ("O", 0, ("inconclusive", 3)),
        ("U", 0, ("inconclusive", 3)),
        ("UO", 1, ("inconclusive", 3)),
        ("UC", 0, ("failed", 1)),
        ("UC", 1, ("inconclusive", 3)),
        ("CCU", 1, ("failed", 1)),
        ("CU", 2, ("passed", 0)),
    ],
)
def test_decide__too_many_errors__whose_fault_they_are_makes_the_exit_code(blames, allowed, expected) -> None:
    whose = {"C": ErrorKind.AGENT_ERROR, "U": ErrorKind.AGENT_UNREACHABLE, "O": ErrorKind.EVALUATION_ERROR}
    broken = [make_result(f"e{at}", "error", error_kind=whose[letter]) for at, letter in enumerate(blames)]
    run = make_run(make_suite_result([*broken, *(make_result(f"p{at}", "passed") for at in range(20))]))
    found = verdict(run, max_errors=allowed)
    assert (found.outcome.value, found.exit_code) == expected


def test_decide__coverage_is_missed__is_of_the_change_unless_errors_of_others_explain_it() -> None:
    skipped = [make_result(f"s{at}", "skipped") for at in range(4)]
    broken = [make_result(f"e{at}", "error", error_kind=ErrorKind.EVALUATION_ERROR) for at in range(4)]
    passed = [make_result(f"p{at}", "passed") for at in range(6)]
    for cases, code in ((skipped, 1), (broken, 3), (skipped + broken, 1)):
        run = make_run(make_suite_result(passed + cases))
        assert verdict(run, max_errors=4, min_coverage=0.8).exit_code == code


def test_decide__errors_within_the_allowance__pass() -> None:
    now = {"a": "error", "b": "passed"}
    assert said(verdict(now, None, max_errors=1)) == ("passed", 0, ["passed"])
    found = verdict(now, None)
    assert found.reasons[0].message == "1 new error (limit 0)"


@pytest.mark.parametrize(("least", "outcome"), [(0.5, "passed"), (0.51, "failed")])
def test_decide__pass_rate__is_of_the_judged_cases(least, outcome) -> None:
    found = verdict(
        {"a": "passed", "b": "failed", "c": "skipped"},
        {"a": "passed", "b": "failed"},
        "regressions",
        min_pass_rate=least,
    )
    assert found.outcome == outcome
    if outcome == "failed":
        assert found.reasons[0].message == "pass rate 50.0 % of 2 cases with a score is below 51.0 %"


def test_decide__pass_rate_just_below_its_limit__is_not_shown_as_the_limit() -> None:
    cases = {f"c{number}": "passed" for number in range(2_499)}
    found = verdict(cases | {"f": "failed"}, cases | {"f": "failed"}, "regressions", min_pass_rate=1.0)
    said = "pass rate 99.96 % of 2,500 cases with a score is below 100.0 %"
    assert (found.outcome, found.reasons[0].message) == (Outcome.FAILED, said)


def test_decide__no_case_counts__no_pass_rate_is_made_up() -> None:
    found = verdict({"a": "skipped"}, {"a": "skipped"}, "regressions", min_pass_rate=1.0)
    rule = found.find_rule(RuleCode.PASS_RATE)
    assert rule is not None
    assert (rule.value, rule.ok) == ("–", False)


def test_decide__stale_and_flaky__fail_only_when_asked() -> None:
    suite = make_suite_result([make_result("a", trials="PPF")], stale=True)
    assert verdict(make_run(suite)).outcome is Outcome.PASSED
    assert said(verdict(make_run(suite), None, "stale")) == ("failed", 1, ["stale"])
    assert said(verdict(make_run(suite), None, "flaky")) == ("failed", 1, ["flaky"])
    found = verdict(make_run(suite), None, "regressions", "stale", "flaky")
    assert [reason.message for reason in found.reasons] == [
        "1 case is flaky (limit 0)",
        "1 suite is stale (limit 0)",
    ]


def test_decide__target_gone__says_why_first() -> None:
    run = make_run({"a": "not_run"}, stop_reason="no connection to the target")
    assert verdict(run).reasons[0].message == "no connection to the target"


def test_decide__one_and_many__are_worded_apart() -> None:
    one = verdict({"a": "failed", "x": "passed"}, {"a": "passed"}, "regressions").reasons[0].message
    two = verdict({"a": "failed", "b": "failed"}, {"a": "passed", "b": "passed"}, "regressions").reasons[0].message
    assert one == "1 case that passed in the baseline failed (limit 0)"
    assert two == "2 cases that passed in the baseline failed (limit 0)"


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        (("failures",), ["failures"]),
        (("regressions", "stale"), ["regressions", "stale"]),
        (("regressions,flaky",), ["regressions", "flaky"]),
        (("stale",), ["failures", "stale"]),
        ((), ["failures"]),
        (("never",), ["never"]),
    ],
    ids=str,
)
def test_fail_on__words__are_these_rules(words, chosen) -> None:
    assert rules_of(*words) == {FailOn(word) for word in chosen}


def test_fail_on__unknown_or_contradictory__is_a_usage_error() -> None:
    with pytest.raises(GateError) as unknown:
        rules_of("regresions", "stale", "flacky")
    assert [str(one).partition(";")[0] for one in unknown.value.problems] == [
        '--fail-on[0]: "regresions" is not known (did you mean "regressions"?)',
        '--fail-on[2]: "flacky" is not known (did you mean "flaky"?)',
    ]
    with pytest.raises(GateError) as contradictory:
        rules_of("never", "stale")
    assert "--fail-on: never cannot be combined" in str(contradictory.value.problems[0])


STATUSES = st.sampled_from(["passed", "failed", "error", "skipped", "not_run"])
RUNS = st.dictionaries(st.sampled_from("abcdefgh"), STATUSES, min_size=1, max_size=8)
RULES = st.sampled_from([("failures",), ("regressions",), ("regressions", "flaky", "stale")])


@pytest.mark.slow
@given(RUNS, RUNS, RULES, st.data())
def test_decide__one_more_failure__never_makes_it_milder(now, then, rules, data) -> None:
    passing = [case for case, status in now.items() if status == "passed"]
    if not passing:
        return
    worse = now | {data.draw(st.sampled_from(passing)): "failed"}
    assert SEVERITY[verdict(worse, then, *rules).outcome] >= SEVERITY[verdict(now, then, *rules).outcome]


@pytest.mark.slow
@given(RUNS, RUNS, RULES)
def test_decide__order_of_cases__does_not_matter(now, then, rules) -> None:
    turned = dict(reversed(now.items()))
    assert said(verdict(now, then, *rules)) == said(verdict(turned, then, *rules))


@given(RUNS, RULES)
def test_decide__passes__only_when_something_was_judged_and_nothing_left_out(now, rules) -> None:
    if verdict(now, None, *rules).outcome is Outcome.PASSED:
        assert "passed" in now.values() or "failed" in now.values()
        assert "not_run" not in now.values()


def test_fail_on__words__are_those_of_the_documentation() -> None:
    words = ["failures", "regressions", "never", "stale", "flaky", "removed", "changed", "new-failures"]
    assert sorted(one.value for one in FailOn) == sorted(words)
    assert {word: rules_of(word) >= {FailOn(word)} for word in words} == dict.fromkeys(words, True)


def test_decide_verdict__any_run__keeps_the_policy_it_was_judged_by() -> None:
    run, baseline = make_run({"a": "passed"}), Baseline(make_baseline_run({"a": "passed"}), "b")
    for against in (NOT_REQUESTED, baseline):
        kept = judge_against(run, against, Policy(allowed_regressions=3)).policy
        assert kept is not None
        assert kept.as_settings()["allowedRegressions"] == 3


def test_decide_verdict__refused_comments__are_on_record_with_what_was_accepted() -> None:
    refusal = RefusedCommand(author="mallory", url="https://github.test/1", message="has no write access")
    waivers = make_waivers(make_waiver("a"), refusals=(refusal,), troubles=("no answer",))
    baseline = Baseline(make_baseline_run({"a": "passed"}), "b")
    waiving = judge_against(make_run({"a": "failed"}), baseline, Policy(), waivers=waivers).waivers
    assert waiving is not None
    assert (waiving.refusals, waiving.problems) == ((refusal,), ("no answer",))


def test_policy__configuration_with_every_rule__has_each_as_it_was_set() -> None:
    rules = {
        "fail_on": ("never",),
        "min_pass_rate": 0.91,
        "max_errors": 3,
        "pass_score": 0.81,
        "score_tolerance": 0.07,
        "max_score_drop": 0.06,
        "false_alarm_rate": 0.02,
        "reruns": 4,
        "must_pass": ("gs-*",),
        "allowed_regressions": 2,
        "min_coverage": 0.71,
        "max_latency_increase": 51.0,
        "max_cost_increase": 52.0,
        "max_token_increase": 53.0,
    }
    written = {to_camel(name): [*value] if isinstance(value, tuple) else value for name, value in rules.items()}
    policy = load_config(written, {}, None).policy
    assert {name: getattr(policy, name) for name in rules} == rules | {"fail_on": frozenset({FailOn.NEVER})}


def test_decide__everything_crashes_that_main_answered__is_a_regression_and_not_only_an_outage() -> None:
    crashed = [make_result(name, "error", error_kind=ErrorKind.AGENT_ERROR) for name in "abc"]
    then = dict.fromkeys("abc", "passed")
    assert said(verdict(make_run(make_suite_result(crashed)), then, "regressions"))[:2] == ("failed", 1)
    unreachable = [make_result(name, "error", error_kind=ErrorKind.AGENT_UNREACHABLE) for name in "abc"]
    assert said(verdict(make_run(make_suite_result(unreachable)), then, "regressions"))[:2] == ("inconclusive", 3)


def test_new_failures__one_that_somebody_accepted__does_not_count() -> None:
    run, baseline = make_run({"a": "passed", "new": "failed"}), Baseline(make_baseline_run({"a": "passed"}), "b")
    policy = Policy(frozenset({FailOn.REGRESSIONS, FailOn.NEW_FAILURES}))
    assert judge_against(run, baseline, policy).verdict.outcome is Outcome.FAILED
    accepted = make_waivers(make_waiver("new"))
    assert judge_against(run, baseline, policy, waivers=accepted).verdict.outcome is Outcome.PASSED


def test_decide_verdict__again_by_another_baseline__says_which_cases_are_another_class_by_that() -> None:
    run = make_run({"a": "failed", "b": "passed"})
    first = judge_against(run, Baseline(make_baseline_run({"a": "passed", "b": "passed"}), "b"))
    other = make_baseline_run({"a": "failed", "b": "passed", "gone": "passed"}, run_id="0" * 36, git=None)
    notes = judge_against(first, Baseline(other, "b")).comparison.notes
    assert any("1 case changed its class (a: regression, now still failing)" in note for note in notes), notes
    same = make_baseline_run({"a": "passed", "b": "passed"}, run_id="1" * 36, git=None)
    notes = judge_against(first, Baseline(same, "b")).comparison.notes
    assert any("is now compared with run 11111111: no case changed its class" in note for note in notes), notes


def test_decide__everything_crashes_that_main_answered__says_what_else_it_may_be() -> None:
    crashed = [make_result(name, "error", error_kind=ErrorKind.AGENT_ERROR) for name in "abc"]
    then = dict.fromkeys("abc", "passed")
    assert said(verdict(make_run(make_suite_result(crashed)), then, "regressions"))[2] == [
        "regressions",
        "all-agent-errors",
    ]
    one_answered = make_suite_result([*crashed, make_result("d")])
    found = said(verdict(make_run(one_answered), then | {"d": "passed"}, "regressions"))[2]
    assert found == ["regressions"]


def test_decide__nothing_judged__cites_the_first_error_and_not_why_something_was_skipped() -> None:
    cases = [make_result("s", "skipped", error="it needs a key"), make_result("e", "error", error="no connection")]
    (reason,) = verdict(make_run(make_suite_result(cases))).reasons
    assert (reason.code, reason.message) == ("no-scored-cases", "no case has a score: no connection")
    other = make_result("o", "error", error="HTTP 500")
    (reason,) = verdict(make_run(make_suite_result([*cases, other]))).reasons
    assert reason.message == "no case has a score; the first error is: no connection"


def test_decide__baseline_that_could_not_be_had__is_not_missed_where_regressions_do_not_count() -> None:
    absent = NoBaseline(ReasonCode.BASELINE_UNAVAILABLE, "GitHub does not answer", unavailable=True)
    run = make_run({"a": "failed", "b": "passed"})
    found = judge_against(run, absent, Policy(frozenset({FailOn.FAILURES}))).verdict
    assert found is not None
    assert said(found) == ("failed", 1, ["failures"])


@pytest.mark.parametrize(("duration", "shown"), [(150.0, "+50 %"), (151.0, "+51 % (2 cases, may be chance)")])
def test_decide_verdict__increase_exactly_at_its_limit__is_not_in_doubt(duration, shown) -> None:
    now = make_run(make_suite_result([make_result(name, duration_ms=duration) for name in "ab"]))
    then = make_baseline_run(make_suite_result([make_result(name, duration_ms=100.0) for name in "ab"]))
    found = judge_against(now, Baseline(then, "b"), Policy(max_latency_increase=50.0)).verdict
    assert found is not None
    assert [rule.value for rule in found.rules if rule.code is RuleCode.LATENCY] == [shown]


@pytest.mark.parametrize(("now", "expected"), [("passed", ["no-baseline"]), ("failed", ["baseline-unavailable"])])
def test_decide__baseline_that_could_not_be_had__is_missed_only_where_something_fails(now, expected) -> None:
    absent = NoBaseline(ReasonCode.BASELINE_UNAVAILABLE, "GitHub does not answer", unavailable=True)
    found = judge_against(make_run({"a": now}), absent, Policy(frozenset({FailOn.REGRESSIONS}))).verdict
    assert found is not None
    assert said(found) == (("passed", 0, expected) if now == "passed" else ("inconclusive", 3, expected))


def test_decide__flaky_case_in_quarantine__does_not_count_as_flaky() -> None:
    run = make_run(make_suite_result([make_result("a", trials="PPF"), make_result("b")]))
    policy = Policy(frozenset({FailOn.FLAKY}))
    assert judge_against(run, NOT_REQUESTED, policy).verdict.outcome is Outcome.FAILED
    quarantined = make_waivers(make_waiver("a", "quarantine"))
    assert judge_against(run, NOT_REQUESTED, policy, waivers=quarantined).verdict.outcome is Outcome.PASSED


def test_decide_verdict__accepted_failure_without_a_baseline__does_not_count_either() -> None:
    run, policy = make_run({"a": "failed", "b": "passed"}), Policy(frozenset({FailOn.FAILURES}))
    assert judge_against(run, NOT_REQUESTED, policy).verdict.outcome is Outcome.FAILED
    accepted = make_waivers(make_waiver("a"))
    assert judge_against(run, NOT_REQUESTED, policy, waivers=accepted).verdict.outcome is Outcome.PASSED


def test_decide_verdict__any_run__keeps_how_it_was_made_with_its_rules() -> None:
    run = make_run({"a": "passed"}, setup=EvaluationSetup(trials=3, reruns=2))
    kept = judge_against(run, NOT_REQUESTED, Policy(reruns=9)).policy
    assert kept is not None
    assert (kept.trials, kept.reruns) == (3, 2)


def test_decide__no_cases_and_a_least_coverage__is_no_verdict() -> None:
    assert said(verdict({}, None, min_coverage=0.5)) == ("inconclusive", 3, ["no-scored-cases"])


@pytest.mark.parametrize(("scores", "words"), [((0.5, 1.0), "1 low score"), ((0.5, 0.6), "2 low scores")])
def test_decide__baseline_that_could_not_be_had__is_missed_for_low_scores(scores, words) -> None:
    absent = NoBaseline(ReasonCode.BASELINE_UNAVAILABLE, "GitHub does not answer", unavailable=True)
    policy = Policy(frozenset({FailOn.FAILURES}), max_score_drop=0.1, pass_score=0.2)
    found = judge_against(make_graded_run(dict(zip("ab", scores, strict=True))), absent, policy).verdict
    assert found is not None
    assert [reason.message for reason in found.reasons] == [
        f"{words} cannot be compared with the baseline: GitHub does not answer"
    ]


def test_decide__passing_with_a_baseline_and_a_bound_on_scores__has_nothing_else_to_say() -> None:
    assert said(verdict({"a": "passed"}, {"a": "passed"}, "regressions", max_score_drop=0.1)) == (
        "passed",
        0,
        ["passed"],
    )
    without = said(verdict({"a": "passed"}, None, "failures", max_score_drop=0.1))
    assert without == ("passed", 0, ["no-baseline"])


def test_decide__nothing_that_could_be_compared__is_said_of_a_pass() -> None:
    found = verdict({"new": "passed"}, {"old": "passed"}, "regressions")
    assert said(found) == ("passed", 0, ["no-comparable-cases"])
    assert found.reasons[0].message.startswith("no case can be compared")


PASSED = {"a": "passed", "b": "passed"}
A_FAILS = {"a": "failed", "b": "passed"}
CHOSE_B = CaseSelection(cases=("b",))


@pytest.mark.parametrize(
    ("then", "facts", "why"),
    [
        ({"x": "passed"}, {}, "the baseline has none of the cases of this run"),
        ({"b": "passed"}, {"shard": Shard(index=2, count=3)}, "the baseline is only shard 2 of 3"),
        (
            {"b": "passed"},
            {"complete": False, "stop_reason": "shard 1 of 2 is missing"},
            "is incomplete: shard 1 of 2",
        ),
        ({"a": "not_run", "b": "passed"}, {"complete": False}, "is incomplete: its run ended early"),
        ({"b": "passed"}, {"partial": True}, "the baseline is a run of selected cases"),
        ({"b": "passed"}, {"partial": True, "selections": (CHOSE_B,)}, "the baseline is a run of selected cases"),
    ],
)
def test_decide__case_fails_that_the_baseline_lacks_and_nobody_knows_to_be_new__is_not_decided(
    then, facts, why
) -> None:
    baseline = Baseline(make_run(then, **facts), "b")
    found = judge_against(make_run(A_FAILS), baseline, Policy(rules_of("regressions"))).verdict
    assert said(found) == ("inconclusive", 3, ["not-in-baseline"])
    assert why in found.reasons[0].message
    for policy in (Policy(rules_of("regressions"), allowed_regressions=1), Policy(rules_of("never"))):
        assert judge_against(make_run(A_FAILS), baseline, policy).verdict.outcome is Outcome.PASSED
    assert judge_against(make_run(PASSED), baseline, Policy(rules_of("regressions"))).verdict.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("then", "facts"),
    [
        ({"b": "passed"}, {}),
        ({"b": "passed"}, {"partial": True, "selections": (CaseSelection(),)}),
        ({"b": "passed", "a": "failed"}, {"complete": False}),
    ],
)
def test_decide__case_fails_that_is_new_or_known_to_fail__passes_whatever_else_the_baseline_lacks(then, facts) -> None:
    baseline = Baseline(make_run(then, **facts), "b")
    assert judge_against(make_run(A_FAILS), baseline, Policy(rules_of("regressions"))).verdict.outcome is Outcome.PASSED


def test_decide__cases_chosen_here_are_not_in_the_baseline__are_new() -> None:
    """Nobody can tell that it is another gate's: none of its cases was chosen."""
    run = make_run({"a": "failed", "b": "passed"}, partial=True, selections=(CaseSelection(cases=("a", "b")),))
    baseline = Baseline(make_run({"x": "passed"}), "b")
    assert judge_against(run, baseline, Policy(rules_of("regressions"))).verdict.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("names", "end"), [("abc", ": a, b, c"), ("abcd", ": a, b, c and 1 more"), ("abcdef", ": a, b, c and 3 more")]
)
def test_decide__cases_that_must_pass_and_fail__are_named_up_to_three(names, end) -> None:
    found = verdict(dict.fromkeys([*names, "other"], "failed"), None, "failures", must_pass=tuple(names))
    message = next(reason.message for reason in found.reasons if reason.code == "must-pass")
    assert message.endswith(end)


@pytest.mark.parametrize(
    ("now", "words"), [({"a": "failed"}, "1 case failed"), ({"a": "failed", "b": "failed"}, "2 cases failed")]
)
def test_decide__failures__are_counted_in_words(now, words) -> None:
    assert [reason.message for reason in verdict(now).reasons] == [f"{words} (limit 0)"]


def test_new_failures__case_that_failed_before__is_none() -> None:
    policy = Policy(frozenset({FailOn.REGRESSIONS, FailOn.NEW_FAILURES}))
    baseline = Baseline(make_baseline_run({"a": "failed"}), "b")
    found = judge_against(make_run({"a": "failed", "new": "passed"}), baseline, policy).verdict
    assert found is not None
    assert found.outcome is Outcome.PASSED
