"""What the fake GitHub knows, and short ways for a test to fill it in."""

from __future__ import annotations

import hashlib
import io
import itertools
import re
import threading
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Literal

from tests.support.github.graph import Commit, newest_first
from tests.support.github.records import Artifact, CheckRun, Comment, Issue, PullRequest, Status, WorkflowRun

ME = "github-actions[bot]"  # who writes with `GITHUB_TOKEN`
GHOST = "ghost"  # whoever wrote something and then deleted the account

OURS = ""  # in place of a repository's name: this one
COMPUTED = ""  # in place of a digest: the right one

GATE = ".github/workflows/gate.yml"


def sha(word: str) -> str:
    """A commit's name made from a word; a sha stays as it is."""
    return word if re.fullmatch(r"[0-9a-f]{40}", word) else hashlib.sha1(word.encode()).hexdigest()


def zipped(files: Mapping[str, bytes]) -> bytes:
    """A zip archive, the same bytes for the same files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def later(date: str, days: int) -> str:
    """The same time some days later."""
    return iso(datetime.fromisoformat(date) + timedelta(days=days))


def iso(moment: datetime) -> str:
    """A date as GitHub writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Branches(dict[str, str]):
    """Branches and the commits they point at. Each change stays known: name, commit before, commit after."""

    NOTHING = "0" * 40

    def __init__(self) -> None:
        super().__init__()
        self.changes: list[tuple[str, str, str]] = []

    def __setitem__(self, name: str, sha: str) -> None:
        self.changes.append((name, self.get(name, self.NOTHING), sha))
        super().__setitem__(name, sha)

    def __delitem__(self, name: str) -> None:
        self.changes.append((name, self[name], self.NOTHING))
        super().__delitem__(name)


