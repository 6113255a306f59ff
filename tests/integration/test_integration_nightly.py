"""The issue about nightly runs: opened once, added to while nights fail, closed by a good one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".ci" / "nightly-issue"
TITLE = "The nightly run fails"

pytestmark = pytest.mark.skipif(not all(map(shutil.which, ("bash", "jq"))), reason="the script needs bash and jq")

GH = r"""
import json, os, pathlib, subprocess, sys

store = pathlib.Path(os.environ["ISSUES"])
issues = json.loads(store.read_text())
area, verb, *words = sys.argv[1:]
assert area == "issue"
number = words.pop(0) if words and not words[0].startswith("-") else None
given = dict(zip(words[::2], words[1::2], strict=True))
if verb == "list":
    assert int(given["--limit"]) >= 100 and given["--json"] == "number,title"
    wanted = [one for one in issues if one["state"] == given["--state"] and one["author"] == given["--author"]]
    rows = [{"number": one["number"], "title": one["title"]} for one in wanted]
    subprocess.run(["jq", "-r", given["--jq"]], input=json.dumps(rows), text=True, check=True)
elif verb == "create":
    new = {"number": len(issues) + 1, "title": given["--title"], "author": "app/github-actions", "state": "open"}
    issues.append(new | {"said": [given["--body"]]})
elif verb in ("comment", "close"):
    (issue,) = [one for one in issues if str(one["number"]) == number]
    issue["said"].append(given["--body" if verb == "comment" else "--comment"])
    if verb == "close":
        issue["state"] = "closed"
else:
    sys.exit(f"unknown command: {verb}")
store.write_text(json.dumps(issues))
"""


class Nights:
    """A repository's issues, and the script that the last job of a night runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "issues.json"
        self.store.write_text("[]")
        program = folder / "gh"
        program.write_text(f"#!{sys.executable}\n{GH}")
        program.chmod(0o755)

    @property
    def issues(self) -> list[dict]:
        found: list[dict] = json.loads(self.store.read_text())
        return found

    def add(self, title: str, author: str) -> None:
        new = {"number": len(self.issues) + 1, "title": title, "author": author, "state": "open", "said": []}
        self.store.write_text(json.dumps([*self.issues, new]))

    def end(self, results: str, run: str = "https://example.org/runs/1") -> None:
        variables = {"RESULTS": results, "RUN_URL": run, "ISSUES": str(self.store)}
        path = f"{self.folder}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run([SCRIPT], env={"PATH": path, **variables}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.fixture
def nights(tmp_path: Path) -> Nights:
    return Nights(tmp_path)


@pytest.mark.parametrize("results", ["failure success", "success failure", "success cancelled", "skipped success"])
def test_nightly__fails_twice__one_issue_with_both_runs(nights: Nights, results: str) -> None:
    nights.end(results, "https://example.org/runs/1")
    nights.end(results, "https://example.org/runs/2")
    (issue,) = nights.issues
    assert (issue["title"], issue["state"]) == (TITLE, "open")
    assert "https://example.org/runs/1" in issue["said"][0]
    assert issue["said"][1:] == ["It failed again: https://example.org/runs/2"]


def test_nightly__passes_after_a_failure__closes_the_issue_and_the_next_failure_opens_another(nights: Nights) -> None:
    nights.end("failure success")
    nights.end("success success")
    nights.end("success success")
    nights.end("failure failure")
    assert [issue["state"] for issue in nights.issues] == ["closed", "open"]
    assert nights.issues[0]["said"][1:] == ["It passes again: https://example.org/runs/1"]


def test_nightly__somebody_elses_issue_of_that_title__is_left_alone(nights: Nights) -> None:
    nights.add(TITLE, "somebody")
    nights.add(f"{TITLE} on my machine", "app/github-actions")
    nights.end("success success")
    nights.end("failure success")
    assert [issue["said"] for issue in nights.issues[:2]] == [[], []]
    assert [issue["state"] for issue in nights.issues] == ["open", "open", "open"]


def test_nightly__passes__says_nothing(nights: Nights) -> None:
    nights.end("success success")
    assert nights.issues == []


def test_nightly__workflow__reports_every_job_and_runs_both_commands_of_the_readme() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/nightly.yml").read_text(encoding="utf-8"))
    jobs = workflow["jobs"]
    assert set(jobs["report"]["needs"]) == set(jobs) - {"report"}
    assert jobs["report"]["steps"][-1]["run"] == str(SCRIPT.relative_to(ROOT))
    commands = [step.get("run", "") for step in jobs["readme"]["steps"]]
    for command in ("make demo", "make test"):
        assert f"$ {command}" in (ROOT / "README.md").read_text(encoding="utf-8")
        assert any(one.startswith(command) for one in commands)
