"""TLS certificates that this process trusts, shared by all HTTP clients, and the client of single requests."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ssl
    from collections.abc import MutableMapping

    import httpx

VARIABLE_NAMES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""The variables that name certificates: the first two for OpenSSL, httpx and aiohttp, the others for requests."""
CERTIFICATES_HINT: Final = "set the variable `SSL_CERT_FILE` to a file with the certificates of your own authority"


def share_certificates(variables: MutableMapping[str, str]) -> None:
    """Set the variables that clients look at to the certificates that one of them names; set ones stay."""
    certificates = next((variables[name] for name in VARIABLE_NAMES if variables.get(name)), None)
    if certificates is None:
        return
    if not (variables.get("SSL_CERT_FILE") or variables.get("SSL_CERT_DIR")):
        from pathlib import Path

        variables["SSL_CERT_DIR" if Path(certificates).is_dir() else "SSL_CERT_FILE"] = certificates
    if not (variables.get("REQUESTS_CA_BUNDLE") or variables.get("CURL_CA_BUNDLE")):
        variables["REQUESTS_CA_BUNDLE"] = certificates


def get_certificate_variable() -> str:
    """Return the variable that names certificates, for a message; the usual one if none is set."""
    return next((name for name in VARIABLE_NAMES if os.environ.get(name)), VARIABLE_NAMES[0])


@cache
def load_ssl_context() -> ssl.SSLContext:
    """Load the certificates of the environment, else of certifi, once: that takes 20 to 40 ms."""
    import httpx

    return httpx.create_ssl_context()


def build_async_client(url: str, silence_s: float | None, *, max_redirects: int = 0) -> httpx.AsyncClient:
    """Build the client of one request, which the caller limits; `silence_s` is the time in seconds without a byte."""
    import httpx

    secure = load_ssl_context() if max_redirects or url.lower().startswith("https:") else False
    return httpx.AsyncClient(
        timeout=silence_s, verify=secure, follow_redirects=max_redirects > 0, max_redirects=max_redirects
    )
