"""A new user's mistakes that a run meets: the next step follows from the cause, and is the same in every report."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from eval_gate.struct import replace
from tests.support.mistakes import (
    GOOD,
    SUITE,
    Mistake,
    Place,
    Reply,
    case,
    check_told,
    find_next_step,
    make_mistake,
    replying,
    suite,
    to_step,
)
from tests.support.model_server import openai_answer
from tests.support.world import plain

RUN = "run --agent-endpoint {url} --max-retries 0"
AGENT_LOG = "Run it again. If it ends the same way, look up the error in the log of the agent"
HANGS = "look up in the log of the agent what it waited for. Increase timeoutMs"
PRINTED = "Read what the agent's program printed, which is part of each error"
GRADERS = "check the LLM judge and the graders, not this change"
INNOCENT = "This says nothing about your change."
PLAIN_TEXT = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 20\r\n\r\nInvalid HTTP request"
TLS_ALERT = b"\x15\x03\x01\x00\x02\x02\x46"
SHARED = {"OPENAI_API_KEY": "sk-of-a-new-user", "OPENAI_BASE_URL": "{url}"}


def agent(reply: Reply, message: str, next_step: str, *, where: str = "agent error", command: str = RUN) -> Mistake:
    """A mistake that the agent answers to, in every case in the same way."""
    return Mistake(command, message, where, next_step=next_step, code=3, reply=reply)


def status(code: str, message: str, next_step: str, where: str = "agent error") -> Mistake:
    """An agent that answers with this status, and JSON that says no more."""
    return agent(Reply(code, {"detail": message}), f"HTTP {code}", next_step, where=where)


def program(line: str, message: str, next_step: str, *, files: dict[str, str] | None = None, **more: str) -> Mistake:
    """A command as the agent, which is started in the folder of the eval files."""
    described = {"name": "bot", "provider": "cli", "command_template": line} | more
    written = GOOD | {"targets.yaml": json.dumps({"targets": [described]})} | (files or {})
    return Mistake("run --target bot", message, "agent error", next_step=next_step, code=3, files=written)


def model(code: str, said: str, next_step: str, error_code: str | None = None, command: str = "") -> Mistake:
    """A model's provider that answers with this error."""
    reply = Reply(code, {"error": {"message": said, "type": "invalid_request_error", "code": error_code}})
    command = command or "run --provider openai --model gpt-4o --max-retries 0"
    return Mistake(command, said, "openai (gpt-4o)", next_step=next_step, code=3, reply=reply, environment=SHARED)


RUBRIC = suite(case(7, expect={}, rubric=[{"dimension": "tone", "maxScore": 1, "criteria": "1: friendly"}]))
JUDGE = "run --agent-endpoint {ok} --judge openai:gpt-4o --max-retries 0"


def judge(reply: Reply, message: str) -> Mistake:
    """A judge that gives no score, beside a case that passes."""
    files = GOOD | {"evals/plans.rubric.json": RUBRIC}
    return Mistake(
        JUDGE, message, "evaluation error", "", GRADERS, code=3, files=files, reply=reply, environment=SHARED
    )


def grader(script: str, message: str, files: dict[str, str] | None = None) -> Mistake:
    """A grader that gives no score, beside cases that pass."""
    evaluator = {"name": "policy", "type": "code_judge", "script": script}
    question = [{"role": "user", "content": "hi"}]
    graded = {"id": "a", "expected_outcome": "x", "input_messages": question, "execution": {"evaluators": [evaluator]}}
    written = GOOD | {"evals/graded.eval.yaml": json.dumps({"evalcases": [graded]})} | (files or {})
    return Mistake("run --agent-endpoint {ok}", message, "evaluation error", "policy", GRADERS, code=3, files=written)


