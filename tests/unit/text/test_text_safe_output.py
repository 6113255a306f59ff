"""Signs that hide or turn what stands beside them."""

import json
import unicodedata

import pytest

from eval_gate.text.escape import to_console_line, to_one_line
from eval_gate.text.safe_output import neutralize_json, neutralize_markup, neutralize_text, reveal_all_invisible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x00b", "a\u2400b"),
        ("\x1b", "\u241b"),
        ("\x1f", "\u241f"),
        ("\x7f", "[U+007F]"),
        ("\u202e", "[U+202E]"),
        ("\x85", "[U+0085]"),
        ("\u2028", "[U+2028]"),
        ("\U000e0041", "[U+E0041]"),
        ("a\tb\nc é", "a\tb\nc é"),
    ],
    ids=["nul", "escape", "the-last-control", "delete", "turns-a-line", "nel", "ends-a-line", "tag", "nothing"],
)
def test_visible__unseen_sign__is_a_mark_of_its_own(text, shown) -> None:
    assert reveal_all_invisible(text) == shown


BIDI = {0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF, 0xE0001, 0xE0041}


def test_unseen_signs__in_every_form__are_not_there_as_they_are() -> None:
    unseen = [
        chr(code)
        for code in range(0x80, 0xE0080)
        if unicodedata.category(chr(code)) in {"Cc", "Zl", "Zp"} or code in BIDI
    ]
    assert len(unseen) > 45
    for sign in unseen:
        text = f"a{sign}b"
        written = neutralize_json(json.dumps([text], ensure_ascii=False))
        assert not any(sign in form for form in (reveal_all_invisible(text), to_one_line(text), written)), (
            f"U+{ord(sign):04X}"
        )
        assert json.loads(written) == [text]


@pytest.mark.parametrize("form", [neutralize_text, neutralize_markup])
def test_command__after_a_carriage_return__is_inert(form) -> None:
    """The runner's reader of lines ends one there, too."""
    assert "\r::" not in form("50%\r::error::x")
    assert "\r \t::" not in form("50%\r \t::error::x")


@pytest.mark.parametrize("command", ["##[error]x", "##vso[task.setvariable variable=PATH]x", "##TeamCity[x]"])
def test_command__of_another_ci_system_anywhere_in_a_line__is_inert(command) -> None:
    start = command.partition("[")[0]
    for form in (neutralize_text, neutralize_markup, neutralize_json, to_console_line):
        assert f"{start}[" not in form(f'"a {command}"')
    assert json.loads(neutralize_json(json.dumps(command))) == command
