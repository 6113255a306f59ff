"""`eval-gate record` and `eval-gate replay`: from an agent's model calls to the exit code and the words of a report."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.agents import Exchange, agent, unused_port
from tests.support.program import CLEAN, PROGRAM, gate

KEY = "sk-secret-of-the-test-0815"
AGENT = """\
import json, os, sys, urllib.request


def ask(text, **headers):
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Answer: " + text}]}).encode()
    headers |= {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
    return json.load(urllib.request.urlopen(request))["text"]


if __name__ == "__main__":
    try:
        print(ask(sys.argv[1]))
    except OSError as error:
        print("fine", error)
"""
SERVER = """\
import http.server, json, sys
from agent import ask


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["message"]
        text = ask(message, **{"x-eval-gate-execution": self.headers["x-eval-gate-execution"]})
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"response": text, "toolCalls": []}).encode())


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("ready", flush=True)
server.serve_forever()
"""


async def provider(exchange: Exchange) -> None:
    """A model that says `fine` with a number; only the real key gets an answer."""
    assert exchange.header("authorization") == f"Bearer {KEY}"
    exchange.answer({"text": f"fine {exchange.number}"})


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "server.py").write_text(SERVER)
    write_cases(tmp_path, "one", "two")
    target = {"name": "a", "provider": "cli", "commandTemplate": f"{sys.executable} agent.py {{PROMPT}}", "cwd": ".."}
    config = {"target": "a", "targets": [target | {"passEnv": ["OPENAI_API_KEY"]}]}
    (tmp_path / "eval-gate.json").write_text(json.dumps(config))
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    commit = ["git", "-c", "user.name=n", "-c", "user.email=e@x", "commit", "-q", "--allow-empty", "-m", "x"]
    subprocess.run(commit, cwd=tmp_path, check=True)
    return tmp_path


def write_cases(folder: Path, *texts: str) -> None:
    cases = [{"id": text, "input": {"message": text}, "expect": {"responseContains": ["fine"]}} for text in texts]
    (folder / "evals").mkdir(exist_ok=True)
    (folder / "evals" / "a.golden.json").write_text(json.dumps(cases))


def record(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    with agent(provider) as running:
        url = f"http://127.0.0.1:{running.port}/v1"
        return gate(folder, "record", "--", *command, OPENAI_BASE_URL=url, OPENAI_API_KEY=KEY)


def read_newest(folder: Path) -> dict:
    file = max((folder / "evals" / "results").glob("*/run.json"), key=lambda one: one.stat().st_mtime_ns)
    return json.loads(file.read_text())


RUN = (*PROGRAM, "run")
REPORTS = ("--baseline", "latest", "--report", "md=comment.md", "--report", "html=page.html")


def test_command_agent__recorded_then_replayed_without_a_key__is_told_apart_from_a_live_run(folder) -> None:
    live = record(folder, *RUN, "--fail-on", "failures")
    assert live.returncode == 0, live.stdout + live.stderr
    assert "Model calls of the agent are live (2 calls). Successful answers are recorded in" in live.stdout
    lines = (folder / ".eval-gate" / "model-calls.jsonl").read_text()
    assert (len(lines.splitlines()), KEY in lines) == (2, False)
    assert read_newest(folder)["setup"]["settings"] == []

    replayed = gate(folder, "replay", "--", *RUN, *REPORTS)
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    for text in (replayed.stdout, (folder / "comment.md").read_text(), (folder / "page.html").read_text()):
        assert "Model calls of the agent are replayed from" in text
        assert "recorded less than a day ago at" in text
    digest = read_newest(folder)["modelRecording"]["digest"]
    assert f"setting `modelCalls` `live` → `replayed #{digest}` (2 cases)" in replayed.stdout
    assert "2 model calls, 0 of them recorded" in replayed.stderr

    write_cases(folder, "one", "three")
    missed = gate(folder, "replay", "--", *RUN, *REPORTS)
    assert missed.returncode == 3, missed.stdout + missed.stderr
    differs = "`messages[0].content` differs (recorded `Answer: one`, now `Answer: three`)"
    (case,) = (one for one in read_newest(folder)["suites"][0]["cases"] if one["id"] == "three")
    assert (case["status"], case["errorCause"]) == ("error", "model_call_missing")
    assert case["details"]["response"].startswith("fine")  # which would have passed
    assert differs in missed.stdout
    assert "`eval-gate replay --on-miss live -- CMD`" in missed.stdout

    with agent(provider) as running:
        url = f"http://127.0.0.1:{running.port}/v1"
        words = ("replay", "--on-miss", "live", "--", *RUN, "--fail-on", "failures")
        added = gate(folder, *words, OPENAI_BASE_URL=url, OPENAI_API_KEY=KEY)
        assert len(running.requests) == 1
    assert added.returncode == 0, added.stdout + added.stderr
    assert "; made live because they are not in it: 1 call." in added.stdout
    assert len((folder / ".eval-gate" / "model-calls.jsonl").read_text().splitlines()) == 3


def test_http_agent__that_passes_the_header_on__may_run_in_parallel(folder) -> None:
    record(folder, sys.executable, "-c", "from agent import ask; ask('one'); ask('two')")
    ports = {"proxy": unused_port(), "agent": unused_port()}
    server = (sys.executable, "-u", "server.py", str(ports["agent"]))
    words = (*PROGRAM, "replay", "--port", str(ports["proxy"]), "--", *server)
    target = {"name": "a", "provider": "http", "url": f"http://127.0.0.1:{ports['agent']}/chat", "workers": 2}
    config = {"target": "a", "targets": [target], "modelProxy": f"http://127.0.0.1:{ports['proxy']}"}
    (folder / "eval-gate.json").write_text(json.dumps(config))
    with subprocess.Popen(words, cwd=folder, env=CLEAN, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        alone = gate(folder, "run", "--fail-on", "failures", "--verbose")
        parallel = gate(folder, "run", "--fail-on", "failures", "--concurrency", "2", "--trials", "5")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 128 + signal.SIGTERM
    assert alone.returncode == 0, alone.stdout
    assert "cases run one at a time, because a model call that names no execution" in alone.stdout
    assert parallel.returncode == 0, parallel.stdout
    assert read_newest(folder)["modelRecording"]["calls"] == 10
    gone = gate(folder, "run")
    assert (gone.returncode, "error[model-proxy-unreachable]" in gone.stderr) == (3, True)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["replay", "--", "true"], 2, "error[invalid-recording]"),
        (["record", "--", "no-such-program-here"], 2, "error[command-not-started]"),
        (["record", "--", sys.executable, "-c", "raise SystemExit(7)"], 7, "No model call came through the proxy"),
        (["record", "--", "sh", "-c", "kill -TERM $$"], 143, "No model call came through the proxy"),
        (["replay", "--on-miss", "lve", "--", "true"], 2, 'did you mean "live"?'),
        (["record"], 2, "CMD"),
    ],
    ids=lambda one: " ".join(map(str, one[:2])) if isinstance(one, list) else None,
)
def test_command__ends__with_its_own_exit_code(folder, words, code, told) -> None:
    done = gate(folder, *words)
    assert (done.returncode, told in done.stderr) == (code, True), done.stderr


def test_command__that_hides_a_missing_call__is_no_pass(folder) -> None:
    record(folder, sys.executable, "agent.py", "one")
    done = gate(folder, "replay", "--", sys.executable, "agent.py", "other")
    assert (done.returncode, done.stdout[:4]) == (3, "fine")
    assert gate(folder, "replay", "--", sys.executable, "agent.py", "one").returncode == 0


SDKS = """\
import anthropic, openai
from google import genai

