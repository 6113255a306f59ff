"""Each way in which docs/targets.md says that an agent remembers: what turn 1 told is known in turn 3, and only there.

Two conversations run at once, in two trials each, so an agent that is given somebody else's session says so.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import Exchange, agent
from tests.support.order_desk import CONVERSATIONS, ORDER_DESK
from tests.support.program import gate

DESK_1 = ["My order is 4711.", "It has a crack.", "How much do I get back?"]
DESK_2 = ["I wait for 4712.", "I am Ada.", "How much do I get back?"]
PYTHON = sys.executable


def cases() -> list[dict[str, Any]]:
    """Two conversations whose third turn needs their first, and that call a tool in turns 1 and 3."""
    checks = [{"toolsCalled": ["find_order"]}, {"toolsCalled": []}]
    return [
        {
            "id": f"gs-way-{number}",
            "turns": [
                {"message": message, "expect": expect}
                for message, expect in zip(messages, [*checks, {"responseContainsNumber": [price]}], strict=True)
            ],
            "expect": {"toolsCalled": ["find_order", "find_order"]},
        }
        for number, (messages, price) in enumerate([(DESK_1, "49.90"), (DESK_2, "24.00")])
    ]


class AnyWay:
    """The order desk over HTTP: it answers from all messages where it gets them, else from those of the session."""

    def __init__(self) -> None:
        self.sessions: dict[str, list[str]] = {}

    async def __call__(self, exchange: Exchange) -> None:
        body = exchange.json
        session = self._name_session(exchange, body)
        if "all" in body:
            messages = [one["content"] for one in body["all"] if one["role"] == "user"]
        elif "text" in body:
            messages = re.findall(r"(?m)^@\[User\]:\s*(.*)", body["text"]) or [body["text"]]
        else:
            messages = self.sessions.setdefault(session, [])
            messages.append(body["message"])
        text, calls = ORDER_DESK.answer(messages, "steady")
        answer = {"response": text, "toolCalls": calls, "data": {"id": session}}
        exchange.answer(answer, X_Session=session, Set_Cookie=f"sid={session}; Path=/; HttpOnly")

    def _name_session(self, exchange: Exchange, body: dict[str, Any]) -> str:
        cookie = re.search(r"sid=([\w-]+)", exchange.header("Cookie") or "")
        path = exchange.head.split(" ")[1].partition("/chat/")[2]
        named = body.get("session") or exchange.header("X-Session") or (cookie and cookie[1]) or path
        return named or str(uuid.uuid4())


MESSAGE = {"message": "{{message}}"}
HTTP: dict[str, dict[str, Any]] = {
    "own protocol": {},
    "our id in the address": {"url": "URL/{{session}}", "requestTemplate": MESSAGE},
    "our id in a header": {"headers": {"X-Session": "{{session}}"}, "requestTemplate": MESSAGE},
    "its id": {"requestTemplate": MESSAGE | {"session": "{{session}}"}, "sessionPath": "data.id"},
    "its header": {
        "requestTemplate": MESSAGE,
        "headers": {"X-Session": "{{session}}"},
        "sessionHeader": "X-Session",
    },
    "its cookie": {"requestTemplate": MESSAGE, "sessionCookie": "sid"},
    "all messages": {"requestTemplate": {"all": "{{conversation}}"}},
    "one text": {"requestTemplate": {"text": "{{prompt}}"}},
}


@pytest.mark.parametrize("way", HTTP)
def test_http__each_way_to_remember__turn_3_knows_turn_1(way, tmp_path) -> None:
    with agent(AnyWay()) as running:
        target = {"provider": "http", "url": "URL", **HTTP[way]}
        target["url"] = target["url"].replace("URL", running.url)
        check(tmp_path, target)


PROGRAM = """
import json, pathlib, re, sys
from order_desk import answer
way, *words = sys.argv[1:]
if way == "session":
    store = pathlib.Path(f"{words[0]}.json")
    messages = json.loads(store.read_text()) if store.exists() else []
    messages.append(words[1])
    store.write_text(json.dumps(messages))
elif way == "history":
    messages = [one["content"] for one in json.load(open(words[0])) if one["role"] == "user"]
else:
    messages = re.findall(r"(?m)^@\\[User\\]:\\s*(.*)", words[0]) or words[:1]
text, calls = answer(messages, "steady")
listed = [{"tool": one["name"], "input": one["params"]} for one in calls]
print(json.dumps({"output_messages": [{"role": "assistant", "content": text, "tool_calls": listed}]}))
"""
SESSION = f"{PYTHON} desk.py session {{SESSION}} {{PROMPT}}"
COMMANDS: dict[str, dict[str, Any]] = {
    "session": {"command": SESSION},
    "resume": {"command": SESSION, "resume_command": SESSION},
    "history": {"command": f"{PYTHON} desk.py history {{CONVERSATION_FILE}}"},
    "one text": {"command": f"{PYTHON} desk.py text {{PROMPT}}"},
    "lines": {"command": f"{PYTHON} desk_lines.py", "conversation": "lines"},
}


@pytest.mark.parametrize("way", COMMANDS)
def test_command__each_way_to_remember__turn_3_knows_turn_1(way, tmp_path) -> None:
    for name in ("order_desk.py", "desk_lines.py"):
        shutil.copy(CONVERSATIONS / name, tmp_path)
    (tmp_path / "desk.py").write_text(PROGRAM)
    (tmp_path / "variant.txt").write_text("steady")
    check(tmp_path, {"provider": "cli", "cwd": "..", **COMMANDS[way]})


FUNCTION = """
from order_desk import answer

sessions = {}


def by_session(request):
    messages = sessions.setdefault(request.session, [])
    messages.append(request.message)
    assert len(messages) == request.turn, "counted from 1"
    text, calls = answer(messages, "steady")
    return {"response": text, "toolCalls": calls}


def by_messages(request):
    text, calls = answer([one.content for one in request.messages if one.role == "user"], "steady")
    return {"response": text, "toolCalls": calls}
"""


@pytest.mark.parametrize("way", ["by_session", "by_messages"])
def test_function__each_way_to_remember__turn_3_knows_turn_1(way, tmp_path) -> None:
    shutil.copy(CONVERSATIONS / "order_desk.py", tmp_path)
    (tmp_path / "chat.py").write_text(FUNCTION)
    check(tmp_path, {"provider": "python", "function": f"chat:{way}"})


def check(folder: Path, target: dict[str, Any]) -> None:
    """The two conversations pass, all executions of them."""
    (folder / "evals").mkdir()
    (folder / "evals" / "ways.golden.json").write_text(json.dumps(cases()))
    (folder / "targets.yaml").write_text(json.dumps({"targets": [{"name": "desk", **target}]}))
    done = gate(folder, "run", "--target", "desk", "--concurrency", "2", "--trials", "2", "--max-retries", "0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 of 2 pass" in done.stdout, done.stdout
