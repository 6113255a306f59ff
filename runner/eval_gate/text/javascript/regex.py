"""ECMAScript regular expressions with a time limit: `new RegExp(pattern, flags).test(text)`.

Eval files hold JavaScript's patterns, and they come from pull requests. The engine (`regress`) is faithful but has no
time limit and holds the interpreter lock, so it works in a process of its own that is ended when it takes too long.
"""

from __future__ import annotations

import asyncio
import json
import os
import struct
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from eval_gate.model import limits
from eval_gate.text.escape import truncate_text
from eval_gate.text.untrusted.surrogates import to_well_formed

MAX_PATTERN: Final = limits.PATTERN_CHARACTERS
"""Characters of a pattern."""
MAX_TEXT: Final = limits.MATCHED_CHARACTERS
"""Characters of a text that is searched."""
TIME_LIMIT_S: Final = limits.PATTERN_S
_START_LIMIT_S = 15.0
_MAX_PORTION: Final = 50_000
"""Characters of texts in one frame."""
_MAX_REPLY = 30_000_000
"""Bytes: twelve for a character that is escaped, of the longest text that is searched."""
_KNOWN_FLAGS = "dgimsuvy"
_INVALID: Final = "is not a valid pattern"
_MAX_SHOWN: Final = 120
"""Characters of a pattern in a sentence."""
_MAX_SHOWN_FLAGS: Final = 20
_ENVIRONMENT_NAMES = ("PATH", "LD_LIBRARY_PATH", "LANG", "SYSTEMROOT")
"""Variables of the worker's environment. Python needs `SYSTEMROOT` to start on Windows."""


def _build_command() -> tuple[str, ...]:
    """Build an isolated call by its file: neither the working directory nor PYTHONPATH decides what runs."""
    return sys.executable, "-I", str(Path(__file__).with_name("regex_worker.py"))


class PatternError(Exception):
    """A pattern that is invalid or exceeds the limits of time or size; the message says which."""


class PatternWorkerError(Exception):
    """The worker process for regular expressions could not be started."""


def find_pattern_problem(pattern: str, flags: str = "") -> str | None:
    """Explain in the engine's words why a pattern cannot be compiled; None if it can. It needs no worker."""
    from regress import Regex, RegressError

    try:
        _build_request(pattern, flags)
        Regex(to_well_formed(pattern), flags.replace("y", ""))
    except PatternError as error:
        return _format_problem(pattern, flags, error)
    except RegressError as error:
        return _format_problem(pattern, flags, f"{_INVALID}: {str(error)[:300]}")
    return None


def _format_problem(pattern: str, flags: str, what: object) -> str:
    return f"/{truncate_text(pattern, _MAX_SHOWN)}/{flags[:_MAX_SHOWN_FLAGS]} {what}"


