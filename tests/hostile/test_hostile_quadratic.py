"""Finding 3: 60,000 blanks in a description took 37 s. Whatever meets foreign text is linear in its length.

No clock on the wall: only the time that this process computed counts, and what exceeds it is ended there. The bounds
are tens of times what linear work needs, and a hundredth of what quadratic work would.
"""

import inspect
import os

import pytest

from eval_gate.text.escape import to_one_line
from eval_gate.text.tokens import TokenData, resolve_tokens
from tests.support.bounds import within_cpu
from tests.support.patterns import attacks, patterns
from tests.support.takers import takers

PUMPS = (
    *" \t\n\r\\[]{}(\"'`~019a/#@-&<|*+=%$.:,>\x00",
    *(" \n", "\r\n", "[[]", "{{", '{"', "```\n", "e\u0301", "\u0301\u0327", "\u0315\u0300", "\x1b[", "\x1b]", "a "),
    *("a.", "a,", "<!--", "**", "${{", "{{seed:", "$[", "..", "::", "\ud800", "\U0001f600", "A:", "x=", "- ", "a: "),
    *("? ", "&a ", "//", "/*", "eval-gate waive x\n", "> ", "\u200b", '"\\u0000",', "1.", "v1", "aA", "&#"),
)
AROUND = (("", ""), ("[", "]"), ('"', '"'), ('{"a":"', '"}'), ("a ", "!"))
SLOWER = {
    "parse_yaml": 20,
    "parse_module": 20,
    "_load_yaml": 20,
    "_find_yaml": 20,
    "_find_outline_problems": 5,
    "_compose_root": 20,
}
"""Whole parsers: linear as well, and with more to do for each character."""
LONG = "EVAL_GATE_FUZZ" in os.environ
"""Every text in every surrounding; else each in two of them, others for other functions."""
BOUNDED = frozenset({"_split_words", "_split_prompts", "_build_check", "_check_name"})
"""They get a line of at most 4,000 characters, a name of at most 255: a shorter text is enough to see that."""


def test_finding_3__one_line__blanks_take_linear_time() -> None:
    for pump in (" ", "\t", "\u2003", "\x1c", " \t"):
        for size in (50_000, 100_000, 400_000):
            with within_cpu(1, f"{size:,} of {pump!r}"):
                to_one_line("a" + pump * size + "b")


@pytest.mark.parametrize("text", [" a \r\n\n b", "a\n", "a \x0b b", "a\r b\rc", "a\x1c\nb", "a  b"])
def test_one_line__line_breaks_among_blanks__show_as_one_sign(text) -> None:
    expected = {" a \r\n\n b": "a ⏎ b", "a\n": "a", "a \x0b b": "a   b", "a\r b\rc": "a ⏎ b ⏎ c", "a\x1c\nb": "a ⏎ b"}
    assert to_one_line(text) == expected.get(text, text)


@pytest.mark.rows_each("used")
@pytest.mark.parametrize("used", patterns(), ids=lambda used: f"{used.place} {used.method}")
def test_finding_3__every_pattern__takes_linear_time(used) -> None:
    for text in attacks(used.pattern, 20_000):
        with within_cpu(0.8, f"{used.place}.{used.method} of {text[:20]!r}…"):
            used(text)


@pytest.mark.rows_each("taker")
@pytest.mark.parametrize("taker", list(takers()), ids=lambda taker: taker[0])
def test_finding_3__every_function_that_takes_text__takes_linear_time(taker, fast_tier) -> None:
    place, function, needed = taker
    name = place.rpartition(".")[2]
    size = 3_000 if name in BOUNDED else 20_000
    pumps = list(enumerate(dict.fromkeys(PUMPS)))
    # in the fast tier one in eight for each function, others for the next one
    for number, pump in pumps[len(place) % 8 :: 8] if fast_tier else pumps:
        for before, after in AROUND if LONG else {AROUND[0], AROUND[(number + len(place)) % len(AROUND)]}:
            text = before + pump * (size // len(pump)) + after
            arguments = [_as(kind, text if index == 0 else "x") for index, kind in enumerate(needed)]
            with within_cpu(2 * SLOWER.get(name, 1), f"{place} of {before}{pump!r}…"):
                _called(function, arguments)


def _as(kind: str, text: str) -> str | bytes:
    return text.encode("utf-8", "surrogatepass") if kind == "bytes" else text


def _called(function, arguments) -> None:
    """What it says about such a text is another test's; here it only has to say so in time."""
    try:
        found = function(*arguments)
        if inspect.isgenerator(found):
            list(found)
    except Exception:  # noqa: BLE001
        return


def test_finding_3__command_template__lines_take_linear_time() -> None:
    from eval_gate.text.command_template import CommandTemplate

    with within_cpu(2):
        CommandTemplate.from_command("echo {PROMPT}\n" + "#\n" * 100_000)
    with pytest.raises(ValueError, match="behind <<"):
        CommandTemplate.from_command("cat <<EOF\n{PROMPT}\nEOF\n")


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_turns__many_messages_of_one_in_a_row__take_linear_time(role) -> None:
    from eval_gate.external_results.chat_turns import build_turns
    from eval_gate.external_results.records import Fields

    with within_cpu(2):
        build_turns([Fields({"role": role, "content": "x" * 200})] * 30_000)


def test_tokens__an_index_of_thousands_of_digits__leads_nowhere() -> None:
    """Python refuses to read such a number, which ended the run."""
    data = TokenData(seed={"a": [1, 2]})
    for path in ("a[" + "9" * 5_000 + "]", "a." + "9" * 5_000):
        assert resolve_tokens(f"{{{{seed:{path}}}}}", data).text is None
    assert resolve_tokens("{{seed:a[0001]}}", data).text == "2"


def test_finding_3__marks_on_one_letter__are_not_put_in_order() -> None:
    """Unicode's normal form sorts them, one by one: 40,000 take over a second, a million a quarter of an hour."""
    from eval_gate.gate.waivers.case_names import CaseNameIndex
    from eval_gate.model.waiver import CaseStanding
    from eval_gate.sandbox.paths import SandboxError, split_path

    marks = "a" + "\u0301\u0327" * 200_000
    with within_cpu(2):
        found = CaseNameIndex([CaseStanding(case_id=marks, suite="s.json", standing="fails")]).find_cases("a*", None)
        with pytest.raises(SandboxError, match="longer than"):
            split_path(marks)
    assert len(found) == 1
