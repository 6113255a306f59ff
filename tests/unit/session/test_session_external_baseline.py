"""What a baseline names: a stored run, results of another tool, or nothing."""

import json
from pathlib import Path

import pytest

from eval_gate.session.external_run import is_external_reference
from tests.support.tool_results import FILES

RUN = '{"schemaVersion": 1, "runId": "r"}'


@pytest.mark.parametrize(
    ("reference", "external"),
    [
        (None, False),
        ("latest", False),
        ("some-run", False),
        ("gone.xml", False),
        ("gone/*.xml", False),
        ("run.json", False),
        ("stored", False),
        ("empty", False),
        ("text.txt", False),
        ("odd.json", False),
        ("now.xml", True),
        ("now*.xml", True),
        ("folder", True),
        (str(FILES / "promptfoo-output.json"), True),
    ],
)
def test_is_external_reference__what_a_tool_wrote__is_some(tmp_path, monkeypatch, reference, external) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "run.json": RUN,
        "stored/run.json": RUN,
        "text.txt": "hello",
        "odd.json": json.dumps({"a": 1}),
        "now.xml": "<testsuite/>",
        "folder/r.xml": "<testsuite/>",
    }.items():
        file = Path(name)
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    Path("empty").mkdir()
    assert is_external_reference(reference) is external
