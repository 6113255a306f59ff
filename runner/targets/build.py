"""From what was asked for to something that answers."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from runner.errors import GateError
from runner.targets.base import Target
from runner.targets.config import TargetSettings, read_targets
from runner.text.redact import Redactor
from runner.text.urls import public_url


@dataclass(frozen=True, slots=True)
class TargetChoice:
    """What is to be evaluated: an endpoint, or a target by name from a list or a file."""

    endpoint: str | None = None
    name: str | None = None
    targets: str | Sequence[dict[str, JsonValue]] | None = None
    concurrency: int | None = None
    max_retries: int | None = None


def build_target(choice: TargetChoice, environment: Mapping[str, str], root: Path) -> Target:
    """The target, not yet connected. Raises GateError for a choice that is none, or settings that are wrong."""
    settings, redact = _settings(choice, environment, root)
    public_url(settings.url)  # refuses what is no address, before anything is asked
    # httpx imports its own command line, with rich and pygments, where they are installed: 45 ms that no run needs
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None tells Python that there is none
    from runner.targets.http import HttpTarget

    return HttpTarget(
        settings,
        redact=redact,
        concurrency=choice.concurrency or settings.workers or 1,
        max_retries=choice.max_retries,
    )


def _settings(choice: TargetChoice, environment: Mapping[str, str], root: Path) -> tuple[TargetSettings, Redactor]:
    if choice.endpoint is not None:
        if choice.name is not None:
            raise GateError(
                "two-targets",
                "both an agent endpoint and a target are named: one run evaluates one target",
                "leave out --agent-endpoint or --target",
            )
        return TargetSettings.model_validate({"name": "agent", "url": choice.endpoint}), Redactor()
    if choice.targets is None:
        raise GateError(
            "no-target",
            "nothing to evaluate: no agent endpoint and no targets were given",
            "--agent-endpoint http://localhost:8000/chat, or describe a target with --targets",
        )
    return read_targets(choice.targets, root).choose(choice.name, environment)
