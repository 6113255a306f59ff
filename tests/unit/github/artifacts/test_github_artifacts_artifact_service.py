"""Storing an artifact: blocks, confirmation, and every way in which the service may not want it."""

from __future__ import annotations

import base64
import json
import random
import re
import zipfile
from datetime import UTC, datetime, timedelta

import pytest

from eval_gate.github.artifacts.artifact_service import ArtifactService, reserve_artifact
from eval_gate.github.client import GitHubClient
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.results.archive import write_archive
from eval_gate.text.secret import Secret
from tests.support.github import Fault
from tests.support.github.loopback import Answer
from tests.support.github.results_service import runtime_token

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
NAME = "eval-gate-results"


@pytest.fixture
def packed(tmp_path):
    (tmp_path / "run.json").write_text('{"complete": true}')
    file = tmp_path / "result.zip"
    write_archive([(tmp_path / "run.json", "run.json")], file)
    return file


@pytest.fixture
def send(github, client, packed):
    def send(file=packed, *, name=NAME, **service) -> int:
        given = {"url": github.results_url, "token": github.runtime_token} | service
        given["token"] = Secret(given["token"])
        return reserve_artifact(client, ArtifactService(**given), name, moment=NOW).upload_file(file)

    return send


def jwt(claims: object) -> str:
    text = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
    return f"e30.{base64.urlsafe_b64encode(text).rstrip(b'=').decode()}.sig"


def test_upload__small__is_stored_as_it_is_and_its_id_is_told(github, send, packed) -> None:
    artifact = github.state.artifacts[send()]
    assert (artifact.name, artifact.zip_bytes, artifact.run_id) == (NAME, packed.read_bytes(), github.current_run_id)
    assert artifact.content_type == "application/zip"


@pytest.mark.slow
def test_upload__more_than_one_block__is_put_together_in_order(github, send, tmp_path) -> None:
    """Nine megabytes that compression cannot shrink: a block of eight, and the rest."""
    (tmp_path / "noise").write_bytes(random.Random(1).randbytes(9_000_000))
    file = tmp_path / "large.zip"
    write_archive([(tmp_path / "noise", "run.json")], file)
    github.faults.add("PUT", "comp=block&", Fault.pass_(), Fault.status(503))
    assert github.state.artifacts[send(file)].zip_bytes == file.read_bytes()
    blocks = [one.path for one in github.requests("PUT", "comp=block&")]
    assert len(blocks) == 3
    ids = [re.search("blockid=([^&]+)", path)[1] for path in blocks]
    assert ids[1] == ids[2]
    assert len({len(one) for one in ids}) == 1


def test_upload__the_whole__sends_each_token_only_where_it_belongs(github, send) -> None:
    send()
    asked = github.requests("POST", "/twirp/")
    assert [one.path.rpartition("/")[2] for one in asked] == ["CreateArtifact", "FinalizeArtifact"]
    assert {one.headers["authorization"] for one in asked} == {f"Bearer {github.runtime_token}"}
    for exchange in github.requests("PUT"):
        assert "authorization" not in exchange.headers
    assert all(github.token not in str(one.headers) for one in github.log)


def test_upload__address_of_the_service_with_a_path__only_its_origin_counts(github, send) -> None:
    assert send(url=f"{github.results_url}some/path?x=y") in github.state.artifacts


def test_upload__name_is_taken_in_this_run__is_a_conflict_and_the_first_stays(github, send) -> None:
    first = send()
    with pytest.raises(GitHubError, match="already exists") as caught:
        send()
    assert caught.value.kind is FailureKind.CONFLICT
    assert list(github.state.artifacts) == [first]
    assert send(name="another") in github.state.artifacts


