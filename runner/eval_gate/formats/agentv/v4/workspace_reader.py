"""Reader for the `workspace` of an AgentV 4 file and of its cases.

Source: AgentV 4.42.4, "Workspace". The workspace of the first case decides whether all cases share one; AgentV
then ignores different workspaces of later cases, which are problems here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Final, get_args

from eval_gate.files.reading import read_limited
from eval_gate.formats.agentv.eval_repository import EvalRepository, FileError, normalize_path
from eval_gate.formats.agentv.evaluator_parts import EvaluatorPartReader
from eval_gate.formats.agentv.file_model import as_raw_json
from eval_gate.formats.agentv.findings import AgentVFindings, Path
from eval_gate.formats.agentv.v4 import unsupported_features
from eval_gate.formats.agentv.v4.file_model import AgentV4Hook, AgentV4Hooks, AgentV4Workspace
from eval_gate.formats.base import EvalFileError
from eval_gate.formats.documents import parse_yaml, read_bytes
from eval_gate.model.base import JsonValue
from eval_gate.model.case import CaseWorkspace, HookName, WorkspaceHook, WorkspaceHooks
from eval_gate.model.limits import SANDBOX_FILE_BYTES
from eval_gate.sandbox.paths import SandboxError
from eval_gate.sandbox.sandbox_setup import compute_template_digest, read_template
from eval_gate.struct import FrozenStruct, field, replace
from eval_gate.text.sources.validation_errors import describe_value

_HOOK_NAMES: Final = get_args(HookName)


class _Hook(FrozenStruct):
    """A hook as a file or a case describes it."""

    command: tuple[str, ...] = ()
    timeout_ms: float | None = None
    cwd: str | None = None

    def merge(self, own: _Hook) -> _Hook:
        """Return this hook of a file with what a case changes of it."""
        return _Hook(own.command or self.command, own.timeout_ms or self.timeout_ms, own.cwd or self.cwd)


class _Workspace(FrozenStruct):
    """A workspace as a file or a case describes it, with absolute paths."""

    template: str | None = None
    isolation: str | None = None
    hooks: Mapping[str, _Hook] = field(default_factory=dict)
    hooks_enabled: bool | None = None
    base: str | None = None
    """Folder of the file that describes the workspace, if that is a file of its own."""

    @property
    def is_needed(self) -> bool:
        """Whether AgentV creates a folder for this."""
        return self.template is not None or bool(self.hooks) or self.hooks_enabled is not None

    def merge(self, own: _Workspace) -> _Workspace:
        """Return this workspace of a file with what a case changes of it."""
        names = [name for name in _HOOK_NAMES if name in self.hooks or name in own.hooks]
        return _Workspace(
            own.template or self.template,
            own.isolation or self.isolation,
            {name: self.hooks.get(name, _Hook()).merge(own.hooks.get(name, _Hook())) for name in names},
            self.hooks_enabled if own.hooks_enabled is None else own.hooks_enabled,
            own.base or self.base,
        )

    def build_hooks(self, folder: str) -> WorkspaceHooks:
        """Build the hooks that run, by default in `folder`."""
        if self.hooks_enabled is False:
            return WorkspaceHooks()
        hooks = {
            name: WorkspaceHook(command=one.command, cwd=one.cwd or self.base or folder, timeout_ms=one.timeout_ms)
            for name, one in self.hooks.items()
            if one.command
        }
        return WorkspaceHooks(**{name: (hook,) for name, hook in hooks.items()})


class WorkspaceReader:
    """Read the workspaces of one eval file, and record what is wrong with them."""

    def __init__(self, findings: AgentVFindings, repository: EvalRepository, parts: EvaluatorPartReader) -> None:
        """`parts` reads commands and folders."""
        self._findings = findings
        self._parts = parts
        self._repository = repository
        self._suite = _Workspace()
        self._first: _Workspace | None = None
        self._warned = False
        self._digests: dict[str, str | None] = {}

    def read_header(self, raw: JsonValue, path: Path) -> None:
        """Read the workspace of the file."""
        self._suite = self._read(raw, path)

    def read_case(self, raw: JsonValue, path: Path) -> CaseWorkspace | None:
        """Read the workspace of a case, and return the one in which it is run; None if it has none."""
        merged = self._suite.merge(self._read(raw, path))
        if self._first is None:
            self._first = merged
        shared = self._first.isolation != "per_test" and self._first.is_needed
        folder = str(self._repository.folder)
        hooks = merged.build_hooks(folder)
        if shared:
            self._check_sharing(merged, path)
            common = self._first.build_hooks(folder)
            hooks = replace(hooks, before_all=common.before_all, after_all=common.after_all)
        elif hooks.after_all and not self._warned:
            self._warned = True
            self._findings.add_warning(f"hooks.after_all {unsupported_features.NO_AFTER_ALL}", path)
        if not merged.is_needed:
            return None
        digest = None if merged.template is None else self._digests.get(merged.template)
        return CaseWorkspace(folder=folder, template=merged.template, digest=digest, shared=shared, hooks=hooks)

    def _check_sharing(self, own: _Workspace, path: Path) -> None:
        """Check that a case of a shared workspace describes it as the first case does."""
        assert self._first is not None
        if (own.template, own.isolation) != (self._first.template, self._first.isolation) or not own.is_needed:
            self._findings.add_problem(unsupported_features.OTHER_WORKSPACE, path)
        for name in ("before_all", "after_all"):
            if own.hooks.get(name) != self._first.hooks.get(name):
                self._findings.add_problem(f"hooks.{name} {unsupported_features.OTHER_HOOK}", path)

    def _read(self, raw: JsonValue, path: Path) -> _Workspace:
        base, file_folder = self._repository.folder, None
        if isinstance(raw, str):
            raw, base = self._load_file(raw, path)
            file_folder = str(base)
        if raw is None:
            return _Workspace()
        entry = self._findings.read_part(AgentV4Workspace, raw, path)
        if entry is None:
            return _Workspace()
        template = None if entry.template is None else self._find_template(base / entry.template, path)
        raw_hooks = as_raw_json(entry.hooks)
        hooks = None
        if raw_hooks is not None:
            hooks = self._findings.read_part(AgentV4Hooks, raw_hooks, (*path, "hooks"))
        if hooks is None:
            return _Workspace(template, entry.isolation, base=file_folder)
        read = {
            name: hook
            for name in _HOOK_NAMES
            if (hook := self._read_hook(as_raw_json(getattr(hooks, name)), base, (*path, "hooks", name))) is not None
        }
        return _Workspace(template, entry.isolation, read, hooks.enabled, file_folder)

    def _read_hook(self, raw: JsonValue, base: FilePath, path: Path) -> _Hook | None:
        """Read one hook, whose folder is relative to `base`; None for none, or after reporting a problem."""
        hook = None if raw is None else self._findings.read_part(AgentV4Hook, raw, path)
        if hook is None:
            return None
        if hook.reset not in (None, "none"):
            self._findings.add_problem(unsupported_features.RESET, (*path, "reset"))
        words = as_raw_json(hook.command)
        if isinstance(words, str):  # no shell: as AgentV, which splits at blanks
            words = [*words.split()]
        command = None if words is None else self._parts.read_command(words, (*path, "command"))
        cwd = None if hook.cwd is None else self._parts.resolve_folder(str(base / hook.cwd), (*path, "cwd"))
        return _Hook(tuple(command) if command is not None else (), hook.timeout_ms, cwd)

    def _load_file(self, name: str, path: Path) -> tuple[JsonValue, FilePath]:
        """Load the file that describes a workspace; paths in it are relative to its folder."""
        file = normalize_path(self._repository.folder / name)
        shown_as = self._repository.format_path(file)
        raw, trouble = None, "the repository has no such file"
        try:
            if self._repository.find_file_at(file) is not None:
                raw, trouble = parse_yaml(read_bytes(file, shown_as), shown_as).value, ""
        except (FileError, EvalFileError) as error:
            trouble = str(error)
        if trouble:
            self._findings.add_problem(f'"{name[:100]}": {trouble}', path)
            return None, file.parent
        for variable, _ in unsupported_features.iter_environment_references(raw):
            self._findings.add_problem(unsupported_features.describe_environment_reference(variable), path)
        if not isinstance(raw, dict):
            self._findings.add_problem(f"{shown_as}: expected a workspace, got {describe_value(raw)}", path)
            return None, file.parent
        return raw, file.parent

    def _find_template(self, folder: FilePath, path: Path) -> str | None:
        """Find the folder of a template and read it, to know its digest. Reports a problem if it cannot be copied."""
        try:
            template = self._repository.find_folder(str(folder))
            if str(template) not in self._digests:
                self._digests[str(template)] = _digest_template(template)
            return str(template)
        except (FileError, SandboxError, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            shown_as = self._repository.format_path(normalize_path(folder))
            self._findings.add_problem(f"{shown_as[:200]} cannot be copied: {why}", (*path, "template"))
            return None


def _digest_template(folder: FilePath) -> str:
    """Compute the digest of a template, with the checks of all files that a decision depends on."""
    files = read_template(folder)
    for one in files:
        if one.data is not None and read_limited(folder / one.path, SANDBOX_FILE_BYTES) != one.data:
            raise SandboxError(f"{one.path[:200]} changed while it was read.")
    return compute_template_digest(files)
