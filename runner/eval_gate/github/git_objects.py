"""Git objects of a commit: trees and files, read by git and held to their names.

Who wrote the repository folder need not be trusted. Every object is known by the hash of its content, and is held to
it, so that whoever knows the name of a commit finds in it what that commit holds, or nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from eval_gate.files.git_folder import read_git_text
from eval_gate.model.limits import GIT_OBJECT_BYTES
from eval_gate.process.git import read_stored_object
from eval_gate.struct import FrozenStruct

_TREE_OF: Final = re.compile(rb"tree ([0-9a-f]{40}|[0-9a-f]{64})\n")
_NAME: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class TreeEntry(FrozenStruct):
    """Entry of a git tree."""

    kind: str
    """`40000` a folder, `120000` a link, `160000` a commit of a submodule; else a file."""
    name: str
    """The object's, in hexadecimal digits."""

    @property
    def is_folder(self) -> bool:
        """Whether it is a tree."""
        return self.kind in {"40000", "040000"}

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link, whose target is its content."""
        return self.kind == "120000"

    @property
    def is_submodule(self) -> bool:
        """Whether it is a commit of another repository."""
        return self.kind == "160000"


class GitObjects:
    """Objects of one repository. A missing, damaged or too large object is None."""

    def __init__(self, git_dir: Path) -> None:
        self._store = git_dir / (read_git_text(git_dir / "commondir") or "") / "objects"
        self._trees = dict[str, Mapping[str, TreeEntry] | None]()

    def find_tree(self, commit: str) -> str | None:
        """Return the object name of the commit's tree, or None if the commit cannot be read."""
        data = self.read_object(commit, "commit")
        match = _TREE_OF.match(data) if data else None
        return match[1].decode() if match else None

    def get_entries(self, tree: str) -> Mapping[str, TreeEntry] | None:
        """Return the entries of a tree by name (with surrogates if not UTF-8), or None if it cannot be read."""
        if tree not in self._trees:
            data = self.read_object(tree, "tree")
            self._trees[tree] = None if data is None else dict(_iter_entries(data, len(tree) // 2))
        return self._trees[tree]

    def read_object(self, name: str, kind: str) -> bytes | None:
        """Read the content of the object with this name and kind, held to the name, or return None."""
        if not _NAME.fullmatch(name):
            return None
        data = read_stored_object(self._store, name, kind, GIT_OBJECT_BYTES)
        return data if data is not None and compute_object_name(kind, data, len(name)) == name else None


def compute_object_name(kind: str, content: bytes, digits: int) -> str:
    """Compute git's name of an object: SHA-1 for 40 `digits`, SHA-256 for 64."""
    digest = hashlib.sha1(usedforsecurity=False) if digits == 40 else hashlib.sha256()
    digest.update(f"{kind} {len(content)}\0".encode())
    digest.update(content)
    return digest.hexdigest()


def _iter_entries(data: bytes, width: int) -> Iterator[tuple[str, TreeEntry]]:
    at = 0
    while at < len(data):
        end = data.index(b"\0", at)
        kind, _, name = data[at:end].partition(b" ")
        at = end + 1 + width
        yield os.fsdecode(name), TreeEntry(kind.decode("ascii", "replace"), data[end + 1 : at].hex())