class State:
    """One repository and all that belongs to it. It begins with one commit on its default branch."""

    def __init__(self, full_name: str = "acme/bot", repository_id: int = 4242, default_branch: str = "main") -> None:
        self.full_name, self.id, self.default_branch = full_name, repository_id, default_branch
        self.lock = threading.RLock()
        self.commits: dict[str, Commit] = {}
        self.branches = Branches()
        self.protected: set[str] = set()  # branches with a protection or a ruleset
        self.tags: dict[str, str] = {}
        self.pulls: dict[int, PullRequest] = {}
        self.comments: dict[int, Comment] = {}
        self.issues: dict[int, Issue] = {}
        self.runs: dict[int, WorkflowRun] = {}
        self.artifacts: dict[int, Artifact] = {}
        self.check_runs: dict[int, CheckRun] = {}
        self.statuses: list[Status] = []
        self.private = False
        self.roles: dict[str, str] = {}  # logins with more than reading
        self.strangers: set[str] = set()  # logins that nobody has
        self.files: dict[tuple[str, str], bytes] = {}  # by commit and path
        self.workflows: list[str] = []  # paths; a workflow's id is its place here
        self._ids = itertools.count(1001)
        self._minutes = itertools.count()
        self.add_commit("root", branch=default_branch)

    def next_id(self) -> int:
        return next(self._ids)

    def now(self) -> str:
        """The fake's clock: a minute passes at every look."""
        return iso(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=next(self._minutes)))

    def repository_id(self, full_name: str) -> int:
        """The id of this repository or of a fork."""
        return self.id if full_name == self.full_name else 100_000 + zlib.crc32(full_name.encode()) % 1_000_000

    def add_commit(
        self,
        name: str,
        parents: str | Iterable[str] | None = None,
        *,
        date: str | None = None,
        branch: str | None = None,
        message: str = "A change",
        files: Iterable[str] = (),
    ) -> Commit:
        """A commit, by sha or by a word; `branch` moves there, and its tip is the parent unless others are named."""
        if parents is None:
            parents = [self.branches[branch]] if branch in self.branches else []
        parents = tuple(sha(each) for each in ([parents] if isinstance(parents, str) else parents))
        if unknown := [each for each in parents if each not in self.commits]:
            raise ValueError(f"no such parents: {unknown}")
        commit = Commit(sha(name), parents, date or self.now(), message, files=tuple(files))
        self.commits[commit.sha] = commit
        if branch:
            self.branches[branch] = commit.sha
        return commit

    def add_pull(
        self,
        number: int | None = None,
        *,
        head_sha: str = "head",
        head_ref: str = "feature",
        head_repo: str | None = OURS,
        head_owner: str = "",
        base_ref: str = "",
        base_sha: str = "",
        state: Literal["open", "closed"] = "open",
        draft: bool = False,
        user: str = "octocat",
        merge_commit_sha: str | None = None,
    ) -> PullRequest:
        """A pull request from a branch of this repository unless told otherwise; unknown commits are made."""
        base_ref = base_ref or self.default_branch
        base = sha(base_sha) if base_sha else self.branches[base_ref]
        if base not in self.commits:
            self.add_commit(base)
        if sha(head_sha) not in self.commits:
            self.add_commit(head_sha, base)
        head_repo = self.full_name if head_repo == OURS else head_repo
        if head_repo == self.full_name and state == "open":
            self.branches[head_ref] = sha(head_sha)
        pull = PullRequest(
            number or max(self.pulls, default=0) + 1,
            sha(head_sha),
            head_ref,
            head_repo,
            base_ref,
            base,
            state,
            draft,
            user,
            merge_commit_sha=merge_commit_sha and sha(merge_commit_sha),
            created_at=self.now(),
            head_owner=head_owner,
        )
        self.pulls[pull.number] = pull
        self._merge(pull, f"merge of {pull.number}", base)
        return pull

    def note_event(self, pull: PullRequest, kind: str) -> None:
        """Note that this happened to a pull request, such as `BaseRefChangedEvent`."""
        pull.timeline.append((kind, self.now()))

    def retarget(self, pull: PullRequest, branch: str) -> None:
        """Another base branch for a pull request, whose test merge is made anew."""
        pull.base_ref, pull.base_sha = branch, self.branches[branch]
        self.note_event(pull, "BaseRefChangedEvent")
        self.merge_again(pull)

    def move_head(self, pull: PullRequest, sha: str) -> None:
        """Another head for a pull request. One that is not based on the head before it was pushed by force."""
        if pull.head_sha not in {commit.sha for commit in newest_first(self.commits, sha)}:
            self.note_event(pull, "HeadRefForcePushedEvent")
        pull.head_sha = self.branches[pull.head_ref] = sha
        self.merge_again(pull)

    def merge_again(self, pull: PullRequest) -> str:
        """The test merge of the head and of what its base branch is by now, as at the next push; its sha.

        GitHub makes it for an event, and no other when the base branch moves on: what a run is given stays.
        """
        tip = self.branches[pull.base_ref]
        if self.commits[pull.merge_sha].parents != (tip, pull.head_sha):
            self._merge(pull, f"merge of {pull.number}: {pull.head_sha} into {tip}", tip)
        return pull.merge_sha

    def _merge(self, pull: PullRequest, name: str, base: str) -> None:
        date = max(self.commits[base].date, self.commits[pull.head_sha].date)
        message = f"Merge {pull.head_sha} into {base}"
        pull.merge_sha = self.add_commit(name, (base, pull.head_sha), date=date, message=message).sha

    def add_comment(
        self, number: int, body: str, mine: bool = True, author: str = "octocat", created_at: str | None = None
    ) -> Comment:
        """A comment by the token's bearer or by somebody else."""
        now = created_at or self.now()
        comment = Comment(self.next_id(), number, body, ME if mine else author, mine, now, now)
        self.comments[comment.id] = comment
        return comment

    def add_issue(self, title: str, body: str, author: str = "octocat", *, mine: bool = False) -> Issue:
        """An issue by the token's bearer or by somebody else. Pull requests and issues share their numbers.

        Its times are real ones, as those of the runs that it is about.
        """
        number = max([500, *self.issues, *self.pulls]) + 1
        now = iso(datetime.now(UTC))
        self.issues[number] = Issue(number, title, body, ME if mine else author, mine, now, now)
        return self.issues[number]

    def edit_comment(self, comment: Comment, body: str, editor: str | None) -> None:
        """Another text for a comment; None for an editor whose account is gone."""
        comment.body, comment.editor = body, editor
        comment.edited_at = comment.updated_at = self.now()

    def add_run(
        self,
        run_id: int | None = None,
        *,
        event: str = "push",
        path: str = GATE,
        head_branch: str | None = None,
        head_sha: str | None = None,
        head_repo: str | None = OURS,
        status: str = "completed",
        conclusion: str | None = "success",
        created_at: str | None = None,
        run_attempt: int = 1,
        actor: str = "octocat",
    ) -> WorkflowRun:
        """A run on the tip of the default branch unless told otherwise; `head_repo` may be a fork's name, or None."""
        head_branch = head_branch or self.default_branch
        tip = self.branches.get(head_branch, self.branches[self.default_branch])
        head_repo = self.full_name if head_repo == OURS else head_repo
        run = WorkflowRun(
            run_id or self.next_id(),
            event,
            path,
            head_branch,
            sha(head_sha) if head_sha else tip,
            self.id,
            self.repository_id(head_repo) if head_repo else None,
            head_repo,
            status,
            conclusion if status == "completed" else None,
            created_at or self.now(),
            run_attempt,
            actor,
        )
        self.runs[run.id] = run
        self.workflow_id(path)
        return run

    def add_artifact(
        self,
        run: WorkflowRun | int,
        files: Mapping[str, bytes] | bytes,
        name: str = "eval-gate-results",
        *,
        expired: bool = False,
        created_at: str | None = None,
        digest: str | None = COMPUTED,
        content_type: str = "application/zip",
    ) -> Artifact:
        """An artifact with these files zipped, or with just these bytes; its digest is computed unless given."""
        data = files if isinstance(files, bytes) else zipped(files)
        digest = "sha256:" + hashlib.sha256(data).hexdigest() if digest == COMPUTED else digest
        run_id = run if isinstance(run, int) else run.id
        if run_id not in self.runs:
            raise ValueError(f"no such run: {run_id}")
        artifact = Artifact(self.next_id(), name, run_id, data, expired, created_at or self.now(), digest, content_type)
        self.artifacts[artifact.id] = artifact
        return artifact

    @property
    def archives(self) -> list[Artifact]:
        """The artifacts that are archives, the oldest first."""
        return [each for each in self.artifacts.values() if each.content_type == "application/zip"]

    @property
    def pages(self) -> list[Artifact]:
        """The artifacts that a browser shows as a page, the oldest first."""
        return [each for each in self.artifacts.values() if each.content_type == "text/html"]

    def workflow_id(self, path: str) -> int:
        """The id of a workflow, which is known from here on."""
        if path not in self.workflows:
            self.workflows.append(path)
        return 501 + self.workflows.index(path)

    def resolve(self, ref: str) -> str | None:
        """The sha that a sha, its beginning, a tag, a branch or `owner:branch` stands for.

        Of a name that is a tag's and a branch's it is the tag, as git has it (gitrevisions).
        """
        owner, _, branch = ref.rpartition(":")
        if owner and owner.split(":")[0] != self.full_name.split("/")[0]:
            theirs = [pull for pull in self.pulls.values() if (pull.head_owner, pull.head_ref) == (owner, branch)]
            return theirs[-1].head_sha if theirs else None
        if ref in self.tags:
            return self.tags[ref]
        if match := re.fullmatch(r"refs/pull/([0-9]+)/(head|merge)", ref):
            pull = self.pulls.get(int(match[1]))
            return pull and (pull.head_sha if match[2] == "head" else pull.merge_sha)
        branch = branch.removeprefix("refs/").removeprefix("heads/")
        if branch in self.branches or branch == "HEAD":
            return self.branches[self.default_branch if branch == "HEAD" else branch]
        found = [each for each in self.commits if re.fullmatch(r"[0-9a-f]{7,40}", ref) and each.startswith(ref)]
        return found[0] if len(found) == 1 else None
