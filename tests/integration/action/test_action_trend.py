"""Page and badge of the default branch over its runs, which the action writes and stores with the result."""

from __future__ import annotations

import io
import json
import re
import zipfile

from tests.support.agents import agent
from tests.support.answers import fails_on


def test_trend__runs_of_the_branch__are_written_stored_and_named_as_an_output(job, github) -> None:
    with agent() as running:
        first = job.push(running.url)
    broken = github.state.add_commit("next", branch="main")
    with agent(fails_on(3)) as running:
        second = job.push(running.url)
    assert (first.code, second.code) == (0, 1)
    folder = job.workspace / second.outputs["trend-path"]
    assert folder.name == "trend"
    page = (folder / "trend.html").read_text()
    assert re.findall(r'href="([^"]*/commit/[^"]*)"', page)[0].endswith(f"/commit/{broken.sha}")
    assert "2 runs of <code>main</code>" in page
    assert page.count("fails now") == 1
    assert json.loads((folder / "badge.json").read_text())["message"].endswith("% passing, gate failed")
    packed = zipfile.ZipFile(io.BytesIO(github.state.archives[-1].zip_bytes))
    assert packed.read("trend/trend.html").decode() == page
    assert "<svg" in packed.read("trend/badge.svg").decode()
