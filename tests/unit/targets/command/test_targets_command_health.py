"""The health check: once, shared, before anything is asked; and nothing is asked when it fails."""

import asyncio
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from eval_gate.model.conversation import Message
from eval_gate.targets.base import Request, TargetError, TargetFault
from eval_gate.targets.command.settings import CliSettings
from eval_gate.targets.command.target import CliTarget
from eval_gate.text.redaction import Redactor

RULE = "agentv.cli-template-execution.optional-health-check"


def target(root: Path, check: dict, secrets=(), **settings) -> CliTarget:
    described = {
        "name": "desk",
        "commandTemplate": "echo asked >> asked; echo {PROMPT}",
        "healthcheck": check,
        **settings,
    }
    return CliTarget(
        CliSettings.model_validate(described),
        root=root,
        environment={"PATH": os.environ["PATH"], "GITHUB_TOKEN": "t"},
        redact=Redactor(secrets),
    )


def asked(case_id: str = "a", eval_file: str = "") -> Request:
    return Request(case_id, (Message(role="user", content="hello"),), eval_file=eval_file)


def command(line: str, **others) -> dict:
    return {"type": "command", "commandTemplate": line, **others}


def failure(desk: CliTarget, *requests: Request) -> TargetError:
    async def ask() -> list[object]:
        found = await asyncio.gather(*(desk.respond(one) for one in requests or [asked()]), return_exceptions=True)
        await desk.aclose()
        return found

    errors = asyncio.run(ask())
    assert all(isinstance(error, TargetError) for error in errors), errors
    assert len({error.message for error in errors}) == 1
    return errors[0]


def pid_in(file: Path) -> int:
    deadline = time.monotonic() + 10
    while not (file.exists() and file.read_text().endswith("\n")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return int(file.read_text())


class _Service(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        if self.path == "/slow":
            self.server.over.wait(30)
        status = {"/ok": 204, "/slow": 200, "/moved": 302}.get(self.path.partition("?")[0], 503)
        self.send_response(status)
        self.send_header("location", "/ok")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_) -> None:
        pass


@contextmanager
def service() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Service) as server:
        server.asked, server.over = [], threading.Event()
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()
            thread.join()


@pytest.mark.contract(RULE)
def test_health__optional_health_check__by_http_is_asked_once(tmp_path) -> None:
    async def run(desk: CliTarget) -> list[str]:
        await desk.check_health()
        answers = await asyncio.gather(*(desk.respond(asked(str(number))) for number in range(5)))
        await desk.aclose()
        return [answer.text for answer in answers]

    with service() as server:
        url = f"http://127.0.0.1:{server.server_port}/ok"
        assert asyncio.run(run(target(tmp_path, {"type": "http", "url": url}))) == ["hello"] * 5
        assert server.asked == ["/ok"]


@pytest.mark.slow
@pytest.mark.contract(RULE)
@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ("broken?key=secret", "http://HOST/broken answered HTTP 503"),
        ("moved", "http://HOST/moved answered HTTP 302"),
        ("slow", "http://HOST/slow did not respond within 1 s"),
    ],
)
def test_health__optional_health_check__http_that_fails_asks_nothing(tmp_path, page, reason) -> None:
    with service() as server:
        host = f"127.0.0.1:{server.server_port}"
        check = {
            "type": "http",
            "url": f"http://user:secret@{host}/{page}",
            "timeoutSeconds": 1 if page == "slow" else 30,
        }
        error = failure(target(tmp_path, check), asked("a"), asked("b"))
        assert len(server.asked) == 1
    assert error.message == f"CLI healthcheck failed for 'desk': {reason.replace('HOST', host)}"
    assert error.fault is TargetFault.UNREACHABLE
    assert not (tmp_path / "asked").exists()


def test_health__nobody_there__is_said(tmp_path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}/health"
        with pytest.raises(TargetError, match="CLI healthcheck failed for 'desk': http://127"):
            asyncio.run(target(tmp_path, {"type": "http", "url": url}).check_health())


@pytest.mark.slow
@pytest.mark.contract(RULE)
def test_health__optional_health_check__by_command_is_run_once_for_all(tmp_path) -> None:
    desk = target(tmp_path, command("sleep 0.2; echo {EVAL_ID}{PROMPT}{FILES}{ATTEMPT} >> checked; env > seen"))

    async def run() -> None:
        await asyncio.gather(*(desk.respond(asked(str(number))) for number in range(5)))
        await desk.respond(asked("again"))
        await desk.aclose()

    asyncio.run(run())
    assert (tmp_path / "checked").read_text() == "healthcheck0\n"
    assert (tmp_path / "asked").read_text() == "asked\n" * 6
    assert "GITHUB_TOKEN" not in (tmp_path / "seen").read_text()


