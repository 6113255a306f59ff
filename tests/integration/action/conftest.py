"""A GitHub and a job in it; at the end nothing that was said to it may have been wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.github import FakeGitHub, fake_github
from tests.support.jobs import Job


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with fake_github() as server:
        yield server
        assert server.violations == []
        assert server.faults.unused == []


@pytest.fixture
def job(tmp_path, github) -> Job:
    made = Job(tmp_path, github)
    made.write_suite()
    return made
