"""Files that lie beside evals and are plainly something else: a folder of them is read without a word."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.program import gate
from tests.support.tool_results import FILES as TOOL_RESULTS

ORDINARY = {
    "package.json": '{"name": "desk", "scripts": {"test": "vitest"}}',
    "tsconfig.json": '{\n  // strict\n  "compilerOptions": {},\n}\n',
    "tsconfig.build.json": '{\n  /* of the build */\n  "extends": "./tsconfig.json",\n  "exclude": ["test"],\n}\n',
    "api-extractor.jsonc": '// comments\n{"mainEntryPointFilePath": "x.d.ts"}',
    "renovate.json5": "{extends: ['config:base'], /* all */ rangeStrategy: 'pin',}",
    "pyproject.toml": '[project]\nname = "desk"\n',
    "pnpm-lock.yaml": "lockfileVersion: '9.0'\n",
    "docker-compose.yml": "services:\n  agent: {image: desk}\n",
    "deployment.yaml": "kind: Deployment\nmetadata: {name: a}\n---\nkind: Service\nmetadata: {name: a}\n",
    "stack.yaml": "Resources:\n  Bucket: {Type: 'AWS::S3::Bucket', Properties: {Name: !Ref name}}\n",
    "mkdocs.yml": "site_name: x\nmarkdown_extensions:\n- emoji: {generator: !!python/name:a.b }\n",
    "openapi.yaml": "openapi: 3.1.0\ninfo: {title: desk}\npaths: {/chat: {post: {requestBody: {}}}}\n",
    "workflow.yml": "on: push\njobs: {test: {steps: [{run: make test}]}}\n",
    "playbook.yaml": "- hosts: all\n  tasks:\n  - name: a\n    shell: !vault secret\n",
    "schema.yml": "models:\n- name: orders\n  columns: [{name: id, tests: [unique]}]\n",
    "meta.yaml": "package: {name: x}\ntest: {imports: [x]}\n",
    "hello.tavern.yaml": "test_name: hi\nstages: [{name: a}]\n---\ntest_name: ho\nstages: [{name: b}]\n",
    "agents.yaml": "researcher:\n  role: Researcher\n  goal: Find things.\n",
    "tasks.yaml": "research:\n  description: Find it.\n  expected_output: A list.\n  agent: researcher\n",
    "agent.yaml": "agent: {model: m, instructions: Be kind.}\ntools: [search]\n",
    "langgraph.json": '{"graphs": {"agent": "./agent.py:graph"}}',
    "mcp.json": '{"mcpServers": {"weather": {"command": "node"}}}',
    "prompts.yaml": "- name: greet\n  template: Hello {name}\n",
    "tools.json": '[{"name": "search", "description": "d", "inputSchema": {"type": "object"}}]',
    "users.json": '[{"id": "u-1", "name": "Ada"}, {"id": "u-2", "name": "Bo"}]',
    "orders.json": "[]",
    "prices.json": '{"prices": {"apple": 2}}',
    "words.json": '["a", "b"]',
    "answers.golden.json": '{"paris": 1, "rome": 2}',
    "page.golden.json": '["<p>", "</p>"]',
    "chats.jsonl": '{"messages": [{"role": "user", "content": "hi"}]}\n',
    "dataset.jsonl": '{"input": "q", "expected": "a", "metadata": {}}\n{"input": "r", "expected": "b"}\n',
    "questions.jsonl": '{"question": "q", "answer": "a"}\n',
    "requests.jsonl": '{"custom_id": "1", "body": {"input": "hi"}}\n',
    "log.jsonl": '{"level": "info", "input": "q"}\n{"level": "in',
    "events.ndjson": '{"event": "start"}\n{"event": "end"}\n',
    "qa.yaml": "- question: q\n  question: r\n  answer: a\n",
    "goldens.json": '{"goldens": [{"input": "q", "expected_output": "a"}]}',
    "collection.json": '{"info": {"name": "desk"}, "item": [{"name": "a", "request": {"url": "x"}}]}',
    "cassette.yaml": "interactions:\n- request: {uri: x}\n  response: {body: y}\n",
    "big.yaml": "rows:\n" + "- {a: 1, b: 2}\n" * 20_000,
    "map.json": '{"type": "FeatureCollection", "features": [{"id": 1, "type": "Feature"}]}',
    "nlu.yml": "version: '3.1'\nnlu:\n- intent: greet\n  examples: hi\n",
    "coverage.json": '{"meta": {}, "files": {"a.py": {"summary": {}}}}',
    "sarif.json": '{"version": "2.1.0", "runs": [{"results": []}]}',
    "deck.ipynb.json": '{"cells": [], "nbformat": 4}',
    "promptfooconfig.yaml": "prompts: [a]\nproviders: [b]\ntests: [{vars: {q: a}, assert: [{type: contains}]}]\n",
    "empty.yaml": "",
    "latest.json": '{"version": "1.2.0"}',
    "run.json": '{"command": "make run"}',
}


def test_validate__a_folder_of_ordinary_files_beside_evals__is_read_without_a_word(tmp_path) -> None:
    evals = tmp_path / "evals"
    evals.mkdir()
    (evals / "a.golden.json").write_text(
        json.dumps([{"id": "a", "input": {"message": "hi"}, "expect": {"responseContains": ["x"]}}])
    )
    for name, text in ORDINARY.items():
        (evals / name).write_text(text)
    for file in Path(TOOL_RESULTS).iterdir():
        if file.is_file():
            (evals / file.name).write_bytes(file.read_bytes())
    done = gate(tmp_path, "validate")
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout.splitlines()[-1] == "1 case in 1 suite: 0 problems, 0 warnings"
    assert len(list(evals.iterdir())) > 60
