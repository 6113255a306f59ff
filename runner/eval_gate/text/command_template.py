"""Command templates: find their placeholders and fill in values quoted for the shell.

Source: agentv evaluation spec, "CLI Template Configuration"; agentv behaviour 5.3. A value is quoted, so it is safe
where no quotes are open. That is known only where all of the template before it is plain: what every shell reads in the
same way. What only the shell knows when it runs the line (an alias, a variable that turns out to be empty, a program
that starts another one) is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final, Self

from eval_gate.errors import find_nearest
from eval_gate.struct import FrozenStruct

MESSAGE_PLACEHOLDERS: Final = ("PROMPT", "PROMPT_FILE", "CONVERSATION_FILE")
"""Placeholders with the message that a command gets."""
PLACEHOLDERS: Final = (
    *("PROMPT", "GUIDELINES", "EVAL_ID", "ATTEMPT", "SESSION", "FILES", "OUTPUT_FILE", "PROMPT_FILE"),
    "CONVERSATION_FILE",
)
"""Placeholders of a command template, each as `{NAME}`."""
CASE_PLACEHOLDERS: Final = (*MESSAGE_PLACEHOLDERS, "EVAL_ID", "FILES")
"""Placeholders whose values identify the case that a command runs for."""
FILE_PLACEHOLDERS: Final = ("path", "basename")
"""Placeholders of the format of one file."""
RERUN_PLACEHOLDERS: Final = ("ids", "id", "ids_regex", "ids_file", "output")
"""Placeholders of a command with which another tool re-runs cases."""

_SAFE_PLACEHOLDERS: Final = frozenset(
    {"OUTPUT_FILE", "PROMPT_FILE", "CONVERSATION_FILE", "ATTEMPT", "SESSION", "ids_file", "output"}
)
"""Their values have no signs that a shell reads: the runner makes them, or checks the id that a program reports."""
_LISTS: Final = frozenset({"FILES", "ids"})
"""Their values are any number of words; with none of them, what is on both sides is joined: `<{FILES}<`."""
_NAME: Final = re.compile(r"\{([A-Za-z_]+)\}")
_PLACEHOLDER: Final = rf"""(?P<placeholder>(?P<quote>["']?){_NAME.pattern}(?P=quote))"""
"""Quotes with nothing else in them belong to it."""
_LITERAL: Final = r"""(?:[^\s'"`\\$<>|&;()\[\#{]+|\{|(?<!\w)\[|(?<=[^\s<>|&;()])\#)"""
"""Neither the `[` behind a name, as bash evaluates what it holds, nor the `#` of a comment."""
_VARIABLE: Final = r"""\$(?:[A-Za-z0-9_]+|[\#?]|\{[A-Za-z0-9_]+(?:[:\#%+=?-][^'"`$\\{}()\n]*)?\})"""
_QUOTED: Final = rf"""'[^']*'|"(?:[^"\\`$]+|\\[\s\S]|{_VARIABLE})*+"|\\\S"""
_REDIRECTION: Final = r"[<>]&[0-9-]|(?:>>?|<)(?![<>&|(])"
_TOKEN: Final = re.compile(
    rf"{_PLACEHOLDER}|(?P<word>{_LITERAL}|{_VARIABLE}|{_QUOTED}|{_REDIRECTION})|(?P<blank>[ \t]+(?:\\\n[ \t]*)*)"
    r"|(?P<separator>[\n;&|)]|\((?!\())|(?P<comment>(?<!\S)\#[^\n]*)|(?P<rest>[\s\S]+)"
)
"""The rest begins where a template is no longer plain, as with `$(`, a backquote or a here-document."""
_FILE_FORMAT: Final = re.compile(rf"(?:{_PLACEHOLDER}|{_LITERAL}|[ \t])*+")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_NO_PROGRAM: Final = re.compile(r"[-{!]|[^=<>]*[=<>]|(?:if|then|elif|else|while|until|do|time)\Z")
"""A word behind which another one may be the program: an option of `time`, an assignment, a redirection, a keyword."""
_NAMING: Final = frozenset({"for", "select", "function", "coproc"})
"""Keywords behind which a name, and then a command may stand, unless it is `for x in`."""
_SIGNS: Final = {"'": "quotes", '"': "quotes", "`": "backquotes", "#": "a comment"}


class CommandTemplate(FrozenStruct):
    """A parsed command template: literal texts and the names of the placeholders between them."""

    texts: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def from_command(cls, text: str) -> Self:
        """Parse the template of a shell command; lower-case braces and `${NAME}` stay. Raises ValueError."""
        return cls._parse_template(text, PLACEHOLDERS)

    @classmethod
    def from_file_format(cls, text: str) -> Self:
        """Parse the template of the text that stands for one file in a command. Raises ValueError."""
        template = cls._parse_template(text, FILE_PLACEHOLDERS)
        if _FILE_FORMAT.fullmatch(text) is None:
            raise ValueError("contains signs that a shell reads: write {path} and {basename} with plain words only")
        return template

    @classmethod
    def from_rerun_command(cls, text: str) -> Self:
        """Parse the template of a command with which another tool re-runs cases. Raises ValueError."""
        return cls._parse_template(text, RERUN_PLACEHOLDERS)

    @classmethod
    def _parse_template(cls, text: str, placeholders: Collection[str]) -> Self:
        if "\0" in text:
            raise ValueError("contains a NUL character, which no command can contain")
        texts, names, end = [], [], 0
        for token, words, begin in _read_tokens(text):
            for match in _NAME.finditer(text, *token.span()):
                if not _is_placeholder(match, placeholders):
                    continue
                if match[1] not in _SAFE_PLACEHOLDERS:
                    _check_quoting(match, token)
                    if placeholders is not FILE_PLACEHOLDERS:
                        _check_program(match, words, begin)
                replaced = token if token.lastgroup == "placeholder" else match
                texts.append(text[end : replaced.start()])
                names.append(match[1])
                end = replaced.end()
        return cls((*texts, text[end:]), tuple(names))

    def render(self, words: Mapping[str, str]) -> str:
        """Render the text with quoted values. It is one pass, so text within a value is never replaced."""
        parts = (words[name] + text for name, text in zip(self.names, self.texts[1:], strict=True))
        return self.texts[0] + "".join(parts)


def quote_for_shell(value: str) -> str:
    """Quote a value as one word of a POSIX shell. Without quotes it could join the text before it: `$x{PROMPT}`."""
    return "'" + value.replace("'", "'\"'\"'") + "'"


def _is_placeholder(match: re.Match[str], placeholders: Collection[str]) -> bool:
    """Whether these braces are a placeholder. Raises ValueError if they look like one, and are none."""
    name, prefix = match[1], match.string[max(match.start() - 1, 0) : match.start()]
    if name in placeholders:
        if prefix == "$":
            raise ValueError(f"contains ${{{name}}}, which is a shell variable: write {{{name}}} without the $")
        return True
    if prefix in {"$", "\\"} or not (name.isupper() or placeholders is FILE_PLACEHOLDERS):
        return False
    meant = f" (did you mean {{{close}}}?)" if (close := find_nearest(name, placeholders)) else ""
    listed = ", ".join(f"{{{one}}}" for one in placeholders)
    raise ValueError(f"contains the unknown placeholder {{{name}}}{meant}; known: {listed}")


def _read_tokens(text: str) -> Iterator[tuple[re.Match[str], list[str], int]]:
    """Read each token, with the words before it from the name of the program on, and where its own word begins."""
    words, begin = list[str](), 0
    for token in _TOKEN.finditer(text):
        yield token, words, begin
        if token.lastgroup == "separator":
            words, begin = [], token.end()
        elif token.lastgroup == "blank" and not text.endswith(("<", ">"), begin, token.start()):
            word = text[begin : token.start()]  # with a redirection, and what that leads to
            if word and (words or not _NO_PROGRAM.match(word)):
                words.append(word)
            begin = token.end()


def _check_program(match: re.Match[str], words: list[str], begin: int) -> None:
    """Check that a value would not name a program, or be a part of its name. Raises ValueError if it would."""
    if words and (words[0] not in _NAMING or words[2:3] == ["in"]):
        return
    if words or match[1] in _LISTS or not _ASSIGNMENT.match(match.string, begin):
        raise ValueError(
            f"contains {match[0]} in the place of a program, so its value would choose what runs:"
            " write the program's name there and the placeholder after it"
        )


def _check_quoting(match: re.Match[str], token: re.Match[str]) -> None:
    """Check that a placeholder is outside of all quotes, and is no list that would join signs. Raises ValueError."""
    if token.lastgroup != "placeholder":
        sign = token[0][:2].strip() or ascii(token[0][0]).strip("'")
        where = f"inside{' or behind' * (token.lastgroup == 'rest')} {_SIGNS.get(sign[0], sign)}"
    elif match[1] in _LISTS and (joined := re.compile(r"[#<>(\[]").match(match.string, token.end())):
        where = f"directly before {joined[0]}"
    else:
        return
    instead = {"PROMPT": ", or use {PROMPT_FILE}", "ids": ", or use {ids_file}"}.get(match[1], "")
    raise ValueError(
        f"contains {match[0]} {where}, where the shell could run parts of its value as code:"
        f" values are quoted already, so write {match[0]} alone{instead}"
    )
