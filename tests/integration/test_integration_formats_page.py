"""Pages about eval files, fields, hooks and pass rates: files there are valid, and the tables of keys are complete."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic.alias_generators import to_camel

from eval_gate.formats.document_reader import get_known_keys
from eval_gate.formats.tool_forge.file_model import Expect, ToolForgeCase
from eval_gate.model.case import Tier
from tests.integration.test_integration_run import ROOT, gate

PAGE = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
SHOWN = PAGE + "".join((ROOT / "docs" / f"{name}.md").read_text("utf-8") for name in ("fields", "hooks", "pass-rates"))
FILES = re.findall(r"`(evals/[\w.]+)`:\n\n```\w+\n(.*?)^```", SHOWN, re.MULTILINE | re.DOTALL)


def list_keys(section: str) -> set[str]:
    """List the keys that stand first in the rows of a section's tables."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]*`) \|", text, re.MULTILINE)
    return {key for cell in cells for key in re.findall(r"`(\w+)`", cell)}


def test_files__of_the_page__are_valid(tmp_path: Path) -> None:
    assert len(FILES) >= 6
    (tmp_path / "evals").mkdir()
    for name, text in FILES:
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = gate(tmp_path, "validate", "--strict")
    assert (done.returncode, "0 problems, 0 warnings" in done.stdout) == (0, True), done.stdout + done.stderr


def test_tables__of_the_page__name_all_assertions_and_tiers() -> None:
    assert {to_camel(name) for name in Expect.model_fields} - {"regexPattern"} == list_keys("Assertions")
    assert {tier.value for tier in Tier} == list_keys("Tiers")


def test_table__of_keys__names_all_of_a_case() -> None:
    head = PAGE.partition("| key of a case |")[2].partition("\n\n")[0]
    shown = {key for cell in re.findall(r"^\| (`[^|]*`) \|", head, re.MULTILINE) for key in re.findall(r"`(\w+)", cell)}
    assert get_known_keys(ToolForgeCase) == shown
