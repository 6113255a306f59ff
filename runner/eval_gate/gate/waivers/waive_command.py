"""Commands in a comment on a pull request.

    /eval-gate waive <case> [<case> ...] [at <commit>] [until <date>] -- <reason>
    /eval-gate refresh

The first waives failures, the second asks for a new baseline. A case is an id or a glob; one with spaces stands in
`"quotes"` or in backticks. `at` and `until` come in any order, each once. Commands are the first lines of a comment:
nothing stands before them, so they are in no quotation, code, list or hidden text, and everybody sees them. A line
further down that looks like a command gets a sentence and does nothing; one that is quoted is none at all.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import date
from enum import StrEnum
from typing import ClassVar, Final

from eval_gate.errors import format_suggestion
from eval_gate.gate.waivers.case_names import find_name_problem, find_reason_problem
from eval_gate.gate.waivers.waiver_file import parse_date
from eval_gate.model import limits
from eval_gate.struct import FrozenStruct, Struct
from eval_gate.text.quoting import quote_value

COMMAND_NAME: Final = "/eval-gate"
USAGE: Final = f"{COMMAND_NAME} waive <case> [<case> ...] [at <commit>] [until 2026-12-05] -- <reason>"
REFRESH_COMMAND: Final = f"{COMMAND_NAME} refresh"
MAX_COMMANDS: Final = limits.COMMANDS
MAX_CASES: Final = 50
"""The most cases that one command may name."""
MAX_LINE: Final = limits.COMMAND_CHARACTERS
MAX_LINES: Final = limits.COMMENT_LINES
"""Lines of a comment in which something that looks like a command is noticed."""

_WORD_PATTERN: Final = re.compile(
    r'[ \t]+|"(?P<double>[^"]*)"(?=[ \t]|$)|`(?P<code>[^`]*)`(?=[ \t]|$)|(?P<plain>[^ \t"`][^ \t]*)'
)
_REFRESH_PATTERN: Final = re.compile(rf"{COMMAND_NAME}[ \t]+refresh[ \t]*")
_REFRESH_LIKE: Final = re.compile(rf"{COMMAND_NAME}[ \t]+(?i:refresh)(?:(?!-)\W.*)?")
"""The same in another case, or with a mark behind it."""
_COMMIT_PATTERN: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)
_COMMAND_LIKE: Final = re.compile(
    r"[^\w>`]{0,4}eval[-_ ]?gate[ :,]+(?:accept|waive|refresh)(?: |$)|/eval-?gate(?: |$)", re.IGNORECASE
)
"""Line that is probably meant as a command. Matched at its beginning, after odd characters are replaced."""
_FENCE_PATTERN: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_DASHES: Final = frozenset({"\u2014", "\u2013", "\u2212", "\u2010", "-", "---"})
_OPTIONS: Final = ("at", "until")


class CommandVerb(StrEnum):
    """What a command does."""

    WAIVE = "waive"
    REFRESH = "refresh"


_VERBS: Final = tuple(CommandVerb)


class WaiveCommand(FrozenStruct):
    """A command that waives cases, until a day and at one commit where given."""

    verb: ClassVar = CommandVerb.WAIVE
    cases: tuple[str, ...]
    reason: str
    until: date | None = None
    commit: str | None = None


class RefreshCommand(FrozenStruct):
    """A command that runs the workflow on the baseline's branch."""

    verb: ClassVar = CommandVerb.REFRESH


class MalformedCommand(FrozenStruct):
    """A line that looks like a command but is not one, what is wrong with it, and its verb if that is one."""

    message: str
    verb: CommandVerb | None = None


Command = WaiveCommand | RefreshCommand | MalformedCommand


def parse_commands(body: str) -> tuple[Command, ...]:
    """Parse the commands of a comment, if any, and report lines that only look like commands."""
    lines = _split_lines(body)
    end = next(
        (place for place, line in enumerate(lines) if line.strip(" \t") and not _is_command_line(line)), len(lines)
    )
    commands = [line for line in lines[:end] if _is_command_line(line)]
    parsed_commands = [_parse_line(line) for line in commands[:MAX_COMMANDS]]
    if len(commands) > MAX_COMMANDS:
        parsed_commands.append(
            MalformedCommand(f"{len(commands):,} commands in one comment: only the first {MAX_COMMANDS} are read")
        )
    if any(map(_is_command_like, _iter_unquoted_lines(lines[end : end + MAX_LINES]))):
        parsed_commands.append(
            MalformedCommand(
                f"a command must be the first line of its comment and begin with `{COMMAND_NAME} waive` or "
                f"`{REFRESH_COMMAND}`"
            )
        )
    return tuple(parsed_commands)


def begins_with_command(body: str) -> bool:
    """Whether the first line of a comment is a command, or probably meant as one."""
    first = next((line for line in _split_lines(body) if line.strip(" \t")), "")
    return _is_command_line(first) or any(map(_is_command_like, _iter_unquoted_lines([first])))


def format_waive_command(
    cases: Sequence[str], reason: str, *, commit: str | None = None, until: date | None = None
) -> str:
    """Format the command that waives these cases, to be copied; ValueError if it cannot name them."""
    at = f" at {commit}" if commit else ""
    line = (
        f"{COMMAND_NAME} waive {' '.join(map(_quote_case, cases))}{at}{f' until {until}' if until else ''} -- {reason}"
    )
    if "\n" in line or _parse_line(line) != WaiveCommand(tuple(cases), reason, until, commit):
        raise ValueError("these cases cannot be named in a command")
    return line


def _split_lines(body: str) -> list[str]:
    return body.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _quote_case(case: str) -> str:
    if case and not re.search(r'[\s"`]|^-', case) and case not in _OPTIONS:
        return case
    return f"`{case}`" if '"' in case else f'"{case}"'


