"""The AgentV dialect: how its eval files are recognized and loaded.

Source: agentv evaluation spec; agentv behaviour 1, 3, 6 and 13. Most of it is loaded when there is such a file.
"""

from __future__ import annotations

from typing import Final

from eval_gate.formats.agentv.detection import has_eval_in_name, recognize_document
from eval_gate.formats.agentv.jsonl_cases import JSONL, is_companion
from eval_gate.formats.base import Dialect, EvalSource, Positions, ReadOptions
from eval_gate.formats.documents import JSON, YAML
from eval_gate.model.base import JsonValue
from eval_gate.model.case import EvalSuite


def build_json_schema() -> dict[str, JsonValue]:
    """Build the JSON Schema of an eval file, with every name that its fields may have."""
    from eval_gate.formats.agentv.json_schema import build_file_schema

    return build_file_schema()


def load_suite(document: JsonValue, positions: Positions, source: EvalSource, reading: ReadOptions) -> EvalSuite:
    """Load the suite from this document. Raises EvalFileError with all problems of the file at once."""
    from eval_gate.formats.agentv.suite_reader import read_suite

    return read_suite(document, positions, source, reading)


DIALECT: Final = Dialect(
    JSON | YAML | JSONL, recognize_document, load_suite, build_json_schema, has_eval_in_name, is_companion
)
