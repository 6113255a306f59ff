"""The artifact service behind `actions/upload-artifact` (version 4 and later): Twirp over JSON."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tests.support.github.faults import Fault
from tests.support.github.loopback import Answer, Request
from tests.support.github.records import Artifact
from tests.support.github.storage import Blob

if TYPE_CHECKING:
    from tests.support.github.server import FakeGitHub

SERVICE = "/twirp/github.actions.results.api.v1.ArtifactService/"

ZIP = "application/zip"

RUN, JOB = "run-backend-1", "job-backend-2"

IDS = ("workflow_run_backend_id", "workflow_job_run_backend_id")

# What each call takes beside the two ids: its type, and whether it must be there.
CALLS: dict[str, dict[str, tuple[type, bool]]] = {
    "CreateArtifact": {
        "name": (str, True),
        "version": (int, True),
        "expires_at": (str, False),
        "mime_type": (str, False),
    },
    "FinalizeArtifact": {"name": (str, True), "size": (str, True), "hash": (str, False)},
    "ListArtifacts": {"name_filter": (str, False), "id_filter": (str, False)},
    "GetSignedArtifactURL": {"name": (str, True)},
    "DeleteArtifact": {"name": (str, True)},
}

OF_ANY_JOB = {"GetSignedArtifactURL", "DeleteArtifact"}  # calls about what another job of the run may have made

CODES = {
    400: "invalid_argument",
    401: "unauthenticated",
    403: "permission_denied",
    404: "not_found",
    409: "already_exists",
    429: "resource_exhausted",
    503: "unavailable",
}


def runtime_token(run: str = RUN, job: str = JOB) -> str:
    """What the runner gives a step as `ACTIONS_RUNTIME_TOKEN`: nobody verifies it, its `scp` holds the two ids."""
    now = int(time.time())
    scope = f"Actions.ExampleScope Actions.Results:{run}:{job}"
    claims = {"scp": scope, "nbf": now - 60, "exp": now + 3600, "iss": "https://token.actions.githubusercontent.com"}
    parts = [json.dumps(part).encode() for part in ({"alg": "HS256", "typ": "JWT"}, claims)]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in [*parts, b"signature"])


@dataclass
class Upload:
    """An artifact in the making, and the finished one."""

    blob: Blob
    job: str = JOB
    mime_type: str = ZIP
    artifact: Artifact | None = None


class ResultsService:
    """The uploads of the current run."""

    host = "results"

    def __init__(self, github: FakeGitHub) -> None:
        self.github = github
        self.uploads: dict[str, Upload] = {}
        self.camel_case = False  # answer as nektos/act does
        self.full = False  # the quota for artifacts is used up

    def judge(self, request: Request) -> list[str]:
        if request.bad_json:
            return ["the body is not JSON"]
        takes = CALLS.get(request.path.removeprefix(SERVICE))
        if request.method != "POST" or takes is None:
            return [f"no such call: {request.method} {request.path}"]
        if not isinstance(request.json, dict):
            return ["the body is not an object"]
        known: dict[str, tuple[type, bool]] = dict.fromkeys(IDS, (str, True)) | takes
        found = [f"body.{name} is unknown" for name in request.json.keys() - known.keys()]
        for name, (kind, required) in known.items():
            if required and name not in request.json:
                found.append(f"body.{name} is missing")
            elif name in request.json and not isinstance(request.json[name], kind):
                found.append(f"body.{name} is not {kind.__name__}")
        return found

    def judge_answer(self, request: Request, answer: Answer) -> list[str]:
        return []

    def failure(self, fault: Fault, request: Request) -> Answer:
        answer = _error(fault.code or 500, fault.message or "told to fail")
        answer.headers = fault.headers
        return answer

    def answer(self, request: Request) -> Answer:
        call = request.path.removeprefix(SERVICE)
        calls: dict[str, Callable[[dict[str, Any]], Answer]] = {
            "CreateArtifact": self._create,
            "FinalizeArtifact": self._finalize,
            "ListArtifacts": self._list,
            "GetSignedArtifactURL": self._signed,
            "DeleteArtifact": self._delete,
        }
        if request.method != "POST" or call not in calls:
            return _error(404, f"no handler for path {request.path}", "bad_route")
        if request.headers.get("Content-Type", "").split(";")[0] != "application/json":
            return _error(404, "unexpected Content-Type", "bad_route")
        if request.token != self.github.runtime_token:
            return _error(401, "the token is missing or not this run's")
        if request.violations:
            return _error(400, "; ".join(request.violations), "malformed")
        claims = self.github.runtime_token.split(".")[1]
        scope = json.loads(base64.urlsafe_b64decode(claims + "=="))["scp"].split()
        run, job = (request.json[name] for name in IDS)
        known = {f"Actions.Results:{run}:{job}"}
        if call in OF_ANY_JOB and (upload := self.uploads.get(request.json["name"])) and upload.job == job:
            # an artifact of the run is named by the job that made it, whichever job asks
            known |= {one for one in scope if one.startswith(f"Actions.Results:{run}:")}
        if known.isdisjoint(scope):
            request.violations.append("the ids are not those of the token")
            return _error(403, "the ids are not those of the token")
        answer = calls[call](request.json)
        if self.camel_case:
            answer.body = _camel(answer.body)
        return answer

    def _create(self, asked: dict[str, Any]) -> Answer:
        name = asked["name"]
        if asked["version"] not in {4, 7}:
            return _error(400, f"version {asked['version']} is not supported")
        if not name or re.search(r'[":<>|*?\r\n\\/]', name):
            return _error(400, "the artifact name is not valid")
        if "expires_at" in asked:
            try:
                datetime.fromisoformat(asked["expires_at"])
            except ValueError:
                return _error(400, "expires_at is not a time")
        if self.full:
            return _error(403, "insufficient usage to create artifact")
        if name in self.uploads:
            return _error(409, "an artifact with this name already exists on the workflow run")
        if asked["version"] == 4 and "mime_type" in asked:
            return _error(400, "version 4 knows no mime_type")
        upload = Upload(Blob(), asked["workflow_job_run_backend_id"], asked.get("mime_type", ZIP))
        self.uploads[name] = upload
        return Answer(200, {"ok": True, "signed_upload_url": self.github.storage.sign(_path(name), upload.blob, "cw")})

    def _finalize(self, asked: dict[str, Any]) -> Answer:
        upload = self.uploads.get(asked["name"])
        if upload is None or upload.blob.data is None:
            return _error(404, "no such artifact, or nothing was uploaded")
        data = upload.blob.data
        if asked["size"] != str(len(data)):
            return _error(400, f"size is {len(data)}")
        if upload.mime_type not in {ZIP, upload.blob.content_type}:
            return _error(400, f"announced as {upload.mime_type}, and the blob is {upload.blob.content_type}")
        if asked.get("hash", digest := "sha256:" + hashlib.sha256(data).hexdigest()) != digest:
            return _error(400, "hash differs")
        if upload.artifact is None:  # asked again after a lost answer: the same artifact
            run, kind = self.github.current_run, upload.blob.content_type
            upload.artifact = self.github.state.add_artifact(run, data, asked["name"], content_type=kind)
        return Answer(200, {"ok": True, "artifact_id": str(upload.artifact.id)})

    def _list(self, asked: dict[str, Any]) -> Answer:
        found = [
            {
                "workflow_run_backend_id": asked["workflow_run_backend_id"],
                "workflow_job_run_backend_id": upload.job,
                "database_id": str(each.id),
                "name": each.name,
                "size": str(len(each.zip_bytes)),
                "created_at": each.created_at,
                "digest": each.digest,
            }
            for upload in self.uploads.values()
            if (each := upload.artifact)
            and asked.get("name_filter", each.name) == each.name
            and asked.get("id_filter", str(each.id)) == str(each.id)
        ]
        return Answer(200, {"artifacts": found})

    def _signed(self, asked: dict[str, Any]) -> Answer:
        upload = self.uploads.get(asked["name"])
        if upload is None or upload.artifact is None:
            return _error(404, "no such artifact")
        name = f"{asked['name']}.zip" if upload.mime_type == ZIP else asked["name"]
        return Answer(200, {"signed_url": self.github.storage.sign(_path(asked["name"]), upload.blob, "r", name=name)})

    def _delete(self, asked: dict[str, Any]) -> Answer:
        upload = self.uploads.get(asked["name"])
        if upload is None or upload.artifact is None:  # what was never finished keeps its name, and is no artifact
            return _error(404, "no such artifact")
        del self.uploads[asked["name"]]
        self.github.state.artifacts.pop(upload.artifact.id, None)
        return Answer(200, {"ok": True, "artifact_id": str(upload.artifact.id)})


def _path(name: str) -> str:
    return f"/uploads/{RUN}/{name}"


def _error(status: int, message: str, code: str = "") -> Answer:
    return Answer(status, {"code": code or CODES.get(status, "internal"), "msg": message})


def _camel(value: Any) -> Any:
    if isinstance(value, list):
        return [_camel(each) for each in value]
    if isinstance(value, dict):
        return {re.sub(r"_(\w)", lambda hit: hit[1].upper(), name): _camel(each) for name, each in value.items()}
    return value
