"""The artifacts of this run: stored, found and fetched, through the service behind `actions/upload-artifact`.

The service (of version 4 and 7) has no public description; what is written here was read from its open-source client
and checked against it. Where it is missing or refuses, the caller warns: the documented `actions/upload-artifact` step
does the same. The job's token is enough, no permission is needed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import quote, urlsplit

from pydantic import AliasChoices, Field, JsonValue

from eval_gate.github.artifacts.download import fetched
from eval_gate.github.client import ApiAnswer, Client, parsed, user_agent
from eval_gate.github.failure import FailureKind, GitHubError, answer_of, if_there, refusal, unanswered
from eval_gate.github.side_by_side import within
from eval_gate.struct import FrozenStruct
from eval_gate.text.secret import Secret

if TYPE_CHECKING:
    import httpx


_SERVICE: Final = "/twirp/github.actions.results.api.v1.ArtifactService"
_BLOCK: Final = 8 << 20
_DEFAULT_DAYS: Final = 90
ARCHIVE: Final = "application/zip"
FORBIDDEN_IN_NAMES: Final = frozenset('":<>|*?\r\n\\/')


class ArtifactService(FrozenStruct):
    """Where results go, and the job's own token for it, which is not the one for the API."""

    url: str
    token: Secret[str]
    retention_days: int | None = None


T = TypeVar("T")
Model = TypeVar("Model", bound=ApiAnswer)


class _Created(ApiAnswer):
    ok: bool = False
    url: str = Field(default="", validation_alias=AliasChoices("signed_upload_url", "signedUploadUrl"))


class _Finalized(ApiAnswer):
    ok: bool = False
    id: str = Field(default="", validation_alias=AliasChoices("artifact_id", "artifactId"), coerce_numbers_to_str=True)


def archive(files: Iterable[tuple[Path, str]], to: Path) -> None:
    """A zip of these files under these names."""
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as packed:
        for file, name in files:
            packed.write(file, name)


class ReservedArtifact(FrozenStruct):
    """An artifact of this run that has its name and no content yet."""

    calls: UploadCalls
    ids: Mapping[str, str]
    address: str
    mime_type: str

    def fill(self, file: Path) -> int:
        """Send the file; the artifact's id. Raises GitHubError."""
        digest, size = self.calls.send(self.address, file, self.mime_type)
        message = {**self.ids, "size": str(size), "hash": f"sha256:{digest}"}
        done = self.calls.ask("FinalizeArtifact", message, _Finalized)
        if not done.ok or not done.id.isdecimal():
            raise GitHubError(FailureKind.SERVER, self.calls.doing, "the artifact service did not confirm the upload")
        return int(done.id)


