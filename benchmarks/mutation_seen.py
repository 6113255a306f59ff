"""Runs tests and writes down which of them execute which line of `runner/eval_gate/`, and how long each takes.

Usage: mutation_seen.py FILE [pytest arguments]. Part of `mutation.py`. Tests that are red here are named and left out:
to be watched makes a program slow, and some tests hold how long something takes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest


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
        try:
            return (yield)
        finally:
            self.measuring.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """What it took, and whether it is of use."""
        self.took[report.nodeid] = self.took.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.red.add(report.nodeid)


def main() -> int:
    """Run, and write."""
    target, *arguments = sys.argv[1:]
    measuring = coverage.Coverage(data_file=None, source=["eval_gate"], config_file=False)
    watch = Watch(measuring)
    measuring.start()
    code = int(pytest.main(arguments, plugins=[watch]))
    measuring.stop()
    if code not in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}:
        return code
    for name in sorted(watch.red):
        print(f"left out, because it is red while it is watched: {name}")
    data = measuring.get_data()
    lines = {
        str(Path(file).relative_to(Path.cwd())): {
            line: sorted(set(names) - watch.red) for line, names in data.contexts_by_lineno(file).items()
        }
        for file in data.measured_files()
    }
    Path(target).write_text(json.dumps({"lines": lines, "took": watch.took}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
