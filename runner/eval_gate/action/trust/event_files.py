"""Verification that a step reads only files of the commit its event is about.

Most events start a run only for code that its keys are meant for, or without keys. At the others a workflow has the
default branch's secrets and token, and its steps may have added untrusted files: a checkout of another commit, a
folder of its own, an archive, single files over the own ones. The place of a file does not show its origin.
So the bytes of each file are compared with the commit as they are read.
"""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Final

from eval_gate.action.inputs import StepSettings, TrustedSide
from eval_gate.action.step import Step
from eval_gate.action.step_plan import OWN_CODE_EVENTS, PULL_INPUT, parse_pull_number
from eval_gate.action.trust.base_branch import resolve_repository_path
from eval_gate.action.trust.checkouts import find_read_commits, iter_result_files
from eval_gate.config.settings import RunConfig
from eval_gate.errors import GateError
from eval_gate.files.file_paths import format_path
from eval_gate.files.reading import RefusedReadError, read_limited_raw
from eval_gate.github.checkout import find_head_commit
from eval_gate.github.commit_files import CommitFiles
from eval_gate.github.commits import fetch_file
from eval_gate.github.event import read_event
from eval_gate.github.failure import GitHubError, build_unavailable_error
from eval_gate.github.workflow_environment import WorkflowEnvironment
from eval_gate.model.limits import GIT_OBJECT_BYTES
from eval_gate.text.quoting import describe_name

_DELIBERATE_EVENTS: Final = frozenset({"workflow_dispatch", "workflow_run"})
"""Events for which people who may write, or the default branch's workflow, choose the files in the workspace."""
_UNKNOWN_COMMIT: Final = "an unknown commit"


class FileProof(StrEnum):
    """Proof required for a file to count as part of the event's commit."""

    NONE = "none"
    NO_DOUBT = "no doubt"
    """No checkout around it is of another commit, and where the commit can be read, it has the file."""
    CONTENT = "content"
    """The commit has the file, with this content."""


def choose_proof(event: str) -> FileProof:
    """Choose the proof that files need at this event; the strongest for an unknown one, which anybody might cause."""
    if event in OWN_CODE_EVENTS:
        return FileProof.NONE
    return FileProof.NO_DOUBT if event in _DELIBERATE_EVENTS else FileProof.CONTENT


class EventFiles:
    """Files of the commit of one step's event."""

    def __init__(self, environment: WorkflowEnvironment, settings: StepSettings) -> None:
        """Prepare the checks of files for one step's event. Raises GateError if the event cannot be read."""
        self._workspace = Path(os.path.realpath(environment.workspace))
        self._event = environment.event_name
        self.proof = choose_proof(self._event)
        self._commit = _find_event_commit(environment)
        self._files = CommitFiles(self._workspace, self._commit) if self._commit else None
        # for a manual start the workflow may declare that files which a step created are trusted
        self._by_word = self.proof is FileProof.NO_DOUBT and settings.secrets_for is TrustedSide.HEAD
        self._read_before: list[tuple[Path, bytes, bool]] | None = []
        self._believed: tuple[tuple[Path, bytes], ...] = ()

    def check_paths(self, config: RunConfig, settings: StepSettings) -> None:
        """Compare the checkouts of all files to read, and the files read so far, with the commit.

        Raises GateError, and RefusedReadError for one file.
        """
        read_before, self._read_before = self._read_before or [], None
        if self.proof is FileProof.NONE or (self._event == "workflow_run" and not read_before):
            return  # a relay reads nothing but the configuration
        commits = find_read_commits(config, settings, self._workspace) - {self._commit}
        if self.proof is FileProof.NO_DOUBT and not (self._workspace / ".git").exists():
            commits -= {None}  # a checkout by archive has no commit
        if commits:
            raise self._build_refusal(next((one[:12] for one in sorted(filter(None, commits))), _UNKNOWN_COMMIT))
        for path, data, is_generated in read_before:
            self.check_read(path, data, is_generated=is_generated)
        if self._event == "workflow_dispatch" and not self._by_word:
            self._believed = tuple((path, data) for path, data, _ in read_before)
        if self.proof is FileProof.CONTENT:
            for file in iter_result_files(config, settings, self._workspace):
                self.check_read(file, _read_content(file), is_generated=False)

    def check_read(self, path: Path, data: bytes, *, is_generated: bool) -> None:
        """Raise RefusedReadError if a file is not part of the event's commit and the event requires that.

        Until `check_paths` has run, files are only noted: the configuration must be read to know where everything lies.
        """
        if self._read_before is not None:
            self._read_before.append((path, data, is_generated))
            return
        if self.proof is FileProof.NONE or (self.proof is FileProof.NO_DOUBT and (is_generated or self._by_word)):
            return
        if self._files is not None:
            if self._files.has_content(path, data):
                return
            if self.proof is FileProof.NO_DOUBT and not self._files.can_read(path):
                return
        name = describe_name(format_path(Path(os.path.abspath(path)), self._workspace))  # noqa: PTH100 (links stay as they are)
        raise RefusedReadError(self._build_refusal(f"{name} from {_UNKNOWN_COMMIT}"))

    def confirm_configuration(self, step: Step) -> None:
        """Compare the configuration with GitHub's, if the workspace cannot show its commit.

        Raises GateError if the event's commit has another one, or GitHub fails.
        """
        if step.plan.base_branch is not None or not is_unverified_start(step):
            return
        for file, data in self._believed:
            name = format_path(Path(os.path.realpath(file)), self._workspace)
            try:
                committed = fetch_file(step.client, resolve_repository_path(step, name), step.environment.sha)
            except GitHubError as error:
                raise build_unavailable_error(
                    f"cannot check where the configuration {describe_name(name)} comes from: {error}"
                ) from error
            if committed is None or committed.replace(b"\r\n", b"\n") != data.replace(b"\r\n", b"\n"):
                raise self._build_refusal(f"{describe_name(name)} from {_UNKNOWN_COMMIT}")

    def _build_refusal(self, what: str) -> GateError:
        hint = f"start it by workflow_dispatch with `{PULL_INPUT}`, as examples/workflows/manual-dispatch.yml does"
        if self.proof is FileProof.NO_DOUBT:
            hint += "; if a step of the workflow wrote the file, set the input secrets-for: head"
        return GateError(
            "unsafe-event",
            f"{self._event} runs with the default branch's secrets, but the workspace has {what}, "
            f"not the event's {(self._commit or 'commit')[:12]}: it is unclear whose policy and secrets apply",
            hint,
        )


def _read_content(file: Path) -> bytes:
    """Read the file; one that cannot be read is empty, so that it differs from the commit's content."""
    try:
        return read_limited_raw(file, GIT_OBJECT_BYTES)
    except OSError:
        return b""


def is_unverified_start(step: Step) -> bool:
    """Whether a manual start uses files whose commit the workspace cannot prove."""
    environment = step.environment
    if environment.event_name != "workflow_dispatch":
        return False
    return not CommitFiles(environment.workspace, environment.sha).can_read(environment.workspace / "any")


def _find_event_commit(environment: WorkflowEnvironment) -> str | None:
    """Find the commit of the event, or the workspace's if a manual start names a pull request: the plan checks it."""
    if environment.event_name == "workflow_dispatch":
        event = read_event(environment.event_name, environment.event_path)
        if parse_pull_number(event) is not None:
            return find_head_commit(environment.workspace)
    return environment.sha or None
