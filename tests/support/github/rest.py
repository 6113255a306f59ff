"""The REST API: finds the route, refuses what GitHub refuses, pages, and judges every exchange."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

from tests.support.github.faults import NOT_ACCESSIBLE, PRIMARY, Fault
from tests.support.github.loopback import Answer, Request
from tests.support.github.spec import IGNORED, GitHubSpec
from tests.support.github.state import State
from tests.support.github.views import Views

if TYPE_CHECKING:
    from tests.support.github.server import FakeGitHub

REPO = "/repos/{owner}/{repo}"
DOCS = "https://docs.github.com/rest"
API_VERSIONS = {"2022-11-28", "2026-03-10"}
LARGEST_PAGE = 100

PARTS = ("body", "path", "query")  # how a finding begins that GitHub refuses a request for
UNICORN = b"<!DOCTYPE html><html><body>Unicorn! This page is taking too long to load.</body></html>"

Item = TypeVar("Item")


class Refused(Exception):  # noqa: N818 - GitHub's answer, not an error of ours
    """An answer that ends a call."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.body)
        self.answer = answer


def refusal(status: int, message: str, *errors: Any, **headers: str) -> Answer:
    """An error in GitHub's shape."""
    body: dict[str, Any] = {"message": message, "documentation_url": DOCS, "status": str(status)}
    if errors:
        body["errors"] = list(errors)
    return Answer(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


def not_found() -> Refused:
    return Refused(refusal(404, "Not Found"))


@dataclass
class Call:
    """A request that found its route: what its path filled in, and what it may use."""

    github: FakeGitHub
    request: Request
    args: dict[str, str]

    @property
    def state(self) -> State:
        return self.github.state

    @property
    def views(self) -> Views:
        return self.github.views

    @property
    def query(self) -> dict[str, str]:
        return self.request.query

    @property
    def body(self) -> dict[str, Any]:
        return self.request.json

    def number(self, name: str) -> int:
        return int(self.args[name])

    def commit(self, ref: str) -> str:
        """The sha that this ref stands for, or GitHub's refusal."""
        if found := self.state.resolve(ref):
            return found
        raise Refused(refusal(422, f"No commit found for SHA: {ref}"))

    def wrong(self, message: str, *errors: Any) -> Refused:
        """A 422 for something a client should have known: it counts as a violation as well."""
        self.request.violations.append(f"{message} {errors or ''}".strip())
        return Refused(refusal(422, message, *errors))

    def page(self, items: Sequence[Item], default: int = 30) -> tuple[list[Item], dict[str, str]]:
        """The items of the page asked for, and the `Link` header that leads on."""
        size = min(max(int(self.query.get("per_page", 0)), 0), LARGEST_PAGE) or default
        page, last = max(int(self.query.get("page", 1)), 1), max(-(-len(items) // size), 1)
        targets = {"prev": page - 1, "next": page + 1, "last": last, "first": 1}
        if page >= last:
            del targets["next"], targets["last"]
        if page == 1:
            del targets["prev"], targets["first"]
        links = [
            f'<{self.github.base}{self.request.path}?{urlencode(self.query | {"page": str(number)})}>; rel="{name}"'
            for name, number in targets.items()
        ]
        return list(items[size * (page - 1) : size * page]), {"Link": ", ".join(links)} if links else {}

    def listed(self, items: Sequence[Item], view: Callable[[Item], Any], key: str | None = None) -> Answer:
        """A page of a list, bare or under a key beside its `total_count`."""
        page, headers = self.page(items)
        views = [view(item) for item in page]
        return Answer(200, {"total_count": len(items), key: views} if key else views, headers)


Route = Callable[[Call], Answer]

ROUTES: dict[tuple[str, str], tuple[Route, tuple[str, ...]]] = {}


def route(method: str, template: str, *needs: str) -> Callable[[Route], Route]:
    """Answer this operation with the function below; one of the permissions is enough (and `write` implies `read`)."""

    def register(function: Route) -> Route:
        ROUTES[method, template if template == "/rate_limit" else REPO + template] = (function, needs)
        return function

    return register


class Rest:
    """The API's host: REST by the description, GraphQL beside it."""

    host = "api"

    def __init__(self, github: FakeGitHub) -> None:
        from tests.support.github import rest_actions, rest_checks, rest_repository  # noqa: F401 - they add routes

        self.github = github
        self.spec = GitHubSpec.load()
        self.used = 0
        self.reset = int(time.time()) + 3600

    def judge(self, request: Request) -> list[str]:
        if self.github.web.answers(request):
            return []
        found = ["the body is not JSON"] if request.bad_json else []
        if request.path == "/graphql":
            names = ("User-Agent", "Authorization")
            return found + [f"no {name} header" for name in names if not request.headers.get(name)]
        found += self.spec.request(request.method, request.target, request.headers, request.json)
        size = request.query.get("per_page", "")
        if size.isdecimal() and int(size) > LARGEST_PAGE:
            found.append(f"a page of {size} was asked for: GitHub gives {LARGEST_PAGE} and says nothing")
        return found

    def judge_answer(self, request: Request, answer: Answer) -> list[str]:
        if request.path == "/graphql" or self.github.web.answers(request):
            return []
        return self.spec.answer(request.method, request.target, answer.status, answer.body)

    def failure(self, fault: Fault, request: Request) -> Answer:
        code = fault.code or 500
        headers = self._limits(request) | fault.headers
        if fault.html:
            return Answer(code, raw=UNICORN, headers=headers, content_type="text/html")
        if request.path == "/graphql" and fault.kind:  # GraphQL says such things in a successful answer
            return Answer(200, {"data": None, "errors": [{"type": fault.kind, "message": fault.message}]}, headers)
        answer = refusal(code, fault.message or {404: "Not Found"}.get(code, "Server Error"))
        if self.spec.describes(request.method, request.target, code):
            request.violations += self.spec.answer(request.method, request.target, code, answer.body)
        return Answer(code, answer.body, headers)

    def answer(self, request: Request) -> Answer:
        if self.github.web.answers(request):
            return self.github.web.answer(request)
        if request.path != "/rate_limit":
            self.used += 1
        try:
            answer = self._answer(request)
        except Refused as refused:
            answer = refused.answer
        answer.headers = self._limits(request) | {"X-GitHub-Request-Id": f"FAKE:{self.used}"} | answer.headers
        return answer

    def _answer(self, request: Request) -> Answer:
        if early := self._refused_early(request):
            return early
        if request.path == "/graphql":
            return self.github.graphql.answer(request)
        hit = self.spec.find(request.method, request.path)
        if hit is None:
            raise not_found()
        operation, args = hit
        function, needs = ROUTES[request.method, operation.template]
        if "owner" in args and f"{args['owner']}/{args['repo']}".lower() != self.github.state.full_name.lower():
            raise not_found()
        if needs and not self.github.may(*needs):
            return refusal(403, NOT_ACCESSIBLE)
        if wrong := [each for each in request.violations if each.startswith(PARTS) and IGNORED not in each]:
            return refusal(422, "Invalid request.", *[{"code": "invalid", "message": each} for each in wrong])
        return function(Call(self.github, request, args))

    def _refused_early(self, request: Request) -> Answer | None:
        version = request.headers.get("X-GitHub-Api-Version")
        if not request.headers.get("User-Agent"):
            return refusal(403, "Request forbidden by administrative rules. Please give a User-Agent header.")
        if request.token != self.github.token:
            return refusal(401, "Bad credentials" if request.token else "Requires authentication")
        if self.used > self.github.rate_limit and request.path != "/rate_limit":
            return refusal(403, PRIMARY)
        if version and version not in API_VERSIONS:
            request.violations.append(f"no such version of the API: {version}")
            return refusal(400, f"'{version}' is not a valid value for X-GitHub-Api-Version")
        if request.bad_json:
            return refusal(400, "Problems parsing JSON")
        return None

    def _limits(self, request: Request) -> dict[str, str]:
        resource = "graphql" if request.path == "/graphql" else "core"
        facts = self.limits() | {"resource": resource}
        return {f"X-RateLimit-{name.title()}": str(value) for name, value in facts.items()}

    def limits(self) -> dict[str, int]:
        """What is left of this hour's requests."""
        limit = self.github.rate_limit
        return {"limit": limit, "used": self.used, "remaining": max(limit - self.used, 0), "reset": self.reset}
