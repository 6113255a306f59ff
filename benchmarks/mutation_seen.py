"""Runs tests and writes down which of them execute which line of `runner/eval_gate/`, and how long each takes.

Usage: mutation_seen.py FILE [pytest arguments]. Part of `mutation.py`. Of processes that tests start,
`mutation_process.py` says it. Tests that are red here are named and left out: to be watched makes a program slow, and
some tests hold how long something takes.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

try:
    from mutation_process import DATA, NOW  # the copy's own, beside its packages
except ModuleNotFoundError as error:
    raise SystemExit("start benchmarks/mutation.py: this is a part of it") from error


class Watch:
    """Tells coverage which test it is that runs now."""

    def __init__(self, measuring: coverage.Coverage) -> None:
        self.measuring = measuring
        self.took: dict[str, float] = {}
        self.red: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Around each test, its fixtures included."""
        self.measuring.switch_context(item.nodeid)
        NOW.write_text(item.nodeid)
        try:
            return (yield)
        finally:
            NOW.unlink()
            self.measuring.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up the seconds that a test takes, and note the test if it failed.

        A failed test is of no use, and is later left out of the lines.
        """
        self.took[report.nodeid] = self.took.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.red.add(report.nodeid)


def main() -> int:
    """Run, and write."""
    target, *arguments = sys.argv[1:]
    os.environ["EVAL_GATE_TEST_COLD"] = "1"  # a process that was forked from one that waits is nobody's for coverage
    measuring = coverage.Coverage(data_file=None, source=["eval_gate"], config_file=False)
    watch = Watch(measuring)
    measuring.start()
    code = int(pytest.main(arguments, plugins=[watch]))
    measuring.stop()
    if code not in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}:
        return code
    for name in sorted(watch.red):
        print(f"left out, because it is red while it is watched: {name}")
    lines = lines_of(measuring.get_data())
    add_processes(lines)
    found = {
        file: {line: sorted(names - watch.red) for line, names in of_file.items()} for file, of_file in lines.items()
    }
    Path(target).write_text(json.dumps({"lines": found, "took": watch.took}))
    return 0


def lines_of(data: coverage.CoverageData) -> dict[str, dict[int, set[str]]]:
    """Return the tests that execute each line of each file.

    `""` among the tests stands for the import alone.
    """
    return {
        str(Path(file).relative_to(Path.cwd())): {
            line: set(names) for line, names in data.contexts_by_lineno(file).items()
        }
        for file in data.measured_files()
    }


def add_processes(lines: dict[str, dict[int, set[str]]]) -> None:
    """Add the lines that were executed by processes that tests started.

    Lines that every import executes are left out.
    """
    for kept in sorted(DATA.iterdir()) if DATA.is_dir() else ():
        data = coverage.CoverageData(str(kept))
        data.read()
        for file, of_file in lines_of(data).items():
            known = lines.setdefault(file, {})
            for line, names in of_file.items():
                if "" not in known.setdefault(line, set()):
                    known[line] |= names


if __name__ == "__main__":
    raise SystemExit(main())
