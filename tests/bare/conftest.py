"""Tests in root file systems that hold a bare Linux. Making them takes a while: `.ci/bare` does, and runs these."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.github import FakeGitHub, fake_github
from tests.support.root_system import RootSystem

SYSTEMS = sorted(Path(os.environ.get("EVAL_GATE_BARE_SYSTEMS", os.devnull)).glob("*.tar"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents and not SYSTEMS:
            item.add_marker(pytest.mark.skip(reason="BARE SYSTEMS ARE NOT TESTED: run .ci/bare, which makes them"))


@pytest.fixture(params=SYSTEMS or [None], ids=lambda path: path.stem if path else "none")
def system(request) -> Iterator[RootSystem]:
    with tempfile.TemporaryDirectory(prefix="eval-gate-bare-") as folder:
        yield RootSystem.unpack(request.param, Path(folder) / "root")


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with fake_github() as server:
        yield server
        assert server.violations == []
