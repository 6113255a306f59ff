"""What waivers do to a run: exactly the failures they name, on the days they hold, whatever their order."""

from __future__ import annotations

import random
from datetime import date, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.gate.waivers.application import apply_waivers, find_waived_by_new_name, list_standings
from eval_gate.gate.waivers.case_names import MAX_NORMALIZED, CaseNameIndex, find_control_character, find_name_problem
from eval_gate.gate.waivers.wording import format_warnings
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import BaselineFacts, CaseChange, CaseClass, Comparison
from eval_gate.model.evidence import Counts, GroundKind, Grounds
from eval_gate.model.waiver import (
    AppliedWaivers,
    CaseStanding,
    CommentOrigin,
    FileOrigin,
    RefusedCommand,
    Waiver,
    WaiverKind,
    WaiverStanding,
    WaiverState,
)
from eval_gate.struct import replace
from tests.support.results import FILE, make_result, make_run, make_suite_result

TODAY = date(2026, 11, 21)
OTHER = "evals/other.golden.json"
PATH = ".eval-gate/waivers.yaml"
_ONCE = {"current": Counts(failures=1), "history": Counts(passes=20)}
_GATE_FAILED, _RUN_SHARE, _BUDGET_USED = (
    Grounds(kind=kind, **_ONCE) for kind in (GroundKind.GATE_FAILED, GroundKind.RUN_SHARE, GroundKind.BUDGET_USED)
)
BY_COMMENT = "A person with write access can waive the case in a comment"


def case(case_id: str, standing: str = "regressed", suite: str = FILE) -> CaseStanding:
    return CaseStanding(suite=suite, case_id=case_id, standing=WaiverStanding(standing))


def waiver(name: str, kind: str = "waiver", *, days: int = 7, **fields) -> Waiver:
    """From the file, unless `url` makes it a comment's."""
    url, is_new, line = fields.pop("url", None), fields.pop("is_new", None), fields.pop("line", 3)
    origin = (
        CommentOrigin(author="ada", url=url, written_at="2026-11-20T10:00:00Z")
        if url
        else FileOrigin(file=PATH, line=line, is_new=is_new)
    )
    values = {"reason": "known, #481", "until": TODAY + timedelta(days=days), "origin": origin}
    return Waiver(kind=WaiverKind(kind), case=name, **(values | fields))


def state_of(one: Waiver, *cases: CaseStanding, **options) -> WaiverState:
    (entry,) = apply_waivers([one], cases, TODAY, **options).entries
    return entry.state


def ids(waiving: AppliedWaivers) -> list[str]:
    return [one.case_id for one in waiving.waived]


@pytest.mark.parametrize(
    ("name", "trusted", "waives"),
    [
        ("old", True, True),
        ("ol[d]", True, True),
        ("flaky-1", True, True),
        ("flaky-*", True, False),
        ("flaky-1", False, False),
        ("old", False, True),
    ],
)
@pytest.mark.parametrize("kind", ["waiver", "quarantine"])
def test_waive__renamed_case__is_meant_by_the_name_it_had(name, trusted, waives, kind) -> None:
    renamed = {CaseKey(FILE, "flaky-1"): CaseKey(FILE, "old")}
    found = apply_waivers(
        [waiver(name, kind, is_new=False)], [case("flaky-1")], TODAY, trusted=trusted, baseline_keys=renamed
    )
    assert bool(found.waived) is waives
    assert bool(find_waived_by_new_name(found, renamed)) is (waives and name == "flaky-1")
    comment = waiver(name, url="https://github.com/o/r/issues/1#issuecomment-1")
    assert apply_waivers([comment], [case("flaky-1")], TODAY, trusted=trusted, baseline_keys=renamed).waived


# --- what is waived ---------------------------------------------------------------------------------------------------


@pytest.mark.contract("accepting.only-failures")
@pytest.mark.parametrize("kind", ["waiver", "quarantine"])
@pytest.mark.parametrize(
    ("standing", "waived"),
    [("regressed", True), ("fails", True), ("unstable", True), ("passes", False), ("no_result", False)],
)
def test_waive__case_that_stands_so__only_failures_are_waived_and_never_errors(kind, standing, waived) -> None:
    found = apply_waivers([waiver("a", kind)], [case("a", standing), case("b")], TODAY)
    assert ids(found) == (["a"] if waived else [])
    assert ((FILE, "a") in found.keys) is waived


