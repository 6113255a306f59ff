"""Mutation testing: makes small mistakes in the code, one at a time, and says which of them no test notices.

    python benchmarks/mutation.py runner/eval_gate/gate runner/eval_gate/evaluators --sample 400 --seed 1

Works in a copy of the tree with an environment of its own, so that processes that tests start are mutants as well. It
first runs the tests of the rooms once, to see which test executes which line, in its own process or in one that it
starts. A mutant then meets the tests that execute its line, those of its own module first, until one goes red: at first
as many as take some seconds, and if none of these notices, the others. Of a mutant that no test's line belongs to (a
constant) the tests of its file are taken. A mutant that never ends counts as noticed. Survivors are printed one a line,
and a table at the end.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent))

from mutants import Mutant, mutants_of

HERE: Final = Path(__file__).resolve().parent.parent
ROOMS: Final = {
    "gate": ("unit/gate", "unit/reports", "unit/engine", "unit/results", "unit/action", "unit/github/waivers"),
    "results": ("unit/results", "unit/gate", "unit/reports", "unit/engine", "unit/action", "unit/github/artifacts"),
    "evaluators": ("unit/evaluators", "unit/engine", "unit/formats"),
    "action": ("unit/action", "unit/github", "integration/action"),
    "text": (
        "unit/text",
        "unit/formats",
        "unit/evaluators",
        "unit/targets",
        "unit/staleness",
        "unit/github",
        "hostile",
    ),
}
"""Where the tests of a room are; of others those of the same name in `unit/`."""
FIRST_S: Final = 6.0
"""So much of the tests' time is spent on a mutant at first."""
REST_S: Final = 240.0
"""And so much afterwards, on one test of each file in turn: tests of one file often notice the same."""
LIBRARIES: Final = ("hypothesis", "hypothesis.strategies", "httpx", "pydantic", "pytest", "yaml")
QUIET: Final = ("-q", "--no-header", "--tb=no", "-p", "no:randomly", "-p", "no:cacheprovider", "--assert=plain")


