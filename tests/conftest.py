"""What all tests share: golden files and the flag that rewrites them."""

from __future__ import annotations

import gc
import math
import signal
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.processor_time import ProcessorTime
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
settings.register_profile("fast", settings.get_profile("ours"), max_examples=10)
settings.load_profile("ours")
# a shell starts what it does not wait for with SIGINT ignored, and every program that we start would inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)
ROWS = 1
"""How many rows of a table the fast tier tries."""
SITUATIONS = 3
"""How many situations of a subject the fast tier tries in `FOLDERS_WITH_PROGRAMS`."""
FOLDERS_WITH_PROGRAMS = {"acceptance", "hostile", "integration"}
GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files anew; read the diff")
    parser.addoption("--full", action="store_true", help="run the full tier: slow tests, every row of every table")


def is_fast_tier(config: pytest.Config) -> bool:
    """Return whether only the fast tier is to run: not with `--full`, nor where a file or a test is named."""
    return not config.getoption("full") and not any(".py" in arg for arg in config.args)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(ProcessorTime(config))
    if is_fast_tier(config):
        settings.load_profile("fast")
    if not config.getoption("numprocesses", None):  # who only hands tests out to others collects none
        # modules and tests are made and stay: looking for what could be thrown away was a fifth of the inner loop
        gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only the full tier runs: tests marked `slow`, further rows of tables, further situations."""
    if not is_fast_tier(config):
        return
    rows: Counter[str] = Counter()
    situations: defaultdict[str, set[str]] = defaultdict(set)
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        table = _get_table(item)
        rows[table] += 1
        is_fast = item.get_closest_marker("slow") is None and rows[table] <= _count_rows(item)
        if is_fast and (subject := _get_limited_subject(item)):
            situations[subject].add(table)
            is_fast = len(situations[subject]) <= SITUATIONS
        (kept if is_fast else left).append(item)
    # a rule of a specification is tested in the fast tier too, however long its only test takes
    tested = {rule for item in kept for rule in _get_rules(item)}
    for item in left[:]:
        if not tested.issuperset(_get_rules(item)):
            tested.update(_get_rules(item))
            left.remove(item)
            kept.append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left)


def _get_rules(item: pytest.Item) -> set[str]:
    """Return the rules of specifications that a test holds."""
    return {rule for mark in item.iter_markers("contract") for rule in mark.args}


def _get_table(item: pytest.Item) -> str:
    """Return the name of the table that a test is a row of: its function, and what the mark `rows_each` names."""
    table = item.nodeid.partition("[")[0]
    each = item.get_closest_marker("rows_each")
    return f"{table}[{item.callspec.params[each.args[0]]!r}]" if each else table


def _get_limited_subject(item: pytest.Item) -> str | None:
    """Return the subject of a test of which the fast tier tries few situations, or None if it tries all."""
    folder = item.path.relative_to(Path(__file__).parent).parts[0]
    if folder not in FOLDERS_WITH_PROGRAMS or item.get_closest_marker("rows_each") or "golden" in item.fixturenames:
        return None
    return item.nodeid.partition("[")[0].rpartition("::")[0] + item.originalname.partition("__")[0]


def _count_rows(item: pytest.Item) -> float:
    """Return how many rows of its table the fast tier tries: of golden files all."""
    if "golden" in item.fixturenames:
        return math.inf
    return ROWS


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep what is imported and collected by now out of the garbage collector's sight."""
    gc.freeze()
    gc.enable()
    if is_fast_tier(session.config):
        gc.set_threshold(100_000, 50, 50)  # looking after every 700 new objects took a sixth of a room's time


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if is_fast_tier(config):
        terminalreporter.write_line("the fast tier: `make test-full` runs every test with every row and more examples")


@pytest.fixture
def fast_tier(pytestconfig: pytest.Config) -> bool:
    """Whether only the fast tier runs."""
    return is_fast_tier(pytestconfig)


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
