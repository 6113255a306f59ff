"""Commits of a branch: which commits it points at or has pointed at.

Three things that GitHub knows tell: the commit that `refs/heads/…` points at, the first parents from there on, and the
branch's activity, which also has what a force push took away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from eval_gate.github.background_calls import start_in_background
from eval_gate.github.client import PER_PAGE, ApiResponse, GitHubClient
from eval_gate.github.commits import CONTENTS, CommitWithParents, compare_commits, find_branch_tip, iter_commits
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.struct import FrozenStruct

FIRST_LISTED_COMMITS: Final = 100
"""Commits of the branch that are listed at once, before anything about a single one is asked."""
MAX_LISTED_COMMITS: Final = 3_000
"""Commits that are listed for one that lies further back."""
_NO_ACTIVITY_LIST: Final = frozenset({FailureKind.NOT_FOUND, FailureKind.FORBIDDEN, FailureKind.GONE})
"""Refusals of the list of activities: an older Enterprise Server has none."""


class BaseCommit(FrozenStruct):
    """Base commit of a change before GitHub is asked: known, or how to find it. Without any field any commit will do.

    One of `commit`, `first_parent_of` and `fork_point_of` is set.
    """

    commit: str | None = None
    merged_head: str | None = None
    """The head that is merged into `commit`, by the word of that merge alone: anybody may have made it."""
    first_parent_of: str | None = None
    """The commit that this test merge of GitHub's was made with."""
    fork_point_of: str | None = None
    """Where this commit left the branch."""
    forked_from: str | None = None
    """Which branch it left; None for the one that makes baselines."""


ANY_COMMIT: Final = BaseCommit()


class _Activity(ApiResponse):
    ref: str
    before: str
    after: str


def iter_first_parents(tip: str, parents: Mapping[str, str | None]) -> Iterator[str]:
    """Yield the commit and its first parents, as far as `parents` knows them."""
    at: str | None = tip
    while at is not None and at in parents:
        yield at
        at = parents[at]


class BranchCommits:
    """Commits that a branch is known to have pointed at. Its requests start at once."""

    def __init__(self, client: GitHubClient, branch: str) -> None:
        self._client, self._branch = client, branch
        self._parents: dict[str, str | None] = {}
        self._coming: Iterator[CommitWithParents] = iter(())
        self._line: set[str] = set()
        self._active: frozenset[str] | None = None
        self._is_whole = False
        """Whether the activity that was read is all there is."""
        self._tip = start_in_background(lambda: find_branch_tip(client, branch), f"the branch {branch}"[:120])
        self._begun = start_in_background(self._start_listing, f"the commits of {branch}"[:120])

    @property
    def tip(self) -> str | None:
        """The commit that it points at now; None where there is no such branch. Raises GitHubError."""
        return self._tip.result()

    def has_pointed_at(self, sha: str) -> bool | None:
        """Whether the branch has pointed at this commit, or past it by first parents.

        None where nobody knows: it lies before the tip, and further back than is listed; or it was taken away from the
        branch, which has been moved more often since than its activity says. Raises GitHubError where GitHub does not
        answer.
        """
        self._begun.result()
        if sha in self._line or (self._active is not None and sha in self._active):
            return True
        between = compare_commits(self._client, sha, self.tip) if self.tip else None
        is_before = between is not None and between.merge_base_commit.sha == sha
        wanted = between.ahead_by + 1 if between is not None and is_before else 0
        # where it comes before the tip, it is listed among so many commits
        self._list_more(min(wanted, MAX_LISTED_COMMITS) - len(self._parents))
        if sha in self._line or sha in self._fetch_activity():
            return True
        return None if wanted > MAX_LISTED_COMMITS or not (is_before or self._is_whole) else False

    def has_listed(self, sha: str) -> bool:
        """Whether the commit is among its newest ones: asks nothing more."""
        self._begun.result()
        return sha in self._line

    def iter_before(self, sha: str) -> Iterator[str]:
        """Yield the commit and its first parents, newest first, as far as they were listed. No request is sent."""
        return iter_first_parents(sha, self._parents)

    def _start_listing(self) -> None:
        if self.tip is not None:
            self._coming = iter_commits(self._client, self.tip)
            self._list_more(FIRST_LISTED_COMMITS)

    def _list_more(self, more: int) -> None:
        """List so many commits more."""
        if more > 0 and self.tip is not None:
            self._parents.update((one.sha, one.first_parent) for one in islice(self._coming, more))
            self._line.update(iter_first_parents(self.tip, self._parents))

    def _fetch_activity(self) -> frozenset[str]:
        """Fetch the commits between which the branch moved in its newest hundred changes, if the server lists them."""
        if self._active is None:
            ref, doing = f"refs/heads/{self._branch}", f"listing the activity of {self._branch}"[:120]
            try:
                found = self._client.get_page(doing, "/activity", _Activity, permission=CONTENTS, query={"ref": ref})
            except GitHubError as error:
                if error.kind not in _NO_ACTIVITY_LIST:
                    raise
                found = ()
            else:
                self._is_whole = len(found) < PER_PAGE
            self._active = frozenset(sha for one in found if one.ref == ref for sha in (one.before, one.after))
        return self._active
