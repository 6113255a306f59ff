"""Key and address of a model: from its settings, or else from the variables of the provider."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from eval_gate.errors import GateError, Problem
from eval_gate.targets.model.providers.provider_table import ProviderRow
from eval_gate.targets.model.settings import ModelSettings
from eval_gate.text.redaction import Redactor
from eval_gate.text.secret import Secret
from eval_gate.text.urls import to_public_url

_RESOURCE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")


@dataclass(frozen=True, slots=True)
class Credentials:
    """Key and address of a provider. `base_url` None leaves the address to pydantic-ai."""

    api_key: Secret[str] | None
    base_url: str | None

    @property
    def sent_key(self) -> str | None:
        """The key, for the library that sends it."""
        return None if self.api_key is None else self.api_key.open()

    @property
    def redact(self) -> Redactor:
        """Masks the key."""
        return Redactor(filter(None, [self.sent_key]))


def resolve_credentials(settings: ModelSettings, environment: Mapping[str, str]) -> Credentials:
    """Find key and address in the settings or else in the vendor's own variables. Raises GateError."""
    row = settings.provider_row
    return Credentials(_find_api_key(settings, row, environment), _find_base_url(settings, row, environment))


def _find_api_key(settings: ModelSettings, row: ProviderRow, environment: Mapping[str, str]) -> Secret[str] | None:
    sources = [("apiKey", settings.api_key.open())] if settings.api_key else []
    sources += [(name, environment[name]) for name in row.key_variables if environment.get(name)]
    for source, value in sources:
        key = value.strip()
        if key and not (key.isascii() and key.isprintable()):
            # would end up in an error of the HTTP library, in a form that masking does not find
            raise GateError(
                "invalid-api-key",
                f"the key from {source} contains characters that no key has",
                "check it for line breaks",
            )
        if key:
            return Secret(key)
    elsewhere = settings.base_url or environment.get(row.address_variable or "")
    if row.keyless or (row.keyless_elsewhere and elsewhere):
        return None
    variables = row.key_variables
    raise GateError(
        "missing-api-key",
        f"no key for {settings.route[0]}: neither {' nor '.join(variables)} nor the target's apiKey is set",
        f"set {variables[-1]} from a secret, or write apiKey: ${{{{ NAME }}}} for the target {settings.name}",
    )


def _find_base_url(settings: ModelSettings, row: ProviderRow, environment: Mapping[str, str]) -> str | None:
    """Find the address of the provider without a slash at its end; the default address is returned unchanged."""
    if settings.place:
        key = "endpoint" if settings.endpoint else "baseUrl"
        try:
            return _normalize_url(settings.place.open(), key, row)
        except GateError as error:
            error.problems = (Problem(error.message.removeprefix(f"{key}: "), field=key),)
            raise
    variable = row.address_variable
    if variable and environment.get(variable):
        return _normalize_url(environment[variable], variable, row)
    if row.needs_address:
        raise GateError(
            "missing-endpoint",
            f"the target {settings.name} does not name an Azure resource: neither endpoint nor {variable} is set",
            "set the target's endpoint to the resource's URL or name",
        )
    return row.default_address


def _normalize_url(url: str, source: str, row: ProviderRow) -> str:
    """Normalize a URL without a slash at its end, and refuse one that may contain a secret."""
    url = url.strip()
    if row.address_of_name and _RESOURCE_NAME.fullmatch(url):
        url = f"https://{url}" if "." in url else row.address_of_name.format(url)
    try:
        plain = to_public_url(url) == url
    except GateError as error:
        raise GateError(error.code, f"{source}: {error.message}", error.hint) from error
    if not plain:
        raise GateError(
            "invalid-url", f"{source}: the URL has credentials, a query or a fragment", "put the key into apiKey"
        )
    return url.rstrip("/")
