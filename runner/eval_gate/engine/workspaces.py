"""Shared workspaces: which cases work in one, and the artifacts of failing cases.

The cases of an Agent Evals suite whose agent changes files share a folder for each trial (agent-evals behaviour 3.2),
and so do those of an AgentV file with a shared workspace.
So the cases before a case are part of its setup fingerprint, and a trial of a suite is finished as a whole or repeated.

The workspace artifacts of a failing case become one Markdown file next to the run result. One file, because paths that
an agent chose are only text in it. Markdown, because people read it, and no tool takes it for a result.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from eval_gate.engine.journal import TrialKey, TrialRecord
from eval_gate.files.writing import remove_file, write_atomically
from eval_gate.model.base import JsonValue, as_fields
from eval_gate.model.case import CaseKey, EvalCase, EvalSuite
from eval_gate.model.conversation import FileEntry
from eval_gate.model.limits import WORKSPACE_CASE, WORKSPACE_FILE, WORKSPACE_RUN
from eval_gate.results.masking import MARGIN
from eval_gate.text.digest import compute_digest
from eval_gate.text.escape import format_count
from eval_gate.text.javascript.regex import PatternError, PatternMatcher, PatternWorkerError
from eval_gate.text.mask import MASK

_EMPTY_DIGEST: Final = compute_digest([])
_ARTIFACT_PREFIX: Final = "workspace"
_MAX_NAME: Final = 40
"""Characters of a case's id, and of its file's name, in the name of an artifact file."""


def digest_preceding_cases(suite: EvalSuite) -> Mapping[CaseKey, str]:
    """Compute a digest of what was run before each case, for a suite that describes its agent or shares a workspace.

    Each digest is the first 16 hexadecimal digits of a SHA-256. It covers the number of earlier executed cases,
    their prompts and their timeouts. The expectations and names of these cases are not part of it, because they
    leave nothing in a folder.
    """
    digests, digest = {}, _EMPTY_DIGEST
    for case in suite.cases:
        if (case.agent is not None or case.dependent) and case.skip_reason is None:
            digests[case.key] = digest
            digest = compute_digest([digest, *_list_agent_inputs(case)])
    return digests


def _list_agent_inputs(case: EvalCase) -> list[JsonValue]:
    inputs: list[JsonValue] = [[[message.role, message.content] for message in case.messages], case.timeout_ms]
    spec = case.conversation
    if spec is None:
        return inputs
    return [*inputs, [turn.message for turn in spec.turns], as_fields(spec.user) if spec.user else None]


class SharedWorkspaces:
    """Names of shared workspaces, so that a resumed run knows which executions shared one."""

    def __init__(self, suites: tuple[EvalSuite, ...]) -> None:
        """`suites` hold the cases of the run and no others."""
        self._process = uuid.uuid4().hex[:8]
        by_file = {
            suite.file: [case for case in suite.cases if case.dependent and case.skip_reason is None]
            for suite in suites
        }
        self._cases = {file: cases for file, cases in by_file.items() if cases}
        self._order = {
            file: compute_digest([[case.fingerprint, *_list_agent_inputs(case)] for case in cases])
            for file, cases in self._cases.items()
        }

    def name_workspace(self, case: EvalCase) -> str | None:
        """Return the name of the shared folder in which this process runs the case; None if it has its own."""
        return f"{self._process} {self._order[case.suite]}" if case.dependent else None

    def list_sharing_cases(self, case: EvalCase) -> Sequence[EvalCase]:
        """List all cases that share a folder with this one, and itself, in the order of execution."""
        return self._cases[case.suite]

    def iter_interrupted(
        self, count_trials: Callable[[EvalCase], int], find_folder: Callable[[TrialKey], str | None]
    ) -> Iterator[TrialKey]:
        """Yield the executions to repeat: their suite was not finished in one folder and in this order.

        `find_folder` returns the folder of an execution; None if it is not finished.
        """
        for file, cases in self._cases.items():
            for trial in range(max(map(count_trials, cases))):
                keys = [(case.key, trial) for case in cases]
                folders = {find_folder(key) for key in keys}
                if len(folders) > 1 or not all(one and one.endswith(self._order[file]) for one in folders):
                    yield from keys


class WorkspaceArtifacts:
    """Workspace artifacts of failing cases, stored in the run's `folder` and redacted by `patterns`."""

    def __init__(self, folder: Path, patterns: Sequence[str]) -> None:
        self._folder = folder
        self._patterns = patterns
        self._room = WORKSPACE_RUN

    async def store(self, trial_record: TrialRecord, files: Iterable[FileEntry], matcher: PatternMatcher) -> str | None:
        """Write the files without secrets, and return a sentence about them; None without changes. Raises GateError."""
        entries = [entry for entry in files if entry.kind != "folder"]
        changed = [entry for entry in entries if not entry.unchanged]
        if not changed:
            return None
        count = format_count(len(changed), "file")
        try:
            pages = await self._render_files(changed, matcher)
        except (PatternError, PatternWorkerError) as error:
            return f"workspace artifacts ({count}) are not kept, because they could not be searched: {error}"
        text = _render_page(trial_record, pages, len(entries) - len(changed))
        if len(text) > self._room:
            return f"workspace artifacts ({count}) are not kept: this run already has {WORKSPACE_RUN:,} characters"
        self._room -= len(text)
        name = _build_file_name(trial_record)
        write_atomically(self._folder / name, text)
        return f"workspace artifacts are kept next to the run result: {name} ({count})"

    async def _render_files(self, entries: Sequence[FileEntry], matcher: PatternMatcher) -> list[tuple[str, str]]:
        """Render path and text of each file within the limit, or the reason why the text is missing."""
        texts, room = [], WORKSPACE_CASE
        for entry in entries:
            text = entry.text or ""
            limit = max(0, min(WORKSPACE_FILE, room))
            texts.append((entry.path, text[: limit + MARGIN], limit, len(text), entry.problem))
            room -= min(len(text), limit)
        masked = [part for path, text, *_ in texts for part in (path, text)]
        if self._patterns:
            masked = await matcher.replace_matches(self._patterns, masked, MASK)
        pairs = zip(masked[::2], masked[1::2], strict=True)
        return [
            (path, _render_file(text, limit, whole, problem))
            for (path, text), (_, _, limit, whole, problem) in zip(pairs, texts, strict=True)
        ]


