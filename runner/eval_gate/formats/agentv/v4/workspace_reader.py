"""Reader for the `workspace` of an AgentV 4 file and of its cases.

Source: AgentV 4.42.4, "Workspace". The workspace of the first case decides whether all cases share one; AgentV ignores
then what later cases say of theirs, which is refused here.
"""

from __future__ import annotations

from pathlib import Path as FilePath

from eval_gate.files.reading import read_limited
from eval_gate.formats.agentv.eval_repository import EvalRepository, FileError, normalize_path
from eval_gate.formats.agentv.findings import AgentVFindings, Path
from eval_gate.formats.agentv.v4 import unsupported_features
from eval_gate.formats.agentv.v4.file_model import AgentV4Workspace
from eval_gate.formats.base import EvalFileError
from eval_gate.formats.documents import parse_yaml, read_bytes
from eval_gate.model.base import JsonValue
from eval_gate.model.case import CaseWorkspace
from eval_gate.model.limits import SANDBOX_FILE_BYTES
from eval_gate.sandbox.paths import SandboxError
from eval_gate.sandbox.workspace_template import compute_template_digest, read_template
from eval_gate.struct import FrozenStruct
from eval_gate.text.sources.validation_errors import describe_value


class _Workspace(FrozenStruct):
    """A workspace as a file or a case describes it, with absolute paths."""

    template: str | None = None
    isolation: str | None = None

    @property
    def is_needed(self) -> bool:
        """Whether AgentV makes a folder for this."""
        return self.template is not None

    def merge(self, own: _Workspace) -> _Workspace:
        """Return this workspace of a file with what a case changes of it."""
        return _Workspace(own.template or self.template, own.isolation or self.isolation)


class WorkspaceReader:
    """Read the workspaces of one eval file, and record what is wrong with them."""

    def __init__(self, findings: AgentVFindings, repository: EvalRepository) -> None:
        self._findings = findings
        self._repository = repository
        self._suite = _Workspace()
        self._first: _Workspace | None = None
        self._digests: dict[str, str | None] = {}

    def read_header(self, raw: JsonValue, path: Path) -> None:
        """Read the workspace of the file."""
        self._suite = self._read(raw, path)

    def read_case(self, raw: JsonValue, path: Path) -> CaseWorkspace | None:
        """Read the workspace of a case, and return the one in which it is run; None if it has none."""
        wanted = self._suite.merge(self._read(raw, path))
        if self._first is None:
            self._first = wanted
        shared = self._first.isolation != "per_test" and self._first.is_needed
        if shared and wanted != self._first:
            self._findings.add_problem(unsupported_features.OTHER_WORKSPACE, path)
        if not wanted.is_needed:
            return None
        digest = None if wanted.template is None else self._digests.get(wanted.template)
        return CaseWorkspace(
            folder=str(self._repository.folder), template=wanted.template, digest=digest, shared=shared
        )

    def _read(self, raw: JsonValue, path: Path) -> _Workspace:
        base = self._repository.folder
        if isinstance(raw, str):
            raw, base = self._load_file(raw, path)
        if raw is None:
            return _Workspace()
        found = self._findings.read_part(AgentV4Workspace, raw, path)
        if found is None:
            return _Workspace()
        template = None if found.template is None else self._find_template(base / found.template, path)
        return _Workspace(template, found.isolation)

    def _load_file(self, name: str, path: Path) -> tuple[JsonValue, FilePath]:
        """Load the file that describes a workspace; paths in it are relative to its folder."""
        file = normalize_path(self._repository.folder / name)
        shown = self._repository.format_path(file)
        raw, trouble = None, "the repository has no such file"
        try:
            if self._repository.find_file_at(file) is not None:
                raw, trouble = parse_yaml(read_bytes(file, shown), shown).value, ""
        except (FileError, EvalFileError) as error:
            trouble = str(error)
        if trouble:
            self._findings.add_problem(f'"{name[:100]}": {trouble}', path)
            return None, file.parent
        for variable, _ in unsupported_features.iter_environment_references(raw):
            self._findings.add_problem(unsupported_features.describe_environment_reference(variable), path)
        if not isinstance(raw, dict):
            self._findings.add_problem(f"{shown}: expected a workspace, got {describe_value(raw)}", path)
            return None, file.parent
        return raw, file.parent

    def _find_template(self, folder: FilePath, path: Path) -> str | None:
        """Find the folder of a template and read it, to know its digest. Reports a problem if it cannot be copied."""
        try:
            found = self._repository.find_folder(str(folder))
            if str(found) not in self._digests:
                self._digests[str(found)] = _digest_template(found)
            return str(found)
        except (FileError, SandboxError, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            shown = self._repository.format_path(normalize_path(folder))
            self._findings.add_problem(f"{shown[:200]} cannot be copied: {why}", (*path, "template"))
            return None


def _digest_template(folder: FilePath) -> str:
    """Compute the digest of a template whose files are read as all files that a decision depends on.

    Raises SandboxError and OSError; GateError for a Git LFS pointer, and RefusedReadError.
    """
    files = read_template(folder)
    for one in files:
        if one.data is not None and read_limited(folder / one.path, SANDBOX_FILE_BYTES) != one.data:
            raise SandboxError(f"{one.path[:200]} changed while it was read.")
    return compute_template_digest(files)
