"""Reads of commits, branches, files, pull requests and workflow runs from the API, without git."""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from heapq import heappop, heappush
from itertools import islice
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import quote

from pydantic import AwareDatetime, Field

from eval_gate.files.reading import parse_lfs_pointer
from eval_gate.github.background_calls import start_in_background
from eval_gate.github.client import PER_PAGE, ApiResponse, GitHubClient
from eval_gate.github.failure import FailureKind, GitHubError, find_or_none
from eval_gate.struct import FrozenStruct

CONTENTS: Final = "contents: read"
ACTIONS: Final = "actions: read"
PULLS: Final = "pull-requests: read"
MAX_ANCESTORS: Final = 300
MAX_CHANGED_FILES: Final = 300
"""Files that GitHub lists of a comparison at most (docs.github.com, "Compare two commits")."""
FIRST_LISTED_COMMITS: Final = 100
"""Commits of the branch that are listed at once, before anything about a single one is asked."""
MAX_LISTED_COMMITS: Final = 3_000
"""Commits that are listed for one that lies further back."""
_NO_ACTIVITY_LIST: Final = frozenset({FailureKind.NOT_FOUND, FailureKind.FORBIDDEN, FailureKind.GONE})
"""Refusals of the list of activities: an older Enterprise Server has none."""
_SHA: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
"""No branch is called so: GitHub refuses such names."""


class CommitRef(ApiResponse):
    """Commit as the API names it."""

    sha: str


class CommitWithParents(CommitRef):
    """Commit with its parents, first parent first."""

    parents: tuple[CommitRef, ...] = ()

    @property
    def first_parent(self) -> str | None:
        """The commit before it on its branch; None for the first of all."""
        return self.parents[0].sha if self.parents else None


class _Reference(ApiResponse):
    object: CommitRef


class _RepositoryFacts(ApiResponse):
    default_branch: str


class ChangedFile(ApiResponse):
    """File that differs between two commits."""

    filename: str
    previous_filename: str | None = None
    """Its path in the first of the two, if it was renamed or copied."""


class CommitDistance(ApiResponse):
    """Comparison of two commits: merge base and commits ahead."""

    ahead_by: int
    base_commit: CommitRef
    """What the first of the two stands for."""
    merge_base_commit: CommitRef
    files: tuple[ChangedFile, ...] = ()
    """Files that differ between the merge base and the second of the two: the first `MAX_CHANGED_FILES` of them."""


class BranchFacts(ApiResponse):
    """Branch: its name and whether it is protected."""

    name: str
    protected: bool
    """Whether a branch protection or a ruleset says who may change it (docs.github.com, "Get a branch")."""


class WorkflowRun(ApiResponse):
    """Workflow run as GitHub returns it."""

    id: int
    event: str
    path: str = ""
    head_sha: str
    head_branch: str | None = None
    conclusion: str | None = None
    """How it ended; None before its end."""
    created_at: AwareDatetime | None = None
    run_attempt: int = 1
    run_started_at: AwareDatetime | None = None
    """When its newest attempt began."""
    repository: RepositoryName
    head_repository: RepositoryName | None = None

    @property
    def workflow(self) -> str:
        """The path of the workflow file, such as `.github/workflows/evals.yml`."""
        return self.path.partition("@")[0]

    @property
    def is_from_own_repository(self) -> bool:
        """Whether its code is the repository's own: a fork's branch may be called `main` too."""
        own, head = self.repository.id, self.head_repository
        return own is not None and head is not None and head.id == own


class RepositoryName(ApiResponse):
    """Repository of a workflow run, a pull request or an event; only an event may lack the id."""

    id: int | None = None
    full_name: str
    default_branch: str | None = None


class PullRequest(ApiResponse):
    """Pull request as it is now, or was at the event."""

    number: int
    state: str = "open"
    head: PullSide
    base: PullSide
    merge_commit_sha: str | None = None


class PullSide(ApiResponse):
    """Head or base of a pull request: branch and commit. `repo` is None for a deleted fork."""

    sha: str
    ref: str
    repo: RepositoryName | None = None


def get_default_branch(client: GitHubClient) -> str:
    """Fetch the repository's default branch. Raises GitHubError."""
    return client.get("reading the repository", "", _RepositoryFacts, permission=CONTENTS).default_branch


