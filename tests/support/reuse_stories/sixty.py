"""Sixty changes of one repository with three suites, run after each other by the command line, and what each asks for.

Twenty changes are to documents, ten to the agent of each suite, and ten to evals or configuration. The agent reads the
files of its suite, so a change can break it: the gate has to say the same with reuse and without.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.support.agents import Agent, Exchange, agent
from tests.support.program import gate

SUITES = ("billing", "search", "support")
CASES = 4
KINDS = {"document": 20, **dict.fromkeys(SUITES, 10), "evals": 5, "configuration": 5}
"""Changes by kind."""
MEASURES = {f"evals/{suite}.golden.json": [f"agents/{suite}/**"] for suite in SUITES} | {"**": ["prompts/**"]}
BROKEN = 6
"""Every change of an agent of this number breaks it, until its next change."""


@dataclass(frozen=True)
class Ran:
    """One run: why there was one, its exit code, and what it asked of the agent."""

    kind: str
    code: int
    requests: int
    reused: int
    """Suites."""


@dataclass
class Repository:
    """The repository on a disk, and its agent."""

    folder: Path
    agent: Agent
    uses_measures: bool
    runs: list[Ran] = field(default_factory=list)
    changes: int = 0
    agent_changes: int = 0

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def write_suite(self, suite: str, version: int) -> None:
        cases = [
            {
                "id": f"{suite}-{number}",
                "input": {"message": f"{suite}: question {number}, version {version}"},
                "expect": {"responseContains": ["ok"]},
            }
            for number in range(CASES)
        ]
        self.write(f"evals/{suite}.golden.json", json.dumps(cases))

    def write_config(self, timeout_ms: int) -> None:
        measures = {"measures": MEASURES} if self.uses_measures else {}
        self.write("eval-gate.yaml", json.dumps({"agentEndpoint": self.agent.url, "timeoutMs": timeout_ms, **measures}))

    def begin(self) -> None:
        """The repository as it is, with a run that passes."""
        self.write_config(20_000)
        self.write("prompts/common.txt", "Be kind.")
        for suite in SUITES:
            self.write_suite(suite, 0)
            self.write(f"agents/{suite}/prompt.txt", "works, version 0")
        self.run("first")

    def change(self, kind: str) -> None:
        """Make one change, and run."""
        self.changes += 1
        number = self.changes
        if kind in SUITES:
            self.agent_changes += 1
            words = "works" if self.agent_changes % BROKEN else "is broken"
            self.write(f"agents/{kind}/prompt.txt", f"{words}, version {number}")
        elif kind == "evals":
            self.write_suite(SUITES[number % len(SUITES)], number)
        elif kind == "configuration":
            self.write_config(20_000 + number)
        else:
            self.write(f"docs/page-{number % 4}.md", f"version {number}")
        self.run(kind)

    def run(self, kind: str, *options: str) -> None:
        before = len(self.agent.requests)
        given = ("--baseline", "latest", "--reuse", "--fail-on", "regressions", "--reruns", "2", *options)
        done = gate(self.folder, "run", *given)
        assert done.returncode in {0, 1}, done.stdout + done.stderr
        pointer = json.loads((self.folder / "evals/results/latest.json").read_text())
        result = json.loads((self.folder / "evals/results" / pointer["path"]).read_text())
        reused = sum(suite["reused"] is not None for suite in result["suites"])
        self.runs.append(Ran(kind, done.returncode, len(self.agent.requests) - before, reused))


@contextmanager
def open_repository(folder: Path, *, uses_measures: bool) -> Iterator[Repository]:
    """The repository in this folder, whose agent reads its files."""

    async def respond(exchange: Exchange) -> None:
        suite = next(one for one in SUITES if f"{one}: question" in exchange.body.decode())
        works = "works" in (folder / f"agents/{suite}/prompt.txt").read_text(encoding="utf-8")
        exchange.answer({"response": "ok" if works else "no", "toolCalls": []})

    with agent(respond) as running:
        repository = Repository(folder, running, uses_measures)
        repository.begin()
        yield repository


def draw_kinds(seed: int, kinds: Mapping[str, int] = KINDS) -> list[str]:
    """The changes in random order, but a broken agent is fixed by the next change."""
    drawn = [kind for kind, count in kinds.items() for _ in range(count)]
    Random(seed).shuffle(drawn)
    ordered: list[str] = []
    while drawn:
        ordered.append(drawn.pop(0))
        agents = sum(one in SUITES for one in ordered)
        if ordered[-1] in drawn and ordered[-1] in SUITES and agents % BROKEN == 0:
            drawn.remove(ordered[-1])
            ordered.append(ordered[-1])
    return ordered


def run_changes(folder: Path, kinds: list[str]) -> tuple[list[Ran], list[Ran]]:
    """Run these changes without measures and with them. The first run of each is not among the results."""
    found = []
    for uses_measures in (False, True):
        place = folder / ("with" if uses_measures else "without")
        place.mkdir()
        with open_repository(place, uses_measures=uses_measures) as repository:
            for kind in kinds:
                repository.change(kind)
            found.append(repository.runs[1:])
    return found[0], found[1]
