"""Check runs on a commit, with annotations on the lines of cases (docs.github.com, "Check runs").

Unlike a comment, only the app that wrote a check run can change it: later runs read their state from it.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from enum import StrEnum
from itertools import islice
from typing import Final
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field

from eval_gate.github.client import ApiResponse, GitHubClient
from eval_gate.struct import FrozenStruct

PERMISSION: Final = "checks: write"
MAX_TEXT: Final = 65_535
MAX_TITLE: Final = 80
MAX_ANNOTATION_TITLE: Final = 255
"""Bytes, as all limits of annotations."""
MAX_MESSAGE: Final = 16_000
MAX_CHECKS: Final = 1_000
_STATE: Final = re.compile(r"<!-- eval-gate:state ([A-Za-z0-9+/=]{1,20000}) -->\s*\Z")


class CheckConclusion(StrEnum):
    """Conclusion of a check run. `neutral` satisfies a required check: only `reportOnly` asks for it."""

    SUCCESS = "success"
    NEUTRAL = "neutral"
    FAILURE = "failure"
    CANCELLED = "cancelled"


class AnnotationLevel(StrEnum):
    """Severity of an annotation."""

    WARNING = "warning"
    FAILURE = "failure"


class Annotation(FrozenStruct):
    """Annotation on one line of a file of the repository."""

    path: str
    line: int
    level: AnnotationLevel
    title: str
    message: str


class CheckState(BaseModel):
    """State for the next result of the pull request; stored in the last line of the summary."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    regressed: str | None = Field(default=None, pattern=r"^[A-Za-z0-9+/=]{0,2700}$")
    """Which cases were regressions: four bytes of each one's digest, in base64. None where that is not known."""
    regressed_at: str | None = Field(default=None, pattern=r"^[0-9a-f]{7,64}$")
    """The commit of these regressions, if the result of this one is inconclusive."""


class CheckContent(FrozenStruct):
    """Content of a check run. Texts are Markdown; `text` may be empty."""

    name: str
    head_sha: str
    conclusion: CheckConclusion
    title: str
    summary: str
    text: str
    details_url: str
    external_id: str
    """What tells our check from others of the same name on the same commit."""
    annotations: tuple[Annotation, ...] = ()
    """At most fifty, which is what GitHub takes at once."""
    state: CheckState | None = None


class CheckOutput(ApiResponse):
    """Output that a check run shows."""

    title: str | None = None
    summary: str | None = None


class CheckRun(ApiResponse):
    """Check run as GitHub returns it."""

    id: int
    html_url: str | None = None
    external_id: str | None = None
    """What its writer gave it to be known by."""
    head_sha: str = ""
    conclusion: str | None = None
    details_url: str | None = None
    output: CheckOutput | None = None

    @property
    def state(self) -> CheckState | None:
        """The stored state for later results, if it is valid."""
        match = _STATE.search((self.output and self.output.summary) or "")
        if match is None:
            return None
        try:
            return CheckState.model_validate(json.loads(base64.b64decode(match[1], validate=True)))
        except (ValueError, RecursionError):
            return None


def write_check(client: GitHubClient, check: CheckContent) -> CheckRun:
    """Write the check run, once: after a lost answer it is looked for first. Raises GitHubError."""
    doing = f"writing the check {check.name}"[:120]
    body = {
        "name": check.name,
        "head_sha": check.head_sha,
        "status": "completed",
        "conclusion": check.conclusion.value,
        "details_url": check.details_url,
        "external_id": check.external_id,
        "output": _build_output(check),
    }

    def find_own() -> CheckRun | None:
        checks = _fetch_checks(client, check.name, check.head_sha, doing)
        return next((one for one in checks if one.external_id == check.external_id), None)

    return client.post(doing, "/check-runs", body, CheckRun, permission=PERMISSION, probe=find_own)


def list_checks_named(client: GitHubClient, name: str, head_sha: str) -> tuple[CheckRun, ...]:
    """List the check runs of this name on the commit, newest first, at most the newest hundred. Raises GitHubError."""
    doing = f"looking for the check {name}"[:120]
    return tuple(sorted(_fetch_checks(client, name, head_sha, doing), key=lambda one: one.id, reverse=True))


def list_commit_checks(client: GitHubClient, head_sha: str) -> tuple[CheckRun, ...]:
    """List the check runs of any name on the commit, at most `MAX_CHECKS` (one thousand). Raises GitHubError."""
    doing = f"looking for the checks on {head_sha[:7]}"
    path = f"/commits/{quote(head_sha)}/check-runs"
    checks = client.iter_items(doing, path, CheckRun, permission=PERMISSION, query={"filter": "all"}, key="check_runs")
    return tuple(islice(checks, MAX_CHECKS))


def copy_check_result(client: GitHubClient, check: CheckRun, counts: CheckRun) -> CheckRun:
    """Have a check run say what the one that counts says: GitHub shows the last completed one. Raises GitHubError."""
    source = counts.output or CheckOutput()
    output = {
        "title": (source.title or "Overtaken")[:MAX_TITLE],
        "summary": _truncate_bytes(source.summary or "", MAX_TEXT),
    }
    body = {"status": "completed", "conclusion": counts.conclusion, "output": output}
    body |= {"details_url": counts.details_url} if counts.details_url else {}
    return change_check(client, check, "correcting", body)


def change_check(client: GitHubClient, check: CheckRun, doing: str, body: Mapping[str, object]) -> CheckRun:
    """Change these fields of a check run, such as `external_id` and `name`. Raises GitHubError."""
    path = f"/check-runs/{check.id}"
    return client.patch(f"{doing} the check {check.id}", path, body, CheckRun, permission=PERMISSION)


def _build_output(check: CheckContent) -> dict[str, object]:
    return {
        "title": check.title[:MAX_TITLE],
        "summary": _append_state(check.summary, check.state),
        **({"text": _truncate_bytes(check.text, MAX_TEXT)} if check.text else {}),
        "annotations": [
            {
                "path": one.path,
                "start_line": one.line,
                "end_line": one.line,
                "annotation_level": one.level.value,
                "title": _truncate_bytes(one.title, MAX_ANNOTATION_TITLE),
                "message": _truncate_bytes(one.message, MAX_MESSAGE),
            }
            for one in check.annotations
        ],
    }


def _append_state(summary: str, state: CheckState | None) -> str:
    """Append the state as an invisible line, for which the summary is shortened. No text can end it early."""
    if state is None:
        return _truncate_bytes(summary, MAX_TEXT)
    packed = base64.b64encode(state.model_dump_json(exclude_none=True).encode()).decode()
    line = f"\n<!-- eval-gate:state {packed} -->\n"
    return f"{_truncate_bytes(summary, MAX_TEXT - len(line)).rstrip()}{line}"


def _truncate_bytes(text: str, limit: int) -> str:
    """Truncate a text to at most `limit` bytes of UTF-8, without splitting a character."""
    data = text.encode("utf-8", "replace")
    return text if len(data) <= limit else data[:limit].decode("utf-8", "ignore")


def _fetch_checks(client: GitHubClient, name: str, head_sha: str, doing: str) -> tuple[CheckRun, ...]:
    path = f"/commits/{quote(head_sha)}/check-runs"
    query = {"check_name": name, "filter": "all"}
    return client.get_page(doing, path, CheckRun, permission=PERMISSION, query=query, key="check_runs")
