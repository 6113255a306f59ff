"""Commands in comments: a small grammar, and a sentence for everything that is meant as one and is none."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.gate.waivers.waive_command import (
    MAX_CASES,
    CommandVerb,
    MalformedCommand,
    RefreshCommand,
    WaiveCommand,
    format_waive_command,
    parse_commands,
)

SHA = "0123456789abcdef0123456789abcdef01234567"
TOP = "a command must be the first line of its comment and begin with `/eval-gate waive` or `/eval-gate refresh`"
MORE = "`/eval-gate refresh` takes no further words"
LINE = "/eval-gate waive refund/partial -- known"
ONE = WaiveCommand(("refund/partial",), "known")


def sentences(body: str) -> list[str]:
    return [one.message for one in parse_commands(body) if isinstance(one, MalformedCommand)]


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("waive a -- known", WaiveCommand(("a",), "known")),
        ("waive a b/c 'd' -- known", WaiveCommand(("a", "b/c", "'d'"), "known")),
        ("waive a a -- known", WaiveCommand(("a",), "known")),
        ("waive refund/* -- known", WaiveCommand(("refund/*",), "known")),
        ("waive a -- known -- really", WaiveCommand(("a",), "known -- really")),
        ("waive a --   known  ", WaiveCommand(("a",), "known")),
        ("\t waive\ta\t--\tknown", WaiveCommand(("a",), "known")),
        ("waive a until 2026-12-05 -- known", WaiveCommand(("a",), "known", date(2026, 12, 5))),
        (f"waive a at {SHA.upper()} -- known", WaiveCommand(("a",), "known", None, SHA)),
        (f"waive a at {SHA} until 2026-12-05 -- x1", WaiveCommand(("a",), "x1", date(2026, 12, 5), SHA)),
        (f"waive a until 2026-12-05 at {SHA} -- x1", WaiveCommand(("a",), "x1", date(2026, 12, 5), SHA)),
        (f"waive a at {SHA}{SHA[:24]} -- x1", WaiveCommand(("a",), "x1", None, SHA + SHA[:24])),
        ('waive "a b" `c "d"` -- known', WaiveCommand(("a b", 'c "d"'), "known")),
        ('waive "at" "until" "--" -- known', WaiveCommand(("at", "until", "--"), "known")),
        ("waive --a -- known", WaiveCommand(("--a",), "known")),
        ('waive a"b -- known', WaiveCommand(('a"b',), "known")),
        ("waive 日本語/質問 -- 理由", WaiveCommand(("日本語/質問",), "理由")),
        ('waive "a\u00a0b" -- known', WaiveCommand(("a\u00a0b",), "known")),
    ],
)
def test_commands__well_formed__say_what_they_accept(line, command) -> None:
    assert parse_commands(f"/eval-gate {line}") == (command,)


@pytest.mark.contract("accepting.comment-form", "accepting.names")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "the command is missing; write `/eval-gate waive"),
        (" wave a -- known", 'unknown command "wave" (did you mean "waive"?); write `/eval-gate waive'),
        (" reject a -- known", 'unknown command "reject"; write'),
        (" waive", "the reason is missing"),
        (" waive a", "the reason is missing: end the command with `-- <reason>`"),
        *(
            (f" waive a {dash} known", f'with two hyphens instead of "{dash}"')
            for dash in (*"\u2014\u2013\u2212\u2010-", "---")
        ),
        (" waive a --", "the reason must contain a letter or digit"),
        (" waive a -- ... ", "the reason must contain a letter or digit"),
        (" waive a -- \u200b\u2063", "the reason must contain a letter or digit"),
        (f" waive a -- {'x' * 501}", "the reason is longer than 500 characters"),
        (" waive -- known", "the command names no case"),
        (" waive until 2026-12-05 -- known", "the command names no case"),
        (" waive * -- known", 'the case "*" is too general'),
        (" waive ** refund -- known", 'the case "**" is too general'),
        (' waive "" -- known', 'the case "" must not be empty'),
        (f" waive {'x' * 301} -- known", "is longer than 300 characters"),
        (" waive a until -- known", "`until` has no value"),
        (" waive a until soon -- known", '"soon" is not a date like 2026-12-05'),
        (" waive a until 2026-02-30 -- known", "2026-02-30 is not a calendar date"),
        (" waive a until 2026-12-05 until 2026-12-06 -- known", "`until` is given twice"),
        (" waive a at 9e8d7c6 -- known", '"9e8d7c6" is not a full commit hash'),
        (" waive a at main -- known", '"main" is not a full commit hash'),
        (f" waive a at {SHA} at {SHA} -- known", "`at` is given twice"),
        (f" waive a at {SHA} b -- known", '"b" comes after the options: write cases first'),
        (' waive "a -- known', "a quotation mark is not closed"),
        (' waive "a"b -- known', "a quotation mark is not closed, or no space follows it"),
        (" waive a\u00a0b -- known", "the command contains U+00A0"),
        (" waive a\u200b -- known", "the command contains U+200B"),
        (" waive a\u202eb -- known", "the command contains U+202E"),
        (' waive "a\u202eb" -- known', "contains the control character U+202E"),
        (
            f" waive {' '.join(f'c{number}' for number in range(51))} -- known",
            "the command names 51 cases: name at most 50",
        ),
        (f" waive a -- {'x' * 5_000}", "the command is longer than 4,000 characters"),
    ],
)
def test_commands__malformed__get_one_sentence(line, said) -> None:
    (sentence,) = sentences(f"/eval-gate{line}")
    assert said in sentence


@pytest.mark.parametrize(("count", "taken"), [(MAX_CASES, 1), (MAX_CASES + 1, 0)])
def test_commands__as_many_cases_as_there_may_be__are_taken(count, taken) -> None:
    names = " ".join(f"case-{number}" for number in range(count))
    found = parse_commands(f"/eval-gate waive {names} -- known")
    assert sum(isinstance(one, WaiveCommand) for one in found) == taken


def test_commands__several_lines_at_the_top__are_several_commands_and_talk_may_follow() -> None:
    body = f"\n  \n{LINE}\r\n\r\n/eval-gate waive b -- also\nThanks!\n"
    assert parse_commands(body) == (ONE, WaiveCommand(("b",), "also"))


def test_commands__one_good_and_one_malformed__are_both_there() -> None:
    found = parse_commands(f"{LINE}\n/eval-gate waive *")
    assert found[0] == ONE
    assert isinstance(found[1], MalformedCommand)


def test_commands__too_many__the_first_are_read_and_the_rest_is_said() -> None:
    found = parse_commands("\n".join([LINE] * 21))
    assert found[:20] == (ONE,) * 20
    assert sentences("\n".join([LINE] * 21)) == ["21 commands in one comment: only the first 20 are read"]


@pytest.mark.contract("accepting.comment-form")
@pytest.mark.parametrize(
    "body",
    [
        "",
        "Looks good.",
        "I would write /eval-gate waive a -- known, if I might.",
        "/eval-gatekeeper waive a -- known",
        "/evaluate",
        "The eval gate accepts too much.",
        f"> {LINE}",
        f"> somebody wrote:\n{LINE}",  # Markdown makes this line part of the quotation
        f"> - somebody wrote:\n> {LINE}\n{LINE}",
        f"```\n{LINE}\n```",
        f"```text\n{LINE}",
        f"~~~~\n~~~\n{LINE}\n~~~~",
        f"````\n```\n{LINE}\n````",
        f"   ```\n{LINE}\n   ```",
        f"    {LINE}",
        f"\t{LINE}",
        f"Say:\n\n    {LINE}\n",
        f"<!-- {LINE} -->",
        f"<!--\n{LINE}\n-->",
        f"Hello <!--\n{LINE}\n--> you",
        f"`{LINE}`",
        f"1. {LINE}",
    ],
)
def test_commands__quoted_or_talked_about__is_none(body) -> None:
    assert parse_commands(body) == ()


@pytest.mark.contract("accepting.comment-form")
@pytest.mark.parametrize(
    "body",
    [
        f"Hi!\n{LINE}",
        f"Hi!\n\n{LINE}",
        f" {LINE}",
        f"- {LINE}",
        f"**{LINE}**",
        f"\ufeff{LINE}",
        f"\u200b{LINE}",
        f"\u00a0{LINE}",
        f"```\ncode\n```\n{LINE}",
        f"> quoted\n\n{LINE}",
        f"<!-- hidden -->\n{LINE}",
        LINE.replace("/eval-gate", "/Eval-Gate"),
        LINE.replace("/eval-gate", "/evalgate"),
        LINE.replace("/eval-gate", "eval-gate"),
        LINE.replace("/eval-gate", "@eval-gate"),
        LINE.replace("/eval-gate", "@eval-gate:"),
        LINE.replace("/eval-gate", "\uff0feval\uff0dgate"),
        "/eval-gate\u00a0waive a -- known",
        "Hi!\n/eval-gate reject",
    ],
)
def test_commands__meant_as_one_but_not_at_the_top__is_none_and_gets_a_sentence(body) -> None:
    assert parse_commands(body) == (MalformedCommand(TOP),)


@pytest.mark.parametrize(("before", "found"), [(189, 1), (190, 1), (191, 0)])
def test_commands__meant_as_one_after_many_hidden_signs__is_noticed_among_the_first_200(before, found) -> None:
    body = "Hi!\n" + "\u200b" * before + "/eval-gate"
    assert parse_commands(body) == (MalformedCommand(TOP),) * found


@pytest.mark.parametrize(
    "body",
    [
        "`" * 65_000,
        ">" * 65_000,
        "/eval-gate " * 6_000,
        '/eval-gate waive "' + '" "' * 1_000,
        "\n" * 65_000 + LINE,
        "/eval-gate waive\n" * 4_000,
        "<!--" * 16_000,
        "/" * 65_000,
        ("```\n" + LINE + "\n") * 2_000,
        "\u200b" * 65_000,
        "/eval-gate waive a -- \ud83d",
    ],
)
def test_commands__hostile_body__is_read_and_gives_few_things(body) -> None:
    assert len(parse_commands(body)) <= 22


PIECES = [
    "/eval-gate",
    "waive",
    "a",
    "refund/*",
    "*",
    '"',
    "`",
    "--",
    "until",
    "at",
    "2026-12-05",
    SHA,
    "\n",
    "> ",
    "```",
]
WORDS = st.sampled_from(PIECES)


@given(st.lists(WORDS | st.text(max_size=5), max_size=20).map(" ".join))
def test_commands__any_text__only_what_begins_at_the_top_accepts_anything(body) -> None:
    found = parse_commands(body)
    if any(isinstance(one, WaiveCommand) for one in found):
        assert body.replace("\r", "\n").lstrip(" \t\n").startswith("/eval-gate")
    for one in found:
        if isinstance(one, WaiveCommand):
            assert one.cases
            assert "*" not in one.cases
            assert one.reason
        else:
            assert one.message


@given(st.lists(WORDS | st.text(max_size=5), max_size=20).map(" ".join), st.sampled_from(["> ", "    ", "`", "x"]))
def test_commands__any_text_quoted__accepts_nothing(body, mark) -> None:
    quoted = "".join(mark + line for line in body.splitlines(keepends=True))
    assert not any(isinstance(one, WaiveCommand) for one in parse_commands(quoted.replace("\r", "")))


# --- refresh ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("/eval-gate refresh", (RefreshCommand(),)),
        ("/eval-gate  refresh \t\r\nThanks!", (RefreshCommand(),)),
        (f"{LINE}\n/eval-gate refresh", (ONE, RefreshCommand())),
        ("/eval-gate refresh main", (MalformedCommand(MORE, CommandVerb.REFRESH),)),
        ("/eval-gate refresh -- stale", (MalformedCommand(MORE, CommandVerb.REFRESH),)),
        ("/eval-gate refresh\u00a0", (MalformedCommand(MORE, CommandVerb.REFRESH),)),
        ("Hi!\n/eval-gate refresh", (MalformedCommand(TOP),)),
        ("@eval-gate refresh", (MalformedCommand(TOP),)),
        ("> /eval-gate refresh", ()),
        ("```\n/eval-gate refresh\n```", ()),
        ("    /eval-gate refresh", ()),
        ("<!-- /eval-gate refresh -->", ()),
        ("<!-- eval-gate:v1 key=k -->\n> /eval-gate refresh", ()),
    ],
)
def test_refresh__as_a_line__is_one_only_at_the_top_and_alone(body, found) -> None:
    assert parse_commands(body) == found


@pytest.mark.parametrize("verb", ["Refresh", "REFRESH", "refresh.", "refresh!", "refresh,", "refresh\u200b"])
def test_refresh__other_case_or_a_mark_behind_it__says_how_it_is_written(verb) -> None:
    """Whoever wrote it waits for a reply."""
    said = "write `/eval-gate refresh`, in lower case and with nothing behind it"
    assert parse_commands(f"/eval-gate {verb}") == (MalformedCommand(said, CommandVerb.REFRESH),)


@pytest.mark.parametrize("verb", ["refreshed", "refresh-all", "refresh_all", "re-fresh"])
def test_refresh__another_word__is_an_unknown_command(verb) -> None:
    (sentence,) = sentences(f"/eval-gate {verb}")
    assert f'unknown command "{verb}"' in sentence


# --- offered for copying ----------------------------------------------------------------------------------------------

NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs", "Cf", "Zl", "Zp"]), min_size=1, max_size=12) | WORDS


@given(
    st.lists(NAMES, min_size=1, max_size=4, unique=True),
    st.sampled_from(["known", "see #481 -- and more", "why?"]),
    st.sampled_from([None, SHA]),
    st.sampled_from([None, date(2026, 12, 5)]),
)
def test_command_line__any_cases__reads_as_what_it_says_or_cannot_be_written(cases, reason, commit, until) -> None:
    try:
        line = format_waive_command(cases, reason, commit=commit, until=until)
    except ValueError:
        return
    assert parse_commands(line) == (WaiveCommand(tuple(cases), reason, until, commit),)


@pytest.mark.parametrize("case", ["refund/partial", "a b", "at", "until", "--", 'say "hi"', "what`s up", "日本語"])
def test_command_line__case_of_this_name__can_be_written(case) -> None:
    assert parse_commands(format_waive_command([case], "known")) == (WaiveCommand((case,), "known"),)


@pytest.mark.parametrize(("case", "reason"), [("a", ""), ("*", "known"), ("a", "two\nlines"), ('"`', "x1"), ("", "x1")])
def test_command_line__what_no_command_can_say__is_refused(case, reason) -> None:
    with pytest.raises(ValueError, match="cannot be named"):
        format_waive_command([case], reason)
