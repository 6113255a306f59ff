"""The file of accepted failures: what it may say, and every way in which it may be wrong."""

from __future__ import annotations

import os
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.errors import GateError
from eval_gate.gate.waivers.waiver_file import MAX_FILE_BYTES, mark_added_waivers, parse_waivers, read_waivers
from eval_gate.model.waiver import CommentOrigin, FileOrigin, Waiver, WaiverKind
from eval_gate.struct import replace

TODAY = date(2026, 11, 21)
PATH = ".eval-gate/waivers.yaml"
GOOD = """\
waivers:
  - case: refund/partial-order
    reason: "the new tool answers later, #481"
    until: 2026-12-05
quarantine:
  - case: faq/opening-*
    suite: evals/faq*.yaml
    reason: |
      the judge disagrees with itself
      about Sundays
    until: "2026-12-01"
    owner: Kim
"""
SHORT = "{case: a, reason: r, until: 2026-12-05}"


def parse(text: str | bytes) -> tuple[Waiver, ...]:
    return parse_waivers(text.encode() if isinstance(text, str) else text, TODAY, shown_as=PATH)


def problems(text: str | bytes) -> list[str]:
    with pytest.raises(GateError) as caught:
        parse(text)
    assert caught.value.exit_code == 2
    return [str(problem).removeprefix(f"{PATH}:") for problem in caught.value.problems]


def entry(**fields: str) -> str:
    """A file of one accepted case with these fields in place of good ones; an empty one is left out."""
    values = {"case": "a", "reason": "known", "until": "2026-12-05"} | fields
    lines = [f"{name}: {value}" for name, value in values.items() if value]
    return "waivers:\n  - " + "\n    ".join(lines) + "\n"


@pytest.mark.contract("accepting.file")
def test_parse__both_lists__give_waivers_with_their_lines() -> None:
    accepted, aside = parse(GOOD)
    assert accepted == Waiver(
        kind=WaiverKind.WAIVER,
        case="refund/partial-order",
        reason="the new tool answers later, #481",
        until=date(2026, 12, 5),
        origin=FileOrigin(file=PATH, line=2),
    )
    assert (aside.kind, aside.suite, aside.owner, aside.until) == (
        WaiverKind.QUARANTINE,
        "evals/faq*.yaml",
        "Kim",
        date(2026, 12, 1),
    )
    assert aside.reason == "the judge disagrees with itself\nabout Sundays"
    assert aside.origin == FileOrigin(file=PATH, line=6)


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "waivers:\n", "waivers: []\nquarantine:\n", "{}"])
def test_parse__nothing_in_it__is_nothing(text) -> None:
    assert parse(text) == ()


@pytest.mark.contract("accepting.file", "accepting.names", "accepting.expires")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a", "1: expected a mapping with `waivers` and `quarantine`, got a list"),
        ("waiver: []", '1: waiver: unknown key (did you mean "waivers"?)'),
        ("waivers: a", '1: waivers: expected a list, got text "a"'),
        ("waivers:\n  a: b", "1: waivers: expected a list, got a mapping"),
        ("waivers:\n  - a", '2: waivers[0]: expected a mapping with case, reason, until, got text "a"'),
        ("waivers:\n  - null", "2: waivers[0]: expected a mapping with case, reason, until, got null"),
        (entry(untl="2026-12-05"), '5: waivers[0].untl: unknown key (did you mean "until"?)'),
        (entry(case=""), "2: waivers[0].case: is missing"),
        (entry(reason=""), "2: waivers[0].reason: is missing"),
        (entry(until=""), "2: waivers[0].until: is missing"),
        (entry(case="7"), "2: waivers[0].case: expected text, got the number 7: put it in quotes"),
        (entry(case="true"), "2: waivers[0].case: expected text, got true: put it in quotes"),
        (entry(case="null"), "2: waivers[0].case: expected text, got null"),
        (entry(case="[a]"), "2: waivers[0].case: expected text, got a list"),
        (entry(case="'  '"), "2: waivers[0].case: must not be empty"),
        (
            entry(case="'*'"),
            "2: waivers[0].case: is too general: a glob needs at least 3 letters or digits besides its wildcards",
        ),
        (entry(case='"a\\u202eb"'), "2: waivers[0].case: contains the control character U+202E"),
        (entry(case="x" * 301), "2: waivers[0].case: is longer than 300 characters"),
        (entry(suite="'\t'"), "5: waivers[0].suite: must not be empty"),
        (entry(suite="x" * 301), "5: waivers[0].suite: is longer than 300 characters"),
        (entry(owner='"\\0"'), "5: waivers[0].owner: contains the control character U+0000"),
        (entry(reason="later, #481"), "3: waivers[0].reason: #481 is a comment in YAML: put the text in quotes"),
        (entry(reason="'...'"), "3: waivers[0].reason: must contain a letter or digit"),
        (entry(reason='"\\u200b\\u00a0"'), "3: waivers[0].reason: must contain a letter or digit"),
        (entry(reason="x" * 501), "3: waivers[0].reason: is longer than 500 characters"),
        (entry(until="2026-02-30"), "4: waivers[0].until: 2026-02-30 is not a calendar date"),
        (entry(until="2026-13-01"), "4: waivers[0].until: 2026-13-01 is not a calendar date"),
        (entry(until="0000-00-00"), "4: waivers[0].until: 0000-00-00 is not a calendar date"),
        (entry(until="20261205"), "4: waivers[0].until: expected text, got the number 20261205: put it in quotes"),
        (entry(until="2026-12-5"), '4: waivers[0].until: "2026-12-5" is not a date like 2026-12-05'),
        (entry(until="2026-W50-1"), '4: waivers[0].until: "2026-W50-1" is not a date like 2026-12-05'),
        (entry(until="2026-12-05T10:00Z"), '4: waivers[0].until: "2026-12-05T10:00Z" is not a date like 2026-12-05'),
        (entry(until="٢٠٢٦-١٢-٠٥"), '4: waivers[0].until: "٢٠٢٦-١٢-٠٥" is not a date like 2026-12-05'),
        (entry(until="never"), '4: waivers[0].until: "never" is not a date like 2026-12-05'),
        (entry(until="2027-02-20"), "4: waivers[0].until: 2027-02-20 is 91 days ahead: at most 90"),
        (entry(until="9999-12-31"), "4: waivers[0].until: 9999-12-31 is 2,912,118 days ahead: at most 90"),
        (f"{entry()}  - {SHORT}", '5: waivers[1].case: "a" is already in line 2'),
    ],
)  # fmt: skip
def test_parse__wrong__is_said_with_its_line(text, said) -> None:
    assert problems(text) == [said]