@pytest.mark.parametrize(
    ("name", "suite", "expected"),
    [
        ("refund/partial", None, ["refund/partial"]),
        ("refund/*", None, ["refund/partial", "refund/late"]),
        ("Refund/*", None, []),
        ("refund", None, []),
        ("*/late", None, ["refund/late"]),
        ("add[12]", None, ["add[12]"]),
        ("add[1-3]", None, ["add1", "add2"]),
        ("refund/*", OTHER, []),
        ("faq", OTHER, ["faq"]),
        ("faq", "evals/*.json", ["faq"]),
        ("faq", "evals", []),
        ("caf\u00e9", None, ["cafe\u0301"]),
        ("refund/p?rtial", None, ["refund/partial"]),
    ],
)
def test_waive__name__means_these_cases(name, suite, expected) -> None:
    known = ["refund/partial", "refund/late", "add1", "add2", "add[12]", "cafe\u0301", "other"]
    cases = [*map(case, known), case("faq", suite=OTHER)]
    assert ids(apply_waivers([waiver(name, suite=suite)], cases, TODAY)) == expected


def test_waive__same_id_in_two_eval_files__both_unless_a_suite_is_named() -> None:
    cases = [case("a"), case("a", suite=OTHER)]
    assert len(apply_waivers([waiver("a")], cases, TODAY).waived) == 2
    (one,) = apply_waivers([waiver("a", suite=OTHER)], cases, TODAY).waived
    assert one.suite == OTHER


@pytest.mark.contract("accepting.expires")
@pytest.mark.parametrize(("days", "counts"), [(0, True), (1, True), (-1, False), (-400, False)])
def test_waive__last_day__still_counts_and_the_next_does_not(days, counts) -> None:
    found = apply_waivers([waiver("a", days=days)], [case("a")], TODAY)
    assert ids(found) == (["a"] if counts else [])
    (entry,) = found.entries
    assert (entry.days_left, entry.state) == (days, WaiverState.IN_USE if counts else WaiverState.EXPIRED)
    assert [name.case_id for name in entry.failing] == ["a"]


@pytest.mark.parametrize(
    ("cases", "options", "state"),
    [
        ([case("a")], {}, WaiverState.IN_USE),
        ([case("a", "passes")], {}, WaiverState.UNNEEDED),
        ([case("a", "no_result")], {}, WaiverState.IDLE),
        ([case("b")], {}, WaiverState.UNMATCHED),
        ([], {}, WaiverState.UNMATCHED),
        ([case("b")], {"everything": False}, WaiverState.IDLE),
        ([case("a")], {"trusted": False}, WaiverState.PROPOSED),
        ([case("a", "passes"), case("a", "no_result", OTHER)], {}, WaiverState.IDLE),
        ([case("a", "passes"), case("a", "fails", OTHER)], {}, WaiverState.IN_USE),
    ],
)
def test_waive__state__says_what_the_waiver_did(cases, options, state) -> None:
    assert state_of(waiver("a"), *cases, **options) is state


@pytest.mark.contract("accepting.fork-file")
@pytest.mark.parametrize(
    ("is_new", "url", "state"),
    [
        (True, None, WaiverState.PROPOSED),
        (None, None, WaiverState.PROPOSED),
        (False, None, WaiverState.IN_USE),
        (None, "https://github.com/acme/bot/pull/7#issuecomment-1", WaiverState.IN_USE),
    ],
)
def test_waive__pull_request_from_a_fork__only_what_the_base_has_or_somebody_with_rights_said(
    is_new, url, state
) -> None:
    one = waiver("a", is_new=is_new, url=url)
    assert state_of(one, case("a"), trusted=False) is state
    assert state_of(one, case("a"), trusted=True) is WaiverState.IN_USE


def test_waive__several_for_one_case__the_quarantine_decides_then_the_longest() -> None:
    short, long, aside = waiver("a", days=1), waiver("a", days=9, line=9), waiver("a", "quarantine", days=1)
    found = apply_waivers([short, long], [case("a")], TODAY)
    assert found.get_entry(found.waived[0]).waiver == long
    found = apply_waivers([short, long, aside], [case("a")], TODAY)
    assert found.get_entry(found.waived[0]).waiver == aside
    assert {entry.state for entry in found.entries} == {WaiverState.IN_USE}


