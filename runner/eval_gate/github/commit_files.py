"""Verification of workspace files against a commit: same path, same content by git's hashes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from eval_gate.files.git_folder import find_git_dir
from eval_gate.files.reading import parse_lfs_pointer
from eval_gate.github.git_objects import GitObjects, TreeEntry, compute_object_name
from eval_gate.struct import FrozenStruct

_MAX_LINKS: Final = 40


class _CheckoutTree(FrozenStruct):
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
        return steps is not None and any(True for _ in self._iter_trees(steps.place))

    def has_content(self, path: Path, data: bytes) -> bool:
        """Whether the commit has this content at this path, and each link on the way there."""
        steps = _resolve_links(path, self._root)
        if steps is None:
            return False
        links = all(self._has_content_at(place, target, is_link=True) for place, target in steps.links)
        return links and self._has_content_at(steps.place, data, is_link=False)

    def _has_content_at(self, place: Path, content: bytes, *, is_link: bool) -> bool:
        for tree in self._iter_trees(place):
            found = _find_entry(tree, place)
            if found is None:
                continue
            entry, objects = found
            if entry.is_link is is_link and not entry.is_folder and _is_same_content(entry, objects, content):
                return True
        return False

    def _iter_trees(self, place: Path) -> Iterator[_CheckoutTree]:
        """Yield the trees of the commit in the checkouts around this place whose repositories hold it."""
        for folder in place.parents:
            if not folder.is_relative_to(self._root):
                return
            if folder not in self._known:
                self._known[folder] = self._load_tree(folder)
            found = self._known[folder]
            if found is not None:
                yield found

    def _load_tree(self, folder: Path) -> _CheckoutTree | None:
        git_dir = find_git_dir(folder)
        if git_dir is None:
            return None
        objects = GitObjects(git_dir)
        tree = objects.find_tree(self._commit)
        return _CheckoutTree(folder, objects, tree) if tree else None


class _ResolvedPath(FrozenStruct):
    """Resolution of a path to a file: the links on the way, each with its target, and the final path."""

    links: tuple[tuple[Path, bytes], ...]
    place: Path


def _resolve_links(path: Path, root: Path) -> _ResolvedPath | None:
    """Resolve the path to a file in `root` as the operating system does, and record the links on the way."""
    links: list[tuple[Path, bytes]] = []
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
            links.append((place, os.fsencode(os.readlink(place))))  # noqa: PTH115 (to the letter)
        pending += target.parts[::-1]
        place = place.parent
    return _ResolvedPath(tuple(links), place) if place.is_relative_to(root) else None


def _find_entry(tree: _CheckoutTree, place: Path) -> tuple[TreeEntry, GitObjects] | None:
    """Find the commit's entry at this place, also in submodules, and the repository that stores its content."""
    objects, name, folder = tree.objects, tree.tree, tree.folder
    parts = place.relative_to(tree.folder).parts
    for number, part in enumerate(parts):
        entry = (objects.get_entries(name) or {}).get(part)
        folder /= part
        if entry is None or number == len(parts) - 1:
            return (entry, objects) if entry else None
        if entry.is_folder:
            name = entry.name
            continue
        git_dir = find_git_dir(folder) if entry.is_submodule else None
        objects = GitObjects(git_dir) if git_dir else objects
        of_submodule = objects.find_tree(entry.name) if git_dir else None
        if of_submodule is None:
            return None
        name = of_submodule
    return None


def _is_same_content(entry: TreeEntry, objects: GitObjects, content: bytes) -> bool:
    """Whether a file of this content is what the commit has: as it is, with line ends of Windows, or by Git LFS."""
    digits = len(entry.name)
    if entry.name in {compute_object_name("blob", one, digits) for one in (content, content.replace(b"\r\n", b"\n"))}:
        return True
    pointer = objects.read_object(entry.name, "blob")
    return pointer is not None and parse_lfs_pointer(pointer) == hashlib.sha256(content).hexdigest()
