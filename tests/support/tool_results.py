"""Results of other tools: the files that are kept, one of them changed, and what is read from them."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval_gate.config.score_rule import parse_score_rule
from eval_gate.config.settings import ResultsFormat
from eval_gate.errors import GateError
from eval_gate.external_results.loader import ExternalResults, load_external_results
from eval_gate.external_results.score_rules import ScoreRules
from eval_gate.model.execution import Status

FILES = Path(__file__).parents[1] / "unit" / "external_results" / "files"
_CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus"
_WRONG = {
    "promptfoo-junit.xml": "its names change when a test is added",
    "damaged-deflate.eval": "it is damaged",
    "small.eval": "it has no header",
    "unknown-encoding.xml": "nobody knows its encoding",
    "openai.jsonl": "it counts more events than it has",
}
"""Files that are kept because they are refused."""
_RECORDED = sorted(
    [file for file in FILES.iterdir() if file.is_file()]
    + [FILES / "agentv-5" / "summary.json"]
    + [file for kind in _CORPUS.glob("results-*") for file in kind.iterdir() if not (FILES / file.name).exists()]
)
READABLE = [file for file in _RECORDED if file.name not in _WRONG]
"""Every recorded file of another tool that can be read, found by where it is."""
REFUSED = [file for file in _RECORDED if file.name in _WRONG]
_NOT_LOADED = re.compile(r'<UnitTestResult[^>]*testName="b.jest.js".*?</UnitTestResult>|<Counters[^>]*>', re.DOTALL)
"""What makes `jest.trx` incomplete: a file of tests that could not be loaded."""
AUTO = ResultsFormat.AUTO
PASSED, FAILED, ERROR = Status.PASSED, Status.FAILED, Status.ERROR


def load(*names: str | Path, scores: tuple[str, ...] = (), pass_score: float | None = None) -> ExternalResults:
    """These files, found by what is in them."""
    paths = [str(FILES / name) for name in names]
    return load_external_results(paths, AUTO, ScoreRules(tuple(map(parse_score_rule, scores)), pass_score))


def statuses(brought: ExternalResults) -> dict[tuple[str, str], list[Status | None]]:
    """How the executions of each case ended."""
    return {tuple(key): [row.status for row in rows] for key, rows in brought.cases.items()}


def changed(tmp_path: Path, name: str, change: Callable[[Any], None]) -> Path:
    """One of the files with something else in it."""
    document = json.loads((FILES / name).read_text())
    change(document)
    file = tmp_path / name
    file.write_text(json.dumps(document))
    return file


def refused(*names: str | Path, **how: Any) -> GateError:
    """The error that reading these files raises."""
    with pytest.raises(GateError) as caught:
        load(*names, **how)
    return caught.value


def name_recorded(file: Path) -> str:
    """A recorded file, as a row of a test is called."""
    return file.name if file.parent == FILES else f"{file.parent.name}-{file.name}"


def copy_recorded(file: Path, folder: Path) -> Path:
    """A copy of a recorded file in a folder of its own, with the files that its rows name, and complete."""
    target = folder / "copy"
    if file.parent.name == "agentv-5":
        shutil.copytree(file.parent, target)
    else:
        target.mkdir()
        shutil.copy(file, target)
    copy = target / file.name
    if file.name == "jest.trx":
        copy.write_text(_NOT_LOADED.sub("", copy.read_text()))
    return copy