def test_waiving__quarantined__are_those_of_quarantines_that_hold_whatever_their_result() -> None:
    cases = [case("aaa1", "passes"), case("aaa2"), case("aaa3", "no_result"), case("b"), case("c"), case("d", "passes")]
    made = [waiver("aaa*", "quarantine"), waiver("b"), waiver("c", "quarantine", days=-1), waiver("d", "quarantine")]
    assert {case_id for _, case_id in apply_waivers(made, cases, TODAY).quarantined_keys} == {"aaa1", "aaa2", "d"}


def test_waiving__counts__are_by_standing() -> None:
    cases = [case("a"), case("b", "fails"), case("c", "unstable"), case("d")]
    found = apply_waivers([waiver(name) for name in "abc"], cases, TODAY)
    assert (
        found.count_cases(WaiverStanding.REGRESSED),
        found.count_cases(WaiverStanding.REGRESSED, WaiverStanding.FAILS),
    ) == (
        1,
        2,
    )


def test_waiving__written_and_read_back__is_the_same() -> None:
    made = [waiver("a", is_new=True), waiver("b", url="https://github.com/acme/bot/pull/7#issuecomment-1"), waiver("c")]
    found = apply_waivers(made, [case("a"), case("b", "passes")], TODAY)
    assert msgspec.json.decode(msgspec.json.encode(found).decode(), type=AppliedWaivers) == found


@pytest.mark.slow
def test_waive__many_of_both__does_not_take_long() -> None:
    cases = [case(f"case/{number}", "fails") for number in range(5_000)]
    made = [waiver(f"case/{'?' * (number % 4)}{number}*{'*a' * 20}", line=number) for number in range(300)]
    assert apply_waivers(made, cases, TODAY).waived == ()


# --- properties -------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c", "aaa1", "aaa2", "aaa*", "*aaa?", "nobody", "nob*dy"])
WAIVERS = st.builds(
    waiver,
    NAMES,
    st.sampled_from(["waiver", "quarantine"]),
    days=st.integers(-3, 3),
    line=st.integers(1, 3),
    is_new=st.sampled_from([None, True, False]),
    url=st.sampled_from([None, None, "https://github.com/acme/bot/pull/7#issuecomment-1"]),
)
CASES = st.lists(
    st.builds(case, st.sampled_from(["a", "b", "c", "aaa1", "aaa2"]), st.sampled_from(list(WaiverStanding))),
    max_size=5,
    unique_by=lambda one: one.case_id,
)


@pytest.mark.slow
@pytest.mark.contract("accepting.nothing-else")
@given(st.lists(WAIVERS, max_size=6), CASES, st.booleans(), st.randoms())
def test_waive__any_order_and_repetition__gives_the_same(made, cases, trusted, shuffled: random.Random) -> None:
    again = [*made, *made[:2]]
    shuffled.shuffle(again)
    assert apply_waivers(again, cases, TODAY, trusted=trusted) == apply_waivers(made, cases, TODAY, trusted=trusted)


@pytest.mark.slow
@pytest.mark.contract("accepting.nothing-else")
@given(st.lists(WAIVERS, max_size=6), CASES, st.booleans())
def test_waive__without_those_that_do_not_count__waives_the_same(made, cases, trusted) -> None:
    found = apply_waivers(made, cases, TODAY, trusted=trusted)
    used = [entry.waiver for entry in found.entries if entry.state is WaiverState.IN_USE]
    assert apply_waivers(used, cases, TODAY, trusted=trusted).keys == found.keys
    assert all(
        apply_waivers([one], cases, TODAY, trusted=trusted).keys == frozenset() for one in made if one not in used
    )


@given(st.lists(WAIVERS, max_size=6), CASES, st.booleans())
def test_waive__any__only_failing_cases_each_once_in_order_and_named_by_what_decides(made, cases, trusted) -> None:
    found = apply_waivers(made, cases, TODAY, trusted=trusted)
    standing = {one.case_id: one.standing for one in cases}
    assert all(standing[one.case_id].is_waivable for one in found.waived)
    order = [one.case_id for one in cases]
    assert ids(found) == sorted(set(ids(found)), key=order.index)
    for one in found.waived:
        entry = found.get_entry(one)
        assert entry.state is WaiverState.IN_USE
        assert one.case_id in [name.case_id for name in entry.failing]
        assert entry.waiver.until >= TODAY


@given(st.lists(WAIVERS, max_size=6), CASES, st.integers(1, 5))
def test_waive__a_later_day__never_waives_more(made, cases, days) -> None:
    later = apply_waivers(made, cases, TODAY + timedelta(days=days)).keys
    assert later <= apply_waivers(made, cases, TODAY).keys


