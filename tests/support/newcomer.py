"""Who begins with an empty folder: a git repository, a place to push it to, and the jobs of the workflow that is in it.

The git is real, the workflow is the one that is pushed, step by step, and our step in it is the real action against the
fake GitHub. What stands in: GitHub's own program `gh`, and whatever installs packages, which are there already.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import yaml

from tests.support.github import FakeGitHub
from tests.support.jobs import Ended, Job, pull_request_event, push_event
from tests.support.program import CLEAN

WORKFLOW = ".github/workflows/eval-gate.yml"
IDENTITY = {
    f"GIT_{who}_{what}": said
    for who in ("AUTHOR", "COMMITTER")
    for what, said in (("NAME", "t"), ("EMAIL", "t@example.org"))
}
ALONE = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
STUBS = {
    "eval-gate": f'exec {sys.executable} -I -m eval_gate "$@"',
    "pip": "exit 0",
    "npm": "exit 0",
    # an environment in which everything is that is on the PATH
    "python3": '[ "$1 $2" = "-m venv" ] && mkdir -p "$3/bin" && exec touch "$3/bin/activate"\nexec python "$@"',
    # `gh repo create` makes the place to push to, and pushes; `gh pr create` opens what the test then runs
    "gh": '[ "$1" = repo ] || exit 0\ngit init --quiet --bare "$ORIGIN"\ngit remote add origin "$ORIGIN"\n'
    "git push --quiet --set-upstream origin main",
}


class Newcomer:
    """A person with a folder, and what happens on GitHub to what they push. `installed` is an environment of Python."""

    def __init__(self, folder: Path, github: FakeGitHub, installed: Path | None = None) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir()
        self.job = Job(folder / "job", github)
        self._origin = folder / "origin.git"
        self._groups: list[int] = []
        self._pulls = 0
        programs = folder / "programs"
        programs.mkdir()
        python = installed / "venv" / "bin" if installed else Path(sys.executable).parent
        for name, lines in STUBS.items():
            (programs / name).write_text(f"#!/bin/sh\n{lines}\n")
            (programs / name).chmod(0o755)
        self._path = os.pathsep.join([str(programs), str(python), CLEAN["PATH"]])

    def __enter__(self) -> Newcomer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End every agent that was started so far."""
        for group in self._groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        self._groups.clear()

    def shell(self, script: str, folder: Path, **variables: str) -> tuple[int, str]:
        """Commands as they are typed, or a `run` step: exit code and words. What they start goes on until `stop`."""
        given = {**CLEAN, **IDENTITY, **ALONE, "PATH": self._path, "ORIGIN": str(self._origin), **variables}
        said = self.folder / "said.txt"
        with said.open("wb") as stream:
            process = subprocess.Popen(
                ["bash", "-e", "-c", script],
                cwd=folder,
                env=given | {"EVAL_GATE_WAIT_FOR": "60"},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._groups.append(process.pid)
            code = process.wait(180)
        return code, said.read_text(errors="replace")

    def main(self) -> Ended:
        """What the workflow makes of the main branch as it was pushed."""
        github = self.job.github
        github.state.add_commit(self._checkout("main"), branch="main")
        self.job.begin_run(event="push")
        return self._run("push", push_event(github), {})

    def pull_request(self, branch: str) -> tuple[Ended, str]:
        """What the workflow makes of a pull request from this pushed branch, and its comment."""
        github = self.job.github
        self._pulls += 1
        pull = github.state.add_pull(self._pulls, head_sha=self._checkout(branch), head_ref=branch)
        self.job.begin_run(
            event="pull_request", head_branch=pull.head_ref, head_sha=pull.head_sha, head_repo=pull.head_repo
        )
        merge = {"GITHUB_SHA": pull.head_sha, "GITHUB_REF": f"refs/pull/{pull.number}/merge"}
        ended = self._run("pull_request", pull_request_event(github, pull), merge)
        return ended, "\n".join(one.body for one in github.state.comments.values() if one.issue == pull.number)

    def _checkout(self, branch: str) -> str:
        """The branch as it was pushed, in the workspace of the job; its commit."""
        self.stop()
        shutil.rmtree(self.job.workspace)
        words = ["git", "clone", "--quiet", "--branch", branch, str(self._origin), str(self.job.workspace)]
        subprocess.run(words, env=CLEAN | ALONE, check=True, capture_output=True)
        told = ["git", "rev-parse", "HEAD"]
        done = subprocess.run(told, cwd=self.job.workspace, env=CLEAN, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def _run(self, name: str, event: Mapping[str, object], variables: Mapping[str, str]) -> Ended:
        """The steps of the workflow up to ours."""
        workspace = self.job.workspace
        (job,) = yaml.safe_load((workspace / WORKFLOW).read_text())["jobs"].values()
        places = {"GITHUB_WORKSPACE": str(workspace), "RUNNER_TEMP": str(self.job.folder)}
        for step in job["steps"]:
            if step.get("uses", "").startswith("eval-gate/eval-gate"):
                # the machine of the job, as the container knows it
                inputs = {
                    key: str(value).replace("host.docker.internal", "127.0.0.1") for key, value in step["with"].items()
                }
                return self.job.step(name, event, inputs, timeout=180, **variables)
            if "run" in step:
                code, said = self.shell(step["run"], workspace, **places)
                assert code == 0, f"{step['run']}\n{said}"
        raise AssertionError(f"{WORKFLOW} has no step of ours")


def blocks(page: str) -> list[tuple[str, str]]:
    """The blocks of code of a page in their order: language and text, without the indentation of the block."""
    found = re.findall(r"^( *)```(\w+)\n(.*?)^\1```", page, flags=re.MULTILINE | re.DOTALL)
    return [(language, re.sub(rf"(?m)^{indent}", "", text)) for indent, language, text in found]


def commands(block: str) -> list[str]:
    """What a block of a console says to type."""
    return re.findall(r"^\$ ((?:.*\\\n)*.*)$", block, flags=re.MULTILINE)
