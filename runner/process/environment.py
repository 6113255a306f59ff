"""What of our environment a foreign program gets to see: what programs need to work, and nothing that is a secret."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

ALLOWED: Final = frozenset(
    {
        # who and where
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "PWD", "HOSTNAME"),
        # language, time and terminal
        *("LANG", "LANGUAGE", "TZ", "TERM", "COLORTERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"),
        # the way to the network, and whom to trust on it
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FTP_PROXY"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
        # where languages find their parts
        *("VIRTUAL_ENV", "PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONDONTWRITEBYTECODE"),
        *("NODE_PATH", "NODE_ENV", "NODE_OPTIONS", "NVM_DIR", "GOPATH", "GOROOT", "CARGO_HOME", "RUSTUP_HOME"),
        *("JAVA_HOME", "DOTNET_ROOT", "GEM_HOME", "GEM_PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),
        # where desktop conventions put caches and settings
        *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"),
        # that nobody is watching
        "CI",
    }
)
"""Names that are passed on, whatever their case (proxies are also written in small letters), with every `LC_…`.

All others stay behind, whatever they are called: tokens (`GITHUB_TOKEN`, `ACTIONS_…`), keys (`…_API_KEY`), the action's
inputs (`INPUT_…`). A program that needs one of them is given it by name.
"""


def allowed(environment: Mapping[str, str], extra: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """The part of `environment` that every program gets, and `extra`: what this one is given by name."""
    kept = {name: value for name, value in environment.items() if _passes(name.upper())}
    return {**kept, **extra}


def _passes(name: str) -> bool:
    return name in ALLOWED or name.startswith("LC_")
