"""Health check of a command target: runs once, before the first case."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from eval_gate.files.certificates import build_async_client
from eval_gate.process.environment import WithheldVariables
from eval_gate.process.run import ProcessError
from eval_gate.targets.agent_address import ContainerProbe, find_connection_hint, resolve_host
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.command.call import CommandCall, CommandRunner, format_output_tail
from eval_gate.targets.command.settings import CliSettings, HealthCheck
from eval_gate.text.escape import to_one_line
from eval_gate.text.redaction import Redactor
from eval_gate.text.urls import to_public_url

DEFAULT_LIMIT_S: Final = 30.0
_EVAL_ID: Final = "healthcheck"


class HealthChecker:
    """Health check that runs once and keeps its result for the whole run."""

    def __init__(
        self, settings: CliSettings, environment: Mapping[str, str], withheld: WithheldVariables, redact: Redactor
    ) -> None:
        self._settings = settings
        self._environment = environment
        self._withheld = withheld
        self._redact = redact
        self._check = settings.healthcheck
        self._asking: asyncio.Task[str | None] | None = None

    async def require_healthy(self, folder: Path | None) -> None:
        """Raise TargetError (unreachable) if the check fails. A command needs `folder`, that of the eval file."""
        check = self._check
        if check is None:
            return
        if self._asking is None:
            cwd = self._find_cwd(check, folder)
            if check.type == "command" and cwd is None:
                return
            self._asking = asyncio.create_task(self._run_check(check, cwd))
        # who waits may be cancelled, and the others still want to know
        reason = await asyncio.shield(self._asking)
        if reason is not None:
            url = check.url
            raise TargetError(
                f"CLI healthcheck failed for '{self._settings.name}': {reason}",
                fault=TargetFault.UNREACHABLE,
                hint=find_connection_hint(to_public_url(url.open()), None, ContainerProbe()) if url else None,
            )

    async def aclose(self) -> None:
        """End a check that still runs."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    def _find_cwd(self, check: HealthCheck, folder: Path | None) -> Path | None:
        """Where its command runs; None while that is not known."""
        own = check.cwd or self._settings.cwd
        if own is not None and Path(own).is_absolute():
            return Path(own)
        return None if folder is None else folder / (own or ".")

    async def _run_check(self, check: HealthCheck, cwd: Path | None) -> str | None:
        """Ask once, in at most the time that was set: None when all is well, else why it is not."""
        limit_s = check.timeout_seconds or self._settings.timeout_seconds or DEFAULT_LIMIT_S
        if check.url is not None:
            return await _check_url(check.url.open(), limit_s)
        assert check.command_template is not None
        assert cwd is not None
        caller = CommandRunner(
            check.command_template.open(), self._settings.files_format, self._environment, self._redact.mask_bytes
        )
        try:
            called = await caller.run_call(CommandCall(_EVAL_ID, cwd, timeout_s=limit_s))
        except ProcessError as error:
            return error.message
        finished = called.finished
        if finished.timed_out:
            return f"the command did not end within {limit_s:g} s"
        if not finished.code:
            return None
        said = format_output_tail(finished)
        missing = self._withheld.find_hint(check.command_template.open(), said)
        return f"the command {finished.ending}{said}{f'; {missing}' if missing else ''}"


async def _check_url(url: str, limit_s: float) -> str | None:
    """Ask the URL once: None when it answers 2xx, else what it does instead."""
    import httpx

    shown = to_public_url(url)
    try:
        address = httpx.URL(url)
        address = address.copy_with(host=resolve_host(address.host, ContainerProbe()))
        async with (
            asyncio.timeout(limit_s),
            build_async_client(url, None) as client,
            client.stream("GET", address) as answer,
        ):
            return None if answer.is_success else f"{shown} answered HTTP {answer.status_code}"
    except TimeoutError:
        return f"{shown} did not respond within {limit_s:g} s"
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"{shown}: {to_one_line(str(error), 300) or type(error).__name__}"
