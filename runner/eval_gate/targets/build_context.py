"""Context in which a run builds its targets: run context, secret policy, and missing requirements of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

from eval_gate.config.settings import RecordingMode
from eval_gate.errors import GateError, Problem
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import ToolSpec
from eval_gate.sandbox.sandbox_setup import SandboxSetup
from eval_gate.struct import FrozenStruct, field
from eval_gate.targets.model.recording import Recording
from eval_gate.text.redaction import Redactor
from eval_gate.text.secret import Secret

STAND_IN: Final = "unset"
"""Placeholder value of a variable that is not set, or that must not be shown."""
_REQUIREMENT_CODES: Final = frozenset({"missing-api-key", "missing-endpoint", "missing-extra"})
"""Error codes that mean a missing requirement, rather than an invalid file."""


class SecretRequest(FrozenStruct):
    """Request of a target for `variables`, with its targets file, and its described address without secrets."""

    name: str
    entry: Secret[Mapping[str, JsonValue]]
    file: str | None
    variables: tuple[str, ...]
    place: str | None


class SecretPolicy(Protocol):
    """Policy that decides which targets get which variables."""

    def __call__(self, secret_request: SecretRequest) -> None:
        """Check that a target may get the variables that it requests. Raises GateError if it must not."""
        ...


class MissingRequirements:
    """Variables that are not set and libraries that are not installed, each place once."""

    def __init__(self) -> None:
        self._noted: dict[Problem, None] = {}

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What a run would need, and where that is written, in the order of the lines."""
        return tuple(sorted(self._noted, key=lambda one: (one.file or "", one.line or 0)))

    def add_problem(self, what: Problem) -> None:
        """Remember it."""
        self._noted[what] = None

    @staticmethod
    def is_missing_requirement(error: GateError) -> bool:
        """Whether this error is about the machine, and not about what people wrote."""
        return error.code in _REQUIREMENT_CODES


class BuildContext(FrozenStruct):
    """Common input for building all targets of a run: environment, root, recording and secrets."""

    environment: Mapping[str, str]
    root: Path
    tools: tuple[ToolSpec, ...] = ()
    recording: Recording = Recording(RecordingMode.OFF)
    timeout_s: float = 60.0
    pass_env: tuple[str, ...] = ()
    """Variables that every command gets in addition to the basic ones."""
    secret_policy: SecretPolicy | None = None
    home: SandboxSetup = field(default_factory=SandboxSetup)
    """Folder in which the agents of suites work."""
    redact: Redactor = field(default_factory=Redactor)
    """Masks every secret of the run: a secret of one target is masked in the output of all of them."""
    shards: int = 1
    """Number of machines that run the same targets at the same time and share their rate limits."""
    missing_requirements: MissingRequirements | None = None
    """Collects the missing requirements when targets are only checked; None if all must be present."""

    @property
    def is_replay(self) -> bool:
        """Whether no request is sent to a model, so that no key is needed."""
        return self.recording.mode is RecordingMode.REPLAY
