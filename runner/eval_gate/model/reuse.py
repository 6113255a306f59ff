"""What was evaluated, and what an earlier run's result stands for, as stored in the run result.

The *evaluated state* names what a run evaluated: for each suite a digest of the files that it measures, and digests of
the evaluation setup of the whole run. A suite is *reused* if its result comes from an earlier run of the same state.
"""

from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Final

from msgspec import Meta

from eval_gate.model.base import Record

DOCUMENT_ENDINGS: Final = frozenset({".md", ".rst", ".adoc", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg"})
"""Endings of files that no program executes."""
INSTRUCTION_FILES: Final = frozenset({"agents.md", "claude.md", "gemini.md", "skill.md"})
"""Names of files, in lower case, that coding agents obey although no setting names them."""


def is_document(path: str) -> bool:
    """Whether a file of the repository neither runs nor instructs an agent: by its path, relative to the root."""
    parts = PurePosixPath(path.lower()).parts
    return (
        PurePosixPath(path.lower()).suffix in DOCUMENT_ENDINGS
        and parts[-1] not in INSTRUCTION_FILES
        and not any(part.startswith(".") for part in parts)
    )


class StatePart(StrEnum):
    """Part of the evaluation setup that has a digest of its own. If one differs, every suite runs."""

    EVALS = "evals"
    """Eval files, and of every case prompt, expectation, time limit, and values of seed and snapshot tokens."""
    GRADERS = "graders"
    """Graders, LLM judges, simulated users, hooks, and the files of programs."""
    TARGETS = "targets"
    """Targets and agents of suites with their settings and addresses."""
    TOOLS = "tools"
    CONFIGURATION = "configuration"
    """Every setting that neither another part covers nor is only about output or the baseline."""
    MEASURES = "measures"
    PROGRAM = "program"


class MeasuredSuite(Record, kw_only=True, omit_defaults=True):
    """What one suite measures."""

    suite: str
    """Eval file."""
    patterns: tuple[str, ...] = ()
    """Patterns of its measured files and variables, sorted; empty if it measures nothing."""
    digest: str | None = None
    """SHA-256 over the measured files and variables: fewer digits could be found twice. None: nothing can be reused."""
    files: Annotated[int, Meta(ge=0)] = 0
    problem: str | None = None
    """Why there is no digest, as a clause; None if there is one, or if the suite measures nothing."""


class EvaluatedState(Record, kw_only=True):
    """What a run evaluated, read before its first request."""

    parts: dict[StatePart, str]
    """SHA-256 of every part, in hexadecimal."""
    suites: tuple[MeasuredSuite, ...] = ()


class ReuseSource(StrEnum):
    """Kind of the run that a reused result comes from."""

    BASELINE = "baseline"
    OWN_RUN = "own_run"
    """Another run than the baseline, such as an earlier one of the same pull request."""


class ReusedResult(Record, kw_only=True, omit_defaults=True):
    """Origin of the result of a suite that was not executed in this run."""

    source: ReuseSource
    """Kind of the run that this run took the result from."""
    run_id: Annotated[str, Meta(max_length=200)]
    """Run that executed the suite."""
    timestamp: Annotated[str, Meta(max_length=100)]
    """Start of that run."""
    sha: Annotated[str, Meta(max_length=100)] | None = None
    """Commit that it evaluated; None if unknown."""


class RunReason(StrEnum):
    """Why a suite was executed although it has measures, or why nothing could be reused."""

    NO_MEASURES = "no_measures"
    UNREADABLE = "unreadable"
    """A measured file cannot be read, or a pattern matches nothing (`MeasuredSuite.problem`)."""
    FILES_CHANGED = "files_changed"
    SETUP_CHANGED = "setup_changed"
    """Parts of the setup differ (`SuiteDecision.parts`)."""
    NO_EARLIER_RESULT = "no_earlier_result"
    """No run that may be reused has the suite with an evaluated state."""
    NOT_PASSED = "not_passed"
    """The earlier run did not pass its gate, or is not complete."""
    NOT_SCORED = "not_scored"
    """A case of the suite has no score in the earlier run."""
    RECHECK = "recheck"
    """The suite was last executed more than a week ago, and this is a run of the branch."""


class ReuseOff(StrEnum):
    """Why a run with measures reuses nothing at all."""

    TURNED_OFF = "turned_off"
    RERUN_ATTEMPT = "rerun_attempt"
    OTHER_EVENT = "other_event"
    """No change to the repository's files: a scheduled run, or one that a person started."""
    SELECTED_CASES = "selected_cases"
    RESUMED = "resumed"
    RECORDING = "recording"
    """Responses of models are recorded or replayed."""
    WARM_UP = "warm_up"
    """The history has fewer runs than `warmUp`."""
    NO_BASELINE = "no_baseline"


class SuiteDecision(Record, kw_only=True, omit_defaults=True):
    """Whether one suite was reused; `reason` says why not."""

    suite: str
    reused: ReusedResult | None = None
    reason: RunReason | None = None
    parts: tuple[StatePart, ...] = ()
    last_executed: ReusedResult | None = None
    """For a recheck: the last execution of the same state."""


class ReuseSummary(Record, kw_only=True, omit_defaults=True):
    """What a run reused. A run in which no suite has measures has no summary."""

    off: ReuseOff | None = None
    """Why nothing could be reused; `suites` is then empty."""
    suites: tuple[SuiteDecision, ...] = ()
    """Every suite, in file order."""
    saved_executions: Annotated[int, Meta(ge=0)] = 0
    """Executions of the reused suites in the runs that executed them."""
    saved_usd: float | None = None
    """Cost of these with judges, in US dollars; None if unknown."""

    @property
    def reused_suites(self) -> tuple[SuiteDecision, ...]:
        """Suites that were not executed in this run."""
        return tuple(one for one in self.suites if one.reused is not None)

    @property
    def rechecked_suites(self) -> tuple[SuiteDecision, ...]:
        """Suites that were executed only to see whether their result still holds."""
        return tuple(one for one in self.suites if one.reason is RunReason.RECHECK)
