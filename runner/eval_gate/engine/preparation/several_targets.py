"""Several targets that eval files ask for: a run has one, so that the command line runs the evals against each."""

from __future__ import annotations

from collections.abc import Sequence

from eval_gate.errors import GateError, Problem
from eval_gate.model.case import EvalSuite


class SeveralTargetsError(GateError):
    """The eval files ask for several targets, the same in all files."""

    def __init__(self, names: Sequence[str], problems: Sequence[Problem]) -> None:
        super().__init__(
            "several-targets",
            f"the eval files ask for {len(names)} targets, and a run has one",
            "choose one with `target` (--target), or use `eval-gate run`, which makes a table of them",
            problems=problems,
        )
        self.names = tuple(names)


def check_target_count(suites: Sequence[EvalSuite]) -> None:
    """Raise SeveralTargetsError if the eval files ask for several targets.

    Raises GateError `several-targets` if they do not all ask for the same ones: a table has every case in each column.
    """
    several = [suite for suite in suites if suite.targets]
    if not several:
        return
    names = several[0].targets
    problems = [
        Problem(f"asks for {', '.join(suite.targets)[:200] or 'no several targets'}", file=suite.file)
        for suite in suites
        if suite.cases
    ]
    if any(suite.targets != names for suite in suites if suite.cases):
        raise GateError(
            "several-targets",
            "the eval files do not all ask for the same targets",
            "choose targets for all of them with --target, or run the files one by one",
            problems=problems,
        )
    raise SeveralTargetsError(names, problems)
