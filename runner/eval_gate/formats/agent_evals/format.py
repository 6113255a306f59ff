"""Agent Evals suites: an agent with file tools, prompts for it, and assertions on its answers and files.

What reads them is loaded with the first suite: most runs have none.
"""

from __future__ import annotations

from typing import Final

from eval_gate.formats.base import Dialect, Positions, ReadOptions, Source
from eval_gate.formats.documents import JSON
from eval_gate.model.base import JsonValue
from eval_gate.model.case import EvalSuite


def recognises(document: JsonValue) -> bool:
    """An object with a list `cases`, and an `agent` or cases with `prompt` or `assertions`; tool-forge has `input`."""
    if not isinstance(document, dict) or not isinstance(document.get("cases"), list):
        return False
    cases = [case for case in document["cases"] if isinstance(case, dict)]  # type: ignore[union-attr]
    if any("input" in case or "expect" in case for case in cases):
        return False
    return isinstance(document.get("agent"), dict) or any("prompt" in case or "assertions" in case for case in cases)


def json_schema() -> dict[str, JsonValue]:
    """The JSON Schema of a suite file."""
    from eval_gate.formats.agent_evals import wire

    return wire.Suite.model_json_schema() | {"title": "Agent Evals suite"}


def load(document: JsonValue, positions: Positions, source: Source, reading: ReadOptions) -> EvalSuite:
    """The suite of this document; raises EvalFileError with every problem of the file at once."""
    from eval_gate.formats.agent_evals.reader import read

    return read(document, positions, source, reading)


DIALECT: Final = Dialect(JSON, recognises, load, json_schema)
