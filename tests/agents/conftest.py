"""Each framework is installed once, and each of its servers is started once.

`EVAL_GATE_AGENTS` names the frameworks to test, `all` for every one; `make agents` sets it. Else they are skipped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.frameworks import PROGRAMS, Server, started
from tests.support.github import FakeGitHub, fake_github
from tests.support.tools import NotInstallableError, install

collect_ignore_glob = ["*/*"]
"""What is in the folders are agents."""


def _skip_unless_asked_for(name: str) -> None:
    if not {"all", name} & set(os.environ.get("EVAL_GATE_AGENTS", "").split(",")):
        pytest.skip(f"{name} is not asked for: run `make agents`")


def _installed(server: Server) -> Path:
    """Where it is. Skips the test where it is not asked for, or cannot be had."""
    _skip_unless_asked_for(server.framework)
    try:
        return install(server)
    except NotInstallableError as error:
        if os.environ.get("EVAL_GATE_REQUIRE_AGENTS") == "1":
            raise
        pytest.skip(f"*** NOT TESTED with {server}, which cannot be installed here: {error} ***")


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder with coding agents that are commands."""
    return _installed(PROGRAMS) / "node_modules" / ".bin"


@pytest.fixture(scope="session")
def ours() -> None:
    """Agents of conversations that need no framework: long tests, so they too run only where they are asked for."""
    _skip_unless_asked_for("conversations")


@pytest.fixture(scope="session")
def installed() -> Callable[[Server], Path]:
    """Where a server's framework is, for who starts the server alone."""
    return _installed


@pytest.fixture(scope="session")
def running(tmp_path_factory) -> Iterator[Callable[[Server], str]]:
    """The address of a server, started for who asks first."""
    made: dict[Server, str] = {}
    with ExitStack() as opened:

        def of(server: Server) -> str:
            installed = _installed(server)
            if server not in made:
                folder = tmp_path_factory.mktemp(server.framework)
                made[server] = opened.enter_context(started(server, installed, folder))
            return made[server]

        yield of


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with fake_github() as server:
        yield server
        assert server.violations == []
