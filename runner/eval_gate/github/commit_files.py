"""Whether a file in the workspace is a commit's: it has the same path there, and the same content by git's hashes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from eval_gate.files.reading import pointer_in
from eval_gate.github.git_objects import Entry, GitObjects, git_dir_of, object_name
from eval_gate.struct import FrozenStruct

_MAX_LINKS: Final = 40


class _Tree(FrozenStruct):
    """A folder of the workspace, and what the commit has there."""

    folder: Path
    objects: GitObjects
    tree: str


class CommitFiles:
    """The files of one commit, as they lie in checkouts in the workspace."""

    def __init__(self, workspace: Path, commit: str) -> None:
        self._root = Path(os.path.realpath(workspace))
        self._commit = commit
        self._known = dict[Path, _Tree | None]()

    def can_be_read(self, path: Path) -> bool:
        """Whether the commit can be read at all where this file lies."""
        steps = _follow(path, self._root)
        return steps is not None and any(True for _ in self._trees_around(steps.place))

    def has(self, path: Path, data: bytes) -> bool:
        """Whether the commit has this content at this path, and each link on the way there."""
        steps = _follow(path, self._root)
        if steps is None:
            return False
        links = all(self._has(place, target, is_link=True) for place, target in steps.links)
        return links and self._has(steps.place, data, is_link=False)

    def _has(self, place: Path, content: bytes, *, is_link: bool) -> bool:
        for tree in self._trees_around(place):
            found = _entry(tree, place)
            if found is None:
                continue
            entry, objects = found
            if entry.is_link is is_link and not entry.is_folder and _is_content(entry, objects, content):
                return True
        return False

    def _trees_around(self, place: Path) -> Iterator[_Tree]:
        """The checkouts around this place whose repositories hold the commit."""
        for folder in place.parents:
            if not folder.is_relative_to(self._root):
                return
            if folder not in self._known:
                self._known[folder] = self._tree(folder)
            found = self._known[folder]
            if found is not None:
                yield found

    def _tree(self, folder: Path) -> _Tree | None:
        git_dir = git_dir_of(folder)
        if git_dir is None:
            return None
        objects = GitObjects(git_dir)
        tree = objects.tree_of(self._commit)
        return _Tree(folder, objects, tree) if tree else None


class _Steps(FrozenStruct):
    """How a path leads to a file: over these links, each with its target, to this place."""

    links: tuple[tuple[Path, bytes], ...]
    place: Path


def _follow(path: Path, root: Path) -> _Steps | None:
    """The way to a file in `root`, as the system goes it; None for one that leads out."""
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
    return _Steps(tuple(links), place) if place.is_relative_to(root) else None


def _entry(tree: _Tree, place: Path) -> tuple[Entry, GitObjects] | None:
    """What the commit has at this place, through the commits of submodules, and where its content is kept."""
    objects, name, folder = tree.objects, tree.tree, tree.folder
    parts = place.relative_to(tree.folder).parts
    for number, part in enumerate(parts):
        entry = (objects.entries(name) or {}).get(part)
        folder /= part
        if entry is None or number == len(parts) - 1:
            return (entry, objects) if entry else None
        if entry.is_folder:
            name = entry.name
            continue
        git_dir = git_dir_of(folder) if entry.is_submodule else None
        objects = GitObjects(git_dir) if git_dir else objects
        of_submodule = objects.tree_of(entry.name) if git_dir else None
        if of_submodule is None:
            return None
        name = of_submodule
    return None


def _is_content(entry: Entry, objects: GitObjects, content: bytes) -> bool:
    """Whether a file of this content is what the commit has: as it is, with line ends of Windows, or by Git LFS."""
    digits = len(entry.name)
    if entry.name in {object_name(b"blob", one, digits) for one in (content, content.replace(b"\r\n", b"\n"))}:
        return True
    pointer = objects.read(entry.name, b"blob")
    return pointer is not None and pointer_in(pointer) == hashlib.sha256(content).hexdigest()
