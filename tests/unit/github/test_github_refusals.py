"""Refusals that no permission explains, and what keeps an answer from coming: each in its own words."""

from __future__ import annotations

import datetime as dt
import http.server
import ipaddress
import os
import ssl
import threading
from collections.abc import Iterator

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from eval_gate.files.certificates import VARIABLE_NAMES, load_ssl_context, share_certificates
from eval_gate.github.artifacts.download import fetch_artifact
from eval_gate.github.client import GitHubClient
from eval_gate.github.comments import read_thread, write_comment
from eval_gate.github.commits import get_default_branch, get_pull_request
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.text.secret import Secret
from tests.support.agents import unused_port
from tests.support.github import Fault

MARKER = "<!-- eval-gate:v1 key=gate.yml.gate -->"
EVERY_PROXY = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


def refused(call, kind: FailureKind, *words: str) -> None:
    with pytest.raises(GitHubError) as found:
        call()
    assert found.value.kind is kind, found.value
    for each in words:
        assert each in str(found.value)
    assert "permissions: " not in str(found.value)


@pytest.mark.parametrize("there", [False, True], ids=["new", "updated"])
def test_comment__locked_conversation__is_no_missing_permission(github, client, waits, there) -> None:
    pull = github.state.add_pull(7)
    sticky = write_comment(client, 7, MARKER, MARKER, None) if there else None
    pull.locked = True
    refused(lambda: write_comment(client, 7, MARKER, "x", sticky), FailureKind.LOCKED, "unlock the conversation")
    assert waits == []


@pytest.mark.parametrize(
    ("fault", "words"),
    [(Fault.ip_allow_list(), "add the runner's address"), (Fault.saml(), "single sign-on")],
    ids=["allow list", "SAML"],
)
def test_organization__keeps_us_out__is_no_missing_permission(github, client, waits, fault, words) -> None:
    github.state.add_pull(7)
    github.faults.add("*", "", fault, fault)
    refused(lambda: get_pull_request(client, 7), FailureKind.BLOCKED, words)
    refused(lambda: read_thread(client, 7, MARKER), FailureKind.BLOCKED, words)
    assert waits == []


def test_repository__private__wants_the_permission_that_a_public_one_does_not(github, client) -> None:
    github.state.add_pull(7)
    github.permissions -= {"pull-requests:write"}
    assert get_pull_request(client, 7).number == 7
    assert read_thread(client, 7, MARKER).is_open
    github.state.private = True
    with pytest.raises(GitHubError, match="the job needs `permissions: pull-requests: read`"):
        get_pull_request(client, 7)
    with pytest.raises(GitHubError, match="the job needs `permissions: pull-requests: write`"):
        read_thread(client, 7, MARKER)  # whoever reads it is about to comment


def test_permission__of_a_personal_access_token__is_not_sought_in_the_workflow(github, client) -> None:
    github.faults.add("GET", "/pulls/7", Fault.status(403, message="Resource not accessible by personal access token"))
    with pytest.raises(GitHubError, match="the personal access token in `github-token` needs") as found:
        get_pull_request(client, 7)
    assert found.value.kind is FailureKind.FORBIDDEN


class Proxy(http.server.BaseHTTPRequestHandler):
    """A proxy that lets nobody through."""

    def log_message(self, *_: object) -> None:
        pass

    def do_CONNECT(self) -> None:
        self.send_error(407, "Proxy Authentication Required")

    do_GET = do_CONNECT  # noqa: N815


@pytest.fixture
def proxy() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_proxy__refuses__is_named_without_its_credentials(monkeypatch, tmp_path, proxy, waits, scheme) -> None:
    for name in EVERY_PROXY:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, f"http://user:hush@127.0.0.1:{proxy}")
    client = GitHubClient(f"{scheme}://github.invalid", Secret("t"), "acme/bot", sleep=waits.append)
    for call in (lambda: get_default_branch(client), lambda: fetch_artifact(client, 1, None, tmp_path / "x.zip")):
        refused(call, FailureKind.PROXY, f"the proxy 127.0.0.1:{proxy} refused the connection (407 Proxy", "NO_PROXY")
        with pytest.raises(GitHubError) as found:
            call()
        assert "hush" not in str(found.value)
    client.close()
    assert waits == []


