"""Keeps secrets out of everything that is shown or stored."""

from __future__ import annotations

from collections.abc import Iterable

MASK = "***"
MIN_LENGTH = 4
"""Shorter values are words that occur everywhere; masking them would only garble messages."""


class Redactor:
    """Replaces known secret values in texts. Never shows them itself."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # longest first: a secret that contains another one is masked as a whole
        self._secrets = sorted({secret for secret in secrets if len(secret) >= MIN_LENGTH}, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """The text without the secrets."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text

    def __repr__(self) -> str:
        return f"Redactor({len(self._secrets)} secrets)"
