"""Runs one shell command of trusted configuration and gives back what it prints, within limits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from eval_gate.process.captured import Mask
from eval_gate.process.run import Command, Finished, ProcessError, run

_QUOTED: Final = 1_000


class CommandError(Exception):
    """The command did not do its work; the message says how, and quotes the end of its stderr."""


async def run_command(
    command: str, folder: Path, environment: Mapping[str, str], *, time_limit_s: float, max_bytes: int, mask: Mask
) -> bytes:
    """What `command` prints to stdout. It is run by the shell in `folder` with this environment, without input.

    It is ended when it takes too long or prints too much. Raises CommandError.
    """
    try:
        finished = await run(
            Command(
                command,
                folder,
                environment,
                timeout_s=time_limit_s,
                max_output=max_bytes,
                end_when_cut=True,
                mask=mask,
            )
        )
    except ProcessError as error:
        raise CommandError(error.message) from error
    if finished.timed_out:
        raise CommandError(f"the command did not end within {time_limit_s:g} s{_last_words(finished)}")
    if finished.stdout.cut:
        raise CommandError(f"the command printed more than {max_bytes:,} bytes")
    if finished.code:
        raise CommandError(f"the command {finished.ending}{_last_words(finished)}")
    return finished.stdout.data


def _last_words(finished: Finished) -> str:
    """The end of stderr in one line, as the end of a sentence."""
    words = finished.stderr.last_words(_QUOTED)
    return f": {words}" if words else ""
