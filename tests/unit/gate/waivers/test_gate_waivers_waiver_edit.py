"""New entries for the file of accepted failures, as `eval-gate waive` writes them."""

from __future__ import annotations

from datetime import date, timedelta

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.errors import GateError
from eval_gate.gate.waivers.waiver_edit import EditedWaivers, WaiverRequest, add_entries, parse_until
from eval_gate.gate.waivers.waiver_file import MAX_ENTRIES, parse_waivers
from eval_gate.model.waiver import FileOrigin, Waiver, WaiverKind
from eval_gate.struct import replace

TODAY = date(2026, 11, 21)
PATH = ".eval-gate/waivers.yaml"
OLD = """\
# reviewed on Mondays
waivers:
  - case: refund/partial   # the payment team
    reason: "the new tool answers later, #481"
    until: 2026-12-05
  - case: faq/over
    reason: was known
    until: 2026-11-20      # the release
    owner: Kim

# flaky ones
quarantine: []
"""


def written(text: str, *cases: str, **wish) -> EditedWaivers:
    given = {"reason": "known, #7", "until": "14d", "kind": WaiverKind.WAIVER} | wish
    return add_entries(text.encode(), WaiverRequest(cases=cases, **given), TODAY, shown_as=PATH)


def refused(text: str, *cases: str, **wish) -> list[str]:
    with pytest.raises(GateError) as caught:
        written(text, *cases, **wish)
    assert caught.value.exit_code == 2
    return [caught.value.message, *map(str, caught.value.problems)]


@pytest.mark.contract("accepting.command-line")
def test_with_entries__no_file_yet__is_the_file_of_this_entry() -> None:
    found = written("", "refund/a", owner="Kim", suite="evals/re*")
    assert found.text == (
        'waivers:\n  - case: refund/a\n    suite: "evals/re*"\n    reason: "known, #7"\n    until: 2026-12-05\n'
        "    owner: Kim\n"
    )
    assert found.entries == parse_waivers(found.text.encode(), TODAY, shown_as=PATH)


@pytest.mark.contract("accepting.command-line")
def test_with_entries__several__come_last_in_their_list_and_nothing_else_changes() -> None:
    found = written(OLD, "a", "case[1]")
    new = '  - case: a\n    reason: "known, #7"\n    until: 2026-12-05\n'
    new += '  - case: "case[1]"\n    reason: "known, #7"\n    until: 2026-12-05\n'
    assert found.text == OLD.replace("\n# flaky", f"{new}\n# flaky")
    assert [one.origin.line for one in found.entries if isinstance(one.origin, FileOrigin)] == [10, 13]


def test_with_entries__quarantine__goes_into_the_other_list() -> None:
    found = written(OLD, "a", kind=WaiverKind.QUARANTINE)
    assert found.text == OLD.replace(" []\n", '\n  - case: a\n    reason: "known, #7"\n    until: 2026-12-05\n')


@pytest.mark.contract("accepting.command-line")
def test_with_entries__one_that_has_ended__is_renewed_in_its_place() -> None:
    found = written(OLD, "faq/over")
    assert found.text == OLD.replace("was known", '"known, #7"').replace("2026-11-20 ", "2026-12-05 ")
    assert (found.renewed_cases, found.entries[0].owner) == ({"faq/over"}, "Kim")
    assert "    owner: Lee\n" in written(OLD, "faq/over", owner="Lee").text


RENEWED = {
    "block": (
        "waivers:\n  - case: a # a\n    reason: x # b\n    until: '2020-01-01' # c\n\nquarantine: []\n",
        'waivers:\n  - case: a # a\n    reason: still # b\n    until: "2026-12-05" # c\n    owner: Kim\n\nquarantine:',
    ),
    "no indent, in braces": (
        "waivers:\n- {case: a, until: 2020-01-01, owner: Lee, reason: x}\n",
        "waivers:\n- {case: a, until: 2026-12-05, owner: Kim, reason: still}\n",
    ),
    "in braces": (
        "waivers: [{case: a, reason: x, until: 2020-01-01}]",
        "waivers: [{case: a, reason: still, until: 2026-12-05, owner: Kim}]",
    ),
    "text on lines": (
        "waivers:\n  - case: a\n    until: 2020-01-01\n    reason: |\n      x\n      # y\n\nquarantine: []\n",
        "waivers:\n  - case: a\n    until: 2026-12-05\n    reason: still\n    owner: Kim\n\nquarantine: []\n",
    ),
}


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize(("text", "expected"), RENEWED.values(), ids=RENEWED)
def test_with_entries__renewed_in_any_layout__keeps_every_remark_beside_its_value(text, expected, ends) -> None:
    found = written(text.replace("\n", ends), "a", reason="still", owner="Kim")
    assert found.text.startswith(expected.replace("\n", ends))


@pytest.mark.contract("accepting.command-line")
def test_with_entries__one_that_still_holds__is_refused_with_its_line() -> None:
    assert refused(OLD, "refund/partial", "faq/over", "new") == [
        "the case is already waived",
        f'{PATH}:3: "refund/partial" is already waived until 2026-12-05: change that entry',
    ]
    # other eval files, or the other list, are another promise
    assert written(OLD, "refund/partial", suite="evals/b*").entries
    assert written(OLD, "refund/partial", kind=WaiverKind.QUARANTINE).entries


def test_with_entries__one_that_ends_today__still_holds() -> None:
    text = OLD.replace("2026-12-05", TODAY.isoformat())
    assert refused(text, "refund/partial") == [
        "the case is already waived",
        f'{PATH}:3: "refund/partial" is already waived until 2026-11-21: change that entry',
    ]


