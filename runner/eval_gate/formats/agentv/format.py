"""AgentV eval files: conversations with what a good answer achieves, judged by models, commands and trajectories.

Source: agentv evaluation spec; agentv behaviour 1, 3, 6 and 13. Most of it is loaded when there is such a file.
"""

from __future__ import annotations

from typing import Final

from eval_gate.formats.agentv.lines import LINES, accompanies
from eval_gate.formats.agentv.recognising import recognises, speaks_of_cases
from eval_gate.formats.base import Dialect, Positions, ReadOptions, Source
from eval_gate.formats.documents import JSON, YAML
from eval_gate.model.base import JsonValue
from eval_gate.model.case import EvalSuite


def json_schema() -> dict[str, JsonValue]:
    """The JSON Schema of an eval file, by every name that its fields may have."""
    from eval_gate.formats.agentv.schema import file_schema

    return file_schema()


def load(document: JsonValue, positions: Positions, source: Source, reading: ReadOptions) -> EvalSuite:
    """The suite of this document; raises EvalFileError with every problem of the file at once."""
    from eval_gate.formats.agentv.suite import read

    return read(document, positions, source, reading)


DIALECT: Final = Dialect(JSON | YAML | LINES, recognises, load, json_schema, speaks_of_cases, accompanies)
