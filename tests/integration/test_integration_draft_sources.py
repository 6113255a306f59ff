"""Drafts from what there is already, through the command line: a log, traces, results of other tools and a proxy."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.support.agents import Exchange, agent, unused_port
from tests.support.program import CLEAN, PROGRAM, gate

FILES = Path(__file__).parents[1] / "unit"
TRACES = FILES / "drafts" / "sources" / "files"
RESULTS = FILES / "external_results" / "files"
KEY = "sk-test-4f9a8b7c6d5e"
CLIENT = """
import json, sys, urllib.request
for text in sys.argv[2:]:
    body = json.dumps({"message": text}).encode()
    request = urllib.request.Request(sys.argv[1], body, {"Authorization": "Bearer KEY"})
    print(urllib.request.urlopen(request, timeout=30).read().decode())
""".replace("KEY", KEY)


def read_drafts(file: Path) -> list[dict]:
    """Read the drafts of a file, which validates in strict mode."""
    checked = gate(file.parent, "validate", "--strict", file.name)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    return json.loads(file.read_text())


def write_log(folder: Path, *entries: object) -> Path:
    file = folder / "agent.log"
    file.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in entries))
    return file


def weather(city: str, degrees: int) -> dict:
    call = {"name": "get_weather", "params": {"city": city}, "result": {"degrees": degrees}}
    return {"reply": f"It is {degrees} degrees in {city}.", "steps": [call]}


def test_draft__from_a_log__has_what_its_executions_have_in_common(tmp_path) -> None:
    write_log(
        tmp_path,
        "not JSON",
        {"in": {"text": "Weather in Paris?"}, **weather("Paris", 14)},
        {"in": {"text": "Weather in Paris?"}, **weather("Paris", 14)},
    )
    fields = ("--field", "question=in.text", "--field", "response=reply", "--field", "toolCalls=steps")
    done = gate(tmp_path, "draft", "--from-log", "agent.log", *fields, "-o", "a.golden.json")
    assert done.returncode == 0, done.stderr
    [case] = read_drafts(tmp_path / "a.golden.json")
    assert (case["draft"], case["input"]) == (True, {"message": "Weather in Paris?"})
    assert case["expect"]["toolsCalled"] == ["get_weather"]
    assert "1 draft from 2 executions" in done.stdout
    assert "Left out 1 line (agent.log:1): not JSON." in done.stderr


def test_draft__log_whose_responses_all_have_a_name__expects_it_wherever_it_stands(tmp_path) -> None:
    said = (
        "DX-442 is in Oslo, DX-443 in Bergen.",
        "In Oslo: DX-442. In Bergen: DX-443.",
        "Bergen has DX-443, Oslo DX-442.",
    )
    made = [{"name": "track", "params": {"code": code}} for code in ("DX-442", "DX-443")]
    write_log(tmp_path, *({"message": "Track DX-442 and DX-443", "response": one, "toolCalls": made} for one in said))
    done = gate(tmp_path, "draft", "--from-log", "agent.log", "-o", "a.golden.json")
    assert done.returncode == 0, done.stderr
    [case] = read_drafts(tmp_path / "a.golden.json")
    assert case["expect"]["responseContains"] == ["Oslo", "Bergen"]
    assert "differed" not in case["description"]


def test_draft__log_with_keys_and_personal_data__writes_none(tmp_path) -> None:
    (tmp_path / "eval-gate.json").write_text(json.dumps({"redact": [r"555-\d{4}"]}))
    said = f"Call 555-0100 with {KEY}."
    write_log(tmp_path, {"message": f"Who? {KEY}", "response": said}, {"message": "Who?", "response": said})
    done = gate(tmp_path, "draft", "--from-log", "agent.log", "-o", "a.golden.json", AGENT_API_KEY=KEY)
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "a.golden.json").read_text() + done.stdout + done.stderr
    assert KEY not in written
    assert "555-0100" not in written
    assert "No case for 1 question" in done.stdout  # the agent would be asked ***


FOUND_KEYS = {
    "a made-up prefix": "sk-live-A9b8C7d6E5f4G3h2I1j0K9l8M7n6O5p4",
    "GitHub": "ghp_aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA3bC6",
    "AWS": "AKIAQ3EGTR5NLMP2XYZA",
    "a JWT": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA",
}


@pytest.mark.parametrize("form", FOUND_KEYS)
def test_draft__log_with_a_key_that_nobody_named__writes_none(tmp_path, form) -> None:
    key = FOUND_KEYS[form]
    call = {"name": "login", "params": {"token": key, key: 1}, "result": key}
    said = {"message": "q1", "response": f"your key is {key}", "toolCalls": [call]}
    write_log(tmp_path, said, {"message": f"Is {key} right?", "response": "Yes"}, {"message": "q3", "error": key})
    done = gate(tmp_path, "draft", "--from-log", "agent.log", "-o", "a.golden.json", "--verbose")
    assert done.returncode == 0, done.stderr
    assert "1 draft from 1 execution" in done.stdout
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "agent.log"]
    assert {"a.golden.json", "draft-responses.jsonl"} <= {path.name for path in written}
    for text in (done.stdout, done.stderr, *(path.read_text() for path in written)):
        assert key[4:] not in text
        assert key[-12:] not in text


def test_draft__log_without_the_parts__names_lines_and_keys(tmp_path) -> None:
    write_log(tmp_path, {"prompt": "a", "answer": "b"})
    done = gate(tmp_path, "draft", "--from-log", "agent.log", "-o", "a.golden.json")
    assert done.returncode == 2
    assert "error[invalid-draft-source]" in done.stderr
    assert "agent.log:1: no question at message; it has the keys prompt, answer" in done.stderr
    assert not (tmp_path / "a.golden.json").exists()


@pytest.mark.parametrize("mistake", ["question", "questoin=a", "question=a[", "=a"])
def test_draft__wrong_field__is_a_usage_error(tmp_path, mistake) -> None:
    write_log(tmp_path, {"message": "a", "response": "b"})
    done = gate(tmp_path, "draft", "--from-log", "agent.log", "--field", mistake, "-o", "a.golden.json")
    assert done.returncode == 2
    assert "error[unknown-value]" in done.stderr


def test_draft__from_traces__has_the_tools_and_a_second_turn(tmp_path) -> None:
    source = str(TRACES / "pydantic-ai-2.68.json")
    done = gate(tmp_path, "draft", "--from-traces", source, "--format", "agentv", "-o", "a.eval.yaml")
    assert done.returncode == 0, done.stderr
    assert "2 drafts from 2 executions" in done.stdout
    text = (tmp_path / "a.eval.yaml").read_text()
    assert "{tool: get_weather, args: {city: Paris, unit: celsius}" in text
    assert "Thank you!" in text
    assert gate(tmp_path, "validate", "--strict", "a.eval.yaml").returncode == 0


@pytest.mark.parametrize(
    "name",
    [
        "google-adk-1.39",
        "google-adk-2.13",
        "langsmith-0.15",
        "openinference-langchain-0.1.80",
        "openinference-openai-0.1.66",
        "strands-agents-1.62",
        "strands-agents-1.62-latest",
        "vercel-ai-6",
    ],
)
def test_draft__traces_of_an_instrumentation__give_one_draft_for_each_question(tmp_path, name) -> None:
    source = str(TRACES / f"{name}.json")
    done = gate(tmp_path, "draft", "--from-traces", source, "--format", "agentv", "-o", "a.eval.yaml")
    assert done.returncode == 0, done.stderr
    first, second = yaml.safe_load((tmp_path / "a.eval.yaml").read_text())["tests"]
    assert first["input"] == "Where is order 5121?"
    assert first["assertions"][0]["expected"] == [{"tool": "get_order", "args": {"id": 5121}, "args_match": "superset"}]
    assert {"type": "contains-all", "value": ["Rotterdam"]} in first["assertions"]
    assert [one["content"] for one in second["input"]] == [
        "Where is order 5121?",
        "Order 5121 is in Rotterdam.",
        "When was it shipped?",
    ]
    assert second["assertions"][0] == {"type": "execution-metrics", "max_tool_calls": 0}
    assert "Left out" not in done.stdout + done.stderr


def test_draft__from_results__has_what_passed(tmp_path) -> None:
    source = str(RESULTS / "deepeval-test-run.json")
    done = gate(tmp_path, "draft", "--from-results", source, "-o", "a.golden.json")
    assert done.returncode == 0, done.stderr
    [case] = read_drafts(tmp_path / "a.golden.json")
    assert case["input"] == {"message": "Refund 4711"}
    assert "the tool says that it failed, so its response is no example" in done.stderr


MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Refund order 4711 of Ana"}]


@pytest.mark.parametrize("lines", [False, True])
def test_draft__from_results_of_promptfoo__asks_what_was_sent(tmp_path, lines) -> None:
    whole = json.loads((RESULTS / "promptfoo-output.json").read_text())
    first = whole["results"]["results"][0] | {"vars": {"order": 4711, "name": "Ana"}}
    sent = ["Refund order 4711 of Ana", json.dumps(MESSAGES), '{"order": 4711, "name": "Ana"}']
    found = [first | {"testIdx": at, "prompt": {"raw": one, "label": "x"}} for at, one in enumerate(sent)]
    whole["results"] |= {"results": found, "stats": {}}
    source = tmp_path / ("out.jsonl" if lines else "out.json")
    source.write_text("".join(json.dumps(one) + "\n" for one in found) if lines else json.dumps(whole))
    done = gate(tmp_path, "draft", "--from-results", source.name, "-o", "a.golden.json")
    assert done.returncode == 0, done.stderr
    [case] = read_drafts(tmp_path / "a.golden.json")
    assert case["input"] == {"message": "Refund order 4711 of Ana"}
    assert "1 draft from 2 executions" in done.stdout
    assert "not a text that a person wrote (a mapping with the keys order, name)." in done.stderr


@pytest.mark.parametrize("source", ["--from-log", "--from-traces", "--from-results"])
def test_draft__no_file__is_an_error_that_names_it(tmp_path, source) -> None:
    done = gate(tmp_path, "draft", source, "none.json", "-o", "a.golden.json")
    assert done.returncode in (2, 3)
    assert "none.json" in done.stderr
    assert "Traceback" not in done.stderr


async def answer(exchange: Exchange) -> None:
    city = exchange.json["message"].split()[-1].strip("?")
    made = weather(city, 14)
    exchange.answer({"response": made["reply"], "toolCalls": made["steps"]})


class Proxy:
    """A recording proxy as a process."""

    def __init__(self, folder: Path, url: str, *arguments: str) -> None:
        self.port = unused_port()
        self.process = subprocess.Popen(
            [*PROGRAM, "draft", "--proxy", str(self.port), "--agent-endpoint", url, "-o", "a.golden.json", *arguments],
            cwd=folder,
            env=CLEAN | {"AGENT_API_KEY": KEY},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        self.begun = self.process.stderr.readline()

    def ask(self, *questions: str) -> str:
        """Run a client as a process of its own."""
        command = [sys.executable, "-c", CLIENT, f"http://127.0.0.1:{self.port}/chat", *questions]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    def wait_for(self, recorded: int) -> None:
        """Wait until so many exchanges are recorded."""
        assert self.process.stderr is not None
        while self.process.stderr.readline() != f"Recorded {recorded}\n":
            assert self.process.poll() is None

    def end(self, number: signal.Signals) -> tuple[int, str, str]:
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


@contextmanager
def proxy(folder: Path, url: str, *arguments: str) -> Iterator[Proxy]:
    made = Proxy(folder, url, *arguments)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_draft__proxy_until_a_signal__writes_what_was_recorded(tmp_path, number) -> None:
    with agent(answer) as running, proxy(tmp_path, running.url) as made:
        assert made.begun == (
            f"Recording: send requests for http://127.0.0.1:{running.port} to http://127.0.0.1:{made.port}\n"
        )
        said = made.ask("Weather in Paris?", "Weather in Oslo?", "Weather in Paris?")
        made.wait_for(3)
        code, out, err = made.end(number)
    assert (code, "Traceback" in err) == (0, False), err
    assert said.count("It is 14 degrees in Paris.") == 2
    assert [one.header("Authorization") for one in running.requests] == [f"Bearer {KEY}"] * 3
    assert "2 drafts from 3 executions" in out
    first, second = read_drafts(tmp_path / "a.golden.json")
    assert (first["input"], second["input"]) == ({"message": "Weather in Paris?"}, {"message": "Weather in Oslo?"})
    assert KEY not in (tmp_path / "a.golden.json").read_text()
    assert [file.name for file in tmp_path.rglob("*recording*")] == []


def test_draft__proxy_that_is_killed__goes_on_with_what_it_recorded(tmp_path) -> None:
    with agent(answer) as running:
        with proxy(tmp_path, running.url) as made:
            made.ask("Weather in Paris?")
            made.wait_for(1)
            made.end(signal.SIGKILL)
        assert not (tmp_path / "a.golden.json").exists()
        with proxy(tmp_path, running.url) as made:
            assert made.process.stderr is not None
            journal = "evals/results/draft-recording.jsonl"
            assert made.process.stderr.readline() == f"Continuing {journal}: remove the file to begin anew\n"
            made.ask("Weather in Oslo?")
            made.wait_for(1)
            code, out, err = made.end(signal.SIGINT)
    assert code == 0, err
    assert "2 drafts from 2 executions" in out


@pytest.mark.slow
def test_draft__proxy_that_recorded_nothing__says_so_and_leaves_no_file(tmp_path) -> None:
    with agent(answer) as running, proxy(tmp_path, running.url) as made:
        code, _, err = made.end(signal.SIGINT)
    assert code == 3, err
    assert "error[no-drafts]" in err
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == []


@pytest.mark.slow
def test_draft__proxy_for_a_model__is_refused(tmp_path) -> None:
    chosen = ("--model", "openai:gpt-x")
    done = gate(tmp_path, "draft", "--proxy", "8099", *chosen, "-o", "a.golden.json", OPENAI_API_KEY="k" * 20)
    assert done.returncode == 2
    assert "error[invalid-proxy]: the proxy records only agents over HTTP" in done.stderr
