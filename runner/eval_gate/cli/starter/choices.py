"""Asks the person at the terminal, or says without one which option of the command decides."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import Final

from eval_gate.cli.terminal.console import print_output
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import to_console_line

MAX_CHOICES: Final = 20


class Choice(FrozenStruct):
    """One answer: what the person sees, and the words of the command that decide for it."""

    label: str
    option: tuple[str, ...]


class Questions:
    """Questions of one call. `notes` say what nobody decided, with the commands that do."""

    def __init__(self, words: Sequence[str], *, is_terminal: bool) -> None:
        self._words = tuple(words)
        self._is_terminal = is_terminal
        self.notes: list[str] = []
        self.is_open = False
        """Whether a question has no answer that the target needs."""

    def choose(self, question: str, choices: Sequence[Choice], *, is_certain: bool = False) -> int | None:
        """Let the person choose by number; None where nobody decides.

        Without a terminal, a single choice that `is_certain` is taken.
        """
        if not self._is_terminal:
            if is_certain and len(choices) == 1:
                return 0
            self.is_open = True
            self.notes.append(f"not decided {question}. These commands do:")
            for one in choices[:MAX_CHOICES]:
                self.notes += [f"- {to_console_line(one.label)}", f"     {self.format_command(*one.option)}"]
            if len(choices) > MAX_CHOICES:
                self.notes.append(f"- and {len(choices) - MAX_CHOICES} more")
            return None
        print_output(f"{question[:1].upper()}{question[1:]}?")
        for number, one in enumerate(choices, 1):
            print_output(f"  {number}. {to_console_line(one.label)}")
        while True:
            answer = self._read_line(f"Number, or nothing for none of them (1 to {len(choices)})? ")
            if not answer:
                return None
            if answer.isascii() and answer.isdecimal() and 0 < int(answer[:6]) <= len(choices):
                return int(answer[:6]) - 1

    def ask_for_value(self, question: str, option: tuple[str, ...]) -> str | None:
        """Ask for a text; None where nobody gives one. `option` is how the command gives it."""
        if self._is_terminal:
            return self._read_line(f"{question}? ") or None
        self.is_open = True
        self.notes += [f"not decided {question}. This command does:", f"     {self.format_command(*option)}"]
        return None

    def confirm(self, question: str, option: tuple[str, ...]) -> bool:
        """Ask for yes or no. Without a terminal the answer is no, and a note names the option that says yes."""
        if self._is_terminal:
            return self._read_line(f"{question} [y/N]? ").lower() in {"y", "yes"}
        self.notes += [f"not done    {question}. This command does:", f"     {self.format_command(*option)}"]
        return False

    def format_command(self, *option: str) -> str:
        """Format this command with other options, in place of those of the same name that are there once."""
        replaced = {one for one in option if one.startswith("--")} - {"--set"}
        words = list(self._words)
        for at in range(len(words) - 1, -1, -1):
            name, equals, _ = words[at].partition("=")
            if name in replaced:
                del words[at : at + (1 if equals or name == "--yes" else 2)]
        yes = [] if self._is_terminal or "--yes" in words else ["--yes"]
        return to_console_line(shlex.join(["eval-gate", *words, *option, *yes]))

    @staticmethod
    def _read_line(question: str) -> str:
        print_output(question, end="")
        return sys.stdin.readline().strip()
