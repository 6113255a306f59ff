"""What is wrong with a text that is no JSON, in words that say what to change; many are YAML or JavaScript."""

from __future__ import annotations

import json
import re
from typing import Final

_COMMENTS: Final = ("//", "/*", "#")
_YAML: Final = re.compile(r"(?:%YAML|---)(?:\s|$)|- \S|[A-Za-z_][\w. -]{0,100}:(?:\s|$)", re.ASCII)
"""How the first line of YAML begins that says something."""
_AHEAD: Final = 10_000
"""Characters in which the first such line is looked for."""


def what_is_wrong(text: str, error: json.JSONDecodeError) -> tuple[int, str]:
    """The line, and a sentence with the column. `error` is what Python's reader said of this text."""
    if not text.strip():
        return 1, "the file is empty"
    yaml = _yaml(text, error.pos)
    if yaml is not None:
        line, column = _place(text, yaml)
        return line, f"this is YAML; JSON is read here: write it as JSON, as from line {line} (column {column})"
    comma = _trailing_comma(text, error.pos)
    if comma is not None:
        line, column = _place(text, comma)
        return line, f"a trailing comma; JSON is read here: remove the comma in line {line} (column {column})"
    at = _next(text, error.pos)
    line, column = _place(text, at)
    rest = text[at : at + 2]
    if rest.startswith(_COMMENTS):
        return line, f"a comment; JSON is read here: remove the comment in line {line} (column {column})"
    if rest.startswith("'"):
        return line, f"single quotes; JSON is read here: write double quotes in line {line} (column {column})"
    if error.msg == "Extra data":
        return line, f"there is something after the end of the value (column {column})"
    return error.lineno, f"{error.msg[:1].lower()}{error.msg[1:]} (column {error.colno})"


def _yaml(text: str, at: int) -> int | None:
    """Where YAML begins; None where this is none, or where JSON had already begun."""
    begin = 0
    for line in text[:_AHEAD].splitlines(keepends=True):
        if line.strip() and not line.startswith("#"):
            # what stands before the place of the error was read as JSON: a word such as `null` at most
            return begin if _YAML.match(line) and at <= begin + len(line) else None
        begin += len(line)
    return None


def _trailing_comma(text: str, at: int) -> int | None:
    """The comma before a closing bracket at this place; Python names the one or the other, by its version."""
    end = _next(text, at + 1 if text[at : at + 1] == "," else at)
    if text[end : end + 1] not in ("}", "]"):
        return None
    before = end - 1
    while before >= 0 and text[before].isspace():
        before -= 1
    return before if before >= 0 and text[before] == "," else None


def _next(text: str, at: int) -> int:
    """The next place that is no white space."""
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _place(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
