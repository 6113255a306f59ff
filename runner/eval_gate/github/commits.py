"""Commits, files, pull requests and workflow runs, read. No git is needed: a checkout is one commit deep anyway."""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from heapq import heappop, heappush
from itertools import islice
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import quote

from pydantic import AwareDatetime

from eval_gate.files.reading import pointer_in
from eval_gate.github.client import PER_PAGE, ApiAnswer, Client
from eval_gate.github.failure import FailureKind, GitHubError, if_there

CONTENTS: Final = "contents: read"
ACTIONS: Final = "actions: read"
PULLS: Final = "pull-requests: read"
MAX_ANCESTORS: Final = 300
_SHA: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
"""No branch is called so: GitHub refuses such names."""


class Sha(ApiAnswer):
    """A commit by name."""

    sha: str


class CommitParents(Sha):
    """A commit with those that it was made from, the one of its own branch first."""

    parents: tuple[Sha, ...] = ()

    @property
    def first_parent(self) -> str | None:
        """The commit before it on its branch; None for the first of all."""
        return self.parents[0].sha if self.parents else None


class _Reference(ApiAnswer):
    object: Sha


class Distance(ApiAnswer):
    """How two commits lie to each other."""

    ahead_by: int
    base_commit: Sha
    """What the first of the two stands for."""
    merge_base_commit: Sha


class RepositoryFacts(ApiAnswer):
    """The repository."""

    id: int
    default_branch: str


class BranchFacts(ApiAnswer):
    """One branch."""

    name: str
    protected: bool
    """Whether a branch protection or a ruleset says who may change it (docs.github.com, "Get a branch")."""


class RunFacts(ApiAnswer):
    """One run of a workflow."""

    id: int
    event: str
    path: str = ""
    head_sha: str
    head_branch: str | None = None
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
    def of_this_repository(self) -> bool:
        """Whether its code is the repository's own: a fork's branch may be called `main` too."""
        return self.head_repository is not None and self.head_repository.id == self.repository.id


class RepositoryName(ApiAnswer):
    """A repository as a run names it."""

    id: int
    full_name: str


class PullRequest(ApiAnswer):
    """A pull request as it is now."""

    number: int
    state: str
    head: PullSide
    base: PullSide
    merge_commit_sha: str | None = None


class PullSide(ApiAnswer):
    """Branch and commit of one side."""

    sha: str
    ref: str
    repo: RepositoryName | None = None


def repository(client: Client) -> RepositoryFacts:
    """The id of the repository and its default branch. Raises GitHubError."""
    return client.get("reading the repository", "", RepositoryFacts, permission=CONTENTS)


@cache
def branch_facts(client: Client, branch: str) -> BranchFacts | None:
    """The branch, asked once; None where it is not there any more. Raises GitHubError."""
    path = f"/branches/{quote(branch, safe='')}"
    doing = f"reading the branch {branch}"[:120]
    return if_there(lambda: client.get(doing, path, BranchFacts, permission=CONTENTS))


def distance(client: Client, base: str, head: str) -> Distance | None:
    """From `base` to `head` (branches or commits); None when one of them is gone, as after a force push."""
    doing = f"comparing {base[:40]} with {head[:40]}"
    path = f"/compare/{quote(base, safe='')}...{quote(head, safe='')}"
    return if_there(lambda: client.get(doing, path, Distance, permission=CONTENTS, query={"per_page": 1}))


def parents_of(client: Client, sha: str) -> tuple[str, ...] | None:
    """The parents of a commit, the first one first; None where GitHub does not know it. Raises GitHubError."""
    doing = f"reading commit {sha[:40]}"
    path = f"/commits/{quote(sha, safe='')}"
    try:
        found = if_there(lambda: client.get(doing, path, CommitParents, permission=CONTENTS))
    except GitHubError as error:
        if error.kind is not FailureKind.REFUSED:  # 422, "No commit found for SHA"
            raise
        found = None
    # who has made what a name begins with, or a tag of that name, has not made this commit
    return None if found is None or found.sha != sha else tuple(one.sha for one in found.parents)