@pytest.mark.contract("accepting.expires")
@pytest.mark.parametrize("until", ["0001-01-01", "2026-11-20", "2026-11-21", "2027-02-19"])
def test_parse__past_or_within_90_days__is_taken(until) -> None:
    (one,) = parse(entry(until=until))
    assert one.until.isoformat() == until


@pytest.mark.contract("accepting.file")
def test_parse__several_wrong__are_all_said_at_once() -> None:
    text = "waivers:\n  - case: '**'\n    until: soon\n  - nothing\nquarantine: 7\nother: []\n"
    assert [said.partition(":")[0] for said in sorted(problems(text))] == ["2", "2", "3", "4", "5", "6"]


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2",
        "waivers: &a [*a]",
        "waivers: !!python/object:os.system []",
        "waivers: [",
        b"\xff\xfe\x00",
        "--- a\n--- b",
    ],
)
def test_parse__not_the_yaml_that_is_read__is_refused(text) -> None:
    with pytest.raises(GateError) as caught:
        parse(text)
    assert caught.value.code == "invalid-yaml"


def test_parse__same_name_in_the_other_list_or_for_another_suite__is_another_entry() -> None:
    text = f"waivers:\n- {SHORT}\n- {{case: a, suite: s, reason: r, until: 2026-12-05}}\nquarantine:\n- {SHORT}\n"
    assert len(parse(text)) == 3


def test_parse__too_many_or_too_large__is_refused() -> None:
    rows = "".join(f"- {{case: c{number}, reason: r, until: 2026-12-05}}\n" for number in range(501))
    assert problems(f"waivers:\n{rows}") == ["1: waivers: 501 entries: at most 500 in one list"]
    assert problems(b"#" * (MAX_FILE_BYTES + 1)) == [" is larger than 200,000 bytes"]


@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: f"waivers: {text}".encode("utf-8", "replace")))
def test_parse__any_bytes__are_waivers_or_a_sentence(data) -> None:
    try:
        found = parse(data)
    except GateError as error:
        assert error.problems
    else:
        assert all(one.until <= TODAY + timedelta(days=90) for one in found)


# --- on disk ----------------------------------------------------------------------------------------------------------


def test_read__file__is_named_as_it_was_asked_for(tmp_path) -> None:
    (tmp_path / "f.yaml").write_text(GOOD, encoding="utf-8")
    found = read_waivers(tmp_path / "f.yaml", TODAY, shown_as=PATH)
    assert [one.origin.file for one in found if isinstance(one.origin, FileOrigin)] == [PATH, PATH]


def test_read__no_file__is_nothing(tmp_path) -> None:
    assert read_waivers(tmp_path / "none" / "f.yaml", TODAY, shown_as=PATH) == ()


def test_read__what_is_no_file__is_refused_and_not_waited_for(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name in ("pipe", "dangling", "device", "."):
        with pytest.raises(GateError) as caught:
            read_waivers(tmp_path / name, TODAY, shown_as=PATH)
        assert caught.value.code == "configuration-unreadable"


def test_read__more_than_the_limit__is_refused(tmp_path) -> None:
    (tmp_path / "f.yaml").write_bytes(b"#" * (MAX_FILE_BYTES + 9))
    with pytest.raises(GateError):
        read_waivers(tmp_path / "f.yaml", TODAY, shown_as=PATH)


# --- what is new ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base", "here", "new"),
    [
        (entry(), entry(), False),
        (entry(reason="another"), entry(), False),
        (entry(until="2026-12-06"), entry(), False),
        (entry(until="2026-12-04"), entry(), True),
        (entry(until="2026-11-01"), entry(), True),
        (entry(case="b"), entry(), True),
        (entry(suite="s"), entry(), True),
        (entry(), entry(suite="s"), True),
        (entry().replace("waivers", "quarantine"), entry(), True),
        ("", entry(), True),
    ],
)
def test_marked_new__entry_of_the_base__is_the_same_promise_at_least_as_long(base, here, new) -> None:
    (one,) = mark_added_waivers(parse(here), parse(base))
    assert one.is_new is new


def test_marked_new__comment__stays_as_it_is() -> None:
    origin = CommentOrigin(author="ada", url="https://github.com/", written_at="2026-11-20T10:00:00Z")
    one = replace(parse(entry())[0], origin=origin)
    assert mark_added_waivers([one], []) == (one,)
