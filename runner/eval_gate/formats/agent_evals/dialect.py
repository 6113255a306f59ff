"""The Agent Evals dialect: how its suites are recognized and loaded.

The reader is loaded with the first suite: most runs have none.
"""

from __future__ import annotations

from typing import Final

from eval_gate.formats.base import Broken, Dialect, EvalSource, Mine, Positions, ReadOptions, Recognition
from eval_gate.formats.documents import JSON
from eval_gate.model.base import JsonValue
from eval_gate.model.case import EvalSuite
from eval_gate.text.sources.validation_errors import describe_value


def is_agent_evals_suite(document: JsonValue) -> bool:
    """Return whether the document looks like an Agent Evals suite.

    It is an object with a list `cases`, and with an `agent`, or cases with `prompt` or `assertions`. No case has
    `input` or `expect`, which are fields of tool-forge.
    """
    if not isinstance(document, dict) or not isinstance(document.get("cases"), list):
        return False
    cases = [case for case in document["cases"] if isinstance(case, dict)]  # type: ignore[union-attr]
    if any("input" in case or "expect" in case for case in cases):
        return False
    return isinstance(document.get("agent"), dict) or any("prompt" in case or "assertions" in case for case in cases)


def recognize_document(document: JsonValue, *, is_named: bool) -> Recognition:
    """Recognize a document of Agent Evals, which has no file names of its own."""
    if is_agent_evals_suite(document):
        return Mine(is_certain=isinstance(document, dict) and isinstance(document.get("agent"), dict))
    if isinstance(document, dict) and isinstance(document.get("agent"), dict) and "cases" in document:
        cases = document["cases"]
        if not isinstance(cases, list):
            return Broken(f"`cases` must be a list, got {describe_value(cases)}")
    return None


def build_json_schema() -> dict[str, JsonValue]:
    """Build the JSON Schema of a suite file."""
    from eval_gate.formats.agent_evals import file_model

    return file_model.AgentEvalsSuite.model_json_schema() | {"title": "Agent Evals suite"}


def load_suite(document: JsonValue, positions: Positions, source: EvalSource, reading: ReadOptions) -> EvalSuite:
    """Load the suite from this document. Raises EvalFileError with all problems of the file at once."""
    from eval_gate.formats.agent_evals.suite_reader import read_suite

    return read_suite(document, positions, source, reading)


DIALECT: Final = Dialect(JSON, recognize_document, load_suite, build_json_schema)
