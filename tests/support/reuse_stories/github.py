"""What GitHub says of a pull request's earlier runs, answered in this process, for the rule of the action."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from types import SimpleNamespace

import httpx
import msgspec

from eval_gate.action.own_runs import find_own_runs
from eval_gate.action.step_log import StepLog
from eval_gate.github.client import GitHubClient
from eval_gate.github.workflow_commands import DeferredCommands
from eval_gate.model.result import RunResult
from eval_gate.model.reuse import EvaluatedState
from eval_gate.text.secret import Secret
from tests.support.reuse_stories.repository import WORKFLOW
from tests.support.reuse_stories.runs import GATE, FoundRun, Pull, Request, Run

OWN, FORK = 1, 2
"""Ids of the repository and of a fork."""
BLOBS = "blobs.invalid"
ARTIFACT = {"name": "eval-gate-results", "size_in_bytes": 1_000}


def find_own(
    found: Sequence[FoundRun], request: Request, state: EvaluatedState, pulls: Sequence[Pull]
) -> list[RunResult]:
    """Find the results of earlier runs that may be reused, by the action's rule, among those that GitHub lists."""
    pull = request.pull
    if pull is None:
        return []
    step = SimpleNamespace(
        plan=SimpleNamespace(
            head_sha=request.sha, from_fork=pull.fork, pull_number=pull.number, head_branch=pull.branch
        ),
        environment=SimpleNamespace(
            event_name=request.event, workflow_path=WORKFLOW, run_id=request.number, temporary_folder=None
        ),
        client=_Client(found, pull, pulls),
        artifact_names=("eval-gate-results",),
        key=GATE,
    )
    return list(find_own_runs(step, state, StepLog(DeferredCommands())))


class _Client(GitHubClient):
    """Answers what is asked about these runs."""

    def __init__(self, found: Sequence[FoundRun], pull: Pull, pulls: Sequence[Pull]) -> None:
        super().__init__("https://api.invalid", Secret("token"), "acme/bot")
        self._found, self._pull, self._pulls = found, pull, pulls

    def _send_request(
        self, verb: str, path: str, doing: str, permission: str, *, query: object = None, body: object = None
    ) -> object:
        del doing, permission, body
        assert verb == "GET"
        match path.split("/")[1:]:
            case ["actions", "workflows", name, "runs"]:
                return {"workflow_runs": list(self._list_runs(name, dict(query or {})))}
            case ["compare", pair]:
                earlier = pair.partition("...")[0]
                return self._compare(next(one for one in self._found if one.run.sha == earlier))
            case ["actions", "runs", number, "artifacts"]:
                run = self._find(number)
                facts = {"id": run.number, "expired": run.expired, "created_at": run.at.isoformat()}
                return {"artifacts": [ARTIFACT | facts]}
        raise NotImplementedError(path)

    def _list_runs(self, name: str, query: Mapping[str, object]) -> Iterator[dict[str, object]]:
        """Runs of a workflow file by event and branch: GitHub tells a fork's branch of this name by nothing else."""
        for one in self._found:
            run, pull = one.run, one.run.pull
            branch = pull.branch if pull else "main"
            created = (run.at + timedelta(minutes=1)).isoformat()
            if run.workflow.endswith(f"/{name}") and (run.event, branch) == (query["event"], query["branch"]):
                yield {
                    "id": run.number,
                    "event": run.event,
                    "path": run.workflow,
                    "head_sha": run.sha,
                    "head_branch": branch,
                    "run_attempt": run.attempt,
                    "conclusion": run.conclusion,
                    "status": "completed",
                    "created_at": created,
                    "run_started_at": created,
                    "repository": {"id": OWN, "full_name": "acme/bot"},
                    "head_repository": {"id": FORK if pull and pull.fork else OWN, "full_name": "somebody/bot"},
                }

    def _compare(self, found: FoundRun) -> dict[str, object]:
        files = [
            {"filename": name, "status": "changed", **({"previous_filename": before} if before else {})}
            for name, before in found.files
        ]
        return {
            "ahead_by": found.ahead_by,
            "base_commit": {"sha": found.run.sha},
            "merge_base_commit": {"sha": found.merge_base},
            "files": files,
        }

    def run_graphql(self, doing: str, query: str, variables: Mapping[str, object], *, permission: str) -> object:
        """Answer the one question about branches of pull requests, with the names of that query."""
        del doing, query, permission
        same = [one for one in self._pulls if one.branch == variables["branch"]]
        moves = [{"created_at": max(self._pull.moves).isoformat()}] if self._pull.moves else []
        pulls = {"nodes": [{"number": one.number, "is_from_fork": one.fork} for one in same]}
        pull = {"created_at": self._pull.opened.isoformat(), "moves": {"nodes": moves}}
        return {"repository": {"pulls": pulls, "pull": pull}}

    def open_http_client(self) -> httpx.Client:
        """Open a client that gets artifacts from here."""
        return httpx.Client(transport=httpx.MockTransport(self._download))

    def _download(self, request: httpx.Request) -> httpx.Response:
        number = request.url.path.split("/")[-2]
        if request.url.host != BLOBS:
            return httpx.Response(302, headers={"location": f"https://{BLOBS}/{number}/zip"})
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as archive:
            archive.writestr("run.json", msgspec.json.encode(self._find(number).result))
        return httpx.Response(200, stream=httpx.ByteStream(data.getvalue()))

    def _find(self, number: str) -> Run:
        return next(one.run for one in self._found if one.run.number == int(number))
