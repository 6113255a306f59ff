"""Artifacts of the current run: upload, find and fetch, by the service behind actions/upload-artifact.

The service (of version 4 and 7) has no public description; this module follows its open-source client, and is checked
against it. If it is missing or refuses, the caller warns: the documented `actions/upload-artifact` step does the same.
The job's token is enough, no permission is needed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import quote, urlsplit

from pydantic import AliasChoices, Field, JsonValue

from eval_gate.github.artifacts.download import download_once
from eval_gate.github.background_calls import call_with_timeout
from eval_gate.github.client import ApiResponse, GitHubClient, format_user_agent, parse_response
from eval_gate.github.failure import (
    FailureKind,
    GitHubError,
    build_no_response_error,
    build_refusal_error,
    find_or_none,
    parse_error_response,
)
from eval_gate.struct import FrozenStruct
from eval_gate.text.secret import Secret

if TYPE_CHECKING:
    import httpx


_SERVICE: Final = "/twirp/github.actions.results.api.v1.ArtifactService"
_BLOCK: Final = 8 << 20
_DEFAULT_DAYS: Final = 90
ARCHIVE_MIME_TYPE: Final = "application/zip"
FORBIDDEN_IN_NAMES: Final = frozenset('":<>|*?\r\n\\/')


class ArtifactService(FrozenStruct):
    """Address of the artifact service and the job's token for it, which differs from the API token."""

    url: str
    token: Secret[str]
    retention_days: int | None = None


T = TypeVar("T")
Model = TypeVar("Model", bound=ApiResponse)


class _CreateResponse(ApiResponse):
    ok: bool = False
    url: str = Field(default="", validation_alias=AliasChoices("signed_upload_url", "signedUploadUrl"))


class _FinalizeResponse(ApiResponse):
    ok: bool = False
    id: str = Field(default="", validation_alias=AliasChoices("artifact_id", "artifactId"), coerce_numbers_to_str=True)


class ReservedArtifact(FrozenStruct):
    """Artifact of this run whose name is reserved and whose content is not uploaded yet."""

    calls: ArtifactCalls
    ids: Mapping[str, str]
    address: str
    mime_type: str

    def upload_file(self, file: Path) -> int:
        """Send the file; the artifact's id. Raises GitHubError."""
        digest, size = self.calls.upload_blob(self.address, file, self.mime_type)
        message = {**self.ids, "size": str(size), "hash": f"sha256:{digest}"}
        response = self.calls.call_method("FinalizeArtifact", message, _FinalizeResponse)
        if not response.ok or not response.id.isdecimal():
            raise GitHubError(FailureKind.SERVER, self.calls.doing, "the artifact service did not confirm the upload")
        return int(response.id)


