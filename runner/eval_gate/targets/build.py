"""From what was asked for to something that answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue, ValidationError

from eval_gate.config.given import GivenValue
from eval_gate.config.preset import PresetName
from eval_gate.config.settings import SETTINGS, CacheMode, TargetChoice
from eval_gate.errors import PAGES, GateError, Problem
from eval_gate.model.conversation import ToolSpec
from eval_gate.sandbox.home import Home
from eval_gate.struct import FrozenStruct, field, replace
from eval_gate.targets.base import DescribedTarget, Target
from eval_gate.targets.http.settings import HttpSettings
from eval_gate.targets.kinds import names_model
from eval_gate.targets.listing import Chosen
from eval_gate.targets.masked import masked
from eval_gate.targets.missing_parts import MissingParts
from eval_gate.targets.model.recording import Recording
from eval_gate.targets.model.settings import ModelSettings
from eval_gate.targets.pacing import share
from eval_gate.targets.program_files import ProgramFiles
from eval_gate.targets.settings import ProgramSettings, camel
from eval_gate.targets.setup import TargetSetup, grading_setup_of, setup_of
from eval_gate.targets.variables import Doorkeeper
from eval_gate.text.quoting import shown_name
from eval_gate.text.redact import Redactor
from eval_gate.text.secret import Secret, SecretAddress
from eval_gate.text.sources.shape import mistakes, sentence
from eval_gate.text.urls import public_url


class BuildContext(FrozenStruct):
    """What targets are built with: the environment and the folder of the run, and what holds for all of them."""

    environment: Mapping[str, str]
    root: Path
    tools: tuple[ToolSpec, ...] = ()
    recording: Recording = Recording(CacheMode.OFF)
    timeout_s: float = 60.0
    pass_env: tuple[str, ...] = ()
    """Variables that every command gets, beside what every program needs."""
    doorkeeper: Doorkeeper | None = None
    """Decides which targets are given variables; None where all are."""
    home: Home = field(default_factory=Home)
    """Where the agents of suites work."""
    redact: Redactor = field(default_factory=Redactor)
    """Knows every secret of the run: one that was given for one target is masked in what all of them say."""
    shards: int = 1
    """Machines that ask the same targets at the same time, and share what limits these."""
    files: ProgramFiles | None = None
    """Reads the files that commands of judges name; None where nobody asks what a judge was set up with."""
    lacking: MissingParts | None = None
    """Where targets are only checked and nobody is asked: notes what they would need; None where all must be there."""

    @property
    def replays(self) -> bool:
        """Whether nobody is asked, so that no key is needed."""
        return self.recording.mode is CacheMode.REPLAY


def make_target(chosen: Chosen, choice: TargetChoice, context: BuildContext, *, grades: bool = False) -> Target:
    """The target, not yet connected, and behind its door. Raises GateError for settings that are wrong.

    `grades`: it is asked to grade, so that the programs that it runs are part of its set-up.
    """
    context.redact.include(chosen.redact)
    settings = chosen.settings
    if isinstance(settings, ProgramSettings):
        settings = _with_passed(settings, context)
    rate = share(choice.requests_per_minute, context.shards)
    made = chosen.kind.target(settings, choice, context)
    if grades:
        setup = grading_setup(chosen, context)
    else:
        prompting = made.prompting if isinstance(made, DescribedTarget) else None
        files = context.files or ProgramFiles(context.root)
        setup = setup_of(chosen.settings, context.environment, context.redact, prompting, files)
    return masked(made, context.redact, rate, setup.described_in(chosen.file))


def grading_setup(chosen: Chosen, context: BuildContext) -> TargetSetup:
    """What this grader is set up with."""
    files = context.files or ProgramFiles(context.root)
    return grading_setup_of(chosen.settings, context.environment, context.redact, files)


def _with_passed(settings: ProgramSettings, context: BuildContext) -> ProgramSettings:
    """The description with the variables that its program gets as they are set here; they are secrets from then on."""
    names = {*context.pass_env, *settings.pass_env}
    passed = {name: context.environment[name] for name in sorted(names) if name in context.environment}
    context.redact.learn(passed.values())
    return replace(settings, env=Secret({**passed, **settings.env.open()}))


def described_by_flags(choice: TargetChoice) -> Chosen | None:
    """The endpoint or model that the choice itself describes; None when it names a target, or nothing.

    Raises GateError for a choice that contradicts itself.
    """
    several = [choice.given.of(key) for key, value in _NAMING.items() if getattr(choice, value) is not None]
    if len(several) > 1:
        raise GateError(
            "two-targets",
            f"{' and '.join(one.name for one in several)} are both given: one run evaluates one target",
            "leave out all but one; what the configuration file says (agentEndpoint, target, model) counts too",
            problems=[one.problem("is given here") for one in several if one.file is not None],
        )
    if choice.endpoint is not None:
        where = choice.given.of("agentEndpoint")
        settings = _endpoint(choice.endpoint, choice.preset, where)
        return Chosen(settings, Redactor(), problem=lambda message, _: where.problem(message))
    if choice.preset is not None:
        raise GateError(
            "unknown-value",
            "agentPreset (--agent-preset) says how the agent at agentEndpoint speaks, and no agentEndpoint is given",
            "--agent-endpoint URL beside it; a target of a list has its own `preset`",
            problems=[choice.given.of("agentPreset").problem("is given without agentEndpoint")],
        )
    if choice.provider is not None or choice.model is not None:
        model = _short_form(choice)
        entry: dict[str, JsonValue] = {"name": model.name, "provider": model.provider, "model": model.model}
        entry["baseUrl"] = model.base_url.open() if model.base_url else None
        return Chosen(
            model, Redactor(), entry=Secret(entry), problem=lambda message, key: _of_model(choice, message, key)
        )
    return None


def _of_model(choice: TargetChoice, message: str, key: str | None) -> Problem:
    """A problem with this setting of the model that was named in short, where that was given or is missing."""
    main = "provider" if choice.model is None else "model"
    return choice.given.problem(message, key if key and key in SETTINGS else main, main)


def _endpoint(url: SecretAddress[str], preset: PresetName | None, where: GivenValue) -> HttpSettings:
    """The agent at an address, and where that was given. Raises GateError for what is none."""
    try:
        public_url(url.open())
        described = {"name": "agent", "url": url.open()} | ({} if preset is None else {"preset": preset})
        return HttpSettings.model_validate(described).written_at("agentEndpoint")
    except (GateError, ValidationError) as error:
        wrong = error.message if isinstance(error, GateError) else sentence(mistakes(error)[0])
        hint = error.hint if isinstance(error, GateError) else f"{PAGES}/targets.md says what may stand in a URL"
        said = "the agent's address cannot be used"
        raise GateError("invalid-url", said, hint, problems=[where.problem(wrong)]) from error


_NAMING = {"agentEndpoint": "endpoint", "target": "name", "model": "model"}
"""The keys that name a target, each with its place in a choice."""


def _short_form(choice: TargetChoice) -> ModelSettings:
    """`--provider openai --model gpt-x`, or `--model openai:gpt-x`."""
    provider, colon, model = (choice.model or "").partition(":")
    described: dict[str, JsonValue] = {"provider": choice.provider, "model": choice.model}
    if choice.provider is None and colon and names_model(provider):
        described = {"provider": provider, "model": model}
    elif choice.provider is None:
        described["provider"] = "model"
    if choice.base_url:
        described["baseUrl"] = choice.base_url.open()
    name = ":".join(str(part) for part in (described["provider"], described["model"]) if part)
    given = {key: value for key, value in described.items() if value is not None}
    try:
        return model_settings(name, given)
    except GateError as error:
        error.problems = tuple(_of_model(choice, one.message, one.field) for one in error.problems)
        raise


def model_settings(name: str, described: Mapping[str, JsonValue]) -> ModelSettings:
    """A model that was named in short. Raises GateError for what is none."""
    try:
        return ModelSettings.model_validate({"name": name, **described})
    except ValidationError as error:
        problems = [
            Problem(sentence(detail), field=camel(str(detail["loc"][0])) if detail["loc"] else None)
            for detail in mistakes(error)
        ]
        raise GateError(
            "invalid-targets",
            f"{shown_name(name)} does not describe a model",
            "--provider with --model, or a targets file",
            problems=problems,
        ) from error
