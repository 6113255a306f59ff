"""Reads the folder that a workspace is copied from, and the state of a workspace, within the limits of a sandbox."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path
from typing import Final

from eval_gate.sandbox.paths import LINK, NO_FOLDER, SandboxError
from eval_gate.sandbox.sandbox import InitialFile
from eval_gate.sandbox.sandbox_setup import ExistingFolder

_DIGEST_DIGITS: Final = 16
_GIT: Final = ".git"
_GENERATED_FOLDERS: Final = frozenset({_GIT, "node_modules", ".agentv", "__pycache__"})
"""Folders that are no part of what changed: AgentV leaves them out where it compares folders without git."""


def read_template(folder: Path) -> tuple[InitialFile, ...]:
    """Read all files and folders of a template, except `.git`.

    Raises SandboxError for what cannot be copied, such as a link, and for more than a sandbox may hold; and OSError.
    """
    if folder.is_symlink() or not folder.is_dir():
        raise SandboxError(LINK if folder.is_symlink() else NO_FOLDER)
    files, left_out = ExistingFolder(folder).collect_initial_files(_is_git)
    if left_out:
        path, why = left_out[0]
        raise SandboxError(f"{path[:200]}: {why}")
    return tuple(files)


def read_workspace(folder: Path) -> tuple[InitialFile, ...]:
    """Read the state of a workspace, without generated folders.

    A link, a pipe and a file that is too large have a short text in place of their content. Raises SandboxError for
    more than a sandbox may hold; and OSError.
    """
    files, left_out = ExistingFolder(folder).collect_initial_files(_is_generated)
    return (*files, *(InitialFile(path, f"\0{why}".encode()) for path, why in left_out))


def compute_template_digest(files: Collection[InitialFile]) -> str:
    """Compute a digest of paths, contents and executable bits: the first 16 hexadecimal digits of a SHA-256.

    Line endings make no difference, so that the digest is the same in every checkout.
    """
    whole = hashlib.sha256()
    for one in sorted(files, key=lambda one: one.path):
        content = "" if one.data is None else hashlib.sha256(one.data.replace(b"\r\n", b"\n")).hexdigest()
        whole.update(f"{one.path}\0{content}\0{one.executable}\0".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()[:_DIGEST_DIGITS]


def _is_git(_: Collection[str], name: str) -> bool:
    return name == _GIT


def _is_generated(_: Collection[str], name: str) -> bool:
    return name in _GENERATED_FOLDERS
