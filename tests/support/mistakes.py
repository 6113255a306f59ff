"""A new user's mistakes as rows of a table: what is written and typed, and what has to be said about it."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.agents import Agent, Exchange, agent
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
    an address. `what_to_do` stands anywhere; `next_step` is the line `hint:` of an error, or `Next step:` of a verdict.
    In all texts `{url}` is the agent, which answers with `reply`.
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
def replying(rows: Mapping[str, Mistake]) -> Iterator[Agent]:
    """One agent for all rows: the first step of its path is the name of the row whose reply it gives."""
    replies = {to_step(name): row.reply for name, row in rows.items()}

    async def handler(exchange: Exchange) -> None:
        reply = replies[exchange.head.split(" ", 2)[1].split("/")[1]]
        if reply.hangs:
            await asyncio.sleep(30)
        exchange.answer(reply.body, reply.status, **reply.headers)

    with agent(handler) as running:
        yield running


def to_step(name: str) -> str:
    """The step of a path that stands for a row."""
    return "".join(letter if letter.isalnum() else "-" for letter in name)


@dataclass(frozen=True)
class Told:
    """What somebody was told: all of it, and the line of the next step."""

    code: int
    text: str
    next_step: str


def make_mistake(row: Mistake, folder: Path, url: str) -> Told:
    """Write the files, run the command, and return what it says."""
    for name, text in row.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.replace("{url}", url).encode())
    environment = WAITS | {name: value.replace("{url}", url) for name, value in row.environment.items()}
    if row.first:
        done = gate(folder, *shlex.split(row.first.replace("{url}", url)), **environment)
        assert done.returncode == 0, done.stdout + done.stderr
    done = gate(folder, *shlex.split(row.command.replace("{url}", url)), **environment)
    return Told(done.returncode, done.stdout + done.stderr, find_next_step(done.stdout + done.stderr))


def find_next_step(text: str) -> str:
    """The next step on a console: what follows `hint:` or `Next step:`."""
    lines = (line.strip() for line in text.splitlines())
    return next((line.partition(": ")[2] for line in lines if line.startswith(("hint: ", "Next step: "))), "")


def check_told(row: Mistake, told: Told, url: str) -> None:
    """Hold what somebody was told against the row, word for word."""
    assert told.code == row.code, told.text
    lines = told.text.splitlines()
    assert any(row.message in line and row.where.replace("{url}", url) in line for line in lines), told.text
    assert row.what_to_do.replace("{url}", url) in told.text, told.text
    assert told.next_step.lower().startswith(row.next_step.lower()), told.text
    assert row.next_step or not told.next_step, told.text
