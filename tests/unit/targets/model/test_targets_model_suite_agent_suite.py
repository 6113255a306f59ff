"""Whole suites against a server that speaks as OpenAI does: loaded, asked with tools that work, and judged."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from eval_gate.config.settings import TargetChoice
from eval_gate.evaluators.agent_evals.table import TABLE
from eval_gate.evaluators.base import EvaluationContext, EvaluatorScore
from eval_gate.formats.agent_evals import dialect as agent_evals
from eval_gate.formats.base import EvalSource, ReadOptions
from eval_gate.model.case import EvalCase, EvalSuite
from eval_gate.model.conversation import Response
from eval_gate.sandbox.sandbox_setup import SandboxSetup
from eval_gate.targets.base import Request
from eval_gate.targets.build import build_model_settings
from eval_gate.targets.build_context import BuildContext
from eval_gate.targets.model.build import build_client
from eval_gate.targets.model.target import ModelTarget
from eval_gate.text.javascript.regex import PatternMatcher
from eval_gate.text.sources.json import parse_json
from eval_gate.text.tokens import TokenData
from tests.support.model_server import ModelServer, model_server, openai_answer

pytestmark = pytest.mark.slow  # the libraries of the vendors take a second to load

OUT, DATA = "agent-evals/tool-test-output.txt", "agent-evals/tool-test-data.json"
Outcome = tuple[Response, list[EvaluatorScore]]


def loaded(document: dict) -> EvalSuite:
    data = json.dumps(document).encode()
    parsed, positions = parse_json(data, "suites/s.json")
    source = EvalSource("suites/s.json", data, Path("suites/s.json"), Path())
    return agent_evals.load_suite(parsed, positions, source, ReadOptions(strict=True))


def run(suite: EvalSuite, server: ModelServer, folders: Path) -> dict[str, Outcome]:
    """Every case in order, with all of its assertions."""
    choice = TargetChoice()
    around = BuildContext(environment={}, root=folders)
    settings = build_model_settings(
        "gpt-5-mini",
        {"provider": "openai-compatible", "model": "gpt-5-mini", "baseUrl": f"{server.url}/v1", "maxRetries": 0},
    )

    async def one(case: EvalCase, target: ModelTarget, patterns: PatternMatcher) -> Outcome:
        request = Request(case.id, case.messages, max_turns=case.max_turns, eval_file=suite.file, agent=case.agent)
        response = await target.respond(request)
        context = EvaluationContext(case, response, TokenData(), patterns)
        return response, [await TABLE[type(spec)](spec, context) for spec in case.evaluators]

    async def main() -> dict[str, Outcome]:
        asker, patterns = build_client(settings, choice, around), PatternMatcher()
        target = ModelTarget(settings, asker, None, (), home=SandboxSetup(parent=folders))
        try:
            return {case.id: await one(case, target, patterns) for case in suite.cases}
        finally:
            await target.aclose()
            await patterns.aclose()

    return asyncio.run(main())


def calling(name: str, **params: str) -> Mapping:
    return openai_answer(None, [("call_1", name, params)])


@pytest.mark.contract("agent_evals.suite.example", "agent_evals.run.conversation")
def test_example__as_it_stands__is_asked_and_judged(tmp_path: Path) -> None:
    document = {
        "name": "my-suite",
        "description": "Test suite description",
        "version": "1.0.0",
        "agent": {
            "name": "MyTestAgent",
            "model": "gpt-5-mini",
            "instructions": "Agent system prompt here",
            "tools": [],
            "maxTurns": 3,
        },
        "defaults": {"timeout": 15000},
        "cases": [
            {
                "id": "case-1",
                "name": "Test case name",
                "prompt": "User prompt to test",
                "assertions": [{"type": "contains", "value": "expected text"}],
            }
        ],
    }
    with model_server(openai_answer("Here is the expected text.")) as server:
        ((_, (evaluation,)),) = run(loaded(document), server, tmp_path).values()
        body = server.asked.body
    assert evaluation.passed
    assert body["model"] == "gpt-5-mini"
    assert [(message["role"], message["content"]) for message in body["messages"]] == [
        ("system", "Agent system prompt here"),
        ("user", "User prompt to test"),
    ]
    assert "tools" not in body or not body["tools"]


TOOLS_SUITE = {
    "name": "tools-suite",
    "agent": {
        "name": "ToolTestAgent",
        "model": "gpt-5-mini",
        "instructions": "Use the tools.",
        "tools": ["readFile", "writeFile", "listFiles", "deleteFile"],
        "maxTurns": 3,
    },
    "cases": [
        {
            "id": "write-file",
            "name": "writes",
            "prompt": f"Write Hello World to {OUT}",
            "assertions": [
                {"type": "fileExists", "path": OUT},
                {"type": "fileContains", "path": OUT, "value": "hello world", "caseSensitive": False},
            ],
        },
        {
            "id": "read-file",
            "name": "reads",
            "prompt": f"Read {OUT}",
            "assertions": [{"type": "contains", "value": "Hello World"}],
        },
        {
            "id": "write-json",
            "name": "writes JSON",
            "prompt": f"Write JSON to {DATA}",
            "assertions": [
                {"type": "fileJsonPath", "path": DATA, "jsonPath": "$.name", "expected": "test"},
                {"type": "fileJsonPath", "path": DATA, "jsonPath": "value", "expected": 42},
                {"type": "matchesRegex", "pattern": "^wrote", "flags": "i"},
            ],
        },
        {
            "id": "delete-file",
            "name": "deletes",
            "prompt": f"Delete {DATA}",
            "assertions": [
                {"type": "fileNotExists", "path": DATA},
                {"type": "contains", "value": "Deleted"},
                {"type": "fileExists", "path": OUT},
            ],
        },
    ],
}


@pytest.mark.contract(
    "agent_evals.run.conversation",
    "agent_evals.files.folder",
    "agent_evals.case.all_assertions",
    "agent_evals.field.tools",
)
def test_suite__writes_reads_and_deletes_from_case_to_case__holds(tmp_path: Path) -> None:
    answers = (
        calling("writeFile", path=OUT, content="Hello World"),
        openai_answer("Done."),
        calling("readFile", path=OUT),
        openai_answer("It says Hello World."),
        calling("writeFile", path=DATA, content='{"name": "test", "value": 42}'),
        openai_answer("Wrote it."),
        calling("deleteFile", path=DATA),
        openai_answer("Deleted it."),
    )
    with model_server(*answers) as server:
        outcomes = run(loaded(TOOLS_SUITE), server, tmp_path)
        requests = [asked.body for asked in server.requests]
    assert [evaluation.error for _, evaluations in outcomes.values() for evaluation in evaluations] == [None] * 9
    assert [tool["function"]["name"] for tool in requests[0]["tools"]] == TOOLS_SUITE["agent"]["tools"]
    answered = requests[3]["messages"][-1]
    assert (answered["role"], answered["tool_call_id"], answered["content"]) == ("tool", "call_1", "Hello World")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.contract("agent_evals.case.all_assertions")
def test_suite__agent_only_pretends__fails_every_assertion_that_is_not_true(tmp_path: Path) -> None:
    with model_server(openai_answer("I wrote it. Deleted.")) as server:
        outcomes = run(loaded(TOOLS_SUITE), server, tmp_path)
    errors = {case_id: [one.error for one in evaluations] for case_id, (_, evaluations) in outcomes.items()}
    assert errors["write-file"] == [
        f"fileExists: File does not exist: {OUT}: Path does not exist.",
        f"fileContains: Failed to read file: Path does not exist.: {OUT}",
    ]
    assert [error is None for error in errors["write-json"]] == [False, False, False]
    assert [error is None for error in errors["delete-file"]] == [True, True, False]
