"""Where in a shell command one is: whether the word that is being read names the program.

It is told what the scanner of templates finds outside of quotes. What only the shell knows when it runs the line (an
alias, a variable that turns out to be empty, a program that starts another one) is not seen here.
"""

from __future__ import annotations

import re
from typing import Final

_PREFIXES: Final = frozenset(
    {"if", "then", "else", "elif", "while", "until", "do", "!", "{", "}", "fi", "done", "time", "coproc"}
)
"""Words after which another command is named."""
_BODIES: Final = {"for": "do", "select": "do", "function": "{"}
"""Words whose second word after them may begin a list of commands: `for x do`, `function f {`."""
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[^\]]*\])?\+?=")
_BLANK: Final = " \t"
_ENDS: Final = "\n;&|"


class Position:
    """One list of commands (the whole line, or what is in parentheses) as far as it is read."""

    def __init__(self) -> None:
        self._words: list[str] = []
        """Of the command that is being read: the program's name and all behind it."""
        self._word = ""
        self._leads_elsewhere = False
        """The next word is where a `<` or `>` leads."""
        self._pattern = False
        """What is read is a pattern of a `case`."""

    @property
    def names_program(self) -> bool:
        """Whether what stands here would be the name of a program, or a part of it."""
        elsewhere = self._words or self._leads_elsewhere or self._pattern
        return not elsewhere and not _ASSIGNMENT.match(self._word)

    @property
    def between_words(self) -> bool:
        """Whether another word begins here, or a comment."""
        return not self._word

    def add(self, text: str) -> None:
        """This belongs to the word that is being read."""
        self._word += text

    def read(self, sign: str, before: str) -> None:
        """A sign that is not quoted and opens nothing, and the one before it."""
        if sign in _BLANK:
            self._end_word()
        elif sign in "&|" and before and before in "<>":
            return  # 2>&1, and >| file
        elif sign in "<>":
            if self._word.isdigit():
                self._word = ""
            self._end_word()
            self._leads_elsewhere = True
        elif sign == ")":
            self.begin()
        elif sign in _ENDS:
            self._end_word()
            if not self._pattern:
                self.begin()
            self._pattern = self._pattern or (before == ";" and sign in ";&")
        else:
            self._word += sign

    def begin(self) -> None:
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
            self._look_back()

    def _look_back(self) -> None:
        """After `case x in` come patterns, after `for x do` a command."""
        if len(self._words) != 3:
            return
        first, _, third = self._words
        if first == "case" and third == "in":
            self._words, self._pattern = [], True
        elif _BODIES.get(first) == third:
            self._words = []
