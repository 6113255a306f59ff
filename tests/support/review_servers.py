"""GitLab, Azure DevOps and Bitbucket as far as a gate's comment and status need them, stateful and over loopback.

Paths, fields and refusals are those of GitLab's documentation (doc/api/notes.md, commits.md, merge_requests.md), of
Microsoft's vsts-rest-api-specs (git 7.1) and of Bitbucket's OpenAPI description, read on 2026-11-30.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from tests.support.agents import Exchange, agent

Answer = tuple[int, Any]
"""HTTP status and body."""
SHA, TOKEN, OWN, STRANGER = "a1b2c3d4" * 5, "glpat-Zq8yXw3vUt6sRp1n", "7", "8"
SYSTEMS: Final = {
    "gitlab": {
        "GITLAB_CI": "true",
        "GITLAB_TOKEN": TOKEN,
        "CI_API_V4_URL": "{url}/api/v4",
        "CI_PROJECT_ID": "5",
        "CI_COMMIT_SHA": SHA,
        "CI_MERGE_REQUEST_IID": "3",
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
        "CI_JOB_URL": "https://gitlab.example/a/b/-/jobs/1",
        "CI_PIPELINE_ID": "11",
    },
    "azure": {
        "TF_BUILD": "True",
        "SYSTEM_ACCESSTOKEN": TOKEN,
        "SYSTEM_COLLECTIONURI": "{url}/organization/",
        "SYSTEM_TEAMPROJECTID": "p1",
        "BUILD_REPOSITORY_ID": "r1",
        "BUILD_SOURCEVERSION": "0" * 40,
        "SYSTEM_PULLREQUEST_SOURCECOMMITID": SHA,
        "SYSTEM_PULLREQUEST_PULLREQUESTID": "3",
        "SYSTEM_PULLREQUEST_TARGETBRANCH": "refs/heads/main",
        "BUILD_BUILDID": "12",
    },
    "bitbucket": {
        "BITBUCKET_TOKEN": TOKEN,
        "BITBUCKET_BUILD_NUMBER": "13",
        "BITBUCKET_REPO_FULL_NAME": "a/b",
        "BITBUCKET_COMMIT": SHA,
        "BITBUCKET_PR_ID": "3",
    },
}
"""Variables of a job of each."""
QUICK_ACTION = re.compile(r"^```.+?\n```$|^/(?P<command>close|merge|approve)\b", re.MULTILINE | re.DOTALL)
"""What GitLab runs in a note (lib/gitlab/quick_actions/extractor.rb): it knows no code between tildes."""


@dataclass
class ReviewServer:
    """One pull request. `faults` are answered first; a negative one is carried out, and its answer is lost."""

    system: str
    url: str = ""
    is_open: bool = True
    head: str = SHA
    comments: list[dict[str, Any]] = field(default_factory=list)
    statuses: list[dict[str, Any]] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @property
    def variables(self) -> dict[str, str]:
        return {name: value.format(url=self.url) for name, value in SYSTEMS[self.system].items()}

    def add(self, body: str, author: str = STRANGER) -> dict[str, Any]:
        self.comments.append({"id": len(self.comments) + 1, "body": body, "author": author})
        return self.comments[-1]

    async def handle(self, exchange: Exchange) -> None:
        verb, target, _ = exchange.head.split("\r\n")[0].split(" ")
        self.requests.append(f"{verb} {target}")
        fault = self.faults.pop(0) if self.faults else 0
        status, answer = (fault, {}) if fault > 0 else self.answer(verb, target, exchange)
        if fault < 0:
            status, answer = -fault, {}
        exchange.answer(json.dumps(answer).encode(), f"{status} -", Retry_After="0.5")

    def answer(self, verb: str, target: str, exchange: Exchange) -> Answer:
        if exchange.header("Authorization") != f"Bearer {TOKEN}":
            return 401, {"message": f"not allowed: {exchange.header('Authorization')}"}
        parts, answer = urlsplit(target), getattr(self, f"_answer_{self.system}")
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        response: Answer | None = answer(verb, parts.path, query, json.loads(exchange.body) if exchange.body else {})
        return (404, {"message": "404 Not Found"}) if response is None else response

    def _answer_gitlab(self, verb: str, path: str, query: dict[str, str], body: dict[str, Any]) -> Answer | None:
        def show(one: dict[str, Any]) -> dict[str, Any]:
            return {"id": one["id"], "body": one["body"], "author": {"id": int(one["author"])}, "system": False}

        match verb, path.removeprefix("/api/v4/projects/5/merge_requests/3"):
            case "GET", "/api/v4/user":
                return 200, {"id": int(OWN)}
            case "GET", "":
                return 200, {"state": "opened" if self.is_open else "merged", "sha": self.head}
            case "GET", "/notes" if query["sort"] == "asc":
                return 200, [show(one) for one in self._page(query, "per_page")]
            case "POST", "/notes":
                return 201, show(self.add(body["body"], OWN))
            case "PUT", rest if rest.startswith("/notes/"):
                return self._change(rest, body["body"], show)
            case "POST", rest if rest == f"/api/v4/projects/5/statuses/{SHA}":
                return self._set_status(body, "success", "failed")
        return None

    def _answer_azure(self, verb: str, path: str, query: dict[str, str], body: dict[str, Any]) -> Answer | None:
        def show(one: dict[str, Any]) -> dict[str, Any]:
            comment = {"id": 70 + one["id"], "content": one["body"], "author": {"id": one["author"]}}
            return {"id": one["id"], "comments": [comment]}

        if path == "/organization/_apis/connectionData":
            return (200, {"authenticatedUser": {"id": OWN}}) if query["api-version"] == "7.1-preview" else (400, {})
        assert query["api-version"] == "7.1"
        match verb, path.removeprefix("/organization/p1/_apis/git/repositories/r1/pullRequests/3"):
            case "GET", "":
                state = "active" if self.is_open else "completed"
                return 200, {"status": state, "lastMergeSourceCommit": {"commitId": self.head}}
            case "GET", "/threads":
                comments = [{"id": 1, "isDeleted": True, "author": {"id": OWN}}]
                return 200, {"value": [{"id": 99, "isDeleted": True, "comments": comments}, *map(show, self.comments)]}
            case "POST", "/threads":
                return 200, show(self.add(body["comments"][0]["content"], OWN))
            case "PATCH", rest if match := re.fullmatch(r"(/threads/(\d+))/comments/(\d+)", rest):
                assert int(match[3]) == 70 + int(match[2])
                return self._change(match[1], body["content"], show)
            case "POST", "/statuses":
                return self._set_status(body, "succeeded", "failed")
        return None

    def _answer_bitbucket(self, verb: str, path: str, query: dict[str, str], body: dict[str, Any]) -> Answer | None:
        def show(one: dict[str, Any]) -> dict[str, Any]:
            user = {"uuid": one["author"]} if one["author"] else None
            return {"id": one["id"], "content": {"raw": one["body"]}, "user": user, "deleted": False}

        match verb, path.removeprefix("/repositories/a/b/pullrequests/3"):
            case "GET", "":
                state = "OPEN" if self.is_open else "MERGED"
                return 200, {"state": state, "source": {"commit": {"hash": self.head[:12]}}}
            case "GET", "/comments":
                return 200, {"values": [show(one) for one in self._page(query, "pagelen")], "pagelen": 50}
            case "POST", "/comments":
                return 201, show(self.add(body["content"]["raw"], OWN))
            case "PUT", rest if rest.startswith("/comments/"):
                return self._change(rest, body["content"]["raw"], show)
            case "POST", rest if rest == f"/repositories/a/b/commit/{SHA}/statuses/build" and len(body["key"]) <= 40:
                return self._set_status(body, "SUCCESSFUL", "FAILED")
        return None

    def _page(self, query: dict[str, str], name: str) -> list[dict[str, Any]]:
        size, page = int(query.get(name, 20)), int(query["page"])
        return self.comments[(page - 1) * size : page * size]

    def _set_status(self, status: dict[str, Any], *states: str) -> Answer | None:
        if status["state"] not in states:
            return None
        self.statuses.append(status)
        return 201, {"id": 1}

    def _change(self, path: str, text: str, show: Callable[[dict[str, Any]], Any]) -> Answer:
        comment = self.comments[int(path.rpartition("/")[2]) - 1]
        if self.system == "bitbucket" and comment["author"] != OWN:
            return 403, {"error": {"message": "You don't have permission"}}
        comment["body"] = text
        return 200, show(comment)


@contextmanager
def review_server(system: str) -> Iterator[ReviewServer]:
    """A pull request of this system at an address of its own."""
    server = ReviewServer(system)
    with agent(server.handle) as running:
        server.url = f"http://127.0.0.1:{running.port}"
        yield server
