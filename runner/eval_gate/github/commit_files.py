"""Verification of workspace files against a commit: same path, same content by git's hashes.

The repository folder is untrusted. Git reads its objects, and each object is compared with its name, the hash of its
content. So the name of a commit leads to the content of that commit, or to none.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from eval_gate.files.git_folder import find_git_dir, read_git_text
from eval_gate.files.reading import parse_lfs_pointer
from eval_gate.model.limits import GIT_OBJECT_BYTES
from eval_gate.process.git import read_stored_object

_TREE_OF: Final = re.compile(rb"tree ([0-9a-f]{40}|[0-9a-f]{64})\n")
_NAME: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MAX_LINKS: Final = 40


_FOLDERS: Final = frozenset({"40000", "040000"})
_LINK: Final = "120000"
_SUBMODULE: Final = "160000"


class TreeEntry(NamedTuple):
    """Entry of a git tree."""

    kind: str
    """`40000` a folder, `120000` a link, `160000` a commit of a submodule; else a file."""
    name: str
    """The object's, in hexadecimal digits."""


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


class _CheckoutTree(NamedTuple):
    """Folder of the workspace, and the commit's entries in it."""

    folder: Path
    objects: GitObjects
    tree: str


class CommitFiles:
    """Files of one commit, compared with checkouts in the workspace."""

    def __init__(self, workspace: Path, commit: str) -> None:
        self._root = Path(os.path.realpath(workspace))
        self._commit = commit
        self._known = dict[Path, _CheckoutTree | None]()

    def can_read(self, path: Path) -> bool:
        """Whether the commit can be read at all where this file lies."""
        steps = _resolve_links(path, self._root)
        return steps is not None and any(True for _ in self._iter_trees(steps[-1][0]))

    def has_content(self, path: Path, data: bytes) -> bool:
        """Whether the commit has this content at this path, and each link on the way there."""
        steps = _resolve_links(path, self._root)
        return steps is not None and all(
            self._has_content_at(place, data if target is None else target, is_link=target is not None)
            for place, target in steps
        )

    def _has_content_at(self, place: Path, content: bytes, *, is_link: bool) -> bool:
        for tree in self._iter_trees(place):
            entry, objects = _find_entry(tree, place)
            fits = entry is not None and (entry.kind == _LINK) is is_link and entry.kind not in _FOLDERS
            if entry is not None and fits and _is_same_content(entry, objects, content):
                return True
        return False

    def _iter_trees(self, place: Path) -> Iterator[_CheckoutTree]:
        """Yield the trees of the commit in the checkouts around this place whose repositories hold it."""
        for folder in place.parents:
            if not folder.is_relative_to(self._root):
                return
            if folder not in self._known:
                self._known[folder] = self._load_tree(folder)
            tree = self._known[folder]
            if tree is not None:
                yield tree

    def _load_tree(self, folder: Path) -> _CheckoutTree | None:
        git_dir = find_git_dir(folder)
        if git_dir is None:
            return None
        objects = GitObjects(git_dir)
        tree = objects.find_tree(self._commit)
        return _CheckoutTree(folder, objects, tree) if tree else None


def _resolve_links(path: Path, root: Path) -> list[tuple[Path, bytes | None]] | None:
    """Resolve the path to a file in `root` as the operating system does: links on the way with targets, then the file.

    None for a file elsewhere, or one that no path leads to.
    """
    steps: list[tuple[Path, bytes | None]] = []
    place, pending, followed = Path(), list((root / path).parts[::-1]), 0
    while pending:
        part = pending.pop()
        if part == "..":
            place = place.parent
            continue
        place /= part  # the root of an absolute path, or of such a link, takes the place of all before
        try:
            target = place.readlink() if place.is_symlink() else None
        except OSError:
            return None
        if target is None:
            continue
        followed += 1
        if followed > _MAX_LINKS:
            return None
        if place.is_relative_to(root):
            steps.append((place, os.fsencode(os.readlink(place))))  # noqa: PTH115 (to the letter)
        pending += target.parts[::-1]
        place = place.parent
    return [*steps, (place, None)] if place.is_relative_to(root) else None


def _find_entry(tree: _CheckoutTree, place: Path) -> tuple[TreeEntry | None, GitObjects]:
    """Find the commit's entry at this place, also in submodules, and the repository that stores its content."""
    objects, name, folder = tree.objects, tree.tree, tree.folder
    parts = place.relative_to(tree.folder).parts
    for number, part in enumerate(parts):
        entry = (objects.get_entries(name) or {}).get(part)
        folder /= part
        if entry is None or number == len(parts) - 1:
            return entry, objects
        if entry.kind in _FOLDERS:
            name = entry.name
            continue
        git_dir = find_git_dir(folder) if entry.kind == _SUBMODULE else None
        objects = GitObjects(git_dir) if git_dir else objects
        of_submodule = objects.find_tree(entry.name) if git_dir else None
        if of_submodule is None:
            break
        name = of_submodule
    return None, objects


def _is_same_content(entry: TreeEntry, objects: GitObjects, content: bytes) -> bool:
    """Whether a file of this content is what the commit has: as it is, with line ends of Windows, or by Git LFS."""
    digits = len(entry.name)
    if entry.name in {compute_object_name("blob", one, digits) for one in (content, content.replace(b"\r\n", b"\n"))}:
        return True
    pointer = objects.read_object(entry.name, "blob")
    return pointer is not None and parse_lfs_pointer(pointer) == hashlib.sha256(content).hexdigest()
