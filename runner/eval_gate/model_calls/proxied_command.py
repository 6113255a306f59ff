"""Run a command whose model calls go through a proxy, to its end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from eval_gate.errors import ExitCode, GateError
from eval_gate.model.model_recording import CallMode
from eval_gate.model_calls.call_proxy import ModelCallProxy
from eval_gate.model_calls.recording_file import CallRecording
from eval_gate.process.git import read_git_line
from eval_gate.process.run import ProcessError, start_in_front
from eval_gate.targets.http.forwarding import HOST
from eval_gate.targets.model.proxied_providers import ADDRESS_HINT, PROXIED, build_environment
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
    recording = CallRecording(file, mode, read_git_line(Path.cwd(), "rev-parse", "HEAD"))
    providers, without_keys = recording.description.providers, mode is CallMode.REPLAY
    if without_keys and not providers:
        hint = "record first: eval-gate record -- CMD"
        raise GateError("invalid-recording", f"the recording {file} does not exist, or is empty", hint)
    addresses = {
        name: os.environ.get(row.address_variable or "") or row.default_address or "" for name, row in PROXIED.items()
    }
    proxy = ModelCallProxy(recording, addresses, announce)
    try:
        async with proxy.listen(place[1], place[0]) as port:
            address = f"http://{HOST}:{port}"
            announce(f"Model calls through {address} are {_WORDS[mode]} {file}")
            code = await _run_command(
                command, build_environment(os.environ, address, providers, without_keys=without_keys)
            )
    finally:
        await proxy.aclose()
    counts = f"{format_count(proxy.calls, 'model call')}, {recording.added:,} of them recorded"
    announce(counts if proxy.calls else f"No model call came through the proxy: {ADDRESS_HINT}")
    if proxy.failure is not None:
        raise proxy.failure
    return ExitCode.INCOMPLETE if code == 0 and proxy.outside.miss else code


async def _run_command(command: Sequence[str], environment: dict[str, str]) -> int:
    """Run a command to its end, pass signals on to it, and return its exit code. Raises GateError."""
    try:
        child = start_in_front(command, environment)
    except ProcessError as error:
        raise GateError("command-not-started", error.message, "check the name and the path of the command") from error
    loop = asyncio.get_running_loop()
    with ExitStack() as stack:
        for number in _PASSED_ON:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup leaves it
                loop.add_signal_handler(number, child.send_signal, number)
                stack.callback(loop.remove_signal_handler, number)
        await child.exited.wait()
    return child.code if child.code >= 0 else _SIGNAL_EXIT_BASE - child.code
