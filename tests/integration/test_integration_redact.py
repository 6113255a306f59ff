"""A team's own patterns: judged is what was said, and what they find is in nothing that is stored."""

from __future__ import annotations

import json
import re

import pytest

from tests.integration.test_integration_evidence import cases_of, changes_of, write
from tests.integration.test_integration_models import KEY, completion
from tests.integration.test_integration_retention import EVERYTHING
from tests.integration.test_integration_run import gate, record
from tests.support.agents import Exchange, agent
from tests.support.canaries import files_below

MAIL = r"[\w.]+@example\.org"
CARD = r"\b4111\d{12}\b"
FOUND = re.compile(f"{MAIL}|{CARD}")
PERSON, NUMBER = "jane.doe@example.org", 4111111111111111
CONFIG = f"redact:\n- '{MAIL}'\n- '{CARD}'\n"
CASES = [
    {"id": "says", "input": {"message": f"Who is {PERSON}?"}, "expect": {"responseContains": [PERSON]}},
    {
        "id": "calls",
        "input": {"message": "who?"},
        "expect": {"toolParams": [{"tool": "t", "paramName": "to", "assertion": "equals", "value": PERSON}]},
    },
    {
        "id": "misses",
        "input": {"message": "who?"},
        "expect": {"toolParams": [{"tool": "t", "paramName": "to", "assertion": "equals", "value": "nobody"}]},
    },
    {"id": "breaks", "input": {"message": "break"}, "expect": {"responseNonEmpty": True}},
    {"id": "long", "input": {"message": "long"}, "expect": {"responseNonEmpty": True}},
]
RUBRIC = {"id": "rb", "input": {"message": "who?"}, "rubric": [{"dimension": "d", "maxScore": 3, "criteria": "3: x"}]}


async def agent_and_judge(exchange: Exchange) -> None:
    if "messages" in exchange.json:
        verdict = {"dimensions": [{"dimension": "d", "score": 1, "reasoning": f"it names {PERSON}"}]}
        exchange.answer(completion(json.dumps(verdict)))
    elif exchange.json["message"] == "break":
        exchange.answer(f"no such person: {PERSON}".encode(), "500 Internal Server Error")
    else:
        call = {"name": "t", "params": {"to": PERSON, "card": NUMBER}, "result": {PERSON: [f"é {PERSON} ☀"]}}
        before = "x " * 9_996 if exchange.json["message"] == "long" else "It is "
        exchange.answer({"response": f"{before}{PERSON}.", "toolCalls": [call]})


def run(project, url: str, *options: str):
    judge = ("--judge", "openai:gpt-4o", "--rubric", "always", "--trials", "2")
    known = {"OPENAI_BASE_URL": url.removesuffix("/chat"), **KEY}
    return gate(project, "run", "--agent-endpoint", url, *judge, *EVERYTHING, *options, **known)


def test_run__patterns__are_masked_in_all_that_is_stored_and_change_no_verdict(tmp_path) -> None:
    write(tmp_path, *CASES)
    (tmp_path / "evals/x.rubric.json").write_text(json.dumps([RUBRIC]))
    with agent(agent_and_judge) as running:
        run(tmp_path, running.url, "--output-dir", "before")
        plain = [(case["id"], case["status"]) for case in cases_of(_record(tmp_path, "before"))]
        (tmp_path / "eval-gate.yaml").write_text(CONFIG)
        done = run(tmp_path, running.url, "--baseline", "before")
    found = record(tmp_path)
    assert [(case["id"], case["status"]) for case in cases_of(found)] == plain
    assert dict(plain) == {
        "says": "passed",
        "calls": "passed",
        "misses": "failed",
        "breaks": "error",
        "long": "passed",
        "rb": "failed",
    }
    texts = [("stdout", done.stdout), ("stderr", done.stderr)]
    texts += [one for folder in ("evals/results", "out") for one in files_below(tmp_path / folder)]
    assert [name for name, text in texts if FOUND.search(text) or "jane" in text] == []
    cases = {case["id"]: case for case in cases_of(found)}
    assert cases["says"]["text"]["prompt"] == "Who is ***?"
    assert cases["says"]["text"]["expectation"] == ['response contains "***"']
    assert cases["says"]["details"]["response"] == "It is ***."
    (call,) = cases["calls"]["details"]["toolCalls"]
    assert (call["arguments"], call["result"]) == ({"to": "***", "card": "***"}, {"***": ["é *** ☀"]})
    assert cases["misses"]["error"].endswith("expected 'nobody', got '***'")
    assert cases["long"]["details"]["response"].endswith("x x ***.")
    assert "it names ***" in json.dumps(cases["rb"]["evaluatorResults"])
    assert "It is ***." in cases["rb"]["evaluatorResults"][0]["evaluatorProviderRequest"]["userPrompt"]
    assert changes_of(found)["misses"]["baselineResult"]["details"]["response"] == "It is ***."


def _record(project, folder: str) -> dict:
    latest = json.loads((project / folder / "latest.json").read_text())
    return json.loads((project / folder / latest["path"]).read_text())


@pytest.mark.slow
def test_run__pattern_that_backtracks__keeps_nothing_of_what_it_could_not_look_through(tmp_path) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.answer({"response": "a" * 60 + "!", "toolCalls": []})

    write(tmp_path, {"id": "a", "input": {"message": "x"}, "expect": {"responseContains": ["aaa"]}})
    (tmp_path / "eval-gate.yaml").write_text("redact: ['(a+)+$']\n")
    with agent(handler) as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url)
    (case,) = cases_of(record(tmp_path))
    assert (done.returncode, case["status"], case["details"]["response"]) == (0, "passed", "***")
    assert case["warnings"][0].startswith("redact: responses are not kept, because they could not be searched")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "strict: false\nredact:\n- 'fine'\n- '(broken'\n",
            "eval-gate.yaml:4: redact[1]: /(broken/ is not a valid pattern: ",
        ),
        ("redact: plain\n", "eval-gate.yaml:1: redact: "),
        ("redact: ['']\n", "eval-gate.yaml:1: redact[0]: "),
    ],
)
def test_run__pattern_that_is_none__is_an_error_at_its_place(tmp_path, text, said) -> None:
    write(tmp_path, {"id": "a", "input": {"message": "x"}, "expect": {"responseNonEmpty": True}})
    (tmp_path / "eval-gate.yaml").write_text(text)
    done = gate(tmp_path, "run", "--agent-endpoint", "http://127.0.0.1:9/")
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
