"""The evidence that a case is worse than its record, and when to run it again."""

import math
from functools import cache

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from eval_gate.gate.evidence.prior import DEFAULT_PRIOR, MIN_FAILURE_RATE, STEADY_RATE, Prior, learn_prior
from eval_gate.gate.evidence.rerun_decision import (
    FIX_RERUNS,
    MIN_RERUN_EVIDENCE,
    RerunCriteria,
    RerunStep,
    Suspicion,
    compute_e_value,
    find_suspicion,
    is_known_failure,
    is_unsteady,
)
from eval_gate.gate.evidence.thresholds import ExecutionLimits, compute_run_thresholds
from eval_gate.model.evidence import CaseHistorySummary, Counts, Stability
from eval_gate.struct import replace
from tests.support.histories import learned

RECORDS = st.builds(Counts, passes=st.integers(0, 20), failures=st.integers(0, 20))
PASSING = RECORDS.filter(lambda history: not history.is_failing)
PRIORS = st.builds(Prior.from_counts, passes=st.floats(3, 30), failures=st.floats(0.05, 3))
STEADY_PRIORS = st.builds(lambda prior, steady: replace(prior, steady=steady), PRIORS, st.floats(0, 1))
"""Of suites in which some cases next to never failed."""
CONFIRMATIONS = st.builds(
    RerunCriteria,
    cases=st.integers(0, 1000),
    prior=PRIORS,
    false_alarm_rate=st.sampled_from([0.01, 0.05, 0.2]),
    max_reruns=st.integers(0, 8),
)
CLEAN = Counts(passes=10)


def seen(letters: str) -> Counts:
    return Counts(passes=letters.count("P"), failures=letters.count("F"))


def steps(confirmation: RerunCriteria, letters: str, history: Counts = CLEAN, kind=Suspicion.REGRESSION) -> str:
    """The results that are asked for out of these, and the last step."""
    for length in range(1, len(letters) + 1):
        step = confirmation.decide_next_step(
            kind, history, seen(letters[:length]), confirmation.max_reruns + 1 - length
        )
        if step is not RerunStep.AGAIN:
            return f"{letters[:length]} {step.value}"
    return f"{letters} again"


@pytest.mark.contract("verdict.evidence.valid")
@given(STEADY_PRIORS, RECORDS, st.integers(0, 12))
def test_e_value__nothing_has_changed__has_mean_one(prior, history, runs) -> None:
    """Every sequence of that length, weighted by its chance."""
    mean = 0.0
    for failures in range(runs + 1):
        here = Counts(passes=runs - failures, failures=failures)
        chance = math.comb(runs, failures) * math.exp(prior.add_history(history).compute_log_chance(here))
        mean += chance * compute_e_value(prior, history, here)
    assert mean == pytest.approx(1)


@pytest.mark.contract("verdict.evidence.valid")
@given(PRIORS, PASSING, st.sampled_from([20, 100, 2000]))
def test_next_step__nothing_has_changed__stops_with_mean_one_and_seldom_confirms(prior, history, cases) -> None:
    """The whole tree of first execution and re-runs, with stopping, weighted by the chances of the record."""
    confirmation = RerunCriteria(cases, prior, max_reruns=6)

    @cache
    def walk(failures: int, passes: int) -> tuple[float, float]:
        """Mean of the evidence where one stops, and chance of being confirmed by evidence."""
        here = Counts(passes=passes, failures=failures)
        step = None
        if here.executions:
            step = confirmation.decide_next_step(Suspicion.REGRESSION, history, here, 7 - here.executions)
        if here.executions and step is not RerunStep.AGAIN:
            sure = step is RerunStep.CONFIRMED and confirmation.has_enough_evidence(Suspicion.REGRESSION, history, here)
            return compute_e_value(prior, history, here), float(sure)
        after = prior.add_history(history).add_history(here)
        failing, passing = walk(failures + 1, passes), walk(failures, passes + 1)
        share = after.pass_rate
        return (1 - share) * failing[0] + share * passing[0], (1 - share) * failing[1] + share * passing[1]

    mean, confirmed = walk(0, 0)
    assert mean == pytest.approx(1)
    assert confirmed <= 1 / confirmation.threshold