def test_upload__page__is_stored_as_it_is_under_its_type(github, client, tmp_path) -> None:
    page = tmp_path / "anything"
    page.write_text("<!doctype html>")
    service = ArtifactService(github.results_url, Secret(github.runtime_token))
    number = reserve_artifact(client, service, "report.html", moment=NOW, mime_type="text/html").upload_file(page)
    stored = github.state.artifacts[number]
    assert (stored.name, stored.zip_bytes, stored.content_type) == ("report.html", b"<!doctype html>", "text/html")
    (created,) = github.requests("POST", "CreateArtifact")
    assert (created.body["version"], created.body["mime_type"]) == (7, "text/html")


def test_upload__service_answers_as_act_does__is_understood(github, send) -> None:
    github.results.camel_case = True
    assert send() in github.state.artifacts


@pytest.mark.parametrize(("days", "kept"), [(30, 30), (1, 1), (400, 400), (None, 90)])
def test_upload__retention__is_what_the_repository_allows(github, send, days, kept) -> None:
    send(retention_days=days)
    (asked,) = github.requests("POST", "CreateArtifact")
    assert datetime.fromisoformat(asked.body["expires_at"]) == NOW + timedelta(days=kept)


def test_upload__time_of_another_zone__expires_in_utc(github, client, packed) -> None:
    there = NOW.astimezone(datetime.fromisoformat("2026-01-01T00:00:00+05:30").tzinfo)
    reserve_artifact(
        client, ArtifactService(github.results_url, Secret(github.runtime_token), 1), NAME, moment=there
    ).upload_file(packed)
    (asked,) = github.requests("POST", "CreateArtifact")
    assert asked.body["expires_at"] == "2026-11-22T10:00:00Z"


@pytest.mark.parametrize(
    "token",
    [
        "",
        "opaque",
        "a.b",
        "a.!!!.c",
        jwt(b"\xff"),
        jwt(b"{"),
        jwt([]),
        jwt("text"),
        jwt({}),
        jwt({"scp": None}),
        jwt({"scp": "Actions.Other:1:2"}),
        jwt({"scp": "Actions.Results:only-run"}),
        jwt({"scp": 7}),
    ],
)
def test_upload__token_of_another_form__is_refused_before_anything_is_sent(github, send, token) -> None:
    with pytest.raises(GitHubError, match="token of the artifact service: it has an unexpected format") as caught:
        send(token=token)
    assert caught.value.kind is FailureKind.REFUSED
    assert not token or token not in str(caught.value)
    assert github.log == []


def test_upload__scope_with_more_parts__takes_run_and_job(github, send) -> None:
    github.runtime_token = jwt({"scp": "Actions.Read:x Actions.Results:run-1:job-2 Actions.Results:run-3:job-4"})
    assert send(token=github.runtime_token) in github.state.artifacts
    (asked,) = github.requests("POST", "CreateArtifact")
    assert (asked.body["workflow_run_backend_id"], asked.body["workflow_job_run_backend_id"]) == ("run-1", "job-2")


CREATED = Answer(200, body={"ok": True, "signed_upload_url": "{base}/blob?sig=x"})
PUT = Answer(201)


