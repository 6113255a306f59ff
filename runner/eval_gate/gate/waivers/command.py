"""Commands in a comment, by which somebody accepts failures of a pull request.

    /eval-gate accept <case> [<case> ...] [at <commit>] [until <date>] -- <reason>

A case is an id or a glob; one with spaces stands in `"quotes"` or in backticks. `at` and `until` come in any order,
each once. Commands are the first lines of a comment: nothing stands before them, so they are in no quotation, code,
list or hidden text, and everybody sees them. A line further down that looks like a command gets a sentence and does
nothing; one that is quoted is none at all.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Final

from eval_gate.errors import did_you_mean
from eval_gate.gate.waivers.file import read_date
from eval_gate.gate.waivers.names import name_problem, reason_problem
from eval_gate.model import limits
from eval_gate.struct import FrozenStruct, Struct
from eval_gate.text.quoting import quoted

NAME: Final = "/eval-gate"
USAGE: Final = f"{NAME} accept <case> [<case> ...] [at <commit>] [until 2026-12-05] -- <reason>"
MAX_COMMANDS: Final = limits.COMMANDS
"""Commands of one comment that are read."""
MAX_CASES: Final = 50
"""The most cases that one command may name."""
MAX_LINE: Final = limits.COMMAND_CHARACTERS
MAX_LINES: Final = limits.COMMENT_LINES
"""Lines of a comment in which something that looks like a command is noticed."""

_WORD: Final = re.compile(
    r'[ \t]+|"(?P<double>[^"]*)"(?=[ \t]|$)|`(?P<code>[^`]*)`(?=[ \t]|$)|(?P<plain>[^ \t"`][^ \t]*)'
)
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)
_LOOKS: Final = re.compile(r"[^\w>`]{0,4}eval[-_ ]?gate[ :,]+accept(?: |$)|/eval-?gate(?: |$)", re.IGNORECASE)
"""What somebody writes who means a command. Matched at a line's beginning, after odd characters are made plain."""
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_DASHES: Final = frozenset({"\u2014", "\u2013", "\u2212", "\u2010", "-", "---"})
_WORDS: Final = ("accept",)
_OPTIONS: Final = ("at", "until")


class AcceptCommand(FrozenStruct):
    """Cases whose failure is accepted, until the end of a day and at one commit where these are named."""

    cases: tuple[str, ...]
    reason: str
    until: date | None = None
    commit: str | None = None


class MalformedCommand(FrozenStruct):
    """A line that looks like a command and is none. The sentence says what is wrong with it."""

    sentence: str


def commands_in(body: str) -> tuple[AcceptCommand | MalformedCommand, ...]:
    """The commands of a comment and whatever looks like one; nothing for any other comment."""
    lines = body.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    end = next((place for place, line in enumerate(lines) if line.strip(" \t") and not _begins(line)), len(lines))
    commands = [line for line in lines[:end] if _begins(line)]
    found = [_read(line) for line in commands[:MAX_COMMANDS]]
    if len(commands) > MAX_COMMANDS:
        found.append(
            MalformedCommand(f"{len(commands):,} commands in one comment: only the first {MAX_COMMANDS} are read")
        )
    if any(map(_looks_like_one, _unquoted(lines[end : end + MAX_LINES]))):
        found.append(
            MalformedCommand(f"a command has to be at the very top of its comment and begin with `{NAME} accept`")
        )
    return tuple(found)


def command_line(cases: Sequence[str], reason: str, *, commit: str | None = None, until: date | None = None) -> str:
    """The command that accepts these cases, to be offered for copying. Raises ValueError for what cannot be written."""
    at = f" at {commit}" if commit else ""
    line = f"{NAME} accept {' '.join(map(_quoted, cases))}{at}{f' until {until}' if until else ''} -- {reason}"
    if "\n" in line or _read(line) != AcceptCommand(tuple(cases), reason, until, commit):
        raise ValueError("these cases cannot be named in a command")
    return line


def _quoted(case: str) -> str:
    if case and not re.search(r'[\s"`]|^-', case) and case not in _OPTIONS:
        return case
    return f"`{case}`" if '"' in case else f'"{case}"'


def _begins(line: str) -> bool:
    return line == NAME or line.startswith((f"{NAME} ", f"{NAME}\t"))


def _read(line: str) -> AcceptCommand | MalformedCommand:
    try:
        return _command(line)
    except ValueError as error:
        return MalformedCommand(str(error))


