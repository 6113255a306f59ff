"""Kills the program with SIGKILL at random moments and lets it go on: nothing may be lost, nothing done twice.

    python benchmarks/kills.py --kills 200 --seed 1

A run of 60 cases is killed some time between its start and its end, resumed, perhaps killed again, until it is through.
Then another one begins. After every kill the journal is read as it was left; at the end of each run

- lost are cases that were in the journal at a kill and were asked again, or have another result in the record,
- doubled are cases that stand twice in the journal or in the record.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.agents import Agent, Exchange, agent

CASES: Final = 60
LATENCY_S: Final = 0.08
AT_ONCE: Final = 4
ENVIRONMENT: Final = {
    name: value for name, value in os.environ.items() if not name.startswith(("EVAL_GATE_", "GITHUB_", "CI"))
} | {"PYTHONPATH": str(ROOT / "runner")}


@dataclass
class Tally:
    """What was seen over all runs."""

    kills: int = 0
    runs: int = 0
    before_anything: int = 0
    """Kills before there was a record that could be taken up."""
    kept: int = 0
    """Finished cases that were in a journal at a kill."""
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)


def campaign(kills: int, seed: int, folder: Path, cases: int = CASES) -> Tally:
    """Make so many kills, in runs in a folder of their own each."""
    tally, chance = Tally(), random.Random(seed)
    with agent(_answer) as asked:
        whole_s = _whole(folder / "first", asked, cases)
        while tally.kills < kills:
            tally.runs += 1
            _one_run(folder / f"run-{tally.runs}", asked, cases, tally, chance, whole_s)
    return tally


async def _answer(exchange: Exchange) -> None:
    number = int(exchange.json["message"].split()[1])
    await asyncio.sleep(LATENCY_S)
    exchange.answer({"response": "no" if number % 7 == 3 else "ok", "toolCalls": []})


def _whole(folder: Path, asked: Agent, cases: int) -> float:
    """Seconds of a run that nobody kills."""
    _write(folder, cases)
    begun = time.monotonic()
    _started(folder, asked.url).communicate()
    return time.monotonic() - begun


def _write(folder: Path, cases: int) -> None:
    (folder / "evals").mkdir(parents=True)
    suite = [
        {"id": f"gs-{number:03}", "input": {"message": f"ask {number}"}, "expect": {"responseContains": ["ok"]}}
        for number in range(cases)
    ]
    (folder / "evals" / "kill.golden.json").write_text(json.dumps(suite))


def _started(folder: Path, url: str, *options: str) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "eval_gate",
        "run",
        "--agent-endpoint",
        url,
        "--concurrency",
        str(AT_ONCE),
        *options,
    ]
    return subprocess.Popen(
        command,
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def _one_run(folder: Path, asked: Agent, cases: int, tally: Tally, chance: random.Random, longest_s: float) -> None:
    """Start one run, kill it at random moments, and resume it until it ends.

    Kills and faults are added to `tally`. A kill comes at most `longest_s` seconds after a start.
    """
    _write(folder, cases)
    finished: dict[str, Any] = {}
    options: tuple[str, ...] = ()
    while True:
        asked.requests.clear()
        again = not options or chance.random() < 0.5
        process = _started(folder, asked.url, *options)
        try:
            said, _ = process.communicate(timeout=chance.uniform(0, longest_s) if again else 300)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            tally.kills += 1
            time.sleep(2 * LATENCY_S)  # what was asked for is answered, to nobody
        tally.lost += [f"{folder.name}: {one} was asked again" for one in sorted(finished.keys() & set(_asked(asked)))]
        if process.returncode != -signal.SIGKILL:
            break
        finished = _journal(folder)
        tally.kept += len(finished)
        record = next(folder.glob("evals/results/*/run.json"), None)
        if record is None:
            tally.before_anything += 1
        options = ("--resume", record.parent.name) if record else ()
    if process.returncode != 1:
        tally.trouble.append(f"{folder.name}: exit {process.returncode}: {said[-500:]}")
    _check(folder, finished, cases, tally)


def _asked(asked: Agent) -> list[str]:
    return [f"gs-{int(one.json['message'].split()[1]):03}" for one in list(asked.requests)]


def _journal(folder: Path) -> dict[str, Any]:
    """Read the finished cases from the journal, by case id.

    An unfinished last line is ignored.
    """
    found = {}
    for file in folder.glob("evals/results/*/cases.jsonl"):
        for line in file.read_bytes().split(b"\n")[:-1]:
            entry = json.loads(line)
            found[entry["caseId"]] = entry
    return found


def _check(folder: Path, finished: dict[str, Any], cases: int, tally: Tally) -> None:
    (file,) = folder.glob("evals/results/*/run.json")
    record = json.loads(file.read_text())
    found = {case["id"]: case for suite in record["suites"] for case in suite["cases"]}
    number = sum(len(suite["cases"]) for suite in record["suites"])
    if not record["complete"] or record["summary"]["totalCases"] != cases:
        tally.lost.append(f"{folder.name}: the record is not complete")
    for case_id, entry in finished.items():
        if found.get(case_id, {}).get("status") != entry["status"]:
            tally.lost.append(f"{folder.name}: {case_id} has another result")
    for number_of_case in range(cases):
        case_id, wanted = f"gs-{number_of_case:03}", "failed" if number_of_case % 7 == 3 else "passed"
        if found.get(case_id, {}).get("status") != wanted:
            tally.lost.append(f"{folder.name}: {case_id} is not {wanted}")
    lines = [json.loads(line)["caseId"] for line in (file.parent / "cases.jsonl").read_text().splitlines()]
    tally.doubled += [f"{folder.name}: {one} is in the journal twice" for one, n in Counter(lines).items() if n > 1]
    if number != len(found):
        tally.doubled.append(f"{folder.name}: {number} cases in the record, {len(found)} names")


def main() -> int:
    """Parse arguments, kill, print the figures; 1 where anything was lost or doubled."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        tally = campaign(given.kills, given.seed, Path(name))
    minutes = (time.monotonic() - begun) / 60
    print(
        f"{datetime.now(UTC):%Y-%m-%d}, seed {given.seed}: {tally.kills} kills in {tally.runs} runs of {CASES} cases, "
        f"{minutes:.0f} minutes; {tally.before_anything} before there was a record; {tally.kept} finished cases in "
        f"journals at kills; lost {len(tally.lost)}, doubled {len(tally.doubled)}, other trouble {len(tally.trouble)}"
    )
    for line in (*tally.lost, *tally.doubled, *tally.trouble):
        print(f"  {line}")
    return 1 if tally.lost or tally.doubled or tally.trouble else 0


if __name__ == "__main__":
    raise SystemExit(main())
