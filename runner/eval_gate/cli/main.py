"""Entry point of `eval-gate`: streams, signals during start-up, and exit.

While the program loads, a signal may arrive or the machine may be exhausted. An import cannot handle exceptions
reliably, so a signal then ends the process at once, with its exit code. For the same reason, this module loads next to
nothing before it handles signals: `signal` alone would load `enum` and `re`.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn

    from eval_gate.errors import ExitCode

_SIGNAL_EXIT_BASE = 128
"""Difference of `ExitCode.INTERRUPTED` and `TERMINATED` to their signals' numbers; they are not loaded yet."""
_GC_THRESHOLD = 50_000
"""New objects before Python searches for cycles (there are none); its default of 700 costs 0.07 ms a case."""
_received_signals: list[int] = []
"""The signal that ends this process."""


def main() -> NoReturn:
    """Load the program, run it, and exit."""
    # otherwise the signal is to be ignored, as a shell does with SIGINT for background processes
    usual = {_signal.SIGINT: _signal.default_int_handler, _signal.SIGTERM: _signal.SIG_DFL}
    listening = [number for number, handler in usual.items() if _signal.getsignal(number) == handler]
    _exit_on_signals(listening)
    gc.set_threshold(_GC_THRESHOLD)
    code = _load_and_run(listening)
    _exit_on_signals(listening)
    # otherwise Python collects all loaded modules, and a run of one case takes 0.75 s of the processor instead of 0.55
    # (on a busy machine, in turns, 2026-11-27); the limit is 0.5 s on an idle one
    gc.freeze()
    sys.exit(_flush_streams(code))


def _load_and_run(listening: list[int]) -> int:
    try:
        from eval_gate.cli.terminal.standard_streams import open_streams

        open_streams()
        from eval_gate.process.memory_protection import protect_memory

        protect_memory()
        from eval_gate.files.certificates import share_certificates

        share_certificates(os.environ)
        from eval_gate.cli.program import run_program
        from eval_gate.process.orphans import mark_own_process

        mark_own_process()
    except (OSError, ImportError, MemoryError) as error:
        refused = _report_exhaustion(error)
        if refused is None:
            raise
        return refused
    return run_program(listening)


def _exit_on_signals(signals: list[int]) -> None:
    for number in signals:
        _signal.signal(number, _exit_now)


def _exit_now(number: int, _frame: FrameType | None) -> NoReturn:
    if _received_signals:  # while another signal is reported, whose message may never be read
        os._exit(_SIGNAL_EXIT_BASE + number)
    _received_signals.append(number)
    try:
        os.write(2, b"interrupted\n" if number == _signal.SIGINT else b"terminated (SIGTERM)\n")
    finally:  # also if standard error is closed: the exit code reports it too
        os._exit(_SIGNAL_EXIT_BASE + number)


def _flush_streams(code: int) -> int:
    """Flush the standard streams, and return `code`, or that of an exhausted resource: output may be on a full disk."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError as error:
        from eval_gate.errors import ExitCode

        return _report_exhaustion(error) or ExitCode.INCOMPLETE
    return code


def _report_exhaustion(error: Exception) -> ExitCode | None:
    from eval_gate.errors import find_exhaustion_error

    refusal = find_exhaustion_error(error)
    if refusal is None:
        return None
    sys.stderr.write(f"error[{refusal.code}]: {refusal.message}\n  hint: {refusal.hint}\n")
    return refusal.exit_code
