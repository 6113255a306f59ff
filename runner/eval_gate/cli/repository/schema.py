"""`eval-gate schema KIND`: the JSON Schema of a file, for editors and for other programs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Kind(StrEnum):
    """The files that have a schema."""

    CONFIG = "config"
    RUN = "run"
    SUITE_RESULT = "suite-result"
    TOOL_FORGE = "tool-forge"
    AGENTV = "agentv"
    AGENT_EVALS = "agent-evals"
    TARGETS = "targets"
    RESULT_LINE = "result-line"


def schema(
    kind: Annotated[Kind, typer.Argument(help="Which file.")],
) -> None:
    """Print the JSON Schema of a file: a configuration, a result, an eval file, targets, or a line for `judge`."""
    import json

    from eval_gate.cli.terminal.console import Form, out

    out(json.dumps(schema_of(kind), indent=2, ensure_ascii=False), Form.JSON)


def schema_of(kind: Kind) -> dict[str, object]:
    """The schema of one kind of file, as a document of its own."""
    from eval_gate.config.wire import json_schema as config_schema
    from eval_gate.formats.discovery import DIALECTS
    from eval_gate.model.result import RunResult, SuiteResult
    from eval_gate.result_formats.jsonl import ResultLine
    from eval_gate.targets.kinds import json_schema as targets_schema

    match kind:
        case Kind.CONFIG:
            body = config_schema()
        case Kind.RUN:
            body = RunResult.model_json_schema(mode="serialization")
        case Kind.SUITE_RESULT:
            body = SuiteResult.model_json_schema(mode="serialization")
        case Kind.RESULT_LINE:
            body = ResultLine.model_json_schema()
        case Kind.TARGETS:
            body = targets_schema()
        case Kind.TOOL_FORGE | Kind.AGENTV | Kind.AGENT_EVALS:
            body = DIALECTS[kind.value].json_schema()
    return {"$schema": DIALECT, **body}
