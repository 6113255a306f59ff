"""Commands as targets: 500 cases, 10 at once, beside a bare shell loop over the same command.

Usage: cli.py CALLS CONCURRENCY. Runs the target alone and prints wall and processor seconds of the calls.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from measure import Cost, measure

TEMPLATE = "read -r word < {PROMPT_FILE}; echo $word > {OUTPUT_FILE}"
LOOP = "seq {calls} | xargs -P {workers} -I % sh -c 'echo question % > in.%; read -r word < in.%; echo $word > out.%'"
AT_ONCE = 10


def rows(quick: bool) -> Iterator[tuple[str, str, str, str]]:
    """Measure commands as targets and yield a row for each figure.

    The figures are the time of a case through the target alone, the wall time of the whole program, and its peak
    memory.
    """
    calls, times = (100, 1) if quick else (500, 3)
    what = f"{calls:,} commands, {AT_ONCE} at once"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        floor = _best(["/bin/sh", "-c", f"cd {shlex.quote(name)}; {LOOP.format(calls=calls, workers=AT_ONCE)}"], times)
        alone = [json.loads(measure([sys.executable, __file__, str(calls), str(AT_ONCE)]).output) for _ in range(times)]
        whole = _best(_run(folder, calls), times)
    wall = min(found["wall"] for found in alone)
    each = floor.wall_s / calls * 1000
    yield f"{what}: time a case, target alone", f"{wall / calls * 1000:.2f} ms", f"{each:.2f} ms (xargs)", ""
    yield f"{what}: whole process", f"{whole.wall_s:.2f} s", f"{floor.wall_s:.2f} s (xargs)", ""
    yield f"{what}: peak memory", f"{whole.peak_mb:.0f} MB", "", "< 80 MB"


def _best(command: list[str], times: int) -> Cost:
    return min((measure(command) for _ in range(times)), key=lambda cost: cost.wall_s)


def _run(folder: Path, cases: int) -> list[str]:
    """Write a suite of `cases` cases with its target, and return the command that runs it."""
    described = [{"id": str(number), "input": {"message": f"question {number}"}} for number in range(cases)]
    suite = [one | {"expect": {"responseContains": ["question"]}} for one in described]
    (folder / "some.golden.json").write_text(json.dumps({"cases": suite}))
    target = {"name": "desk", "provider": "cli", "commandTemplate": TEMPLATE.replace("echo $word", "echo question")}
    (folder / "targets.yaml").write_text(json.dumps({"targets": [target | {"workers": AT_ONCE}]}))
    places = ["--targets", str(folder / "targets.yaml"), "--output-dir", str(folder / "out")]
    return [sys.executable, "-m", "eval_gate", "run", str(folder / "some.golden.json"), "-q", *places]


async def alone(calls: int, concurrency: int) -> None:
    """So many calls of the target, so many at once, without an engine around it."""
    from eval_gate.model.conversation import Message
    from eval_gate.targets.base import Request
    from eval_gate.targets.command.settings import CliSettings
    from eval_gate.targets.command.target import CliTarget
    from eval_gate.text.redaction import Redactor

    settings = CliSettings.model_validate({"name": "desk", "commandTemplate": TEMPLATE})
    target = CliTarget(settings, root=Path.cwd(), environment={"PATH": "/usr/bin:/bin"}, redact=Redactor())
    numbers: Iterator[int] = iter(range(calls))

    async def worker() -> None:
        for number in numbers:
            request = Request(str(number), (Message(role="user", content=f"question {number}\n"),))
            assert (await target.respond(request)).text == f"question {number}"

    wall, processor = time.perf_counter(), time.process_time()
    await asyncio.gather(*(worker() for _ in range(concurrency)))
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    print(json.dumps({"wall": wall, "processor": processor}))


if __name__ == "__main__":
    asyncio.run(alone(int(sys.argv[1]), int(sys.argv[2])))