def test_with_entries__two_that_still_hold__are_both_named() -> None:
    text = OLD.replace("2026-11-20", "2026-12-01")
    message, *problems = refused(text, "refund/partial", "faq/over")
    assert (message, len(problems)) == ("the cases are already waived", 2)


REFUSED = {
    "no day": ({"until": "soon"}, '--until: "soon" is not a date like 2026-12-05 or a number of days like 14d'),
    "no such day": ({"until": "2026-02-30"}, "--until: 2026-02-30 is not a calendar date or a number"),
    "past": ({"until": "2026-11-20"}, "--until: 2026-11-20 is in the past"),
    "far": ({"until": "91d"}, "--until: 2027-02-20 is 91 days ahead: at most 90"),
    "no reason": ({"reason": "…"}, "--reason: must contain a letter or digit"),
    "long reason": ({"reason": "a" * 501}, "--reason: is longer than 500 characters"),
    "lines": ({"reason": "a\nb"}, "--reason: contains the control character U+000A"),
    "surrogate": ({"reason": "a\udc80"}, "--reason: contains the control character U+DC80"),
    "key": (
        {"reason": f"ghp_{'aB3dE6gH9jK2' * 3} is refused"},
        "--reason: holds what looks like a key (github-pat)",
    ),
    "key of the owner": ({"owner": "AKIAQ3EGTR5NLMP2XYZA"}, "--owner: holds what looks like a key (aws-access-token)"),
    "turned": ({"owner": "\u202eK"}, "--owner: contains the control character U+202E"),
    "no suite": ({"suite": " "}, "--suite: must not be empty"),
}


@pytest.mark.parametrize(("wish", "said"), REFUSED.values(), ids=REFUSED)
def test_with_entries__what_the_reader_would_refuse__is_refused_in_words_of_the_command_line(wish, said) -> None:
    message, *problems = refused(OLD, "a", "b", **wish)
    assert message == "the waiver is not valid"
    assert [problem for problem in problems if problem.startswith(said)], problems
    assert len(problems) == 1


@pytest.mark.parametrize("case", ["", "*", "a*", "x" * 301, "a\nb", "\u202e"])
def test_with_entries__name_that_is_none__is_refused(case) -> None:
    assert len(refused(OLD, case, until="0d", reason="-")) == 3


@pytest.mark.parametrize("text", ["{waivers: }\n", "x: &a [{case: a}]\n", "[]", "waivers: 1", "\xff"])
def test_with_entries__file_that_cannot_be_added_to__is_left_alone(text) -> None:
    assert refused(text, "new")


def test_with_entries__one_list_under_two_names__is_left_alone() -> None:
    text = "waivers: &a\n  - {case: abc, reason: r, until: 2026-12-01}\nquarantine: *a\n"
    assert "cannot add an entry to" in refused(text, "new")[0]


@pytest.mark.slow
def test_with_entries__full_list__is_refused_by_the_reader() -> None:
    full = yaml.dump({"waivers": [{"case": f"c{n}", "reason": "r", "until": "2026-12-01"} for n in range(MAX_ENTRIES)]})
    assert "at most 500 in one list" in refused(full, "new")[1]


def test_read_until__day_or_days__is_a_day() -> None:
    assert (parse_until("0d", TODAY), parse_until("90d", TODAY)) == (TODAY, TODAY + timedelta(days=90))
    assert parse_until("2026-11-21", TODAY) == TODAY


NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs", "Cf", "Zl", "Zp"]), min_size=1, max_size=12).filter(
    lambda text: text.strip() and not set(text) & set("*?[")
)
REASONS = st.text(st.characters(exclude_categories=["Cc", "Cs", "Cf", "Zl", "Zp"]), max_size=20).map(lambda t: f"r {t}")
ENTRY = st.fixed_dictionaries(
    {"case": NAMES, "reason": REASONS, "until": st.sampled_from(["2026-12-01", "2026-11-01"])},
    optional={"owner": NAMES, "suite": NAMES},
)
LISTS = st.lists(ENTRY, max_size=4, unique_by=lambda entry: (entry["case"], entry.get("suite")))


def said(waivers) -> list[str]:
    return sorted(msgspec.json.encode(replace(one, origin=FileOrigin(file="", line=0))) for one in waivers)


@pytest.mark.slow
@given(
    st.fixed_dictionaries({}, optional={"waivers": LISTS, "quarantine": LISTS}),
    st.sampled_from([True, False, None]),
    st.sampled_from([2, 4, 8]),
    NAMES,
    REASONS,
    st.sampled_from(list(WaiverKind)),
)
@pytest.mark.contract("accepting.command-line")
def test_with_entries__any_file__is_read_as_before_with_the_entry(lists, flow, indent, case, reason, kind) -> None:
    text = yaml.dump(lists, default_flow_style=flow, indent=indent, allow_unicode=True) if lists else ""
    before = parse_waivers(text.encode(), TODAY, shown_as=PATH)
    wish = WaiverRequest(kind, (case,), reason, "5d")
    try:
        found = add_entries(text.encode(), wish, TODAY, shown_as=PATH)
    except GateError as error:
        holds = any((one.kind, one.case, one.suite) == (kind, case, None) for one in before)
        assert error.code == "waive-failed"
        assert holds or flow is not False
        return
    new = Waiver(
        kind=kind, case=case, reason=reason.strip(), until=TODAY + timedelta(days=5), origin=found.entries[0].origin
    )
    kept = [one for one in before if (one.kind, one.case, one.suite) != (kind, case, None)]
    renewed = [one for one in before if one not in kept]
    by = renewed[0].owner if renewed else None
    assert said(parse_waivers(found.text.encode(), TODAY, shown_as=PATH)) == said([*kept, replace(new, owner=by)])
