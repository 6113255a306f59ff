"""A GitHub whose every exchange has to be right, our connection to it, and a server that says whatever it is told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from eval_gate.github.client import GitHubClient
from eval_gate.text.secret import Secret
from tests.support.github import FakeGitHub, Fault, Faults, fake_github
from tests.support.github.loopback import Answer, Door, LoopbackServer, Request


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with fake_github() as server:
        yield server
        assert server.violations == []
        assert server.faults.unused == []


@pytest.fixture
def waits() -> list[float]:
    """What was waited, in place of waiting."""
    return []


@pytest.fixture
def client(github: FakeGitHub, waits: list[float]) -> Iterator[GitHubClient]:
    opened = GitHubClient(github.base, Secret(github.token), github.state.full_name, sleep=waits.append)
    yield opened
    opened.close()


class Oracle:
    """A server that gives prepared answers, one after the other, the last one for ever."""

    host = "odd"

    def __init__(self, answers: tuple[Answer, ...]) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []
        self.base = ""
        self.server: LoopbackServer | None = None

    @property
    def connections(self) -> int:
        """How many clients are connected now."""
        return self.server.open_connections if self.server else 0

    def judge(self, _request: Request) -> list[str]:
        return []

    def judge_answer(self, _request: Request, _answer: Answer) -> list[str]:
        return []

    def failure(self, fault: Fault, _request: Request) -> Answer:
        return Answer(fault.code or 500)

    def answer(self, request: Request) -> Answer:
        self.requests.append(request)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def says() -> Iterator[Callable[..., Oracle]]:
    """`says(Answer(200, raw=b"{"))`: a server at `.base` that answers so."""
    with ExitStack() as stack:

        def start(*answers: Answer) -> Oracle:
            oracle = Oracle(answers)
            server = LoopbackServer(oracle, Faults(), threading.RLock(), lambda _: None, "127.0.0.1")
            door = Door(server)
            door.open()
            stack.callback(door.close)
            oracle.server = server
            oracle.base = f"http://127.0.0.1:{server.server_port}"
            return oracle

        yield start