class PatternMatcher:
    """Client of a worker process that matches ECMAScript patterns; starts it on first use."""

    def __init__(self, time_limit_s: float = TIME_LIMIT_S) -> None:
        self._time_limit_s = time_limit_s
        self._worker: asyncio.subprocess.Process | None = None
        self._one_at_a_time = asyncio.Lock()

    async def search(self, pattern: str, text: str, flags: str = "") -> bool:
        """Whether the pattern finds something. Raises PatternError, which quotes the pattern, PatternWorkerError."""
        if len(text) > MAX_TEXT:
            what = f"cannot search {len(text):,} characters: at most {MAX_TEXT:,}"
            raise PatternError(_format_problem(pattern, flags, what))
        try:
            reply = await self._send_request({**_build_request(pattern, flags), "text": text})
        except PatternError as error:
            raise PatternError(_format_problem(pattern, flags, error)) from None
        return bool(reply.get("found"))

    async def replace_matches(self, patterns: Sequence[str], texts: Sequence[str], by: str) -> list[str]:
        """Replace all matches with `by`; each portion has the time limit of one pattern. Raises as `search` does."""
        replaced: list[str] = []
        for portion in _iter_portions(texts):
            reply = await self._send_request({"patterns": [*patterns], "texts": [*portion], "by": by})
            assert isinstance(reply["texts"], list)
            replaced += map(str, reply["texts"])
        return replaced

    async def aclose(self) -> None:
        """End the process that matches; the next pattern would start another one."""
        async with self._one_at_a_time:
            await self._stop_worker()

    async def _send_request(self, request: dict[str, JsonValue]) -> dict[str, JsonValue]:
        async with self._one_at_a_time:
            worker = await self._ensure_worker()
            try:
                async with asyncio.timeout(self._time_limit_s):
                    reply = await _exchange_frames(worker, request)
            except TimeoutError:
                await self._stop_worker(kill=True)
                raise PatternError(f"took longer than {self._time_limit_s:g} s: the pattern backtracks") from None
            except (OSError, asyncio.IncompleteReadError, ValueError):
                await self._stop_worker()
                raise PatternError("needs too much memory") from None
            except asyncio.CancelledError:
                # the reply to this request would be read as that to the next one
                await self._stop_worker(kill=True)
                raise
        error = reply.get("error")
        if isinstance(error, str):
            raise PatternError(f"{_INVALID}: {error[:300]}")
        return reply

    async def _ensure_worker(self) -> asyncio.subprocess.Process:
        """Start the worker if none runs, until it is ready: its start does not count as matching time."""
        if self._worker is not None and self._worker.returncode is None:
            return self._worker
        try:
            self._worker = await asyncio.create_subprocess_exec(
                *_build_command(),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env=_build_environment(),
            )
            async with asyncio.timeout(_START_LIMIT_S):
                await _exchange_frames(self._worker, {"pattern": "", "flags": ""})
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            await self._stop_worker(kill=True)
            raise PatternWorkerError(f"the process that matches patterns does not start: {error}") from error
        return self._worker

    async def _stop_worker(self, *, kill: bool = False) -> None:
        """End the worker: it leaves by itself when its requests end, unless it is busy with a pattern."""
        worker, self._worker = self._worker, None
        if worker is not None:
            if kill:
                worker.kill()
            if worker.stdin is not None:
                worker.stdin.close()
            await worker.communicate()


def replace_matches_sync(patterns: Sequence[str], texts: Sequence[str], by: str) -> list[str]:
    """Replace matches as `PatternMatcher.replace_matches` does, but block. Raises PatternError for whatever fails."""

    async def replace() -> list[str]:
        matcher = PatternMatcher()
        try:
            return await matcher.replace_matches(patterns, texts, by)
        finally:
            await matcher.aclose()

    try:
        with ThreadPoolExecutor(1) as thread:  # the caller's own may be running a loop
            return thread.submit(asyncio.run, replace()).result()
    except PatternWorkerError as error:
        raise PatternError(str(error)) from error


def _iter_portions(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield portions of as many texts as one frame takes; a text that is too long for any stands alone."""
    portion: list[str] = []
    room = _MAX_PORTION
    for text in texts:
        if portion and len(text) > room:
            yield portion
            portion, room = [], _MAX_PORTION
        portion.append(text)
        room -= len(text)
    if portion:
        yield portion


def _build_environment() -> dict[str, str]:
    # others may read the environment of this process: it gets no variable that could hold a secret
    return {name: os.environ[name] for name in _ENVIRONMENT_NAMES if name in os.environ}


async def _exchange_frames(worker: asyncio.subprocess.Process, request: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Send one frame, read one frame. Non-ASCII travels as escapes, so a lone surrogate survives."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    frame = json.dumps(request).encode("ascii")
    worker.stdin.write(struct.pack(">I", len(frame)) + frame)
    await worker.stdin.drain()
    (size,) = struct.unpack(">I", await worker.stdout.readexactly(4))
    if size > _MAX_REPLY:
        raise ValueError("reply too large")
    reply: dict[str, JsonValue] = json.loads(await worker.stdout.readexactly(size))
    return reply


def _build_request(pattern: str, flags: str) -> dict[str, JsonValue]:
    """Build the request, and check the flags: the engine ignores unknown and repeated ones; JavaScript does not."""
    if len(pattern) > MAX_PATTERN:
        raise PatternError(f"has {len(pattern):,} characters: at most {MAX_PATTERN:,}")
    unknown = sorted(set(flags) - set(_KNOWN_FLAGS))
    if unknown or len(set(flags)) != len(flags) or {"u", "v"} <= set(flags):
        raise PatternError(f"has invalid flags: each of {_KNOWN_FLAGS} at most once, and not u with v")
    return {"pattern": pattern, "flags": flags}
