"""Each tool is installed once, and its repository gets a main branch with a record that real runs made.

`EVAL_GATE_TOOLS` names the tools to test, `all` for every one; `make tools` sets it. Without it they are skipped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.github import fake_github
from tests.support.jobs import Job
from tests.support.tools import NotInstallableError, Repository, Tool, install

collect_ignore_glob = ["*/*"]
"""What is in the folders are other people's repositories, with tests of their own."""
MAIN_RUNS = 3


@pytest.fixture(scope="session")
def repositories(tmp_path_factory) -> Iterator[Callable[[Tool], Repository]]:
    """Each tool's repository, made for who asks first."""
    made: dict[str, Repository] = {}
    with ExitStack() as opened:

        def of(tool: Tool) -> Repository:
            if str(tool) not in made:
                installed = installed_or_skip(tool)
                github = opened.enter_context(fake_github())
                made[str(tool)] = Repository(tool, installed, Job(tmp_path_factory.mktemp(str(tool)), github))
            return made[str(tool)]

        yield of
        assert [one.job.github.violations for one in made.values()] == [[]] * len(made)


@pytest.fixture
def repository(request: pytest.FixtureRequest, repositories: Callable[[Tool], Repository]) -> Repository:
    """The tool's repository. Parametrised with the tool."""
    return repositories(request.param)


@pytest.fixture
def used(repository: Repository) -> Repository:
    """The same, after three green runs of main."""
    while repository.main_runs < MAIN_RUNS:
        ended = repository.main()
        assert ended.code == 0, f"{repository.said}\n{ended.log}"
    return repository


def installed_or_skip(tool: Tool) -> Path:
    """Where the tool is; skips, or fails where tools are required, for what is not asked for or cannot be installed."""
    if not {"all", tool.name} & set(os.environ.get("EVAL_GATE_TOOLS", "").split(",")):
        pytest.skip(f"{tool.name} is not asked for: run `make tools`")
    try:
        return install(tool)
    except NotInstallableError as error:
        if os.environ.get("EVAL_GATE_REQUIRE_TOOLS") == "1":
            raise
        pytest.skip(f"*** NOT TESTED with {tool.name}, which cannot be installed here: {error} ***")