def main() -> None:
    """Parse arguments, move into a copy of the tree, and work there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path, help="files or folders of runner/eval_gate")
    parser.add_argument("--sample", type=int, help="so many mutants, drawn evenly over all of them")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument(
        "--only", action="append", help="only mutants whose line of text holds this: FILE:LINE, or a part of the change"
    )
    parser.add_argument("--tests", nargs="+", help="in place of the rooms' own, such as tests/unit/gate")
    parser.add_argument("--seen", type=Path, help="keep here which test executes which line, and take it from there")
    parser.add_argument("--copy", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.copy is None:
        with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
            python = copied(Path(folder))
            command = [python, f"{folder}/benchmarks/mutation.py", *sys.argv[1:], "--copy", folder]
            environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
            raise SystemExit(subprocess.run(command, env=environment, check=False).returncode)
    seen = given.seen.resolve() if given.seen else Path("seen.json").resolve()
    os.chdir(given.copy)
    raise SystemExit(work(given, seen))


def copied(folder: Path) -> str:
    """Copy the tree to `folder`, and return the path of a Python interpreter for the copy.

    The interpreter imports `eval_gate` from the copy, and everything else from the environment of this interpreter.
    """
    ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "node_modules")
    shutil.copytree(HERE, folder, ignore=ignored, dirs_exist_ok=True, symlinks=True)
    folder.chmod(0o700)  # the tree's own mode came along, and with it everybody could look in
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", ".venv"], cwd=folder, check=True)
    python = str(folder / ".venv/bin/python")
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    theirs, ours = (
        subprocess.run([one, "-c", asked], capture_output=True, text=True, check=True).stdout.strip()
        for one in (sys.executable, python)
    )
    Path(ours, "copy.pth").write_text(f"{folder}\n{folder}/runner\n{theirs}\nimport mutation_process\n")
    shutil.copy(folder / "benchmarks/mutation_process.py", ours)
    # compiled files that are told from stale ones by what is in the source, not by its time
    compiled = ["-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "runner", "tests"]
    subprocess.run([python, *compiled], cwd=folder, check=True)
    return python


def work(given: argparse.Namespace, seen: Path) -> int:
    """Try the mutants; 0, or 1 where the tests are not green to begin with."""
    sample, seed, only = given.sample, given.seed, given.only
    files = sorted(file for path in given.paths for file in (path.rglob("*.py") if path.is_dir() else [path]))
    every = [mutant for file in files for mutant in mutants_of(file, file.read_bytes())]
    chosen = [mutant for mutant in every if only is None or any(one in str(mutant) for one in only)]
    if sample is not None and sample < len(chosen):
        drawn = set(random.Random(seed).sample(range(len(chosen)), sample))
        chosen = [mutant for at, mutant in enumerate(chosen) if at in drawn]
    folders = given.tests or sorted({one for file in files for one in folders_of(file)})
    tests = Tests.seen(folders, seen)
    if tests is None:
        return 1
    tests.preload()
    if red := [file for file in {one.file: one for one in chosen}.values() if not green(file, tests)]:
        print(f"without any change the tests are red here: {', '.join(str(one.file) for one in red)}", file=sys.stderr)
        return 1
    survived: list[Mutant] = []
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    begun = time.monotonic()
    for number, mutant in enumerate(chosen, 1):
        end = tried(mutant, tests)
        counts[room_of(mutant.file)][end] += 1
        if end == "survived":
            survived.append(mutant)
            print(mutant, flush=True)
        if number % 25 == 0:
            print(f"  … {number} of {len(chosen)}, {(time.monotonic() - begun) / number:.1f} s each", flush=True)
    show(counts, len(every), len(chosen), seed, time.monotonic() - begun)
    return 0


def show(counts: dict[str, Counter[str]], every: int, tried_: int, seed: int, seconds: float) -> None:
    """Print a table with the numbers of noticed and surviving mutants of each room.

    `seconds` is the duration of the whole test.
    """
    print(f"\n{datetime.now(UTC):%Y-%m-%d}, seed {seed}: {tried_} of {every} mutants, {seconds / 60:.0f} minutes\n")
    print("| room | mutants | noticed | of these by a time limit | survived |\n|:--|--:|--:|--:|--:|")
    for room, ends in sorted(counts.items()):
        noticed = ends["noticed"] + ends["time"]
        share = f"{noticed / ends.total():.1%}"
        print(f"| `{room}/` | {ends.total()} | {noticed} ({share}) | {ends['time']} | {ends['survived']} |")


def room_of(file: Path) -> str:
    """Return the room of a file: its package directly below `eval_gate`, or `.` at the top."""
    return file.parts[2] if len(file.parts) > 3 else "."


def folders_of(file: Path) -> tuple[str, ...]:
    """Return the folders that hold the tests of a file."""
    room = room_of(file)
    return tuple(f"tests/{one}" for one in ROOMS.get(room, (f"unit/{room}",)))


class Tests:
    """Which test executes which line, and how long each takes."""

    def __init__(self, lines: dict[str, dict[int, list[str]]], took: dict[str, float]) -> None:
        self._lines, self._took = lines, took

    @classmethod
    def seen(cls, folders: list[str], kept: Path) -> Tests | None:
        """Run all of them once, unless that was kept."""
        if not kept.is_file():
            print(f"-- which test executes which line: {' '.join(folders)}", flush=True)
            script = str(Path(__file__).with_name("mutation_seen.py"))
            if subprocess.run([sys.executable, script, str(kept), *folders, *QUIET], check=False).returncode:
                print("the tests could not be run", file=sys.stderr)
                return None
        found = json.loads(kept.read_text())
        lines = {
            file: {int(line): names for line, names in of_file.items()} for file, of_file in found["lines"].items()
        }
        return cls(lines, found["took"])

    def of(self, mutant: Mutant) -> list[str]:
        """Return the tests that execute a mutant, first those of its own module, the quickest first.

        If no test executes its lines, return those that execute any line of the file, or else the tests of its package.
        """
        of_file = self._lines.get(str(mutant.file), {})
        found = {name for line in range(mutant.line, mutant.last_line + 1) for name in of_file.get(line, ())} - {""}
        if not found:
            found = {name for names in of_file.values() for name in names} - {""}
        if not found:  # what only runs in a process of its own: the tests of its room
            room = "/".join(("tests/unit", *mutant.file.parts[2:-1], ""))
            found = {name for name in self._took if name.startswith(room)}
        return sorted(found, key=lambda name: (not _own(mutant.file, name), self._took.get(name, 0.0), name))

    def first(self, names: Iterable[str], seconds: float) -> list[str]:
        """Return the first tests of `names` that together take about `seconds`, but at least one."""
        chosen, left = [], seconds
        for name in names:
            left -= self._took.get(name, 0.0) + 0.005
            if left < 0 and chosen:
                break
            chosen.append(name)
        return chosen

    def preload(self) -> None:
        """Import slow libraries once, so that the process of every mutant inherits them."""
        for name in LIBRARIES:
            importlib.import_module(name)


def _own(file: Path, test: str) -> bool:
    return "test_" + "_".join((*file.parts[2:-1], file.stem.lstrip("_"))) in test.partition("::")[0]


def in_turn(names: Iterable[str]) -> list[str]:
    """Order tests by file in turn: the first test of every file, then the second, and so on."""
    seen: Counter[str] = Counter()
    places = []
    for name in names:
        file = name.partition("::")[0]
        places.append((seen[file], name))
        seen[file] += 1
    return [name for _, name in sorted(places, key=lambda one: one[0])]


def green(mutant: Mutant, tests: Tests) -> bool:
    """Whether the tests of a mutant are green without it: else it would be noticed whatever it is."""
    return ran(tests.first(tests.of(mutant), FIRST_S), 300) == "survived"


def tried(mutant: Mutant, tests: Tests) -> str:
    """Test a mutant, and return what became of it: `noticed`, `time` or `survived`.

    `time` means that the tests exceeded their time limit. The file is restored at the end.
    """
    names = tests.of(mutant)
    source = mutant.file.read_bytes()
    try:
        mutant.file.write_bytes(mutant.of(source))
        first = tests.first(names, FIRST_S)
        rest = tests.first(in_turn([name for name in names if name not in set(first)]), REST_S)
        for chosen, seconds in ((first, FIRST_S), (rest, REST_S)):
            end = ran(chosen, 30 + 4 * seconds)
            if end != "survived":
                return end
        return "survived"
    finally:
        mutant.file.write_bytes(source)


def ran(names: list[str], seconds: float) -> str:
    """How the tests end, in a process of their own that is ended after so long."""
    if not names:
        return "survived"
    child = os.fork()
    if child == 0:
        os.setsid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        import pytest

        code = 3
        try:
            code = int(pytest.main(["-x", *QUIET, *names]))
        finally:
            os._exit(code)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # what tests have left behind
            return "survived" if status == 0 else "noticed"
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "time"


if __name__ == "__main__":
    main()
