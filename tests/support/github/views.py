"""The state as GitHub's JSON. What the state does not know is filled in with the least the description allows."""

from __future__ import annotations

import base64
import json
import zlib
from functools import cache
from typing import Any
from urllib.parse import quote

from tests.support.github.graph import Commit, Comparison
from tests.support.github.records import Artifact, CheckRun, Comment, Issue, PullRequest, Status, WorkflowRun
from tests.support.github.spec import GitHubSpec, Schema
from tests.support.github.state import State, later

Json = dict[str, Any]

LARGEST_CONTENT = 1_000_000  # bytes of a file that the API still puts into its answer

MOST_FILES = 300  # of a commit or a comparison

URL = "@url@"  # stands for a resource's own address in a blank


def least(schema: Schema, key: str = "") -> Any:
    """The smallest value that fits a schema; every address in it is below the resource's own."""
    if schema.get("nullable"):
        return None
    if "enum" in schema:
        return schema["enum"][0]
    if "oneOf" in schema:
        return least(schema["oneOf"][0])
    match schema.get("type", "object"):
        case "object":
            return {name: least(schema["properties"][name], name) for name in schema.get("required", ())}
        case "array":
            return []
        case "integer":
            return 0
        case "boolean":
            return False
    if schema.get("format") == "date-time":
        return "2026-01-01T00:00:00Z"
    return f"{URL}/{key.removesuffix('_url')}" if key.endswith("_url") else URL if key in {"url", "href"} else ""


@cache
def _blank(schema: str) -> str:
    return json.dumps(least(GitHubSpec.load().schemas[schema] | {"nullable": False}))


def fill(schema: str, url: str, **known: Any) -> Json:
    """An object of this schema at this address with what is known of it."""
    blank: Json = json.loads(_blank(schema).replace(URL, json.dumps(url)[1:-1]))
    if unknown := known.keys() - GitHubSpec.load().schemas[schema]["properties"].keys():
        raise KeyError(f"{schema} has no {unknown}")
    return blank | known


