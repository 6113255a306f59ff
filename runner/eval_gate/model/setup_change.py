"""Evaluation setup changes since the baseline, which can change a verdict without a change of the agent."""

from enum import StrEnum

from eval_gate.model.base import Record


class SetupChangeKind(StrEnum):
    """Kind of setup change, most important first."""

    LOST_BASELINE = "lost_baseline"
    """The gate, results folder, target or selection has another name, so nothing is compared."""
    LOOSENED = "loosened"
    """A rule requires less."""
    REMOVED = "removed"
    """Cases that passed in the baseline are removed."""
    SKIPPED = "skipped"
    """Cases that passed in the baseline are skipped."""
    NO_CHECKS = "no_checks"
    """Cases that passed in the baseline have no effective checks."""
    FEWER_CHECKS = "fewer_checks"
    """Cases that passed in the baseline have fewer checks."""
    NO_LONGER_DECIDES = "no_longer_decides"
    """Cases that passed in the baseline have a scorer that decided there, and here only has a number, or nothing."""
    UNSTATED = "unstated"
    """Cases that passed in the baseline no longer say what their prompt or expectation is."""
    EXPECTATION = "expectation"
    PROMPT = "prompt"
    CASES_BEFORE = "cases_before"
    """Other cases run before them in the same folder."""
    PROMPT_OR_EXPECTATION = "prompt_or_expectation"
    """The prompt or the expectation changed; the stored results do not tell which."""
    GRADER = "grader"
    PREPARATION = "preparation"
    """A hook of their workspace or the health check of their target changed."""
    JUDGE = "judge"
    USER = "user"
    """Another model plays the simulated user."""
    SETUP = "setup"
    """A setting of the run changed, or a setting for the requests and responses of a target, judge or user."""
    TARGET_ASSIGNMENT = "target_assignment"
    """Cases run against another target."""
    RECORDING = "recording"
    """Responses or scores come from a recording that is not the baseline's."""
    SEEDS = "seeds"
    SNAPSHOT_SOURCE = "snapshot_source"
    """The snapshot has another source. Different values of the same live snapshot are not a change."""
    TARGET = "target"
    """Another target, or another address or program under the same name."""
    MODEL = "model"
    AGENT = "agent"
    """A setting that describes the agent itself changed: the subject of the evaluation."""
    TIGHTENED = "tightened"
    """A rule requires more."""
    CHANGED = "changed"
    """A rule changed and is neither looser nor tighter."""
    RENAMED = "renamed"
    """Cases have another id or file but the same fingerprints: nothing is lost."""


class SettingOwner(StrEnum):
    """Owner of a setting."""

    TARGET = "target"
    JUDGE = "judge"
    USER = "user"
    """The model that plays simulated users."""
    RUN = "run"
    CASE = "case"
    SUITE = "suite"
    """The agent that a suite describes."""


class ChangedCase(Record, kw_only=True):
    """One case that a setup change affects, by its name in the baseline."""

    suite: str
    case_id: str
    current_name: str | None = None
    """Current id or file, if it changed."""


class SetupChange(Record, kw_only=True):
    """One setup change. `baseline` and `current` are the old and new value, if they are short."""

    kind: SetupChangeKind
    subject: str = ""
    """Name of the rule, target, judge or simulated user; empty if the change is about cases."""
    setting: str = ""
    """Name of the setting in camelCase; empty if no setting changed."""
    owner: SettingOwner | None = None
    baseline: str | None = None
    current: str | None = None
    count: int = 0
    """Number of affected cases; 0 if the change is not about individual cases."""
    files: tuple[str, ...] = ()
    """The first changed files of a program, relative to the folder of the run, sorted."""
    file_count: int = 0
    """Number of changed files of a program."""
    cases: tuple[ChangedCase, ...] = ()
    """The first affected cases, sorted by name."""


class SetupChanges(Record, kw_only=True):
    """All setup changes, most important first, and the counts that rules use."""

    changes: tuple[SetupChange, ...] = ()
    removed_cases: int = 0
    """Cases that passed in the baseline and are removed."""
    changed_cases: int = 0
    """Cases that passed in the baseline and have another fingerprint."""
    loosened_rules: int = 0
    """Rules that require less."""