@given(CONFIRMATIONS, PASSING, st.integers(1, 6), st.integers(1, 6))
def test_next_step__passed_and_little_evidence_left__is_not_run_again(confirmation, history, failures, passes) -> None:
    here = Counts(passes=passes, failures=failures)
    step = confirmation.decide_next_step(Suspicion.REGRESSION, history, here, 6)
    if compute_e_value(confirmation.prior, history, here) < MIN_RERUN_EVIDENCE:
        assert step is RerunStep.INCONCLUSIVE


def test_next_step__evidence_stays__is_run_more_than_six_times() -> None:
    """It fails every other time: the seventh execution decides nothing, and the ninth confirms it."""
    confirmation = RerunCriteria(500, learned([CLEAN] * 400 + [Counts(passes=9, failures=1)] * 100))
    assert steps(confirmation, "FPFPFPFPFPFPF") == "FPFPFPFPF confirmed"
    assert steps(replace(confirmation, max_reruns=6), "FPFPFPF").endswith("inconclusive")
    assert steps(confirmation, "FPPPPPP") == "FPPP inconclusive"


def test_next_step__a_fix__is_run_as_often_as_a_row_of_passes_needs() -> None:
    confirmation = RerunCriteria(100)
    failing = Counts(passes=1, failures=9)
    assert steps(confirmation, "P" * 13, failing, Suspicion.FIX) == f"{'P' * (FIX_RERUNS + 1)} inconclusive"


@given(STEADY_PRIORS, PASSING, st.integers(0, 30), st.integers(0, 30))
def test_e_value__one_more__grows_with_a_failure_and_shrinks_with_a_pass(prior, history, failures, passes) -> None:
    now = compute_e_value(prior, history, Counts(passes=passes, failures=failures))
    assert compute_e_value(prior, history, Counts(passes=passes, failures=failures + 1)) >= now * (1 - 1e-9)
    assert compute_e_value(prior, history, Counts(passes=passes + 1, failures=failures)) <= now * (1 + 1e-9)


@given(PRIORS, PASSING)
def test_e_value__four_failures__are_worth_less_after_a_failure_on_record(prior, history) -> None:
    """Of a case that passes most of the time: near one half, one failure more mainly makes its rate better known."""
    assume(4 * history.failures <= history.passes)
    worse = history.add(Counts(failures=1))
    assert compute_e_value(prior, worse, seen("FFFF")) < compute_e_value(prior, history, seen("FFFF"))


def test_e_value__nothing_seen__shows_nothing() -> None:
    assert compute_e_value(DEFAULT_PRIOR, CLEAN, Counts()) == 1.0


def test_e_value__absurdly_many_failures__stays_a_number() -> None:
    assert math.isfinite(compute_e_value(DEFAULT_PRIOR, CLEAN, Counts(failures=100_000)))


@pytest.mark.contract("verdict.suspect")
@pytest.mark.parametrize(
    ("history", "first", "asked"),
    [
        ("P", "F", Suspicion.REGRESSION),
        ("PPPF", "F", Suspicion.REGRESSION),
        ("", "F", Suspicion.REGRESSION),
        ("PF", "F", Suspicion.REGRESSION),
        ("FF", "F", None),
        ("F", "F", None),
        ("P", "P", None),
        ("F", "P", None),
        ("P", "", None),
        ("PPP", "FFP", Suspicion.REGRESSION),
        ("PPP", "FP", Suspicion.REGRESSION),
        ("PPP", "FPP", None),
    ],
)
def test_doubt__record_and_first_execution__asks_only_where_it_fails_and_used_to_pass(history, first, asked) -> None:
    assert find_suspicion(CaseHistorySummary(counts=seen(history)), seen(first)) is asked


@pytest.mark.contract("verdict.must-pass")
def test_doubt__must_pass__asks_whatever_the_record() -> None:
    for history in ("", "P", "F", "PF"):
        assert (
            find_suspicion(CaseHistorySummary(counts=seen(history)), seen("F"), must_pass=True) is Suspicion.MUST_PASS
        )
        assert find_suspicion(CaseHistorySummary(counts=seen(history)), seen("P"), must_pass=True) is None


@pytest.mark.contract("verdict.new-pass")
@pytest.mark.parametrize(
    ("history", "stability", "asked"),
    [
        ("FFP", Stability.FLAKY, Suspicion.NEW_PASS),
        ("FFP", Stability.CHANGED, None),
        ("FFF", Stability.FAILING, None),
        ("FP", Stability.FLAKY, None),
        ("PPF", Stability.FLAKY, None),
    ],
)
def test_doubt__passes__asks_only_where_the_history_calls_it_flaky(history, stability, asked) -> None:
    assert find_suspicion(CaseHistorySummary(counts=seen(history), stability=stability), seen("P")) is asked


