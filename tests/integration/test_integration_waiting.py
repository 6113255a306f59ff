"""An agent that is only starting, one that never comes up, and what is said about addresses that cannot be reached."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.integration.test_integration_run import gate, record, write_suite
from tests.support.agents import agent, unused_port
from tests.support.program import CLEAN, PROGRAM


class Answering(BaseHTTPRequestHandler):
    """Answers as the contract has it; its health check only says yes from the third time on."""

    protocol_version = "HTTP/1.1"
    looks = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self._send(200, b'{"response": "ok"}')

    def do_GET(self) -> None:
        type(self).looks += 1
        self._send(200 if self.looks > 2 else 503, b"")

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def late(seconds: float) -> Iterator[int]:
    """An agent that listens only after so many seconds; its port."""
    port, servers = unused_port(), []

    def start() -> None:
        time.sleep(seconds)
        servers.append(ThreadingHTTPServer(("127.0.0.1", port), Answering))
        servers[0].serve_forever(0.05)

    thread = threading.Thread(target=start, daemon=True)
    thread.start()
    try:
        yield port
    finally:
        thread.join(0 if servers else seconds + 1)
        for server in servers:
            server.shutdown()
            server.server_close()


@pytest.mark.slow
def test_run__agent_that_is_only_starting__is_waited_for_with_a_line(tmp_path) -> None:
    write_suite(tmp_path, 2)
    with late(3) as port:
        url = f"http://127.0.0.1:{port}/chat"
        done = gate(tmp_path, "run", "--agent-endpoint", url, EVAL_GATE_WAIT_FOR="")
    assert done.returncode == 0, done.stdout
    assert f"waiting for the agent at {url}, up to 30 s: " in done.stderr
    assert "Connection refused" in done.stderr


def test_run__agent_that_never_comes_up__is_one_error_and_not_one_a_case(tmp_path) -> None:
    write_suite(tmp_path, 40)
    port = unused_port()
    done = gate(tmp_path, "run", "--agent-endpoint", f"http://127.0.0.1:{port}/chat", "--wait-for", "0.5")
    assert done.returncode == 3
    said = f"GATE INCONCLUSIVE: no connection to 127.0.0.1:{port}: Connection refused (waited 0.5 s)"
    assert said in done.stdout
    assert record(tmp_path)["summary"]["notRun"] == 40


def test_run__told_to_wait_for_0_seconds__asks_at_once_and_each_case_says_why_in_the_systems_words(tmp_path) -> None:
    write_suite(tmp_path, 1)
    port = unused_port()
    url = f"http://127.0.0.1:{port}/chat"
    done = gate(tmp_path, "run", "--agent-endpoint", url, "--max-retries", "0", "--wait-for", "0")
    (case,) = record(tmp_path)["suites"][0]["cases"]
    assert (done.returncode, case["status"], case["errorKind"]) == (3, "error", "agent_unreachable")
    assert "waiting for" not in done.stderr
    assert case["error"].startswith(f"agent error: no connection to 127.0.0.1:{port}: Connection refused")
    assert "ssl" not in case["error"]


def test_run__health_check_that_says_no_at_first__is_asked_until_it_says_yes(tmp_path) -> None:
    write_suite(tmp_path, 1)
    Answering.looks = 0
    with late(0) as port:
        url = f"http://127.0.0.1:{port}"
        target = {"name": "a", "provider": "http", "url": url, "healthcheck": f"{url}/health", "waitFor": 20}
        (tmp_path / "eval-gate.json").write_text(json.dumps({"targets": [target]}))
        done = gate(tmp_path, "run", EVAL_GATE_WAIT_FOR="")
    assert (done.returncode, Answering.looks) == (0, 3)


def test_run__what_the_command_line_says_about_waiting__wins_over_the_target(tmp_path) -> None:
    write_suite(tmp_path, 1)
    target = {"name": "a", "provider": "http", "url": f"http://127.0.0.1:{unused_port()}", "waitFor": 600}
    (tmp_path / "eval-gate.json").write_text(json.dumps({"targets": [target]}))
    done = gate(tmp_path, "run", "--wait-for", "0.2")
    assert done.returncode == 3
    assert "(waited 0.2 s)" in done.stdout


@pytest.mark.slow
def test_run__interrupted_while_waiting__ends_at_once(tmp_path) -> None:
    write_suite(tmp_path, 1)
    words = [*PROGRAM, "run", "--agent-endpoint", f"http://127.0.0.1:{unused_port()}/chat", "--wait-for", "300"]
    running = subprocess.Popen(
        words, cwd=tmp_path, env=CLEAN, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert running.stderr is not None
    while "waiting for the agent" not in running.stderr.readline():
        assert running.poll() is None
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=30)
    assert running.returncode == 130
    assert record(tmp_path)["complete"] is False


@pytest.mark.parametrize("address", ["localhost:8080/chat", "agent.example/ask?key=hidden", "me:pw@10.0.0.1:80"])
def test_url__without_http__is_said_to_lack_it_in_its_line(tmp_path, address) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / "targets.yaml").write_text(f"targets:\n- name: a\n  provider: http\n  url: {address}\n")
    done = gate(tmp_path, "run")
    assert done.returncode == 2
    assert "targets.yaml:4: targets[a].url: the URL does not begin with http:// or https://" in done.stderr
    assert "hidden" not in done.stderr
    short = gate(tmp_path, "run", "--agent-endpoint", address)
    assert short.returncode == 2
    assert "--agent-endpoint: the URL does not begin with http:// or https://" in short.stderr


def test_preset__beside_an_endpoint__is_named_in_one_word(tmp_path) -> None:
    write_suite(tmp_path, 1)

    async def handler(exchange) -> None:
        exchange.answer({"messages": [{"type": "ai", "content": "ok", "tool_calls": []}]})

    with agent(handler) as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url, "--agent-protocol", "langgraph")
        assert running.requests[0].json["assistant_id"] == "agent"
    assert done.returncode == 0, done.stderr
    (tmp_path / "eval-gate.yaml").write_text("agentEndpoint: http://a/x\nagentProtocol: langraph\n")
    wrong = gate(tmp_path, "run")
    assert wrong.returncode == 2
    assert "eval-gate.yaml:2: agentProtocol: expected " in wrong.stderr
    assert 'did you mean "langgraph"?' in wrong.stderr
    (tmp_path / "eval-gate.yaml").write_text("agentProtocol: langgraph\n")
    assert "agentProtocol (--agent-protocol) needs agentEndpoint" in gate(tmp_path, "run").stderr
