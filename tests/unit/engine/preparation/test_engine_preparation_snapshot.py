"""Seed manifest and snapshot: from a file, a command, a URL; and everything that can go wrong on the way."""

import asyncio
import os
import shlex
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from eval_gate.engine.preparation import snapshot
from eval_gate.engine.preparation.snapshot import capture_snapshot, load_seed
from eval_gate.errors import ExitCode, GateError
from eval_gate.process import run as run_module
from tests.support.agents import Exchange, agent
from tests.support.packed import once_packed, twice_packed
from tests.support.processes import eventually, gone

DATA = {"prices": {"AAPL": {"current": 178.5}}, "name": "é"}
TEXT = '{"prices": {"AAPL": {"current": 178.50}}, "name": "é"}'


@pytest.fixture(autouse=True)
def _in_own_folder(tmp_path, monkeypatch) -> None:
    """As root, programs are whom the working directory belongs to: here it is the test's own folder."""
    monkeypatch.chdir(tmp_path)


def capture(root: Path, **source):
    return asyncio.run(capture_snapshot(root=root, environment=os.environ, **source))


def failed(root: Path, **source) -> GateError:
    with pytest.raises(GateError) as caught:
        capture(root, **source)
    assert (caught.value.code, caught.value.exit_code) == ("snapshot-failed", ExitCode.INCOMPLETE)
    assert caught.value.message.startswith("the snapshot could not be captured: ")
    assert "snapshotEnabled" in str(caught.value.hint)
    return caught.value


def python(code: str) -> str:
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"


# seed manifest


def test_load_seed__json_object__is_read(tmp_path) -> None:
    (tmp_path / "seed.json").write_text(TEXT, encoding="utf-8-sig")
    assert load_seed(tmp_path / "seed.json", explicit=True) == DATA


@pytest.mark.contract("seed.default-missing")
def test_load_seed__default_missing__is_none(tmp_path) -> None:
    assert load_seed(tmp_path / "evals/seed-manifest.json", explicit=False) is None


@pytest.mark.contract("seed.explicit-missing")
def test_load_seed__named_and_missing__is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GateError) as caught:
        load_seed(tmp_path / "data/seed.json", explicit=True)
    assert (caught.value.code, caught.value.exit_code) == ("seed-manifest-not-found", ExitCode.USAGE)
    assert caught.value.message == "the seed manifest data/seed.json does not exist"


@pytest.mark.contract("seed.mapping")
@pytest.mark.parametrize("explicit", [True, False])
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[1]", "seed.json:1: expected a mapping, got a list"),
        ("null", "seed.json:1: expected a mapping, got null"),
        ('{\n  "a": 1,\n  "b": NaN\n}', "seed.json: NaN is not a JSON value"),
        ('{\n  "a": 1\n  "b": 2\n}', "seed.json:3: expecting ',' delimiter (column 3)"),
    ],
)
def test_load_seed__anything_but_an_object__is_refused_with_file_and_line(
    tmp_path, monkeypatch, text, problem, explicit
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "seed.json").write_text(text)
    with pytest.raises(GateError) as caught:
        load_seed(tmp_path / "seed.json", explicit=explicit)
    assert [str(found) for found in caught.value.problems] == [problem]
    assert caught.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize("explicit", [True, False])
def test_load_seed__folder__is_refused(tmp_path, explicit) -> None:
    with pytest.raises(GateError) as caught:
        load_seed(tmp_path, explicit=explicit)
    assert caught.value.code == "seed-manifest-unreadable"


# snapshot


@pytest.mark.contract("snapshot.not-configured")
def test_capture_snapshot__not_configured__is_none(tmp_path) -> None:
    assert capture(tmp_path) is None


def test_capture_snapshot__two_sources__is_a_usage_error(tmp_path) -> None:
    with pytest.raises(GateError) as caught:
        capture(tmp_path, path="a.json", command="cat a.json")
    assert (caught.value.code, caught.value.exit_code) == ("conflicting-snapshot-sources", ExitCode.USAGE)


