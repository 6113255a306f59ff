"""`eval-gate record` and `eval-gate replay`: a command whose model calls are recorded, or replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NoReturn

import typer

from eval_gate.cli import options
from eval_gate.errors import GateError, format_suggestion
from eval_gate.model.model_recording import CallMode

_COMMAND: Final = options.argument("CMD", "Command to run, with its arguments, behind `--`.")
_RECORDING: Final = options.option(
    "File of recorded model calls.", "--recording", default=".eval-gate/model-calls.jsonl", metavar="FILE"
)
_PORT: Final = options.option("Port of the proxy.  [default: a free one]", metavar="N", min=1, max=65535)
_HOST: Final = options.option(
    "Address at which the proxy listens; 0.0.0.0 lets containers of this machine reach it.",
    default="127.0.0.1",
    metavar="ADDRESS",
)
_ON_MISS: Final = options.option(
    "What a call that is not recorded gets: error, or live (the provider's answer, which is recorded).",
    default="error",
    metavar="KIND",
)


def record(
    command: list[str] = _COMMAND, *, recording: str = _RECORDING, port: int | None = _PORT, host: str = _HOST
) -> None:
    """Run a command, and record what the models answer to its agent.

    The command is your agent, or `eval-gate run` with an agent that is a command. It calls its models with its own
    keys, at the addresses in OPENAI_BASE_URL, ANTHROPIC_BASE_URL and GOOGLE_GEMINI_BASE_URL. The file holds no keys:
    commit it, and replay it with `eval-gate replay`.

      eval-gate record -- eval-gate run

    Exit codes: that of the command; 2 usage error, or the command cannot be started.
    """
    _run(command, recording, (host, port or 0), CallMode.RECORD)


def replay(
    command: list[str] = _COMMAND,
    *,
    on_miss: str = _ON_MISS,
    recording: str = _RECORDING,
    port: int | None = _PORT,
    host: str = _HOST,
) -> None:
    """Run a command, and answer the model calls of its agent from a recording, without keys.

    A call that is not recorded is an evaluation error of its case, which names what differs. With `--on-miss live` only
    such calls are made, and recorded.

      eval-gate replay -- eval-gate run

    Exit codes: that of the command, but 3 instead of 0 if a call that belongs to no case is not recorded; 2 usage
    error, or the command cannot be started.
    """
    modes = {"error": CallMode.REPLAY, "live": CallMode.REPLAY_OR_LIVE}
    if on_miss not in modes:
        raise GateError("unknown-value", f"--on-miss is error or live{format_suggestion(on_miss, modes)}")
    _run(command, recording, (host, port or 0), modes[on_miss])


def _run(command: list[str], recording: str, place: tuple[str, int], mode: CallMode) -> NoReturn:
    from eval_gate.cli.terminal.console import print_message
    from eval_gate.model_calls.proxied_command import run_proxied
    from eval_gate.process.signals import run_async

    raise typer.Exit(run_async(run_proxied(command, Path(recording), mode, place, print_message)))
