"""Secrets of the step that the agent says back: none is found in what is uploaded, posted, written or printed."""

from __future__ import annotations

import json
from base64 import b64encode
from urllib.parse import quote

from tests.support.agents import agent
from tests.support.canaries import files_below, leaks, texts_of

CANARY = 'CaNaRy/7+kL"q\\w=zT&3~xyz'


def test_finding_2__agent_knows_every_secret_of_the_step__none_is_left_anywhere(job, github) -> None:
    def said(number: int) -> str:
        secret = (CANARY, github.token, github.runtime_token)[number % 3]
        forms = (secret, quote(secret, safe=""), b64encode(b"u:" + secret.encode()).decode(), json.dumps(secret))
        return forms[number // 3]

    async def handler(exchange) -> None:
        number = int(exchange.json["message"].split()[1])
        if number < 12:
            exchange.answer({"response": said(number), "toolCalls": [{"name": said(number), "params": {}}]})
        else:
            exchange.answer(b"x" * 180 + said(number - 12).encode(), "400 Bad")

    job.write_suite(24)
    with agent(handler) as running:
        target = {"name": "a", "url": running.url, "headers": {"x-key": "${{ AGENT_KEY }}"}, "maxRetries": 0}
        reports = ["md", "html", "junit", "json", "console"]
        config = {"targets": [target], "target": "a", "reports": reports, "exports": ["agentv=out.jsonl"]}
        (job.workspace / "eval-gate.json").write_text(json.dumps(config))
        inputs = {"agent-endpoint": "", "fail-on": "failures", "secrets-for": "head"}
        ended = job.pull_request(github.state.add_pull(7), "", inputs, AGENT_KEY=CANARY)
    assert len(running.requests) == 24, ended.log
    assert found_of(job, github, ended) == set()


def test_finding_2__another_tool_wrote_every_secret_of_the_step__none_is_left_anywhere(job, github) -> None:
    lines = []
    for secret in (CANARY, github.token):
        for form in (secret, quote(secret, safe=""), b64encode(b"u:" + secret.encode()).decode(), json.dumps(secret)):
            line = {"id": f"case {len(lines)} {form}", "suite": form, "status": "failed", "input": form, "output": form}
            line |= {"error": form, "checks": [{"name": form, "passed": False, "reason": form}], "tags": [form]}
            lines.append(json.dumps(line | {"tool_calls": [{"name": form, "params": {form: form}, "output": form}]}))
    (job.workspace / "results.jsonl").write_text("\n".join(lines))
    config = {"reports": ["md", "html", "junit", "json", "console"], "exports": ["agentv=out.jsonl"]}
    (job.workspace / "eval-gate.json").write_text(json.dumps(config))
    inputs = {"agent-endpoint": "", "fail-on": "failures", "results": "results.jsonl"}
    ended = job.pull_request(github.state.add_pull(7), "", inputs, AGENT_KEY=CANARY)
    assert ended.code == 1, ended.log
    assert found_of(job, github, ended) == set()


def found_of(job, github, ended) -> set[tuple[str, str]]:
    """Where which secret is found in all that is left of a step, by a reader that knows no redactor."""
    secrets = {"key": CANARY, "token": github.token, "runtime": github.runtime_token.split(".")[2]}
    log = "\n".join(line for line in ended.log.splitlines() if not line.startswith("::add-mask::"))
    texts = [("log", log), ("summary", ended.summary), ("outputs", json.dumps(ended.outputs))]
    texts += [("comment", one.body) for one in github.state.comments.values()]
    texts += [("check", json.dumps([run.fields, run.annotations])) for run in github.state.check_runs.values()]
    texts += [text for one in github.state.artifacts.values() for text in texts_of(one.name, one.zip_bytes)]
    texts += [*files_below(job.workspace / "evals/results"), *files_below(job.workspace / "out.jsonl")]
    assert {name for name, _ in texts} >= {"log", "summary", "comment", "check", "eval-gate-results!run.json"}
    return {(name, who) for name, text in texts for who, secret in secrets.items() if leaks(text, secret)}
