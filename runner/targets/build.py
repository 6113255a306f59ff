"""From what was asked for to something that answers."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import JsonValue, SecretStr, ValidationError

from runner.errors import GateError, Problem
from runner.model.conversation import ToolSpec
from runner.targets.asking import Asker
from runner.targets.base import Target
from runner.targets.config import Description, TargetSettings, kind_of_provider, read_targets
from runner.targets.mock import MockSettings, MockTarget
from runner.targets.model_settings import ModelSettings, retry_policy
from runner.targets.pace import Pace
from runner.targets.recording import Mode, Recording
from runner.text.redact import Redactor
from runner.text.shape import sentence
from runner.text.urls import public_url

MAX_PROMPT_BYTES: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class TargetChoice:
    """What is to be evaluated: an endpoint, a model, or a target by name from a list or a file."""

    endpoint: str | None = None
    name: str | None = None
    targets: str | Sequence[dict[str, JsonValue]] | None = None
    concurrency: int | None = None
    max_retries: int | None = None
    provider: str | None = None
    model: str | None = None
    base_url: str | None = None
    system_prompt: str | None = None
    """File with the system prompt; wins over the target's own."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What models are asked with."""

    environment: Mapping[str, str]
    root: Path
    tools: tuple[ToolSpec, ...] = ()
    recording: Recording = Recording(Mode.OFF)  # noqa: RUF009 (off: it holds nothing and writes nothing)
    timeout_s: float = 60.0

    @property
    def replays(self) -> bool:
        """Whether nobody is asked, so that no key is needed."""
        return self.recording.mode is Mode.REPLAY


def build_target(choice: TargetChoice, around: Surroundings) -> Target:
    """The target, not yet connected. Raises GateError for a choice that is none, or settings that are wrong."""
    settings, redact = _settings(choice, around)
    if isinstance(settings, MockSettings):
        return MockTarget(settings)
    if isinstance(settings, ModelSettings):
        from runner.targets.model import ModelTarget

        prompt = _system_prompt(choice.system_prompt or settings.system_prompt_path, around.root)
        return ModelTarget(settings.name, _asker(settings, choice, around), prompt, around.tools, settings.workers)
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


def build_judge(named: str | None, choice: TargetChoice, around: Surroundings) -> tuple[str, Asker] | None:
    """Who grades, with its name: the one that is named, else the target's own judge, else the target if it is a model.

    None where nobody is named and the target is no model. Raises GateError for a judge that is none.
    """
    own = None if choice.endpoint else _settings(choice, around)[0]
    name = named or getattr(own, "judge_target", None)
    if name is None:
        return (own.name, _asker(own, choice, around)) if isinstance(own, ModelSettings) else None
    settings = _named_judge(name, choice, around)
    if not isinstance(settings, ModelSettings):
        raise GateError("no-judge", f'the judge "{name[:80]}" is not a model', "name a target of a model's provider")
    return settings.name, _asker(settings, choice, around)


def _named_judge(name: str, choice: TargetChoice, around: Surroundings) -> Description:
    """A target of the list, or `provider:model`."""
    provider, colon, model = name.partition(":")
    if colon and kind_of_provider(provider.lower()) is ModelSettings:
        return _model_settings(name, {"provider": provider, "model": model})
    if choice.targets is None:
        raise GateError("no-judge", f'there is no target "{name[:80]}" to grade', "describe it with --targets")
    return read_targets(choice.targets, around.root).choose(name, around.environment, keyless=around.replays)[0]


def _settings(choice: TargetChoice, around: Surroundings) -> tuple[Description, Redactor]:
    named = [flag for flag, value in _FLAGS.items() if getattr(choice, value) is not None]
    if len(named) > 1:
        raise GateError(
            "two-targets",
            f"{' and '.join(named)} are both given: one run evaluates one target",
            "leave out all but one",
        )
    if choice.endpoint is not None:
        return TargetSettings.model_validate({"name": "agent", "url": choice.endpoint}), Redactor()
    if choice.provider is not None or choice.model is not None:
        return _short_form(choice), Redactor()
    if choice.targets is None:
        raise GateError(
            "no-target",
            "nothing to evaluate: no agent endpoint, no model and no targets were given",
            "--agent-endpoint http://localhost:8000/chat, --provider openai --model NAME, or --targets FILE",
        )
    return read_targets(choice.targets, around.root).choose(choice.name, around.environment, keyless=around.replays)


_FLAGS = {"--agent-endpoint": "endpoint", "--target": "name", "--provider or --model": "model"}
"""What names a target, with its place in a choice."""


def _short_form(choice: TargetChoice) -> ModelSettings:
    """`--provider openai --model gpt-x`, or `--model openai:gpt-x`."""
    provider, colon, model = (choice.model or "").partition(":")
    described: dict[str, JsonValue] = {"provider": choice.provider, "model": choice.model}
    if choice.provider is None and colon and kind_of_provider(provider.lower()) is ModelSettings:
        described = {"provider": provider, "model": model}
    elif choice.provider is None:
        described["provider"] = "model"
    if choice.base_url:
        described["baseUrl"] = choice.base_url
    name = ":".join(str(part) for part in (described["provider"], described["model"]) if part)
    return _model_settings(name, {key: value for key, value in described.items() if value is not None})


def _model_settings(name: str, described: Mapping[str, JsonValue]) -> ModelSettings:
    try:
        return ModelSettings.model_validate({"name": name, **described})
    except ValidationError as error:
        problems = [
            Problem(sentence(detail), field=".".join(str(step) for step in detail["loc"])) for detail in error.errors()
        ]
        raise GateError(
            "invalid-targets",
            f"{name} does not describe a model",
            "--provider with --model, or a targets file",
            problems=problems,
        ) from error


def _asker(settings: ModelSettings, choice: TargetChoice, around: Surroundings) -> Asker:
    from runner.targets.providers import build_chat

    if around.replays and settings.api_key is None:
        settings = settings.model_copy(update={"api_key": SecretStr("nobody-is-asked")})
    policy = retry_policy(settings, choice.max_retries)
    chat = build_chat(settings, around.environment, timeout_s=around.timeout_s)
    return Asker(chat, policy, Pace(choice.concurrency or settings.workers or 1), around.recording)


def _system_prompt(path: str | None, root: Path) -> str | None:
    if path is None:
        return None
    try:
        with (root / path).open("rb") as stream:
            data = stream.read(MAX_PROMPT_BYTES + 1)
        if len(data) > MAX_PROMPT_BYTES:
            raise GateError("no-system-prompt", f"the system prompt {path} is larger than {MAX_PROMPT_BYTES:,} bytes")
        return data.decode("utf-8-sig")
    except OSError as error:
        what = f"the system prompt {path} cannot be read: {error.strerror}"
        raise GateError("no-system-prompt", what, "name an existing file") from error
    except UnicodeDecodeError as error:
        raise GateError("no-system-prompt", f"the system prompt {path} is not UTF-8", "save it as UTF-8") from error
