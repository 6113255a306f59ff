"""Bounded reading of the files that observations come from, and the errors that name a place in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from eval_gate.errors import PAGES, GateError, Problem
from eval_gate.files.file_paths import format_path
from eval_gate.files.reading import RefusedReadError, read_limited
from eval_gate.model.limits import DRAFT_LINE_BYTES, DRAFT_SOURCE_BYTES

DOCS: Final = f"{PAGES}/draft.md#other-sources"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")


class SourceLine(NamedTuple):
    """One line of a source that is not blank. `number` counts from 1."""

    number: int
    data: bytes


class SourceFile(NamedTuple):
    """Content of a source, and its file name for people."""

    shown_as: str
    data: bytes

    def iter_lines(self) -> Iterator[SourceLine]:
        """Yield every line that is not blank. Raises GateError for a line that is too long."""
        begin, number, size = 0, 0, len(self.data)
        while begin < size:
            number += 1
            end = self.data.find(b"\n", begin)
            end = size if end < 0 else end
            if end - begin > DRAFT_LINE_BYTES:
                raise build_source_error([Problem(f"is longer than {DRAFT_LINE_BYTES:,} bytes", self.shown_as, number)])
            line = self.data[begin:end].strip()
            if line:
                yield SourceLine(number, line)
            begin = end + 1


def read_source(path: Path) -> SourceFile:
    """Read a whole file without its byte order mark. Raises GateError if it cannot be read or is too large."""
    shown_as = format_path(path)
    try:
        data = read_limited(path, DRAFT_SOURCE_BYTES)
    except RefusedReadError as error:
        raise error.error from error
    except OSError as error:
        raise build_source_error([Problem(f"cannot be read: {error.strerror}", shown_as)]) from error
    if len(data) > DRAFT_SOURCE_BYTES:
        what = f"is larger than {DRAFT_SOURCE_BYTES:,} bytes"
        raise build_source_error([Problem(what, shown_as)], "use a part of it, such as its last 1,000 lines (`tail`)")
    if data.startswith(_UTF_16):
        data = data.decode("utf-16", "replace").encode()
    return SourceFile(shown_as, data.removeprefix(_BYTE_ORDER_MARK))


def build_source_error(problems: Sequence[Problem], hint: str | None = None) -> GateError:
    """Build the GateError `invalid-draft-source` for problems of a source."""
    what = "nothing can be drafted from this source"
    return GateError("invalid-draft-source", what, hint or f"{DOCS} shows what each source needs", problems=problems)
