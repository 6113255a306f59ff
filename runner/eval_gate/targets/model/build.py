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
from eval_gate.targets.build import BuildContext
from eval_gate.targets.model.chat import Chat
from eval_gate.targets.model.model_client import ConcurrencyLimiter, ModelClient
from eval_gate.targets.model.providers.credentials import resolve_credentials
from eval_gate.targets.model.providers.provider_table import ModelProvider
from eval_gate.targets.model.settings import ModelSettings
from eval_gate.targets.model.suite_agent import SuiteAgentTarget
from eval_gate.targets.retry import build_retry_policy
from eval_gate.targets.setup import compute_setup
from eval_gate.text.quoting import describe_name, quote_name
from eval_gate.text.redaction import Redactor
from eval_gate.text.secret import Secret


def build(settings: ModelSettings, choice: TargetChoice, context: BuildContext) -> SuiteAgentTarget:
    """The model with its system prompt. Raises GateError for a prompt, a key or an address that is missing or wrong."""
    own = settings.system_prompt_path if not choice.system_prompt else None
    shown = settings.find_reference("systemPromptPath") or own or ""
    if own and (why := find_read_problem(own, root=context.root)):
        said = f"the system prompt {quote_name(shown)} {why}"
        raise GateError(
            "no-system-prompt", said, "name a file inside of it", problems=[Problem(said, field="systemPromptPath")]
        )
    prompt = _read_system_prompt(choice.system_prompt or own, shown if own else choice.system_prompt, context.root)
    return SuiteAgentTarget(settings, build_client(settings, choice, context), prompt, context.tools, home=context.home)


def build_client(settings: ModelSettings, choice: TargetChoice, context: BuildContext) -> ModelClient:
    """The model with its retries, its pace and the run's recording. Raises GateError as `build_chat`."""
    setup = compute_setup(settings, context.environment, context.redact)
    if context.is_replay and settings.api_key is None:
        settings = replace(settings, api_key=Secret("nobody-is-asked"))
    policy = build_retry_policy(settings, choice.max_retries)
    chat = build_chat(settings, context.environment, timeout_s=context.timeout_s, redact=context.redact)
    return ModelClient(
        chat,
        policy,
        ConcurrencyLimiter(choice.concurrency or settings.workers or 1),
        context.recording,
        context.redact,
        setup,
    )


def build_chat(
    settings: ModelSettings, environment: Mapping[str, str], *, timeout_s: float, redact: Redactor | None = None
) -> Chat:
    """A chat with the model that is described; nothing is asked yet. `timeout_s` is for one whole request, in seconds.

    `redact` learns the key. Raises GateError for a key or an address that is missing or wrong, for a provider that is
    not there, and `not-installed` where the libraries are missing.
    """
    check_provider(settings)
    access = resolve_credentials(settings, environment)
    redact = redact or Redactor()
    redact.include(access.redact)
    with require_extra("models", "asking a model"):
        from eval_gate.targets.model.providers.chat import ModelChat
        from eval_gate.targets.model.providers.models import build_model

        model = build_model(settings, access, timeout_s)
    return ModelChat(settings, model, redact=redact, timeout_s=timeout_s)


def check_provider(settings: ModelSettings) -> None:
    """Raises GateError for a provider that is not there, whose key would be asked for else, and `not-installed`."""
    if settings.provider is ModelProvider.MODEL:
        with require_extra("models", "asking a model"):
            from eval_gate.targets.model.providers.other_providers import check_provider_known

            check_provider_known(settings)


def _read_system_prompt(path: str | None, shown: str | None, root: Path) -> str | None:
    """What the file at `path` says; `shown` is how messages call it."""
    if path is None:
        return None
    shown = describe_name(shown or path)
    try:
        data = read_limited(root / path, PROMPT_BYTES)
        if len(data) > PROMPT_BYTES:
            raise GateError("no-system-prompt", f"the system prompt {shown} is larger than {PROMPT_BYTES:,} bytes")
        return data.decode("utf-8-sig").replace("\r\n", "\n")  # a checkout's line endings are nothing to tell a model
    except OSError as error:
        what = f"the system prompt {shown} cannot be read: {error.strerror}"
        raise GateError("no-system-prompt", what, "name an existing file") from error
    except UnicodeDecodeError as error:
        raise GateError("no-system-prompt", f"the system prompt {shown} is not UTF-8", "save it as UTF-8") from error
