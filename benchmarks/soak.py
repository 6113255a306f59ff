"""Runs very many cases against an agent of which one answer in ten is a fault, and counts whether all is right.

    python benchmarks/soak.py --cases 50000 --seed 1

The agent is a process of its own, over real connections. Which case meets which fault is drawn from the seed, so it is
known what every case has to become and how often it has to be asked. Memory is measured on the way: what a case costs
from the first fifth of the cases to the last is said, beside the peak.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.agents import Exchange, agent

PER_FILE: Final = 1_000
AT_ONCE: Final = 16
FAULTS: Final = {
    "wrong": (("failed", None), 1),
    "500": (("error", "agent_error"), 1),
    "404": (("error", "agent_error"), 1),
    "html": (("error", "agent_error"), 1),
    "cut": (("error", "agent_error"), 1),
    "reset": (("error", "agent_error"), 2),
    "429": (("error", "agent_unreachable"), 2),
    "503 once": (("passed", None), 2),
    "429 once": (("passed", None), 2),
    "reset once": (("passed", None), 2),
}
"""What the agent does; what the case becomes and whose fault it is; and how often it is asked with one retry."""
SHARE: Final = 0.1


@dataclass
class Seen:
    """What came of it. `wrong` says what is not as it has to be."""

    cases: int
    faults: int
    seconds: float = 0.0
    requests: int = 0
    peak_mb: float = 0.0
    memory: list[tuple[int, float]] = field(default_factory=list)
    """Requests so far, and megabytes then."""
    wrong: list[str] = field(default_factory=list)

    @property
    def bytes_a_case(self) -> float:
        """How much memory one more case costs, after the first fifth."""
        late = [one for one in self.memory if one[0] > self.cases / 5]
        if len(late) < 2 or late[-1][0] == late[0][0]:
            return 0.0
        return (late[-1][1] - late[0][1]) * 1e6 / (late[-1][0] - late[0][0])


def soak(cases: int, seed: int, folder: Path) -> Seen:
    """Run so many cases once and hold the record against what was drawn."""
    chance = random.Random(seed)
    drawn = [chance.choice(list(FAULTS)) if chance.random() < SHARE else "" for _ in range(cases)]
    _write(folder, cases)
    asked: Counter[int] = Counter()

    async def answer(exchange: Exchange) -> None:
        number = int(exchange.json["message"].split()[1])
        asked[number] += 1
        await _act(exchange, drawn[number], first=asked[number] == 1)
        seen.requests += 1
        running.requests.clear()  # the agent's own memory must not grow either

    seen = Seen(cases, sum(map(bool, drawn)))
    with agent(answer) as running:
        begun = time.monotonic()
        process = _started(folder, running.url)
        watching = threading.Thread(target=_watch, args=(process.pid, seen), daemon=True)
        watching.start()
        said, _ = process.communicate()
        watching.join(5)
        seen.seconds = time.monotonic() - begun
    _check(folder, drawn, asked, seen)
    if process.returncode != 1:
        seen.wrong.append(f"exit {process.returncode}: {said[-1000:]}")
    return seen


async def _act(exchange: Exchange, fault: str, *, first: bool) -> None:
    if fault.endswith(" once"):
        fault = fault.removesuffix(" once") if first else ""
    match fault:
        case "":
            exchange.answer({"response": "ok", "toolCalls": []})
        case "wrong":
            exchange.answer({"response": "no", "toolCalls": []})
        case "html":
            exchange.answer(b"<html>")
        case "cut":
            exchange.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
            await exchange.writer.drain()
            exchange.writer.close()
        case "reset":
            exchange.reset()
        case status:
            exchange.answer({"error": "no"}, f"{status} As Drawn")


def _write(folder: Path, cases: int) -> None:
    (folder / "evals").mkdir(parents=True, exist_ok=True)
    for start in range(0, cases, PER_FILE):
        suite = [
            {"id": f"gs-{number:06}", "input": {"message": f"ask {number}"}, "expect": {"responseContains": ["ok"]}}
            for number in range(start, min(start + PER_FILE, cases))
        ]
        (folder / "evals" / f"soak-{start // PER_FILE:03}.golden.json").write_text(json.dumps(suite))


def _started(folder: Path, url: str) -> subprocess.Popen[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("EVAL_GATE_", "GITHUB_", "CI"))}
    (folder / "eval-gate.json").write_text(
        json.dumps({"targets": [{"name": "a", "provider": "http", "url": url, "initialDelayMs": 10}]})
    )
    options = ("--max-retries", "1", "--concurrency", str(AT_ONCE), "--timeout-ms", "60000", "--quiet")
    return subprocess.Popen(
        [sys.executable, "-m", "eval_gate", "run", *options],
        cwd=folder,
        env=clean | {"PYTHONPATH": str(ROOT / "runner")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _watch(pid: int, seen: Seen) -> None:
    """Record the current and the peak resident memory of a process until it ends, in megabytes."""
    while True:
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return
        found = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        if "VmRSS" not in found:
            return
        seen.peak_mb = int(found["VmHWM"].split()[0]) / 1000
        if seen.requests and seen.requests < seen.cases:
            seen.memory.append((seen.requests, int(found["VmRSS"].split()[0]) / 1000))
        time.sleep(0.25)


def _check(folder: Path, drawn: list[str], asked: Counter[int], seen: Seen) -> None:
    (file,) = folder.glob("evals/results/*/run.json")
    record = json.loads(file.read_text())
    found = [(int(case["id"][3:]), case) for suite in record["suites"] for case in suite["cases"]]
    wanted = {number: FAULTS.get(fault, (("passed", None), 1)) for number, fault in enumerate(drawn)}
    if sorted(number for number, _ in found) != list(range(len(drawn))):
        seen.wrong.append("the record does not hold each case once")
    for number, case in found:
        if (case["status"], case["errorKind"]) != wanted[number][0]:
            seen.wrong.append(f"{case['id']} ({drawn[number]}): {case['status']}, {case['errorKind']}: {case['error']}")
        # a refusal at a higher concurrency uses up no retry, and each one halves the concurrency
        more = AT_ONCE.bit_length() if drawn[number] == "429" else 0
        if not wanted[number][1] <= asked[number] <= wanted[number][1] + more:
            seen.wrong.append(f"{case['id']} ({drawn[number]}): asked {asked[number]} times")
    counts = Counter(status for (status, _), _ in wanted.values())
    said = {name: record["summary"][name] for name in ("totalCases", "passed", "failed", "errored")}
    right = {
        "totalCases": len(drawn),
        "passed": counts["passed"],
        "failed": counts["failed"],
        "errored": counts["error"],
    }
    if said != right:
        seen.wrong.append(f"the summary says {said}, which is {right}")


def main() -> int:
    """Parse arguments, run, print the figures; 1 where a count is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        seen = soak(given.cases, given.seed, Path(name))
    print(
        f"{datetime.now(UTC):%Y-%m-%d}, seed {given.seed}: {seen.cases} cases, {seen.faults} of them with a fault, "
        f"{seen.requests} requests, {seen.seconds:.0f} s; {len(seen.wrong)} counts wrong; peak {seen.peak_mb:.0f} MB, "
        f"{seen.bytes_a_case:.0f} bytes more with each case"
    )
    for line in seen.wrong[:50]:
        print(f"  {line}")
    return 1 if seen.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