def reserve_artifact(
    client: GitHubClient, service: ArtifactService, name: str, *, moment: datetime, mime_type: str = ARCHIVE_MIME_TYPE
) -> ReservedArtifact:
    """Take the name for an artifact of this run. Raises GitHubError.

    Of another type than an archive it is stored as it is, and browsers are shown it: `name` ends as its files do then,
    because it is the name under which it is downloaded.

    `conflict`: an artifact of this name is there already, made in the same run; it is left as it is.
    """
    run, job = parse_backend_ids(service.token)
    ids = {"workflow_run_backend_id": run, "workflow_job_run_backend_id": job, "name": name}
    days = service.retention_days or _DEFAULT_DAYS
    expires = (moment + timedelta(days=days)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    calls = ArtifactCalls(client, service, f"storing the artifact {name}"[:120])
    # version 4 means a zip; version 7 names the type, which older services (and local emulations) do not know
    form = {"version": 4} if mime_type == ARCHIVE_MIME_TYPE else {"version": 7, "mime_type": mime_type}
    created = calls.call_method("CreateArtifact", {**ids, **form, "expires_at": expires}, _CreateResponse)
    if not created.ok or not created.url:
        raise GitHubError(FailureKind.SERVER, calls.doing, "the artifact service did not give an address to upload to")
    return ReservedArtifact(calls, ids, created.url, mime_type)


class ArtifactCalls:
    """Calls of the artifact service for one artifact. Each of them may be repeated safely."""

    def __init__(self, client: GitHubClient, service: ArtifactService, doing: str) -> None:
        self._client = client
        self._token = service.token
        self.doing = doing
        try:
            parts = urlsplit(service.url)
        except ValueError as error:
            raise GitHubError(FailureKind.REFUSED, doing, "the address of the service is not valid") from error
        self._origin = f"{parts.scheme}://{parts.netloc}"

    def call_method(self, method: str, message: Mapping[str, object], model: type[Model]) -> Model:
        """One call of the service: JSON both ways, with the job's token."""
        headers = {"Authorization": f"Bearer {self._token.open()}", "User-Agent": format_user_agent()}
        url = f"{self._origin}{_SERVICE}/{method}"
        return self._call_with_retries(
            lambda http: http.post(url, json=dict(message), headers=headers),
            lambda response: parse_response(model, _parse_json(response), self.doing),
        )

    def upload_blob(self, address: str, file: Path, mime_type: str) -> tuple[str, int]:
        """Upload the file to the blob store, in blocks followed by their list; return its SHA-256 and size.

        A single upload does not work: a local emulation of GitHub accepts it and stores nothing. The request carries no
        token, because the address is enough.
        """
        digest, size = hashlib.sha256(), 0
        blocks: list[str] = []
        with file.open("rb") as stream:
            while part := stream.read(_BLOCK):
                digest.update(part)
                size += len(part)
                # identifiers of blocks have to be equally long
                block = base64.b64encode(f"{len(blocks):032d}".encode()).decode()
                blocks.append(block)
                self._put_content(f"{address}&comp=block&blockid={quote(block, safe='')}", part, {})
        listed = "".join(f"<Latest>{block}</Latest>" for block in blocks)
        document = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{listed}</BlockList>'
        kept_as = {"Content-Type": "application/xml", "x-ms-blob-content-type": mime_type}
        self._put_content(f"{address}&comp=blocklist", document.encode(), kept_as)
        return digest.hexdigest(), size

    def _put_content(self, url: str, content: bytes, headers: Mapping[str, str]) -> None:
        fixed = {"Content-Type": "application/octet-stream", "User-Agent": format_user_agent()}
        self._call_with_retries(
            lambda http: http.put(url, content=content, headers={**fixed, **headers}), lambda _: None
        )

    def _call_with_retries(
        self, call: Callable[[httpx.Client], httpx.Response], read: Callable[[httpx.Response], T]
    ) -> T:
        """Call the service with retries; a response that `read` cannot parse counts as no response."""
        import httpx

        def send_call() -> httpx.Response:
            with self._client.open_http_client() as http:
                return call(http)

        def once() -> T:
            try:
                response = call_with_timeout(self._client.patience.transfer_s, self.doing, send_call)
            except httpx.HTTPError as error:
                raise build_no_response_error(error, self.doing, "no response") from error
            except (httpx.InvalidURL, ValueError) as error:
                raise GitHubError(FailureKind.REFUSED, self.doing, "the address of the service is not valid") from error
            if response.status_code >= 300:
                raise build_refusal_error(parse_error_response(response, "msg"), self.doing)
            return read(response)

        return self._client.call_with_retries(once)


def _parse_json(response: httpx.Response) -> JsonValue:
    try:
        data: JsonValue = response.json()
    except ValueError:
        return None
    return data


def parse_backend_ids(token: Secret[str]) -> tuple[str, str]:
    """Parse run and job from the token's scope `Actions.Results:<run>:<job>`. Raises GitHubError for another form."""
    try:
        payload = token.open().split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        scopes = str(claims["scp"]).split()
        run, job = next(scope for scope in scopes if scope.startswith("Actions.Results:")).split(":")[1:3]
    except (ValueError, KeyError, IndexError, TypeError, StopIteration, binascii.Error) as error:
        doing = "reading the token of the artifact service"
        raise GitHubError(FailureKind.REFUSED, doing, "it has an unexpected format") from error
    return run, job


def find_job_id(token: Secret[str] | None) -> str:
    """Return the artifact service's id of this job, one for each leg of a matrix; empty if it is unknown."""
    try:
        return parse_backend_ids(token)[1] if token else ""
    except GitHubError:
        return ""


class OwnArtifact(ApiResponse):
    """Artifact of this run, whichever job and attempt made it."""

    id: int = Field(validation_alias=AliasChoices("database_id", "databaseId"))
    name: str
    run: str = Field(validation_alias=AliasChoices("workflow_run_backend_id", "workflowRunBackendId"))
    job: str = Field(validation_alias=AliasChoices("workflow_job_run_backend_id", "workflowJobRunBackendId"))

    @property
    def message(self) -> dict[str, str]:
        """It as the service wants it named."""
        return {"workflow_run_backend_id": self.run, "workflow_job_run_backend_id": self.job, "name": self.name}


class _ListResponse(ApiResponse):
    artifacts: tuple[OwnArtifact, ...] = ()


class _SignedUrlResponse(ApiResponse):
    url: str = Field(default="", validation_alias=AliasChoices("signed_url", "signedUrl"))


def find_own_artifact(client: GitHubClient, service: ArtifactService, name: str) -> OwnArtifact | None:
    """Find the newest artifact of this name in this run, or return None. Raises GitHubError."""
    run, job = parse_backend_ids(service.token)
    message = {"workflow_run_backend_id": run, "workflow_job_run_backend_id": job, "name_filter": name}
    artifacts = (
        _build_calls(client, service, "looking for", name)
        .call_method("ListArtifacts", message, _ListResponse)
        .artifacts
    )
    return max((one for one in artifacts if one.name == name), key=lambda one: one.id, default=None)


def fetch_own_artifact(client: GitHubClient, service: ArtifactService, artifact: OwnArtifact, to: Path) -> None:
    """Write its archive to `to`. Raises GitHubError, and BadArchiveError for one that is too large."""
    calls = _build_calls(client, service, "reading", artifact.name)
    client.call_with_retries(
        lambda: download_once(
            client,
            lambda _: calls.call_method("GetSignedArtifactURL", artifact.message, _SignedUrlResponse).url,
            to,
            calls.doing,
        )
    )


def delete_own_artifact(client: GitHubClient, service: ArtifactService, artifact: OwnArtifact) -> None:
    """Take it away, as `overwrite: true` of actions/upload-artifact does. Raises GitHubError."""
    calls = _build_calls(client, service, "replacing", artifact.name)
    find_or_none(
        lambda: calls.call_method("DeleteArtifact", artifact.message, ApiResponse)
    )  # gone already is what was wanted


def _build_calls(client: GitHubClient, service: ArtifactService, doing: str, name: str) -> ArtifactCalls:
    return ArtifactCalls(client, service, f"{doing} the artifact {name}"[:120])
