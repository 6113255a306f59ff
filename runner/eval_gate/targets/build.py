"""From what was asked for to something that answers."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from pydantic import JsonValue, SecretStr, ValidationError

from eval_gate.config.settings import TargetChoice
from eval_gate.errors import GateError, Problem
from eval_gate.files.place import why_no_folder, why_not_read
from eval_gate.files.reading import read_up_to
from eval_gate.model import limits
from eval_gate.model.conversation import ToolSpec
from eval_gate.targets.base import Target
from eval_gate.targets.http.settings import HttpSettings
from eval_gate.targets.kinds import CODEX, kind_of_provider
from eval_gate.targets.listing import Chosen
from eval_gate.targets.masked import masked
from eval_gate.targets.model.asking import Asker
from eval_gate.targets.model.pace import Pace
from eval_gate.targets.model.recording import Mode, Recording
from eval_gate.targets.model.settings import ModelSettings, retry_policy
from eval_gate.targets.receiving import Doorkeeper
from eval_gate.text.redact import Redactor
from eval_gate.text.sources.shape import mistakes, sentence
from eval_gate.text.urls import public_url

if TYPE_CHECKING:
    from eval_gate.targets.kinds import Description

MAX_PROMPT_BYTES: Final = limits.PROMPT_BYTES


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What models are asked with."""

    environment: Mapping[str, str]
    root: Path
    tools: tuple[ToolSpec, ...] = ()
    recording: Recording = Recording(Mode.OFF)  # noqa: RUF009 (off: it holds nothing and writes nothing)
    timeout_s: float = 60.0
    pass_env: tuple[str, ...] = ()
    """Variables that every command gets, beside what every program needs."""
    doorkeeper: Doorkeeper | None = None
    """Decides which targets are given variables; None where all are."""
    redact: Redactor = field(default_factory=Redactor)
    """Knows every secret of the run: one that was given for one target is masked in what all of them say."""

    @property
    def replays(self) -> bool:
        """Whether nobody is asked, so that no key is needed."""
        return self.recording.mode is Mode.REPLAY


def make_target(chosen: Chosen, choice: TargetChoice, around: Surroundings) -> Target:
    """The target, not yet connected, and behind its door. Raises GateError for settings that are wrong."""
    around.redact.include(chosen.redact)
    return masked(_bare_target(chosen, choice, around), around.redact)


def _bare_target(chosen: Chosen, choice: TargetChoice, around: Surroundings) -> Target:
    settings = chosen.settings
    if isinstance(settings, HttpSettings):
        return _http(settings, around.redact, choice)
    if isinstance(settings, ModelSettings):
        from eval_gate.targets.model.file_agent import FileAgentTarget
        from eval_gate.targets.model.target import ModelTarget

        if (
            not choice.system_prompt
            and (own := settings.system_prompt_path)
            and (why := why_not_read(own, root=around.root))
        ):
            raise GateError("no-system-prompt", f'the system prompt "{own[:200]}" {why}', "name a file inside of it")
        prompt = _system_prompt(choice.system_prompt or settings.system_prompt_path, around.root)
        asker = make_asker(settings, choice, around)
        model = ModelTarget(settings.name, asker, prompt, around.tools, settings.workers)
        return FileAgentTarget(model, asker)
    return _program(chosen, choice, around)


def _http(settings: HttpSettings, redact: Redactor, choice: TargetChoice) -> Target:
    public_url(settings.url)  # refuses what is no address, before anything is asked
    redact.learn([unquote(urlsplit(settings.url).password or "")])
    # httpx imports its own command line, with rich and pygments, where they are installed: 45 ms that no run needs
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None tells Python that there is none
    from eval_gate.targets.http.target import HttpTarget

    return HttpTarget(
        settings,
        redact=redact,
        concurrency=choice.concurrency or settings.workers or 1,
        max_retries=choice.max_retries,
    )