def _is_command_line(line: str) -> bool:
    return line == COMMAND_NAME or line.startswith((f"{COMMAND_NAME} ", f"{COMMAND_NAME}\t"))


def _parse_line(line: str) -> Command:
    if line.removeprefix(COMMAND_NAME)[:MAX_LINE].split()[:1] == [CommandVerb.REFRESH]:
        if _REFRESH_PATTERN.fullmatch(line):
            return RefreshCommand()
        return MalformedCommand(f"`{REFRESH_COMMAND}` takes no further words", CommandVerb.REFRESH)
    if _REFRESH_LIKE.fullmatch(line[:MAX_LINE]):
        hint = f"write `{REFRESH_COMMAND}`, in lower case and with nothing behind it"
        return MalformedCommand(hint, CommandVerb.REFRESH)
    try:
        return _parse_waiver(line)
    except ValueError as error:
        return MalformedCommand(str(error))


def _parse_waiver(line: str) -> WaiveCommand:
    if len(line) > MAX_LINE:
        raise ValueError(f"the command is longer than {MAX_LINE:,} characters")
    words, reason = _split_words(line.removeprefix(COMMAND_NAME))
    verb = words[0].text if words else ""
    if verb != CommandVerb.WAIVE:
        text = f'unknown command "{verb[:40]}"{format_suggestion(verb, _VERBS)}' if verb else "the command is missing"
        raise ValueError(f"{text}; write `{USAGE}`")
    if reason is None:
        dash = next((word.text for word in words if word.text in _DASHES and not word.quoted), None)
        instead = f', with two hyphens instead of "{dash}"' if dash else ""
        raise ValueError(f"the reason is missing: end the command with `-- <reason>`{instead}")
    if problem := find_reason_problem(reason):
        raise ValueError(f"the reason {problem}")
    cases, options = _split_cases_and_options(words[1:])
    return WaiveCommand(cases, reason, options.until, options.commit)


class _Word(FrozenStruct):
    text: str
    quoted: bool


class _Options(Struct):
    until: date | None = None
    commit: str | None = None

    def set_option(self, name: str, value: str) -> None:
        if (self.until if name == "until" else self.commit) is not None:
            raise ValueError(f"`{name}` is given twice")
        if name == "until":
            self.until = parse_date(value)
        elif _COMMIT_PATTERN.fullmatch(value.lower()):
            self.commit = value.lower()
        else:
            raise ValueError(f"{quote_value(value)} is not a full commit hash: 40 characters of 0-9 and a-f")


def _split_cases_and_options(words: Sequence[_Word]) -> tuple[tuple[str, ...], _Options]:
    """Cases, which come first, and options. Raises ValueError with a sentence."""
    cases: list[str] = []
    options = _Options()
    rest = iter(words)
    for word in rest:
        if not word.quoted and word.text in _OPTIONS:
            value = next(rest, None)
            if value is None:
                raise ValueError(f"`{word.text}` has no value")
            options.set_option(word.text, value.text)
        elif options != _Options():
            raise ValueError(f'"{word.text[:40]}" comes after the options: write cases first')
        elif problem := find_name_problem(word.text):
            raise ValueError(f'the case "{word.text[:40]}" {problem}')
        else:
            cases.append(word.text)
    if not cases:
        raise ValueError("the command names no case")
    if len(cases) > MAX_CASES:
        raise ValueError(f"the command names {len(cases)} cases: name at most {MAX_CASES}, or use a glob")
    return tuple(dict.fromkeys(cases)), options


def _split_words(text: str) -> tuple[list[_Word], str | None]:
    """Split a command into the words before `--` and the text after it, None without a `--`."""
    words: list[_Word] = []
    place = 0
    while place < len(text):
        match = _WORD_PATTERN.match(text, place)
        if match is None:
            raise ValueError(f"a quotation mark is not closed, or no space follows it: {text[place:][:40]}")
        place = match.end()
        if match.lastgroup == "plain":
            if match[0] == "--":
                return words, text[place:].strip()
            if odd := _find_odd_character(match[0]):
                raise ValueError(
                    f"the command contains {odd}, which looks like another character: type it again, or use quotes"
                )
            words.append(_Word(match[0], quoted=False))
        elif match.lastgroup:
            words.append(_Word(match[match.lastgroup], quoted=True))
    return words, None


def _find_odd_character(word: str) -> str | None:
    """Find a space or format character that looks like part of a word, as `U+00A0`, or None."""
    return next((f"U+{ord(c):04X}" for c in word if c.isspace() or unicodedata.category(c) == "Cf"), None)


def _is_command_like(line: str) -> bool:
    text = "".join(char for char in line[:200] if unicodedata.category(char) != "Cf")
    return _COMMAND_LIKE.match(unicodedata.normalize("NFKC", text).strip()) is not None


def _iter_unquoted_lines(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines outside of fences, quotations, indented code and comments; this follows Markdown roughly."""
    fence: str | None = None
    in_comment = quotation = False
    for line in lines:
        if fence is not None:
            match = _FENCE_PATTERN.fullmatch(line)
            closes = match is not None and match[1].startswith(fence) and not match[2].strip()
            fence = None if closes else fence
        elif in_comment:
            in_comment = "-->" not in line
        elif opened := _FENCE_PATTERN.fullmatch(line):
            fence = opened[1]
        elif "<!--" in line and "-->" not in line.rpartition("<!--")[2]:
            in_comment = True
        elif not line.strip():
            quotation = False
        elif line.lstrip().startswith(">"):
            quotation = True  # and what follows without a mark belongs to it, up to an empty line
        elif not quotation and not line.startswith(("    ", "\t")):
            yield line
