"""Whose files a step goes by: those of the commit that its event is about, and of no other.

Most events start a run only for code that its keys are meant for, or without keys. At the others a workflow has the
default branch's secrets and token, and its steps may have brought in anybody's files: a checkout of another commit, a
folder of its own, an archive, single files over the own ones. Where they came from cannot be told from where they lie.
So each file is held against the commit as it is read, its very bytes.
"""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Final

from eval_gate.action.inputs import ReportedSide, Settings
from eval_gate.action.plan import OWN_CODE, PULL_INPUT, pull_number
from eval_gate.action.step import Step
from eval_gate.action.trust.base import path_in_repository
from eval_gate.action.trust.checkouts import commits_read, results_read
from eval_gate.config.settings import RunConfig
from eval_gate.errors import GateError
from eval_gate.files.place import shown_as
from eval_gate.files.reading import RefusedReadError, read_as_it_lies
from eval_gate.github.checkout import checked_out
from eval_gate.github.commit_files import CommitFiles
from eval_gate.github.commits import file_at
from eval_gate.github.environment import WorkflowEnvironment
from eval_gate.github.event import read_event
from eval_gate.github.failure import GitHubError, unavailable
from eval_gate.model.limits import GIT_OBJECT_BYTES
from eval_gate.text.quoting import shown_name

_CHOSEN: Final = frozenset({"workflow_dispatch", "workflow_run"})
"""Events at which whoever may write, or the default branch's workflow alone, says what is in the workspace."""
_UNKNOWN: Final = "no commit that is known"


class Proof(StrEnum):
    """What it takes for a file to count as the commit's."""

    NONE = "none"
    NO_DOUBT = "no doubt"
    """No checkout around it is of another commit, and where the commit can be read, it has the file."""
    CONTENT = "content"
    """The commit has the file, with this content."""


def proof_for(event: str) -> Proof:
    """What this event takes. Of one that is not known here nobody can tell who causes it."""
    if event in OWN_CODE:
        return Proof.NONE
    return Proof.NO_DOUBT if event in _CHOSEN else Proof.CONTENT


class EventFiles:
    """The files of one step's event."""

    def __init__(self, environment: WorkflowEnvironment, settings: Settings) -> None:
        """Raises GateError for an event that cannot be read."""
        self._workspace = Path(os.path.realpath(environment.workspace))
        self._event = environment.event_name
        self.proof = proof_for(self._event)
        self._commit = _commit_of(environment)
        self._files = CommitFiles(self._workspace, self._commit) if self._commit else None
        # whoever starts a run by hand may have the workflow say that files which a step has made are fine
        self._by_word = self.proof is Proof.NO_DOUBT and settings.secrets_for is ReportedSide.HEAD
        self._read_before: list[tuple[Path, bytes, bool]] | None = []
        self._believed: tuple[tuple[Path, bytes], ...] = ()

    def check_places(self, config: RunConfig, settings: Settings) -> None:
        """Hold where everything lies that is read against the commit, and what was read by now.

        Raises GateError, and RefusedReadError for one file.
        """
        read_before, self._read_before = self._read_before or [], None
        if self.proof is Proof.NONE or (self._event == "workflow_run" and not read_before):
            return  # a relay reads nothing but the configuration
        others = commits_read(config, settings, self._workspace) - {self._commit}
        if self.proof is Proof.NO_DOUBT and not (self._workspace / ".git").exists():
            others -= {None}  # a checkout by archive says of no file whose it is
        if others:
            raise self._refusal(next((one[:12] for one in sorted(filter(None, others))), _UNKNOWN))
        for path, data, made in read_before:
            self.check_read(path, data, made=made)
        if self._event == "workflow_dispatch" and not self._by_word:
            self._believed = tuple((path, data) for path, data, _ in read_before)
        if self.proof is Proof.CONTENT:
            for file in results_read(config, settings, self._workspace):
                self.check_read(file, _content(file), made=False)

    def check_read(self, path: Path, data: bytes, *, made: bool) -> None:
        """Raises RefusedReadError for a file that is not the commit's, where that matters.

        Until it is known where everything lies, the configuration is only read, to know it.
        """
        if self._read_before is not None:
            self._read_before.append((path, data, made))
            return
        if self.proof is Proof.NONE or (self.proof is Proof.NO_DOUBT and (made or self._by_word)):
            return
        if self._files is not None:
            if self._files.has(path, data):
                return
            if self.proof is Proof.NO_DOUBT and not self._files.can_be_read(path):
                return
        named = shown_name(shown_as(Path(os.path.abspath(path)), self._workspace))  # noqa: PTH100 (links stay as they are)
        raise RefusedReadError(self._refusal(f"{named}, which is of {_UNKNOWN}"))

    def confirm_configuration(self, step: Step) -> None:
        """Ask GitHub for the configuration where the workspace holds nothing by which its commit can be read.

        Raises GateError where the event's commit has another one, or GitHub does not tell.
        """
        if step.plan.base_branch is not None or not is_believed(step):
            return
        for file, data in self._believed:
            name = shown_as(Path(os.path.realpath(file)), self._workspace)
            try:
                known = file_at(step.client, path_in_repository(step, name), step.environment.sha)
            except GitHubError as error:
                raise unavailable(f"whose configuration {shown_name(name)} is could not be told: {error}") from error
            if known is None or known.replace(b"\r\n", b"\n") != data.replace(b"\r\n", b"\n"):
                raise self._refusal(f"{shown_name(name)}, which is of {_UNKNOWN}")

    def _refusal(self, what: str) -> GateError:
        hint = f"start it by workflow_dispatch with `{PULL_INPUT}`, as examples/workflows/manual-dispatch.yml does"
        if self.proof is Proof.NO_DOUBT:
            hint += "; where a step of the workflow made the file, say so in the workflow: input secrets-for: head"
        return GateError(
            "unsafe-event",
            f"{self._event} has the default branch's secrets, and the workspace holds {what}, "
            f"not the event's {(self._commit or 'commit')[:12]}: whose rules and keys count for it, nobody says",
            hint,
        )


def _content(file: Path) -> bytes:
    """The file; nothing where it cannot be read, which is then not what a commit has."""
    try:
        return read_as_it_lies(file, GIT_OBJECT_BYTES)
    except OSError:
        return b""


def is_believed(step: Step) -> bool:
    """Whether a manual start goes by files of which nothing in the workspace says whose they are."""
    environment = step.environment
    if environment.event_name != "workflow_dispatch":
        return False
    return not CommitFiles(environment.workspace, environment.sha).can_be_read(environment.workspace / "any")


def _commit_of(environment: WorkflowEnvironment) -> str | None:
    """The event's commit; where a manual start names a pull request, the one that lies there, which the plan checks."""
    if environment.event_name == "workflow_dispatch":
        event = read_event(environment.event_name, environment.event_path)
        if pull_number(event) is not None:
            return checked_out(environment.workspace)
    return environment.sha or None