@pytest.mark.contract("verdict.new-pass")
@pytest.mark.parametrize(
    ("history", "stability", "asked"),
    [
        ("FFF", Stability.FAILING, Suspicion.FIX),
        ("PFFF", Stability.CHANGED, Suspicion.FIX),
        ("PFFF", Stability.FLAKY, Suspicion.NEW_PASS),
        ("F", Stability.FAILING, None),
        ("PPFF", Stability.CHANGED, None),
    ],
)
def test_doubt__passes_what_the_newest_run_failed__asks_whether_it_is_fixed(history, stability, asked) -> None:
    summary = CaseHistorySummary(counts=seen(history), stability=stability, newest_failed=True)
    assert find_suspicion(summary, seen("P")) is asked
    assert find_suspicion(replace(summary, newest_failed=False), seen("P")) is not Suspicion.FIX


@pytest.mark.contract("verdict.stop")
@pytest.mark.parametrize(
    ("letters", "asked"), [("PPPPPPP", "PPPPPPP inconclusive"), ("PPF", "PPF inconclusive"), ("P", "P again")]
)
def test_fix__passes__is_run_again_until_it_fails(letters, asked) -> None:
    assert steps(RerunCriteria(100), letters, seen("FFFF"), Suspicion.FIX) == asked


@pytest.mark.contract("verdict.evidence", "verdict.stop")
@pytest.mark.parametrize(
    ("letters", "history", "cases", "asked"),
    [
        ("FFFFFFF", "P" * 10, 100, "FFFF confirmed"),
        ("FFFFFFF", "P" * 20, 100, "FFFF confirmed"),
        ("FFFFFFF", "P" * 19 + "F", 100, "FFFF confirmed"),
        ("FFFFFFF", "P", 20, "FFFFF confirmed"),
        ("FPP", "P" * 10, 100, "FPP inconclusive"),
        ("FP", "PPPPPPF", 100, "FP inconclusive"),
        ("FPFFFFF", "P" * 10, 100, "FPFFFFF confirmed"),
        ("F", "P" * 1000, 1, "F again"),
    ],
)
def test_next_step__results__ends_as_soon_as_it_is_decided(letters, history, cases, asked) -> None:
    assert steps(RerunCriteria(cases, max_reruns=6), letters, seen(history)) == asked


@pytest.mark.contract("verdict.plain")
@given(PASSING, st.integers(1, 1000))
def test_next_step__no_reruns__is_the_plain_rule(history, cases) -> None:
    assert (
        RerunCriteria(cases, max_reruns=0).decide_next_step(Suspicion.REGRESSION, history, seen("F"), 0)
        is RerunStep.CONFIRMED
    )


@pytest.mark.slow
@pytest.mark.contract("verdict.evidence.few-reruns")
@given(CONFIRMATIONS, PASSING)
def test_next_step__fails_every_time__is_confirmed_however_few_reruns_there_are(confirmation, history) -> None:
    assume(not is_unsteady(history) or not confirmation.max_reruns)
    assert steps(confirmation, "F" * (confirmation.max_reruns + 1), history).endswith(" confirmed")


@pytest.mark.contract("verdict.evidence.few-reruns")
@pytest.mark.parametrize(
    ("history", "asked"),
    [
        ("PPPPPPPPFF", "FFFFFFF confirmed"),  # one time in five
        ("PPPPPPPFFF", "F inconclusive"),  # more often, and seven failures are too few for 5,000 cases
    ],
)
def test_next_step__fails_every_time_and_now_and_then_on_record__needs_the_evidence(history, asked) -> None:
    assert steps(RerunCriteria(5_000, max_reruns=6), "F" * 7, seen(history)) == asked
    assert steps(RerunCriteria(1, max_reruns=6), "F" * 7, seen(history)).endswith(" confirmed")


@pytest.mark.contract("verdict.evidence.few-reruns")
def test_suffices__two_reruns_of_500_cases__is_told_from_enough_evidence() -> None:
    few, many = RerunCriteria(500, max_reruns=2), RerunCriteria(500)
    assert steps(few, "FFF") == "FFF confirmed"
    assert not few.has_enough_evidence(Suspicion.REGRESSION, CLEAN, seen("FFF"))
    assert steps(many, "FFFFFFF") == "FFFFF confirmed"
    assert many.has_enough_evidence(Suspicion.REGRESSION, CLEAN, seen("FFFFF"))