def _program(chosen: Chosen, choice: TargetChoice, around: Surroundings) -> Target:
    """What is asked by a program of its own, or by none. Each is imported only when it is meant."""
    settings, redact = _with_passed(chosen.settings, around), around.redact
    if settings.provider == "mock":
        from eval_gate.targets.mock import MockSettings, MockTarget

        assert isinstance(settings, MockSettings)
        return MockTarget(settings)
    if settings.provider == "cli":
        from eval_gate.targets.command.settings import CliSettings
        from eval_gate.targets.command.target import CliTarget

        assert isinstance(settings, CliSettings)
        return CliTarget(
            settings,
            root=around.root,
            environment=around.environment,
            redact=redact,
            max_retries=choice.max_retries,
        )
    if settings.provider in CODEX:
        from eval_gate.targets.codex.settings import CodexSettings
        from eval_gate.targets.codex.target import CodexTarget

        assert isinstance(settings, CodexSettings)
        if settings.log_dir is not None and (why := why_no_folder(settings.log_dir, anywhere=False, root=around.root)):
            what = f'target {settings.name}: the log_dir "{settings.log_dir[:200]}" {why}'
            raise GateError("output-outside", what, "name a folder below the working directory")
        return CodexTarget(settings, root=around.root, environment=around.environment, redact=redact)
    from eval_gate.targets.vscode.settings import VscodeSettings
    from eval_gate.targets.vscode.target import VscodeTarget

    assert isinstance(settings, VscodeSettings)
    return VscodeTarget(settings, root=around.root, environment=around.environment, redact=redact)


def _with_passed(settings: Description, around: Surroundings) -> Description:
    """The description with the variables that its command gets as they are set here; they are secrets from then on."""
    names = {*around.pass_env, *getattr(settings, "pass_env", ())}
    passed = {name: around.environment[name] for name in sorted(names) if name in around.environment}
    around.redact.learn(passed.values())
    if not passed or not hasattr(settings, "env"):
        return settings
    return settings.model_copy(update={"env": {**passed, **settings.env}})


def described_by_flags(choice: TargetChoice) -> Chosen | None:
    """The endpoint or model that the choice itself describes; None when it names a target, or nothing.

    Raises GateError for a choice that contradicts itself.
    """
    named = [flag for flag, value in _FLAGS.items() if getattr(choice, value) is not None]
    if len(named) > 1:
        raise GateError(
            "two-targets",
            f"{' and '.join(named)} are both given: one run evaluates one target",
            "leave out all but one",
        )
    if choice.endpoint is not None:
        return Chosen(HttpSettings.model_validate({"name": "agent", "url": choice.endpoint}), Redactor())
    if choice.provider is not None or choice.model is not None:
        settings = _short_form(choice)
        entry: dict[str, JsonValue] = {"name": settings.name, "provider": settings.provider, "model": settings.model}
        return Chosen(settings, Redactor(), entry=entry | {"baseUrl": settings.base_url})
    return None


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
    return model_settings(name, {key: value for key, value in described.items() if value is not None})


def model_settings(name: str, described: Mapping[str, JsonValue]) -> ModelSettings:
    """A model that was named in short. Raises GateError for what is none."""
    try:
        return ModelSettings.model_validate({"name": name, **described})
    except ValidationError as error:
        problems = [
            Problem(sentence(detail), field=".".join(str(step) for step in detail["loc"])) for detail in mistakes(error)
        ]
        raise GateError(
            "invalid-targets",
            f"{name} does not describe a model",
            "--provider with --model, or a targets file",
            problems=problems,
        ) from error


def make_asker(settings: ModelSettings, choice: TargetChoice, around: Surroundings) -> Asker:
    """The model with its retries, its pace and the run's recording."""
    from eval_gate.targets.model.providers.build import build_chat

    if around.replays and settings.api_key is None:
        settings = settings.model_copy(update={"api_key": SecretStr("nobody-is-asked")})
    policy = retry_policy(settings, choice.max_retries)
    chat = build_chat(settings, around.environment, timeout_s=around.timeout_s, redact=around.redact)
    return Asker(chat, policy, Pace(choice.concurrency or settings.workers or 1), around.recording, around.redact)


def _system_prompt(path: str | None, root: Path) -> str | None:
    if path is None:
        return None
    try:
        data = read_up_to(root / path, MAX_PROMPT_BYTES)
        if len(data) > MAX_PROMPT_BYTES:
            raise GateError("no-system-prompt", f"the system prompt {path} is larger than {MAX_PROMPT_BYTES:,} bytes")
        return data.decode("utf-8-sig")
    except OSError as error:
        what = f"the system prompt {path} cannot be read: {error.strerror}"
        raise GateError("no-system-prompt", what, "name an existing file") from error
    except UnicodeDecodeError as error:
        raise GateError("no-system-prompt", f"the system prompt {path} is not UTF-8", "save it as UTF-8") from error
