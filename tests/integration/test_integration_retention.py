"""What is kept of answers is up to a setting: of all cases, of failing ones, or nothing, anywhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.test_integration_evidence import cases_of, changes_of, write
from tests.integration.test_integration_models import KEY, completion
from tests.integration.test_integration_run import gate, record
from tests.support.agents import Exchange, agent
from tests.support.canaries import files_below

CANARY = "Kestrel-4711"
REPORTS = ("md=out/r.md", "html=out/r.html", "junit=out/r.xml", "json=out/r.json", "console=out/r.txt")
EVERYTHING = (*(f"--report={one}" for one in REPORTS), "--export=agentv=out/r.jsonl")
FAILS = [
    {"toolParams": [{"tool": "t", "paramName": "who", "assertion": "equals", "value": "nobody"}]},
    {"toolParams": [{"tool": "t", "paramName": "who", "assertion": "notExists"}]},
    {"responseContains": ["nowhere"]},
    {"responseNotContains": ["answer"]},
    {"responseMatches": ["^x"]},
    {"toolsCalled": []},
    {"maxTokens": 1},
    {"noToolErrors": True},
]
SUITE = {
    "name": "kept",
    "version": "1.0.0",
    "agent": {"name": "a", "model": "m", "instructions": "be kind", "tools": []},
    "cases": [
        {
            "id": f"suite-{number}",
            "name": "who",
            "prompt": "who?",
            "assertions": [one],
        }
        for number, one in enumerate(
            (
                {"type": "equals", "expected": "x"},
                {"type": "equals", "expected": {"a": 1}},
                {"type": "jsonPath", "path": "a.b", "expected": 1},
                {"type": "contains", "value": "nowhere"},
                {"type": "matchesRegex", "pattern": "^x"},
            )
        )
    ],
}
BROKEN = {
    "500": lambda exchange: exchange.answer(f"no: {CANARY}".encode(), "500 Internal Server Error"),
    "reason": lambda exchange: exchange.answer(b"{}", f"418 {CANARY} is no teapot"),
    "place": lambda exchange: exchange.answer(b"", "302 Found", Location=f"http://elsewhere.test/{CANARY}/x"),
    "no text": lambda exchange: exchange.answer({"reply": CANARY}),
    "no JSON": lambda exchange: exchange.answer(f"<p>{CANARY}".encode()),
    "wrong calls": lambda exchange: exchange.answer({"response": CANARY, "toolCalls": [{"label": CANARY}]}),
}


def tell(exchange: Exchange) -> None:
    call = {"name": "t", "params": {"who": CANARY}, "result": {"said": CANARY}, "success": False}
    exchange.answer({"response": f"answer: {CANARY}", "toolCalls": [call]})


async def agent_and_judge(exchange: Exchange) -> None:
    """An agent that says the canary everywhere, or breaks with it; and a judge that repeats it."""
    if "messages" in exchange.json:
        verdict = {"dimensions": [{"dimension": "tone", "score": 0, "reasoning": f"it says {CANARY}"}]}
        said = f"I say {CANARY}" if "babble" in str(exchange.json) else json.dumps(verdict)
        exchange.answer(completion(said))
    else:
        BROKEN.get(exchange.json["message"], tell)(exchange)


def write_everything(folder: Path) -> None:
    rubric = {"rubric": [{"dimension": "tone", "maxScore": 3, "criteria": "3: kind"}]}
    cases = [{"id": f"gs-{at}", "input": {"message": "who?"}, "expect": expect} for at, expect in enumerate(FAILS)]
    cases += [{"id": f"broken-{name}", "input": {"message": name}, "expect": {"toolsCalled": []}} for name in BROKEN]
    write(folder, *cases)
    (folder / "evals/kept.json").write_text(json.dumps(SUITE))
    rubrics = [{"id": f"rb-{text}", "input": {"message": text}, **rubric} for text in ("who?", "babble")]
    (folder / "evals/x.rubric.json").write_text(json.dumps(rubrics))


def leaks(project: Path, done, *places: str) -> list[str]:
    texts = [("stdout", done.stdout), ("stderr", done.stderr)]
    texts += [one for place in places for one in files_below(project / place)]
    assert len(texts) > len(REPORTS) + 3
    return [name for name, text in texts if CANARY in text]


def run(project: Path, url: str, *options: str):
    judge = ("--judge", "openai:gpt-4o", "--rubric", "always")
    return gate(
        project,
        "run",
        "--agent-endpoint",
        url,
        *judge,
        *EVERYTHING,
        *options,
        OPENAI_BASE_URL=url.removesuffix("/chat"),
        **KEY,
    )


@pytest.mark.parametrize(
    "how",
    [
        ("--keep-responses", "none", "--recording", "record"),
        ("--keep-responses", "none", "--recording", "auto"),
        ("--keep-responses", "none", "--trials", "2", "--reruns", "1"),
    ],
)
def test_run__nothing_is_stored__no_word_of_an_answer_is_anywhere(tmp_path, how) -> None:
    write_everything(tmp_path)
    with agent(agent_and_judge) as running:
        first = run(tmp_path, running.url, "--output-dir", "before", "--recording", "record")
        assert leaks(tmp_path, first, "before"), "with everything kept it is there"
        assert CANARY in (tmp_path / "before/recording.jsonl").read_text()
        done = run(tmp_path, running.url, "--baseline", "before", "--fail-on", "failures", *how)
    assert leaks(tmp_path, done, "evals/results", "out") == []
    assert [*(tmp_path / "evals/results").rglob("recording.jsonl")] == []
    assert ("records nothing, because `keepResponses` is none" in done.stdout) is ("--recording" in how)
    found = record(tmp_path)
    statuses = {case["id"]: case["status"] for case in cases_of(found)}
    assert {status for name, status in statuses.items() if name.startswith("broken")} == {"error"}
    assert (statuses["gs-0"], statuses["rb-who?"], statuses["rb-babble"]) == ("failed", "failed", "error")
    assert all(case["error"] for case in cases_of(found))
    assert all(case["details"]["toolsCalled"] == ["t"] for case in cases_of(found) if case["status"] == "failed")
    assert changes_of(found)["gs-0"]["baselineResult"]["status"] == "failed"


@pytest.mark.parametrize("kept", ["keepResponses: none\n", 'redact: ["Kestrel-[0-9]+"]\n'])
def test_resume__less_is_stored__what_was_kept_before_is_let_go_of(tmp_path, kept) -> None:
    write_everything(tmp_path)
    with agent(agent_and_judge) as running:
        first = run(tmp_path, running.url)
        assert leaks(tmp_path, first, "evals/results")
        asked = len(running.requests)
        (tmp_path / "eval-gate.yaml").write_text(kept)
        done = run(tmp_path, running.url, "--resume", record(tmp_path)["runId"])
        assert len(running.requests) - asked < asked / 2, "what was finished is taken over"
    assert leaks(tmp_path, done, "evals/results", "out") == []
    assert {case["status"] for case in cases_of(record(tmp_path))} == {"failed", "error"}


def test_run__only_failing_cases_are_stored__passing_ones_say_no_more(tmp_path) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.answer({"response": f"{CANARY} {exchange.json['message']} {len(running.requests)}", "toolCalls": []})

    write(
        tmp_path,
        *(
            {"id": name, "input": {"message": name}, "expect": {"responseMatches": [pattern]}}
            for name, pattern in (("passes", "pass"), ("fails", "never"), ("wavers", "wavers [^6]"))
        ),
    )
    with agent(handler) as running:
        arguments = ("--keep-responses", "failing", "--trials", "3", "--concurrency", "1")
        gate(tmp_path, "run", "--agent-endpoint", running.url, *arguments)
    found = {case["id"]: case for case in cases_of(record(tmp_path))}
    assert {name: (case["status"], case["flaky"]) for name, case in found.items()} == {
        "passes": ("passed", False),
        "fails": ("failed", False),
        "wavers": ("passed", True),
    }
    assert {name: len(_told(case)) for name, case in found.items()} == {"passes": 0, "fails": 3, "wavers": 3}
    assert found["passes"]["details"]["responseLength"] > len(CANARY)


def _told(case: dict) -> list[str]:
    """Every answer of the case that is kept."""
    details = (case["details"], *(trial["details"] for trial in case["trials"]))
    return [one["response"] for one in details if one and one["response"]]


@pytest.mark.slow
def test_run__more_answers_than_a_record_may_hold__is_still_the_next_runs_baseline(tmp_path) -> None:
    many = [
        {"id": f"a{number}", "input": {"message": "x"}, "expect": {"responseContains": ["x" if number else "y"]}}
        for number in range(2_200)
    ]
    write(tmp_path, *many, targets=f"targets:\n- name: m\n  provider: mock\n  response: x{'☃' * 19_999}\n")
    arguments = ("run", "--targets", "targets.yaml", "--target", "m", "--fail-on", "never")
    gate(tmp_path, *arguments)
    first = record(tmp_path)
    assert first["warnings"][0].endswith("dropped details of 2,199 cases that passed and did not change")
    failing, passing, *_ = cases_of(first)
    assert (len(failing["details"]["response"]), passing["details"].get("response")) == (20_000, None)
    again = gate(tmp_path, *arguments, "--baseline", first["runId"])
    assert again.returncode == 0, again.stderr
    assert record(tmp_path)["baselineRunId"] == first["runId"]