@pytest.mark.contract("verdict.must-pass")
@pytest.mark.parametrize(
    ("letters", "reruns", "asked"),
    [
        ("FF", 6, "FF confirmed"),
        ("FPF", 6, "FPF confirmed"),
        ("FPP", 6, "FPP inconclusive"),
        ("FP", 1, "FP inconclusive"),
        ("FF", 1, "FF confirmed"),
        ("F", 0, "F confirmed"),
    ],
)
def test_next_step__must_pass__is_confirmed_by_the_second_failure(letters, reruns, asked) -> None:
    assert steps(RerunCriteria(100, max_reruns=reruns), letters, seen("F" * 10), Suspicion.MUST_PASS) == asked


@pytest.mark.contract("verdict.new-pass")
def test_next_step__new_pass__is_the_same_the_other_way_round() -> None:
    swap = str.maketrans("PF", "FP")
    history = seen("FFFFFFFP")
    for letters in ("PPPPPPP", "PF", "PPPFPPP"):
        mirrored = steps(RerunCriteria(100), letters.translate(swap), history.inverse)
        # how steadily the suite passes says nothing about a case that fails
        found = steps(RerunCriteria(100, Prior.from_counts(29.4, 0.6)), letters, history, Suspicion.NEW_PASS)
        assert found.split()[0].translate(swap) == mirrored.split()[0]
        assert found.split()[1] == mirrored.split()[1]


@pytest.mark.contract("verdict.new-pass")
def test_next_step__new_pass_of_a_case_that_fails_on_record__is_not_held_to_what_reruns_cannot_bring() -> None:
    confirmation = RerunCriteria(5_000, max_reruns=1)
    assert steps(confirmation, "PP", seen("FFFFFFFP"), Suspicion.NEW_PASS) == "PP confirmed"
    assert steps(confirmation, "FF", seen("PPPPPPPFFF")) == "F inconclusive"


def severity(confirmation: RerunCriteria, letters: str, history: Counts, kind: Suspicion) -> int:
    return ["inconclusive", "again", "confirmed"].index(steps(confirmation, letters, history, kind).split()[1])


@pytest.mark.contract("verdict.monotone")
@given(CONFIRMATIONS, PASSING, st.text("PF", max_size=8), st.data())
def test_next_step__a_pass_more_or_a_failure_instead__is_never_milder(confirmation, history, tail, data) -> None:
    letters = "F" + tail[: confirmation.max_reruns].ljust(confirmation.max_reruns, "F")
    at = data.draw(st.integers(0, len(letters) - 1))
    worse = letters[:at] + "F" + letters[at + 1 :]
    for kind in (Suspicion.REGRESSION, Suspicion.MUST_PASS):
        assert severity(confirmation, worse, history, kind) >= severity(confirmation, letters, history, kind)


@given(CONFIRMATIONS, PASSING, st.integers(1, 5), st.integers(0, 5), st.integers(0, 8))
def test_next_step__anything__is_defined_and_ends(confirmation, history, failures, passes, remaining) -> None:
    here = Counts(passes=passes, failures=failures)
    step = confirmation.decide_next_step(Suspicion.REGRESSION, history, here, remaining)
    assert remaining or step is not RerunStep.AGAIN
    assert 0 <= confirmation.compute_chance(Suspicion.REGRESSION, history, here) <= 1


def test_known_to_fail__newest_failure__excuses_unless_it_is_known_to_come_and_go() -> None:
    newest = Counts(failures=1)
    flaky = CaseHistorySummary(
        counts=seen("PPPPPFFFFF"), stability=Stability.FLAKY, newest_run=newest, newest_failed=True
    )
    steady = CaseHistorySummary(
        counts=seen("PPPPPPPPPF"), stability=Stability.CHANGED, newest_run=newest, newest_failed=True
    )
    assert not is_known_failure(flaky)
    assert is_known_failure(steady)
    assert is_known_failure(CaseHistorySummary(counts=seen("FF")))


def test_next_step__three_failures_of_seven__suffice_where_nothing_ever_fails() -> None:
    prior = learned([CLEAN] * 200)
    asked = compute_run_thresholds(prior, {(10, 0): 200}, 200, ExecutionLimits(6), 0.05)
    assert asked is not None
    confirmation = RerunCriteria(200, prior, max_reruns=6, thresholds=asked)
    assert steps(confirmation, "FPPFF").endswith(" confirmed")
    assert steps(confirmation, "FPPPPPP").endswith(" inconclusive")