class Views:
    """GitHub's JSON for the things of a state, with addresses on this base."""

    def __init__(self, state: State, base: str) -> None:
        self.state, self.base = state, base
        self.url = f"{base}/repos/{state.full_name}"
        self.html = f"{base}/{state.full_name}"

    def user(self, login: str) -> Json:
        kind = "Bot" if login.endswith("[bot]") else "User"
        number = zlib.crc32(login.encode()) % 1_000_000
        html = f"{self.base}/{login.removesuffix('[bot]')}"
        return fill("simple-user", f"{self.base}/users/{login}", login=login, id=number, type=kind, html_url=html)

    def repository(self, full_name: str, schema: str = "repository") -> Json:
        url, (owner, name) = f"{self.base}/repos/{full_name}", full_name.split("/")
        return fill(
            schema,
            url,
            id=self.state.repository_id(full_name),
            name=name,
            full_name=full_name,
            owner=self.user(owner),
            html_url=f"{self.base}/{full_name}",
            fork=full_name != self.state.full_name,
            visibility="private" if self.state.private else "public",
            private=self.state.private,
            default_branch=self.state.default_branch,
        )

    def pull(self, pull: PullRequest, schema: str = "pull-request-simple") -> Json:
        url, html = f"{self.url}/pulls/{pull.number}", f"{self.html}/pull/{pull.number}"
        issue = f"{self.url}/issues/{pull.number}"
        statuses = f"{self.url}/statuses/{pull.head_sha}"
        links = {
            "self": url,
            "html": html,
            "issue": issue,
            "comments": f"{issue}/comments",
            "commits": f"{url}/commits",
            "review_comments": f"{url}/comments",
            "review_comment": f"{url}/comments{{/number}}",
            "statuses": statuses,
        }
        known: Json = {
            "id": 100_000 + pull.number,
            "node_id": f"PR_{pull.number}",
            "number": pull.number,
            "title": pull.title,
            "state": pull.state,
            "draft": pull.draft,
            "locked": pull.locked,
            "user": self.user(pull.user),
            "html_url": html,
            "issue_url": issue,
            "comments_url": f"{issue}/comments",
            "statuses_url": statuses,
            "created_at": pull.created_at,
            "updated_at": pull.created_at,
            "closed_at": None if pull.state == "open" else pull.created_at,
            "merged_at": pull.created_at if pull.merged else None,
            "merge_commit_sha": pull.merge_commit_sha or (pull.merge_sha if pull.state == "open" else None),
            "_links": {name: {"href": link} for name, link in links.items()},
            "labels": [self._label(name) for name in pull.labels],
            "head": self._end(pull.head_owner, pull.head_ref, pull.head_sha, pull.head_repo),
            "base": self._end(self.state.full_name.split("/")[0], pull.base_ref, pull.base_sha, self.state.full_name),
        }
        if schema == "pull-request":
            comments = sum(comment.issue == pull.number for comment in self.state.comments.values())
            known |= {"merged": pull.merged, "mergeable_state": "clean", "comments": comments}
        return fill(schema, url, **known)

    def _end(self, owner: str, ref: str, sha: str, repository: str | None) -> Json:
        repo = self.repository(repository) if repository else None
        return {"label": f"{owner}:{ref}", "ref": ref, "sha": sha, "user": self.user(owner), "repo": repo}

    def _label(self, name: str) -> Json:
        number = zlib.crc32(name.encode()) % 1_000_000
        known = {"id": number, "node_id": f"LA_{number}", "url": f"{self.url}/labels/{quote(name)}", "name": name}
        return known | {"color": "ededed", "default": False, "description": None}

    def collaborator(self, login: str, role: str) -> Json:
        """What somebody may do here; the old word for it knows neither `maintain` nor `triage`."""
        known = {"login": login, "id": zlib.crc32(login.encode()) % 1_000_000, "role_name": role}
        user = fill("nullable-collaborator", f"{self.base}/users/{login}", **known, type=self.user(login)["type"])
        permission = {"maintain": "write", "triage": "read"}.get(role, role)
        return {"permission": permission, "role_name": role, "user": user}

    def content(self, path: str, ref: str, data: bytes) -> Json:
        url, html = f"{self.url}/contents/{quote(path)}?ref={ref}", f"{self.html}/blob/{ref}/{quote(path)}"
        small = len(data) <= LARGEST_CONTENT
        return fill(
            "content-file",
            url,
            name=path.rpartition("/")[2],
            path=path,
            size=len(data),
            encoding="base64" if small else "none",
            content=base64.encodebytes(data).decode() if small else "",
            html_url=html,
            _links={"self": url, "html": html, "git": None},
        )

    def branch(self, name: str) -> Json:
        url = f"{self.url}/branches/{quote(name, safe='')}"
        return fill(
            "branch-with-protection",
            url,
            name=name,
            commit=self.commit(self.state.commits[self.state.branches[name]]),
            protected=name in self.state.protected,
            protection_url=f"{url}/protection",
            _links={"self": url, "html": f"{self.html}/tree/{quote(name)}"},
        )

    def issue(self, issue: Issue) -> Json:
        return fill(
            "issue",
            f"{self.url}/issues/{issue.number}",
            id=issue.number,
            number=issue.number,
            title=issue.title,
            body=issue.body,
            state=issue.state,
            state_reason=issue.state_reason,
            user=self.user(issue.author),
            html_url=f"{self.html}/issues/{issue.number}",
            created_at=issue.created_at,
            updated_at=issue.updated_at,
        )

    def comment(self, comment: Comment) -> Json:
        issue = f"{self.url}/issues/{comment.issue}"
        app = None
        if comment.via_app:
            link = f"{self.base}/apps/{comment.via_app}"
            app = fill("nullable-integration", link, slug=comment.via_app, name=comment.via_app, html_url=link)
        return fill(
            "issue-comment",
            f"{self.url}/issues/comments/{comment.id}",
            id=comment.id,
            node_id=comment.node_id,
            body=comment.body,
            user=self.user(comment.author),
            issue_url=issue,
            author_association=comment.association,
            performed_via_github_app=app,
            html_url=f"{self.html}/pull/{comment.issue}#issuecomment-{comment.id}",
            created_at=comment.created_at,
            updated_at=comment.updated_at,
        )

    def commit(self, commit: Commit, *, files: bool = False) -> Json:
        url, html = f"{self.url}/commits/{commit.sha}", f"{self.html}/commit/{commit.sha}"
        by = {"name": commit.author, "email": f"{commit.author}@example.com", "date": commit.date}
        view = fill("commit", url, sha=commit.sha, html_url=html, author=self.user(commit.author), committer=None)
        view["commit"] |= {"message": commit.message, "author": by, "committer": by}
        view["parents"] = [
            {"sha": sha, "url": f"{self.url}/commits/{sha}", "html_url": f"{self.html}/commit/{sha}"}
            for sha in commit.parents
        ]
        if files:
            view["files"] = [self._file(name) for name in commit.files][:MOST_FILES]
        return view

    def _file(self, name: str) -> Json:
        name, _, before = name.partition(" <- ")
        known = {"status": "renamed", "previous_filename": before} if before else {"status": "modified"}
        return fill("diff-entry", f"{self.url}/contents/{name}", filename=name, **known)

    def reference(self, name: str, sha: str) -> Json:
        known = {"type": "commit", "sha": sha, "url": f"{self.url}/git/commits/{sha}"}
        return fill("git-ref", f"{self.url}/git/refs/{name}", ref=f"refs/{name}", node_id=name, object=known)

    def activity(self, number: int, branch: str, before: str, after: str) -> Json:
        created, deleted = int(before, 16) == 0, int(after, 16) == 0
        kind = "branch_creation" if created else "branch_deletion" if deleted else "push"
        known = {"id": number, "ref": f"refs/heads/{branch}", "before": before, "after": after, "activity_type": kind}
        return fill("activity", f"{self.url}/activity", **known, actor=self.user("octocat"))

    def comparison(self, base: Commit, basehead: str, found: Comparison, page: list[Commit]) -> Json:
        files = sorted({name for commit in found.ahead for name in commit.files})
        return fill(
            "commit-comparison",
            f"{self.url}/compare/{basehead}",
            status=found.status,
            ahead_by=len(found.ahead),
            behind_by=found.behind_by,
            total_commits=len(found.ahead),
            base_commit=self.commit(base),
            merge_base_commit=self.commit(found.merge_base),
            commits=[self.commit(each) for each in page],
            files=[self._file(name) for name in files][:MOST_FILES],
            html_url=f"{self.html}/compare/{basehead}",
        )

    def run(self, run: WorkflowRun, *, pulls: bool = True) -> Json:
        url, workflow = f"{self.url}/actions/runs/{run.id}", self.state.workflow_id(run.path)
        head = run.head_repository_full_name
        own = head == self.state.full_name and pulls  # GitHub leaves the list empty for forks
        return fill(
            "workflow-run",
            url,
            id=run.id,
            name=run.path.rpartition("/")[2],
            event=run.event,
            path=run.path,
            head_branch=run.head_branch,
            head_sha=run.head_sha,
            status=run.status,
            conclusion=run.conclusion,
            created_at=run.created_at,
            updated_at=run.created_at,
            run_started_at=run.started_at or run.created_at,
            run_attempt=run.run_attempt,
            run_number=run.id,
            workflow_id=workflow,
            check_suite_id=run.id + 1_000_000,
            workflow_url=f"{self.url}/actions/workflows/{workflow}",
            html_url=f"{self.html}/actions/runs/{run.id}",
            artifacts_url=f"{url}/artifacts",
            actor=self.user(run.actor),
            triggering_actor=self.user(run.actor),
            display_title="A change",
            repository=self.repository(self.state.full_name, "minimal-repository"),
            head_repository=self.repository(head, "minimal-repository") if head else None,
            pull_requests=[self._minimal(pull) for pull in self.state.pulls.values() if own and _ran(pull, run)],
        )

    def _minimal(self, pull: PullRequest) -> Json:
        repo = {"id": self.state.id, "url": self.url, "name": self.state.full_name.split("/")[1]}
        return fill(
            "pull-request-minimal",
            f"{self.url}/pulls/{pull.number}",
            id=100_000 + pull.number,
            number=pull.number,
            head={"ref": pull.head_ref, "sha": pull.head_sha, "repo": repo},
            base={"ref": pull.base_ref, "sha": pull.base_sha, "repo": repo},
        )

    def workflow(self, path: str) -> Json:
        number, name = self.state.workflow_id(path), path.rpartition("/")[2]
        url = f"{self.url}/actions/workflows/{number}"
        return fill("workflow", url, id=number, name=name, path=path, html_url=f"{self.html}/actions/workflows/{name}")

    def artifact(self, artifact: Artifact) -> Json:
        url, run = f"{self.url}/actions/artifacts/{artifact.id}", self.state.runs[artifact.run_id]
        of_run = {
            "id": run.id,
            "repository_id": run.repository_id,
            "head_repository_id": run.head_repository_id,
            "head_branch": run.head_branch,
            "head_sha": run.head_sha,
        }
        return fill(
            "artifact",
            url,
            id=artifact.id,
            name=artifact.name,
            size_in_bytes=len(artifact.zip_bytes),
            expired=artifact.expired,
            digest=artifact.digest,
            archive_download_url=f"{url}/zip",
            created_at=artifact.created_at,
            updated_at=artifact.created_at,
            expires_at=later(artifact.created_at, 90),
            workflow_run={name: value for name, value in of_run.items() if value is not None},
        )

    def check_run(self, check: CheckRun) -> Json:
        known = {name: value for name, value in check.fields.items() if name not in {"output", "actions"}}
        url = f"{self.url}/check-runs/{check.id}"
        ours = {"id": check.id, "html_url": f"{self.html}/runs/{check.id}", "check_suite": {"id": self.state.id}}
        view = fill("check-run", url, **(ours | known))
        said = {name: check.fields.get("output", {}).get(name) for name in ("title", "summary", "text")}
        view["output"] |= said | {"annotations_count": len(check.annotations), "annotations_url": f"{url}/annotations"}
        return view

    def annotation(self, check: CheckRun, given: Json) -> Json:
        href = f"{self.html}/blob/{check.fields['head_sha']}/{given['path']}"
        return fill("check-annotation", href, **({"blob_href": href} | given))

    def status(self, status: Status) -> Json:
        return fill(
            "status",
            f"{self.url}/statuses/{status.sha}",
            id=status.id,
            state=status.state,
            context=status.context,
            description=status.description,
            target_url=status.target_url,
            creator=self.user("github-actions[bot]"),
            created_at=status.created_at,
            updated_at=status.created_at,
        )


def _ran(pull: PullRequest, run: WorkflowRun) -> bool:
    return pull.state == "open" and (pull.head_sha, pull.head_ref) == (run.head_sha, run.head_branch)
