"""Cases that work in one folder, one after the other: what comes before each, and which of them are finished.

The cases of an Agent Evals suite whose agent changes files share a folder for each trial (agent-evals behaviour 3.2).
So what a case finds is part of what it is measured with, and a trial of a suite is finished as a whole or not at all.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from eval_gate.engine.journal import TrialKey
from eval_gate.model.base import JsonValue
from eval_gate.model.case import CaseKey, EvalCase, EvalSuite
from eval_gate.text.digest import digest

_NOTHING: Final = digest([])


def cases_before(suite: EvalSuite) -> Mapping[CaseKey, str]:
    """What every case of a suite that brings its agent runs after: the first 16 hex digits of a SHA-256.

    That is how often and what the agent was asked before, and how long it had for it. What these cases expected, and
    what they are called, leaves nothing in a folder.
    """
    found, before = {}, _NOTHING
    for case in suite.cases:
        if case.agent is not None and case.skip_reason is None:
            found[case.key] = before
            before = digest([before, *_set_up(case)])
    return found


def _set_up(case: EvalCase) -> list[JsonValue]:
    return [[[message.role, message.content] for message in case.messages], case.timeout_ms]


class SharedFolders:
    """Names the folder of every execution of a run, so that a later process knows which were made in the same one."""

    def __init__(self, suites: tuple[EvalSuite, ...]) -> None:
        """`suites` hold the cases of the run and no others."""
        self._process = uuid.uuid4().hex[:8]
        self._cases = {suite.file: mine for suite in suites if (mine := _dependent(suite))}
        self._order = {
            suite.file: digest([[case.fingerprint, *_set_up(case)] for case in self._cases[suite.file]])
            for suite in suites
            if suite.file in self._cases
        }

    def name(self, case: EvalCase) -> str | None:
        """The folder in which this process has this case run; None for a case that needs no other one."""
        return f"{self._process} {self._order[case.suite]}" if case.dependent else None

    def broken_off(self, trials: int, named: Callable[[TrialKey], str | None]) -> Iterator[TrialKey]:
        """Every execution that has to be made anew, because its suite was not finished in one folder and this order.

        `named` says in which folder one was made; None where it is not finished.
        """
        for file, cases in self._cases.items():
            for trial in range(trials):
                keys = [(case.key, trial) for case in cases]
                folders = {named(key) for key in keys}
                if len(folders) > 1 or not all(one and one.endswith(self._order[file]) for one in folders):
                    yield from keys


def _dependent(suite: EvalSuite) -> list[EvalCase]:
    return [case for case in suite.cases if case.dependent and case.skip_reason is None]
