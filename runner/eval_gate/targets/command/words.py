"""The last words of a command that did not do its work."""

from __future__ import annotations

from typing import Final

from eval_gate.process.run import FinishedProgram
from eval_gate.text.escape import one_line
from eval_gate.text.foreign.quote import without_events

QUOTED: Final = 300
"""Characters of a program's words that a message holds."""
_LOOKED_AT: Final = 20_000
"""Bytes at the end of an output that are looked at for them."""


def last_words(finished: FinishedProgram) -> str:
    """The end of stderr, else of stdout, as the end of a sentence; nothing where nothing was said.

    Of events on stdout, where an answer may be in pieces, only the shapes are told.
    """
    words = _words(finished.stderr.data) or _words(without_events(finished.stdout.data[-_LOOKED_AT:]))
    return f": {words}" if words else ""


def _words(printed: bytes) -> str:
    text = printed[-_LOOKED_AT:].decode("utf-8", "replace")
    words = " ".join(one_line(text, _LOOKED_AT).split())
    return words if len(words) <= QUOTED else f"…{words[-QUOTED:].lstrip()}"
