"""Build a model target from its settings. Imports the libraries of providers on demand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from eval_gate.config.settings import TargetChoice
from eval_gate.errors import GateError, Problem, require_extra
from eval_gate.files.file_paths import find_read_problem
from eval_gate.files.reading import read_limited
from eval_gate.model.limits import PROMPT_BYTES
from eval_gate.struct import replace
from eval_gate.targets.build_context import BuildContext
from eval_gate.targets.model.chat import Chat
from eval_gate.targets.model.model_client import ModelClient
from eval_gate.targets.model.providers.provider_table import ModelProvider
from eval_gate.targets.model.settings import ModelSettings, resolve_credentials
from eval_gate.targets.model.target import ModelTarget
from eval_gate.targets.retry import LoadLimiter, build_retry_policy, build_shard_limiter
from eval_gate.targets.setup import compute_setup
from eval_gate.text.quoting import describe_name, quote_name
from eval_gate.text.redaction import Redactor
from eval_gate.text.secret import Secret


def build(settings: ModelSettings, choice: TargetChoice, context: BuildContext) -> ModelTarget:
    """Build a model target with its system prompt. Raises GateError for a wrong or missing prompt, key or address."""
    own = settings.system_prompt_path if not choice.system_prompt else None
    name = settings.find_reference("systemPromptPath") or own or ""
    if own and (why := find_read_problem(own, root=context.root)):
        message = f"the system prompt {quote_name(name)} {why}"
        raise GateError(
            "system-prompt-unreadable",
            message,
            "name a file inside the working directory",
            problems=[Problem(message, field="systemPromptPath")],
        )
    prompt = _read_system_prompt(choice.system_prompt or own, name if own else choice.system_prompt, context.root)
    client = build_client(settings, choice, context)
    client.limiter.rate = build_shard_limiter(choice.requests_per_minute, context.shards)
    return ModelTarget(settings, client, prompt, context.tools, home=context.home)


def build_client(settings: ModelSettings, choice: TargetChoice, context: BuildContext) -> ModelClient:
    """Build the client of a model for all cases and judges of a run. Raises the GateErrors of `build_chat`."""
    setup = compute_setup(settings, context.environment, context.redact)
    if context.is_replay and settings.api_key is None:
        settings = replace(settings, api_key=Secret("no-request-is-sent"))
    policy = build_retry_policy(settings, choice.max_retries)
    chat = build_chat(settings, context.environment, timeout_s=context.timeout_s, redact=context.redact)
    client = ModelClient(
        chat,
        policy,
        LoadLimiter(choice.concurrency or settings.workers or 1, of_provider=True),
        context.recording,
        context.redact,
        setup,
    )
    client.place = settings.find_place("model")
    return client


def build_chat(
    settings: ModelSettings, environment: Mapping[str, str], *, timeout_s: float, redact: Redactor | None = None
) -> Chat:
    """Build a chat with a model; `redact` learns the key. Raises GateError, also for missing libraries."""
    check_provider(settings)
    access = resolve_credentials(settings, environment)
    redact = redact or Redactor()
    redact.include(access.redact)
    with require_extra("models", "calling a model"):
        from eval_gate.targets.model.providers.chat import ModelChat
        from eval_gate.targets.model.providers.models import build_model

        model = build_model(settings, access, timeout_s)
    return ModelChat(settings, model, redact=redact, timeout_s=timeout_s)


def check_provider(settings: ModelSettings) -> None:
    """Check that the provider is known, before its key is looked up. Raises GateError, also for missing libraries."""
    if settings.provider is ModelProvider.MODEL:
        with require_extra("models", "calling a model"):
            from eval_gate.targets.model.providers.other_providers import check_provider_known

            check_provider_known(settings)


def _read_system_prompt(path: str | None, name: str | None, root: Path) -> str | None:
    if path is None:
        return None
    name = describe_name(name or path)
    try:
        data = read_limited(root / path, PROMPT_BYTES)
        if len(data) > PROMPT_BYTES:
            raise GateError(
                "system-prompt-unreadable", f"the system prompt {name} is larger than {PROMPT_BYTES:,} bytes"
            )
        return data.decode("utf-8-sig").replace("\r\n", "\n")  # a checkout's line endings are nothing to tell a model
    except OSError as error:
        what = f"the system prompt {name} cannot be read: {error.strerror}"
        raise GateError("system-prompt-unreadable", what, "name an existing file") from error
    except UnicodeDecodeError as error:
        raise GateError(
            "system-prompt-unreadable", f"the system prompt {name} is not UTF-8", "save it as UTF-8"
        ) from error