@pytest.mark.slow
@pytest.mark.contract(RULE)
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("echo no licence hunter22 >&2; exit 3", "the command exited with code 3: no licence ***"),
        ("false", "the command exited with code 1"),
        ("sleep 60", "the command did not end within 0.5 s"),
        ("kill -9 $$", "the command was ended by signal 9"),
    ],
)
def test_health__optional_health_check__command_that_fails_asks_nothing(tmp_path, line, reason) -> None:
    desk = target(tmp_path, command(f"echo x >> checked; {line}", timeoutSeconds=0.5), secrets=["hunter22"])
    error = failure(desk, asked("a"), asked("b"), asked("c"))
    assert (error.message, error.fault) == (f"CLI healthcheck failed for 'desk': {reason}", TargetFault.UNREACHABLE)
    assert (tmp_path / "checked").read_text() == "x\n"
    assert not (tmp_path / "asked").exists()


@pytest.mark.slow
def test_health__time_limit_of_the_target__holds_where_it_has_none(tmp_path) -> None:
    error = failure(target(tmp_path, command("sleep 60"), timeoutSeconds=0.3))
    assert error.message.endswith("did not end within 0.3 s")


@pytest.mark.parametrize(
    ("check_cwd", "own_cwd", "place"),
    [
        (None, None, "evals"),
        ("tools", None, "evals/tools"),
        (None, "tools", "evals/tools"),
        ("tools", "gone", "evals/tools"),
    ],
)
def test_health__folder__is_that_of_the_eval_file_and_waits_for_it(tmp_path, check_cwd, own_cwd, place) -> None:
    (tmp_path / "evals/tools").mkdir(parents=True)
    check = command("echo checked > here") | ({"cwd": check_cwd} if check_cwd else {})
    desk = target(tmp_path, check, **({"cwd": own_cwd} if own_cwd else {}))

    async def run() -> None:
        await desk.check_health()
        assert not list(tmp_path.rglob("here"))
        if own_cwd == "gone":
            with pytest.raises(TargetError):
                await desk.respond(asked(eval_file="evals/one.yaml"))
        else:
            await desk.respond(asked(eval_file="evals/one.yaml"))
        await desk.aclose()

    asyncio.run(run())
    assert (tmp_path / place / "here").exists()


def test_health__folder_that_is_known_from_the_start__is_not_waited_for(tmp_path) -> None:
    desk = target(tmp_path, command("exit 4", cwd=str(tmp_path)))
    with pytest.raises(TargetError, match="exited with code 4"):
        asyncio.run(desk.check_health())


def test_health__folder_that_is_not_there__is_the_reason(tmp_path) -> None:
    error = failure(target(tmp_path, command("true", cwd="gone")))
    assert f"the working directory {tmp_path / 'gone'} cannot be used" in error.message


@pytest.mark.slow
def test_health__one_who_waits_is_cancelled__the_others_still_learn_it(tmp_path) -> None:
    async def run() -> str:
        desk = target(tmp_path, command("echo x >> checked; sleep 0.4"))
        first, second = (asyncio.create_task(desk.respond(asked(name))) for name in "ab")
        await asyncio.sleep(0.1)
        first.cancel()
        found = await second
        await asyncio.gather(first, return_exceptions=True)
        await desk.aclose()
        return found.text

    assert asyncio.run(run()) == "hello"
    assert (tmp_path / "checked").read_text() == "x\n"


def test_aclose__check_that_still_runs__is_ended(tmp_path) -> None:
    async def run() -> int:
        desk = target(tmp_path, command("echo $$ > checking; exec sleep 60"))
        task = asyncio.create_task(desk.respond(asked()))
        pid = await asyncio.to_thread(pid_in, tmp_path / "checking")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await desk.aclose()
        return pid

    assert not Path(f"/proc/{asyncio.run(run())}").exists()
    assert not (tmp_path / "asked").exists()


def test_health__none_described__nothing_is_asked(tmp_path) -> None:
    settings = CliSettings.model_validate({"name": "desk", "commandTemplate": "echo hi"})
    desk = CliTarget(settings, root=tmp_path, environment=os.environ, redact=Redactor())
    asyncio.run(desk.check_health())
    asyncio.run(desk.aclose())
