"""Processor seconds of a test run by package of tests: of this process, its workers, and processes that tests start.

Seconds of the processor, because those of a clock measure what else the machine does. Where
EVAL_GATE_TEST_PROCESSOR_SECONDS is set, as in `.ci/run`, a run that used more fails.
"""

from __future__ import annotations

import os
import resource
import time
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.support import program

BUDGET = "EVAL_GATE_TEST_PROCESSOR_SECONDS"
TESTS = Path(__file__).resolve().parents[1]
START = "start, collection"
"""What a process uses before its first test."""


def get_package(path: Path) -> str:
    """Return the package that a file of tests belongs to, such as `unit/gate` or `acceptance`."""
    if not path.is_relative_to(TESTS):
        return "elsewhere"
    folders = path.relative_to(TESTS).parts[:-1]
    return "/".join(folders[: 2 if folders[:1] == ("unit",) else 1])


def read_processor_time() -> float:
    """Return the processor seconds of this process and of the processes it started, as far as they have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime + program.seconds_of_runs()


class ProcessorTime:
    """A pytest plugin that gathers processor seconds from all workers, prints them and holds the budget."""

    def __init__(self, config: pytest.Config) -> None:
        self.seconds: Counter[str] = Counter()
        self.tests: Counter[str] = Counter()
        self._output: dict[str, Any] | None = getattr(config, "workeroutput", None)
        self._has_workers = bool(config.getoption("numprocesses", None))
        self._read = 0.0

    def pytest_collection_finish(self) -> None:
        """Count what start and collection used."""
        self._add(START)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Count what a test and its fixtures used."""
        done = yield
        self.tests[get_package(item.path)] += 1
        self._add(get_package(item.path))
        return done

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add what a worker used."""
        seconds, tests = getattr(node, "workeroutput", {}).get(BUDGET, ({}, {}))
        self.seconds.update(seconds)
        self.tests.update(tests)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand the seconds of a worker on; fail the whole run where it used more than its budget."""
        if self._has_workers:
            # the workers are children too, and have reported by now
            self.seconds[START] += time.process_time()
        else:
            program.end_loaded_processes()
            self._add("programs loaded, end")
        if self._output is not None:
            self._output[BUDGET] = dict(self.seconds), dict(self.tests)
        elif self.is_over_budget() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a row for each package of tests."""
        terminalreporter.section("processor seconds, with those of the processes that tests started")
        for package, seconds in self.seconds.most_common():
            terminalreporter.write_line(f"{seconds:8.1f}  {package} ({self.tests[package]} tests)")
        terminalreporter.write_line(f"{self.seconds.total():8.1f}  in all")
        if self.is_over_budget():
            terminalreporter.write_line(f"more than the budget of {os.environ[BUDGET]} ({BUDGET})", red=True)

    def is_over_budget(self) -> bool:
        """Return whether the run used more than the variable allows."""
        return BUDGET in os.environ and self.seconds.total() > float(os.environ[BUDGET])

    def _add(self, package: str) -> None:
        now = read_processor_time()
        self.seconds[package] += now - self._read
        self._read = now