def test_proxy__nobody_listens__is_named_and_tried_again(monkeypatch, waits) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{unused_port()}")
    monkeypatch.setenv("NO_PROXY", "")
    client = GitHubClient("https://github.invalid", Secret("t"), "acme/bot", sleep=waits.append)
    refused(lambda: get_default_branch(client), FailureKind.UNREACHABLE, "the proxy 127.0.0.1:")
    client.close()
    assert len(waits) == 4


def certificate(folder) -> str:
    """A file with key and certificate of a server that nobody else vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "an authority of our own")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = folder / "authority.pem"
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    file.write_bytes(key.private_bytes(*form) + made.public_bytes(serialization.Encoding.PEM))
    return str(file)


@pytest.fixture
def trusting(tmp_path, monkeypatch) -> Iterator[tuple[str, str]]:
    """The address of a server with a certificate of its own, and the file with that; no variable is set."""
    file = certificate(tmp_path)
    for name in (*VARIABLE_NAMES, *EVERY_PROXY):
        monkeypatch.delenv(name, raising=False)

    class Answering(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            body = b'{"id": 1, "default_branch": "main"}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"https://127.0.0.1:{server.server_port}", file
        server.shutdown()
        thread.join()
    load_ssl_context.cache_clear()


def test_certificate__of_an_authority_of_ones_own__is_what_the_message_is_about(trusting, tmp_path, waits) -> None:
    address, _ = trusting
    load_ssl_context.cache_clear()
    client = GitHubClient(address, Secret("t"), "acme/bot", sleep=waits.append)
    said = ("the certificate of the server is not trusted (self-signed certificate)", "the variable `SSL_CERT_FILE`")
    refused(lambda: get_default_branch(client), FailureKind.UNTRUSTED, *said)
    refused(lambda: fetch_artifact(client, 1, None, tmp_path / "x.zip"), FailureKind.UNTRUSTED, *said)
    client.close()
    assert waits == []


@pytest.mark.parametrize("name", [one for one in VARIABLE_NAMES if one != "SSL_CERT_DIR"])
def test_certificate__named_by_one_variable__reaches_every_client(trusting, monkeypatch, name) -> None:
    address, file = trusting
    load_ssl_context.cache_clear()
    monkeypatch.setenv(name, file)
    for each in VARIABLE_NAMES:  # so that they are taken back
        monkeypatch.setenv(each, os.environ.get(each, ""))
    share_certificates(os.environ)
    client = GitHubClient(address, Secret("t"), "acme/bot")
    assert get_default_branch(client) == "main"
    with client.open_http_client() as transfers:
        assert transfers.get(address).status_code == 200
    client.close()


@pytest.mark.parametrize(
    ("given", "more"),
    [
        ({}, {}),
        ({"SSL_CERT_FILE": "/a", "REQUESTS_CA_BUNDLE": "/b"}, {}),
        ({"SSL_CERT_FILE": "/a"}, {"REQUESTS_CA_BUNDLE": "/a"}),
        ({"SSL_CERT_DIR": "/a", "CURL_CA_BUNDLE": "/b"}, {}),
        ({"CURL_CA_BUNDLE": "/b"}, {"SSL_CERT_FILE": "/b"}),
        ({"REQUESTS_CA_BUNDLE": "/"}, {"SSL_CERT_DIR": "/"}),
        ({"SSL_CERT_FILE": "", "REQUESTS_CA_BUNDLE": "/b"}, {"SSL_CERT_FILE": "/b"}),
    ],
)
def test_share_certificates__one_is_named__the_others_follow_and_what_is_set_stays(given, more) -> None:
    variables = dict(given)
    share_certificates(variables)
    assert variables == given | more


@pytest.mark.parametrize("there", [False, True], ids=["no file", "no certificate in it"])
def test_certificates__cannot_be_read__is_an_error_that_names_the_variable(
    trusting, monkeypatch, tmp_path, there
) -> None:
    address, _ = trusting
    named = tmp_path / "none.pem"
    if there:
        named.write_text("none")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(named))
    client = GitHubClient(address, Secret("t"), "acme/bot", sleep=lambda _: None)
    refused(lambda: get_default_branch(client), FailureKind.REFUSED, "the certificates that REQUESTS_CA_BUNDLE names")
    client.close()
