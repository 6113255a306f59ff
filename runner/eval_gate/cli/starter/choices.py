"""Ask the person at the terminal, or without a terminal name the options that decide."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from eval_gate.cli.terminal.console import print_output
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import to_console_line

MAX_CHOICES: Final = 20
MAX_SHOWN: Final = 10_000
"""Characters of a list of choices."""


class Choice(FrozenStruct):
    """One answer: what the person sees, and the words of the command that decide for it."""

    label: str
    option: tuple[str, ...]


class Questions:
    """Questions of one call. `notes` name open decisions, with the commands that make them."""

    def __init__(self, words: Sequence[str], *, is_terminal: bool) -> None:
        self._words = tuple(words)
        self._is_terminal = is_terminal
        self.notes: list[str] = []
        self.is_open = False
        """Whether a decision that the target needs is open."""

    def choose(self, question: str, choices: Sequence[Choice]) -> int | None:
        """Let the person choose by number; None without a decision. A single choice is taken."""
        if len(choices) == 1:
            return 0
        if not self._is_terminal:
            lines = [
                f"- {to_console_line(one.label)}\n{self._format_line(one.option)}" for one in choices[:MAX_CHOICES]
            ]
            head = [one for one, total in zip(lines, accumulate(map(len, lines)), strict=True) if total < MAX_SHOWN]
            self._leave_open(f"{question}. These commands do:", *(line for one in head for line in one.split("\n")))
            if len(choices) > len(head):
                self.notes.append(f"- and {len(choices) - len(head)} more")
            return None
        print_output(f"{question[:1].upper()}{question[1:]}?")
        for number, one in enumerate(choices, 1):
            print_output(f"  {number}. {to_console_line(one.label)}")
        while True:
            reply = self._read_line(f"Number, or nothing for none of them (1 to {len(choices)})? ")
            if not reply:
                self.is_open = True
                return None
            if reply.isascii() and reply.isdecimal() and 0 < int(reply[:6]) <= len(choices):
                return int(reply[:6]) - 1

    def ask_for_values(self, names: Sequence[str], option: tuple[str, ...]) -> list[str] | None:
        """Ask for a value of each name; None if one is missing. `option` is how a command gives them."""
        hint = "(JSON or text; {{session}} is new each time)"
        if names and not self._is_terminal:
            label = to_console_line(", ".join(names))
            self._leave_open(f"what to send as {label} {hint}. This command does:", self._format_line(option))
            return None
        values = [self._read_line(f"What to send as {to_console_line(name)} {hint}? ") for name in names]
        self.is_open |= not all(values)
        return values if all(values) else None

    def ask_for_prompt(self, what: str) -> str | None:
        """Ask for a prompt to send once; None to send nothing. Without a terminal, a note names the option for it."""
        if self._is_terminal:
            question = (
                f"Question to send once to {what}, best one that makes your agent call a tool (nothing: send none)? "
            )
            return self._read_line(question) or None
        note = f"not done    sent no question to {what}. With one that makes your agent call a tool:"
        self.notes += [note, self._format_line(("--probe", "QUESTION"))]
        return None

    def say(self, line: str) -> None:
        """Print the cost of a choice, before anything is written."""
        print_output(to_console_line(line))

    def confirm(self, question: str) -> bool:
        """Ask for yes or no. Without a terminal the answer is no."""
        return self._is_terminal and self._read_line(f"{question} [y/N]? ").lower() in {"y", "yes"}

    def _leave_open(self, *lines: str) -> None:
        self.is_open = True
        self.notes += [f"not decided {lines[0]}", *lines[1:]]

    def _format_line(self, option: tuple[str, ...]) -> str:
        return f"     {self.format_command(*option)}"

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
