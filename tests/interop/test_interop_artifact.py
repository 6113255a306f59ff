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

from eval_gate.github.artifacts.download import fetch_artifact
from eval_gate.github.artifacts.listed import artifacts_of_run
from eval_gate.github.artifacts.upload import Service, archive, upload
from eval_gate.github.client import Client
from eval_gate.github.failure import GitHubError, Kind
from tests.support.github import FakeGitHub, fake_github

PEER = Path(__file__).parent / "artifact"
INSTALLED = shutil.which("node") is not None and (PEER / "node_modules").is_dir()
NAME = "eval-gate-results"

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
    made = Client(github.base, github.token, "acme/bot", sleep=lambda _: None)
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


def store(client: Client, github: FakeGitHub, folder: Path) -> int:
    service = Service(github.results_url, github.runtime_token)
    archive([(folder / "run.json", "run.json")], folder / "ours.zip")
    return upload(client, service, NAME, folder / "ours.zip", now=datetime.now(UTC))


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
    (artifact,) = artifacts_of_run(client, github.current_run_id, NAME)
    assert artifact.id == answer["id"]
    fetch_artifact(client, artifact.id, artifact.digest, tmp_path / "theirs.zip")
    with zipfile.ZipFile(tmp_path / "theirs.zip") as packed:
        assert packed.read("run.json") == b'{"runId": "r2"}'


def test_same_name__whoever_comes_second_is_refused(client, github, tmp_path) -> None:
    (tmp_path / "run.json").write_text("{}")
    peer(github, "upload", NAME, str(tmp_path), "run.json")
    with pytest.raises(GitHubError) as caught:
        store(client, github, tmp_path)
    assert caught.value.kind is Kind.CONFLICT
    assert "409" in peer(github, "upload", NAME, str(tmp_path), "run.json")["error"]