chat = [{"role": "user", "content": "hi"}]
one, two, three = openai.OpenAI(), anthropic.Anthropic(), genai.Client()
print(one.chat.completions.create(model="m", messages=chat).choices[0].message.content)
print([part.choices[0].delta.content for part in one.chat.completions.create(model="m", messages=chat, stream=True)])
print(two.messages.create(model="m", max_tokens=9, messages=chat).content[0].text)
print([part.delta.text for part in two.messages.create(model="m", max_tokens=9, messages=chat, stream=True)])
print(three.models.generate_content(model="m", contents="hi").text)
print([part.text for part in three.models.generate_content_stream(model="m", contents="hi")])
try:
    one.chat.completions.create(model="m", messages=[{"role": "user", "content": "other"}])
except openai.NotFoundError as error:
    print(error.message)
"""


async def three_providers(exchange: Exchange) -> None:
    """OpenAI, Anthropic and Gemini, as far as their libraries look; each answer has another number."""
    path = exchange.head.split(" ")[1]
    text = f"answer {exchange.number}"
    whole = event = {"candidates": [{"content": {"parts": [{"text": text}]}}]}
    if "chat" in path:
        whole, event = ({"choices": [{name: {"content": text}}]} for name in ("message", "delta"))
    elif "messages" in path:
        whole = {"content": [{"type": "text", "text": text}]}
        event = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    if b'"stream":true' in exchange.body.replace(b" ", b"") or "stream" in path:
        name = f"event: {event['type']}\n" if "type" in event else ""
        exchange.answer(f"{name}data: {json.dumps(event)}\n\n".encode() * 2, Content_Type="text/event-stream")
    else:
        exchange.answer(whole)


@pytest.mark.slow
def test_vendors_libraries__recorded_and_replayed_without_keys__see_the_same(folder) -> None:
    (folder / "sdks.py").write_text(SDKS)
    names = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")
    with agent(three_providers) as running:
        url = f"http://127.0.0.1:{running.port}"
        urls = {"OPENAI_BASE_URL": f"{url}/v1", "ANTHROPIC_BASE_URL": url, "GOOGLE_GEMINI_BASE_URL": url}
        done = gate(folder, "record", "--", sys.executable, "sdks.py", **urls, **dict.fromkeys(names, KEY))
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 6), done.stderr
    recording = folder / ".eval-gate" / "model-calls.jsonl"
    assert KEY not in recording.read_text()
    # the last call was made too: without it, it is the one that is missing
    recording.write_text("\n".join(recording.read_text().splitlines()[:-1]))
    replayed = gate(folder, "replay", "--", sys.executable, "sdks.py")
    *same, miss = replayed.stdout.splitlines()
    assert same == done.stdout.splitlines(), replayed.stderr
    assert "`messages[0].content` differs (recorded `hi`, now `other`)" in miss
    assert replayed.returncode == 3
