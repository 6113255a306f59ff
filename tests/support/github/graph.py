"""The commit graph: what is reachable, in which order, and how two commits compare."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass
class Commit:
    """A commit. `files` are the paths it changed, `date` is when it was made (ISO 8601, UTC, `Z`).

    A file that was renamed is `new <- old`.
    """

    sha: str
    parents: tuple[str, ...]
    date: str
    message: str = "A change"
    author: str = "octocat"
    files: tuple[str, ...] = ()


Commits = Mapping[str, Commit]


@dataclass
class Comparison:
    """`base...head`, as GitHub answers it."""

    status: str
    merge_base: Commit
    ahead: list[Commit]  # oldest first
    behind_by: int


def newest_first(commits: Commits, tip: str) -> Iterator[Commit]:
    """A commit and its ancestors as `git log` lists them: the newest of those reached so far comes next."""
    heap = [(_late(commits[tip]), tip)]
    seen = {tip}
    while heap:
        commit = commits[heapq.heappop(heap)[1]]
        yield commit
        for parent in commit.parents:
            if parent not in seen:
                seen.add(parent)
                heapq.heappush(heap, (_late(commits[parent]), parent))


def compare(commits: Commits, base: str, head: str) -> Comparison | None:
    """How `head` stands to `base`; None where the two have no common ancestor."""
    of_base = {commit.sha for commit in newest_first(commits, base)}
    of_head = {commit.sha for commit in newest_first(commits, head)}
    common = of_base & of_head
    if not common:
        return None
    below = {parent for sha in common for parent in commits[sha].parents}
    merge_base = max((commits[sha] for sha in common - below), key=lambda commit: (commit.date, commit.sha))
    ahead = [commit for commit in newest_first(commits, head) if commit.sha not in of_base][::-1]
    behind_by = len(of_base - of_head)
    match bool(ahead), bool(behind_by):
        case True, True:
            status = "diverged"
        case True, False:
            status = "ahead"
        case False, True:
            status = "behind"
        case _:
            status = "identical"
    return Comparison(status, merge_base, ahead, behind_by)


def _late(commit: Commit) -> tuple[int, ...]:
    """A key that sorts later dates first."""
    return tuple(-ord(char) for char in commit.date)
