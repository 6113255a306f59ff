"""Our artifact code and GitHub's own client, through the same service: each reads what the other stored.

The client is an npm package: `make interop` installs it and runs these tests.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from eval_gate.github.artifacts.artifact_search import list_run_artifacts
from eval_gate.github.artifacts.artifact_service import ArtifactService, reserve_artifact
from eval_gate.github.artifacts.download import BadArchiveError, fetch_artifact
from eval_gate.github.client import GitHubClient
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.results.archive import write_archive
from eval_gate.text.secret import Secret
from tests.support.browsing import follow
from tests.support.github import FakeGitHub, fake_github

PEER = Path(__file__).parent / "artifact"
INSTALLED = shutil.which("node") is not None and (PEER / "node_modules").is_dir()
NAME = "eval-gate-results"
PAGE = "eval-gate-results-report.html"

pytestmark = pytest.mark.skipif(
    not INSTALLED and os.environ.get("EVAL_GATE_REQUIRE_INTEROP") != "1",
    reason="GitHub's own artifact client is not installed: run `make interop`",
)


@pytest.fixture
def github():
    with fake_github() as server:
        yield server
        assert server.violations == []


@pytest.fixture
def client(github):
    made = GitHubClient(github.base, Secret(github.token), "acme/bot", sleep=lambda _: None)
    yield made
    made.close()


def peer(github: FakeGitHub, *arguments: str) -> dict:
    """What GitHub's client says to this command."""
    done = subprocess.run(
        ["node", "peer.mjs", *arguments],
        cwd=PEER,
        env={**os.environ, **github.environment(GITHUB_SERVER_URL="https://github.com")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    answers = [line.removeprefix("ANSWER ") for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    assert answers, done.stdout + done.stderr
    return json.loads(answers[-1])


def store(client: GitHubClient, github: FakeGitHub, folder: Path) -> int:
    service = ArtifactService(github.results_url, Secret(github.runtime_token))
    write_archive([(folder / "run.json", "run.json")], folder / "ours.zip")
    return reserve_artifact(client, service, NAME, moment=datetime.now(UTC)).upload_file(folder / "ours.zip")


def test_ours__is_listed_and_unpacked_by_githubs_client(client, github, tmp_path) -> None:
    (tmp_path / "run.json").write_text('{"runId": "r1"}')
    number = store(client, github, tmp_path)
    listed = peer(github, "list")["artifacts"]
    assert [(one["name"], one["id"]) for one in listed] == [(NAME, number)]
    answer = peer(github, "download", NAME, str(tmp_path / "theirs"))
    assert answer == {"downloadPath": str(tmp_path / "theirs"), "digestMismatch": False}
    assert (tmp_path / "theirs" / "run.json").read_text() == '{"runId": "r1"}'


def test_theirs__is_found_and_read_by_us(client, github, tmp_path) -> None:
    (tmp_path / "run.json").write_text('{"runId": "r2"}')
    answer = peer(github, "upload", NAME, str(tmp_path), "run.json")
    (artifact,) = list_run_artifacts(client, github.current_run_id, NAME)
    assert artifact.id == answer["id"]
    fetch_artifact(client, artifact.id, artifact.digest, tmp_path / "theirs.zip")
    with zipfile.ZipFile(tmp_path / "theirs.zip") as packed:
        assert packed.read("run.json") == b'{"runId": "r2"}'


def test_our_page__is_listed_and_downloaded_as_it_is_by_githubs_client(client, github, tmp_path) -> None:
    """What their client sends for a page is what ours sends: see the next test."""
    (tmp_path / "report.html").write_text("<!doctype html>\n<title>ours</title>")
    service = ArtifactService(github.results_url, Secret(github.runtime_token))
    when = datetime.now(UTC)
    number = reserve_artifact(client, service, PAGE, moment=when, mime_type="text/html").upload_file(
        tmp_path / "report.html"
    )
    listed = peer(github, "list")["artifacts"]
    assert [(one["name"], one["id"]) for one in listed] == [(PAGE, number)]
    answer = peer(github, "download", PAGE, str(tmp_path / "theirs"))
    assert answer == {"downloadPath": str(tmp_path / "theirs"), "digestMismatch": False}
    assert (tmp_path / "theirs" / PAGE).read_text() == (tmp_path / "report.html").read_text()


def test_their_page__unzipped__opens_in_a_browser_and_is_sent_as_ours_is(client, github, tmp_path) -> None:
    (tmp_path / PAGE).write_text("<!doctype html>\n<title>theirs</title>")
    answer = peer(github, "upload-file", "ignored", str(tmp_path), PAGE)
    link = f"https://github.com/acme/bot/actions/runs/{github.current_run_id}/artifacts/{answer['id']}#here"
    opened = follow(github, link)
    assert (opened.content_type, opened.fragment) == ("text/html", "here")
    assert opened.text == (tmp_path / PAGE).read_text()
    theirs = [one.body for one in github.requests("POST", "(Create|Finalize)Artifact")]
    service = ArtifactService(github.results_url, Secret(github.runtime_token), 90)
    reserve_artifact(client, service, f"our-{PAGE}", moment=datetime.now(UTC), mime_type="text/html").upload_file(
        tmp_path / PAGE
    )
    ours = [one.body for one in github.requests("POST", "(Create|Finalize)Artifact")][2:]
    of_its_own = {"name", "expires_at"}
    assert [_without(body, of_its_own) for body in ours] == [_without(body, of_its_own) for body in theirs]
    types = {one.headers["x-ms-blob-content-type"] for one in github.requests("PUT", "comp=blocklist")}
    assert types == {"text/html"}


def test_their_page__is_no_archive_to_us(client, github, tmp_path) -> None:
    (tmp_path / PAGE).write_text("<!doctype html>")
    peer(github, "upload-file", "ignored", str(tmp_path), PAGE)
    (artifact,) = list_run_artifacts(client, github.current_run_id, PAGE)
    with pytest.raises(BadArchiveError, match="not a zip"):
        fetch_artifact(client, artifact.id, artifact.digest, tmp_path / "theirs.zip")


def _without(body: dict, keys: set[str]) -> dict:
    return {key: value for key, value in body.items() if key not in keys}


def test_same_name__whoever_comes_second_is_refused(client, github, tmp_path) -> None:
    (tmp_path / "run.json").write_text("{}")
    peer(github, "upload", NAME, str(tmp_path), "run.json")
    with pytest.raises(GitHubError) as caught:
        store(client, github, tmp_path)
    assert caught.value.kind is FailureKind.CONFLICT
    assert "409" in peer(github, "upload", NAME, str(tmp_path), "run.json")["error"]
