"""Every fault of an agent against the command line: what it says, whose fault it is, how often it asks, how it ends.

Each cell is a process of ours, and an agent on a real socket that misbehaves for one of two cases.
"""

from __future__ import annotations

import asyncio
import json
import struct
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET

import pytest

from tests.integration.test_integration_error_kinds import cases_of, write_cases
from tests.support.agents import Exchange, agent, unused_port, vanishing_agent
from tests.support.program import gate

TIMEOUT_MS = 2_000


@dataclass(frozen=True)
class Fault:
    """What the agent does when it is asked `bad`, and what has to come of it."""

    name: str
    acts: Callable[[Exchange], Awaitable[None]]
    status: str
    error_kind: str | None
    asked: int
    """With two retries."""
    says: str
    timed_out: bool = False


async def hangs(exchange: Exchange) -> None:
    await asyncio.sleep(60)


async def drips(exchange: Exchange) -> None:
    exchange.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n")
    for _ in range(600):
        exchange.write(b" ")
        await exchange.writer.drain()
        await asyncio.sleep(0.1)


async def drips_a_head(exchange: Exchange) -> None:
    exchange.write(b"HTTP/1.1 200 OK\r\n")
    for number in range(600):
        exchange.write(b"X-%d: y\r\n" % number)
        await exchange.writer.drain()
        await asyncio.sleep(0.1)


async def resets(exchange: Exchange) -> None:
    linger = struct.pack("ii", 1, 0)
    exchange.writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, linger)
    exchange.reset()


async def closes(exchange: Exchange) -> None:
    exchange.writer.close()


