"""What becomes of each case."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.gate.evidence.agent_errors import learn_error_share
from eval_gate.gate.evidence.case_classification import CaseFacts, Classification, classify_cases, decide_next_step
from eval_gate.gate.evidence.flakiness import CaseRun, build_case_history
from eval_gate.gate.evidence.rerun_decision import RerunCriteria, RerunStep, Suspicion
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass
from eval_gate.model.evidence import NO_HISTORY, Counts, ErrorRun, GroundKind, Grounds
from eval_gate.model.result import RerunStopReason
from eval_gate.struct import replace
from tests.support.histories import learned

CLEAN = "P" * 10
CONFIRMATION = RerunCriteria(100, max_reruns=6)
SEVERITY = {
    CaseClass.STILL_PASSING: 0,
    CaseClass.NEW_PASS: 0,
    CaseClass.FLAKY: 1,
    CaseClass.INCONCLUSIVE: 2,
    CaseClass.STILL_FAILING: 2,
    CaseClass.ERRORED: 3,
    CaseClass.SUSPECTED_REGRESSION: 3,
    CaseClass.REGRESSION: 4,
}


def counts(letters: str) -> Counts:
    return Counts(passes=letters.count("P"), failures=letters.count("F"))


def facts(history: str, first: str, again: str = "", **fields) -> CaseFacts:
    """A case; `history` newest first. Its plain class is that against the newest run on record."""
    passed_then, passes = history[:1] == "P", not counts(first).is_failing
    if passes:
        plain = CaseClass.STILL_PASSING if passed_then else CaseClass.NEW_PASS
    else:
        plain = CaseClass.REGRESSION if passed_then else CaseClass.STILL_FAILING
    seen = [CaseRun(f"r{number}", counts(letter)) for number, letter in enumerate(history)]
    values = {"key": CaseKey("a.json", "c"), "plain_class": plain, "history": build_case_history(seen)}
    return CaseFacts(**(values | fields), first=counts(first), reruns=counts(again))


def class_of(case: CaseFacts, confirmation: RerunCriteria = CONFIRMATION) -> tuple[str, str | None]:
    settled = classify_cases([case], confirmation).cases[0]
    return settled.case_class.value, settled.grounds.kind.value if settled.grounds else None


@pytest.mark.contract("verdict.outcome")
@pytest.mark.parametrize(
    ("history", "first", "again", "expected"),
    [
        # fails here
        (CLEAN, "F", "FFF", ("regression", "evidence")),
        (CLEAN, "F", "PP", ("inconclusive", "recovered")),
        (CLEAN, "F", "PFFFPF", ("inconclusive", "recovered")),
        (CLEAN, "F", "", ("errored", "missing_reruns")),
        (CLEAN, "F", "F", ("errored", "missing_reruns")),
        ("F" * 10, "F", "", ("still_failing", None)),
        ("PFFFPFFFFF", "F", "", ("still_failing", "usual_result")),
        ("FPPPPPPPPP", "F", "FFFF", ("still_failing", "main_broke")),
        ("PFPPPPPPPP", "F", "FFFFF", ("regression", "evidence")),
        ("FFPPPPPPPP", "F", "", ("still_failing", None)),
        # passes here
        (CLEAN, "P", "", ("still_passing", None)),
        ("FPPPPPPPPP", "P", "", ("still_passing", "usual_result")),
        ("F" * 10, "P", "", ("new_pass", None)),
        ("FF", "P", "", ("new_pass", None)),
        ("FPFFFFFFPF", "P", "PPPPPP", ("new_pass", "evidence")),
        ("FPFFFFFFPF", "P", "F", ("flaky", "mixed")),
        ("FPFFFFFFPF", "P", "", ("flaky", "usual_result")),
        (CLEAN, "PPF", "", ("flaky", "mixed")),
        # as often passed as failed
        ("FP", "F", "", ("still_failing", None)),
        ("PF", "F", "", ("inconclusive", "recovered")),
        ("FP", "P", "", ("new_pass", None)),
        ("PF", "P", "", ("still_passing", None)),
    ],
)
def test_classify__one_case__becomes_this(history, first, again, expected) -> None:
    assert class_of(facts(history, first, again)) == expected


@pytest.mark.contract("verdict.plain", "verdict.evidence.few-reruns")
@pytest.mark.parametrize(
    ("reruns", "again", "expected"),
    [
        (0, "", ("regression", "every_run")),
        (1, "F", ("regression", "every_run")),
        (1, "P", ("inconclusive", "recovered")),
        (2, "FF", ("regression", "every_run")),
        (6, "FFF", ("regression", "evidence")),
    ],
)
def test_classify__fewer_reruns__says_that_it_rests_on_less(reruns, again, expected) -> None:
    assert class_of(facts(CLEAN, "F", again), RerunCriteria(100, max_reruns=reruns)) == expected


@pytest.mark.contract("verdict.must-pass")
@pytest.mark.parametrize(
    ("history", "again", "expected"),
    [
        (CLEAN, "F", ("regression", "must_pass")),
        ("F" * 10, "F", ("still_failing", "must_pass")),
        (CLEAN, "PP", ("inconclusive", "recovered")),
        ("F" * 10, "PP", ("still_failing", None)),
        (CLEAN, "", ("errored", "missing_reruns")),
    ],
)
def test_classify__must_pass__is_decided_by_the_second_failure(history, again, expected) -> None:
    assert class_of(facts(history, "F", again, must_pass=True)) == expected


@pytest.mark.contract("verdict.must-pass")
@pytest.mark.parametrize(("again", "why"), [("F", "must_pass"), ("PP", "recovered"), ("", "missing_reruns")])
def test_classify__must_pass_and_new__keeps_its_class_and_says_what_came_of_it(again, why) -> None:
    case = facts("", "F", again, must_pass=True, plain_class=CaseClass.ADDED)
    assert class_of(case) == ("added", why)
    grounds = classify_cases([case], CONFIRMATION).cases[0].grounds
    assert grounds is not None
    assert grounds.chance is None


@pytest.mark.contract("verdict.record.changed")
@pytest.mark.parametrize("plain", sorted(one for one in CaseClass if not one.is_compared))
def test_classify__removed_changed_or_not_judged__stays_what_it_is(plain) -> None:
    judged = facts(CLEAN, "F", "FFFFFF", plain_class=plain)
    absent = facts(CLEAN, "", plain_class=plain)
    # all of many, so that the suite would drop too
    for case in (judged, absent):
        settlement = classify_cases([case] * 30, CONFIRMATION)
        assert {one.case_class for one in settlement.cases} == {plain}
        assert decide_next_step(case, CONFIRMATION) is None
        assert settlement.suite_finding.cases == 0


def test_classify__no_cases__nothing_has_happened() -> None:
    settlement = classify_cases([], CONFIRMATION)
    assert settlement.cases == ()
    assert not settlement.suite_finding.is_drop


@pytest.mark.contract("verdict.outcome")
def test_classify__regression__can_be_put_in_words() -> None:
    grounds = classify_cases([facts("P" * 12, "F", "FFF")], CONFIRMATION).cases[0].grounds
    assert grounds is not None
    assert (grounds.kind, grounds.current, grounds.history, grounds.reruns) == (
        GroundKind.EVIDENCE,
        Counts(failures=4),
        Counts(passes=12),
        3,
    )
    assert grounds.chance == pytest.approx(8.274e-5, rel=1e-3)
    assert grounds.one_in == 10_000
    assert msgspec.json.decode(msgspec.json.encode(grounds).decode(), type=Grounds) == grounds


@pytest.mark.parametrize(
    ("chance", "odds"),
    [
        (None, None),
        (1.0, 1),
        (0.3, 3),
        (1 / 72.9, 72),
        (1 / 149, 100),
        (1 / 51_234, 50_000),
        (1e-9, 1_000_000),
        (0.0, 1_000_000),
    ],
)
def test_one_in__chance__is_rounded_to_what_one_can_believe(chance, odds) -> None:
    assert Grounds(kind=GroundKind.SUITE_DROP, current=Counts(), history=Counts(), chance=chance).one_in == odds


def suite(failing: int, **fields) -> list[CaseFacts]:
    """A hundred cases that never failed, so many of which fail here and recover."""
    cases = [facts(CLEAN, "F", "PP") for _ in range(failing)] + [facts(CLEAN, "P") for _ in range(100 - failing)]
    return [replace(case, key=CaseKey("a.json", f"c{at}"), **fields) for at, case in enumerate(cases)]


@pytest.mark.contract("verdict.suite")
def test_classify__more_failures_than_the_records_explain__makes_regressions_of_them() -> None:
    many, few = classify_cases(suite(9), CONFIRMATION), classify_cases(suite(5), CONFIRMATION)
    assert many.suite_finding.is_drop
    assert [one.case_class.value for one in many.cases[:10]] == ["regression"] * 9 + ["still_passing"]
    assert {one.grounds.kind for one in many.cases if one.grounds} == {GroundKind.SUITE_DROP}
    assert not few.suite_finding.is_drop
    assert few.suite_finding.failures > 9 * few.suite_finding.expected
    assert {one.case_class.value for one in few.cases} == {"inconclusive", "still_passing"}


@pytest.mark.contract("verdict.suite")
def test_classify__dead_cases__make_no_regressions_of_the_others() -> None:
    dead = [facts(CLEAN, "F", "FFF", key=CaseKey("b.json", f"c{at}")) for at in range(20)]
    settlement = classify_cases([*suite(2), *dead], CONFIRMATION)
    assert [one.case_class.value for one in settlement.cases[:2]] == ["inconclusive"] * 2
    assert {one.case_class.value for one in settlement.cases[-20:]} == {"regression"}
    assert not settlement.suite_finding.is_drop


def test_classify__drop_of_the_suite__needs_no_missing_reruns() -> None:
    broken = [replace(case, reruns=Counts()) for case in suite(9)]
    assert classify_cases(broken, CONFIRMATION).cases[0].case_class is CaseClass.REGRESSION


@pytest.mark.contract("verdict.suspect")
@pytest.mark.parametrize(
    ("case", "step"),
    [
        (facts(CLEAN, "F"), RerunStep.AGAIN),
        (facts(CLEAN, "F", "FFF"), RerunStep.CONFIRMED),
        (facts(CLEAN, "F", "FPPPPP"), RerunStep.INCONCLUSIVE),
        (facts(CLEAN, "P"), None),
        (facts("F", "F"), None),
        (facts("FPFFFFFFPF", "P"), RerunStep.AGAIN),
        (facts(CLEAN, "F", plain_class=CaseClass.INCOMPARABLE), None),
        (facts("", "F", plain_class=CaseClass.ADDED, must_pass=True), RerunStep.AGAIN),
    ],
    ids=str,
)
def test_next_step__case__says_what_to_do(case, step) -> None:
    assert decide_next_step(case, CONFIRMATION) is step


TAPES = st.tuples(st.text("PF", min_size=1, max_size=12), st.text("PF", min_size=9, max_size=9))


def run_through(tapes: list[tuple[str, str]], trials: int, reruns: int, allowed: int = 0) -> Classification:
    """The whole story: first executions, re-runs as they are asked for, each case from its own tape of results."""
    cases = [facts(history, tape[:trials], key=CaseKey("a.json", f"c{at}")) for at, (history, tape) in enumerate(tapes)]
    prior = learned(case.history.counts for case in cases)
    confirmation = RerunCriteria(len(cases), prior, max_reruns=reruns)
    for at, (_, tape) in enumerate(tapes):
        left = tape[trials:]
        while decide_next_step(cases[at], confirmation) is RerunStep.AGAIN:
            cases[at] = replace(cases[at], reruns=cases[at].reruns.add(counts(left[0])))
            left = left[1:]
    return classify_cases(cases, confirmation, allowed=allowed)


@pytest.mark.slow
@pytest.mark.contract("verdict.monotone", "verdict.trials")
@given(
    st.lists(TAPES, min_size=1, max_size=12), st.sampled_from([1, 3]), st.integers(0, 6), st.integers(0, 3), st.data()
)
def test_classify__a_failure_instead_of_a_pass__is_never_milder(tapes, trials, reruns, allowed, data) -> None:
    at = data.draw(st.integers(0, len(tapes) - 1))
    place = data.draw(st.integers(0, 8))
    history, tape = tapes[at]
    worse = [*tapes[:at], (history, tape[:place] + "F" + tape[place + 1 :]), *tapes[at + 1 :]]
    before, after = run_through(tapes, trials, reruns, allowed), run_through(worse, trials, reruns, allowed)
    if not allowed:  # an allowed drop of the suite may end with one of its cases, which then is no part of it any more
        assert SEVERITY[after.cases[at].case_class] >= SEVERITY[before.cases[at].case_class]
    red = [sum(one.case_class is CaseClass.REGRESSION for one in settlement.cases) for settlement in (before, after)]
    assert (red[1] > allowed) >= (red[0] > allowed)


@pytest.mark.slow
@pytest.mark.contract("verdict.order")
@given(st.lists(TAPES, max_size=12), st.randoms(use_true_random=False))
def test_classify__cases_in_another_order__become_the_same(tapes, random) -> None:
    order = random.sample(range(len(tapes)), len(tapes))
    settled = run_through(tapes, 1, 6)
    shuffled = run_through([tapes[at] for at in order], 1, 6)
    assert [one.case_class for one in shuffled.cases] == [settled.cases[at].case_class for at in order]
    assert shuffled.suite_finding == settled.suite_finding


@pytest.mark.slow
@pytest.mark.contract("verdict.order")
@given(st.text("PF", min_size=2, max_size=6), st.randoms(use_true_random=False))
def test_classify__reruns_in_another_order__rest_on_the_same_counts(again, random) -> None:
    shuffled = "".join(random.sample(again, len(again)))
    assert class_of(facts(CLEAN, "F", shuffled)) == class_of(facts(CLEAN, "F", again))


def crashed(history: str, first: str, again: str = "", **fields) -> CaseFacts:
    """The same where `C` is an execution that ended in an agent error, and the first response counts as the first."""

    def seen(letters: str) -> Counts:
        return replace(counts(letters), agent_errors=letters.count("C"))

    repeated = 0 if counts(first).executions else len(again) - len(again.lstrip("C")) + (again.strip("C") != "")
    first, again = first + again[:repeated], again[repeated:]
    made = facts(history.replace("C", ""), first.replace("C", ""), **fields)
    plain = CaseClass.REGRESSION if history.replace("C", "")[:1] == "P" else CaseClass.STILL_FAILING
    known = build_case_history([CaseRun(f"r{number}", seen(letter)) for number, letter in enumerate(history)])
    if not counts(first).executions:
        made = replace(made, plain_class=plain)
    return replace(made, history=known, first=seen(first), reruns=seen(again), repeated=repeated)


ERRORLESS = learn_error_share((ErrorRun(errors=0, executions=60),) * 10)
"""What ten runs of main without an agent error say."""


@pytest.mark.contract("verdict.crash")
@pytest.mark.parametrize(
    ("history", "first", "again", "expected"),
    [
        (CLEAN, "C", "CC", ("regression", "evidence")),
        (CLEAN, "C", "C", ("errored", "missing_reruns")),
        (CLEAN, "C", "CFFFF", ("regression", "evidence")),
        (CLEAN, "C", "FCFFF", ("regression", "evidence")),
        (CLEAN, "C", "FCCCCC", ("errored", "missing_reruns")),
        (CLEAN, "C", "P", ("still_passing", None)),
        (CLEAN, "F", "CCPPPP", ("inconclusive", "recovered")),
        (CLEAN, "FFP", "CCCCCC", ("errored", "missing_reruns")),
        (CLEAN, "FFP", "CCCCCP", ("inconclusive", "recovered")),
        ("CCC" + "P" * 7, "F", "FFF", ("regression", "evidence")),
        ("CF" + "P" * 8, "F", "", ("still_failing", "main_broke")),
        ("F" * 10, "C", "", ("still_failing", None)),
    ],
    ids=[
        "always",
        "once more",
        "errors and fails",
        "fails and errors",
        "one response",
        "recovered",
        "errors after a failure",
        "errors after trials",
        "one response after trials",
        "main errs",
        "main broke before it erred",
        "fails on main",
    ],
)
def test_classify__agent_errors__are_repeated_and_only_responses_are_judged(history, first, again, expected) -> None:
    others = [facts(CLEAN, "P", key=CaseKey("a.json", f"c{at}")) for at in range(59)]
    case = crashed(history, first, again)
    settled = classify_cases([case, *others], replace(CONFIRMATION, cases=60), error_share=ERRORLESS).cases[0]
    assert (settled.case_class.value, settled.grounds.kind.value if settled.grounds else None) == expected


@pytest.mark.contract("verdict.crash")
def test_classify__many_crashes_that_recovered__are_no_drop_of_the_suite() -> None:
    """An outage of minutes breaks many cases at once; what answers when it is asked again has lost nothing."""
    cases = [crashed(CLEAN, "C", "P", key=CaseKey("a.json", f"c{at}")) for at in range(20)]
    settlement = classify_cases([*cases, *suite(0)], CONFIRMATION, error_share=ERRORLESS)
    assert not settlement.suite_finding.is_drop
    assert settlement.error_finding.is_unusual
    assert {one.case_class.value for one in settlement.cases[:20]} == {"still_passing"}


@pytest.mark.contract("verdict.record.broken-branch")
def test_classify__the_branch_itself_lost_cases__blames_nobody_and_is_no_drop() -> None:
    lost = [facts("F" + CLEAN, "F", key=CaseKey("b.json", f"c{at}")) for at in range(10)]
    settlement = classify_cases([*lost, *suite(0)], CONFIRMATION)
    assert {one.case_class.value for one in settlement.cases[:10]} == {"still_failing"}
    assert not settlement.suite_finding.is_drop
    assert settlement.cases[0].grounds.broken_since.run_id == "r0"


def test_classify__reruns_that_were_decided__are_not_missing_by_other_knowledge() -> None:
    """Judged again with a record that asks for more, a case is judged by what there is."""
    case = facts("PPPFPPPPFP", "F", "FF")
    assert class_of(case) == ("errored", "missing_reruns")
    assert class_of(replace(case, rerun_end=RerunStopReason.DECIDED)) == ("regression", "every_run")
    assert class_of(replace(case, rerun_end=RerunStopReason.RUN_STOPPED)) == ("errored", "missing_reruns")


@pytest.mark.parametrize("end", [RerunStopReason.GATE_FAILED, RerunStopReason.BUDGET_USED])
@pytest.mark.parametrize("again", ["", "F"])
def test_classify__not_rerun_for_the_gate_or_the_budget__is_a_suspected_regression(again, end) -> None:
    assert class_of(facts(CLEAN, "F", again, rerun_end=end)) == ("suspected_regression", end.value)


@pytest.mark.parametrize("end", [RerunStopReason.GATE_FAILED, RerunStopReason.BUDGET_USED])
def test_classify__passed_its_only_reruns__is_inconclusive(end) -> None:
    assert class_of(facts(CLEAN, "F", "PP", rerun_end=end)) == ("inconclusive", "recovered")


@pytest.mark.contract("verdict.words")
def test_classify__not_sure__says_how_many_failures_in_a_row_would_have_been() -> None:
    grounds = classify_cases([facts(CLEAN, "F", "PP")], CONFIRMATION).cases[0].grounds
    assert class_of(facts(CLEAN, "F", "F" * (grounds.required_failures - 1))) == ("regression", "evidence")
    assert class_of(facts(CLEAN, "F", "F" * (grounds.required_failures - 2)))[0] == "errored"


def test_doubt__of_a_case__is_that_of_its_record() -> None:
    assert facts(CLEAN, "F").suspicion is Suspicion.REGRESSION
    assert facts(CLEAN, "F", plain_class=CaseClass.INCOMPARABLE).suspicion is None


def test_classify__drop_of_the_suite__makes_no_regression_of_a_case_without_a_record() -> None:
    """It was compared with one result, but there is no record that could say what it usually does."""
    cases = [facts(CLEAN, "F") for _ in range(8)] + [facts(CLEAN, "P") for _ in range(40)]
    unknown = replace(facts("P", "F"), history=NO_HISTORY, key=CaseKey("a.json", "unknown"))
    settlement = classify_cases([*cases, unknown], CONFIRMATION)
    assert settlement.suite_finding.is_drop
    found = settlement.cases[-1]
    assert found.grounds is not None
    assert (settlement.cases[0].case_class, settlement.cases[0].grounds.kind) == (
        CaseClass.REGRESSION,
        GroundKind.SUITE_DROP,
    )
    assert (found.case_class, found.grounds.kind) == (CaseClass.ERRORED, GroundKind.MISSING_RERUNS)


@pytest.mark.slow
def test_classify__allowed_regressions__stand_for_failures_of_the_suite() -> None:
    assert [
        classify_cases(suite(9), CONFIRMATION, allowed=allowed).suite_finding.failures for allowed in (0, 1, 9, 20)
    ] == [9, 8, 0, 0]
    assert not classify_cases(suite(9), CONFIRMATION, allowed=9).suite_finding.is_drop


@pytest.mark.slow
def test_classify__allowed_regressions_that_cases_are_by_themselves__stand_for_nothing_else() -> None:
    dead = [facts(CLEAN, "F", "FFF", key=CaseKey("b.json", f"c{at}")) for at in range(2)]
    found = [
        classify_cases([*suite(9), *dead], CONFIRMATION, allowed=allowed).suite_finding.failures
        for allowed in (1, 2, 3)
    ]
    assert found == [9, 9, 8]


def test_classify__must_pass_that_the_newest_run_of_the_branch_fails_too__is_no_news_and_blocks() -> None:
    assert class_of(facts("F" + CLEAN, "F", "F", must_pass=True)) == ("still_failing", "must_pass")
    assert class_of(facts(CLEAN, "F", "F", must_pass=True)) == ("regression", "must_pass")


def test_classify__allowed_regression__stands_for_the_failures_that_stick_out_most() -> None:
    """Of two that were known to fail now and then, the one that fails all three trials, not the one that fails two."""
    worse = facts("P" * 14 + "F", "FFF", key=CaseKey("b.json", "worse"))
    less = facts("P" * 14 + "F", "FFP", key=CaseKey("b.json", "less"))
    for cases in ([worse, less], [less, worse]):
        assert classify_cases([*cases, *suite(0)], CONFIRMATION, allowed=1).suite_finding.failures == 2


@pytest.mark.parametrize(("history", "first"), [("FPPPPPPPPP", "P"), ("FPPPPPPPPP", "F")])
def test_classify__nothing_in_doubt__says_no_chance(history, first) -> None:
    grounds = classify_cases([facts(history, first)], CONFIRMATION).cases[0].grounds
    assert grounds is not None
    assert (grounds.chance, grounds.required_failures) == (None, None)


@pytest.mark.contract("verdict.new-pass", "verdict.evidence.few-reruns")
def test_classify__new_pass_by_few_reruns__says_that_it_rests_on_less() -> None:
    assert class_of(facts("FPFFFFFFPF", "P", "P"), RerunCriteria(100, max_reruns=1)) == ("new_pass", "every_run")


def test_classify__only_run_on_record_failed_as_many_cases_as_fail_here__is_no_drop_of_the_suite() -> None:
    """Who leaves out what that one run failed chooses the others for having passed it, and every change would drop."""
    mended = [facts("F", "P", key=CaseKey("a.json", f"m{at}")) for at in range(8)]
    unlucky = [facts("P", "F", "PPP", key=CaseKey("a.json", f"u{at}")) for at in range(8)]
    settled = classify_cases([*mended, *unlucky], CONFIRMATION)
    assert (settled.suite_finding.cases, settled.suite_finding.is_drop) == (16, False)
    assert {one.case_class for one in settled.cases[8:]} == {CaseClass.INCONCLUSIVE}
