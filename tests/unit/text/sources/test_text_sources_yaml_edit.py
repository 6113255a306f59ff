"""Changes of YAML that a person keeps: what is new is there, and everything else is as it was."""

from __future__ import annotations

import difflib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.text.sources.yaml_edit import append_entry, format_scalar

NEW = {"case": "new", "reason": "it's said: #481", "until": "2026-12-05"}
LAYOUTS = {
    "nothing": ("", "waivers:\n  - case: new\n"),
    "a remark": ("# ours\n", "# ours\nwaivers:\n  - case: new\n"),
    "no line break": ("# ours", "# ours\nwaivers:\n  - case: new\n"),
    "a mark": ("---\n", "---\nwaivers:\n  - case: new\n"),
    "another list": ("quarantine:\n  - case: q\n", "quarantine:\n  - case: q\nwaivers:\n  - case: new\n"),
    "nothing below": ("waivers:\n  # none\nquarantine:\n", "waivers:\n  - case: new\n"),
    "an empty list": ("waivers: []  # none\nquarantine: []\n", "waivers:  # none\n  - case: new\n"),
    "null": ("waivers: ~\n", "waivers:\n  - case: new\n"),
    "entries": ("waivers:\n  - case: a\n    x: y # z\n\n# next\nquarantine: []\n", "# z\n  - case: new\n"),
    "entries to the left": ("waivers:\n- case: a\nquarantine: []\n", "- case: a\n- case: new\n"),
    "far to the right": ("waivers:\n      - case: a\n", "      - case: a\n      - case: new\n"),
    "a dash alone": ("waivers:\n  -\n    case: a\n", "case: a\n  - case: new\n"),
    "text on lines": ("waivers:\n  - case: a\n    x: |\n      # no remark\n\n\nquarantine: []\n", "# no remark\n  - "),
    "in brackets": ("waivers: [{case: a}]\n", 'waivers: [{case: a}, {case: new, reason: "it'),
    "in brackets, more lines": ("waivers: [\n  {case: a}, # first, and\n]\n", "# first, and\n{case: new"),
    "in braces": ("{waivers: [{case: a}]}\n", "{waivers: [{case: a}, {case: new"),
    "a remark to its left": ("waivers:\n  - case: a\n  # - case: old\n", "  - case: a\n  - case: new\n"),
    "windows": ("waivers:\r\n  - case: a\r\n", "  - case: a\r\n  - case: new\r\n"),
    "no last line break": ("waivers:\n  - case: a", "  - case: a\n  - case: new\n"),
    "set in": ("  waivers:\n  - case: a\n  quarantine: []\n", "  - case: a\n  - case: new\n"),
    "a byte order mark": ("\ufeffwaivers:\n  - case: a\n", "  - case: a\n  - case: new\n"),
    "an end": ("waivers:\n  - case: a\n...\n", "  - case: a\n  - case: new\n"),
    "lines that YAML breaks": ("waivers:\n  - case: 'a\u2028b'\nquarantine: []\n", "'\n  - case: new\n"),
}


@pytest.mark.parametrize(("text", "part"), LAYOUTS.values(), ids=LAYOUTS)
def test_append__any_layout__adds_the_entry_and_changes_no_other_line(text, part) -> None:
    written = append_entry(text, "waivers", NEW)
    assert part in written
    before, after = yaml.safe_load(text) or {}, yaml.safe_load(written)
    said = {**NEW, "until": after["waivers"][-1]["until"]}
    assert after == {**before, "waivers": [*(before.get("waivers") or []), said]}
    gone = [line[2:] for line in difflib.ndiff(text.splitlines(), written.splitlines()) if line.startswith("- ")]
    assert all(set("[]~") & set(line) for line in gone), gone


@pytest.mark.parametrize("text", ["[]\n", "waivers: 1\n", "{}\n", "{quarantine: []}\n", "{waivers: }\n"])
def test_append__layout_that_it_does_not_know__is_refused(text) -> None:
    with pytest.raises(ValueError, match=r"it is|is not a list"):
        append_entry(text, "waivers", NEW)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_scalar__any_text__is_read_as_that_text(text) -> None:
    shown = format_scalar(text)
    assert len(shown.splitlines()) == 1
    assert yaml.load(f"a: {shown}", Loader=yaml.BaseLoader) == {"a": text}


@pytest.mark.parametrize("word", ["null", "No", "y", "TRUE", "1", "1e3", "a: b", "- a", "*a", "-", "~", "a#b", "a #b"])
def test_scalar__what_yaml_takes_for_something_else__is_in_quotes(word) -> None:
    assert format_scalar(word) == f'"{word}"'
    assert yaml.safe_load(f"a: {format_scalar(word)}") == {"a": word}


def test_append_entry__nothing_but_a_mark_of_its_encoding__begins_behind_it() -> None:
    assert append_entry("\ufeff", "waivers", {"case": "new"}) == "\ufeffwaivers:\n  - case: new\n"


@pytest.mark.parametrize("name", ["waivers", "quarantine"])
@pytest.mark.parametrize("text", ["waivers:\n  - case: a\n", "quarantine: []\nwaivers:\n  - case: a\n\n# end\n"])
def test_append_entry__line_breaks_of_windows__are_the_only_ones_and_the_rest_is_the_same(text, name) -> None:
    written = append_entry(text.replace("\n", "\r\n"), name, NEW)
    assert written == append_entry(text, name, NEW).replace("\n", "\r\n")
