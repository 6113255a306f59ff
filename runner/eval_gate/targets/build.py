"""Build a target from the choice of the user and the description of the target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import JsonValue, ValidationError

from eval_gate.config.preset import PresetName
from eval_gate.config.setting_sources import SettingSource
from eval_gate.config.settings import SETTINGS, TargetChoice
from eval_gate.errors import PAGES, GateError, Problem
from eval_gate.struct import replace
from eval_gate.targets.base import DescribedTarget, Target
from eval_gate.targets.build_context import BuildContext
from eval_gate.targets.http.settings import ENDPOINT_NAME, HttpSettings
from eval_gate.targets.kinds import is_model_provider
from eval_gate.targets.model.settings import ModelSettings
from eval_gate.targets.secret_masking import mask_target
from eval_gate.targets.settings import ProgramSettings, to_camel_case
from eval_gate.targets.setup import compute_setup
from eval_gate.targets.target_list import ResolvedTarget
from eval_gate.text.quoting import describe_name
from eval_gate.text.redaction import Redactor
from eval_gate.text.secret import Secret, SecretAddress
from eval_gate.text.sources.validation_errors import describe_error, list_errors
from eval_gate.text.urls import to_public_url


def build_target(
    chosen: ResolvedTarget, choice: TargetChoice, context: BuildContext, *, grades: bool = False
) -> Target:
    """Build a target with masked secrets, not yet connected; one that `grades` has another prompt. Raises GateError."""
    context.redact.include(chosen.redact)
    settings, passed = chosen.settings, tuple[str, ...]()
    if isinstance(settings, ProgramSettings):
        passed = (*context.pass_env, *settings.pass_env)
        settings = _add_passed_variables(settings, passed, context)
    target = chosen.kind.build_target(settings, choice, context)
    prompting = target.prompt_setup if isinstance(target, DescribedTarget) and not grades else None
    setup = compute_setup(chosen.settings, context.environment, context.redact, prompting, passed)
    return mask_target(target, context.redact, replace(setup, file=chosen.file))


def _add_passed_variables(settings: ProgramSettings, names: Iterable[str], context: BuildContext) -> ProgramSettings:
    """Add the variables that are passed to the program; their values are secrets from then on."""
    passed = {name: context.environment[name] for name in sorted({*names}) if name in context.environment}
    context.redact.add_secrets(passed.values())
    return replace(settings, env=Secret({**passed, **settings.env.open()}))


def find_flag_target(choice: TargetChoice) -> ResolvedTarget | None:
    """Resolve the endpoint, function or model that `choice` itself describes. Raises GateError for several."""
    several = [
        choice.sources.get_source(key) for key, value in _CHOICE_FIELDS.items() if getattr(choice, value) is not None
    ]
    if len(several) > 1:
        raise GateError(
            "conflicting-targets",
            f"{' and '.join(one.name for one in several)} are both given, but a run evaluates one target",
            "keep one of agentEndpoint, agentFunction, target and model",
            problems=[one.build_problem("is given here") for one in several if one.file is not None],
        )
    if choice.endpoint is not None:
        where = choice.sources.get_source("agentEndpoint")
        settings = _build_endpoint_settings(choice.endpoint, choice.protocol, where)
        return ResolvedTarget(settings, Redactor(), problem=lambda message, _: where.build_problem(message))
    if choice.function is not None:
        from eval_gate.targets.function import FunctionSettings

        where = choice.sources.get_source("agentFunction")
        name = choice.function.rpartition(":")[2]
        function = FunctionSettings.model_validate({"name": name, "function": choice.function})
        return ResolvedTarget(function, Redactor(), problem=lambda message, _: where.build_problem(message))
    if choice.protocol is not None:
        raise GateError(
            "unknown-value",
            "agentProtocol (--agent-protocol) needs agentEndpoint",
            "add --agent-endpoint URL; a target of a list has its own `protocol`",
            problems=[choice.sources.get_source("agentProtocol").build_problem("is given without agentEndpoint")],
        )
    if choice.provider is not None or choice.model is not None:
        model = _parse_short_form(choice)
        entry: dict[str, JsonValue] = {"name": model.name, "provider": model.provider, "model": model.model}
        entry["baseUrl"] = model.base_url.open() if model.base_url else None
        return ResolvedTarget(
            model,
            Redactor(),
            entry=Secret(entry),
            problem=lambda message, key: _locate_model_problem(choice, message, key),
        )
    return None


def _locate_model_problem(choice: TargetChoice, message: str, key: str | None) -> Problem:
    """Build a problem with the setting `key` of a model in short form, at the place where it is or is missing."""
    main = "provider" if choice.model is None else "model"
    return choice.sources.build_problem(message, key if key and key in SETTINGS else main, main)


def _build_endpoint_settings(url: SecretAddress[str], preset: PresetName | None, where: SettingSource) -> HttpSettings:
    """Build the settings of an HTTP target for the agent at `url`; `where` is the source of the address."""
    try:
        to_public_url(url.open())
        described = {"name": ENDPOINT_NAME, "url": url.open()} | ({} if preset is None else {"agentProtocol": preset})
        return HttpSettings.model_validate(described).set_places({"url": "agentEndpoint"})
    except (GateError, ValidationError) as error:
        wrong = error.message if isinstance(error, GateError) else describe_error(list_errors(error)[0])
        hint = error.hint if isinstance(error, GateError) else f"{PAGES}/targets.md describes valid URLs"
        message = "the agent's URL cannot be used"
        raise GateError("invalid-url", message, hint, problems=[where.build_problem(wrong)]) from error


_CHOICE_FIELDS = {"agentEndpoint": "endpoint", "agentFunction": "function", "target": "name", "model": "model"}
"""Keys that name a target, with their field in a choice."""


def _parse_short_form(choice: TargetChoice) -> ModelSettings:
    provider, colon, model = (choice.model or "").partition(":")
    described: dict[str, JsonValue] = {"provider": choice.provider, "model": choice.model}
    if choice.provider is None and colon and is_model_provider(provider):
        described = {"provider": provider, "model": model}
    elif choice.provider is None:
        described["provider"] = "model"
    if choice.base_url:
        described["baseUrl"] = choice.base_url.open()
    name = ":".join(str(part) for part in (described["provider"], described["model"]) if part)
    values = {key: value for key, value in described.items() if value is not None}
    try:
        return build_model_settings(name, values)
    except GateError as error:
        error.problems = tuple(_locate_model_problem(choice, one.message, one.field) for one in error.problems)
        raise


def build_model_settings(
    name: str, described: Mapping[str, JsonValue], hint: str = "use --provider with --model, or a targets file"
) -> ModelSettings:
    """Build the settings of a model in short form. Raises GateError, with this hint, if they describe no model."""
    try:
        return ModelSettings.model_validate({"name": name, **described})
    except ValidationError as error:
        problems = [
            Problem(describe_error(detail), field=to_camel_case(str(detail["loc"][0])) if detail["loc"] else None)
            for detail in list_errors(error)
        ]
        raise GateError(
            "invalid-targets",
            f"{describe_name(name)} does not describe a model",
            hint,
            problems=problems,
        ) from error
