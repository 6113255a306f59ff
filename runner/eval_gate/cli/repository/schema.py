"""`eval-gate schema KIND`: the JSON Schema of a file, for editors and for other programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated

import typer

from eval_gate.formats.names import DIALECTS
from eval_gate.text.quoting import quoted

KINDS = ("config", "run", "suite-result", *DIALECTS, "targets", "result-line", "judges")
"""The files that have a schema."""
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"Which file: {', '.join(KINDS)}.")],
) -> None:
    """Print the JSON Schema of a file: configuration, result, eval file, targets, judges, or a line for `judge`."""
    import json

    from eval_gate.cli.terminal.console import out
    from eval_gate.text.inert import TextForm

    out(json.dumps(schema_of(kind), indent=2, ensure_ascii=False), TextForm.JSON)


def _schema(kind: type) -> dict[str, object]:
    """Return the schema of what is read as this kind."""
    from msgspec.json import schema_components

    (top,), definitions = schema_components([kind], ref_template="#/$defs/{name}")
    name = str(top["$ref"]).rpartition("/")[2]
    return {**definitions.pop(name), "$defs": definitions}


def schema_of(kind: str) -> dict[str, object]:
    """The schema of one kind of file, as a document of its own. Raises GateError `unknown-value`."""
    from eval_gate.config.wire import json_schema as config_schema
    from eval_gate.errors import GateError, did_you_mean
    from eval_gate.formats.discovery import DIALECTS as FORMATS
    from eval_gate.gate.judge_comparisons import JudgesFile
    from eval_gate.model.result import RunResult, SuiteResult
    from eval_gate.result_formats.jsonl import ResultLine
    from eval_gate.targets.kinds import json_schema as targets_schema

    made: dict[str, Callable[[], Mapping[str, object]]] = {
        "config": config_schema,
        "run": partial(_schema, RunResult),
        "suite-result": partial(_schema, SuiteResult),
        **{name: dialect.json_schema for name, dialect in FORMATS.items()},
        "targets": targets_schema,
        "result-line": ResultLine.model_json_schema,
        "judges": partial(_schema, JudgesFile),
    }
    if kind not in made:
        what = f"there is no schema {quoted(kind)}{did_you_mean(kind, KINDS)}"
        raise GateError("unknown-value", what, f"allowed: {', '.join(KINDS)}")
    return {"$schema": DIALECT, **made[kind]()}
