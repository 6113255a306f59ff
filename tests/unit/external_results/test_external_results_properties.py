"""Properties of every reader, over each recorded file of another tool: what may not change what is read.

A file that a tool wrote is found, not listed: one that is added to `files/` is tried with all others.
"""

import csv
import io
import json
import re
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from eval_gate.config.settings import ResultsFormat, RunConfig
from eval_gate.errors import GateError
from eval_gate.external_results.format_detection import open_results
from eval_gate.external_results.loader import ExternalResults, load_external_results
from eval_gate.external_results.result_rows import FileFacts
from eval_gate.external_results.score_rules import ScoreRules
from eval_gate.model.execution import Status
from eval_gate.session.external_cases import build_case_result
from tests.support.tool_results import READABLE, REFUSED, copy_recorded, name_recorded

BY_ORDER = {"gotestsum-reruns.xml"}
"""Files in which only the order of results shows re-runs."""
TEXTS = [file for file in READABLE if file.suffix != ".eval"]


def load(file: Path) -> ExternalResults:
    return load_external_results([str(file)], ResultsFormat.AUTO, ScoreRules((), 0.7))


def summarize(found: ExternalResults) -> dict[tuple[str, str], Counter[Any]]:
    """What is read of each case, without places, times and the order of its executions."""
    return {
        tuple(key): Counter((row.status, row.response, row.prompt, row.error_kind, row.trial) for row in rows)
        for key, rows in found.cases.items()
    }


@pytest.mark.parametrize("file", READABLE, ids=name_recorded)
def test_reader__failing_execution_in_a_file__fails_its_case_or_makes_it_flaky(tmp_path, file) -> None:
    copy, failing = copy_recorded(file, tmp_path), set()
    with open_results(copy, copy.name, ResultsFormat.AUTO) as (known, readable):
        for row in known.load_reader()(readable, copy.name, FileFacts()):
            if row.status in {Status.FAILED, Status.ERROR}:
                failing.add(row.id)
    built = [build_case_result(rows, (), None, RunConfig(), max_reruns=6) for rows in load(copy).cases.values()]
    assert {case.id for case in built if not case.passed or case.flaky} >= failing


@pytest.mark.parametrize("file", REFUSED, ids=name_recorded)
def test_reader__file_that_is_kept_because_it_is_wrong__is_refused(tmp_path, file) -> None:
    with pytest.raises(GateError):
        load(copy_recorded(file, tmp_path))


def reverse_lists(document: Any) -> Any:
    """Reverse the list of cases of a document: the outermost lists of mappings."""
    if isinstance(document, list):
        return document[::-1]
    if not isinstance(document, dict):
        return document
    lists = {"testCases", "samples", "cases", "failures", "rows", "eval_case_results", "results", "events"}
    return {
        key: reverse_lists(value) if key in lists and isinstance(value, list | dict) else value
        for key, value in document.items()
    }


def reverse_xml(text: str) -> str:
    root = ET.fromstring(text)
    for parent in root.iter():
        children = [one for one in parent if one.tag.rpartition("}")[2] in {"testsuite", "testcase", "UnitTestResult"}]
        others = [one for one in parent if one not in children]
        parent[:] = [*others, *children[::-1]]
    return ET.tostring(root, encoding="unicode")


def reverse_rows(file: Path) -> None:
    """Write the rows of a file in the reverse order."""
    text = file.read_text(encoding="utf-8-sig")
    if file.suffix == ".jsonl":
        head, *lines = text.splitlines()
        keep = '"spec"' in head  # of OpenAI evals: the specification, then events
        text = "\n".join([head, *lines[::-1]] if keep else [*lines[::-1], head]) + "\n"
    elif file.suffix == ".csv":
        head, *rows = csv.reader(io.StringIO(text))
        out = io.StringIO()
        csv.writer(out).writerows([head, *rows[::-1]])
        text = out.getvalue()
    elif file.suffix == ".json":
        text = json.dumps(reverse_lists(json.loads(text)))
    else:
        text = reverse_xml(text)
    file.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("file", [file for file in TEXTS if file.name not in BY_ORDER], ids=name_recorded)
def test_reader__rows_in_another_order__are_read_as_the_same(tmp_path, file) -> None:
    copy = copy_recorded(file, tmp_path)
    before = summarize(load(copy))
    reverse_rows(copy)
    assert summarize(load(copy)) == before


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("file", TEXTS, ids=name_recorded)
def test_reader__file_in_another_encoding__is_read_as_the_same(tmp_path, file, encoding) -> None:
    copy = copy_recorded(file, tmp_path)
    before = load(copy)
    copy.write_bytes(copy.read_text(encoding="utf-8-sig").encode(encoding))
    if encoding == "utf-16" and before.format is ResultsFormat.AGENTV:
        with pytest.raises(GateError, match="cannot be read") as caught:
            load(copy)
        assert "is not UTF-8, as AgentV writes it" in str(caught.value.problems[0])
    else:
        assert summarize(load(copy)) == summarize(before)


CHANGING: dict[str, Callable[[str], str]] = {
    r"\b20\d\d-[01]\d-[0-3]\d([T ])[0-2]\d:[0-5]\d:[0-5]\d": lambda sign: f"2031-05-06{sign}07:08:09",
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-([0-9a-f]{12})\b": lambda end: str(
        uuid.uuid5(uuid.NAMESPACE_OID, end)
    ),
}
"""What is different in each run of a tool: times, and the ids that it draws."""


@pytest.mark.parametrize("file", TEXTS, ids=name_recorded)
def test_reader__times_and_ids_of_another_run__change_neither_cases_nor_the_tool(tmp_path, file) -> None:
    copy = copy_recorded(file, tmp_path)
    before = load(copy)
    text = copy.read_text(encoding="utf-8")
    for pattern, change in CHANGING.items():
        text = re.sub(pattern, lambda match, change=change: change(match[1]), text)
    copy.write_text(text, encoding="utf-8")
    after = load(copy)
    assert (after.tool, [tuple(key) for key in after.cases]) == (before.tool, [tuple(key) for key in before.cases])
    assert [row.content for row in after.rows] == [row.content for row in before.rows]