@pytest.mark.contract("snapshot.sources")
def test_capture_snapshot__file__is_relative_to_the_root(tmp_path) -> None:
    (tmp_path / "snapshot.json").write_text(TEXT, encoding="utf-8")
    assert capture(tmp_path, path="snapshot.json") == DATA


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, "snapshot.json: No such file or directory", id="missing"),
        pytest.param("[]", "snapshot.json is not a JSON object", id="no object"),
        pytest.param("{", "snapshot.json is not valid JSON", id="no JSON"),
    ],
)
def test_capture_snapshot__file_that_fails__is_no_run(tmp_path, content, message) -> None:
    if content is not None:
        (tmp_path / "snapshot.json").write_text(content)
    assert failed(tmp_path, path="snapshot.json").message.endswith(f": {message}")


def test_capture_snapshot__file_too_large__is_no_run(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(snapshot, "MAX_BYTES", 10)
    (tmp_path / "snapshot.json").write_text(TEXT)
    assert failed(tmp_path, path="snapshot.json").message.endswith("snapshot.json is larger than 10 bytes")


@pytest.mark.contract("snapshot.sources")
def test_capture_snapshot__command__is_run_by_the_shell_in_the_root(tmp_path) -> None:
    (tmp_path / "part.json").write_text(TEXT, encoding="utf-8")
    assert capture(tmp_path, command="echo progress >&2; cat part.json | cat && true") == DATA


def test_capture_snapshot__much_output__comes_whole(tmp_path) -> None:
    found = capture(tmp_path, command=python("import json; print(json.dumps({'a': 'x' * 3_000_000}))"))
    assert len(found["a"]) == 3_000_000


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param("echo no luck >&2; exit 7", "the command exited with code 7: no luck", id="exit code"),
        pytest.param("exit 1", "the command exited with code 1", id="nothing said"),
        pytest.param("kill -9 $$", "the command was ended by signal 9", id="killed"),
        pytest.param("echo oops", "the output of the snapshot command is not valid JSON", id="no JSON"),
        pytest.param("true", "the output of the snapshot command is not valid JSON", id="nothing printed"),
        pytest.param("echo '[]'", "the output of the snapshot command is not a JSON object", id="no object"),
    ],
)
def test_capture_snapshot__command_that_fails__is_no_run(tmp_path, line, message) -> None:
    assert failed(tmp_path, command=line).message == f"the snapshot could not be captured: {message}"


def test_capture_snapshot__bad_json_of_a_command__names_source_and_line(tmp_path) -> None:
    [problem] = failed(tmp_path, command='printf \'{\\n "a": 1\\n "b": 2}\'').problems
    assert str(problem).startswith("the output of the snapshot command:3: ")


def test_capture_snapshot__command_that_says_much__is_quoted_at_its_end(tmp_path) -> None:
    code = "import sys; sys.stderr.write('noise ' * 100_000 + 'the reason'); sys.exit(2)"
    message = failed(tmp_path, command=python(code)).message
    assert message.endswith("noise the reason")
    assert len(message) < 1200


@pytest.mark.slow
def test_capture_snapshot__command_without_end__is_ended_with_its_children(tmp_path) -> None:
    line = "echo waiting >&2; sh -c 'echo $$ > child; sleep 60; true' & sleep 60"
    began = time.monotonic()
    error = failed(tmp_path, command=line, time_limit_s=0.5)
    assert error.message.endswith("the command did not finish within 0.5 s: waiting")
    assert time.monotonic() - began < 10
    assert gone(tmp_path / "child")


