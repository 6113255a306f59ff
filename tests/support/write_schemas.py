"""Writes schemas/*.schema.json from the models, so that editors can point at them."""

from __future__ import annotations

import json
from pathlib import Path

from eval_gate.cli.repository.schema import KINDS, build_document_schema

SCHEMAS = Path(__file__).parents[2] / "schemas"


def schema_files() -> dict[Path, str]:
    """Every schema file with its text."""
    return {
        SCHEMAS / f"{kind}.schema.json": json.dumps(build_document_schema(kind), indent=2, ensure_ascii=False) + "\n"
        for kind in KINDS
    }


if __name__ == "__main__":
    for file, text in schema_files().items():
        file.write_text(text, encoding="utf-8")
