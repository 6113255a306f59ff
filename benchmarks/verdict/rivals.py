"""Other gates on the same three worlds, as they come from PyPI, each by its own command and with its own defaults.

    python -m venv /tmp/rivals && /tmp/rivals/bin/pip install signaltest agent-regress-cli holdline evalgate-ci
    python benchmarks/verdict/rivals.py --venv /tmp/rivals --worlds 40   # the table of figures.md

The same seed draws the same pull requests. Eval Gate's own line is the shipped decisions, with ten runs of history.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import NamedTuple

from rules import ours
from worlds import Group, World, draw, same

OWN = "Eval Gate"
CASES, FLAKE, TIMES = 100, 0.02, 10
HISTORY, CONFIRM = 10, 6
WORLDS = (
    World("nothing changed", (same(CASES, FLAKE),)),
    World("one case died", (Group(1, FLAKE, 1.0), same(CASES - 1, FLAKE))),
    World("every case lost 10 points", (Group(CASES, FLAKE, FLAKE + 0.1),)),
)
SIGNALTEST = """
import json, sys
from pathlib import Path
from signaltest import Case, ExactMatch, exit_code, run_suite
folder = Path(sys.argv[1])
then, now = json.loads((folder / "pull.json").read_text())
for runs in (then, now):
    def case(number):
        answers = iter(["yes" if run[number] else "no" for run in runs])
        return Case(f"c{number}", run=lambda: next(answers), expected="yes", metric=ExactMatch())
    code = exit_code(run_suite([case(n) for n in range(len(runs[0]))], str(folder / "baseline.json"), n=len(runs)))
sys.exit(code)
"""


class Pull(NamedTuple):
    """A pull request: runs of the base branch and of the change, each with a yes or no for every case."""

    then: list[list[bool]]
    now: list[list[bool]]


class Rival(NamedTuple):
    """One other gate. `red` says whether it fails the pull request; it takes so many runs of the change."""

    name: str
    package: str
    runs: int
    red: Callable[[Path, Pull, Path], bool]


def pull_of(world: World, number: int, seed: int) -> Pull:
    """Draw the pull request with this number."""
    random = Random(f"{seed}/{world.name}/{number}/rivals")
    before = [group.branch for group in world.groups for _ in range(group.cases)]
    after = [group.here for group in world.groups for _ in range(group.cases)]
    return Pull(*([[random.random() >= rate for rate in rates] for _ in range(TIMES)] for rates in (before, after)))


def _fails(*command: str | Path) -> bool:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=120)
    if done.returncode not in {0, 1}:
        raise RuntimeError(done.stderr[-2000:])
    return done.returncode == 1


def holdline(venv: Path, pull: Pull, folder: Path) -> bool:
    """One run against one run."""
    for name, run in (("then.csv", pull.then[0]), ("now.csv", pull.now[0])):
        with (folder / name).open("w", newline="") as stream:
            csv.writer(stream).writerows([("case_id", "passed"), *((f"c{at}", int(ok)) for at, ok in enumerate(run))])
    return _fails(venv / "bin" / "holdline", "compare", folder / "then.csv", folder / "now.csv")


def agent_regress(venv: Path, pull: Pull, folder: Path) -> bool:
    """One score a run, of ten runs each."""
    for name, runs in (("then.json", pull.then), ("now.json", pull.now)):
        (folder / name).write_text(json.dumps([sum(run) / len(run) for run in runs]))
    files = ("--version-a-results", folder / "then.json", "--version-b-results", folder / "now.json")
    return _fails(venv / "bin" / "agent-regress", "compare", *files, "--fail-on-regression")


def evalgate(venv: Path, pull: Pull, folder: Path) -> bool:
    """Traces of one run against those of one run."""
    for name, run in (("then.jsonl", pull.then[0]), ("now.jsonl", pull.now[0])):
        rows = ({"trace_id": f"c{at}", "id": f"c{at}", "status": "ok" if ok else "error"} for at, ok in enumerate(run))
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    files = ("--traces", folder / "now.jsonl", "--baseline", folder / "then.jsonl")
    return _fails(venv / "bin" / "evalgate", "gate", *files, "--eval", "status")


def signaltest(venv: Path, pull: Pull, folder: Path) -> bool:
    """Every case ten times, against ten times of the base branch."""
    (folder / "pull.json").write_text(json.dumps(pull))
    return _fails(venv / "bin" / "python", "-c", SIGNALTEST, folder)


RIVALS = (
    Rival("holdline compare", "holdline", 1, holdline),
    Rival("evalgate gate", "evalgate-ci", 1, evalgate),
    Rival("agent-regress compare", "agent-regress-cli", TIMES, agent_regress),
    Rival("signaltest run_suite", "signaltest", TIMES, signaltest),
)


def versions(venv: Path) -> dict[str, str]:
    """Return the versions of the packages in a virtual environment, by package name."""
    done = subprocess.run([venv / "bin" / "pip", "list", "--format", "json"], capture_output=True, check=True)
    return {row["name"]: row["version"] for row in json.loads(done.stdout)}


def red_of(rival: Rival, venv: Path, world: World, number: int, seed: int) -> bool:
    """Whether it fails this pull request."""
    with tempfile.TemporaryDirectory() as folder:
        return rival.red(venv, pull_of(world, number, seed), Path(folder))


def table(venv: Path, worlds: int, seed: int, only: str) -> Iterator[str]:
    """Yield the table as Markdown, with a line for each gate whose name contains `only`."""
    yield f"| gate | runs a case | {' | '.join(world.name for world in WORLDS)} |"
    yield f"|:--|--:|{'--:|' * len(WORLDS)}"
    known, rule = versions(venv), ours(CONFIRM, whole=True)
    with ThreadPoolExecutor(2) as pool:
        for rival in (one for one in RIVALS if only in one.name):
            if rival.package not in known:
                yield f"| {rival.name} | is not installed |{' |' * len(WORLDS)}"
                continue
            cells = []
            for world in WORLDS:
                red = sum(pool.map(lambda at, one=rival, of=world: red_of(one, venv, of, at, seed), range(worlds)))
                cells.append(f"{red} of {worlds}")
            yield f"| `{rival.name}` {known[rival.package]} | {rival.runs} | {' | '.join(cells)} |"
    if only not in OWN:
        return
    cells, executions = [], []
    for world in WORLDS:
        called = [
            rule(draw(world, HISTORY, f"{seed}/{world.name}/{at}", at), Random(f"{seed}/{at}/again"))
            for at in range(worlds)
        ]
        cells.append(f"{sum(one.red for one in called)} of {worlds}")
        executions.append(sum(one.executions for one in called) / worlds / CASES)
    yield f"| **{OWN}** | {min(executions):.2f} to {max(executions):.2f} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", type=Path, required=True, help="where the other gates are installed")
    parser.add_argument("--worlds", type=int, default=40, help="pull requests for each cell")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gate", default="", help="only the lines whose name has this in it")
    given = parser.parse_args()
    for line in table(given.venv, given.worlds, given.seed, given.gate):
        print(line, flush=True)


if __name__ == "__main__":
    main()
