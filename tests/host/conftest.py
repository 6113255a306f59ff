"""Tests of the action without Docker. They install packages, which takes a while: `.ci/host` runs them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.github import FakeGitHub, fake_github
from tests.support.host import HostJob, nodes

REQUIRED = os.environ.get("EVAL_GATE_REQUIRE_HOST") == "1"
ASKED = os.environ.get("EVAL_GATE_TEST_HOST") == "1"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    why = (
        "there is no node here"
        if not nodes()
        else None
        if ASKED or REQUIRED
        else "run .ci/host, which has all it needs"
    )
    here = [item for item in items if Path(__file__).parent in item.path.parents]
    if why is not None and here:
        if REQUIRED:
            pytest.exit(f"the action without Docker cannot be tested: {why}", returncode=1)
        for item in here:
            item.add_marker(pytest.mark.skip(reason=f"THE ACTION WITHOUT DOCKER IS NOT TESTED: {why}"))


@pytest.fixture(scope="session")
def tools(tmp_path_factory) -> Path:
    """The tool cache of a runner."""
    return tmp_path_factory.mktemp("tools")


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with fake_github() as server:
        yield server
        assert server.violations == []


@pytest.fixture
def job(github, tools) -> Iterator[HostJob]:
    """In a folder that commands can enter as another user: those of pytest are closed."""
    with tempfile.TemporaryDirectory(prefix="eval-gate-host-") as folder:
        made = HostJob(Path(folder), github, next(iter(nodes().values())), tools)
        made.write_suite()
        yield made