@given(st.lists(WAIVERS, max_size=6), CASES)
def test_waive__not_trusted__never_waives_more(made, cases) -> None:
    assert apply_waivers(made, cases, TODAY, trusted=False).keys <= apply_waivers(made, cases, TODAY).keys


@given(st.lists(WAIVERS, max_size=6), CASES)
def test_words__any_waivers__no_warning_is_empty(made, cases) -> None:
    found = apply_waivers(made, cases, TODAY)
    assert all(format_warnings(found))


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.contract("accepting.names")
@pytest.mark.parametrize(
    ("name", "fine"),
    [
        ("a", True),
        ("7", True),
        ("refund/*", True),
        ("*fund*", True),
        ("日本語*", True),
        ("caf\u00e9 \U0001f469\u200d\U0001f4bb", True),
        ("add[1", True),
        ("", False),
        ("  ", False),
        ("*", False),
        ("**", False),
        ("?*", False),
        ("*/*", False),
        ("a*", False),
        ("*ab*", False),
        ("[a-z]*", False),
        ("[!abc]*", False),
        ("[]abcdef]", False),
        ("[abc][def][ghi]", False),
        ("***---___...///", False),
        ("x" * 301, False),
        ("x" * 300, True),
        ("refund\n", False),
        ("refund\u202eabc", False),
        ("refund\u2028abc", False),
        ("refund\x00", False),
        ("refund\ud800", False),
    ],
)
def test_name__of_a_case_or_of_everything__is_told_apart(name, fine) -> None:
    assert (find_name_problem(name) is None) is fine


# --- how cases stand --------------------------------------------------------------------------------------------------


def change(case_id: str, became: str, **fields) -> CaseChange:
    return CaseChange(suite=FILE, case_id=case_id, change=CaseClass(became), **fields)


@pytest.mark.parametrize(
    ("status", "became", "fields", "standing"),
    [
        ("failed", "regression", {}, "regressed"),
        ("failed", "still_failing", {}, "fails"),
        ("failed", "added", {}, "fails"),
        ("failed", "incomparable", {}, "fails"),
        ("failed", "inconclusive", {}, "unstable"),
        ("failed", "errored", {}, "no_result"),
        ("failed", "suspected_regression", {"grounds": _GATE_FAILED}, "fails"),
        ("failed", "suspected_regression", {"grounds": _RUN_SHARE}, "fails"),
        ("failed", "suspected_regression", {"grounds": _BUDGET_USED}, "no_result"),
        ("failed", None, {}, "fails"),
        ("passed", "flaky", {}, "unstable"),
        ("passed", "new_pass", {}, "passes"),
        ("passed", "still_passing", {}, "passes"),
        ("passed", "still_passing", {"score_change": -0.3, "score_drop": True}, "unstable"),
        ("passed", "still_passing", {"score_change": -0.05}, "passes"),
        ("passed", None, {}, "passes"),
        ("error", "errored", {}, "no_result"),
        ("error", "regression", {}, "regressed"),
        ("error", None, {}, "no_result"),
        ("skipped", "not_run", {}, "no_result"),
        ("not_run", "not_run", {}, "no_result"),
    ],
)
def test_standings__status_and_class__say_how_it_stands(status, became, fields, standing) -> None:
    changes = (change("a", became, **fields),) if became else ()
    comparison = Comparison(baseline=BaselineFacts(run_id="1", timestamp="t", source="s"), changes=changes)
    run = make_run({"a": status})
    (found,) = list_standings(run, comparison if became else None)
    assert (found.suite, found.case_id, found.standing) == (FILE, "a", standing)


@pytest.mark.parametrize(("most", "standing"), [(0.03, "unstable"), (0.05, "passes"), (0.1, "passes")])
def test_standings__limit_of_score_drops__makes_what_drops_further_waver(most, standing) -> None:
    changes = (change("a", "still_passing", score_change=-0.05),)
    comparison = Comparison(baseline=BaselineFacts(run_id="1", timestamp="t", source="s"), changes=changes)
    (found,) = list_standings(make_run({"a": "passed"}), comparison, max_score_drop=most)
    assert found.standing == standing


def test_standings__passes_with_failed_trials_and_no_baseline__wavers() -> None:
    suites = [make_suite_result([make_result("a", trials="PPF")]), make_suite_result({"a": "failed"}, eval_file=OTHER)]
    found = list_standings(make_run(*suites), None)
    assert [(one.suite, one.standing.value) for one in found] == [(FILE, "unstable"), (OTHER, "fails")]


