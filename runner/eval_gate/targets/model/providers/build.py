"""A chat with a model of any provider. The providers' libraries are imported when one is built, never before."""

from __future__ import annotations

from collections.abc import Mapping

from eval_gate.errors import needing
from eval_gate.targets.model.chat import Chat
from eval_gate.targets.model.providers.credentials import credentials
from eval_gate.targets.model.settings import ModelSettings
from eval_gate.text.redact import Redactor


def build_chat(
    settings: ModelSettings, environment: Mapping[str, str], *, timeout_s: float, redact: Redactor | None = None
) -> Chat:
    """A chat with the model that is described; nothing is asked yet. `timeout_s` is for one whole request, in seconds.

    `redact` learns the key. Raises GateError for a key or an address that is missing or wrong, and for a provider that
    is not there.
    """
    access = credentials(settings, environment)
    redact = redact or Redactor()
    redact.include(access.redact)
    with needing("models", "asking a model"):
        from eval_gate.targets.model.providers.chat import ModelChat
        from eval_gate.targets.model.providers.models import build_model

        model = build_model(settings, access, timeout_s)
    return ModelChat(settings, model, redact=redact, timeout_s=timeout_s)
