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
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import yaml

from tests.support.github import FakeGitHub
from tests.support.jobs import Ended, Job, pull_request_event, push_event
from tests.support.program import CLEAN
from tests.support.root_system import RootSystem

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


class Terminal:
    """One shell in which commands are typed, one after the other. What they start ends with it.

    `words` start it, such as in another root file system, `folder` is where.
    """

    def __init__(self, words: Sequence[str], folder: Path, environment: Mapping[str, str], said: Path) -> None:
        self._said = said
        self._typed = 0
        with said.open("wb") as stream:
            self._shell = subprocess.Popen(
                words, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=stream, stderr=subprocess.STDOUT,
                start_new_session=True, text=True,
            )  # fmt: skip

    def type(self, command: str) -> tuple[int, str]:
        """Exit code and words of a command as a person types it."""
        assert self._shell.stdin
        self._typed += 1
        began, end = self._said.stat().st_size, f"-- end of command {self._typed}:"
        # on lines of their own, so that a comment or an `&` at the end of the command stays what it is
        self._shell.stdin.write(f'{{ {command}\n}} < /dev/null\necho "{end} $?"\n')
        self._shell.stdin.flush()
        while True:
            alive = self._shell.poll() is None
            said = self._said.read_bytes()[began:].decode(errors="replace")
            if done := re.search(rf"^{end} (\d+)\n", said, flags=re.MULTILINE):
                return int(done[1]), said[: done.start()]
            assert alive, f"the shell is gone: {command}\n{said}"
            time.sleep(0.02)

    def close(self) -> None:
        """End the shell and everything that was started in it."""
        with suppress(ProcessLookupError):
            os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.communicate()


class Newcomer:
    """A person with a folder, and what happens on GitHub to what they push.

    `installed` is an environment of Python. `system` is where the person types, with nothing but what it has.
    """

    def __init__(
        self, folder: Path, github: FakeGitHub, installed: Path | None = None, system: RootSystem | None = None
    ) -> None:
        self.folder = folder
        self.home = system.home if system else folder / "home"
        self.home.mkdir(exist_ok=True)
        self.job = Job(folder / "job", github)
        self._system = system
        self._terminal: Terminal | None = None
        self._origin = system.origin if system else folder / "origin.git"
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
        if self._terminal:
            self._terminal.close()

    def type(self, command: str) -> str:
        """Type a command in the one terminal that is open all the time, and see it succeed; its words."""
        if self._terminal is None:
            words = self._system.shell if self._system else ["bash", "--norc"]
            self._terminal = Terminal(words, self.home, self._variables(), self.folder / "typed.txt")
        code, words = self._terminal.type(command)
        assert code == 0, f"{command}\n{words}"
        return words

    def stop(self) -> None:
        """End every agent that was started so far."""
        for group in self._groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        self._groups.clear()

    def shell(self, script: str, folder: Path, **variables: str) -> tuple[int, str]:
        """Commands as they are typed, or a `run` step: exit code and words. What they start goes on until `stop`."""
        said = self.folder / "said.txt"
        with said.open("wb") as stream:
            process = subprocess.Popen(
                ["bash", "-e", "-c", script],
                cwd=folder,
                env=self._variables() | variables,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._groups.append(process.pid)
            code = process.wait(180)
        return code, said.read_text(errors="replace")

    def _variables(self) -> dict[str, str]:
        named = {"PATH": self._path, "ORIGIN": str(self._origin), "EVAL_GATE_WAIT_FOR": "60"}
        return {**CLEAN, **IDENTITY, **ALONE, **named}

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


def follow_page(person: Newcomer, page: str) -> None:
    """Do what *Getting started* says, block by block and to the letter, and see at each place what it promises."""
    said, shown = "", ""
    for language, text in blocks(page):
        match language:
            case "python":
                (person.home / "agent.py").write_text(text, encoding="utf-8")
            case "text":
                shown = text.strip()
            case "console":
                for command in commands(text):
                    said += person.type(command)
                    if command.startswith("gh repo create"):
                        assert person.type("git status --porcelain") == "", (
                            "all that the steps made is stored or ignored"
                        )
                        ended = person.main()
                        assert (ended.code, ended.outputs["verdict"]) == (0, "passed"), ended.log
    assert "GATE PASSED" in said
    ended, comment = person.pull_request("faster")
    assert (ended.code, ended.outputs["regressions"]) == (1, "1"), ended.log
    assert shown
    assert shown in comment
    assert "12 °C" in comment

    person.type("git switch main && git switch --create fixed && git push --set-upstream origin fixed")
    ended, comment = person.pull_request("fixed")
    assert ended.code == 0, ended.log
    assert "✅" in comment
