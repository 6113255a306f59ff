"""AgentV grades the cases in tests/tools/agentv/grading, and its scores are those that are recorded there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.agentv_scores import checkout, given_by_agentv, record, recorded
from tests.support.tools import Tool
from tests.tools.conftest import installed_or_skip


def test_grading__agentv_of_today__gives_the_scores_that_are_recorded(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    installed = installed_or_skip(Tool("agentv", "agentv.yml"))
    project = checkout(tmp_path / "project")
    scores = given_by_agentv(installed / "node_modules" / "agentv" / "dist" / "cli.js", project)
    if request.config.getoption("--update-golden"):
        record(scores)
    assert scores == recorded()
