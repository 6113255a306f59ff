"""The rules that a run was held against, and how it was measured as a whole, as its record keeps them."""

from eval_gate.model.base import JsonValue, Record, as_json
from eval_gate.model.setup import SettingValue, TargetIdentity


class RunPolicy(Record, kw_only=True):
    """The policy as it took effect: of flags, variables, file and defaults together. None: no such rule, or unknown."""

    fail_on: tuple[str, ...] = ()
    fail_on_default: bool = False
    """Nobody said what fails the gate: `fail_on` is the default of the command line, or of the action."""
    min_pass_rate: float | None = None
    max_errors: int = 0
    pass_score: float = 1.0
    score_tolerance: float | None = None
    max_score_drop: float | None = None
    reruns: int | None = None
    """How often a doubtful case was to be run again at most, whether there was anything to compare with or not."""
    false_alarm_rate: float | None = None
    must_pass: tuple[str, ...] = ()
    allowed_regressions: int = 0
    min_coverage: float | None = None
    max_latency_increase: float | None = None
    max_cost_increase: float | None = None
    max_token_increase: float | None = None
    trials: int | None = None
    scores: tuple[str, ...] = ()
    """Rules about scorers of another tool, such as `policy>=0.7`."""
    base_agent: str | None = None
    """The base branch's agent that is asked where the gate would be red; None for none."""
    waivers: str | None = None
    """The file of accepted failures that the configuration names; None takes the usual one where it exists."""
    typed_settings: tuple[str, ...] | None = None
    """Which of these a person typed at a terminal. None: in CI, in an action or by a program, where nobody does, or
    unknown."""

    def as_settings(self) -> dict[str, JsonValue]:
        """Return the policy as configuration keys, so that the same rules can be applied again.

        Rules that are None are left out.
        """
        others = {"failOnDefault", "trials", "scores", "baseAgent", "waivers", "typedSettings"}
        told: dict[str, JsonValue] = {
            name: value for name, value in as_json(self).items() if value is not None and name not in others
        }
        return told | ({"waiversPath": self.waivers} if self.waivers else {})


class EvaluationSetup(Record, kw_only=True):
    """What holds for every case of a run. What holds for one case is its yardstick."""

    trials: int | None = None
    reruns: int | None = None
    """As it was asked for: without a baseline nothing is run again."""
    scores: tuple[str, ...] = ()
    """Rules by which another tool's scores passed or failed."""
    base_agent: str | None = None
    """The base branch's agent that is asked where the gate would be red: its address, or its target's name and what
    that is; None for none."""
    snapshot: str | None = None
    """Where snapshot tokens took their values from: a path, an address without credentials, or a command."""
    snapshot_is_file: bool = False
    """The snapshot is a file, which only changes when somebody changes it."""
    snapshot_scripts: str | None = None
    """The files that the snapshot command names, by content."""
    recording: str | None = None
    """The file of recorded answers that stood in for models or judges; None for none, and for the baseline's own."""
    settings: tuple[SettingValue, ...] = ()
    """Settings of the run that differ from their defaults and can change a result."""
    judges: tuple[TargetIdentity, ...] = ()
    """Who graded, set up how."""
