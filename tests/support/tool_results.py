"""Results of other tools: the files that are kept, one of them changed, and what is read from them."""

import json
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
