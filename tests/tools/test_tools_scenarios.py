"""What every tool goes through, by the workflow that its page shows: a red change, a flaky one, a tool that broke.

The steps of `examples/workflows/` are run by a shell, the tool really runs, and our step is the action in a job of the
fake GitHub. The agent is `tests/tools/agent/`: what a change breaks is what it answers.
"""

from __future__ import annotations

import re

import pytest

from tests.support.tools import WORKFLOWS, Repository, Tool, overview, plain, recipes

TABLE = [
    Tool("agentv", "agentv-results.yml", broke={"broke-config": "is empty", "broke-unreachable": "ECONNREFUSED"}),
    Tool("promptfoo", "promptfoo.yml", broke={"broke-config": "is not there", "broke-unreachable": "ECONNREFUSED"}),
    Tool(
        "vitest",
        "vitest-results.yml",
        broke={
            "broke-config": "is not there",
            "broke-import": "could not be loaded",
            "broke-unreachable": "ECONNREFUSED",
        },
    ),
]
"""One row a tool. A row needs its folder (see `Tool`), its page and its workflow."""
BROKEN = [(tool, way) for tool in TABLE for way in tool.broke]


@pytest.mark.parametrize("repository", TABLE, indirect=True, ids=str)
def test_change__the_agent_answers_wrong__is_red_and_quotes_both_answers(used: Repository) -> None:
    ended, comment = used.pull_request("broken")
    assert (ended.code, ended.outputs["regressions"]) == (1, "1"), used.said + ended.log
    assert "## ❌ Agent eval gate — 1 regression" in comment
    assert "refund" in comment
    assert "- Order 4711 is refunded." in comment
    assert "+ I cannot help with that." in comment


@pytest.mark.parametrize("repository", TABLE, indirect=True, ids=str)
def test_change__the_agent_answers_wrong_once__is_cleared_by_the_recipe_and_green(used: Repository) -> None:
    ended, comment = used.pull_request("flaky")
    assert ended.code == 0, used.said + ended.log
    assert "## ✅ Agent eval gate" in comment
    asked = (used.job.workspace / "asked.txt").read_text().splitlines()
    assert asked.count("Refund order 4711") > 1, "the tool was not run again"


@pytest.mark.parametrize(("repository", "way"), BROKEN, indirect=["repository"], ids=str)
def test_change__the_tool_breaks__is_undecided_and_says_why(used: Repository, way: str) -> None:
    ended, comment = used.pull_request(way)
    assert ended.code == 3, used.said + ended.log
    assert used.tool.broke[way] in used.said + ended.log + comment


@pytest.mark.parametrize("tool", TABLE, ids=str)
def test_recipe__of_the_page__is_that_of_the_workflow_and_of_the_overview(tool: Tool) -> None:
    (ran,) = recipes((WORKFLOWS / tool.workflow).read_text())
    assert ran in recipes(tool.page)
    shown = {plain(one) for several in overview().values() for one in several}
    assert set(recipes(tool.page)) <= shown
    assert len(re.findall("\n", tool.page)) <= 70, "a page is one screen"