AGENTS = {
    "not started": Mistake(
        RUN.replace("{url}", "{nobody}"),
        "no connection to 127.0.0.1",
        "Connection refused",
        next_step="The agent did not start: see the log of the step that starts it",
        code=3,
    ),
    "host that does not exist": Mistake(
        RUN.replace("{url}", "http://agent.invalid:8000/chat"),
        "no connection to agent.invalid:8000",
        next_step="Correct the host of the agent's URL",
        code=3,
    ),
    "https to a port of http": Mistake(
        RUN.replace("{url}", "https://{plain}/chat"), "no connection to", "SSL", "", "http:// at this port", code=3
    ),
    "http to a port of https": Mistake(
        RUN.replace("{url}", "http://{tls}/chat"), "the response is not HTTP", "", "", "https:// at this port", code=3
    ),
    "path that does not exist": status("404 Not Found", "Not Found", "check the path of the agent's URL"),
    "model that the agent does not have": agent(
        Reply("404 Not Found", {"error": {"message": "The model `x` does not exist", "code": "model_not_found"}}),
        "The model `x` does not exist",
        "correct the model",
    ),
    "wrong method": status("405 Method Not Allowed", "Method Not Allowed", "set the target's method"),
    "no token": status("401 Unauthorized", "no token", "set the target's headers", "agent unreachable"),
    "token that is not enough": status("403 Forbidden", "no", "set the target's headers", "agent unreachable"),
    "field of another name": status("422 Unprocessable Entity", "question", "set the target's requestTemplate"),
    "request of another form": status("400 Bad Request", "question", "set the target's requestTemplate"),
    "too many requests": status(
        "429 Too Many Requests", "slow down", "lower requestsPerMinute or concurrency", "agent unreachable"
    ),
    "error in every case": status("500 Internal Server Error", "boom", AGENT_LOG),
    "server behind a proxy is down": status("503 Service Unavailable", "down", AGENT_LOG),
    "web page": agent(
        Reply(body=b"<!doctype html><html><title>App</title></html>"),
        "the response is not JSON; it begins «<!doctype html>",
        "check the port and the path of the agent's URL",
    ),
    "empty body": agent(Reply(body=b""), "the response is not JSON", "the body is empty"),
    "response in another field": agent(
        Reply(body={"answer": "ok"}), 'no value at "response"; it has the key answer', "the target's responsePath"
    ),
    "tool calls in another form": agent(
        Reply(body={"response": "ok", "toolCalls": "none"}), '"toolCalls" is not a list', "toolCallsPath"
    ),
    "redirect": agent(
        Reply("307 Temporary Redirect", b"", {"Location": "/chat/"}),
        "HTTP 307 Temporary Redirect to «/chat/»",
        "set the agent's URL to the address that responds",
    ),
    "agent that hangs": agent(
        Reply(hangs=True),
        "no response within 400 ms",
        HANGS,
        where="agent error",
        command=f"{RUN} --timeout-ms 400",
    ),
    "agent that does not list its tool calls": Mistake(
        RUN,
        "no response of this run has a list of tool calls at `toolCalls`",
        "evaluation error",
        next_step="Check where the agent lists its tool calls (`toolCallsPath`, `agentProtocol`",
        code=3,
        files={SUITE: suite(case(expect={"toolsCalled": ["x"]}))},
        reply=Reply(body={"response": "ok"}),
    ),
}
PROGRAMS = {
    "program that is not installed": program("agnt {PROMPT}", "agnt: not found", "did not find the program"),
    "path that does not exist": program("./agent.sh {PROMPT}", "./agent.sh: not found", "did not find the program"),
    "file that nobody may start": program(
        "./agent.sh {PROMPT}",
        "Permission denied",
        "the program is not executable",
        files={"evals/agent.sh": "#!/bin/sh\necho ok\n"},
    ),
    "import error": program(
        "python3 agent.py {PROMPT}",
        "No module named 'langchan'",
        PRINTED,
        files={"evals/agent.py": "import langchan\n"},
    ),
    "file of another folder": program(
        "python3 agent.py {PROMPT}", "can't open file", PRINTED, files={"agent.py": "print('ok')\n"}
    ),
    "program that prints no events": program(
        "echo hello; : {PROMPT}",
        "Claude Code printed no result",
        "print its events: `--output-format stream-json`",
        agent_protocol="claude-code",
    ),
    "program that hangs": replace(
        program("sleep 20; echo {PROMPT}", "no response within 400 ms", HANGS),
        command="run --target bot --timeout-ms 400",
        where="agent error",
    ),
}
MODELS = {
    "wrong key": model(
        "401 Unauthorized", "Incorrect API key provided", "check that the key is valid", "invalid_api_key"
    ),
    "model that does not exist": model(
        "404 Not Found", "The model `gpt-4o` does not exist", "the model's or deployment's name", "model_not_found"
    ),
    "wrong base URL": model("404 Not Found", "no such path", "the URL"),
    "no credit": model(
        "429 Too Many Requests", "You exceeded your current quota", "renew the quota or credit", "insufficient_quota"
    ),
    "server that does not run": Mistake(
        "run --provider openai --model gpt-4o --max-retries 0",
        "no connection",
        "openai (gpt-4o)",
        next_step="check that the model's server runs, and its `baseUrl`",
        code=3,
        environment=SHARED | {"OPENAI_BASE_URL": "{nobody}"},
    ),
}
JUDGES = {
    "no judge": Mistake(
        "run --agent-endpoint {ok}",
        "rubric dimensions need a judge, and none is configured (`judge`, --judge)",
        "skipped",
        next_step="each says why it was skipped",
        code=3,
        files={"evals/plans.rubric.json": RUBRIC},
    ),
    "judge with a wrong key": judge(
        Reply("401 Unauthorized", {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}),
        'the judge "openai:gpt-4o" gave no response',
    ),
    "judge without a score": judge(
        Reply(body=openai_answer("It is quite friendly.")), "none of 3 replies of the judge held a valid JSON verdict"
    ),
    "grader that does not exist": grader("./grade.py", "./grade.py: not found"),
    "grader without a score": grader("echo yes", "policy"),
    "grader with an import error": grader(
        "python3 grade.py", "No module named 'nothere'", {"evals/grade.py": "import nothere\n"}
    ),
}
EVALS = {
    "pattern that cannot be compiled": Mistake(
        RUN,
        "is not a valid pattern",
        f"{SUITE}:2",
        next_step="Fix the invalid patterns in the eval files",
        code=1,
        files={SUITE: suite(case(expect={"responseMatches": ["(ok"]}))},
    ),
    "expectations that nobody knows": Mistake(
        RUN,
        'unknown assertion "responseContain"',
        f"{SUITE}:2",
        '(did you mean "responseContains"?)',
        "correct the unknown expectations",
        code=3,
        files={SUITE: suite(case(expect={"responseContain": ["ok"]}))},
    ),
    "waiver for a case that does not exist": Mistake(
        "waive gs-01 --reason known --until 14d",
        'no eval file has a case "gs-01"',
        "",
        '(did you mean "gs-1"?)',
        "name a case of an eval file",
        first=RUN,
    ),
}
TABLES = {"agent": AGENTS, "program": PROGRAMS, "model": MODELS, "judge": JUDGES, "evals": EVALS}
ROWS = {f"{table}: {name}": row for table, rows in TABLES.items() for name, row in rows.items()}
BROKEN_JUDGES = {f"judge: {name}" for name in JUDGES if name != "no judge"}
MAY_PASS = BROKEN_JUDGES | {
    "agent: too many requests",
    "agent: error in every case",
    "agent: server behind a proxy is down",
    "agent: agent that hangs",
    "program: program that hangs",
    "model: server that does not run",
}
"""Causes that may be over in the next run."""
UNRELATED = BROKEN_JUDGES | {"model: no credit"}
"""Causes of which it is known that the change is none of them."""


