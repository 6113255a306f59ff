"""`eval-gate record` and `eval-gate replay`: a command whose model calls are recorded, or replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

import typer

from eval_gate.cli import options

if TYPE_CHECKING:
    from eval_gate.model.model_recording import CallMode

DEFAULT_RECORDING: Final = ".eval-gate/model-calls.jsonl"
_COMMAND: Final = options.argument("CMD", "Command to run, with its arguments, behind `--`.")
_RECORDING: Final = options.option(
    "File of recorded model calls.", "--recording", default=DEFAULT_RECORDING, metavar="FILE"
)
_PORT: Final = options.option("Port of the proxy.  [default: a free one]", metavar="N", min=1, max=65535)
_HOST: Final = options.option(
    "Address at which the proxy listens; 0.0.0.0 lets containers of this machine reach it.",
    default="127.0.0.1",
    metavar="ADDRESS",
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
    from eval_gate.model.model_recording import CallMode

    _run(command, recording, (host, port), CallMode.RECORD)


def replay(
    command: list[str] = _COMMAND,
    *,
    on_miss: str = options.option(
        "What a call that is not recorded gets: error, or live (the provider's answer, which is recorded).",
        default="error",
        metavar="KIND",
    ),
    recording: str = _RECORDING,
    port: int | None = _PORT,
    host: str = _HOST,
) -> None:
    """Run a command, and answer the model calls of its agent from a recording.

    No key and no network is needed. A call that is not in the recording is an evaluation error of its case, which names
    what differs. With `--on-miss live` only such calls are made, and recorded.

      eval-gate replay -- eval-gate run

    Exit codes: that of the command, but 3 instead of 0 if a call that belongs to no case is not recorded; 2 usage
    error, or the command cannot be started.
    """
    from eval_gate.errors import GateError, format_suggestion
    from eval_gate.model.model_recording import CallMode

    modes = {"error": CallMode.REPLAY, "live": CallMode.REPLAY_OR_LIVE}
    if on_miss not in modes:
        raise GateError("unknown-value", f"--on-miss is error or live{format_suggestion(on_miss, modes)}")
    _run(command, recording, (host, port), modes[on_miss])


def _run(command: list[str], recording: str, place: tuple[str, int | None], mode: CallMode) -> NoReturn:
    from pathlib import Path

    from eval_gate.cli.terminal.console import print_message
    from eval_gate.model_calls.proxied_command import run_proxied
    from eval_gate.process.signals import run_async

    raise typer.Exit(run_async(run_proxied(command, Path(recording), mode, (place[0], place[1] or 0), print_message)))