def _command(line: str) -> AcceptCommand:
    """The command that is this line. Raises ValueError with a sentence."""
    if len(line) > MAX_LINE:
        raise ValueError(f"the command is longer than {MAX_LINE:,} characters")
    words, reason = _parted(line.removeprefix(NAME))
    verb = words[0].text if words else ""
    if verb not in _WORDS:
        said = f'"{verb[:40]}" is not known{did_you_mean(verb, _WORDS)}' if verb else "it does not say what to do"
        raise ValueError(f"{said}; write `{USAGE}`")
    if reason is None:
        dash = next((word.text for word in words if word.text in _DASHES and not word.quoted), None)
        instead = f', with two hyphens in place of "{dash}"' if dash else ""
        raise ValueError(f"the reason is missing: end the command with `-- <reason>`{instead}")
    if problem := reason_problem(reason):
        raise ValueError(f"the reason {problem}")
    cases, options = _sorted_out(words[1:])
    return AcceptCommand(cases, reason, options.until, options.commit)


class _Word(FrozenStruct):
    text: str
    quoted: bool


class _Options(Struct):
    until: date | None = None
    commit: str | None = None

    def take(self, name: str, value: str) -> None:
        if (self.until if name == "until" else self.commit) is not None:
            raise ValueError(f"`{name}` is given twice")
        if name == "until":
            self.until = read_date(value)
        elif _COMMIT.fullmatch(value.lower()):
            self.commit = value.lower()
        else:
            raise ValueError(f"{quoted(value)} is not the full name of a commit: 40 characters of 0-9 and a-f")


def _sorted_out(words: Sequence[_Word]) -> tuple[tuple[str, ...], _Options]:
    """Cases, which come first, and options. Raises ValueError with a sentence."""
    cases: list[str] = []
    options = _Options()
    rest = iter(words)
    for word in rest:
        if not word.quoted and word.text in _OPTIONS:
            value = next(rest, None)
            if value is None:
                raise ValueError(f"`{word.text}` is followed by nothing")
            options.take(word.text, value.text)
        elif options != _Options():
            raise ValueError(f'"{word.text[:40]}" stands after the options: cases come first')
        elif problem := name_problem(word.text):
            raise ValueError(f'the case "{word.text[:40]}" {problem}')
        else:
            cases.append(word.text)
    if not cases:
        raise ValueError("it names no case")
    if len(cases) > MAX_CASES:
        raise ValueError(f"it names {len(cases)} cases: at most {MAX_CASES}, or a glob")
    return tuple(dict.fromkeys(cases)), options


def _parted(text: str) -> tuple[list[_Word], str | None]:
    """The words before `--`, and the text after it; None without one. Raises ValueError with a sentence."""
    words: list[_Word] = []
    place = 0
    while place < len(text):
        match = _WORD.match(text, place)
        if match is None:
            raise ValueError(f"a quotation mark is not closed, or something follows it at once: {text[place:][:40]}")
        place = match.end()
        if match.lastgroup == "plain":
            if match[0] == "--":
                return words, text[place:].strip()
            if odd := _odd(match[0]):
                raise ValueError(f"it holds {odd}, which is not what it looks like: type it anew, or use quotes")
            words.append(_Word(match[0], quoted=False))
        elif match.lastgroup:
            words.append(_Word(match[match.lastgroup], quoted=True))
    return words, None


def _odd(word: str) -> str | None:
    """A character that is no letter of a word although nobody sees that, as `U+00A0`."""
    return next((f"U+{ord(c):04X}" for c in word if c.isspace() or unicodedata.category(c) == "Cf"), None)


def _looks_like_one(line: str) -> bool:
    shown = "".join(char for char in line[:200] if unicodedata.category(char) != "Cf")
    return _LOOKS.match(unicodedata.normalize("NFKC", shown).strip()) is not None


def _unquoted(lines: Sequence[str]) -> Iterator[str]:
    """The lines that stand in no fence, quotation, indented code or hidden comment, about as Markdown sees it."""
    fence: str | None = None
    hidden = quotation = False
    for line in lines:
        if fence is not None:
            match = _FENCE.fullmatch(line)
            closes = match is not None and match[1].startswith(fence) and not match[2].strip()
            fence = None if closes else fence
        elif hidden:
            hidden = "-->" not in line
        elif opened := _FENCE.fullmatch(line):
            fence = opened[1]
        elif "<!--" in line and "-->" not in line.rpartition("<!--")[2]:
            hidden = True
        elif not line.strip():
            quotation = False
        elif line.lstrip().startswith(">"):
            quotation = True  # and what follows without a mark belongs to it, up to an empty line
        elif not quotation and not line.startswith(("    ", "\t")):
            yield line
