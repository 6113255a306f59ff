"""The action without Docker, started as the runner starts it: its Node, the script, and the variables of the step."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.support.github import FakeGitHub
from tests.support.jobs import Ended, Job

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "host" / "start.mjs"
INSTALL = ROOT / "requirements" / "install.py"
OWN_NODE = ROOT / "tests" / "host" / "node" / "node_modules"
"""Where `.ci/host` installs the Node that runners have."""


def nodes() -> dict[str, str]:
    """The programs to start the script with: the runner's own where it is installed, and what is on the PATH."""
    found = {
        "of the runner": next(iter(map(str, OWN_NODE.glob("node-*/bin/node"))), None),
        "here": shutil.which("node"),
    }
    return {name: program for name, program in found.items() if program}


class HostJob(Job):
    """A job on a runner without Docker."""

    def __init__(self, folder: Path, github: FakeGitHub, node: str, cache: Path) -> None:
        super().__init__(folder, github)
        self._node = node
        self._cache = cache

    def words(self) -> list[str]:
        """How the runner starts the step."""
        return [self._node, str(SCRIPT)]

    def variables(self, event_name: str, event: Mapping[str, object], inputs: Mapping[str, str]) -> dict[str, str]:
        """What the runner puts into the environment of a step in JavaScript."""
        return self._environment(event_name, event, inputs) | {"RUNNER_TOOL_CACHE": str(self._cache)}

    def step(
        self,
        event_name: str,
        event: Mapping[str, object],
        inputs: Mapping[str, str] | None = None,
        *,
        command: tuple[str, ...] = (),
        timeout: float = 240,
        **variables: str,
    ) -> Ended:
        """Run our step to its end. The first one of a cache installs the packages."""
        done = subprocess.run(
            [*self.words(), *command],
            cwd=self.workspace,
            env=self.variables(event_name, event, inputs or {}) | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )
        return self.ended(done.returncode, done.stdout)


class Checkout:
    """A checkout of an action like ours with next to nothing in it: made in a second, where ours takes half a minute.

    Its gate says who and where it is as JSON, in place of judging anything, unless the variable DO says what to do.
    """

    GATE = """\
import json, os, signal, sys, time
if os.environ.get("DO") == "print and fail":
    print("x" * 3_000_000)
    sys.exit(3)
if os.environ.get("DO") == "wait":
    def end(number, frame):
        os.write(1, b"written\\n")
        os._exit(128 + number)
    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    os.write(1, b"ready\\n")
    time.sleep(60)
said = {"arguments": sys.argv[1:], "prefix": sys.prefix, "path": sys.path, "utf8": sys.flags.utf8_mode,
        "environment": dict(os.environ), "parent": os.getppid(), "own": os.getpid()}
print(json.dumps(said), flush=True)
"""

    def __init__(self, folder: Path, node: str, cache: Path | None = None) -> None:
        self.folder = folder
        self.node = node
        self.cache = cache or folder / "cache"
        self.temp = folder / "temp"
        self.files = {name: folder / name for name in ("output", "summary")}
        self.package = folder / "action" / "runner" / "eval_gate"
        self.lock = folder / "action" / "requirements" / "runtime.txt"
        for place in (self.cache, self.temp, self.package, self.lock.parent, folder / "action" / "host"):
            place.mkdir(parents=True, exist_ok=True)
        shutil.copy(SCRIPT, folder / "action" / "host")
        shutil.copy(INSTALL, self.lock.parent)
        self.lock.write_text("# nothing\n")
        (self.package / "__init__.py").write_text("")
        (self.package / "__main__.py").write_text(self.GATE)

    def start(self, **variables: str) -> subprocess.Popen[str]:
        """Start the step."""
        for file in self.files.values():
            file.write_text("")
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "RUNNER_TOOL_CACHE": str(self.cache),
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_OUTPUT": str(self.files["output"]),
            "GITHUB_STEP_SUMMARY": str(self.files["summary"]),
            **variables,
        }
        return subprocess.Popen(
            [self.node, str(self.folder / "action" / "host" / "start.mjs")],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, **variables: str) -> tuple[int, str]:
        """The step's exit code and log."""
        process = self.start(**variables)
        log, _ = process.communicate(timeout=120)
        return process.returncode, log

    def said(self, **variables: str) -> dict:
        """What the gate says of itself."""
        code, log = self.run(**variables)
        assert code == 0, log
        said: dict = json.loads(log.splitlines()[-1])
        return said

    def kept(self) -> list[str]:
        """What lies in the cache."""
        place = self.cache / "eval-gate"
        return sorted(path.name for path in place.iterdir()) if place.exists() else []