@pytest.mark.slow
@pytest.mark.parametrize(
    "answers",
    [
        [Answer(200, body={"ok": False})],
        [Answer(200, body={"ok": True})],
        [Answer(200, body={"ok": True, "signed_upload_url": None})],
        [Answer(200, body={"ok": True, "signed_upload_url": ""})],
        [Answer(200, body={"ok": True, "signed_upload_url": "not an address"})],
        [Answer(200, body={"ok": True, "signed_upload_url": "ftp://127.0.0.1/x?y"})],
        [Answer(200)],
        [Answer(200, raw=b"<html>")],
        [Answer(200, body=[])],
        [Answer(302, headers={"Location": "https://elsewhere.test"})],
        [CREATED, PUT, PUT, Answer(200, body={"ok": False, "artifact_id": "1"})],
        [CREATED, PUT, PUT, Answer(200, body={"ok": True})],
        [CREATED, PUT, PUT, Answer(200, body={"ok": True, "artifact_id": "x1"})],
        [CREATED, PUT, PUT, Answer(200, body={"ok": True, "artifact_id": "-1"})],
        [CREATED, PUT, PUT, Answer(200, body={"ok": True, "artifact_id": [1]})],
    ],
)
def test_upload__answers_of_another_shape__are_an_error_and_no_crash(says, packed, waits, answers) -> None:
    oracle = says(*[Answer(one.status, body=one.body, raw=one.raw, headers=one.headers) for one in answers])
    for answer in oracle.answers:
        if isinstance(answer.body, dict) and "{base}" in str(answer.body.get("signed_upload_url")):
            answer.body = answer.body | {"signed_upload_url": f"{oracle.base}/blob?sig=x"}
    client = GitHubClient("http://127.0.0.1:9", Secret("t0ken"), "acme/bot", sleep=waits.append)
    with pytest.raises(GitHubError, match=f"storing the artifact {NAME}: ") as caught:
        reserve_artifact(client, ArtifactService(oracle.base, Secret(runtime_token())), NAME, moment=NOW).upload_file(
            packed
        )
    assert "sig=" not in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [{"ok": False, "signed_upload_url": "{base}/blob?sig=x"}, {"ok": True}, {"ok": True, "signed_upload_url": ""}],
)
def test_upload__service_gives_no_address__nothing_is_sent_anywhere(says, packed, waits, body) -> None:
    oracle = says(Answer(200, body=body))
    body["signed_upload_url"] = body.get("signed_upload_url", "").replace("{base}", oracle.base)
    client = GitHubClient("http://127.0.0.1:9", Secret("t0ken"), "acme/bot", sleep=waits.append)
    with pytest.raises(GitHubError, match="did not give an address to upload to"):
        reserve_artifact(client, ArtifactService(oracle.base, Secret(runtime_token())), NAME, moment=NOW).upload_file(
            packed
        )
    assert len(oracle.requests) == 1


def test_upload__number_in_place_of_text__is_an_id_too(says, packed, waits) -> None:
    oracle = says(CREATED, PUT, PUT, Answer(200, body={"ok": True, "artifact_id": 77}))
    oracle.answers[0] = Answer(200, body={"ok": True, "signed_upload_url": f"{oracle.base}/blob?sig=x"})
    client = GitHubClient("http://127.0.0.1:9", Secret("t0ken"), "acme/bot", sleep=waits.append)
    assert (
        reserve_artifact(client, ArtifactService(oracle.base, Secret(runtime_token())), NAME, moment=NOW).upload_file(
            packed
        )
        == 77
    )


@pytest.mark.parametrize("url", ["", "results.test", "http://[x", "ftp://x", "http://x:port/"])
def test_upload__address_of_the_service_that_is_none__is_an_error_and_no_crash(packed, waits, url) -> None:
    client = GitHubClient("http://127.0.0.1:9", Secret("t0ken"), "acme/bot", sleep=waits.append)
    with pytest.raises(GitHubError):
        reserve_artifact(client, ArtifactService(url, Secret(runtime_token())), NAME, moment=NOW).upload_file(packed)


def test_archive__files__are_found_under_their_names(tmp_path) -> None:
    (tmp_path / "a").write_text("one")
    (tmp_path / "b").write_text("two")
    write_archive([(tmp_path / "a", "run.json"), (tmp_path / "b", "größe.html")], tmp_path / "x.zip")
    with zipfile.ZipFile(tmp_path / "x.zip") as found:
        assert {name: found.read(name) for name in found.namelist()} == {"run.json": b"one", "größe.html": b"two"}


def test_upload__then_downloaded__is_the_same(github, send, packed, client, tmp_path) -> None:
    from eval_gate.github.artifacts.download import fetch_artifact

    artifact = github.state.artifacts[send()]
    fetch_artifact(client, artifact.id, artifact.digest, tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == packed.read_bytes()
