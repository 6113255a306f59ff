"""Detection of AgentV eval files, and of their version, by their keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Final

from eval_gate.errors import find_nearest
from eval_gate.formats.base import Broken, Mine, Recognition
from eval_gate.model.base import JsonValue

CASE_LIST_NAMES: Final = ("evalcases", "eval_cases", "cases", "tests")
"""Names of the list of cases, from the spec's to the newest."""
_UNIQUE_LIST_NAMES: Final = CASE_LIST_NAMES[:2]
"""Names of the list of cases that no other format has."""
_UNIQUE_FIELDS: Final = ("input_messages", "expected_outcome")
"""Fields of a case that no other format has."""
_SHARED_FIELDS: Final = ("input", "outcome", "criteria", "turns")
"""Fields of a case that another format may have too."""
_TURN_FIELDS: Final = ("input", "assertions", "assert", "expected_output")
"""Fields that no turn of another format has."""
_OTHER_FORMAT_FIELDS: Final = ("expect", "rubric", "prompt")
"""Fields that only cases of other formats have."""
PRE_V4_FIELDS: Final = ("input_messages", "expected_messages", "outcome")
"""Fields that AgentV's version 4 has under other names only."""
_V4_FIELDS: Final = ("criteria", "assertions", "assert", "turns")
"""Fields that version 1.6 does not have."""
_CASE_FILE_ENDINGS: Final = (".yaml", ".yml", ".jsonl", "/")
"""Endings of the names of files and folders of cases."""
_CERTAIN_FIELDS: Final = (*_UNIQUE_FIELDS, "criteria", "assertions", "assert")
"""Fields that mark a list of cases with an `id`, one of them in each, as a file of evals."""


def is_agentv_suite(document: JsonValue) -> bool:
    """Return whether the document looks like an AgentV suite.

    It is an object with a list `evalcases`, or with a list under a later name whose cases have for example
    `input_messages`, an outcome or both. The list may also be in another file that the document names.
    """
    return isinstance(document, dict) and find_list_name(document) is not None


def recognize_document(document: JsonValue, *, is_named: bool) -> Recognition:
    """Recognize a document of AgentV. A list of cases is a part of a suite that names its file."""
    if isinstance(document, dict) and (name := find_list_name(document)) is not None:
        cases = document[name]
        # the next version has `prompts`, and cases that look the same
        return Mine("prompts" not in document and isinstance(cases, list) and any(map(_is_certain_case, cases)))
    if isinstance(document, list) and any(_is_certain_case(one) for one in document):
        return Broken("a list of AgentV cases that no suite names: put the list under `tests`", is_part=True)
    if is_named:
        return Broken("its name says that it holds evals, but no list `tests` has cases with `id` and `input`")
    return None


def has_eval_in_name(file: PurePath) -> bool:
    """Whether a file has a name of AgentV's eval files, such as `desk.eval.yaml`."""
    return PurePath(file.stem).suffix.lower() == ".eval"


def _is_certain_case(value: JsonValue) -> bool:
    return isinstance(value, dict) and "id" in value and not value.keys().isdisjoint(_CERTAIN_FIELDS)


def find_list_name(document: Mapping[str, JsonValue]) -> str | None:
    """Return the name of the list of cases, even if misspelt; None if no key is a list of AgentV cases."""
    own = find_used_name(document, _UNIQUE_LIST_NAMES)
    if own is not None:
        return own
    if "agent" in document:  # Agent Evals
        return None
    tests = document.get(CASE_LIST_NAMES[-1])
    if isinstance(tests, str) and tests.endswith(_CASE_FILE_ENDINGS):
        return CASE_LIST_NAMES[-1]
    for name, value in document.items():
        if isinstance(value, list) and any(_is_case(one) for one in value) and find_nearest(name, CASE_LIST_NAMES):
            return name
    return None


def is_version_4(document: Mapping[str, JsonValue], name: str) -> bool:
    """Whether a file is of AgentV 4, by the names of its list and of its cases' fields."""
    cases = document.get(name)
    fields = {field for case in cases if isinstance(case, dict) for field in case} if isinstance(cases, list) else set()
    if not fields.isdisjoint(PRE_V4_FIELDS):
        return False
    return name == CASE_LIST_NAMES[-1] or not fields.isdisjoint(_V4_FIELDS)


def _is_case(value: JsonValue) -> bool:
    if isinstance(value, str):
        return value.startswith("file://")
    if not isinstance(value, dict):
        return False
    if any(name in value for name in _UNIQUE_FIELDS):
        return True
    if any(name in value for name in _OTHER_FORMAT_FIELDS):
        return False
    if isinstance(value.get("input"), dict):  # another format has such an input too
        return "id" in value and any(name in value for name in ("criteria", "assertions", "mode"))
    turns = value.get("turns")
    # a turn says whose it is
    is_own = "mode" in value or (isinstance(turns, list) and any(find_used_name(turn, _TURN_FIELDS) for turn in turns))
    return "id" in value and any(name in value for name in _SHARED_FIELDS if is_own or name != "turns")


def find_used_name(raw: JsonValue | Mapping[str, JsonValue], names: Sequence[str]) -> str | None:
    """Return the first of `names` that is a key of `raw`, or None."""
    return next((name for name in names if isinstance(raw, Mapping) and name in raw), None)
