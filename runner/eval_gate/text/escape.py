"""Escape untrusted text for Markdown on GitHub, workflow logs and terminals.

Every function takes raw text and gives text that stays inside its place: a code span, a cell, a line, a fence.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from eval_gate.text.safe_output import INVISIBLE, LEGACY_COMMAND

_Item = TypeVar("_Item")

MAX_TEXT: Final = 120
MAX_BLOCK: Final = 4_000
MAX_KEY: Final = 200

_CONTROLS: Final = re.compile(
    # ANSI sequences, C0 and C1, zero width, bidirectional overrides, separators, surrogates, invisible tags
    rf"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|[\x00-\x1f{INVISIBLE}]"
)
_CONTROLS_BUT_NEWLINE: Final = re.compile(_CONTROLS.pattern.replace(r"[\x00-\x1f", r"[\x00-\x08\x0b-\x1f"))
_PUNCTUATION: Final = re.compile(
    r"^\d+[.)](?=\s|$)|^[-+=]|[.](?=[^\s\d])|[:!](?=\S)|(?i:(?<![^\W_])gh)-(?=\d)|[#$&*<>@\[\\\]^_`{|}~]"
)
"""What could begin Markdown, HTML, a mention, a reference, a link or a list; the rest is left readable."""
_NO_REFERENCE: Final = "&#8203;"
"""A zero-width space. GitHub looks for mentions and references in the finished text, where an entity is its character
again; only something between the sign and the name stops it (github/markup#1168)."""
_COMMAND: Final = re.compile(r"^\s*::")
_BLANKS: Final = re.compile(r"\s+")
_LINE_BREAK: Final = re.compile(r"[\r\n⏎]")
"""Also as `to_one_line` marks it."""


def truncate_text(text: str, limit: int = MAX_TEXT) -> str:
    """Truncate a text to at most `limit` characters, the last one an ellipsis if something is missing."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def to_one_line(text: str, limit: int = MAX_TEXT) -> str:
    """Put the text on one line, without control characters; a line break becomes `⏎`."""
    # a run of blanks is read once: looking for the line break inside of it would begin anew at each of them
    marked = _BLANKS.sub(_mark_line_break, text.strip())
    return truncate_text(_CONTROLS.sub(" ", marked).strip(), limit)


def truncate_middle(text: str, limit: int = MAX_TEXT) -> str:
    """Truncate a text in its middle: an error begins with what failed and ends with the reason."""
    if len(text) <= limit:
        return text
    head = limit // 3
    return f"{text[:head].rstrip()}…{text[len(text) - (limit - head - 1) :].lstrip()}"


def shorten_error(text: str, limit: int = MAX_TEXT) -> str:
    """Put an error on one line of at most `limit` characters. One of several lines keeps its beginning and its end."""
    if _LINE_BREAK.search(text.strip()) is None:
        return to_one_line(text, limit)
    return truncate_middle(to_one_line(text, 3 * len(text)), limit)  # a line break becomes three characters


def _mark_line_break(blanks: re.Match[str]) -> str:
    return " ⏎ " if "\n" in blanks[0] or "\r" in blanks[0] else blanks[0]


def format_first_few(things: Sequence[_Item], most: int, form: Callable[[_Item], str] = str) -> str:
    """Format at most `most` things and the number of the others: `a, b and 3 more`. `form` formats each of them."""
    more = len(things) - most
    return ", ".join(map(form, things[:most])) + (f" and {more} more" if more > 0 else "")


def format_count(number: int, one: str, many: str | None = None) -> str:
    """Format a number with its noun: `1 regression`, `1,200 regressions`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def format_spans(numbers: Sequence[int]) -> list[str]:
    """Format ascending numbers, three or more in a row as `3 to 8`."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][-1] + 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    return [text for span in spans for text in (map(str, span) if len(span) < 3 else [f"{span[0]} to {span[-1]}"])]


def format_code_span(text: str, limit: int = MAX_TEXT) -> str:
    """Format any text as inline code: a fence longer than the longest run of backticks inside."""
    text = to_one_line(text, limit)
    if not text.strip():
        return "` `"
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text[0] == "`" or text[-1] == "`" or (text[0] == text[-1] == " ") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def format_code_cell(text: str, limit: int = MAX_TEXT) -> str:
    """Format inline code for a table cell: a pipe would end the cell even inside code, so it is escaped."""
    return format_code_span(text, limit).replace("|", "\\|")


def escape_markdown(text: str, limit: int = MAX_TEXT) -> str:
    """Escape a text for a line or cell: punctuation as entities, so that it has no Markdown, HTML, link or mention."""
    return _PUNCTUATION.sub(_escape_sign, to_one_line(text, limit))


def _escape_sign(match: re.Match[str]) -> str:
    sign = match[0][-1]
    guard = _NO_REFERENCE if sign in "@#-" and match.end() < len(match.string) else ""
    return f"{match[0][:-1]}&#{ord(sign)};{guard}"


def format_code_block(text: str, limit: int = MAX_BLOCK, language: str = "text") -> str:
    """Format a text as a code block, with a fence longer than any run of tildes; `language` is a trusted word."""
    text = truncate_text(_CONTROLS_BUT_NEWLINE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")), limit)
    longest = max((len(run) for run in re.findall(r"~+", text)), default=0)
    fence = "~" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def escape_html(text: str, limit: int = MAX_TEXT) -> str:
    """Escape a text for HTML in Markdown, such as `<summary>`."""
    safe_html = html.escape(to_one_line(text, limit))
    return re.sub(r"@(?=\w)|#(?=\d)|(?i:(?<![^\W_])gh)-(?=\d)", lambda match: match[0] + _NO_REFERENCE, safe_html)


def to_console_line(text: str, limit: int = 2_000) -> str:
    """Format a line for a terminal or a log, without control characters or commands of a CI runner."""
    line = LEGACY_COMMAND.sub("# #", to_one_line(text, limit))
    return _COMMAND.sub(" : :", line)


def to_plain_word(text: str) -> str:
    """Reduce a text to `A-Za-z0-9._-`, for a file's name or a key: a hyphen replaces each run of other characters."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text)


def to_variable_word(text: str) -> str:
    """Convert a text to a part of a variable's name: `Z_AI` for `z.ai`."""
    return re.sub(r"[^A-Za-z0-9]+", "_", text).upper()


def format_comment_marker(key: str) -> str:
    """Format the hidden first line of a gate's comment, by which later runs find the comment."""
    return f"<!-- eval-gate:v1 key={to_comment_key(key)} -->"


def to_comment_key(text: str) -> str:
    """Convert a text to a key for a hidden comment: a plain word without `--`, which would end it.

    A text that is not such a word is shortened to one and gets a short digest, so that no two texts have one
    key.
    """
    word = re.sub(r"-{2,}", "-", to_plain_word(text)).strip("-")
    if word == text and len(word) <= MAX_KEY:
        return word or "default"
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    prefix = word[: MAX_KEY - len(digest) - 1].rstrip("-")
    return f"{prefix}-{digest}" if prefix else digest
