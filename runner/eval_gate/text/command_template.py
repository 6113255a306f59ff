"""Command templates: find their placeholders and fill in values quoted for the shell.

Source: agentv evaluation spec, "CLI Template Configuration"; agentv behaviour 5.3. `ShellPosition` tells which word of
a line names its program. What only the shell knows when it runs the line (an alias, a variable that turns out to be
empty, a program that starts another one) is not seen.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping
from typing import Final, Self

from eval_gate.errors import find_nearest
from eval_gate.struct import FrozenStruct

PLACEHOLDERS: Final = ("PROMPT", "GUIDELINES", "EVAL_ID", "ATTEMPT", "SESSION", "FILES", "OUTPUT_FILE", "PROMPT_FILE")
"""What a command template may hold, each as `{NAME}`."""
CASE_PLACEHOLDERS: Final = ("PROMPT", "PROMPT_FILE", "EVAL_ID", "FILES")
"""Those whose values tell a command which case it runs for."""
FILE_PLACEHOLDERS: Final = ("path", "basename")
"""What the format of one file may hold."""
RERUN_PLACEHOLDERS: Final = ("ids", "id", "ids_regex", "ids_file", "output")
"""What a command may hold that has another tool run cases again."""

_NAME: Final = re.compile(r"\{([A-Za-z_]+)\}")
_HERE_DOCUMENT: Final = re.compile(r"(?<!<)<<(?!<)")
_EXPANSION: Final = re.compile(r"\$\{[A-Za-z0-9_]+(?:[:#%+=?-][^'\"`$\\{}()\n]*)?\}")
"""A variable in braces, such as `${MODEL:-small}`, that holds nothing which opens something else."""
_BACKQUOTED: Final = re.compile(r"""`(?:[^`'"\\#$<(]|\$(?![('"\[{])|<(?!<)|'[^'`]*'|"[^"`\\$]*")*`""")
"""A command in backquotes that ends at the same place for a shell that looks into it and for one that does not."""
_ESCAPING: Final = re.compile(r"\$'(?![^'\\]*')")
"""The quotes in which a backslash stands before a quote for one shell, and at the end for another."""
_CASE: Final = re.compile(r"(?<![A-Za-z0-9_])case(?![A-Za-z0-9_])")
_ARITHMETIC: Final = ("$((", "((", "$[")
_BLANK: Final = ("", " ", "\t", "\n")
_WORD_BREAKS: Final = (*_BLANK, ";", "|", "&")
"""Behind these a line may go on without making one sign of two."""
_NEVER_CLOSED: Final = "\0"
"""End mark of what nothing closes: no template contains it."""
_AMBIGUOUS: Final = "\0\0"
"""End mark of what shells read differently; no template contains it either."""
_SAFE_PLACEHOLDERS: Final = frozenset({"OUTPUT_FILE", "PROMPT_FILE", "ATTEMPT", "SESSION", "ids_file", "output"})
"""Their values are ours, and hold nothing that means something to a shell."""
_PREFIXES: Final = frozenset(
    {"if", "then", "else", "elif", "while", "until", "do", "!", "{", "}", "fi", "done", "time", "coproc"}
)
"""Words after which another command is named."""
_BODIES: Final = {"for": "do", "select": "do", "function": "{"}
"""Words whose second word after them may begin a list of commands: `for x do`, `function f {`."""
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[^\]]*\])?\+?=")
_BETWEEN_WORDS: Final = " \t"
_ENDS: Final = "\n;&|"


class ShellPosition:
    """State of a shell command list while it is read: which word comes next and what it means."""

    def __init__(self) -> None:
        self._words: list[str] = []
        """Words of the current command: the name of the program and its arguments."""
        self._word = ""
        self._leads_elsewhere = False
        """The next word is where a `<` or `>` leads."""
        self._pattern = False
        """What is read is a pattern of a `case`."""

    @property
    def is_program_name(self) -> bool:
        """Whether what stands here would be the name of a program, or a part of it."""
        elsewhere = self._words or self._leads_elsewhere or self._pattern
        return not elsewhere and not _ASSIGNMENT.match(self._word)

    @property
    def is_between_words(self) -> bool:
        """Whether another word begins here, or a comment."""
        return not self._word

    def append(self, text: str) -> None:
        """Add text to the word that is being read."""
        self._word += text

    def read_sign(self, sign: str, before: str) -> None:
        """Read a character that is not quoted and opens nothing.

        `before` is the character before it, empty if a backslash makes that one a part of a word.
        """
        if sign in _BETWEEN_WORDS:
            self._end_word()
        elif sign in "&|" and before and before in "<>":
            return  # 2>&1, and >| file
        elif sign in "<>":
            if self._word.isdigit():
                self._word = ""
            self._end_word()
            self._leads_elsewhere = True
        elif sign == ")":
            self.begin_command()
        elif sign in _ENDS:
            self._end_word()
            if not self._pattern:
                self.begin_command()
            self._pattern = self._pattern or (before == ";" and sign in ";&")
        else:
            self._word += sign

    def begin_command(self) -> None:
        """Another command begins."""
        self._words, self._word, self._leads_elsewhere, self._pattern = [], "", False, False

    def _end_word(self) -> None:
        word, self._word = self._word, ""
        if not word:
            return
        if self._leads_elsewhere:
            self._leads_elsewhere = False
        elif self._pattern:
            self._pattern = word != "esac"
        elif self._words or not (word in _PREFIXES or _ASSIGNMENT.match(word)):
            self._words.append(word)
            self._apply_keywords()

    def _apply_keywords(self) -> None:
        """After `case x in` come patterns, after `for x do` a command."""
        if len(self._words) != 3:
            return
        first, _, third = self._words
        if first == "case" and third == "in":
            self._words, self._pattern = [], True
        elif _BODIES.get(first) == third:
            self._words = []


class CommandTemplate(FrozenStruct):
    """A parsed command template: literal texts and the names of the placeholders between them."""

    texts: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def from_command(cls, text: str) -> Self:
        """Parse the template of a shell command.

        Lower-case braces and the shell's own `${NAME}` stay. Raises ValueError.
        """
        return cls._parse_template(text, PLACEHOLDERS)

    @classmethod
    def from_file_format(cls, text: str) -> Self:
        """Parse the template of the text that stands for one file in a command. Raises ValueError."""
        return cls._parse_template(text, FILE_PLACEHOLDERS)

    @classmethod
    def from_rerun_command(cls, text: str) -> Self:
        """Parse the template of a command with which another tool re-runs cases. Raises ValueError."""
        return cls._parse_template(text, RERUN_PLACEHOLDERS)

    @classmethod
    def _parse_template(cls, text: str, known: Collection[str]) -> Self:
        if "\0" in text:
            raise ValueError("contains a NUL character, which no command can contain")
        texts, names, end = [], [], 0
        for begin, after, name in _TemplateScanner(text, known).find_placeholders():
            texts.append(text[end:begin])
            names.append(name)
            end = after
        return cls((*texts, text[end:]), tuple(names))

    def render(self, words: Mapping[str, str]) -> str:
        """Render the text with each placeholder replaced by its quoted value.

        All placeholders are replaced in one pass, so text within a value is never replaced.
        """
        parts = [self.texts[0]]
        for name, text in zip(self.names, self.texts[1:], strict=True):
            parts += [words[name], text]
        return "".join(parts)


def quote_for_shell(value: str) -> str:
    """Quote a value as one word of a POSIX shell."""
    # one that needs no quotes may be an assignment, `PATH=x`, where a template begins with it
    return f"'{value}'" if "=" in value and shlex.quote(value) == value else shlex.quote(value)


_UNSAFE_PLACES: Final = {
    "\n": "a comment",
    "`": "backquotes",
    ")": "arithmetic",
    "]": "arithmetic",
    "": "arithmetic",
    _NEVER_CLOSED: "a here-document",
    _AMBIGUOUS: "or after a case, ${…}, `…`, $'…' or a line continuation in a word (too complex to quote)",
}
"""Descriptions of places where a placeholder is not allowed, by the end mark."""


