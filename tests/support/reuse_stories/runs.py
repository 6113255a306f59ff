"""Runs of the random histories: what each really executed, what it stored, and how the program decides about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from eval_gate.model.result import RunResult
from eval_gate.model.reuse import EvaluatedState, MeasuredSuite, ReuseOff, StatePart
from eval_gate.results.history import EMPTY_HISTORY, History
from eval_gate.text.digest import compute_digest
from tests.support.reuse_stories.repository import (
    DOCUMENTS,
    WORKFLOW,
    Machine,
    Measured,
    Tree,
    describe_setup,
    measure,
    patterns_of,
)

FIRST_DAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
GATE = "evals"
"""Key of the gate whose runs these are."""
MAX_COMPARED = 299
"""Files of a comparison on GitHub that is certainly whole."""


@dataclass(eq=False)
class Pull:
    """A pull request."""

    number: int
    base: str
    """Commit of main that its branch has."""
    head: str
    fork: bool = False
    branch: str = "topic"
    open: bool = True
    opened: datetime = FIRST_DAY
    moves: tuple[datetime, ...] = ()
    """Force pushes."""


@dataclass(frozen=True)
class Truth:
    """What one suite really was when it was executed."""

    measured: Measured | None
    setup: Mapping[str, object]
    at: datetime
    forged: bool = False


@dataclass(eq=False)
class Run:
    """One workflow run, finished, and the result that it stored."""

    number: int
    event: str
    sha: str
    """Head commit of the branch or the pull request."""
    tree: Tree
    """What was checked out: of a pull request its test merge."""
    machine: Machine
    at: datetime
    result: RunResult
    truths: dict[str, Truth]
    """Of each suite that it executed."""
    history: History = EMPTY_HISTORY
    pull: Pull | None = None
    attempt: int = 1
    conclusion: str = "success"
    gate: str = GATE
    workflow: str = WORKFLOW
    expired: bool = False
    flaw: str = ""
    """Why nothing of it may be reused, whatever it says; empty if something may."""


@dataclass(frozen=True)
class FoundRun:
    """An earlier run that may be one of the pull request's own, with GitHub's comparison of both heads."""

    run: Run
    merge_base: str
    """Newest commit that both heads have."""
    ahead_by: int
    """Commits of this head that the earlier one has not."""
    files: tuple[tuple[str, str | None], ...]
    """Paths that differ with their earlier names, at most 300."""


@dataclass(frozen=True)
class Request:
    """A job that is about to run: what it evaluates and whose it is."""

    event: str
    sha: str
    tree: Tree
    machine: Machine
    world: frozenset[str]
    """Cases that something outside of the repository breaks now, such as a model."""
    at: datetime
    pull: Pull | None = None
    attempt: int = 1
    selected: bool = False
    """Whether a person selected cases."""
    number: int = 0

    @property
    def off(self) -> ReuseOff | None:
        """Why nothing may be reused, by the plan."""
        reasons = {
            ReuseOff.TURNED_OFF: self.tree.config.get("reuse") is False,
            ReuseOff.RERUN_ATTEMPT: self.attempt > 1,
            ReuseOff.OTHER_EVENT: self.event in {"workflow_dispatch", "schedule"},
            ReuseOff.SELECTED_CASES: self.selected,
        }
        return next((one for one, holds in reasons.items() if holds), None)

    @property
    def is_run_of_branch(self) -> bool:
        return self.pull is None and not self.selected


def is_own(found: FoundRun, request: Request) -> bool:
    """Whether an earlier run is one of the pull request's own that may be reused, by the plan."""
    run, pull = found.run, request.pull
    if pull is None or pull.fork or run.pull is not pull or run.number == request.number:
        return False
    facts = (run.event, run.conclusion, run.workflow, run.gate, run.expired)
    if facts != ("pull_request", "success", WORKFLOW, GATE, False):
        return False
    if found.merge_base != run.sha or len(found.files) > MAX_COMPARED:
        return False
    suites = [measure(request.tree, request.machine, suite) for suite in request.tree.suites]
    measured = {path for one in suites for path, _ in one or ()}
    names = {name for pair in found.files for name in pair if name is not None}
    return all(name.endswith(DOCUMENTS) for name in names) and not names & measured


def model_state(tree: Tree, machine: Machine) -> EvaluatedState:
    """The state as it is right, without a file."""
    suites = []
    for suite in tree.suites:
        measured = measure(tree, machine, suite)
        digest = None if measured is None else compute_digest(sorted(map(list, measured)))[:16]
        suites.append(
            MeasuredSuite(suite=suite, patterns=patterns_of(tree, suite), digest=digest, files=len(measured or ()))
        )
    return EvaluatedState(parts=digest_setup(tree, machine), suites=tuple(suites))


def digest_setup(tree: Tree, machine: Machine) -> dict[StatePart, str]:
    return {StatePart(part): compute_digest(repr(value))[:16] for part, value in describe_setup(tree, machine).items()}