def answer_everything(data: bytes) -> socket.socket:
    """A server that answers whatever comes with this, and hangs up."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection = server.accept()[0]
                with connection:
                    connection.recv(1 << 16)
                    connection.sendall(data)

    threading.Thread(target=serve, daemon=True).start()
    return server


@pytest.fixture(scope="module")
def addresses() -> Iterator[dict[str, str]]:
    """The addresses that rows name: of a server that replies to each row, and of others that cannot."""
    with socket.create_server(("127.0.0.1", 0)) as gone:
        nobody = f"http://127.0.0.1:{gone.getsockname()[1]}/chat"
    with (
        replying(ROWS) as server,
        answer_everything(PLAIN_TEXT) as plain_text,
        answer_everything(TLS_ALERT) as tls,
    ):
        ports = {"plain": plain_text, "tls": tls}
        named = {name: f"127.0.0.1:{one.getsockname()[1]}" for name, one in ports.items()}
        yield named | {"server": server, "ok": f"{server}/ok", "nobody": nobody}


@pytest.mark.parametrize("name", ROWS)
def test_mistake__that_a_run_meets__is_told_with_the_next_step_that_follows_from_it(tmp_path, addresses, name) -> None:
    row, place = ROWS[name], Place(tmp_path, addresses | {"url": f"{addresses['server']}/{to_step(name)}"})
    told = make_mistake(row, place)
    check_told(row, told, place)
    if row.code == 2:
        return
    if row.code == 3:
        assert told.next_step.startswith("Run it again. If it ends the same way") == (name in MAY_PASS), told.text
    comment = plain(place.run("report latest --format md", row.environment).stdout)
    assert find_next_step(comment) == told.next_step, comment
    assert (INNOCENT in comment) == (name in UNRELATED), comment