class _TemplateScanner:
    """Reads a template as the shell will, as far as quotes go: a value inside quotes would be read as code."""

    def __init__(self, text: str, known: Collection[str]) -> None:
        self._text = text
        self._known = known
        self._inside: list[tuple[str, int]] = []
        """What is open: the sign that closes it, and where it begins."""
        self._here_document = _HERE_DOCUMENT.search(text)
        self._escape_end = 0
        """Behind the last backslash and the character that it makes a part of a word."""
        self._positions = [ShellPosition()]
        """Where in a command it is: in the whole line, and in each thing that is open and holds commands of its own."""

    def find_placeholders(self) -> list[tuple[int, int, str]]:
        """Where each begins and ends, and its name. Raises ValueError for one that is unknown or not in a safe place.

        Quotes with nothing else in them belong to the placeholder: its value brings its own.
        """
        found, place = [], 0
        while place < len(self._text):
            name = self._match_placeholder(place)
            if name is None:
                place += self._read_sign(place)
                continue
            after = place + len(name) + 2
            if self._is_alone_in_quotes(place, after):
                self._inside.pop()
                found.append((place - 1, after + 1, name))
                place = after + 1
            else:
                self._check_quoting(name)
                found.append((place, after, name))
                place = after
            self._check_position(name)
        return found

    def _match_placeholder(self, place: int) -> str | None:
        match = _NAME.match(self._text, place)
        if match is None:
            return None
        name, dollar = match[1], place > 0 and self._text[place - 1] == "$"
        if name in self._known:
            if dollar:
                raise ValueError(f"contains ${{{name}}}, which is a shell variable: write {{{name}}} without the $")
            return name
        if dollar or not (name.isupper() or self._known is FILE_PLACEHOLDERS):
            return None
        listed = ", ".join(f"{{{one}}}" for one in self._known)
        close = find_nearest(name, self._known)
        meant = f" (did you mean {{{close}}}?)" if close else ""
        raise ValueError(f"contains the unknown placeholder {{{name}}}{meant}; known: {listed}")

    @property
    def _closing_sign(self) -> str:
        return self._inside[-1][0] if self._inside else ""

    def _is_alone_in_quotes(self, place: int, after: int) -> bool:
        if self._closing_sign not in {'"', "'"} or (place > 1 and self._text[place - 2] == "$"):
            return False  # some shells have a kind of quotes that begins with $, and reads escapes
        return self._inside[-1][1] == place - 1 and self._text[after : after + 1] == self._closing_sign

    def _check_quoting(self, name: str) -> None:
        if self._closing_sign in {"", ")"} and not self._is_in_arithmetic:
            return
        if name in _SAFE_PLACEHOLDERS:
            return
        where = _UNSAFE_PLACES.get(self._closing_sign, "quotes")
        instead = {"PROMPT": ", or use {PROMPT_FILE}", "ids": ", or use {ids_file}"}.get(name, "")
        raise ValueError(
            f"contains {{{name}}} inside {where}, where the shell could run parts of its value as code:"
            f" values are quoted already, so move the placeholder outside{instead}"
        )

    def _check_position(self, name: str) -> None:
        """Refuse a placeholder that names the program (text in quotes begins no new word), else add it to the word."""
        position = self._positions[-1]
        if self._known is not FILE_PLACEHOLDERS and name not in _SAFE_PLACEHOLDERS and position.is_program_name:
            raise ValueError(
                f"contains {{{name}}} in the place of a program, so its value would choose what runs:"
                " write the program's name there and the placeholder after it"
            )
        position.append("{}")

    @property
    def _is_in_arithmetic(self) -> bool:
        """Whether this is within arithmetic, where shells evaluate what a quoted value holds."""
        return any(self._text.startswith(_ARITHMETIC, begin) for _, begin in self._inside)

    def _read_sign(self, place: int) -> int:
        """Note what the sign here opens or closes; how many signs it is."""
        sign, closing = self._text[place], self._closing_sign
        if sign == closing:
            self._close_context()
        elif closing in {"'", "\n", _NEVER_CLOSED, _AMBIGUOUS}:
            pass
        elif sign == "\\":
            return self._read_backslash(place)
        elif sign == "$":
            return self._read_dollar(place)
        elif sign == "`":
            self._open_context(sign if _BACKQUOTED.match(self._text, place) else _AMBIGUOUS, place)
        elif sign == '"' or (sign == "'" and closing != '"'):
            self._positions[-1].append(sign)
            self._inside.append((sign, place))
        elif closing != '"':
            self._read_unquoted(place)
        return 1

    def _read_backslash(self, place: int) -> int:
        """Read a backslash and the character after it, which loses its special meaning, and return 2."""
        before, after = self._text[place - 1 : place], self._text[place + 2 : place + 3]
        self._escape_end = place + 2
        if not self._text.startswith("\n", place + 1):
            self._positions[-1].append("\\")
        # a shell removes the line end, and may join the two characters around it into one sign
        elif before == "$" or (self._closing_sign != '"' and before not in _WORD_BREAKS and after not in _BLANK):
            self._inside.append((_AMBIGUOUS, place))
        return 2

    def _open_context(self, closing: str, place: int) -> None:
        """Open a context that holds words of its own."""
        self._inside.append((closing, place))
        self._positions.append(ShellPosition())

    def _close_context(self) -> None:
        closing, begin = self._inside.pop()
        if closing == "\n":  # a comment
            self._end_line(begin)
        elif closing not in {"'", '"'}:
            del self._positions[-1]
            if self._text[begin] == "(" and self._text[max(begin - 1, 0) : begin] not in {"<", ">"}:
                self._positions[-1].begin_command()  # behind f() comes what it does
            else:
                self._positions[-1].append("$")

    def _read_dollar(self, place: int) -> int:
        """Read a `$` and a command, arithmetic or variable that it opens, and return the number of characters read."""
        text = self._text
        if text.startswith("$(", place):
            self._open_context(")", place)
            return 2
        if text.startswith("$[", place):
            self._open_context("]", place)
            return 2
        self._positions[-1].append("$")
        if self._closing_sign != '"' and _ESCAPING.match(text, place):
            self._inside.append((_AMBIGUOUS, place))
            return 1
        named = _NAME.match(text, place + 1)
        if text.startswith("${", place) and not (named and named[1] in self._known):  # that is a mistake of its own
            found = _EXPANSION.match(text, place)
            if found:
                return found.end() - place
            self._inside.append((_AMBIGUOUS, place))
        return 1

    def _read_unquoted(self, place: int) -> None:
        """Parentheses; a comment, to the end of its line; and a here-document, whose text are the lines below."""
        text = self._text
        if text[place] == "(":
            self._open_context(")", place)
        elif self._inside and text[place] == "c" and _CASE.match(text, place):
            self._inside.append((_AMBIGUOUS, place))  # the `)` of its patterns closes nothing
        elif text[place] == "#" and self._positions[-1].is_between_words:
            self._inside.append(("\n", place))
        elif text[place] == "\n":
            self._end_line(place)
        else:
            before = "" if place == self._escape_end else text[place - 1 : place]
            self._positions[-1].read_sign(text[place], before)

    def _end_line(self, place: int) -> None:
        """End the line at `place`; if it announces a here-document, its text begins on the next line."""
        if self._here_document is not None and self._here_document.end() <= place:
            self._inside.append((_NEVER_CLOSED, place))
        self._positions[-1].read_sign("\n", "")