def _render_file(text: str, limit: int, whole: int, problem: str | None) -> str:
    if problem is not None:
        return f"Not kept: {problem}\n"
    excerpt = text[:limit]
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", excerpt)), default=0))
    end = "" if excerpt.endswith("\n") or not excerpt else "\n"
    cut = f"\nTruncated: it has {whole:,} characters.\n" if whole > limit else ""
    return f"{fence}\n{excerpt}{end}{fence}\n{cut}"


def _render_page(trial_record: TrialRecord, files: Sequence[tuple[str, str]], unchanged: int) -> str:
    intro = f"Workspace artifacts of trial {trial_record.trial + 1}: {len(files):,} files.\n"
    if unchanged:
        intro += f"{format_count(unchanged, 'more file')} did not change.\n"
    parts = [f"# {_format_inline_code(trial_record.case_id)} of {_format_inline_code(trial_record.eval_file)}\n", intro]
    parts += [f"## {_format_inline_code(path)}\n\n{text}" for path, text in files]
    return "\n".join(parts)


def _format_inline_code(text: str) -> str:
    """Format a path or id as inline code in Markdown, without characters that could end it."""
    plain = re.sub(r"[\x00-\x1f\x7f`]", "?", text)
    return f"`{plain}`"


def remove_artifacts(folder: Path) -> None:
    """Remove the workspace artifacts of a run that may no longer store them. Raises GateError."""
    for file in folder.glob(f"{_ARTIFACT_PREFIX}-*.md"):
        remove_file(file)


def _build_file_name(trial_record: TrialRecord) -> str:
    """Build a file name that is the same in a resumed run, and safe whatever the eval file and case are called."""
    whole = f"{trial_record.eval_file}\0{trial_record.case_id}\0{trial_record.trial}".encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(whole).hexdigest()[:8]
    parts = (Path(trial_record.eval_file).stem, trial_record.case_id)
    plain = [re.sub(r"[^A-Za-z0-9.]+", "-", part).strip(".-")[:_MAX_NAME] for part in parts]
    return "-".join([_ARTIFACT_PREFIX, *filter(None, plain), digest]) + ".md"
