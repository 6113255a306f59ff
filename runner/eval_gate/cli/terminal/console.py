"""Standard output and standard error: encoding, colour, wording of errors."""

from __future__ import annotations

import logging
import os
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Final, TextIO

from eval_gate import __version__
from eval_gate.errors import GateError, Problem
from eval_gate.text import safe_output
from eval_gate.text.safe_output import TextFormat

_SET_BY_CI: Final = (
    *("CI", "GITHUB_ACTIONS"),
    *("TF_BUILD", "JENKINS_URL", "TEAMCITY_VERSION", "CODEBUILD_BUILD_ID"),  # these systems do not set CI
)


class Verbosity(IntEnum):
    """Amount of output in addition to the result."""

    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


def is_ascii_only(stream: TextIO) -> bool:
    """Whether the stream cannot hold `✓` because of its encoding (Python uses UTF-8 in plain C locales)."""
    return not (stream.encoding or "").lower().replace("-", "").startswith("utf")


def should_colour(stream: TextIO) -> bool:
    """Whether to write colours: on a terminal, unless NO_COLOR is set (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def get_width(stream: TextIO) -> int:
    """Get the width of the stream: COLUMNS, or the width of its terminal, or 80."""
    from eval_gate.reports.console.style import DEFAULT_WIDTH, MIN_WIDTH

    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdecimal() and int(columns[:5]) > 0:
        return max(int(columns[:5]), MIN_WIDTH)
    try:
        wide = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):  # no terminal, or no file at all, as in a test
        wide = 0
    return max(wide or DEFAULT_WIDTH, MIN_WIDTH)


def is_in_ci() -> bool:
    """Whether this runs in a CI system, which sets `CI` or a variable of its own."""
    return any(os.environ.get(name) for name in _SET_BY_CI)


def print_output(text: str, form: TextFormat = TextFormat.TEXT, *, end: str = "\n") -> None:
    """Print to standard output: the only way to do so, so that no output controls a CI runner that reads its log.

    In CI, the text is neutralized unless standard output is a file. Its meaning for programs stays the same; text for
    people gets a blank. A file gets what `--output` would write.
    """
    if is_in_ci() and not _is_file(sys.stdout):
        text = _INERT[form](text)
    print(text, end=end, flush=True)


_INERT: Final[Mapping[TextFormat, Callable[[str], str]]] = {
    TextFormat.TEXT: safe_output.neutralize_text,
    TextFormat.JSON: safe_output.neutralize_json,
    TextFormat.MARKUP: safe_output.neutralize_markup,
}


def _is_file(stream: TextIO) -> bool:
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):  # no file at all, as in a test
        return False


def print_message(text: str) -> None:
    """Print one line for people on standard error, with invisible characters as marks."""
    text = safe_output.reveal_invisible(text)
    print(safe_output.neutralize_text(text) if is_in_ci() else text, file=sys.stderr, flush=True)


def print_progress(text: str) -> None:
    """Print what a command is doing on standard error, wrapped to its width."""
    from eval_gate.reports.console.style import wrap_parts

    begin = text[: len(text) - len(text.lstrip())]
    for line in wrap_parts(text.split(), get_width(sys.stderr), begin=begin, indent=f"{begin}  "):
        print_message(line)


def print_error(error: GateError) -> None:
    """Print the message of the error, every place it applies to, and the hint."""
    from eval_gate.reports.wording.problems import render_error

    for line in render_error(error):
        print_message(line)


def print_problems(problems: Sequence[Problem]) -> None:
    """Print each problem on its own line, up to a limit."""
    from eval_gate.reports.wording.problems import render_problems

    for line in render_problems(problems):
        print_message(line)


class _LineHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        for line in self.format(record).splitlines():
            print_message(_format_log_line(line))


def attach_log_handler(logger: logging.Logger) -> None:
    """Print what is logged to this logger, which is discarded otherwise."""
    logger.setLevel(logging.INFO)
    if not logger.handlers:
        logger.addHandler(_LineHandler())


def print_internal_error(error: Exception) -> None:
    """Print the traceback of an internal error, folded if the log supports that, and the message last."""
    import traceback

    folds = bool(os.environ.get("GITHUB_ACTIONS"))
    if folds:
        print("::group::Traceback", file=sys.stderr, flush=True)
    text = hide_keys("".join(traceback.format_exception(error)))
    print_message("".join(_format_log_line(line) + "\n" for line in text.splitlines()).rstrip())
    if folds:
        print("::endgroup::", file=sys.stderr, flush=True)
    print_message(
        f"error[internal-error]: internal error of eval-gate {__version__}: {type(error).__name__}. "
        "This says nothing about your change."
    )
    print_message("  hint: report this error with the traceback above")


def hide_keys(text: str) -> str:
    """Mask the values of variables whose names say that they are secrets."""
    from eval_gate.process.environment import find_secrets
    from eval_gate.text.redaction import Redactor

    return Redactor(find_secrets(os.environ))(text)


def _format_log_line(text: str) -> str:
    """Format untrusted text as one line of a log, without control characters or commands for a CI runner."""
    from eval_gate.text.escape import to_console_line

    return to_console_line(text)
