"""Other people's eval tools, installed as their users install them, and our example workflows run step by step.

A tool lives in a cache folder outside of the checkout, by the digest of its lock: `EVAL_GATE_TOOLS_CACHE`, or
`~/.cache/eval-gate-tools`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.support.jobs import Ended, Job, pull_request_event, push_event
from tests.support.program import CLEAN

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "tests" / "tools"
WORKFLOWS = ROOT / "examples" / "workflows"
PAGE = ROOT / "docs" / "other-tools.md"
OUR_STEP = "eval-gate/eval-gate@"
INSTALL = ROOT / "requirements" / "install.py"
INSTALL_MINUTES = 15
INCOMPLETE = {"openai-evals"}
"""Tools whose lock leaves out packages that they ask for: evals of OpenAI asks for some that no longer build."""
SILENT = {
    "DO_NOT_TRACK": "1",
    "LANGSMITH_ENDPOINT": "http://127.0.0.1:9",
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
}
"""Where tools are asked not to call home: a test needs no network for it."""
RUNNER = {} if os.geteuid() == 0 else {"GITHUB_ACTIONS": "true"}
"""No command of ours is root in a workflow, and no runner is root: who tests as root does so in a shell of theirs."""


class NotInstallableError(Exception):
    """The tool could not be installed here, in its installer's last words."""


@dataclass(frozen=True)
class Tool:
    """One tool: its folder in `tests/tools/`, its section of `docs/other-tools.md`, and what is different about it.

    The folder holds `package.json` and `package-lock.json`, or `requirements.txt` with everything pinned; `project/`
    is a team's repository, and each `broke-WAY/` what is laid over it so that the tool or its target breaks.
    """

    name: str
    workflow: str
    """The file in `examples/workflows/`."""
    broke: Mapping[str, str] = field(default_factory=dict)
    """What may go wrong with the tool, by the name of its folder, and words that the log or comment then holds."""
    project: str = "project"
    """The folder in the tool's own that is the team's repository: one tool may have several."""
    variant: str = ""
    """Which row of several with one tool this is, for people."""
    taken: tuple[str, ...] = ()
    """What its page takes for granted: files and folders of the repository that a newcomer has already."""

    @property
    def folder(self) -> Path:
        """What this tool's tests are made of."""
        return TOOLS / self.name

    @property
    def page(self) -> str:
        """The text of its section of the page."""
        sections = re.split(r"(?m)^## ", PAGE.read_text())
        (section,) = (one for one in sections if re.sub(r"\W+", "-", one.lower()).startswith(f"{self.name}-"))
        return section

    def __str__(self) -> str:
        return f"{self.name}-{self.variant}" if self.variant else self.name


def install(tool: Tool) -> Path:
    """The folder where the tool is; installed by the first who asks. Raises NotInstallableError."""
    npm = (tool.folder / "package-lock.json").is_file()
    lock = tool.folder / ("package-lock.json" if npm else "requirements.txt")
    cache = Path(os.environ.get("EVAL_GATE_TOOLS_CACHE") or Path.home() / ".cache" / "eval-gate-tools")
    place = cache / f"{tool.name}-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    done = place / "installed"
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)
        if not done.is_file():
            (_npm if npm else _pip)(tool, place)
            done.touch()
    return place


def _npm(tool: Tool, place: Path) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(tool.folder / name, place)
    # not `ci`: it wants the packages of every other platform in the lock, which a registry need not have
    _run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"], place)


def _pip(tool: Tool, place: Path) -> None:
    _run([sys.executable, "-m", "venv", "--clear", str(place / "venv")], place)
    python = str(place / "venv" / "bin" / "python")
    unchecked = ["--no-check"] if tool.name in INCOMPLETE else []
    _run([python, str(INSTALL), *unchecked, str(tool.folder / "requirements.txt")], place)


