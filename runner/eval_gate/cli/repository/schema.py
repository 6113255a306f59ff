"""`eval-gate schema KIND`: prints the JSON Schema of a file."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial

import typer

from eval_gate.formats.dialect_names import DIALECT_NAMES
from eval_gate.text.quoting import quote_value

KINDS = ("config", "run", "suite-result", *DIALECT_NAMES, "targets", "result-line", "judges")
"""The files that have a schema."""
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(kind: str = typer.Argument(..., metavar="KIND", help=f"Kind of file: {', '.join(KINDS)}.")) -> None:
    """Print the JSON Schema of a file: configuration, result, eval file, targets, judges, or a line for `check`."""
    import json

    from eval_gate.cli.terminal.console import print_output
    from eval_gate.text.safe_output import TextFormat

    print_output(json.dumps(build_document_schema(kind), indent=2, ensure_ascii=False), TextFormat.JSON)


def _build_schema(kind: type) -> dict[str, object]:
    from msgspec.json import schema_components

    (top,), definitions = schema_components([kind], ref_template="#/$defs/{name}")
    for one in definitions.values():
        if "description" in one:  # a docstring: before Python 3.13 with its indentation
            one["description"] = inspect.cleandoc(str(one["description"]))
    name = str(top["$ref"]).rpartition("/")[2]
    return {**definitions.pop(name), "$defs": definitions}


def build_document_schema(kind: str) -> dict[str, object]:
    """Build the JSON Schema of one kind of file. Raises GateError `unknown-value` for an unknown kind."""
    from eval_gate.config.wire import build_json_schema as config_schema
    from eval_gate.errors import GateError, format_suggestion
    from eval_gate.external_results.jsonl import ResultLine
    from eval_gate.formats.discovery import DIALECTS as FORMATS
    from eval_gate.gate.judge_agreement import JudgesFile
    from eval_gate.model.result import RunResult, SuiteResult
    from eval_gate.targets.kinds import build_json_schema as targets_schema

    builders: dict[str, Callable[[], Mapping[str, object]]] = {
        "config": config_schema,
        "run": partial(_build_schema, RunResult),
        "suite-result": partial(_build_schema, SuiteResult),
        **{name: dialect.build_json_schema for name, dialect in FORMATS.items()},
        "targets": targets_schema,
        "result-line": ResultLine.model_json_schema,
        "judges": partial(_build_schema, JudgesFile),
    }
    if kind not in builders:
        what = f"no schema {quote_value(kind)}{format_suggestion(kind, KINDS)}"
        raise GateError("unknown-value", what, f"allowed: {', '.join(KINDS)}")
    return {"$schema": DIALECT, **builders[kind]()}