def branch_tip(client: Client, branch: str) -> str | None:
    """The commit that a branch points at; None where there is no such branch. A tag of that name says nothing here."""
    path = f"/git/ref/{quote(f'heads/{branch}')}"
    doing = f"reading the branch {branch}"[:120]
    found = if_there(lambda: client.get(doing, path, _Reference, permission=CONTENTS))
    return found.object.sha if found else None


def commits_from(client: Client, sha: str) -> Iterator[CommitParents]:
    """The commit and what came before it, newest first, with their parents; fetched as needed."""
    return client.pages("listing commits", "/commits", CommitParents, permission=CONTENTS, query={"sha": sha})


def ancestors(client: Client, sha: str, limit: int = MAX_ANCESTORS) -> Iterator[str]:
    """The commit and what came before it, fetched as needed; nothing when the commit is unknown.

    GitHub lists them by date, and dates are equal or wrong: here none comes before one that was made of it.
    """
    commits = islice(commits_from(client, sha), limit)
    try:
        while page := list(islice(commits, PER_PAGE)):
            yield from _children_first(page)
    except GitHubError as error:
        if error.kind is not FailureKind.NOT_FOUND:
            raise


def _children_first(page: Sequence[CommitParents]) -> Iterator[str]:
    """The commits in the order they are in, but for parents that stand before their children."""
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


def workflow_run(client: Client, run_id: int) -> RunFacts:
    """The workflow run of this id. Raises GitHubError."""
    return client.get(f"reading run {run_id}", f"/actions/runs/{run_id}", RunFacts, permission=ACTIONS)


def pull_request(client: Client, number: int) -> PullRequest:
    """The pull request of this number. Raises GitHubError."""
    return client.get(f"reading pull request #{number}", f"/pulls/{number}", PullRequest, permission=PULLS)


def pull_requests_of(client: Client, owner: str, branch: str, sha: str) -> tuple[PullRequest, ...]:
    """The open pull requests from this branch whose head is this commit, as they are now, the oldest first.

    There may be one into each of several branches. The list of pull requests of a commit is empty for forks, and a
    number inside an artifact is only a claim: both sides are asked of GitHub instead. Raises GitHubError.
    """
    found = client.pages(
        f"finding the pull requests of {owner}:{branch}"[:120],
        "/pulls",
        PullRequest,
        permission=PULLS,
        query={"state": "open", "head": f"{owner}:{branch}"},
    )
    return tuple(sorted((pull for pull in found if pull.head.sha == sha), key=lambda pull: pull.number))


class _Content(ApiAnswer):
    type: str
    encoding: str = ""
    content: str = ""


def file_at(client: Client, path: str, branch: str) -> bytes | None:
    """The file's bytes on a branch, or of a commit; None where that has none. Raises GitHubError, also for no branch.

    The branch is named in full: whoever may push any branch may push a tag that has the name of a protected one.
    """
    doing = f"reading {path} of the base branch"[:120]
    ref = branch if _SHA.fullmatch(branch) else f"refs/heads/{branch}"
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not pure.parts:  # it would be another address of the API
        raise GitHubError(FailureKind.REFUSED, doing, "this is no path inside of the repository")
    where = f"/contents/{quote(str(pure))}"
    found = if_there(lambda: client.get(doing, where, _Content, permission=CONTENTS, query={"ref": ref}))
    if found is None:
        # GitHub says the same of a file that is not there and of a branch that is not
        if ref != branch and branch_facts(client, branch) is None:
            raise GitHubError(FailureKind.NOT_FOUND, doing, f"the branch {branch} is not there any more")
        return None
    if found.type != "file" or found.encoding != "base64":
        raise GitHubError(FailureKind.REFUSED, doing, "it is no file, or too large")
    try:
        data = base64.b64decode(found.content)
    except binascii.Error as error:
        raise GitHubError(FailureKind.SERVER, doing, "its content cannot be decoded") from error
    if pointer_in(data) is not None:
        raise GitHubError(FailureKind.REFUSED, doing, "it is a Git LFS pointer: keep this file out of Git LFS")
    return data
