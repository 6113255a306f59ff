"""Runs an image the way the Actions runner runs a Docker action, and hands back what the runner would read afterwards.

The same `docker run`: working directory, mounts, environment by name, HOME and the file commands. Two things differ on
purpose. The network is the host's, so that stand-ins that listen on loopback are reached; a job can name another one.
And the engine's socket is not mounted: nothing of ours may ever need it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DOCKER = os.environ.get("EVAL_GATE_DOCKER") or "docker"
PYTHON = "/opt/gate/bin/python"
RUNNER_ID = 1001
"""The user that owns the checkout on a hosted runner; the action itself is root."""
FILE_COMMANDS = ("output", "env", "path", "state", "step_summary")

Owner = tuple[int, int]


@dataclass(frozen=True)
class Job:
    """One step of a job that uses the action."""

    image: str
    workspace: Path
    inputs: Mapping[str, str] = field(default_factory=dict)
    """As under `with:`; the runner turns them into INPUT_… variables."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Over what the runner sets."""
    event: Mapping[str, Any] = field(default_factory=dict)
    event_name: str = "push"
    args: Sequence[str] = ()
    entrypoint: str | None = None
    network: str = "host"


@dataclass(frozen=True)
class Finished:
    """What is left of a step."""

    exit_code: int
    stdout: str
    stderr: str
    files: Mapping[str, str]
    """The file commands by name: `output`, `env`, `path`, `state`, `step_summary`."""
    owners: Mapping[str, Owner]
    """User and group of every file and folder of the workspace, by its path in it; `.` is the workspace itself."""

    @property
    def output(self) -> str:
        """The text of the GITHUB_OUTPUT file."""
        return self.files["output"]

    @property
    def summary(self) -> str:
        """The text of the step summary."""
        return self.files["step_summary"]

    @property
    def outputs(self) -> dict[str, str]:
        """The outputs, read as strictly as the runner reads them."""
        return parse_outputs(self.output)


@dataclass
class Running:
    """A step in progress."""

    name: str
    process: subprocess.Popen[str]
    _job: Job
    _temp: Path

    def signal(self, name: str) -> None:
        """Send a signal to the first process of the container, as the docker client does for the runner."""
        docker("kill", "--signal", name, self.name)

    def finish(self, timeout: float = 120) -> Finished:
        """Wait for the end and read what the step left."""
        try:
            stdout, stderr = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.stop()
            stdout, stderr = self.process.communicate(timeout=30)
            raise AssertionError(f"not finished after {timeout:g} s\n{stdout}\n{stderr}") from None
        commands = self._temp / "_runner_file_commands"
        files = {file.name.split(".")[0]: file.read_text(encoding="utf-8") for file in commands.iterdir()}
        return Finished(self.process.returncode, stdout, stderr, files, owners(self._job.workspace))

    def stop(self) -> None:
        """End the container whatever it does."""
        if self.process.poll() is None:
            subprocess.run([DOCKER, "kill", self.name], capture_output=True, check=False, timeout=60)


def run(job: Job, timeout: float = 120) -> Finished:
    """Run the step to its end."""
    with start(job) as running:
        return running.finish(timeout)


