"""Measures start-up, the cost of a case, scale and memory; prints a table beside the floors and the targets."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import cli
from measure import Cost, measure
from suites import write_suite

HERE = Path(__file__).parent
Row = tuple[str, str, str, str]
"""What, measured, floor, target."""


@contextmanager
def agent(latency_ms: float, *kind: str) -> Iterator[str]:
    """Run the agent as a process inside the context, and give its address."""
    command = [sys.executable, str(HERE / "agent.py"), str(latency_ms), *kind]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def best(command: list[str], times: int = 5) -> Cost:
    """Run a command several times, and return the cost of the cheapest run.

    The cheapest run, by processor time, is what the command costs when nothing else is going on.
    """
    return min((measure(command) for _ in range(times)), key=lambda cost: cost.processor_s)


def gate(*arguments: str) -> list[str]:
    """Return the command that runs the program with these arguments."""
    return [sys.executable, "-m", "eval_gate", *arguments]


def evals(folder: Path, url: str, cases: int) -> list[str]:
    """Write a suite of `cases` cases, and return the command that runs it, 50 cases at a time."""
    file = folder / f"{cases}.golden.json"
    write_suite(file, cases)
    return gate("run", str(file), "--agent-endpoint", url, "--concurrency", "50", "--output-dir", str(folder / "out"))


def startup(_quick: bool) -> Iterator[Row]:
    """Measure the processor time of `--help`, and yield its row."""
    bare, shown = best([sys.executable, "-c", "pass"]), best(gate("--help"))
    yield (
        "eval-gate --help, processor time",
        f"{shown.processor_s:.3f} s",
        f"{bare.processor_s:.3f} s (python)",
        "< 0.25 s",
    )


def per_case(quick: bool) -> Iterator[Row]:
    """Measure the processor time of a case when the agent takes no time, and yield the rows."""
    times = 1 if quick else 3
    with agent(0) as url, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        one = best(evals(folder, url, 1), times).processor_s
        many = best(evals(folder, url, 1_000), times).processor_s
        floors = [floor(url, 1_000)["processor"] for _ in range(times)]
    yield "1 case, processor time (start-up)", f"{one:.3f} s", "", ""
    yield "1,000 cases, processor time a case, all in", f"{many:.2f} ms", f"{min(floors):.2f} ms (client)", "< 1.0 ms"
    yield (
        "1,000 cases, processor time a case, without start-up",
        f"{many - one:.2f} ms",
        f"{min(floors):.2f} ms (client)",
        "",
    )


def floor(url: str, requests: int) -> dict[str, float]:
    """Measure the bare client, and return its wall and processor seconds."""
    cost = measure([sys.executable, str(HERE / "floor.py"), url, str(requests), "50"])
    found: dict[str, float] = json.loads(cost.output)
    return found


def scale(quick: bool) -> Iterator[Row]:
    """How close 50 in flight come to the ideal, and what 10,000 cases take."""
    cases = 2_000 if quick else 10_000
    ideal = cases * 0.05 / 50
    with agent(50) as url, tempfile.TemporaryDirectory() as name:
        bare = floor(url, cases)["wall"]
        cost = measure(evals(Path(name), url, cases))
        clock = json.loads(next(Path(name, "out").glob("*/run.json")).read_text())["summary"]["wallMs"] / 1000
    share, floor_share = ideal / clock, ideal / bare
    yield (
        f"{cases:,} cases, 50 ms, 50 in flight: share of ideal",
        f"{share:.1%}",
        f"{floor_share:.1%} (client)",
        ">= 90 %",
    )
    yield f"{cases:,} cases: whole process", f"{cost.wall_s:.1f} s", f"{ideal:.1f} s (ideal)", ""
    yield f"{cases:,} cases: peak memory", f"{cost.peak_mb:.0f} MB", "", "< 300 MB"


def judge(quick: bool) -> Iterator[Row]:
    """Measure an LLM judge call, compared with the provider's library alone, and yield the row."""
    calls, times = (200, 1) if quick else (1_000, 3)
    with agent(0, "judge") as url:
        spent = {
            who: min(_judge_calls(who, url.removesuffix("/chat") + "/v1", calls) for _ in range(times)) / calls * 1000
            for who in ("ours", "sdk")
        }
    what = f"{calls:,} judge calls, 50 in flight: processor time a call"
    yield what, f"{spent['ours']:.2f} ms", f"{spent['sdk']:.2f} ms (openai)", ""


def _judge_calls(who: str, url: str, calls: int) -> float:
    cost = measure([sys.executable, str(HERE / "judge.py"), who, url, str(calls), "50"])
    seconds: float = json.loads(cost.output)["processor"]
    return seconds


MEASUREMENTS: dict[str, Callable[[bool], Iterator[Row]]] = {
    "startup": startup,
    "case": per_case,
    "scale": scale,
    "judge": judge,
    "cli": cli.rows,
}


def main() -> None:
    """Measure and print."""
    from tabulate import tabulate

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats and cases")
    parser.add_argument("--only", choices=MEASUREMENTS, help="one measurement")
    arguments = parser.parse_args()
    rows: list[Row] = []
    for name, measurement in MEASUREMENTS.items():
        if arguments.only in {None, name}:
            rows += measurement(arguments.quick)
    print(tabulate(rows, headers=["what", "measured", "floor", "target"], disable_numparse=True))


if __name__ == "__main__":
    main()
