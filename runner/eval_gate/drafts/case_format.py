"""Common parts of the formats in which drafts are written: the case to write, and what a format cannot say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from eval_gate.drafts.expectations import DraftExpectation
from eval_gate.drafts.observation import Observation
from eval_gate.model.base import JsonValue
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import to_plain_word

NO_TOOL: Final = "no-tool"
"""Stands for the tool in the id of a case in which none is called."""
UNKNOWN_TOOLS: Final = "question"
"""Stands for the tool where the target does not say which tools it calls."""
_MAX_ID_WORD: Final = 60
_CAMEL_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
"""Where a word begins in `openingHours`."""


class DraftCase(FrozenStruct):
    """A draft to write: its id, the observation that it is made from, and what it expects."""

    id: str
    observation: Observation
    expectation: DraftExpectation


class DraftFormat(NamedTuple):
    """A format in which drafts are written."""

    name: str
    suffix: str
    """Suffix of its files that a hint proposes."""
    suffixes: tuple[str, ...]
    id_prefix: str
    has_earlier_messages: bool
    """Whether a case may have messages before its question."""
    build_case: Callable[[DraftCase], dict[str, JsonValue]]
    build_text: Callable[[Sequence[dict[str, JsonValue]]], str]
    """Builds the text of a file with these cases."""


class CaseNumbering:
    """Numbers the cases of each tool: `gs-get-weather-001`."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._counts: Counter[str] = Counter()

    def build_id(self, expectation: DraftExpectation, observation: Observation) -> str:
        """Build the id of the next case, after the first tool that it calls."""
        called = observation.responses[0].tool_calls if observation.responses else ()
        name = _CAMEL_HUMP.sub("-", called[0].name).replace("_", "-") if called else ""
        word = to_plain_word(name).strip("-.").lower()
        if not called:
            word = NO_TOOL if expectation.has_tools else UNKNOWN_TOOLS
        word = word[:_MAX_ID_WORD] or "tool"
        self._counts[word] += 1
        return f"{self._prefix}{word}-{self._counts[word]:03}"
