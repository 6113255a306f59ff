"""Pages of real runs, and the browser that opens them.

Where there is no Chromium, or other tests run in the same process, the tests are skipped and say so in a line of their
own; EVAL_GATE_REQUIRE_BROWSER=1 makes that a failure.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pages.runs import ten_thousand, with_eight, with_nothing, with_one, with_outage, with_sixty
from tests.support.browser import AXE, browser, chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BESIDE = "it is not among other tests, whose event loops the browser's would be in the way of: `make pages`"
REQUIRED = os.environ.get("EVAL_GATE_REQUIRE_BROWSER") == "1"


def missing() -> str | None:
    """What these tests need and is not here; None where all is."""
    if chromium() is None:
        return "no Chromium (Debian, Ubuntu: apt-get install chromium; elsewhere EVAL_GATE_CHROMIUM=path)"
    if importlib.util.find_spec("playwright") is None:
        return "no playwright (`make pages` installs it)"
    return None if AXE.is_file() else "no axe-core (`make pages` installs it)"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = [item for item in items if Path(__file__).parent in item.path.parents]
    why = missing() or (BESIDE if len(here) < len(items) else None)
    if why is not None and here:
        if REQUIRED:
            pytest.exit(f"the page cannot be tested: {why}", returncode=1)
        for item in here:
            item.add_marker(pytest.mark.skip(reason=f"THE PAGE IS NOT TESTED: {why}"))


@pytest.fixture(scope="session")
def chrome() -> Iterator[Browser]:
    with browser() as started:
        yield started


def made(make: Callable[[Path], Path], folder: Path) -> Path:
    """The page, made in a thread of its own: the browser has an event loop in this one, and the agent needs another."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(make, folder).result()


@pytest.fixture(scope="session")
def sixty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(with_sixty, tmp_path_factory.mktemp("sixty"))


@pytest.fixture(scope="session")
def eight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(with_eight, tmp_path_factory.mktemp("eight"))


@pytest.fixture(scope="session")
def outage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(partial(with_outage, share=1), tmp_path_factory.mktemp("outage"))


@pytest.fixture(scope="session")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(partial(with_outage, share=2), tmp_path_factory.mktemp("half"))


@pytest.fixture(scope="session")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(with_one, tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="session")
def nothing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(with_nothing, tmp_path_factory.mktemp("nothing"))


@pytest.fixture(scope="session")
def thousands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ten_thousand(tmp_path_factory.mktemp("thousands"))
