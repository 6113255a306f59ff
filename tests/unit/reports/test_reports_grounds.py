"""The words for what was seen of a case, and the numbers beside them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.gate.reason_wording import describe_suite_drop
from eval_gate.model.comparison import CaseChange, CaseClass
from eval_gate.model.evidence import CaseHistorySummary, Counts, GroundKind, Grounds, Repeats, Stability, SuiteFinding
from eval_gate.reports.context import ReportContext
from eval_gate.reports.markdown_fragments import format_prose
from eval_gate.reports.run_statistics import compute_paired_interval, compute_pass_rates, compute_wilson_interval
from eval_gate.reports.wording.grounds import (
    describe_chance,
    describe_evidence,
    describe_history,
    describe_repeats,
    format_conclusion,
    format_place,
    list_further_evidence,
)
from eval_gate.reports.wording.spending import describe_certainty, describe_reruns
from eval_gate.struct import replace
from tests.support.results import make_result, make_run, make_suite_result
from tests.support.verdicts import STEADY, make_executed, make_judged, make_waiver, make_waivers

MAIN = "on main"


def counts(text: str) -> Counts:
    """`3/20`: that many passes of so many runs."""
    passes, runs = map(int, text.split("/"))
    return Counts(passes=passes, failures=runs - passes)


def change(what: str, why: str, here: str, record: str, chance: float | None = None, **fields) -> CaseChange:
    newest_failed, known = fields.pop("newest_failed", False), fields.pop("known", None)
    agent_errors = {"agent_errors": fields.pop("agent_errors", 0)}
    earlier_errors = {"agent_errors": fields.pop("earlier_errors", 0)}
    grounds = Grounds(
        kind=GroundKind(why),
        current=replace(counts(here), **agent_errors),
        history=replace(counts(record), **earlier_errors),
        chance=chance,
        newest_failed=newest_failed,
        **fields,
    )
    return CaseChange(suite="s", case_id="c", change=CaseClass(what), grounds=grounds, case_history=known)


FLAKY = CaseHistorySummary(
    counts=counts("17/20"), stability=Stability.FLAKY, evidence_run_ids=("run-a", "run-b", "run-c")
)
NEVER = "confirming it would take more re-runs than the setting reruns allows"
BY_RECORD = "flaky on main: fails 15 % of the time"


@pytest.mark.parametrize(
    ("one", "seen", "by_chance", "more"),
    [
        (
            change("regression", "evidence", "0/0", "10/10", 1 / 100_000.5, agent_errors=4),
            "agent error in 4 of 4 here, responded in 10 of 10 on main",
            "100,000",
            (),
        ),
        (
            change(
                "regression",
                "evidence",
                "0/0",
                "7/9",
                1 / 100_000.5,
                agent_errors=4,
                earlier_errors=1,
            ),
            "agent error in 4 of 4 here, responded in 9 of 10 on main (2 wrong)",
            "100,000",
            (),
        ),
        (
            change(
                "regression",
                "evidence",
                "0/4",
                "8/9",
                1 / 100_000.5,
                agent_errors=1,
                earlier_errors=1,
                required_failures=4,
            ),
            "failed 4 of 4 here (and 1 agent error), 1 of 9 on main (and 1 agent error)",
            "100,000",
            (),
        ),
        (
            change("errored", "missing_reruns", "0/0", "0/0", agent_errors=1),
            "agent error in 1 of 1 here, no score on main",
            None,
            ("its re-runs ended without a result",),
        ),
        (
            change("inconclusive", "recovered", "2/3", "10/10", 0.3, agent_errors=1, required_failures=4),
            "failed 1 of 3 here (and 1 agent error), 0 of 10 on main",
            "3",
            ("4 failures in a row would confirm it",),
        ),
        (
            change("regression", "suite_drop", "2/3", "20/20", 0.01, required_failures=4),
            "failed 1 of 3 here, 0 of 20 on main",
            "100",
            (
                "it counts because too many cases fail at once",
                "4 failures in a row would confirm it by itself",
            ),
        ),
        (
            change("regression", "evidence", "0/4", "19/20", 1 / 54_321),
            "failed 4 of 4 here, 1 of 20 on main",
            "50,000",
            (),
        ),
        (
            change("regression", "evidence", "0/4", "20/20", 0.0, required_failures=3),
            "failed 4 of 4 here, 0 of 20 on main",
            "1,000,000",
            (),
        ),
        (
            change("regression", "every_run", "0/2", "1/1", 0.02),
            "failed 2 of 2 here, 0 of 1 on main",
            "50",
            (NEVER,),
        ),
        (
            change("regression", "every_run", "0/2", "1/1", 0.02, required_failures=3),
            "failed 2 of 2 here, 0 of 1 on main",
            "50",
            ("3 failures in a row would confirm it",),
        ),
        (
            change("regression", "suite_drop", "2/3", "20/20", 0.5),
            "failed 1 of 3 here, 0 of 20 on main",
            "2",
            (
                "it counts because too many cases fail at once",
                NEVER.replace("it would", "it by itself would"),
            ),
        ),
        (
            change("regression", "must_pass", "0/2", "9/20", newest_failed=True),
            "failed 2 of 2 here, 11 of 20 on main",
            None,
            ("it counts although it fails on main too",),
        ),
        (
            change("added", "must_pass", "0/2", "0/0"),
            "failed 2 of 2 here, no score on main",
            None,
            ("every failure of a must-pass case counts",),
        ),
        (
            change("inconclusive", "recovered", "2/3", "17/20", 0.3, known=FLAKY),
            "failed 1 of 3 here, 3 of 20 on main",
            "3",
            (NEVER, BY_RECORD),
        ),
        (
            change("inconclusive", "recovered", "0/2", "11/20", 0.9),
            "failed 2 of 2 here, 9 of 20 on main",
            None,
            ("its history may explain this", NEVER),
        ),
        (
            change("errored", "missing_reruns", "0/1", "20/20", 0.05),
            "failed 1 of 1 here, 0 of 20 on main",
            None,
            ("its re-runs ended without a result", NEVER),
        ),
        (
            change("flaky", "mixed", "3/4", "17/20", known=FLAKY),
            "failed 1 of 4 here, 3 of 20 on main",
            None,
            (BY_RECORD,),
        ),
        (
            change("flaky", "usual_result", "1/1", "6/20"),
            "failed 0 of 1 here, 14 of 20 on main",
            None,
            ("it sometimes passes on main too",),
        ),
        (
            change("new_pass", "evidence", "7/7", "2/20", 9.9e-6, known=FLAKY),
            "passed 7 of 7 here, 2 of 20 on main",
            "100,000",
            (),
        ),
        (
            change("new_pass", "every_run", "2/2", "1/20", 0.1),
            "passed 2 of 2 here, 1 of 20 on main",
            "10",
            (),
        ),
        (
            change("still_failing", "usual_result", "0/1", "3/20", 0.2),
            "failed 1 of 1 here, 17 of 20 on main",
            None,
            ("the newest run on main was an exception",),
        ),
        (
            change("still_passing", "usual_result", "1/1", "19/20", newest_failed=True),
            "passed 1 of 1 here, 19 of 20 on main",
            None,
            ("the newest run on main was an exception",),
        ),
    ],
)
def test_words__case__say_what_was_seen_and_what_decided(one, seen, by_chance, more) -> None:
    assert describe_evidence(one, MAIN) == seen
    assert describe_chance(one) == (by_chance and f"chance without a real change: 1 in {by_chance}")
    assert list_further_evidence(one, MAIN) == more


@pytest.mark.parametrize(
    ("what", "why", "word"),
    [
        ("regression", "evidence", "confirmed"),
        ("regression", "every_run", "failed every time"),
        ("new_pass", "every_run", "passed every time"),
        ("new_pass", "evidence", "confirmed"),
        ("regression", "suite_drop", "part of a suite drop"),
        ("suspected_regression", "gate_failed", "suspected"),
        ("inconclusive", "recovered", "inconclusive"),
        ("flaky", "mixed", "flaky"),
        ("still_failing", "usual_result", None),
        ("still_failing", "base_agent", None),
    ],
)
def test_conclusion__is_one_word_before_the_evidence(what, why, word) -> None:
    assert format_conclusion(change(what, why, "0/3", "9/10")) == word
    assert format_conclusion(CaseChange(suite="s", case_id="c", change=CaseClass(what))) is None


def test_words__two_runs_alone__have_none() -> None:
    plain = CaseChange(suite="s", case_id="c", change=CaseClass.REGRESSION)
    assert (describe_evidence(plain, MAIN), describe_chance(plain), list_further_evidence(plain, MAIN)) == (
        None,
        None,
        (),
    )


@pytest.mark.parametrize(
    ("context", "place"),
    [
        (ReportContext(), "in the history"),
        (ReportContext(base_branch="main"), "on main"),
        (ReportContext(base_branch="main", baseline_branch="release/1"), "on release/1"),
        (ReportContext(base_branch="a\nb" + "c" * 100), f"on a ⏎ b{'c' * 54}…"),
    ],
)
def test_place__is_the_branch_whose_runs_the_record_is_made_of(context, place) -> None:
    assert format_place(context) == place


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (CaseHistorySummary(counts=counts("20/20"), stability=Stability.PASSING), "passed 20 of 20 on main"),
        (FLAKY, "passed 17 of 20 on main; flaky: fails 15 % of the time, 3 runs show it (run-a, run-b, run-c)"),
        (
            CaseHistorySummary(
                counts=counts("3/9"), stability=Stability.FLAKY, evidence_run_ids=tuple(map(str, range(7)))
            ),
            "passed 3 of 9 on main; flaky: fails 67 % of the time, 7 runs show it (0, 1, 2, 3, 4 and 2 more)",
        ),
        (
            CaseHistorySummary(counts=counts("0/3"), stability=Stability.FAILING, oldest_run_id="r"),
            "passed 0 of 3 on main; older runs do not count, because the case broke or was fixed after them",
        ),
    ],
)
def test_record__in_words__has_rate_and_runs(record, said) -> None:
    assert describe_history(record, MAIN) == said


def test_repeats__in_words__say_what_looks_like_a_cache_and_what_to_do() -> None:
    slow, cached = Repeats(slowest_ms=110, first_ms=120), Repeats(slowest_ms=4, first_ms=2_100, cached=True)
    said = Grounds(kind=GroundKind.EVIDENCE, current=Counts(failures=4), history=Counts(passes=9), reruns=3)
    assert describe_repeats(said) is None
    assert describe_repeats(replace(said, repeats=slow)) is None
    assert describe_repeats(replace(said, reruns=1, repeats=cached)) == (
        "1 re-run returned the same response byte for byte, in 4 ms at most, the first failure in 2.1 s; this looks "
        "like a cache that re-runs do not get past"
    )


def test_suite__in_words__has_what_the_records_let_expect() -> None:
    found = SuiteFinding(cases=60, failures=6, expected=0.31, chance=1e-9, limit=0.01)
    assert (
        describe_suite_drop(found)
        == "6 of 60 cases failed at first (usually fewer than 1); chance without a real change: 1 in 1,000,000 "
        "(limit 1 in 100)"
    )
    more = replace(found, expected=2.6)
    assert describe_suite_drop(more).startswith("6 of 60 cases failed at first (usually about 3); ")
    assert describe_suite_drop(found, has_regressions=True).startswith("6 of 60 other cases failed")
    assert describe_suite_drop(replace(found, steady_cases_only=True)).startswith(
        "6 of 60 cases that seldom fail failed at first"
    )
    assert describe_suite_drop(replace(found, executions=180)).startswith(
        "6 of 180 executions of 60 cases failed at first"
    )


@pytest.mark.contract("verdict.record.bad-days")
def test_suite__days_of_the_branch_differ__is_said_with_what_it_would_be_without() -> None:
    found = SuiteFinding(cases=100, failures=10, expected=2.3, chance=0.031, limit=0.01, chance_if_runs_equal=0.0004)
    assert found.is_run_variation
    assert (
        describe_suite_drop(found)
        == "10 of 100 cases failed at first (usually about 2); chance without a real change: 1 in 32 (limit 1 in 100); "
        "1 in 2,000 if the runs in the history did not differ from each other"
    )


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("passed", "judged", "low", "high"),
    [
        # Newcombe 1998, Statistics in Medicine 17, 857-872, table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (0, 0, 0.0, 1.0),
        (20, 20, 0.8389, 1.0),
    ],
)
def test_wilson__known_examples__are_met(passed, judged, low, high) -> None:
    assert compute_wilson_interval(passed, judged) == pytest.approx((low, high), abs=5e-5)


def test_paired_interval__large_table__is_nearly_the_classical_interval() -> None:
    change, half = (86 - 150) / 1600, 1.96 * ((150 + 86) - (86 - 150) ** 2 / 1600) ** 0.5 / 1600
    assert compute_paired_interval(150, 86, 1600) == pytest.approx((change - half, change + half), abs=2e-4)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_paired_interval__any_table__holds_the_change_and_turns_with_it(worse, better, same) -> None:
    cases = worse + better + same
    low, high = compute_paired_interval(worse, better, cases)
    assert -1 <= low < high <= 1
    assert cases == 0 or low <= (better - worse) / cases <= high
    assert compute_paired_interval(better, worse, cases) == pytest.approx((-high, -low))


@given(st.integers(0, 60), st.integers(0, 60))
def test_wilson__any_counts__hold_the_share(passed, failed) -> None:
    low, high = compute_wilson_interval(passed, passed + failed)
    assert 0 <= low < high <= 1
    assert not passed + failed or low <= passed / (passed + failed) <= high


def test_certainty__plain_rule__says_nothing() -> None:
    assert describe_certainty(make_judged({"a": "F"}, {"a": "P"}, reruns=0)) == ()
    assert describe_certainty(make_judged({"a": "F"})) == ()


def test_rates__quarantine__is_on_neither_side() -> None:
    waivers = make_waivers(
        make_waiver("abc", "quarantine", is_new=False), make_waiver("xyz", "quarantine", is_new=False)
    )
    run = make_judged(
        {"abc": "F", "xyz": "P", "c": "FFFF", "d": "P"},
        {"abc": "P", "xyz": "F", "c": STEADY, "d": STEADY},
        waivers=waivers,
    )
    rates = compute_pass_rates(run)
    assert (rates.passed, rates.judged, rates.current, rates.baseline, rates.quarantined) == (1, 2, 0.5, 1.0, 2)
    assert "2 cases with a score in both runs: 1 got worse, 0 got better" in describe_certainty(run)[1]


def test_reruns__cost__is_the_share_of_the_executions_and_only_said_when_all_is_known() -> None:
    two = [make_executed("a", "FFP", cost_usd=0.3, judge_cost_usd=0.3), make_executed("b", "P", cost_usd=0.1)]
    assert describe_reruns(make_run(make_suite_result(two))) == "2 re-runs of 1 case, 240 ms, about $0.40"
    unknown = [*two, make_executed("c", "FP")]
    assert describe_reruns(make_run(make_suite_result(unknown))) == "3 re-runs of 2 cases, 360 ms"
    assert describe_reruns(make_run({"a": "passed"})) is None


def test_reruns__with_cases_before_them__say_how_many_executions_and_count_their_time_and_cost() -> None:
    before = replace(make_executed("a", "P", cost_usd=0.3), preparatory_executions=2, duration_ms=360.0)
    run = make_run(make_suite_result([before, make_executed("b", "FPP", cost_usd=0.3)]))
    words = "2 re-runs of 1 case, with 2 executions of the cases they depend on, 480 ms, about $0.40"
    assert describe_reruns(run) == words


@pytest.mark.parametrize(
    ("before", "reruns", "words"),
    [
        (1, 2, ("each re-run included the case before it",)),
        (4, 1, ("each re-run included the 4 cases before it",)),
        (0, 2, ()),
        (4, 0, ()),
    ],
)
def test_grounds__run_again_with_the_cases_before_it__is_said(before, reruns, words) -> None:
    one = change("inconclusive", "must_pass", "1/3", "9/9", cases_before=before, reruns=reruns)
    assert list_further_evidence(one, MAIN)[1:] == words


def test_reruns__more_than_there_are_trials__are_none() -> None:
    """A record may be anybody's."""
    assert describe_reruns(make_run(make_suite_result([make_result("a", trials="PF", reruns=9)]))) is None


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("x.yaml:3: `a` passes", "x&#46;yaml&#58;3: `a` passes"),
        ("`a*b`, `c` and 3 more", "`a*b`, `c` and 3 more"),
        ("one ` alone and *bold*", "one &#96; alone and &#42;bold&#42;"),
        ("`a` then ` alone", "`a` then &#96; alone"),
        ("``", "` `"),
        ("@team `@team`", "&#64;&#8203;team `@team`"),
    ],
)
def test_prose__names_in_backticks__are_code_and_all_else_is_escaped(words, shown) -> None:
    assert format_prose(words) == shown
