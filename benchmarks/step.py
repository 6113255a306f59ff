"""Where the time of a step goes beside its cases: from its start to the first case, from the last case to its end.

The action's process is run as in a job, against a GitHub of our own that answers every call after so many milliseconds.
What the runner does before, pulling the image and starting the container, is not in it.

    python -m benchmarks.step --latency 200 --rounds 5
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

os.environ["EVAL_GATE_TEST_COLD"] = "1"  # what is loaded is a part of it

from tests.support.agents import Exchange, agent
from tests.support.github import FakeGitHub, fake_github
from tests.support.github.faults import Fault
from tests.support.jobs import Job

CASES: Final = 20
CASE_S: Final = 1.0
"""Seconds for which the agent thinks, about all cases at once: time for what is fetched beside them."""
PARTS: Final = (
    "start → first call: interpreter, imports, inputs",
    "GitHub, before the first case",
    "between them, and → first case: eval files, agent",
    "**start → first case**",
    "GitHub, beside the cases",
    "last case → first call: baseline, verdict, results, page",
    "GitHub and uploads, after the last case",
    "between them, and → end: reports, log",
    "**last case → end**",
)
COUNTED: Final = {1: "before", 4: "beside", 6: "after"}


@dataclass
class Calls:
    """When calls arrived at GitHub, what they were, and when cases were asked."""

    latency_s: float
    late: bool = True
    """Whether GitHub answers late."""
    github: list[tuple[float, str]] = field(default_factory=list)
    cases: list[float] = field(default_factory=list)
    answered: float = 0.0

    def take(self, method: str, target: str) -> Fault:
        """As the fake's plan of failures: none, and every answer late."""
        self.github.append((time.monotonic(), f"{method} {target.partition('?')[0]}"))
        return Fault("slow", seconds=self.latency_s if self.late else 0)

    async def answer(self, exchange: Exchange) -> None:
        """As an agent that knows everything."""
        self.cases.append(time.monotonic())
        await asyncio.sleep(CASE_S)
        self.answered = time.monotonic()
        exchange.answer({"response": "ok", "toolCalls": []})


def measured(job: Job, github: FakeGitHub, url: str, calls: Calls, number: int) -> tuple[list[float], Counter[str]]:
    """Seconds of each part, and how often GitHub was called for what: of the second push of a pull request."""
    pull = github.state.add_pull(number, head_ref=f"feature-{number}")
    calls.late = False
    if (before := job.pull_request(pull, url)).code:
        raise SystemExit(before.log)
    calls.late = True
    calls.github.clear()
    calls.cases.clear()
    began = time.monotonic()
    done = job.pull_request(pull, url, {"concurrency": str(CASES)})
    ended = time.monotonic()
    if done.code:
        raise SystemExit(done.log)
    first, last = calls.cases[0], calls.answered
    before = [at for at, _ in calls.github if at < first]
    beside = [at for at, _ in calls.github if first <= at <= last]
    after = [at for at, _ in calls.github if at > last]
    waited, fetched, published = (
        _under_way(times, calls.latency_s, until) for times, until in ((before, first), (beside, last), (after, ended))
    )
    reached, done_at = before[0] - began, after[0] - last
    parts = [reached, waited, first - began - reached - waited, first - began, fetched]
    parts += [done_at, published, ended - last - done_at - published, ended - last]
    return parts, Counter({"before": len(before), "beside": len(beside), "after": len(after)})


def _under_way(times: list[float], latency_s: float, end: float) -> float:
    """For how long, until the end, one call at least was waited for."""
    whole, until = 0.0, float("-inf")
    for at in times:
        whole += max(min(at + latency_s, end) - max(at, until), 0.0)
        until = max(at + latency_s, until)
    return whole


def main() -> None:
    """Print the medians."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--latency", type=float, default=200, metavar="MS")
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--calls", action="store_true", help="Name every call of the last round.")
    given = asked.parse_args()
    calls = Calls(given.latency / 1000)
    with tempfile.TemporaryDirectory() as folder, fake_github() as github, agent(calls.answer) as running:
        job = Job(Path(folder), github)
        job.write_suite(CASES)
        for _ in range(2):
            job.push(running.url)
        github.faults.take = calls.take  # type: ignore[method-assign]
        rounds = [measured(job, github, running.url, calls, 7 + number) for number in range(given.rounds)]
    print(*_table(rounds, given.latency), sep="\n")
    if given.calls:
        print(*(f"{at - calls.github[0][0]:6.2f} s  {what}" for at, what in calls.github), sep="\n")


def _table(rounds: list[tuple[list[float], Counter[str]]], latency_ms: float) -> Iterator[str]:
    counts = rounds[-1][1]
    yield f"| part, at {latency_ms:g} ms a call | seconds, median of {len(rounds)} | calls |"
    yield "|:--|--:|--:|"
    for number, part in enumerate(PARTS):
        seconds = statistics.median(parts[number] for parts, _ in rounds)
        calls = counts[COUNTED[number]] if number in COUNTED else ""
        yield f"| {part} | {seconds:.2f} | {calls} |"


if __name__ == "__main__":
    main()
