"""Traces in results of other tools, which stay with their cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eval_gate.config.settings import ResultsFormat
from eval_gate.external_results.loader import load_external_results
from eval_gate.external_results.score_rules import ScoreRules

FILES = Path(__file__).parent / "files"


def read_traces(file: Path) -> list[str | None]:
    results = load_external_results([str(file)], ResultsFormat.AUTO, ScoreRules(pass_score=0.5))
    return [row.trace for row in results.rows]


FIRST = {
    "braintrust-spans.json": "d060e920d0d1225ea9dc0c9b5a8182ea",
    "inspect-log.json": "Fewow26CVDihk2HZ8xHnKW",
    "inspect-log.eval": "cCRB8RiFctBo8ptiMMTV84",
}


@pytest.mark.parametrize(("name", "first"), FIRST.items())
def test_read__file_of_a_tool_with_traces__each_case_has_its_own(name, first) -> None:
    traces = read_traces(FILES / name)
    assert first in traces
    assert len(set(traces)) == len(traces)
    assert None not in traces


def test_read_langsmith__rows_and_table__have_the_id_of_the_run_or_its_address(tmp_path) -> None:
    rows = json.loads((FILES / "langsmith-rows.json").read_text())
    assert read_traces(FILES / "langsmith-rows.json") == [row["run"]["id"] for row in rows]
    assert None not in read_traces(FILES / "langsmith-table.csv")
    for number, row in enumerate(rows):
        row["run"] |= {"trace_id": f"t{number}"} | ({"url": "https://smith.example/r"} if number == 0 else {})
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    assert read_traces(tmp_path / "rows.json")[:2] == ["https://smith.example/r", "t1"]


def test_read_promptfoo__trace_of_the_provider__is_that_of_the_case(tmp_path) -> None:
    document = json.loads((FILES / "promptfoo-output.json").read_text())
    first, second, *_ = document["results"]["results"]
    first["metadata"] |= {"traceId": "t0"}
    second["response"] |= {"metadata": {"traceId": "t1"}}
    (tmp_path / "output.json").write_text(json.dumps(document))
    assert read_traces(tmp_path / "output.json")[:2] == ["t0", "t1"]


@pytest.mark.parametrize("key", ["trace_id", "traceId"])
def test_read_jsonl__either_spelling__is_read(tmp_path, key) -> None:
    (tmp_path / "r.jsonl").write_text(json.dumps({"id": "a", "status": "failed", key: "t0"}))
    (tmp_path / "r.csv").write_text(f"id,status,{key}\na,failed,t0\n")
    assert [read_traces(tmp_path / name) for name in ("r.jsonl", "r.csv")] == [["t0"], ["t0"]]
