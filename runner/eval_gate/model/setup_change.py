"""What differs in how two runs were measured, as data: it can turn a verdict without any change of the agent."""

from enum import StrEnum

from eval_gate.model.base import Record


class SetupChangeKind(StrEnum):
    """What differs, the weightiest first."""

    LOOSENED = "loosened"
    """A rule asks for less."""
    REMOVED = "removed"
    """Cases that passed in the baseline are gone."""
    SKIPPED = "skipped"
    """Cases that passed in the baseline are skipped."""
    NO_CHECKS = "emptied"
    """Cases that passed in the baseline check nothing any more."""
    FEWER_CHECKS = "fewer_checks"
    """Cases that passed in the baseline check less."""
    EXPECTATION = "expectation"
    PROMPT = "prompt"
    CASES_BEFORE = "cases_before"
    """Other cases run before them in the same folder."""
    PROMPT_OR_EXPECTATION = "prompt_or_expectation"
    """Question or expectation, and the records do not tell which."""
    GRADER = "grader"
    JUDGE = "judge"
    SETUP = "setup"
    """A setting by which a target or judge is asked and its response read, or one of the run, has another value."""
    TARGET_ASSIGNMENT = "target_assignment"
    """Cases are asked of another target than they were."""
    RECORDING = "recording"
    """Nobody was asked: answers or grades are recorded ones that did not come with the baseline."""
    SEEDS = "seeds"
    SNAPSHOT_SOURCE = "snapshot_source"
    """Another snapshot. Other values of the same live one are what a snapshot is for."""
    TARGET = "target"
    """Another address or program behind the same name, or another target."""
    MODEL = "model"
    AGENT = "agent"
    """A setting that describes the agent itself has another value: that is what is being tested."""
    TIGHTENED = "tightened"
    """A rule asks for more."""
    CHANGED = "changed"
    """A rule is another one, neither looser nor tighter."""
    RENAMED = "renamed"
    """Cases that have another id or file and measure the same: nothing is lost."""


class SettingOwner(StrEnum):
    """Whose setting it is."""

    TARGET = "target"
    JUDGE = "judge"
    RUN = "run"
    CASE = "case"
    SUITE = "suite"
    """Of the agent that a suite brings along."""


class ChangedCase(Record, kw_only=True):
    """One case that a difference is about, by its name in the baseline."""

    suite: str
    case_id: str
    current_name: str | None = None
    """Its id or file here, where that is another one."""


class SetupChange(Record, kw_only=True):
    """One thing that differs. `baseline` and `current` are what it was and is, where that can be said in a word."""

    kind: SetupChangeKind
    subject: str = ""
    """The name of the rule, the target or the judge; empty for what is about cases."""
    setting: str = ""
    """The name of the setting, in camelCase; empty where none has another value."""
    owner: SettingOwner | None = None
    """Whose setting that is."""
    baseline: str | None = None
    current: str | None = None
    count: int = 0
    """How many cases it is about; 0 for what is not about single cases."""
    cases: tuple[ChangedCase, ...] = ()
    """The first of the cases, by name."""


class SetupChanges(Record, kw_only=True):
    """All that differs, the weightiest first, and the three counts that rules are about."""

    changes: tuple[SetupChange, ...] = ()
    removed_cases: int = 0
    """Cases that passed in the baseline and are gone."""
    changed_cases: int = 0
    """Cases that passed in the baseline and are measured by another yardstick."""
    loosened_rules: int = 0
    """Rules that ask for less."""
