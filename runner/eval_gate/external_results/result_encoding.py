"""Encoding of a results file: readers get UTF-8, so that a name is read exactly or refused with its place.

A byte order mark decides, then XML's declaration; `--encoding` is for what is not UTF-8 and states nothing.
"""

from __future__ import annotations

import codecs
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from eval_gate.errors import GateError
from eval_gate.external_results.json_streaming import CUT_OFF
from eval_gate.external_results.result_rows import RowPlace
from eval_gate.text.untrusted.encoding_names import parse_encoding

_UTF_8: Final = "utf-8"
_CHUNK: Final = 1 << 20
_HEAD: Final = 1 << 10
_MARKS: Final = (
    (codecs.BOM_UTF8, _UTF_8),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins as UTF-16's does
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED: Final = re.compile(rb"\s*<\?xml\s[^>]{0,200}?\bencoding\s{0,9}=\s{0,9}[\"']([\w.:-]{1,40})[\"']")
_WIDE: Final = ("utf-16", "utf-32", "ucs", "iso-10646")
"""How encodings begin in which no declaration can be read as bytes of ASCII: a program converted such a file."""
_HINT: Final = (
    "save it as UTF-8, or name its encoding with --encoding or `resultsEncoding`, such as cp1252 of Excel's tables"
)


def decode_head(head: bytes, encoding: str | None = None) -> str:
    """Decode the beginning of a file to find its format, without what stands before its first sign."""
    try:
        name = parse_encoding(_find_stated_encoding(head) or encoding or _UTF_8)
    except ValueError:  # reading the file reports it
        name = _UTF_8
    return head.decode(name, "replace").lstrip("\ufeff \t\r\n")


@contextmanager
def open_as_utf8(file: Path, shown_as: str, encoding: str | None = None) -> Iterator[Path]:
    """Yield the file if it is UTF-8, else a copy that is, decoded as the file states or by `encoding`.

    Raises GateError with the place of what cannot be decoded.
    """
    with RowPlace(shown_as).name_errors():
        stated = _read_stated_encoding(file, shown_as)
        problem = _decode_file(file, shown_as, _UTF_8) if stated == _UTF_8 else None
    if problem is None and stated == _UTF_8:
        yield file
        return
    if problem is not None and encoding is None:
        raise problem
    with tempfile.NamedTemporaryFile(prefix="eval-gate-") as copy:
        problem = _decode_file(file, shown_as, stated if problem is None else encoding or _UTF_8, copy)
        if problem is not None:
            raise problem
        yield Path(copy.name)


def _read_stated_encoding(file: Path, shown_as: str) -> str:
    with file.open("rb") as stream:
        stated = _find_stated_encoding(stream.read(_HEAD))
    try:
        return parse_encoding(stated or _UTF_8)
    except ValueError as error:
        raise RowPlace(shown_as, 1).build_error(f"is in an unsupported encoding: {error}") from None


def _find_stated_encoding(head: bytes) -> str | None:
    """Return the encoding that a file's mark or declaration states, or None."""
    if marked := next((name for mark, name in _MARKS if head.startswith(mark)), None):
        return marked
    declared = match[1].decode().lower() if (match := _DECLARED.match(head)) else None
    return None if declared is None or declared.startswith(_WIDE) else declared


def _decode_file(file: Path, shown_as: str, encoding: str, copy: IO[bytes] | None = None) -> GateError | None:
    """Decode a whole file, and write it to `copy` in UTF-8. Return the error of the first byte that is no text."""
    decoder, line, fed = codecs.getincrementaldecoder(encoding)(), 1, 0
    with file.open("rb") as stream:
        while True:
            chunk = stream.read(_CHUNK)
            fed += len(chunk)
            try:
                text = decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                line += error.object[: error.start].decode(encoding, "ignore").count("\n")
                if not chunk:
                    return RowPlace(shown_as, line).build_incomplete_error(CUT_OFF)
                at = fed - len(error.object) + error.start
                what = f"is not {encoding.upper()}: byte {at + 1:,} is 0x{error.object[error.start]:02X}"
                return RowPlace(shown_as, line).build_error(what, _HINT)
            line += text.count("\n")
            if copy is not None:
                copy.write(text.encode())
            if not chunk:
                break
    if copy is not None:
        copy.flush()
    return None
