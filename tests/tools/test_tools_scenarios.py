"""What every tool goes through, by the workflow that its page shows: a red change, a flaky one, a tool that broke.

The steps of `examples/workflows/` are run by a shell, the tool really runs, and our step is the action in a job of the
fake GitHub. The agent is `tests/tools/agent/`: what a change breaks is what it answers.
"""

from __future__ import annotations

import re

import pytest

from tests.support.tools import WORKFLOWS, Repository, Tool, recipes

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
    Tool(
        "pytest",
        "pytest-results.yml",
        broke={"away": "Connection refused", "broke-crash": "did not finish", "broke-collection": "no_such_module"},
    ),
    Tool(
        "own-results",
        "own-results.yml",
        broke={"away": "Connection refused", "broke-script": "no result of an earlier step"},
    ),
    Tool(
        "pydantic-evals",
        "pydantic-evals-results.yml",
        broke={"away": "Connection refused", "broke-script": "no result of an earlier step"},
    ),
    Tool(
        "google-adk",
        "adk-results.yml",
        broke={
            "away": "Connection refused",
            "broke-config": "no result of an earlier step",
            "broke-import": "no result of an earlier step",
        },
        taken=("orders",),
    ),
    Tool(
        "azure-ai-evaluation",
        "azure-results.yml",
        broke={"away": "Connection refused", "broke-script": "no result of an earlier step"},
        taken=("data.jsonl",),
    ),
    Tool(
        "braintrust",
        "braintrust-results.yml",
        broke={"away": "Connection refused", "broke-script": "no result of an earlier step"},
    ),
    Tool(
        "langsmith",
        "langsmith-results.yml",
        broke={"away": "Connection refused", "broke-script": "no result of an earlier step"},
    ),
    Tool("deepeval", "deepeval-results.yml", broke={"away": "did not finish", "broke-import": "did not finish"}),
    Tool(
        "openai-evals",
        "openai-evals-results.yml",
        broke={"away": "has no final_report", "crash": "has no final_report", "broke-registry": "has no final_report"},
        taken=("registry",),
    ),
    Tool(
        "inspect",
        "inspect-results.yml",
        broke={"away": "Connection refused", "broke-import": "did not finish", "broke-killed": "did not finish"},
        taken=(".env",),
    ),
]
"""One row a tool. A row needs its folder (see `Tool`), its page and its workflow."""
PYTHON = [tool for tool in TABLE if (tool.folder / "requirements.txt").is_file()]
BROKEN = [(tool, way, said) for tool in TABLE for way, said in tool.broke.items()]


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


@pytest.mark.parametrize(("repository", "way", "said"), BROKEN, indirect=["repository"], ids=str)
def test_change__the_tool_breaks__is_undecided_and_says_why(used: Repository, way: str, said: str) -> None:
    ended, comment = used.pull_request(way)
    assert ended.code == 3, used.said + ended.log
    assert said in used.said + ended.log + comment


@pytest.mark.parametrize("repository", PYTHON, indirect=True, ids=str)
def test_change__the_agent_raises_on_one_case__is_not_green(used: Repository) -> None:
    ended, comment = used.pull_request("crash")
    assert ended.code in {1, 3}, used.said + ended.log
    assert "refund" in used.said + comment


@pytest.mark.parametrize("repository", PYTHON, indirect=True, ids=str)
def test_page__followed_in_an_empty_folder__passes_and_then_finds_the_worse_answer(used: Repository, tmp_path) -> None:
    says = used.newcomer(tmp_path)
    assert says("Order 4711 is refunded.") == 0, used.said
    assert says("I cannot.") == 1, used.said
    assert "REGRESSIONS (1): " in used.said


@pytest.mark.parametrize("tool", PYTHON, ids=str)
def test_page__its_code__is_what_the_repository_runs(tool: Tool) -> None:
    """The code that a page says to copy; what begins with a name of a file is an example, and is shown in part."""
    ours = "\n".join(file.read_text() for file in (tool.folder / tool.project).rglob("*.py"))
    shown = re.findall(r"```python\n(.*?)```", tool.page, flags=re.DOTALL)
    copied = [code for code in shown if not code.startswith("# ")]
    assert all(code in ours for code in copied), copied


@pytest.mark.parametrize("tool", TABLE, ids=str)
def test_recipe__of_the_page__is_that_of_the_workflow(tool: Tool) -> None:
    (ran,) = recipes((WORKFLOWS / tool.workflow).read_text())
    assert recipes(tool.page) == [ran]
    assert len(re.findall("\n", tool.page)) <= 70, "a section is one screen"
