"""Run a command whose model calls go through a proxy, to its end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from eval_gate.errors import ExitCode, GateError
from eval_gate.model.model_recording import CallMode
from eval_gate.model_calls.call_proxy import ModelCallProxy
from eval_gate.model_calls.recording_file import CallRecording
from eval_gate.process.git import read_git_line
from eval_gate.process.run import ProcessError, start_in_front
from eval_gate.targets.http.forwarding import HOST
from eval_gate.targets.model.proxied_providers import PROXIED, build_environment
from eval_gate.text.escape import format_count

_PASSED_ON: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SIGNAL_EXIT_BASE: Final = 128
_WORDS: Final = {
    CallMode.RECORD: "recorded in",
    CallMode.REPLAY: "replayed from",
    CallMode.REPLAY_OR_LIVE: "replayed from, or recorded in,",
}


async def run_proxied(
    command: Sequence[str], file: Path, mode: CallMode, place: tuple[str, int], announce: Callable[[str], None]
) -> int:
    """Run the command, and return its exit code, or 3 instead of 0 if a call of no execution got no answer.

    `place` is the address at which the proxy listens, and its port; 0 is a free one.

    Raises GateError for a recording, port or command that cannot be used, and for a file that could not be written.
    """
    commit = read_git_line(Path.cwd(), "rev-parse", "HEAD")
    recording = CallRecording(file, mode, commit)
    if mode is CallMode.REPLAY and not recording.count:
        hint = "record first: eval-gate record -- CMD"
        raise GateError("invalid-recording", f"the recording {file} does not exist, or is empty", hint)
    addresses = {
        name: os.environ.get(row.address_variable or "") or row.default_address or "" for name, row in PROXIED.items()
    }
    proxy = ModelCallProxy(recording, addresses, announce)
    try:
        async with proxy.listen(place[1], place[0]) as port:
            announce(f"Model calls through http://{HOST}:{port} are {_WORDS[mode]} {file}")
            environment = build_environment(
                os.environ,
                f"http://{HOST}:{port}",
                recording.description.providers,
                without_keys=mode is CallMode.REPLAY,
            )
            code = await _run_command(command, environment)
    finally:
        await proxy.aclose()
    counts = f"{format_count(proxy.calls, 'model call')}: {proxy.replayed:,} replayed, {proxy.recorded:,} recorded"
    announce(counts if proxy.calls else _NOTHING)
    if proxy.failure is not None:
        raise proxy.failure
    return ExitCode.INCOMPLETE if code == 0 and proxy.outside.misses else code


_NOTHING: Final = (
    "No model call came through the proxy. The command has to call its models at the addresses in "
    + ", ".join(row.address_variable or "" for row in PROXIED.values())
)


async def _run_command(command: Sequence[str], environment: dict[str, str]) -> int:
    """Run a command to its end, pass signals on to it, and return its exit code. Raises GateError."""
    try:
        child = start_in_front(command, environment)
    except ProcessError as error:
        raise GateError("command-not-started", error.message, "check the name and the path of the command") from error
    loop = asyncio.get_running_loop()
    numbers = [number for number in _PASSED_ON if signal.getsignal(number) is not signal.SIG_IGN]  # as nohup leaves it
    for number in numbers:
        loop.add_signal_handler(number, child.send_signal, number)
    try:
        await child.exited.wait()
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
    return child.code if child.code >= 0 else _SIGNAL_EXIT_BASE - child.code
