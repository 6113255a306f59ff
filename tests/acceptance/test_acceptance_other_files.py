"""Files of other tools that nobody reads here: what is said of each, and the way on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.program import gate
from tests.support.tool_results import FILES

PROMPTFOO = """\
description: refunds
prompts: ["Answer {{question}}"]
providers: [{id: "openai:gpt-4o"}]
tests: [{vars: {question: hi}, assert: [{type: contains, value: hi}]}]
"""
AGENTV_5 = """\
name: refunds
providers: [llm]
prompts: ["{{ input }}"]
tests: [{id: a, vars: {input: hi}, assert: [greets]}]
"""
CONVERSATION = [{"invocation_id": "i", "user_content": {"role": "user", "parts": [{"text": "hi"}]}}]
ADK = {"eval_set_id": "home", "name": "x", "eval_cases": [{"eval_id": "c", "conversation": CONVERSATION}]}
BRAINTRUST = {"id": "r1", "_xact_id": "1", "input": "q", "expected": "a"}
OTHERS = {
    "promptfooconfig.yaml": (PROMPTFOO, "a promptfoo configuration", "promptfoo eval -c {file} -o out.json"),
    "shared tests.yaml": (
        PROMPTFOO.replace("[{vars", "file://tests.yaml  # [{vars"),
        "a promptfoo configuration",
        "promptfoo eval -c 'shared tests.yaml' -o out.json",
    ),
    "refunds.eval.yaml": (AGENTV_5, "an eval file of AgentV 5", "agentv eval {file} --output out"),
    "home.evalset.json": (json.dumps(ADK), "an eval set of ADK", "adk eval AGENT {file}"),
    "old.test.json": (
        '[{"query": "hi", "expected_tool_use": []}]',
        "an eval set of ADK",
        "eval-gate check AGENT/.adk/eval_history",
    ),
    "braintrust.jsonl": (
        json.dumps(BRAINTRUST),
        "an export of Braintrust",
        "docs/other-tools.md#own-results",
    ),
}

RESULTS = {
    "adk-cli.evalset_result.json": "a result of ADK",
    "azure-data.json": "a result of Azure AI Evaluation",
    "braintrust-spans.json": "a result of Braintrust",
    "braintrust-results.json": "a result of Braintrust",
    "langsmith-rows.json": "a result of LangSmith",
    "langsmith-table.json": "a result of LangSmith",
    "promptfoo-output.json": "a result of promptfoo",
    "promptfoo-output.jsonl": "a result of promptfoo",
    "deepeval-test-run.json": "a result of DeepEval",
    "inspect-log.json": "a log of Inspect",
    "pydantic-evals-report.json": "a report of pydantic-evals",
    "agentv-index.jsonl": "a result of AgentV",
}


@pytest.mark.rows_each("command")
@pytest.mark.parametrize("command", ["validate", "check"])
@pytest.mark.parametrize("name", OTHERS)
def test_file_of_another_tool__is_named_with_the_way_on(tmp_path, name, command) -> None:
    text, what, way = OTHERS[name]
    (tmp_path / name).write_text(text)
    done = gate(tmp_path, command, name)
    assert done.returncode == 2
    assert f"is {what}, which is not supported: " in done.stderr
    assert way.format(file=name) in done.stderr


def test_validate__results_of_another_tool__name_the_command_that_reads_them(tmp_path) -> None:
    for file, what in RESULTS.items():
        (tmp_path / file).write_bytes((FILES / file).read_bytes())
        done = gate(tmp_path, "validate", file)
        assert done.returncode == 2
        assert f"is {what}, which is not an eval file: compare it with `eval-gate check {file}`" in done.stderr


def test_check__a_result_in_another_form__recommends_no_command_that_was_typed(tmp_path) -> None:
    (tmp_path / "out.yaml").write_text("evalId: e\nresults:\n  results: []\n")
    done = gate(tmp_path, "check", "out.yaml")
    assert done.returncode == 2
    assert "out.yaml: is a result of promptfoo, but not in a form that is read\n" in done.stderr
    assert "eval-gate check" not in done.stderr


@pytest.mark.parametrize("file", ["jest.trx", "surefire-reruns.xml"])
def test_validate__results_in_xml__are_called_xml(tmp_path, file) -> None:
    (tmp_path / file).write_bytes((FILES / file).read_bytes())
    done = gate(tmp_path, "validate", file)
    assert done.returncode == 2
    assert "looks like XML, not like an eval file: expected a list `cases`" in done.stderr
    assert f"if it contains results, use `eval-gate check {file}`" in done.stderr


def test_run__configuration_of_promptfoo__names_the_way_on(tmp_path) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text(PROMPTFOO)
    done = gate(tmp_path, "run", "promptfooconfig.yaml", "--provider", "mock")
    assert done.returncode == 2
    assert "`promptfoo eval -c promptfooconfig.yaml -o out.json`), then `eval-gate check out.json`" in done.stderr
    assert "or write AgentV or tool-forge cases" in done.stderr


@pytest.mark.parametrize(
    ("name", "text", "looks"),
    [
        ("x.json", '{"a": 1, "b": 2}', 'a mapping in JSON with "a", "b"'),
        ("x.jsonl", '{"name": "a", "ok": true}\n{"name": "b", "ok": true}\n', 'a mapping in JSON with "name", "ok"'),
        ("x.json", '[{"id": "a", "status": "passed"}]', 'a list in JSON whose members have "id", "status"'),
        ("x.csv", "name,score\na,1\n", 'a table with the columns "name", "score"'),
        ("x.yaml", "jobs:\n  a: 1\n", 'YAML with "jobs"'),
        ("x.txt", "3 passed\n", "a text that is neither JSON nor XML nor a table"),
    ],
)
def test_judge__file_of_no_format__says_what_it_looks_like_and_how_to_insist(tmp_path, name, text, looks) -> None:
    (tmp_path / name).write_text(text)
    done = gate(tmp_path, "check", name)
    assert done.returncode == 2
    assert f"{name}: is not a supported format; it looks like {looks}\n" in done.stderr
    assert "--results-format" in done.stderr


def test_judge__format_that_is_insisted_on__says_what_the_file_lacks(tmp_path) -> None:
    lines = '{"name": "a", "status": "passed"}\n{"name": "b", "status": "failed"\n{"id": "c"}\n'
    (tmp_path / "x.jsonl").write_text(lines)
    done = gate(tmp_path, "check", "x.jsonl", "--results-format", "jsonl")
    assert done.returncode == 2
    assert [f"x.jsonl:{number}: " in done.stderr for number in (1, 2, 3, 4)] == [True, True, True, False]


def test_run__folder_with_evals_of_several_tools__runs_its_own(tmp_path: Path) -> None:
    """What is not ours is passed over, as all that a folder holds beside evals."""
    for name in ("promptfooconfig.yaml", "home.evalset.json", "refunds.eval.yaml"):
        (tmp_path / name).write_text(OTHERS[name][0])
    own = [{"id": "a", "input": {"message": "hi"}, "expect": {"responseContains": ["x"]}}]
    (tmp_path / "a.golden.json").write_text(json.dumps(own))
    (tmp_path / "eval-gate.json").write_text('{"targets": [{"name": "default", "provider": "mock", "response": "x"}]}')
    done = gate(tmp_path, "run", ".")
    assert done.returncode == 0, done.stderr
    assert "1 of 1 pass" in done.stdout


def test_validate__table_of_results__is_no_broken_json(tmp_path) -> None:
    (tmp_path / "my results.csv").write_text("id,status\na,passed\n")
    done = gate(tmp_path, "validate", "my results.csv")
    assert done.returncode == 2
    assert 'looks like a table with the columns "id", "status"' in done.stderr
    assert "if it contains results, use `eval-gate check 'my results.csv'`" in done.stderr


@pytest.mark.parametrize("name", ["home.evalset.json", "refunds.eval.yaml"])
def test_validate__evals_of_another_tool_in_a_folder__are_named(tmp_path, name) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / name).write_text(OTHERS[name][0])
    own = [{"id": "a", "input": {"message": "hi"}, "expect": {"responseContains": ["x"]}}]
    (tmp_path / "evals" / "ok.golden.json").write_text(json.dumps(own))
    done = gate(tmp_path, "validate", "evals")
    assert done.returncode == 0
    assert f"evals/{name} is {OTHERS[name][1]}, which is not supported: run it with " in done.stderr
