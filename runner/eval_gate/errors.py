"""Errors for users: codes, messages, hints and locations, and the exit codes of the process."""

from __future__ import annotations

import difflib
import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from itertools import islice
from typing import Final

from eval_gate.struct import FrozenStruct, replace


class ExitCode(IntEnum):
    """Exit codes of the program (documented in docs/cli.md)."""

    PASSED = 0
    """The gate passed."""
    FAILED = 1
    """The gate failed by its policy."""
    USAGE = 2
    """Usage, configuration or input files are wrong: nothing was run."""
    INCOMPLETE = 3
    """The run could not be completed, so there is no verdict to believe."""
    INTERRUPTED = 130
    """SIGINT, after writing what was done."""
    TERMINATED = 143
    """SIGTERM, after writing what was done."""


class TerminatedError(KeyboardInterrupt):
    """SIGTERM, handled like SIGINT but with its own message and exit code."""


def get_signal_exit_code(error: KeyboardInterrupt) -> ExitCode:
    """Return the exit code of the signal that caused this interrupt."""
    return ExitCode.TERMINATED if isinstance(error, TerminatedError) else ExitCode.INTERRUPTED


class Problem(FrozenStruct):
    """One mistake at one place of a file.

    `file` is as the user wrote it, `line` counts from 1, `field` is a path such as `cases[2].expect.toolsCalled`.
    """

    message: str
    file: str | None = None
    line: int | None = None
    field: str | None = None

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        return ": ".join(part for part in (place, self.field, self.message) if part)


class GateError(Exception):
    """An error for a user: a stable code, a message, a hint, and the places it concerns.

    The command line prints it without a traceback and exits with `exit_code`.
    """

    def __init__(
        self,
        code: str,
        message: str,
        hint: str | None = None,
        *,
        problems: Sequence[Problem] = (),
        exit_code: ExitCode = ExitCode.USAGE,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.problems = tuple(problems)
        self.exit_code = exit_code

    def mask(self, redact: Callable[[str], str]) -> None:
        """Mask the secrets that `redact` knows."""
        self.message = redact(self.message)
        self.args = (self.message,)
        self.hint = None if self.hint is None else redact(self.hint)
        self.problems = tuple(
            replace(
                one,
                message=redact(one.message),
                file=one.file and redact(one.file),
                field=one.field and redact(one.field),
            )
            for one in self.problems
        )


ACTION_REF: Final = "main"
"""The branch or tag in examples, as in `uses: eval-gate/eval-gate@main`.

The first release changes it to its major tag, which does not exist before; `make action` then writes it everywhere.
"""
PAGES: Final = f"https://github.com/eval-gate/eval-gate/blob/{ACTION_REF}/docs"
"""Address of the pages that errors name: an installed package has none."""
_SOURCE: Final = f"git+https://github.com/eval-gate/eval-gate@{ACTION_REF}"
"""Source of the package for pip: no registry has it."""
_EXHAUSTED_RESOURCES: Final = {
    errno.EMFILE: ("too many files are open at once", "raise the limit, such as with `ulimit -n 1024`"),
    errno.ENFILE: ("too many files are open on this machine", "close other programs, then run again"),
    errno.ENOSPC: ("the disk is full", "free some space, then run again"),
    errno.EDQUOT: ("the disk quota is used up", "free some space, then run again"),
    errno.EFBIG: ("a file would exceed the allowed size", "raise the limit, such as with `ulimit -f`"),
    errno.ENOMEM: ("no memory is left", "run fewer cases at once: --concurrency"),
    errno.EAGAIN: ("no further process can be started", "raise the limit, such as with `ulimit -u`"),
}
"""What a machine may have no more of, in words, and what to do."""
_ERRNO_BY_MESSAGE: Final = {os.strerror(number): number for number in (errno.EMFILE, errno.ENFILE, errno.ENOMEM)}
"""The error of a library that could not be loaded has only words."""


@contextmanager
def treat_errors_as_incomplete() -> Iterator[None]:
    """In this block every GateError means that the run could not be completed."""
    try:
        yield
    except GateError as error:
        error.exit_code = ExitCode.INCOMPLETE
        raise


@contextmanager
def require_extra(extra: str, doing: str) -> Iterator[None]:
    """Turn a failed import inside the block into a GateError that names the missing extra.

    `extra` is the extra of the installation that provides the library. `doing` says what the library is needed for;
    the error message begins with it. Raises GateError `missing-extra` if the import fails.
    """
    try:
        yield
    except ImportError as error:
        raise GateError(
            "missing-extra",
            f"{doing} needs a library that is not installed: {error}",
            f"pip install 'agent-eval-gate[{extra}] @ {_SOURCE}', or [all]; "
            "the action's image has all extras, unless it was built for HTTP only",
        ) from error


def find_exhaustion_error(error: BaseException, what: str | None = None) -> GateError | None:
    """Return the GateError for an exhausted machine resource, or None for any other error.

    `what` names the operation that failed; the error message begins with it.
    """
    number = error.errno if isinstance(error, OSError) else errno.ENOMEM if isinstance(error, MemoryError) else None
    if isinstance(error, ImportError):
        number = next((number for words, number in _ERRNO_BY_MESSAGE.items() if words in str(error)), None)
    if number not in _EXHAUSTED_RESOURCES:
        return None
    words, hint = _EXHAUSTED_RESOURCES[number]
    message = f"{what}: {words}" if what else words
    return GateError("resource-exhausted", message, hint, exit_code=ExitCode.INCOMPLETE)


MAX_WORD_LENGTH: Final = 200
"""Characters of a word for which a near one is looked for. That costs a hundred times what reading it does."""
MAX_KNOWN_WORDS: Final = 1_000
"""Words among which it is looked for."""


def find_nearest(word: str, names: Iterable[str]) -> str | None:
    """Return the known word that `word` was probably meant to be, or None if none is close."""
    if len(word) > MAX_WORD_LENGTH:
        return None
    by_folded = {name.casefold(): name for name in islice(names, MAX_KNOWN_WORDS) if len(name) <= MAX_WORD_LENGTH}
    close = difflib.get_close_matches(word.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


def format_suggestion(word: str, names: Iterable[str]) -> str:
    """` (did you mean "x"?)`, or nothing when no known word is close."""
    match = find_nearest(word, names)
    return f' (did you mean "{match}"?)' if match else ""