@given(STEADY_PRIORS, st.integers(1, 30), st.integers(0, 3), st.integers(2, 8))
def test_e_value__one_more_pass_on_record__never_weakens_a_row_of_failures(prior, passes, failures, row) -> None:
    history = Counts(passes=passes + 4, failures=failures)
    more = history.add(Counts(passes=1))
    assert compute_e_value(prior, more, Counts(failures=row)) >= compute_e_value(
        prior, history, Counts(failures=row)
    ) * (1 - 1e-9)


@given(st.integers(1, 60), st.integers(0, 2_000))
def test_next_step__cases_that_pass_on_both_sides_are_added__a_dead_case_stays_red(cases, added) -> None:
    """It never failed on record: however many others there are, failing every time is a regression."""
    for number in (cases, cases + added):
        prior = learn_prior({(10, 0): number})
        asked = compute_run_thresholds(prior, {(10, 0): number}, number, ExecutionLimits(6), 0.05)
        assert asked is not None
        confirmation = RerunCriteria(
            number,
            prior,
            max_reruns=6,
            thresholds=asked,
        )
        assert steps(confirmation, "F" * 7).endswith(" confirmed")


@pytest.mark.contract("verdict.evidence")
@given(
    st.dictionaries(st.sampled_from([(10, 0), (9, 1), (8, 2), (7, 3), (5, 5)]), st.integers(1, 40), min_size=1),
    st.integers(0, 2_000),
    st.builds(Counts, passes=st.integers(4, 12), failures=st.integers(0, 1)),
    st.builds(Counts, passes=st.integers(0, 2), failures=st.integers(2, 7)),
)
def test_suffices__cases_that_pass_on_both_sides_are_added__evidence_of_all_cases_over_alpha_is_enough(
    histories, added, history, here
) -> None:
    """What is proof among few cases need not be among many, but never more is asked than N / α."""
    kinds = histories | {(10, 0): histories.get((10, 0), 0) + added}
    number, prior = sum(kinds.values()), learn_prior(kinds)
    asked = compute_run_thresholds(prior, kinds, number, ExecutionLimits(6), 0.05)
    assert asked is not None
    confirmation = RerunCriteria(number, prior, max_reruns=6, thresholds=asked)
    proof = compute_e_value(prior, history, here) >= number / 0.05
    assert confirmation.has_enough_evidence(Suspicion.REGRESSION, history, here) or not proof


def test_suffices__what_is_proof_among_few__is_none_among_many() -> None:
    """Where the promise about added cases ends: a case that passed when it was run again."""
    here, found = Counts(passes=1, failures=3), []
    for number in (20, 2_000):
        kinds = {(10, 0): number}
        prior = learn_prior(kinds)
        asked = compute_run_thresholds(prior, kinds, number, ExecutionLimits(6), 0.05)
        assert asked is not None
        confirmation = RerunCriteria(
            number,
            prior,
            max_reruns=6,
            thresholds=asked,
        )
        found.append(confirmation.has_enough_evidence(Suspicion.REGRESSION, CLEAN, here))
    assert found == [True, False]


@pytest.mark.contract("verdict.evidence.valid")
@given(STEADY_PRIORS, PASSING)
def test_e_value__nothing_has_changed_and_cases_are_steadier_than_believed__has_mean_one_at_most(
    prior, history
) -> None:
    """Of every suite: that cases are believed to fail more than they do makes evidence rarer, however one stops."""
    confirmation = RerunCriteria(100, prior, max_reruns=6)

    @cache
    def walk(failures: int, passes: int) -> float:
        here = Counts(passes=passes, failures=failures)
        if (
            here.executions
            and confirmation.decide_next_step(Suspicion.REGRESSION, history, here, 7 - here.executions)
            is not RerunStep.AGAIN
        ):
            return compute_e_value(prior, history, here)
        # a case that was steady until now fails as seldom as before
        known = prior.add_history(history).add_history(here)
        share = known.pass_rate + known.weights[0] * known.steady * (MIN_FAILURE_RATE - STEADY_RATE)
        return (1 - share) * walk(failures + 1, passes) + share * walk(failures, passes + 1)

    assert walk(0, 0) <= 1 + 1e-9
