"""A chat with a model of any provider. The providers' libraries are imported when one is built, never before."""

from __future__ import annotations

from collections.abc import Mapping

from runner.targets.chat import Chat
from runner.targets.model_settings import ModelSettings
from runner.targets.provider_credentials import credentials


def build_chat(settings: ModelSettings, environment: Mapping[str, str], *, timeout_s: float) -> Chat:
    """A chat with the model that is described; nothing is asked yet. `timeout_s` is for one whole request, in seconds.

    Raises GateError for a key or an address that is missing or wrong, and for a provider that is not there.
    """
    access = credentials(settings, environment)
    from runner.targets.provider_chat import ModelChat
    from runner.targets.provider_models import build_model

    return ModelChat(settings, build_model(settings, access, timeout_s), redact=access.redact, timeout_s=timeout_s)
