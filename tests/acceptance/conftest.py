"""Prepared branches: each history of main is made once, by real runs, and copied for whoever begins with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.github import FakeGitHub, fake_github
from tests.support.world import ActionWorld, Script, World, scripted


@pytest.fixture(scope="session")
def script() -> Iterator[Script]:
    with scripted() as made:
        yield made


@pytest.fixture(scope="session")
def prepared(script, tmp_path_factory) -> Callable[[str, Path], World]:
    made: dict[str, World] = {}

    def prepare(runs: str, folder: Path) -> World:
        if runs not in made:
            made[runs] = World(tmp_path_factory.mktemp("branch"), script)
            made[runs].main(runs)
        return made[runs].copied_to(folder)

    return prepare


@pytest.fixture
def world(prepared, tmp_path) -> Callable[[str], World]:
    """`world("PPPP*9")`: a repository whose main had these runs."""
    return lambda runs: prepared(runs, tmp_path)


@pytest.fixture
def empty(script, tmp_path) -> World:
    """A repository without any run."""
    return World(tmp_path, script)


@pytest.fixture(autouse=True)
def _no_model(script) -> Iterator[None]:
    """Answers say which model they are from only where a test wants it."""
    yield
    script.model = None


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with fake_github() as server:
        yield server
        assert server.violations == []


@pytest.fixture
def action(github, script, tmp_path) -> ActionWorld:
    """The same on GitHub."""
    return ActionWorld(tmp_path, github, script)
