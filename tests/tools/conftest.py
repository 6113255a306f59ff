"""Each tool is installed once, and its repository gets a main branch with a record that real runs made.

`EVAL_GATE_TOOLS` names the tools to test, `all` for every one; `make tools` sets it. Without it they are skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.support.github import fake_github
from tests.support.jobs import Job
from tests.support.tools import NotInstallableError, Repository, Tool, install

collect_ignore_glob = ["*/*"]
"""What is in the folders are other people's repositories, with tests of their own."""
MAIN_RUNS = 3


@pytest.fixture(scope="module")
def repository(request: pytest.FixtureRequest, tmp_path_factory) -> Iterator[Repository]:
    """The tool's repository after three green runs of main. Parametrised with the tool."""
    tool: Tool = request.param
    asked = os.environ.get("EVAL_GATE_TOOLS", "").split(",")
    if not {"all", tool.name} & set(asked):
        pytest.skip(f"{tool.name} is not asked for: run `make tools`")
    try:
        installed = install(tool)
    except NotInstallableError as error:
        if os.environ.get("EVAL_GATE_REQUIRE_TOOLS") == "1":
            raise
        pytest.skip(f"*** NOT TESTED with {tool.name}, which cannot be installed here: {error} ***")
    with fake_github() as github:
        made = Repository(tool, installed, Job(tmp_path_factory.mktemp(str(tool)), github))
        for number in range(MAIN_RUNS):
            ended = made.main()
            assert ended.code == 0, f"run {number} of main:\n{made.said}\n{ended.log}"
        yield made
        assert github.violations == []