@cache
def find_branch(client: GitHubClient, branch: str) -> BranchFacts | None:
    """Fetch a branch, or return None if it no longer exists. Raises GitHubError."""
    path = f"/branches/{quote(branch, safe='')}"
    doing = f"reading the branch {branch}"[:120]
    return find_or_none(lambda: client.get(doing, path, BranchFacts, permission=CONTENTS))


def compare_commits(client: GitHubClient, base: str, head: str) -> CommitDistance | None:
    """Compare `base` with `head` (branches or commits); None if one of them is gone, as after a force push."""
    doing = f"comparing {base[:40]} with {head[:40]}"
    path = f"/compare/{quote(base, safe='')}...{quote(head, safe='')}"
    return find_or_none(lambda: client.get(doing, path, CommitDistance, permission=CONTENTS, query={"per_page": 1}))


def find_parents(client: GitHubClient, sha: str) -> tuple[str, ...] | None:
    """Fetch the parents of a commit in order, or return None if GitHub does not know the commit. Raises GitHubError."""
    doing = f"reading commit {sha[:40]}"
    path = f"/commits/{quote(sha, safe='')}"
    try:
        commit = find_or_none(lambda: client.get(doing, path, CommitWithParents, permission=CONTENTS))
    except GitHubError as error:
        if error.kind is not FailureKind.REFUSED:  # 422, "No commit found for SHA"
            raise
        commit = None
    # who has made what a name begins with, or a tag of that name, has not made this commit
    return None if commit is None or commit.sha != sha else tuple(one.sha for one in commit.parents)


def find_branch_tip(client: GitHubClient, branch: str) -> str | None:
    """Fetch the commit that a branch, not a tag of its name, points at; None without it. Raises GitHubError."""
    path = f"/git/ref/{quote(f'heads/{branch}')}"
    doing = f"reading the branch {branch}"[:120]
    reference = find_or_none(lambda: client.get(doing, path, _Reference, permission=CONTENTS))
    return reference.object.sha if reference else None


def iter_commits(client: GitHubClient, sha: str) -> Iterator[CommitWithParents]:
    """Yield the commit and its history with parents, newest first, fetched as needed."""
    return client.iter_items("listing commits", "/commits", CommitWithParents, permission=CONTENTS, query={"sha": sha})


def iter_ancestors(client: GitHubClient, sha: str, limit: int = MAX_ANCESTORS) -> Iterator[str]:
    """Yield the commit and its ancestors, fetched as needed, at most `limit` commits.

    Yields nothing if the commit is unknown. GitHub orders commits by date, and dates can be equal or wrong: this
    order lets no parent precede its child within one page.
    """
    commits = islice(iter_commits(client, sha), limit)
    try:
        while page := list(islice(commits, PER_PAGE)):
            yield from _sort_children_first(page)
    except GitHubError as error:
        if error.kind is not FailureKind.NOT_FOUND:
            raise


def _sort_children_first(page: Sequence[CommitWithParents]) -> Iterator[str]:
    """Yield the commits in their given order, except for parents that stand before their children."""
    place = {one.sha: at for at, one in enumerate(page)}
    children = Counter(parent.sha for one in page for parent in one.parents if parent.sha in place)
    free = [at for at, one in enumerate(page) if not children[one.sha]]  # ascending, so it is a heap
    while free:
        one = page[heappop(free)]
        yield one.sha
        for parent in one.parents:
            if parent.sha in place:
                children[parent.sha] -= 1
                if not children[parent.sha]:
                    heappush(free, place[parent.sha])


def get_workflow_run(client: GitHubClient, run_id: int) -> WorkflowRun:
    """Fetch the workflow run of this id. Raises GitHubError."""
    return client.get(f"reading run {run_id}", f"/actions/runs/{run_id}", WorkflowRun, permission=ACTIONS)


def get_pull_request(client: GitHubClient, number: int) -> PullRequest:
    """Fetch the pull request of this number. Raises GitHubError."""
    return client.get(f"reading pull request #{number}", f"/pulls/{number}", PullRequest, permission=PULLS)


