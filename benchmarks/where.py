"""Where the time of a run goes: its processor time by part of the program, sampled every two milliseconds of it.

    python -m benchmarks.where                                  # 10,000 cases of an agent that answers at once
    python -m benchmarks.where --cases 1                        # start-up
    python -m benchmarks.where --latency-ms 50 --at-once 200

The innermost function that belongs to a part decides, so that what a part calls is its own. To look costs a little.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).parent))

EVERY_S = 0.002
OTHER = "everything else"
LOADING = "start: loading code"
ASKING = "case: request and answer"
PARTS = {
    ("formats/discovery.py", "load_suites"): "load: eval files",
    ("session/run.py", "plan_run"): "load: everything else that is prepared",
    ("targets/http/request_builder.py", "build_request"): "case: request made",
    ("targets/http/connection.py", "exchange"): ASKING,
    ("targets/response/reader.py", "read"): "case: answer read",
    ("engine/trials.py", "run"): "case: limits, retries, record",
    ("evaluators/aggregation.py", "score_case"): "case: judged",
    ("engine/journal.py", "append"): "case: journal",
    ("engine/run.py", "work"): "case: kept and shown",
    ("engine/worker_pool.py", "_run_worker"): "case: waiting its turn",
    ("asyncio/base_events.py", "_run_once"): "case: event loop",
    ("engine/result_builder.py", "build_run_result"): "end: results put together",
    ("gate/verdict_decision.py", "decide_verdict"): "end: verdict",
    ("gate/reruns.py", "find_rerun_candidates"): "end: verdict",
    ("session/history_update.py", "build_next_history"): "end: ledger",
    ("results/run_writer.py", "write_result"): "end: results written",
    ("results/run_writer.py", "write_initial_result"): "end: results written",
    ("cli/runs/single_run.py", "show_run"): "end: summary",
}
"""By the end of the file's path and the function."""
BY_CODE: dict[object, str | None] = {}


def part_of(frame: FrameType | None) -> str:
    """Return the part of the innermost frame that belongs to a part of the program.

    Return `OTHER` if no frame does.
    """
    while frame is not None:
        code = frame.f_code
        if code not in BY_CODE:
            BY_CODE[code] = _part(code.co_filename.replace(os.sep, "/"), code.co_name)
        if (found := BY_CODE[code]) is not None:
            return found
        frame = frame.f_back
    return OTHER


def _part(file: str, function: str) -> str | None:
    if file.startswith("<frozen importlib"):
        return LOADING
    if "/aiohttp/" in file:
        return None if function == "<module>" else ASKING
    return next((part for (end, name), part in PARTS.items() if name == function and file.endswith(end)), None)


def child(note: str) -> None:
    """Run the program in this process, and leave the samples in the file `note`."""
    seen: Counter[str] = Counter()

    def look(_number: int, frame: FrameType | None) -> None:
        seen[part_of(frame)] += 1

    signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, EVERY_S, EVERY_S)
    from eval_gate.cli.main import main as program

    try:
        program()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        Path(note).write_text(json.dumps(seen))


def rows(cases: int, latency_ms: float, at_once: int) -> list[list[str]]:
    """Part, seconds, milliseconds a case, share."""
    from measure import measure
    from run import agent
    from suites import write_suite

    with agent(latency_ms) as url, tempfile.TemporaryDirectory() as name:
        file, note = Path(name, f"{cases}.golden.json"), Path(name, "note.json")
        write_suite(file, cases)
        options = ["--agent-endpoint", url, "--concurrency", str(at_once), "--output-dir", str(Path(name, "out"))]
        for _ in range(2):  # the first compiles what is not compiled yet
            cost = measure([sys.executable, __file__, "--child", str(note), "run", str(file), *options])
        seen: dict[str, int] = json.loads(note.read_text())
    whole, order = sum(seen.values()), [LOADING, *dict.fromkeys(PARTS.values()), OTHER]
    found = []
    for part in sorted(seen, key=order.index):
        seconds = cost.processor_s * seen[part] / whole
        found.append([part, f"{seconds:.2f}", f"{seconds / cases * 1000:.3f}", f"{seen[part] / whole:.0%}"])
    return [*found, ["all", f"{cost.processor_s:.2f}", f"{cost.processor_s / cases * 1000:.3f}", "100%"]]


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["--child"]:
        note, sys.argv = sys.argv[2], ["eval-gate", *sys.argv[3:]]
        child(note)
    from tabulate import tabulate

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--latency-ms", type=float, default=0)
    parser.add_argument("--at-once", type=int, default=50)
    asked = parser.parse_args()
    headers = ["part", "processor, s", "ms a case", "share"]
    print(tabulate(rows(asked.cases, asked.latency_ms, asked.at_once), headers=headers, disable_numparse=True))


if __name__ == "__main__":
    main()