def test_standings__case_removed_since__is_not_there() -> None:
    comparison = Comparison(
        baseline=BaselineFacts(run_id="1", timestamp="t", source="s"), changes=(change("gone", "removed"),)
    )
    assert [one.case_id for one in list_standings(make_run({"a": "passed"}), comparison)] == ["a"]


# --- words ------------------------------------------------------------------------------------------------------------


@pytest.mark.contract("accepting.passes-again", "accepting.expires")
@pytest.mark.parametrize(
    ("one", "cases", "options", "said"),
    [
        (waiver("a"), [case("a")], {}, None),
        (waiver("a", days=-2), [case("b")], {}, "`a` was waived until 2026-11-19 and counts again"),
        (waiver("a", days=-2), [case("a")], {}, "`a` was waived until 2026-11-19 and counts again, and `a` fails"),
        (waiver("a"), [case("b")], {}, "`a` matches no case of this run"),
        (waiver("a"), [case("b")], {"everything": False}, None),
        (waiver("a"), [case("a", "no_result")], {}, None),
        (waiver("a"), [case("a", "passes")], {}, "`a` passes, so the waiver is not needed: remove it"),
        (waiver("a", "quarantine"), [case("a")], {}, None),
        (waiver("a", "quarantine"), [case("a", "unstable")], {}, None),
        (waiver("a", "quarantine"), [case("a", "passes")], {}, "`a` passes again: end the quarantine"),
        (
            waiver("aaa*", "quarantine"),
            [case("aaa1", "passes"), case("aaa2"), case("aaa3", "no_result")],
            {},
            "`aaa*`: `aaa1` passes again: end the quarantine",
        ),
        (
            waiver("a", is_new=True),
            [case("a")],
            {"trusted": False},
            "`a` is new: it does not count until the base branch has it. " + BY_COMMENT,
        ),
    ],
)
def test_warnings__entry_of_the_file__says_what_to_do(one, cases, options, said) -> None:
    assert format_warnings(apply_waivers([one], cases, TODAY, **options)) == ((f"{PATH}:3: {said}",) if said else ())


@pytest.mark.parametrize(
    ("days", "cases", "count"),
    [(-1, [case("a", "passes")], 0), (-1, [case("a")], 1), (1, [case("a", "passes")], 0), (1, [case("b")], 1)],
)
def test_warnings__comment__only_where_it_matters(days, cases, count) -> None:
    one = waiver("a", days=days, url="https://github.com/acme/bot/pull/7#issuecomment-1")
    assert len(format_warnings(apply_waivers([one], cases, TODAY))) == count


def test_warnings__many_cases__five_are_named_and_the_rest_counted() -> None:
    cases = [case(f"case{number}", "passes") for number in range(8)]
    (said,) = format_warnings(apply_waivers([waiver("case*", "quarantine")], cases, TODAY))
    assert said.endswith("`case3`, `case4` and 3 more pass again: end the quarantine")


def test_warnings__refused_commands_and_troubles__come_first() -> None:
    refusals = (
        RefusedCommand(author="eve", url="u", message="no"),
        RefusedCommand(author="", url="v", message="gone"),
    )
    found = replace(apply_waivers([waiver("b")], [case("a")], TODAY), refusals=refusals, problems=("t",))
    assert format_warnings(found)[:3] == ("t", "@eve: no (u)", "a deleted account: gone (v)")


@pytest.mark.parametrize(("length", "found"), [(MAX_NORMALIZED, 1), (MAX_NORMALIZED + 1, 0)])
def test_find__id_longer_than_any_name__is_taken_as_it_is_spelled(length, found) -> None:
    """Marks on one letter are sorted in quadratic time: no id of a hostile file may be that long."""
    apart, together = ("x" * (length - 2) + letter for letter in ("e\u0301", "\u00e9"))
    assert len(CaseNameIndex([case(apart)]).find_cases(together, None)) == found


@pytest.mark.parametrize("sign", "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029\x00\x1b\n")
def test_control_in__sign_that_changes_how_the_rest_is_shown__is_named(sign) -> None:
    assert find_control_character(f"a{sign}b") == f"U+{ord(sign):04X}"
    assert find_control_character("a b \u00e9 \U0001f642 \u200d \u05d0") is None