def _run(words: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            words, cwd=folder, env=CLEAN, capture_output=True, text=True, timeout=INSTALL_MINUTES * 60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstallableError(str(error)) from error
    if done.returncode:
        raise NotInstallableError(f"{' '.join(words)}: {done.stderr[:2_000]}")


class Repository:
    """A team's repository with one tool in it, and its job on GitHub. Every run begins with a fresh checkout."""

    def __init__(self, tool: Tool, installed: Path, job: Job) -> None:
        self.tool = tool
        self.job = job
        self._installed = installed
        self._pulls = 0
        self.said = ""
        self.main_runs = 0
        self._path = _programs(job.folder / "programs", installed)

    def main(self, *overlays: str) -> Ended:
        """A push to the default branch: the workflow of the page, and our step at its end."""
        self._checkout(overlays)
        github = self.job.github
        self.main_runs += 1
        self.job.begin_run(event="push")
        return self._workflow("push", push_event(github), {})

    def pull_request(self, *overlays: str) -> tuple[Ended, str]:
        """A change with these folders laid over the repository: what our step said, and its comment (or nothing)."""
        self._checkout(overlays)
        github = self.job.github
        self._pulls += 1
        pull = github.state.add_pull(self._pulls, head_sha=f"head {self._pulls}", head_ref=f"change-{self._pulls}")
        self.job.begin_run(
            event="pull_request", head_branch=pull.head_ref, head_sha=pull.head_sha, head_repo=pull.head_repo
        )
        variables = {"GITHUB_SHA": pull.head_sha, "GITHUB_REF": f"refs/pull/{pull.number}/merge"}
        ended = self._workflow("pull_request", pull_request_event(github, pull), variables)
        comments = [one.body for one in github.state.comments.values() if one.issue == pull.number]
        return ended, "\n".join(comments)

    def judged(self, results: str, recipe: str, *overlays: str, run: str) -> subprocess.CompletedProcess[str]:
        """What `eval-gate check` says of what the command `run` leaves in `results`, against the earlier ones here.

        `recipe` is the command for re-runs, and each judged run is part of the record of the next.
        """
        kept = self.job.folder / "kept"
        self._checkout(overlays)
        code = self._shell(run, {})
        assert code in {0, 100}, f"{run}: exit {code}"  # promptfoo's for tests that failed
        options = ["--baseline", "latest", "--output-dir", str(kept), "--fail-on", "regressions", "--reruns", "6"]
        words = ["eval-gate", "check", results, *options, "--rerun-command", recipe]
        return subprocess.run(
            words,
            cwd=self.job.workspace,
            env=CLEAN | {"PATH": self._path},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def forget(self) -> None:
        """No results are kept: the next judged run is the first."""
        shutil.rmtree(self.job.folder / "kept", ignore_errors=True)

    def _checkout(self, overlays: tuple[str, ...]) -> None:
        """The repository as `actions/checkout` leaves it, with the tool installed in it."""
        shutil.rmtree(self.job.workspace)
        shutil.copytree(TOOLS / "agent" / "steady", self.job.workspace)
        shutil.copytree(self.tool.folder / self.tool.project, self.job.workspace, dirs_exist_ok=True)
        for name in overlays:
            own = self.tool.folder / name
            shutil.copytree(own if own.is_dir() else TOOLS / "agent" / name, self.job.workspace, dirs_exist_ok=True)
        if (modules := self._installed / "node_modules").is_dir():
            (self.job.workspace / "node_modules").symlink_to(modules)

    def _workflow(self, name: str, event: Mapping[str, object], variables: Mapping[str, str]) -> Ended:
        """All steps of the example workflow; what our step said. A step that fails ends those that do not say else."""
        document = yaml.safe_load((WORKFLOWS / self.tool.workflow).read_text())
        (job,) = document["jobs"].values()
        self.said = ""
        failed = False
        for step in job["steps"]:
            if failed and "!cancelled()" not in str(step.get("if", "")):
                continue
            if step.get("uses", "").startswith(OUR_STEP):
                return self.job.step(name, event, step.get("with", {}), timeout=120, **variables)
            if "run" in step:
                failed = self._shell(step["run"], step.get("env", {})) != 0 or failed
        raise AssertionError(f"{self.tool.workflow} has no step of ours")

    def newcomer(self, folder: Path) -> Callable[[str], int]:
        """Who follows the page: `agent.py` says what is given, and every command of the page is run. The exit code."""
        for name in self.tool.taken:
            given = self.tool.folder / self.tool.project / name
            (shutil.copytree if given.is_dir() else shutil.copy)(given, folder / name)
        commands = copied(self.tool.page, folder)

        def says(answer: str) -> int:
            shutil.rmtree(folder / "logs", ignore_errors=True)
            (folder / "agent.py").write_text(f"def answer(question):\n    return {answer!r}\n")
            code = 0
            for command in commands:
                code = self._shell(command, {"OPENAI_API_KEY": "none"}, folder)
            return code

        return says

    def _shell(self, script: str, variables: Mapping[str, str], folder: Path | None = None) -> int:
        """A `run` step, as the runner starts it, each secret being "none"; `said` keeps the words. Its exit code."""
        given = {name: re.sub(r"\$\{\{.*?\}\}", "none", str(value)) for name, value in variables.items()}
        done = subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=folder or self.job.workspace,
            env={**CLEAN, "PATH": self._path, "CI": "true", **RUNNER, **given} | SILENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        self.said += done.stdout
        return done.returncode


def _programs(folder: Path, installed: Path) -> str:
    """A PATH with our program and the tool in it. What installs is silent: it is there already."""
    folder.mkdir(parents=True, exist_ok=True)
    scripts = {"eval-gate": f'exec {sys.executable} -I -m eval_gate "$@"', "pip": "exit 0", "npm": "exit 0"}
    for name, line in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / name).chmod(0o755)
    return os.pathsep.join([str(folder), str(installed / "venv" / "bin"), CLEAN["PATH"]])


def recipes(text: str) -> list[str]:
    """Every `--rerun-command` that a page or workflow shows, with the version of the tool left out."""
    text = re.sub(r"\\\n\s*", "", text)
    return [plain(one) for one in re.findall(r"--rerun-command '([^']+)'", text)]


def plain(recipe: str) -> str:
    """A recipe without what pins it: `npx --yes promptfoo@0.121 eval` is `npx promptfoo eval`."""
    return re.sub(r"(?<=npx )(?:--yes )?([\w/-]+)@[\w.]+", r"\1", recipe)


def other_recipes(page: str) -> dict[str, str]:
    """The table of further recipes that a section has: what tests have, and the command."""
    table = page.partition("| tests have | `--rerun-command` |")[2].partition("\n\n")[0]
    return dict(re.findall(r"^\| (.+?) \| `(.+?)` \|$", table, flags=re.MULTILINE))


def copied(page: str, folder: Path) -> list[str]:
    """What a page says to write, written: code that begins with a file's name, and what follows it. Its commands."""
    file = None
    for code in re.findall(r"```(?:python|yaml|ini)\n(.*?)```", page, flags=re.DOTALL):
        if named := re.match(r"# (\S+\.(?:py|yaml|ini))", code):
            file = folder / named[1]
        assert file is not None, "code of no file"
        file.parent.mkdir(parents=True, exist_ok=True)
        before = "" if named else file.read_text() + "\n"
        file.write_text(before + code)
    (console,) = re.findall(r"```console\n(.*?)```", page, flags=re.DOTALL)
    return re.findall(r"^\$ ((?:.*\\\n)*.*)$", console, flags=re.MULTILINE)
