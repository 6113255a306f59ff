"""Whether a document is an AgentV eval file, by its shape."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from eval_gate.errors import nearest
from eval_gate.model.base import JsonValue

NAMES: Final = ("evalcases", "eval_cases", "cases", "tests")
"""Names of the list of cases, from the spec's to the newest."""
_OWN_NAMES: Final = NAMES[:2]
"""Names of the list of cases that no other format has."""
_OWN_FIELDS: Final = ("input_messages", "expected_outcome")
"""Fields of a case that no other format has."""
_FIELDS: Final = ("input", "outcome", "criteria", "turns")
"""Fields of a case that another format may have too."""
_OTHERS_FIELDS: Final = ("expect", "rubric", "prompt")
"""Fields of a case that make it one of another format."""
OLD_FIELDS: Final = ("input_messages", "expected_messages", "outcome")
"""Fields that AgentV's version 4 has under other names only."""
_NEW_FIELDS: Final = ("criteria", "assertions", "assert", "turns")
"""Fields that version 1.6 does not have."""
_CASE_FILES: Final = (".yaml", ".yml", ".jsonl", "/")
"""How the name of a file of cases, or of a folder of them, ends."""
_WORDS: Final = re.compile(rb"\b(?:evalcases|eval_cases|input_messages|expected_outcome|expected_messages|criteria)\b")


def recognises(document: JsonValue) -> bool:
    """An object with a list `evalcases` (or by a later name) of cases with `input_messages`, an outcome, or both."""
    return isinstance(document, dict) and list_name(document) is not None


def speaks_of_cases(data: bytes) -> bool:
    """Whether a file that cannot be read was probably meant to be one of this format."""
    return _WORDS.search(data) is not None


def list_name(document: Mapping[str, JsonValue]) -> str | None:
    """The name of the list of cases, also where it is misspelt; None where there is none of this format."""
    own = name_used(document, _OWN_NAMES)
    if own is not None:
        return own
    if "agent" in document:  # Agent Evals
        return None
    tests = document.get(NAMES[-1])
    if isinstance(tests, str) and tests.endswith(_CASE_FILES):
        return NAMES[-1]
    for name, value in document.items():
        if isinstance(value, list) and any(_is_case(one) for one in value) and nearest(name, NAMES):
            return name
    return None


def is_of_today(document: Mapping[str, JsonValue], name: str) -> bool:
    """Whether a file of this format is one of today's AgentV, by the names of its list and of its cases' fields."""
    cases = document.get(name)
    fields = {field for case in cases if isinstance(case, dict) for field in case} if isinstance(cases, list) else set()
    if not fields.isdisjoint(OLD_FIELDS):
        return False
    return name == NAMES[-1] or not fields.isdisjoint(_NEW_FIELDS)


def _is_case(value: JsonValue) -> bool:
    """Whether this is a case of this format, as far as one can see."""
    if isinstance(value, str):
        return value.startswith("file://")
    if not isinstance(value, dict):
        return False
    if any(name in value for name in _OWN_FIELDS):
        return True
    if any(name in value for name in _OTHERS_FIELDS):
        return False
    if isinstance(value.get("input"), dict):  # another format has such an input too
        return "id" in value and any(name in value for name in ("criteria", "assertions"))
    return "id" in value and any(name in value for name in _FIELDS)


def name_used(raw: JsonValue | Mapping[str, JsonValue], names: Sequence[str]) -> str | None:
    """The name under which a field stands in `raw`, where it does."""
    return next((name for name in names if isinstance(raw, Mapping) and name in raw), None)
