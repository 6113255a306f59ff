"""A new user's mistakes as rows of a table: what is written and typed, and what has to be said about it."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.support.agents import Exchange, agent
from tests.support.program import gate

SUITE = "evals/weather.golden.json"
WAITS = {"EVAL_GATE_WAIT_FOR": "1"}
"""Shorter than users wait, and by their own setting."""
EVALS_HINT = "correct them; `eval-gate validate` checks without running anything"
CONFIG_HINT = "correct each place; `eval-gate schema config` lists all settings and their values"
TARGETS_HINT = "correct each place; `eval-gate schema targets` lists all settings"


def case(number: int = 1, **changes: object) -> dict[str, object]:
    """A case that expects `ok` in the response."""
    expected = {"responseContains": ["ok"]}
    return {"id": f"gs-{number}", "input": {"message": f"ask {number}"}, "expect": expected} | changes


def suite(*cases: object) -> str:
    """A suite of these cases, each on a line of its own: the first one is on line 2."""
    return "[\n" + ",\n".join(json.dumps(one) for one in cases) + "\n]\n"


GOOD = {SUITE: suite(case(1), case(2), case(3))}


HEADINGS = {
    "agent error": "AGENT ERRORS (",
    "agent unreachable": "UNREACHABLE AGENT (",
    "evaluation error": "EVALUATION ERRORS (",
}
"""What stands above the errors of a kind on the console."""


@dataclass(frozen=True)
class Reply:
    """What an agent answers to everything; nothing at all where it hangs."""

    status: str = "200 OK"
    body: dict[str, object] | bytes = field(default_factory=lambda: {"response": "ok", "toolCalls": []})
    headers: Mapping[str, str] = field(default_factory=dict)
    hangs: bool = False


@dataclass(frozen=True)
class Mistake:
    """One mistake, and what somebody who made it has to be told.

    `message` says what is wrong, and stands on one line with `where`, which is a file and line, a field, an option or
    an address. `what_to_do` stands anywhere; `next_step` is in the line `hint:` of an error, or `Next step:` of a
    verdict. In command, environment and place, `{url}` is an address that answers with `reply`, and `{ok}` one that
    works.
    """

    command: str
    message: str
    where: str = ""
    what_to_do: str = ""
    next_step: str = ""
    code: int = 2
    files: Mapping[str, str | bytes] = field(default_factory=lambda: GOOD)
    first: str = ""
    """A command that was run before without a mistake."""
    reply: Reply = Reply()
    environment: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def replying(rows: Mapping[str, Mistake]) -> Iterator[str]:
    """One server for all rows: the first step of a path is the name of the row whose reply it gives; `ok` works."""
    replies = {to_step(name): row.reply for name, row in rows.items()} | {"ok": Reply()}

    async def handler(exchange: Exchange) -> None:
        reply = replies[exchange.head.split(" ", 2)[1].split("/")[1]]
        if reply.hangs:
            await asyncio.sleep(30)
        exchange.answer(reply.body, reply.status, **reply.headers)

    with agent(handler) as running:
        yield f"http://127.0.0.1:{running.port}"


def to_step(name: str) -> str:
    """The step of a path that stands for a row."""
    return "".join(letter if letter.isalnum() else "-" for letter in name)


class Told(NamedTuple):
    """What somebody was told: all of it, and the line of the next step."""

    code: int
    text: str
    next_step: str


class Place(NamedTuple):
    """Where a mistake is made: a folder, and the addresses that its texts name in braces."""

    folder: Path
    addresses: Mapping[str, str]

    def fill_in(self, text: str) -> str:
        """The text with its addresses."""
        for name, address in self.addresses.items():
            text = text.replace(f"{{{name}}}", address)
        return text

    def run(self, command: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a command line of ours, with the addresses in it."""
        given = WAITS | {name: self.fill_in(value) for name, value in environment.items()}
        return gate(self.folder, *shlex.split(self.fill_in(command)), **given)


def make_mistake(row: Mistake, place: Place) -> Told:
    """Write the files, run the command, and return what it says."""
    for name, text in row.files.items():
        path = place.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    if row.first:
        done = place.run(row.first, row.environment)
        assert done.returncode == 0, done.stdout + done.stderr
    done = place.run(row.command, row.environment)
    return Told(done.returncode, done.stdout + done.stderr, find_next_step(done.stdout + done.stderr))


def find_next_step(text: str) -> str:
    """The next step on a console or in a comment: what follows `hint:` or `Next step:`."""
    found = re.search(r"^ *(?:hint:|Next step:|\*\*Next step:\*\*) (.*)$", text, re.MULTILINE)
    return found[1] if found else ""


def check_told(row: Mistake, told: Told, place: Place) -> None:
    """Hold what somebody was told against the row, word for word."""
    assert told.code == row.code, told.text
    where = place.fill_in(row.where)
    if where in HEADINGS:
        assert HEADINGS[where] in told.text, told.text
        where = ""
    assert any(row.message in line and where in line for line in told.text.splitlines()), told.text
    assert row.what_to_do in told.text, told.text
    assert row.next_step.lower() in told.next_step.lower(), told.text
    assert bool(row.next_step) == bool(told.next_step), told.text