@contextlib.contextmanager
def start(job: Job) -> Iterator[Running]:
    """Start the step; on leaving, the container is gone and so are its files outside the workspace."""
    temp = Path(tempfile.mkdtemp(prefix="eval-gate-step-"))
    try:
        for folder in ("_github_home", "_github_workflow", "_runner_file_commands"):
            (temp / folder).mkdir()
        (temp / "_github_workflow" / "event.json").write_text(json.dumps(job.event), encoding="utf-8")
        for command in FILE_COMMANDS:
            (temp / "_runner_file_commands" / command).touch()
        give_to_runner(temp)
        name = f"eval-gate-step-{uuid.uuid4().hex[:12]}"
        variables = environment(job)
        process = subprocess.Popen(
            _command(job, name, temp, variables),
            env={**_client_environment(), **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        running = Running(name, process, job, temp)
        with process:
            try:
                yield running
            finally:
                running.stop()
    finally:
        _give_back(job, temp)
        shutil.rmtree(temp)


def environment(job: Job) -> dict[str, str]:
    """Every variable that the runner would set, with this job's own over them."""
    return {
        **_RUNNER_ENVIRONMENT,
        "GITHUB_EVENT_NAME": job.event_name,
        **{f"GITHUB_{name.upper()}": f"/github/file_commands/{name}" for name in FILE_COMMANDS},
        # the runner's own rule: upper case, blanks become underscores, hyphens stay
        **{f"INPUT_{name.replace(' ', '_').upper()}": value for name, value in job.inputs.items()},
        **job.env,
    }


def give_to_runner(folder: Path) -> None:
    """Make a folder look as on a hosted runner, where an ordinary user owns it (only root can do that)."""
    if os.getuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, RUNNER_ID, RUNNER_ID, follow_symlinks=False)


def owners(folder: Path) -> dict[str, Owner]:
    """Who owns what below a folder."""
    stats = {path.relative_to(folder).as_posix(): path.lstat() for path in (folder, *folder.rglob("*"))}
    return {path: (stat.st_uid, stat.st_gid) for path, stat in sorted(stats.items())}


def parse_outputs(text: str) -> dict[str, str]:
    """Read a GITHUB_OUTPUT file: `name=value`, or `name<<DELIMITER`, lines, `DELIMITER`."""
    found: dict[str, str] = {}
    lines = iter(text.splitlines(keepends=True))
    for line in lines:
        head = re.match(r"(?P<name>[^=<\n]+)(?:=(?P<value>.*)|<<(?P<delimiter>.+))\n?\Z", line)
        assert head, f"the runner refuses this line: {line!r}"
        if head["delimiter"] is None:
            found[head["name"]] = head["value"]
            continue
        value: list[str] = []
        while (line := next(lines, None)) != head["delimiter"] + "\n":
            assert line is not None, f"the runner misses the closing line {head['delimiter']!r}"
            value.append(line)
        found[head["name"]] = "".join(value).removesuffix("\n")
    return found


def docker(*args: str, timeout: float = 120) -> str:
    """What a docker command prints; it must succeed."""
    done = subprocess.run([DOCKER, *args], capture_output=True, text=True, check=False, timeout=timeout)
    assert done.returncode == 0, f"docker {' '.join(args)}: {done.stderr}"
    return done.stdout


_RUNNER_ENVIRONMENT = {
    "ACTIONS_RESULTS_URL": "http://127.0.0.1:9/",
    "ACTIONS_RUNTIME_TOKEN": "not-a-real-token",
    "ACTIONS_RUNTIME_URL": "http://127.0.0.1:9/",
    "CI": "true",
    "GITHUB_ACTION": "__self",
    "GITHUB_ACTIONS": "true",
    "GITHUB_ACTOR": "octocat",
    # Port 9 of loopback: who did not say where its stand-in listens gets a refusal, not the internet.
    "GITHUB_API_URL": "http://127.0.0.1:9",
    "GITHUB_BASE_REF": "",
    "GITHUB_EVENT_PATH": "/github/workflow/event.json",
    "GITHUB_GRAPHQL_URL": "http://127.0.0.1:9/graphql",
    "GITHUB_HEAD_REF": "",
    "GITHUB_JOB": "evals",
    "GITHUB_REF": "refs/heads/main",
    "GITHUB_REF_NAME": "main",
    "GITHUB_REF_PROTECTED": "false",
    "GITHUB_REF_TYPE": "branch",
    "GITHUB_REPOSITORY": "octo-org/octo-repo",
    "GITHUB_REPOSITORY_ID": "1296269",
    "GITHUB_REPOSITORY_OWNER": "octo-org",
    "GITHUB_RETENTION_DAYS": "90",
    "GITHUB_RUN_ATTEMPT": "1",
    "GITHUB_RUN_ID": "1658821493",
    "GITHUB_RUN_NUMBER": "3",
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_SHA": "ffac537e6cbbf934b08745a378932722df287a53",
    "GITHUB_TRIGGERING_ACTOR": "octocat",
    "GITHUB_WORKFLOW": "evals",
    "GITHUB_WORKFLOW_REF": "octo-org/octo-repo/.github/workflows/evals.yml@refs/heads/main",
    "GITHUB_WORKFLOW_SHA": "ffac537e6cbbf934b08745a378932722df287a53",
    "GITHUB_WORKSPACE": "/github/workspace",
    "HOME": "/github/home",
    "RUNNER_ARCH": "X64",
    "RUNNER_ENVIRONMENT": "github-hosted",
    "RUNNER_NAME": "GitHub Actions 2",
    "RUNNER_OS": "Linux",
    "RUNNER_TEMP": "/github/runner_temp",
    "RUNNER_TOOL_CACHE": "/opt/hostedtoolcache",
}


def _command(job: Job, name: str, temp: Path, variables: Mapping[str, str]) -> list[str]:
    mounts = {
        temp: "/github/runner_temp",
        temp / "_github_home": "/github/home",
        temp / "_github_workflow": "/github/workflow",
        temp / "_runner_file_commands": "/github/file_commands",
        job.workspace.resolve(): "/github/workspace",
    }
    return [
        *(DOCKER, "run", "--name", name, "--label", "eval-gate-test", "--workdir", "/github/workspace", "--rm"),
        *(word for variable in variables for word in ("-e", variable)),
        *(("--entrypoint", job.entrypoint) if job.entrypoint else ()),
        *("--network", job.network),
        *(word for outside, inside in mounts.items() for word in ("-v", f"{outside}:{inside}")),
        job.image,
        *job.args,
    ]


def _client_environment() -> dict[str, str]:
    """What the docker client itself needs. The job's HOME hides the user's from it, and with it the user's engine."""
    kept = {name: value for name, value in os.environ.items() if name == "PATH" or name.startswith("DOCKER_")}
    return {"DOCKER_CONFIG": str(Path.home() / ".docker"), **kept}


def _give_back(job: Job, temp: Path) -> None:
    """Hand root's files to whoever runs the tests: without root nobody else could remove them."""
    if os.getuid() == 0:
        return
    script = "import os,sys; [os.lchown(os.path.join(at, name), int(sys.argv[1]), int(sys.argv[2]))"
    script += " for top in ('/a', '/b') for at, *names in os.walk(top) for name in (*names[0], *names[1])]"
    mounts = ("-v", f"{job.workspace.resolve()}:/a", "-v", f"{temp}:/b")
    command = (*mounts, "--entrypoint", PYTHON, job.image, "-I", "-c", script, str(os.getuid()), str(os.getgid()))
    docker("run", "--rm", "--network", "none", *command)