@pytest.mark.slow
def test_capture_snapshot__command_that_ignores_the_request_to_end__is_ended_by_force(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(run_module, "GRACE_S", 0.2)
    line = "trap '' TERM; echo $$ > child; while true; do sleep 0.05; done"
    failed(tmp_path, command=line, time_limit_s=0.5)
    assert gone(tmp_path / "child")


def test_capture_snapshot__child_left_in_the_background__does_not_hold_up_the_run(tmp_path) -> None:
    began = time.monotonic()
    line = "sh -c 'echo $$ > child; sleep 60; true' & while ! [ -s child ]; do sleep 0.01; done; echo '{}'"
    assert capture(tmp_path, command=line, time_limit_s=30) == {}
    assert time.monotonic() - began < 10
    assert gone(tmp_path / "child")


def test_capture_snapshot__command_that_prints_without_end__is_ended(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(snapshot, "MAX_BYTES", 100_000)
    error = failed(tmp_path, command="echo $$ > child; exec yes", time_limit_s=30)
    assert error.message.endswith("the command printed more than 100,000 bytes")
    assert gone(tmp_path / "child")


def test_capture_snapshot__cancelled__leaves_no_process(tmp_path) -> None:
    async def cancel() -> None:
        task = asyncio.create_task(
            capture_snapshot(command="echo $$ > child; sleep 60", root=tmp_path, environment=os.environ)
        )
        child = tmp_path / "child"
        assert await asyncio.to_thread(eventually, lambda: child.exists() and child.read_text().endswith("\n"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert gone(tmp_path / "child")


def test_capture_snapshot__command_that_reads__gets_no_input(tmp_path) -> None:
    assert capture(tmp_path, command="cat; echo '{}'", time_limit_s=10) == {}


def test_capture_snapshot__root_that_is_gone__is_no_run(tmp_path) -> None:
    assert "No such file" in failed(tmp_path / "gone", command="echo '{}'").message


class _Prices(BaseHTTPRequestHandler):
    """A service with current values, and what such services do instead."""

    def do_GET(self) -> None:
        match self.path.partition("?")[0]:
            case "/slow":
                time.sleep(1.0)
            case "/moved":
                self._answer(302, b"", location="/now")
            case "/circle":
                self._answer(302, b"", location="/circle")
            case "/gone":
                self._answer(503, b"come back\nlater", location="")
            case "/cut":
                self.send_response(200)
                self.send_header("content-length", "1000")
                self.end_headers()
                self.wfile.write(b"{")
            case "/bad":
                self._answer(200, b'{\n "a": oops}')
            case _:
                self._answer(200, TEXT.encode())

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"content-length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        pass


@contextmanager
def prices() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Prices) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.contract("snapshot.sources")
@pytest.mark.parametrize("page", ["now", "now?key=secret", "moved"])
def test_capture_snapshot__url__is_asked(tmp_path, page) -> None:
    with prices() as host:
        assert capture(tmp_path, path=f"http://{host}/{page}") == DATA


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("gone", "http://HOST/gone responded with 503: come back later"),
        ("slow", "http://HOST/slow did not respond within 0.5 s"),
        ("bad", "http://HOST/bad is not valid JSON"),
        ("circle", "http://HOST/circle: Exceeded maximum allowed redirects."),
    ],
)
def test_capture_snapshot__url_that_fails__is_no_run_and_shows_no_secret(tmp_path, page, message) -> None:
    with prices() as host:
        limit = 0.5 if page == "slow" else 30
        error = failed(tmp_path, path=f"http://user:secret@{host}/{page}?key=secret", time_limit_s=limit)
    assert error.message == f"the snapshot could not be captured: {message.replace('HOST', host)}"


def test_capture_snapshot__answer_that_breaks_off__is_no_run(tmp_path) -> None:
    with prices() as host:
        assert f"http://{host}/cut: " in failed(tmp_path, path=f"http://{host}/cut").message


def test_capture_snapshot__answer_too_large__is_no_run(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(snapshot, "MAX_BYTES", 10)
    with prices() as host:
        assert failed(tmp_path, path=f"http://{host}/now").message.endswith("/now is larger than 10 bytes")


@pytest.mark.parametrize("url", ["http://", "https://[x/", "http://host:port/"])
def test_capture_snapshot__no_url__is_no_run(tmp_path, url) -> None:
    assert "http(s)://host" in failed(tmp_path, path=url).message


def test_capture_snapshot__inherited_environment__reaches_the_command(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(os.environ, "PRICE", "7")
    assert capture(tmp_path, command='printf \'{"price": %s}\' "$PRICE"') == {"price": 7}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "encoding", "said"),
    [
        (twice_packed, "gzip, gzip", "is compressed 2 times, which is not supported"),
        (once_packed, "gzip", "is larger than 16,000,000 bytes"),
    ],
    ids=["packed twice", "packed"],
)
def test_finding_4__snapshot_that_stands_for_more__is_no_run(tmp_path, body, encoding, said) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.answer(body(), Content_Encoding=encoding)

    with agent(handler) as running:
        assert said in failed(tmp_path, path=running.url).message
