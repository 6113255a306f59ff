"""The artifacts of the own run, asked of the artifact service: the job's token is enough, no permission is needed."""

from __future__ import annotations

from pathlib import Path

from pydantic import AliasChoices, Field

from eval_gate.github.artifacts.download import fetched
from eval_gate.github.artifacts.upload import ArtifactService, UploadCalls, backend_ids
from eval_gate.github.client import ApiAnswer, Client
from eval_gate.github.failure import if_there


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
    url: str = Field("", validation_alias=AliasChoices("signed_url", "signedUrl"))


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