def list_pull_requests(client: GitHubClient, owner: str, branch: str, sha: str) -> tuple[PullRequest, ...]:
    """List the open pull requests from this branch with this commit as their current head, oldest first.

    Each may merge into another branch. The list of a commit's pull requests is empty for forks, and a number in an
    artifact is only a claim. The branch and the commit are therefore checked against GitHub. Raises GitHubError.
    """
    pulls = client.iter_items(
        f"finding the pull requests of {owner}:{branch}"[:120],
        "/pulls",
        PullRequest,
        permission=PULLS,
        query={"state": "open", "head": f"{owner}:{branch}"},
    )
    return tuple(sorted((pull for pull in pulls if pull.head.sha == sha), key=lambda pull: pull.number))


class _Content(ApiResponse):
    type: str
    encoding: str = ""
    content: str = ""


def fetch_file(client: GitHubClient, path: str, branch: str) -> bytes | None:
    """Fetch the file's bytes on a branch or of a commit, or return None if it has no such file.

    A branch is named in full: anybody who can push a branch can push a tag with the name of a protected branch.
    Raises GitHubError, also if the branch does not exist.
    """
    doing = f"reading {path} of the base branch"[:120]
    ref = branch if _SHA.fullmatch(branch) else f"refs/heads/{branch}"
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not pure.parts:  # it would be another address of the API
        raise GitHubError(FailureKind.REFUSED, doing, "the path is outside the repository")
    where = f"/contents/{quote(str(pure))}"
    content = find_or_none(lambda: client.get(doing, where, _Content, permission=CONTENTS, query={"ref": ref}))
    if content is None:
        # GitHub says the same of a file that is not there and of a branch that is not
        if ref != branch and find_branch(client, branch) is None:
            raise GitHubError(FailureKind.NOT_FOUND, doing, f"the branch {branch} no longer exists")
        return None
    if content.type != "file" or content.encoding != "base64":
        raise GitHubError(FailureKind.REFUSED, doing, "it is not a file, or too large")
    try:
        data = base64.b64decode(content.content)
    except binascii.Error as error:
        raise GitHubError(FailureKind.SERVER, doing, "its content cannot be decoded") from error
    if parse_lfs_pointer(data) is not None:
        raise GitHubError(FailureKind.REFUSED, doing, "it is a Git LFS pointer: keep this file out of Git LFS")
    return data


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
    old_sha: str = Field(alias="before")
    new_sha: str = Field(alias="after")


def iter_first_parents(tip: str, parents: Mapping[str, str | None]) -> Iterator[str]:
    """Yield the commit and its first parents, as far as `parents` knows them."""
    at: str | None = tip
    while at is not None and at in parents:
        yield at
        at = parents[at]


class BranchCommits:
    """Commits that a branch points at or is known to have pointed at. Its requests start at once.

    Three things that GitHub knows tell: the commit that `refs/heads/…` points at, the first parents from there on, and
    the branch's activity, which also has what a force push took away.
    """

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

        None if that is unknown: the commit lies further before the tip than is listed, or the branch was moved more
        often since then than its activity lists. Raises GitHubError.
        """
        self._begun.result()
        if sha in self._line or (self._active is not None and sha in self._active):
            return True
        between = compare_commits(self._client, sha, self.tip) if self.tip else None
        is_before = between is not None and between.merge_base_commit.sha == sha
        count = between.ahead_by + 1 if between is not None and is_before else 0
        # a commit before the tip is among that many commits
        self._list_more(min(count, MAX_LISTED_COMMITS) - len(self._parents))
        if sha in self._line or sha in self._fetch_activity():
            return True
        return None if count > MAX_LISTED_COMMITS or not (is_before or self._is_whole) else False

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
        if more > 0 and self.tip is not None:
            self._parents.update((one.sha, one.first_parent) for one in islice(self._coming, more))
            self._line.update(iter_first_parents(self.tip, self._parents))

    def _fetch_activity(self) -> frozenset[str]:
        """Fetch the commits between which the branch moved in its newest hundred changes, if the server lists them."""
        if self._active is None:
            ref, doing = f"refs/heads/{self._branch}", f"listing the activity of {self._branch}"[:120]
            try:
                moves = self._client.get_page(doing, "/activity", _Activity, permission=CONTENTS, query={"ref": ref})
            except GitHubError as error:
                if error.kind not in _NO_ACTIVITY_LIST:
                    raise
                moves = ()
            else:
                self._is_whole = len(moves) < PER_PAGE
            self._active = frozenset(sha for one in moves if one.ref == ref for sha in (one.old_sha, one.new_sha))
        return self._active