def reserve(
    client: Client, service: ArtifactService, name: str, *, now: datetime, mime_type: str = ARCHIVE
) -> ReservedArtifact:
    """Take the name for an artifact of this run. Raises GitHubError.

    Of another type than an archive it is stored as it is, and browsers are shown it: `name` ends as its files do then,
    because it is the name under which it is downloaded.

    `conflict`: an artifact of this name is there already, made in the same run; it is left as it is.
    """
    run, job = backend_ids(service.token)
    ids = {"workflow_run_backend_id": run, "workflow_job_run_backend_id": job, "name": name}
    days = service.retention_days or _DEFAULT_DAYS
    expires = (now + timedelta(days=days)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    calls = UploadCalls(client, service, f"storing the artifact {name}"[:120])
    # version 4 means a zip; version 7 names the type, which older services (and local emulations) do not know
    form = {"version": 4} if mime_type == ARCHIVE else {"version": 7, "mime_type": mime_type}
    created = calls.ask("CreateArtifact", {**ids, **form, "expires_at": expires}, _Created)
    if not created.ok or not created.url:
        raise GitHubError(FailureKind.SERVER, calls.doing, "the artifact service did not give an address to upload to")
    return ReservedArtifact(calls, ids, created.url, mime_type)


class UploadCalls:
    """The calls for one artifact. Each may be repeated: none of them adds anything the second time."""

    def __init__(self, client: Client, service: ArtifactService, doing: str) -> None:
        self._client = client
        self._token = service.token
        self.doing = doing
        try:
            parts = urlsplit(service.url)
        except ValueError as error:
            raise GitHubError(FailureKind.REFUSED, doing, "the service's address is none") from error
        self._origin = f"{parts.scheme}://{parts.netloc}"

    def ask(self, method: str, message: Mapping[str, object], model: type[Model]) -> Model:
        """One call of the service: JSON both ways, with the job's token."""
        headers = {"Authorization": f"Bearer {self._token.open()}", "User-Agent": user_agent()}
        url = f"{self._origin}{_SERVICE}/{method}"
        return self._call(
            lambda http: http.post(url, json=dict(message), headers=headers),
            lambda answer: parsed(model, _json(answer), self.doing),
        )

    def send(self, address: str, file: Path, mime_type: str) -> tuple[str, int]:
        """The file to the blob store, in blocks and then the list of them; its sha256 and size.

        Not in one piece: a local emulation of GitHub accepts that and keeps nothing. No token: the address is enough.
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
                self._put(f"{address}&comp=block&blockid={quote(block, safe='')}", part, {})
        listed = "".join(f"<Latest>{block}</Latest>" for block in blocks)
        document = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{listed}</BlockList>'
        kept_as = {"Content-Type": "application/xml", "x-ms-blob-content-type": mime_type}
        self._put(f"{address}&comp=blocklist", document.encode(), kept_as)
        return digest.hexdigest(), size

    def _put(self, url: str, content: bytes, headers: Mapping[str, str]) -> None:
        fixed = {"Content-Type": "application/octet-stream", "User-Agent": user_agent()}
        self._call(lambda http: http.put(url, content=content, headers={**fixed, **headers}), lambda _: None)

    def _call(self, call: Callable[[httpx.Client], httpx.Response], read: Callable[[httpx.Response], T]) -> T:
        """What `read` makes of the answer; one that it cannot read is as good as none."""
        import httpx

        def asked() -> httpx.Response:
            with self._client.transfers() as http:
                return call(http)

        def once() -> T:
            try:
                answer = within(self._client.patience.transfer_s, self.doing, asked)
            except httpx.HTTPError as error:
                raise unanswered(error, self.doing, "no answer") from error
            except (httpx.InvalidURL, ValueError) as error:
                raise GitHubError(FailureKind.REFUSED, self.doing, "the service's address is none") from error
            if answer.status_code >= 300:
                raise refusal(answer_of(answer, "msg"), self.doing)
            return read(answer)

        return self._client.repeated(once)


def _json(answer: httpx.Response) -> JsonValue:
    try:
        data: JsonValue = answer.json()
    except ValueError:
        return None
    return data


def backend_ids(token: Secret[str]) -> tuple[str, str]:
    """The run and job in the token's scope `Actions.Results:<run>:<job>`. It is only read: GitHub verifies it."""
    try:
        payload = token.open().split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        scopes = str(claims["scp"]).split()
        run, job = next(scope for scope in scopes if scope.startswith("Actions.Results:")).split(":")[1:3]
    except (ValueError, KeyError, IndexError, TypeError, StopIteration, binascii.Error) as error:
        doing = "reading the token of the artifact service"
        raise GitHubError(FailureKind.REFUSED, doing, "it has another form than expected") from error
    return run, job


def job_of(token: Secret[str] | None) -> str:
    """What the artifact service calls this job, which legs of a matrix do not share; empty where it is not known."""
    try:
        return backend_ids(token)[1] if token else ""
    except GitHubError:
        return ""


class OwnArtifact(ApiAnswer):
    """One artifact of this run, whichever job and attempt made it."""

    id: int = Field(validation_alias=AliasChoices("database_id", "databaseId"))
    name: str
    run: str = Field(validation_alias=AliasChoices("workflow_run_backend_id", "workflowRunBackendId"))
    job: str = Field(validation_alias=AliasChoices("workflow_job_run_backend_id", "workflowJobRunBackendId"))

    @property
    def message(self) -> dict[str, str]:
        """It as the service wants it named."""
        return {"workflow_run_backend_id": self.run, "workflow_job_run_backend_id": self.job, "name": self.name}


class _Listed(ApiAnswer):
    artifacts: tuple[OwnArtifact, ...] = ()


class _Signed(ApiAnswer):
    url: str = Field(default="", validation_alias=AliasChoices("signed_url", "signedUrl"))


def find_own(client: Client, service: ArtifactService, name: str) -> OwnArtifact | None:
    """The newest artifact of this name in this run. Raises GitHubError."""
    run, job = backend_ids(service.token)
    message = {"workflow_run_backend_id": run, "workflow_job_run_backend_id": job, "name_filter": name}
    found = _calls(client, service, "looking for", name).ask("ListArtifacts", message, _Listed).artifacts
    return max((one for one in found if one.name == name), key=lambda one: one.id, default=None)


def fetch_own(client: Client, service: ArtifactService, artifact: OwnArtifact, to: Path) -> None:
    """Write its archive to `to`. Raises GitHubError, and BadArchiveError for one that is too large."""
    calls = _calls(client, service, "reading", artifact.name)
    client.repeated(
        lambda: fetched(
            client, lambda _: calls.ask("GetSignedArtifactURL", artifact.message, _Signed).url, to, calls.doing
        )
    )


def delete_own(client: Client, service: ArtifactService, artifact: OwnArtifact) -> None:
    """Take it away, as `overwrite: true` of actions/upload-artifact does. Raises GitHubError."""
    calls = _calls(client, service, "replacing", artifact.name)
    if_there(lambda: calls.ask("DeleteArtifact", artifact.message, ApiAnswer))  # gone already is what was wanted


def _calls(client: Client, service: ArtifactService, doing: str, name: str) -> UploadCalls:
    return UploadCalls(client, service, f"{doing} the artifact {name}"[:120])