async def cuts(exchange: Exchange) -> None:
    exchange.write(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"response": "ok"')
    await exchange.writer.drain()
    exchange.writer.close()


async def cuts_a_chunk(exchange: Exchange) -> None:
    exchange.write(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n{"response": "ok"')
    await exchange.writer.drain()
    exchange.writer.close()


async def says_too_little(exchange: Exchange) -> None:
    exchange.write(b'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"response": "ok"}')
    await exchange.writer.drain()
    exchange.writer.close()


async def says_too_much(exchange: Exchange) -> None:
    exchange.write(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"response": "ok"}')
    await exchange.writer.drain()
    await asyncio.sleep(60)


async def says_no_number(exchange: Exchange) -> None:
    exchange.write(b'HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{"response": "ok"}')


async def no_http(exchange: Exchange) -> None:
    exchange.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
    await exchange.writer.drain()
    exchange.writer.close()


async def empty(exchange: Exchange) -> None:
    exchange.answer(b"")


def status(line: str, **headers: str) -> Callable[[Exchange], Awaitable[None]]:
    async def acts(exchange: Exchange) -> None:
        exchange.answer({"error": "no"}, line, **headers)

    return acts


FAULTS = [
    Fault("hangs", hangs, "error", "agent_error", 1, "timeout: no response within 2000 ms", timed_out=True),
    Fault("drips", drips, "error", "agent_error", 1, "timeout: no response within 2000 ms", timed_out=True),
    Fault(
        "drips a head", drips_a_head, "error", "agent_error", 1, "timeout: no response within 2000 ms", timed_out=True
    ),
    Fault("resets after the request", resets, "error", "agent_error", 3, "broke before the response"),
    Fault("closes after the request", closes, "error", "agent_error", 3, "broke before the response"),
    Fault("cuts the body", cuts, "error", "agent_error", 1, "broke during the response"),
    Fault("cuts a chunk", cuts_a_chunk, "error", "agent_error", 1, "broke during the response"),
    Fault("length too small", says_too_little, "error", "agent_error", 1, "the response is not HTTP"),
    Fault("length too large", says_too_much, "error", "agent_error", 1, "timeout: no response", timed_out=True),
    Fault("length is not a number", says_no_number, "error", "agent_error", 1, "is not HTTP"),
    Fault("another protocol", no_http, "error", "agent_error", 1, "is not HTTP"),
    Fault("empty", empty, "error", "agent_error", 1, "is not JSON"),
    Fault(
        "404",
        status("404 Not Found"),
        "error",
        "agent_error",
        1,
        "(the server has nothing at this path: check the path",
    ),
    Fault(
        "405",
        status("405 Method Not Allowed"),
        "error",
        "agent_error",
        1,
        "(it expects another method: set the target's method",
    ),
    Fault(
        "422",
        status("422 Unprocessable Entity"),
        "error",
        "agent_error",
        1,
        "(it expects other fields: set the target's",
    ),
    Fault(
        "401",
        status("401 Unauthorized"),
        "error",
        "agent_unreachable",
        1,
        "(it requires authentication: set the target's headers",
    ),
    Fault("500", status("500 Oh"), "error", "agent_error", 1, "HTTP 500"),
    Fault("503", status("503 Busy"), "error", "agent_error", 3, "HTTP 503"),
    Fault("redirects to itself", status("302 Found", Location="/chat"), "error", "agent_error", 1, "HTTP 302"),
    Fault("429 storm", status("429 Too Many"), "error", "agent_unreachable", 3, "(lower requestsPerMinute"),
    Fault("429 for an hour", status("429 Too Many", Retry_After="3600"), "error", "agent_unreachable", 1, "HTTP 429"),
    Fault(
        "429 by a clock of another year",
        status("429 Too Many", Retry_After="Wed, 21 Oct 2099 07:28:00 GMT", Date="Thu, 01 Jan 1970 00:00:00 GMT"),
        *("error", "agent_unreachable", 3, "HTTP 429"),
    ),
]


def target(folder: Path, url: str) -> None:
    written = {"name": "a", "provider": "http", "url": url, "initialDelayMs": 10, "maxRetries": 2}
    (folder / "eval-gate.json").write_text(json.dumps({"targets": [written]}))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_agent__fault_in_one_case__is_blamed_asked_so_often_and_the_other_case_is_judged(tmp_path, fault) -> None:
    async def handler(exchange: Exchange) -> None:
        if exchange.json["message"] == "bad":
            await fault.acts(exchange)
        else:
            exchange.answer({"response": "ok"})

    expect = {"responseContains": ["ok"]}
    write_cases(tmp_path, {"gs-bad": {"message": "bad", **expect}, "gs-good": {"message": "good", **expect}})
    begun = time.monotonic()
    with agent(handler) as running:
        target(tmp_path, running.url)
        done = gate(tmp_path, "run", "--timeout-ms", str(TIMEOUT_MS))
        asked = [exchange.json["message"] for exchange in running.requests]
    found = cases_of(tmp_path)
    bad, good = found["gs-bad"], found["gs-good"]
    said = done.stdout + done.stderr
    assert (bad["status"], bad["errorKind"], bad["trials"][0]["timedOut"]) == (
        fault.status,
        fault.error_kind,
        fault.timed_out,
    )
    assert fault.says in f"{bad['error']} ({bad['errorHint']})", bad
    assert (good["status"], asked.count("good")) == ("passed", 1), good
    assert asked.count("bad") == fault.asked, bad["error"]
    code = 3 if bad["errorKind"] == "agent_unreachable" else 1
    assert (done.returncode, "Traceback" in said) == (code, False), said
    assert time.monotonic() - begun < 40


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.asked > 1], ids=lambda fault: fault.name)
def test_agent__fault_that_passes__is_asked_again_and_does_not_count(tmp_path, fault) -> None:
    """A lost answer is asked for again where nobody can have had half of one."""

    async def handler(exchange: Exchange) -> None:
        if exchange.number == 0:
            await fault.acts(exchange)
        else:
            exchange.answer({"response": "ok"})

    write_cases(tmp_path, {"gs-bad": {"message": "bad", "responseContains": ["ok"]}})
    with agent(handler) as running:
        target(tmp_path, running.url)
        done = gate(tmp_path, "run", "--timeout-ms", str(TIMEOUT_MS))
        asked = len(running.requests)
    (found,) = cases_of(tmp_path).values()
    assert (found["status"], found["trials"][0]["status"], asked, done.returncode) == ("passed", "passed", 2, 0)


def test_agent__nobody_listens__no_case_is_run_and_nothing_is_decided(tmp_path) -> None:
    write_cases(tmp_path, {"gs-bad": {"message": "bad", "responseContains": ["ok"]}})
    port = unused_port()
    target(tmp_path, f"http://127.0.0.1:{port}/chat")
    done = gate(tmp_path, "run", "--timeout-ms", str(TIMEOUT_MS))
    (found,) = cases_of(tmp_path).values()
    assert (found["status"], found["error"], done.returncode) == ("not_run", None, 3), done.stdout
    assert f"no connection to 127.0.0.1:{port}: Connection refused" in done.stdout


def test_agent__goes_away_during_the_run__is_unreachable_and_nothing_is_decided(tmp_path) -> None:
    write_cases(tmp_path, {"gs-bad": {"message": "bad", "responseContains": ["ok"]}})
    with vanishing_agent() as url:
        target(tmp_path, url)
        done = gate(tmp_path, "run", "--timeout-ms", str(TIMEOUT_MS))
    (found,) = cases_of(tmp_path).values()
    assert (found["status"], found["errorKind"], done.returncode) == ("error", "agent_unreachable", 3), done.stdout
    assert "no connection" in found["error"]


@pytest.mark.parametrize("described", ["json", "sse", "ndjson"])
def test_run__every_answer_is_of_another_format_than_described__could_not_decide(tmp_path, described) -> None:
    """Whichever it is: a body that cannot be read is no wrong answer."""

    async def says_words(exchange: Exchange) -> None:
        exchange.answer(b"It is sunny.\nok\n", Content_Type="text/plain")

    write_cases(tmp_path, {"a": {"responseContains": ["ok"]}, "b": {"responseContains": ["ok"]}})
    with agent(says_words) as running:
        target = {"name": "a", "provider": "http", "url": running.url, "responseFormat": described}
        (tmp_path / "targets.yaml").write_text(json.dumps({"targets": [target]}))
        done = gate(tmp_path, "run", "--target", "a", "--fail-on", "failures")
    assert done.returncode == 3, done.stdout
    assert "GATE INCONCLUSIVE" in done.stdout
    assert "2 errors" in done.stdout
