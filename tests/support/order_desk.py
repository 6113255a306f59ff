"""The order desk of `tests/agents/conversations` behind each kind of target that holds a conversation.

A world of them is made as other worlds are (`world.py`): the word for a run is a variant of the desk.

    desk = DeskWorld(folder, http_desk(url))
    desk.main("main*10")
    expect(desk.here("forgets"), 1, "10 regressions", regression=DESK_CASES)
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.support.agents import Exchange, agent
from tests.support.frameworks import AGENTS
from tests.support.model_server import openai_answer
from tests.support.program import gate
from tests.support.world import World, words

CONVERSATIONS = AGENTS / "conversations"
QUICK = {"--timeout-ms": "10000", "--max-retries": "0", "--concurrency": "4"}


def _load_desk() -> ModuleType:
    """The desk's module: servers of frameworks have a copy of the file, so it is in no package."""
    spec = importlib.util.spec_from_file_location("order_desk", CONVERSATIONS / "order_desk.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ORDER_DESK = _load_desk()
SCRIPTS: list[dict[str, Any]] = json.loads((CONVERSATIONS / "desk.golden.json").read_text())
"""Ten conversations with their turns."""
USERS: list[dict[str, Any]] = json.loads((CONVERSATIONS / "users.golden.json").read_text())
"""Three that a simulated user leads."""
BROKEN: tuple[str, ...] = ORDER_DESK.BROKEN
"""Variants of the desk that break turn 3."""


@dataclass
class SessionDesk:
    """The desk over loopback with a store of sessions: which messages came in each, in order."""

    url: str = ""
    variant: str = "main"
    sessions: dict[str, list[str]] = field(default_factory=dict)
    fault: Callable[[Exchange, list[str]], bool] = lambda _exchange, _messages: False
    """Answers instead of the desk where it returns True; the session's messages include the one that came."""

    async def __call__(self, exchange: Exchange) -> None:
        asked = exchange.json
        messages = self.sessions.setdefault(asked["session"], [])
        messages.append(asked["message"])
        if self.fault(exchange, messages):
            return
        text, calls = ORDER_DESK.answer(messages, self.variant)
        exchange.answer({"response": text, "toolCalls": calls})


@contextmanager
def session_desk() -> Iterator[SessionDesk]:
    """A running desk that speaks Eval Gate's own protocol."""
    desk = SessionDesk()
    with agent(desk) as running:
        desk.url = running.url
        yield desk


@dataclass
class DeskAgent:
    """How a run names the agent, and what makes it another variant; the place of both is the world's folder."""

    options: dict[str, str]
    switch: Callable[[Path, str], None]
    target: dict[str, Any] | None = None
    """The target of the list, where the agent needs one."""
    user: str | None = None
    """The address of the model that plays simulated users."""
    cases: Sequence[dict[str, Any]] = tuple(SCRIPTS)
    files: tuple[str, ...] = ()
    """Of `tests/agents/conversations`, copied into the world's folder."""

    def set_up(self, folder: Path) -> None:
        """Write the eval file and whatever the agent needs."""
        (folder / "evals").mkdir(parents=True, exist_ok=True)
        (folder / "evals" / "desk.golden.json").write_text(json.dumps(list(self.cases), indent=1))
        for name in self.files:
            shutil.copy(CONVERSATIONS / name, folder)
        targets = [{"name": "desk", **self.target}] if self.target else []
        if self.user:
            targets.append({"name": "person", **MODEL, "base_url": f"{self.user}/v1", "model": "person-1"})
        if targets:
            (folder / "targets.yaml").write_text(json.dumps({"targets": targets}))


def switch_file(place: Path) -> Callable[[Path, str], None]:
    """A program that reads its variant from a file in this folder."""
    return lambda _folder, variant: (place / "variant.txt").write_text(variant) and None


def loopback_desk(desk: SessionDesk) -> DeskAgent:
    """The desk in this process, named by its address alone."""
    return DeskAgent({"--agent-endpoint": desk.url}, lambda _folder, variant: setattr(desk, "variant", variant))


def http_desk(url: str, place: Path) -> DeskAgent:
    """The desk of FastAPI, running in this folder."""
    body = {"message": "{{message}}", "session": "{{session}}"}
    target = {"provider": "http", "url": f"{url}/chat", "requestTemplate": body}
    return DeskAgent({"--target": "desk"}, switch_file(place), target)


def langgraph_desk(url: str, place: Path) -> DeskAgent:
    """The desk's graph behind LangGraph's own server, running in this folder."""
    where = f"{url}/threads/{{{{session}}}}/runs/wait"
    return DeskAgent(
        {"--target": "desk"},
        switch_file(place),
        {"provider": "http", "url": where, "agentProtocol": "langgraph-thread"},
    )


def lines_desk() -> DeskAgent:
    """The desk as a command that lives for a conversation."""
    command = f"{sys.executable} ../desk_lines.py"
    return DeskAgent(
        {"--target": "desk"},
        lambda folder, variant: (folder / "evals" / "variant.txt").write_text(variant) and None,
        {"provider": "cli", "command": command, "conversation": "lines", "timeout_seconds": 10},
        files=("order_desk.py", "desk_lines.py"),
    )


MODEL = {"provider": "openai-compatible"}
PROMPT = "You work at an order desk. Use your tools."
"""System prompt of the model; the variants of it end with their name in brackets."""


def model_desk(url: str) -> DeskAgent:
    """The desk as a model with tools, whose calls get stubs; a change of its system prompt breaks it."""

    def switch(folder: Path, variant: str) -> None:
        (folder / "prompt.md").write_text(PROMPT if variant == "main" else f"{PROMPT} [{variant}]")

    target = {**MODEL, "base_url": f"{url}/v1", "model": "desk-1", "system_prompt_path": "prompt.md"}
    options = {"--target": "desk", "--tool-registry": "tools.json"}
    return DeskAgent(options, switch, target, cases=[_with_stubs(case) for case in SCRIPTS], files=("tools.json",))


def _with_stubs(case: dict[str, Any]) -> dict[str, Any]:
    """The case with what each tool returns for its order."""
    number = re.search(r"\d{4}", json.dumps(case))
    assert number is not None
    tools = {*ORDER_DESK.TOOLS.values()}
    return case | {"stubs": dict.fromkeys(sorted(tools), ORDER_DESK.ORDERS[number[0]])}


def with_users(desk: DeskAgent, url: str) -> DeskAgent:
    """The same desk, and the three simulated users, whom the model at this address plays."""
    options = {**desk.options, "--simulated-user": "person"}
    stubs = "stubs" in desk.cases[0]
    users = [_with_stubs(case) if stubs else case for case in USERS]
    return DeskAgent(options, desk.switch, desk.target, url, [*desk.cases, *users], desk.files)


WISHES = {"refund": "How much do I get back?", "find out where": "Where is it now?", "cancel": "Cancel it."}
"""What a simulated user with such a goal says when the desk knows its order."""


def play_user(prompt: str) -> dict[str, str]:
    """Reply as a model that plays the user of this prompt: it reads goal, facts and what the desk said last."""
    goal, facts, said = (prompt.partition(f"## {name} ##")[2].partition("[[")[0] for name in SECTIONS)
    last = said.rpartition("assistant:")[2]
    number = re.search(r"order (\d{4})", facts)
    assert number is not None
    if re.search("refunded|cancelled|on its way", last):
        return {"action": "end", "message": "", "outcome": "reached"}
    if "Which order" in last:
        message = f"My order is {number[1]}."
    elif "You get" in last:
        message = "Go ahead."
    else:
        message = next(wish for word, wish in WISHES.items() if word in goal)
    return {"action": "message", "message": message, "outcome": "open"}


SECTIONS = ("goal", "facts", "conversation")
"""Of the prompt of a simulated user."""


async def answer_as_model(exchange: Exchange) -> None:
    """Answer as a model of OpenAI's protocol that plays a user, or has the desk's prompt and tools."""
    body = exchange.json
    if body["model"] == "person-1":
        exchange.answer(openai_answer(json.dumps(play_user(body["messages"][-1]["content"]))))
        return
    said = [one["content"] for one in body["messages"] if one["role"] == "user"]
    prompt = next((one["content"] for one in body["messages"] if one["role"] == "system"), "")
    named = re.search(r"\[([\w+:]+)\]$", prompt)
    text, calls = ORDER_DESK.answer(said, named[1] if named else "main")
    if calls and body["messages"][-1]["role"] != "tool":
        asked = [(f"call-{at}", call["name"], call["params"]) for at, call in enumerate(calls)]
        exchange.answer(openai_answer(None, asked))
    else:
        exchange.answer(openai_answer(text))


@contextmanager
def desk_model() -> Iterator[str]:
    """The address of such a model."""
    with agent(answer_as_model) as running:
        yield running.url.removesuffix("/chat")


class DeskWorld(World):
    """A repository whose agent is one of these desks."""

    def __init__(self, folder: Path, desk: DeskAgent) -> None:
        self.folder, self.desk = folder, desk
        desk.set_up(folder)
        self.suite, self.cases = "desk.golden.json", [dict(case) for case in desk.cases]

    def run(self, letters: str, *options: str, url: str | None = None) -> subprocess.CompletedProcess[str]:
        """One run of the program against this variant of the desk."""
        self.desk.switch(self.folder, letters)
        quick = {name: value for name, value in QUICK.items() if name not in options}
        return self.gate("run", *words(self.desk.options | quick), *options)

    def gate(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The program as in CI; a key of a model starts it from a process that has loaded what asks models."""
        model = {"DESK_API_KEY": "none"} if self.desk.user or "stubs" in self.desk.cases[0] else {}
        return gate(self.folder, *arguments, CI="true", **model)
