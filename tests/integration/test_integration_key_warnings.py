"""What looks like a key in results: it is scored and stored as it is, and a warning names its place and form."""

from __future__ import annotations

import json

from tests.support.agents import Exchange, agent
from tests.support.program import gate

GITHUB = "ghp_aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA3bC6"
AWS = "AKIAQ3EGTR5NLMP2XYZA"


def test_run__key_in_a_response__is_scored_and_warned_of_by_place_and_form(tmp_path) -> None:
    (tmp_path / "evals").mkdir()
    cases = [
        {"id": "k1", "input": {"message": "key?"}, "expect": {"responseContains": [GITHUB]}},
        {"id": "k2", "input": {"message": "hi"}, "expect": {"responseContains": ["hi"]}},
    ]
    (tmp_path / "evals/x.golden.json").write_text(json.dumps(cases))

    async def handler(exchange: Exchange) -> None:
        text = f"it is {GITHUB}." if exchange.json["message"] == "key?" else "hi"
        call = {"name": "login", "params": {"id": AWS}}
        exchange.answer({"response": text, "toolCalls": [call] if text != "hi" else []})

    with agent(handler) as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url)
    assert done.returncode == 0, done.stderr
    for said in (
        "k1: the response holds what looks like a key (github-pat), and is stored as it is: name it as a secret or in",
        "k1: the tool calls hold what looks like a key (aws-access-token), and",
    ):
        assert said in " ".join(done.stdout.split()), done.stdout
    assert "k2: " not in done.stdout
    assert GITHUB not in done.stdout + done.stderr
    [record] = (tmp_path / "evals/results").glob("*/run.json")
    assert GITHUB in record.read_text()


def test_run__key_that_redact_masks_or_that_is_not_stored__is_not_warned_of(tmp_path) -> None:
    (tmp_path / "evals").mkdir()
    case = {"id": "k1", "input": {"message": "key?"}, "expect": {"responseContains": [GITHUB]}}
    (tmp_path / "evals/x.golden.json").write_text(json.dumps([case]))
    with agent(lambda exchange: exchange.answer({"response": GITHUB, "toolCalls": []})) as running:
        for words, redact in (((), ["ghp_[A-Za-z0-9]+"]), (("--keep-responses", "none"), [])):
            (tmp_path / "eval-gate.json").write_text(json.dumps({"redact": redact}))
            done = gate(tmp_path, "run", "--agent-endpoint", running.url, *words)
            assert done.returncode == 0, done.stderr
            assert "looks like a key" not in done.stdout


def test_check__key_in_results_of_another_tool__is_warned_of(tmp_path) -> None:
    line = {"suite": "s", "id": "c1", "status": "failed", "output": GITHUB, "error": f"no {AWS}"}
    (tmp_path / "r.jsonl").write_text(json.dumps(line) + "\n")
    done = gate(tmp_path, "check", "r.jsonl")
    shown = " ".join(done.stdout.split())
    assert "c1: the response holds what looks like a key (github-pat), and" in shown, shown
    assert "c1: the error holds what looks like a key (aws-access-token), and" in shown


def test_waive__reason_with_a_key__writes_nothing(tmp_path) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals/x.golden.json").write_text(json.dumps([{"id": "k1", "input": {"message": "a"}, "expect": {}}]))
    done = gate(tmp_path, "waive", "k1", "--reason", f"the agent says {GITHUB}", "--until", "5d")
    assert done.returncode == 2
    assert "--reason: holds what looks like a key (github-pat)" in done.stderr
    assert GITHUB not in done.stdout + done.stderr
    assert not list(tmp_path.rglob("waivers.yaml"))
