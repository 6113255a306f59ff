"""A repository whose commits have agents: what each commit does to every case is known, and so is who broke what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from tests.support.github import PullRequest, State
from tests.support.github.graph import compare, newest_first
from tests.support.github.state import iso

MAIN, RELEASE = "main", "release"
GATES = ("sales", "support")
CASES = 3
"""Cases of each gate."""
BEGIN = datetime(2026, 9, 1, tzinfo=UTC)
FORK = "stranger/bot"


EVENTS = frozenset({"push", "schedule", "workflow_dispatch"})
"""The events whose runs make baselines."""


class Extent(StrEnum):
    """How much of the cases a run judges."""

    WHOLE = "whole"
    SOME = "some"
    """Of some cases only."""
    OUTAGE = "outage"
    """No case: the agent was not there."""
    NOTHING = "nothing"
    """It was cancelled, and stored nothing."""


@dataclass
class GateRun:
    """One gate in one run of a workflow, as whoever tells the story knows it."""

    run_id: int
    gate: str
    branch: str
    """The branch that GitHub names for the run."""
    sha: str
    """The commit that GitHub names for it."""
    values: str
    """A letter for each case of the gate, `P` or `F`."""
    extent: Extent
    begun: int
    ended: int
    event: str = "push"
    of_fork: bool = False
    of_tag: bool = False
    expired: bool = False
    passed: bool = False
    """Whether its gate passed, as it said."""

    @property
    def makes_baselines(self) -> bool:
        """Whether it may be a baseline of its branch, once it has ended."""
        return self.made_baselines and not self.expired

    @property
    def made_baselines(self) -> bool:
        """The same of one that is perhaps kept no longer."""
        foreign = self.of_fork or self.of_tag
        return self.extent is Extent.WHOLE and self.event in EVENTS and not foreign


@dataclass
class Repository:
    """Commits with what their agents do, and every run of a gate so far."""

    state: State
    values: dict[str, str] = field(default_factory=dict)
    """What the agent of a commit does to each case of all gates."""
    main_line: dict[str, list[str]] = field(default_factory=dict)
    """The commits that a branch has pointed at, the oldest first."""
    runs: list[GateRun] = field(default_factory=list)
    minute: int = 0
    _names: int = 0

    def __post_init__(self) -> None:
        root = self.state.branches[MAIN]
        self.values[root] = "P" * (len(GATES) * CASES)
        self.main_line[MAIN] = [root]

    @property
    def now(self) -> str:
        """The time as GitHub writes it."""
        return self.at(self.minute)

    @staticmethod
    def at(minute: int) -> str:
        return iso(BEGIN + timedelta(minutes=minute))

    def name(self, what: str) -> str:
        """A name that nothing else has."""
        self._names += 1
        return f"{what} {self._names}"

    def commit(self, what: str, *parents: str, changes: Mapping[int, str] | None = None, minute: int = -1) -> str:
        """A commit, a merge where it has two parents, that changes what its agent does to some cases."""
        date = self.at(self.minute if minute < 0 else minute)
        made = self.state.add_commit(self.name(what), parents, date=date).sha
        before = self.merged(*parents) if len(parents) == 2 else self.values[parents[0]]
        self.values[made] = "".join((changes or {}).get(at, letter) for at, letter in enumerate(before))
        return made

    def merged(self, ours: str, theirs: str) -> str:
        """What a merge of both does: of each case what the side does that has changed it since they parted."""
        parted = compare(self.state.commits, ours, theirs)
        assert parted is not None
        base = self.values[parted.merge_base.sha]
        sides = zip(base, self.values[ours], self.values[theirs], strict=True)
        return "".join(ours if theirs == before else theirs for before, ours, theirs in sides)

    def move(self, branch: str, sha: str) -> None:
        """Let a long-lived branch point at this commit."""
        self.state.branches[branch] = sha
        self.main_line.setdefault(branch, []).append(sha)

    def test_merge(self, pull: PullRequest) -> str:
        """The test merge of the head and of its base branch as it is now."""
        tip = self.state.branches[pull.base_ref]
        made = self.state.merge_again(pull)
        self.values.setdefault(made, self.merged(tip, pull.head_sha))
        return made

    def of_gate(self, gate: str, sha: str) -> str:
        """What the agent of a commit does to the cases of one gate."""
        begin = GATES.index(gate) * CASES
        return self.values[sha][begin : begin + CASES]

    def ancestors(self, sha: str) -> set[str]:
        """The commit and all before it."""
        return {one.sha for one in newest_first(self.state.commits, sha)}
