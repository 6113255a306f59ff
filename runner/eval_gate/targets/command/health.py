"""The health check of a command line target: once, before the first case, for all who wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from eval_gate.files.certificates import certificates
from eval_gate.process.environment import Withheld
from eval_gate.process.run import ProcessError
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.command.call import Caller, CommandCall, last_words
from eval_gate.targets.command.settings import CliSettings, HealthCheck
from eval_gate.targets.container import System, connection_hint, reachable_host
from eval_gate.text.escape import one_line
from eval_gate.text.redact import Redactor
from eval_gate.text.urls import public_url

DEFAULT_LIMIT_S: Final = 30.0
_EVAL_ID: Final = "healthcheck"


class Health:
    """Knows whether the target is well, once it was asked. What it finds holds for the whole run."""

    def __init__(
        self, settings: CliSettings, environment: Mapping[str, str], withheld: Withheld, redact: Redactor
    ) -> None:
        self._settings = settings
        self._environment = environment
        self._withheld = withheld
        self._redact = redact
        self._check = settings.healthcheck
        self._asking: asyncio.Task[str | None] | None = None

    async def ensure(self, folder: Path | None) -> None:
        """Raise TargetError (unreachable) unless the target is well. `folder`: that of the eval file, once it is known.

        A command that runs there is not asked before it is.
        """
        check = self._check
        if check is None:
            return
        if self._asking is None:
            cwd = self._cwd(check, folder)
            if check.type == "command" and cwd is None:
                return
            self._asking = asyncio.create_task(self._ask(check, cwd))
        # who waits may be cancelled, and the others still want to know
        reason = await asyncio.shield(self._asking)
        if reason is not None:
            raise TargetError(
                f"CLI healthcheck failed for '{self._settings.name}': {reason}",
                fault=TargetFault.UNREACHABLE,
                hint=self._hint(check),
            )

    async def aclose(self) -> None:
        """End a check that still runs."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    def _cwd(self, check: HealthCheck, folder: Path | None) -> Path | None:
        """Where its command runs; None while that is not known."""
        own = check.cwd or self._settings.cwd
        if own is not None and Path(own).is_absolute():
            return Path(own)
        return None if folder is None else folder / (own or ".")

    async def _ask(self, check: HealthCheck, cwd: Path | None) -> str | None:
        """Ask once, in at most the time that was set: None when all is well, else why it is not."""
        limit_s = check.timeout_seconds or self._settings.timeout_seconds or DEFAULT_LIMIT_S
        if check.url is not None:
            return await _ask_url(check.url.open(), limit_s)
        assert check.command_template is not None
        assert cwd is not None
        caller = Caller(
            check.command_template.open(), self._settings.files_format, self._environment, self._redact.data
        )
        try:
            called = await caller.call(CommandCall(_EVAL_ID, cwd, timeout_s=limit_s))
        except ProcessError as error:
            return error.message
        finished = called.finished
        if finished.timed_out:
            return f"the command did not end within {limit_s:g} s"
        if not finished.code:
            return None
        said = last_words(finished)
        missing = self._withheld.needed(check.command_template.open(), said)
        return f"the command {finished.ending}{said}{f'; {missing}' if missing else ''}"

    @staticmethod
    def _hint(check: HealthCheck) -> str | None:
        if check.url is None:
            return None
        return connection_hint(public_url(check.url.open()), None, System())


async def _ask_url(url: str, limit_s: float) -> str | None:
    """Ask the URL once: None when it answers 2xx, else what it does instead."""
    import httpx

    shown = public_url(url)
    try:
        address = httpx.URL(url)
        address = address.copy_with(host=reachable_host(address.host, System()))
        # certificates cost 20 ms: only for those who use them
        secure = certificates() if address.scheme == "https" else False
        async with (
            asyncio.timeout(limit_s),
            httpx.AsyncClient(timeout=None, verify=secure) as client,  # noqa: S113 (the line above is the limit)
            client.stream("GET", address) as answer,
        ):
            return None if answer.is_success else f"{shown} answered HTTP {answer.status_code}"
    except TimeoutError:
        return f"{shown} did not answer within {limit_s:g} s"
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"{shown}: {one_line(str(error), 300) or type(error).__name__}"
