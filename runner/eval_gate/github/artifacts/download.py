"""Download of artifacts: follow the short-lived redirect without sending the token to the blob store."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from eval_gate.github.background_calls import call_with_timeout
from eval_gate.github.client import GitHubClient, format_user_agent
from eval_gate.github.failure import (
    FailureKind,
    GitHubError,
    build_no_response_error,
    build_refusal_error,
    parse_error_response,
)
from eval_gate.model import limits

if TYPE_CHECKING:
    import httpx

MAX_ARCHIVE_BYTES: Final = limits.ARCHIVE_BYTES
_PERMISSION: Final = "actions: read"


class BadArchiveError(Exception):
    """Error for an archive that is too large or does not match what GitHub announced."""


def fetch_artifact(client: GitHubClient, artifact_id: int, digest: str | None, to: Path) -> None:
    """Write the artifact's archive to `to`. Raises GitHubError, and BadArchiveError for what must not be used.

    A broken download begins with a new redirect: the address of the blob is good for a minute only.
    """
    doing = f"downloading artifact {artifact_id}"
    sha256 = client.call_with_retries(
        lambda: download_once(client, lambda http: _request_address(http, client, artifact_id, doing), to, doing)
    )
    if digest and digest != f"sha256:{sha256}":
        raise BadArchiveError("its content does not match GitHub's digest")
    with to.open("rb") as stream:
        if stream.read(2) != b"PK":
            raise BadArchiveError("it is not a zip archive")


def _request_address(http: httpx.Client, client: GitHubClient, artifact_id: int, doing: str) -> str:
    url = f"{client.api_url}/repos/{client.repository}/actions/artifacts/{artifact_id}/zip"
    response = http.get(url, headers=client.headers)
    if response.status_code != 302 or not response.headers.get("location"):
        raise build_refusal_error(parse_error_response(response, "message"), doing, _PERMISSION)
    return str(response.headers["location"])


def download_once(client: GitHubClient, address: Callable[[httpx.Client], str], to: Path, doing: str) -> str:
    """Ask once where the archive is, and write it to `to`; its sha256 in hexadecimal. Raises GitHubError."""
    import httpx

    until = time.monotonic() + client.patience.transfer_s

    def once() -> str:
        with client.open_http_client() as http:
            return _save_stream(http, address(http), to, doing, until)

    try:
        return call_with_timeout(client.patience.transfer_s, doing, once)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise build_no_response_error(error, doing, "the download failed") from error


def _save_stream(http: httpx.Client, address: str, to: Path, doing: str, until: float) -> str:
    """Save the archive, and return its SHA-256 in hexadecimal; without a token, because the blob store refuses one."""
    digest, size = hashlib.sha256(), 0
    # as it is stored: an archive is compressed already, and a second layer could stand for anything
    headers = {"User-Agent": format_user_agent(), "Accept-Encoding": "identity"}
    with http.stream("GET", address, headers=headers) as response:
        if response.status_code != 200:
            # an address that has expired or broke; the next try asks for a new one
            raise GitHubError(FailureKind.SERVER, doing, f"the blob store responded with {response.status_code}")
        if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise BadArchiveError("the blob store sent it with an unexpected compression")
        # nothing is written any more once the time is up: the next try may write to the same file by then
        with to.open("wb", buffering=0) as file:
            for chunk in response.iter_raw():
                size += len(chunk)
                if size > MAX_ARCHIVE_BYTES:
                    raise BadArchiveError(f"it is larger than {MAX_ARCHIVE_BYTES:,} bytes")
                if time.monotonic() > until:
                    raise GitHubError(FailureKind.UNREACHABLE, doing, "the download takes too long")
                digest.update(chunk)
                file.write(chunk)
    return digest.hexdigest()
