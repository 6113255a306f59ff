"""What all tests share: golden files and the flag that rewrites them."""

from __future__ import annotations

import gc
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.sizes import size

# a busy machine is no defect of what is tested; what was found is printed so that anybody can have it again
settings.register_profile(
    "ours",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
    # a change is tried with fewer; what a property finds with more, main's own run finds
    max_examples=size(100),
)
settings.register_profile("inner loop", settings.get_profile("ours"), max_examples=5)
settings.load_profile("ours")
# a shell starts what it does not wait for with SIGINT ignored, and every program that we start would inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)
# of a table of parameters the inner loop of a room tries the first rows, as it tries a few examples of a property
ROWS = 3
GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files anew; read the diff")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.markexpr == "not slow":
        settings.load_profile("inner loop")
    if not config.getoption("numprocesses", None):  # who only hands tests out to others collects none
        # modules and tests are made and stay: looking for what could be thrown away was a fifth of the inner loop
        gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The further rows of a long table are slow where a whole room is asked for, and not where a file of it is."""
    if config.option.markexpr == "not slow" and not any(".py" in arg for arg in config.args):
        rows: Counter[str] = Counter()
        for item in items:
            rows[table := item.nodeid.partition("[")[0]] += 1
            if rows[table] > ROWS:
                item.add_marker(pytest.mark.slow)


def pytest_collection_finish(session: pytest.Session) -> None:
    """What is imported and collected by now stays, so that nothing need look at it again."""
    gc.freeze()
    gc.enable()
    if session.config.option.markexpr == "not slow":
        gc.set_threshold(100_000, 50, 50)  # looking after every 700 new objects took a sixth of a room's time


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden("comment/few.md", text)`: the text is, to the letter, what the golden file holds."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"no golden file {name}: run with --update-golden and read it"
        assert text == path.read_text(encoding="utf-8")

    return check
