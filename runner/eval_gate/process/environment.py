"""Environment of a child process: common variables only, and no secrets."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final, Self

from eval_gate.struct import FrozenStruct

_NAME: Final = re.compile(r"(?<![A-Za-z0-9_])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?![A-Za-z0-9_])")
"""A word that looks like a variable, in the output of a program."""
_SECRET_NAME: Final = re.compile(
    r"(?:^|[_-])(?:API)?(?:KEYS?|TOKENS?|SECRETS?|PASSWORDS?|PASSWD|PWD|PASSPHRASE|PASS|PAT|CREDENTIALS?)(?:_\d+)?$"
)
_IN_SHELL: Final = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*))")
ALLOWED_NAMES: Final = frozenset(
    {
        # who and where
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "PWD", "HOSTNAME"),
        # language, time and terminal
        *("LANG", "LANGUAGE", "TZ", "TERM", "COLORTERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"),
        # proxies and certificates
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FTP_PROXY"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
        # where languages find their parts
        *("VIRTUAL_ENV", "PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONDONTWRITEBYTECODE"),
        *("NODE_PATH", "NODE_ENV", "NODE_OPTIONS", "NVM_DIR", "GOPATH", "GOROOT", "CARGO_HOME", "RUSTUP_HOME"),
        *("JAVA_HOME", "DOTNET_ROOT", "GEM_HOME", "GEM_PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),
        # where desktop conventions put caches and settings
        *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"),
        # no terminal, no person
        "CI",
        # GitHub's runner ends leftover processes by it
        "RUNNER_TRACKING_ID",
    }
)
"""Names that are passed on, whatever their case (proxies are also written in small letters), with every `LC_…`.

All others are withheld: tokens (`GITHUB_TOKEN`, `ACTIONS_…`), keys (`…_API_KEY`), the action's inputs (`INPUT_…`). A
program gets one of them only by its name.
"""


def filter_environment(
    environment: Mapping[str, str], extra: Mapping[str, str] = MappingProxyType({}), names: Collection[str] = ()
) -> dict[str, str]:
    """Return the allowed part of `environment` and the variables in `names`, both overridden by `extra`."""
    allowed = {name: value for name, value in environment.items() if _is_allowed(name.upper()) or name in names}
    return {**allowed, **extra}


class WithheldVariables(FrozenStruct):
    """Names of variables that are set here but withheld from a program."""

    names: frozenset[str] = frozenset()

    @classmethod
    def from_environment(cls, environment: Collection[str], names: Collection[str]) -> Self:
        """Withhold all variables of the environment but `names`."""
        return cls(frozenset(environment) - frozenset(names))

    def find_hint(self, command: str, output: str) -> str | None:
        """Suggest a fix if the command or output of a failed program names a withheld variable; else None."""
        words = [match[1] or match[2] for match in _IN_SHELL.finditer(command)] + _NAME.findall(output)
        name = next((word for word in words if word in self.names), None)
        if name is None:
            return None
        return f"{name} is set here, but commands do not get it: add it to passEnv or to the target's env"


def find_secrets(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of variables with names such as `OPENAI_API_KEY`, but for those that every program gets."""
    return tuple(
        value for name, value in environment.items() if _SECRET_NAME.search(name.upper()) and not is_always_passed(name)
    )


def is_always_passed(name: str) -> bool:
    """Whether every program gets this variable, which therefore holds no secret."""
    return _is_allowed(name.upper())


def _is_allowed(name: str) -> bool:
    return name in ALLOWED_NAMES or name.startswith("LC_")
