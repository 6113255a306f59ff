"""Fetching an artifact: bounded, verified, from a blob host that never sees our token."""

from __future__ import annotations

import hashlib
import random

import pytest

from eval_gate.github.artifacts import download
from eval_gate.github.artifacts.download import BadArchiveError, fetch_artifact
from eval_gate.github.client import ATTEMPTS
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.text.secret import Secret
from tests.support.github import Fault, zipped

ZIP, BLOB = r"/artifacts/\d+/zip$", r"^/artifacts/\d+\?"


@pytest.fixture
def stored(github):
    """An artifact of a few kilobytes that compression cannot shrink."""
    words = b"".join(hashlib.sha256(str(n).encode()).digest() for n in range(200))
    return github.state.add_artifact(github.state.add_run(), {"run.json": words})


@pytest.fixture
def fetch(client, stored, tmp_path):
    def fetch(digest: str | None = stored.digest) -> bytes:
        file = tmp_path / "artifact.zip"
        fetch_artifact(client, stored.id, digest, file)
        return file.read_bytes()

    return fetch


def test_fetch__artifact__arrives_whole_by_one_address(github, fetch, stored, waits) -> None:
    assert fetch() == stored.zip_bytes
    assert (len(github.requests("GET", ZIP)), len(github.requests("GET", BLOB)), waits) == (1, 1, [])


def test_fetch__token__goes_to_the_api_and_never_to_the_blob_host(github, fetch) -> None:
    github.faults.add("GET", BLOB, Fault.status(503), Fault.cut(after=100))
    fetch()
    asked, fetched = github.requests("GET", ZIP), github.requests("GET", BLOB)
    assert [len(asked), len(fetched)] == [3, 3]
    assert {one.headers["authorization"] for one in asked} == {f"Bearer {github.token}"}
    for exchange in fetched:
        assert "authorization" not in exchange.headers
        assert github.token not in f"{exchange.headers} {exchange.path}"
    assert all(one.headers["user-agent"].startswith("eval-gate/") for one in (*asked, *fetched))


def test_fetch__broken_half_way__begins_from_the_start_with_another_address(github, fetch, stored) -> None:
    github.faults.add("GET", BLOB, Fault.cut(after=3_000), Fault.reset(), Fault.cut(after=0))
    assert fetch() == stored.zip_bytes
    addresses = [one.path for one in github.requests("GET", BLOB)]
    assert len(set(addresses)) == len(addresses) == 4


def test_fetch__broken_after_some_was_written__nothing_of_it_stays(github, client, tmp_path) -> None:
    large = b"PK" + random.Random(1).randbytes(3_000_000)
    artifact = github.state.add_artifact(github.state.add_run(), large)
    github.faults.add("GET", BLOB, Fault.cut(after=2_500_000))
    fetch_artifact(client, artifact.id, artifact.digest, tmp_path / "x.zip")
    assert (tmp_path / "x.zip").read_bytes() == large


def test_fetch__address_expires_before_it_is_used__asks_for_new_ones_and_gives_up(github, fetch, waits) -> None:
    github.storage.lifetime = -1
    with pytest.raises(GitHubError, match="the blob store responded with 403") as caught:
        fetch()
    assert caught.value.kind is FailureKind.SERVER
    assert len(github.requests("GET", ZIP)) == ATTEMPTS
    assert len(waits) == ATTEMPTS - 1
    assert "sig=" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "kind"), [(410, FailureKind.GONE), (404, FailureKind.NOT_FOUND), (403, FailureKind.FORBIDDEN)]
)
def test_fetch__no_address_to_be_had__says_why_and_asks_no_blob_host(github, fetch, status, kind) -> None:
    github.faults.add("GET", ZIP, Fault.status(status, message="because"))
    with pytest.raises(GitHubError, match="because") as caught:
        fetch()
    assert caught.value.kind is kind
    assert github.requests("GET", BLOB) == []


@pytest.mark.slow
def test_fetch__answer_without_an_address__is_an_error_of_the_server(says, stored, tmp_path, waits) -> None:
    from eval_gate.github.client import GitHubClient
    from tests.support.github.loopback import Answer

    for answer in (Answer(302), Answer(200, raw=b"PK"), Answer(307, headers={"Location": "http://127.0.0.1:9/"})):
        client = GitHubClient(says(answer).base, Secret("t0ken"), "acme/bot", sleep=waits.append)
        with pytest.raises(GitHubError) as caught:
            fetch_artifact(client, 1, None, tmp_path / "x.zip")
        assert caught.value.kind is FailureKind.SERVER


def test_fetch__larger_than_is_good__is_given_up_at_once_and_not_tried_again(
    github, fetch, stored, monkeypatch
) -> None:
    size = len(stored.zip_bytes)
    monkeypatch.setattr(download, "MAX_ARCHIVE_BYTES", size - 1)
    with pytest.raises(BadArchiveError, match=f"larger than {size - 1:,} bytes"):
        fetch()
    assert len(github.requests("GET", BLOB)) == 1
    monkeypatch.setattr(download, "MAX_ARCHIVE_BYTES", size)
    assert fetch() == stored.zip_bytes


@pytest.mark.parametrize(
    "digest", ["sha256:" + "0" * 64, "sha512:" + "0" * 128, "sha256:", "nonsense", "sha256:" + "A" * 64]
)
def test_fetch__content_is_not_what_the_digest_says__must_not_be_used(github, fetch, digest) -> None:
    with pytest.raises(BadArchiveError, match="digest"):
        fetch(digest)
    assert len(github.requests("GET", BLOB)) == 1


def test_fetch__no_digest_known__is_taken(fetch, stored) -> None:
    assert fetch(None) == stored.zip_bytes


@pytest.mark.parametrize("data", [b"", b"P", b"{}", b"\x1f\x8b\x08", b"<html>"])
def test_fetch__not_a_zip__is_said(github, client, tmp_path, data) -> None:
    artifact = github.state.add_artifact(github.state.add_run(), data, content_type="text/html")
    with pytest.raises(BadArchiveError, match="not a zip archive"):
        fetch_artifact(client, artifact.id, artifact.digest, tmp_path / "x.zip")


def test_fetch__zip_without_anything__is_a_zip(github, client, tmp_path) -> None:
    artifact = github.state.add_artifact(github.state.add_run(), zipped({}))
    fetch_artifact(client, artifact.id, artifact.digest, tmp_path / "x.zip")
    assert (tmp_path / "x.zip").read_bytes() == artifact.zip_bytes
