"""GraphQL as far as the gate speaks it: a pull request's comments, newest page first, and hiding one of them.

Queries are read, not guessed: a field that GitHub does not have, a variable that was not given or a missing brace is
answered with an error, and only what was asked for is answered. Named fragments and directives are not understood.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.support.github.faults import NOT_ACCESSIBLE
from tests.support.github.loopback import Answer, Request
from tests.support.github.records import Comment, PullRequest
from tests.support.github.state import GHOST

if TYPE_CHECKING:
    from tests.support.github.server import FakeGitHub

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\.\.\.|\$?[A-Za-z_]\w*|-?\d+|[{}()\[\]:!=]|(\S)')

CLASSIFIERS = {"ABUSE", "DUPLICATE", "OFF_TOPIC", "OUTDATED", "RESOLVED", "SPAM"}
LARGEST_PAGE = 100
TIMELINE = {
    "AutomaticBaseChangeSucceededEvent",
    "BaseRefChangedEvent",
    "ClosedEvent",
    "HeadRefForcePushedEvent",
    "ReopenedEvent",
}
"""The kinds of what happens to a pull request, of those that GitHub knows."""
UNION = "..."
"""In an object of several kinds, its fields by the kind that has them: they are selected by an inline fragment."""


class QueryError(Exception):
    """An error of GitHub's GraphQL."""

    def __init__(self, message: str, kind: str | None = None, path: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.json: dict[str, Any] = {"message": message, "locations": [{"line": 1, "column": 1}]}
        if kind:
            self.json |= {"type": kind, "path": list(path)}


@dataclass
class Selection:
    """A field that was asked for."""

    name: str
    alias: str
    arguments: dict[str, Any] = field(default_factory=dict)
    below: list[Selection] | None = None


class Parser:
    """One operation of a document, with the variables put in."""

    def __init__(self, text: str, variables: dict[str, Any]) -> None:
        self.tokens = []
        for found in TOKEN.finditer(re.sub(r"#[^\n]*|,", " ", text)):
            if found[1]:
                raise QueryError(f"Parse error on {found[1]!r}")
            self.tokens.append(found[0])
        self.given = variables
        self.variables: dict[str, Any] = {}

    def operation(self) -> tuple[str, list[Selection]]:
        kind = "query"
        if self.tokens[:1] != ["{"]:
            kind = self._next("query", "mutation")
            if self.tokens[:1] not in (["("], ["{"]):
                self._name()  # the operation's own
            if self.tokens[:1] == ["("]:
                self._declarations()
        selections = self._selections()
        if self.tokens:
            raise QueryError(f"Parse error on {self.tokens[0]!r}")
        return kind, selections

    def _next(self, *wanted: str) -> str:
        token = self.tokens.pop(0) if self.tokens else "end of file"
        if wanted and token not in wanted:
            raise QueryError(f"Parse error on {token!r}, expected one of {wanted}")
        return token

    def _declarations(self) -> None:
        self._next("(")
        while self.tokens[:1] != [")"]:
            name = self._next().removeprefix("$")
            self._next(":")
            kind = self._name()
            required = self.tokens[:1] == ["!"] and bool(self._next())
            value = self.given.get(name)
            if self.tokens[:1] == ["="]:
                self._next()
                default = self._value()
                value = self.given.get(name, default)
            fits = {"Int": int, "String": str, "ID": str}.get(kind, object)
            if (value is None and required) or not (value is None or isinstance(value, fits)):
                raise QueryError(f"Variable ${name} of type {kind}{'!' * required} was provided invalid value")
            self.variables[name] = value
        self._next(")")

    def _selections(self) -> list[Selection]:
        self._next("{")
        found = []
        while self.tokens[:1] != ["}"]:
            if self.tokens[:1] == [UNION]:
                self._next()
                self._next("on")
                found.append(Selection(UNION, self._name(), below=self._selections()))
                continue
            alias = name = self._name()
            if self.tokens[:1] == [":"]:
                self._next()
                name = self._name()
            arguments = {}
            if self.tokens[:1] == ["("]:
                self._next()
                arguments = self._pairs(")")
            below = self._selections() if self.tokens[:1] == ["{"] else None
            found.append(Selection(name, alias, arguments, below))
        self._next("}")
        return found

    def _name(self) -> str:
        if not re.fullmatch(r"[A-Za-z_]\w*", token := self._next()):
            raise QueryError(f"Parse error on {token!r}, expected a name")
        return token

    def _pairs(self, end: str) -> dict[str, Any]:
        found = {}
        while self.tokens[:1] != [end]:
            name = self._name()
            self._next(":")
            found[name] = self._value()
        self._next(end)
        return found

    def _value(self) -> Any:
        token = self._next()
        if token == "{":
            return self._pairs("}")
        if token == "[":
            items = []
            while self.tokens and self.tokens[0] != "]":
                items.append(self._value())
            self._next("]")
            return items
        if token.startswith("$"):
            if token[1:] not in self.variables:
                raise QueryError(f"Variable {token} is used by the query but not declared")
            return self.variables[token[1:]]
        if token.startswith('"'):
            return token[1:-1].replace('\\"', '"')
        if re.fullmatch(r"-?\d+", token):
            return int(token)
        if not re.match(r"[A-Za-z_]", token):
            raise QueryError(f"Parse error on {token!r}, expected a value")
        return {"true": True, "false": False, "null": None}.get(token, token)


class GraphQL:
    """Answers `POST /graphql`."""

    def __init__(self, github: FakeGitHub) -> None:
        self.github = github

    def answer(self, request: Request) -> Answer:
        asked = request.json if isinstance(request.json, dict) else {}
        if request.method != "POST" or not isinstance(asked.get("query"), str):
            request.violations.append("GraphQL takes a POST with a query")
            return Answer(400, {"message": "A query attribute must be specified and must be a string."})
        errors: list[dict[str, Any]] = []
        try:
            kind, selections = Parser(asked["query"], asked.get("variables") or {}).operation()
            root = {"query": {"repository": self._repository}, "mutation": self._mutations}[kind]
            data = self._pick(root, selections, kind.title(), errors)
        except QueryError as error:
            request.violations.append(f"GraphQL: {error}")
            return Answer(200, {"errors": [error.json]})
        return Answer(200, {"data": data} | ({"errors": errors} if errors else {}))

    def _pick(
        self, source: dict[str, Any], selections: list[Selection] | None, kind: str, errors: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """What was asked for of an object: values, objects, lists of objects, or functions that give them."""
        if selections is None:
            raise QueryError(f"Field must have selections ({kind} has no meaning without)")
        out: dict[str, Any] = {}
        for each in selections:
            if each.name == UNION:
                if each.alias in source.get(UNION, ()):
                    out |= self._pick(source[UNION][each.alias], each.below, each.alias, errors)
                continue
            if each.name not in source and each.name != "__typename":
                raise QueryError(f"Field '{each.name}' doesn't exist on type '{kind}'")
            value = self._value(source.get(each.name, kind), each, errors)
            type_name = each.name[0].upper() + each.name[1:]
            if isinstance(value, dict):
                value = self._pick(value, each.below, type_name, errors)
            elif isinstance(value, list):
                value = [self._pick(item, each.below, type_name, errors) for item in value]
            elif each.below is not None and value is not None:
                raise QueryError(f"Field '{each.name}' has no fields of its own")
            out[each.alias] = value
        return out

    def _value(self, value: Any, asked: Selection, errors: list[dict[str, Any]]) -> Any:
        """A field's value, found by a call where it takes one. What cannot be found is null, with an error beside."""
        if not callable(value):
            return value
        try:
            return value(**asked.arguments)
        except TypeError as error:
            raise QueryError(f"Field '{asked.name}' was given wrong arguments: {error}") from error
        except QueryError as error:
            if "type" not in error.json:
                raise
            errors.append(error.json)
            return None

    def _repository(self, owner: str, name: str) -> dict[str, Any]:
        if f"{owner}/{name}".lower() != self.github.state.full_name.lower():
            message = f"Could not resolve to a Repository with the name '{owner}/{name}'."
            raise QueryError(message, "NOT_FOUND", ("repository",))
        return {
            "nameWithOwner": self.github.state.full_name,
            "pullRequest": self._pull,
            "pullRequests": self._pulls,
            "issues": self._issues,
        }

    def _pulls(self, first: int, headRefName: str) -> dict[str, Any]:  # noqa: N803
        """Pull requests from branches of this name, of forks too, the oldest first."""
        if not 1 <= first <= LARGEST_PAGE:
            raise QueryError(f"Requesting {first} records on the connection exceeds the `first` limit of 100 records.")
        found = [one.number for one in self.github.state.pulls.values() if one.head_ref == headRefName]
        return {"totalCount": len(found), "nodes": [self._pull(number) for number in sorted(found)[:first]]}

    def _issues(self, first: int, orderBy: dict[str, str], after: str | None = None) -> dict[str, Any]:  # noqa: N803
        if not self.github.may("issues:read"):
            raise QueryError(NOT_ACCESSIBLE, "FORBIDDEN", ("repository", "issues"))
        if not 1 <= first <= LARGEST_PAGE or orderBy != {"field": "UPDATED_AT", "direction": "DESC"}:
            raise QueryError(f"the fake knows no such order or page: {orderBy}, {first}")
        everything = sorted(self.github.state.issues.values(), key=lambda one: (one.updated_at, one.number))[::-1]
        start = int(base64.b64decode(after).decode()) if after else 0
        page = everything[start : start + first]
        end = start + len(page)
        return {
            "totalCount": len(everything),
            "pageInfo": {
                "hasNextPage": end < len(everything),
                "hasPreviousPage": start > 0,
                "endCursor": base64.b64encode(str(end).encode()).decode() if page else None,
            },
            "nodes": [
                {
                    "number": one.number,
                    "state": one.state.upper(),
                    "viewerDidAuthor": one.author_is_viewer,
                    "title": one.title,
                    "body": one.body,
                    "url": self.github.views.issue(one)["html_url"],
                    "createdAt": one.created_at,
                    "closedAt": one.closed_at,
                }
                for one in page
            ],
        }

    def _pull(self, number: int) -> dict[str, Any]:
        path = ("repository", "pullRequest")
        pull = self.github.state.pulls.get(number)
        if pull is None:
            raise QueryError(f"Could not resolve to a PullRequest with the number of {number}.", "NOT_FOUND", path)
        if not self.github.may("public", "pull-requests:read"):
            raise QueryError(NOT_ACCESSIBLE, "FORBIDDEN", path)
        state = "MERGED" if pull.merged else pull.state.upper()
        return {
            "id": f"PR_{number}",
            "number": number,
            "state": state,
            "isDraft": pull.draft,
            "title": pull.title,
            "headRefOid": pull.head_sha,
            "headRefName": pull.head_ref,
            "baseRefName": pull.base_ref,
            "baseRefOid": pull.base_sha,
            "author": _actor(pull.user),
            "headRepository": {"nameWithOwner": pull.head_repo} if pull.head_repo else None,
            "isCrossRepository": pull.head_repo != self.github.state.full_name,
            "createdAt": pull.created_at,
            "labels": partial(self._labels, pull),
            "timelineItems": partial(self._timeline, pull),
            "comments": partial(self._comments, pull),
        }

    def _labels(self, pull: PullRequest, first: int) -> dict[str, Any] | None:
        if not 1 <= first <= LARGEST_PAGE:
            raise QueryError(f"Requesting {first} records on the `labels` connection exceeds the `first` limit of 100.")
        nodes = [{"name": name} for name in pull.labels[:first]]
        return {"totalCount": len(pull.labels), "nodes": nodes} if nodes else None

    def _timeline(self, pull: PullRequest, last: int, itemTypes: list[str]) -> dict[str, Any]:  # noqa: N803
        known = {re.sub(r"(?<!^)(?=[A-Z])", "_", kind).upper(): kind for kind in TIMELINE}
        if not 1 <= last <= LARGEST_PAGE or not set(itemTypes) <= known.keys():
            raise QueryError(f"the fake knows no such page or kind of items: {last}, {itemTypes}")
        wanted = {known[one] for one in itemTypes}
        nodes = [{"__typename": kind, UNION: {kind: {"createdAt": at}}} for kind, at in pull.timeline if kind in wanted]
        return {"totalCount": len(nodes), "nodes": nodes[-last:]}

    def _comments(self, pull: PullRequest, last: int, before: str | None = None) -> dict[str, Any]:
        if not 1 <= last <= LARGEST_PAGE:
            raise QueryError(
                f"Requesting {last} records on the `comments` connection exceeds the `last` limit of 100 records."
            )
        everything = sorted(
            (c for c in self.github.state.comments.values() if c.issue == pull.number), key=lambda c: c.id
        )
        end = None if before is None else _of_cursor(before)
        older = [comment for comment in everything if end is None or comment.id < end]
        page = older[-last:]
        info = {
            "hasPreviousPage": len(older) > len(page),
            "hasNextPage": len(older) < len(everything),
            "startCursor": _cursor(page[0]) if page else None,
            "endCursor": _cursor(page[-1]) if page else None,
        }
        return {"totalCount": len(everything), "pageInfo": info, "nodes": [self._node(comment) for comment in page]}

    def _node(self, comment: Comment) -> dict[str, Any]:
        url = self.github.views.comment(comment)["html_url"]
        return {
            "id": comment.node_id,
            "databaseId": comment.id,
            "viewerDidAuthor": comment.author_is_viewer,
            "url": url,
            "isMinimized": comment.minimized is not None,
            "body": comment.body,
            "author": _actor(comment.author),
            "authorAssociation": comment.association,
            "editor": _actor(comment.editor),
            "lastEditedAt": comment.edited_at,
            "minimizedReason": comment.minimized and comment.minimized.lower(),
            "createdAt": comment.created_at,
            "updatedAt": comment.updated_at,
        }

    @property
    def _mutations(self) -> dict[str, Any]:
        return {"minimizeComment": self._minimize, "unminimizeComment": self._unminimize}

    def _unminimize(self, input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002 - GitHub's name
        path = ("unminimizeComment",)
        if not self.github.may("pull-requests:write", "issues:write"):
            raise QueryError(NOT_ACCESSIBLE, "FORBIDDEN", path)
        for comment in self.github.state.comments.values():
            if comment.node_id == input.get("subjectId"):
                comment.minimized = None
                return {"clientMutationId": input.get("clientMutationId"), "unminimizedComment": self._node(comment)}
        raise QueryError(
            f"Could not resolve to a node with the global id of '{input.get('subjectId')}'", "NOT_FOUND", path
        )

    def _minimize(self, input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002 - GitHub's name
        path = ("minimizeComment",)
        if not self.github.may("pull-requests:write", "issues:write"):
            raise QueryError(NOT_ACCESSIBLE, "FORBIDDEN", path)
        if input.get("classifier") not in CLASSIFIERS or input.keys() - {"subjectId", "classifier", "clientMutationId"}:
            raise QueryError(f"Variable $input of type MinimizeCommentInput! was provided invalid value: {input}")
        for comment in self.github.state.comments.values():
            if comment.node_id == input.get("subjectId"):
                comment.minimized = input["classifier"]
                return {"clientMutationId": input.get("clientMutationId"), "minimizedComment": self._node(comment)}
        raise QueryError(
            f"Could not resolve to a node with the global id of '{input.get('subjectId')}'", "NOT_FOUND", path
        )


def _actor(login: str | None) -> dict[str, str] | None:
    """Somebody by kind and login, which for a bot is without its suffix; None where the account is gone."""
    if login is None or login == GHOST:
        return None
    return {"__typename": "Bot" if login.endswith("[bot]") else "User", "login": login.removesuffix("[bot]")}


def _cursor(comment: Comment) -> str:
    return base64.b64encode(f"cursor:v2:{comment.id}".encode()).decode()


def _of_cursor(cursor: str) -> int:
    try:
        return int(base64.b64decode(cursor, validate=True).decode().removeprefix("cursor:v2:"))
    except ValueError:
        raise QueryError(f"`{cursor}` does not appear to be a valid cursor.") from None
