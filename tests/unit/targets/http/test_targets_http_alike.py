"""The same bytes through aiohttp and through what asks without it: the same answer, or an error of the same kind."""

import asyncio
import gzip
import random
from collections.abc import Coroutine

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.targets.base import TargetError
from eval_gate.targets.http.address import address_of
from eval_gate.targets.http.connection import Bounds, Connection, SentRequest, head_of
from eval_gate.targets.http.incoming import IncomingAnswer, NoHttpError
from eval_gate.targets.http.plain_pool import LostError
from eval_gate.text.foreign.unpacking import PackingError
from eval_gate.text.redact import Redactor

Outcome = tuple[object, ...]
LIMIT = 1_000
PACKED = gzip.compress(b"hello world" * 9, mtime=0)
OK = b"HTTP/1.1 200 OK\r\n"
LENGTH = OK + b"Content-Length: 2\r\n\r\nok"
CHUNKS = OK + b"Transfer-Encoding: chunked\r\n\r\n"
WHOLE = [
    LENGTH,
    CHUNKS + b"2\r\nok\r\n0\r\n\r\n",
    CHUNKS + b"2;a=b\r\nok\r\n0\r\nX: 1\r\n\r\n",
    OK + b"\r\nto the end",
    b"HTTP/1.0 200 X\r\n\r\nto the end",
    b"HTTP/1.1 100 Continue\r\n\r\n" + LENGTH,
    b"HTTP/1.1 103 Early\r\nConnection: close\r\n\r\n" + LENGTH,
    b"HTTP/1.1 204 No\r\nContent-Length: 5\r\nTransfer-Encoding: gzip\r\n\r\n",
    b"HTTP/1.1 204 No\r\nTransfer-Encoding: gzip\r\n\r\n",
    b"HTTP/1.1 304 No\r\nContent-Length: 5\r\n\r\n",
    b"HTTP/1.1 404 No\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno",
    b"HTTP/1.1 101 Over\r\nConnection: upgrade\r\nUpgrade: ws\r\n\r\n",
    b"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(PACKED) + PACKED,
    OK + b"Content-Encoding: br\r\nContent-Length: 1\r\n\r\nx",
    OK + b"X:\r\nContent-Length:\r\n 2\r\n\r\nok",
]
BROKEN = [
    OK + b"Content-Length : 9\r\n\r\nhalf",
    OK + b"Transfer-Encoding : chunked\r\n\r\n9\r\nhalf",
    OK + b"Content-Length: 9\r\n\r\nhalf",
    CHUNKS + b"9\r\nhalf",
    CHUNKS + b"0\r\n",
    OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nok",
    OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    OK + b"Content-Length: 2, 2\r\n\r\nok",
    OK + b"Content-Length: +2\r\n\r\nok",
    OK + b"Content-Length: 0x2\r\n\r\nok",
    OK + b"Content-Length: 99999999999999999999999\r\n\r\nok",
    OK + b"X: a\0b\r\nContent-Length: 2\r\n\r\nok",
    CHUNKS + b"-2\r\nok\r\n0\r\n\r\n",
    CHUNKS + b"0x2\r\nok\r\n0\r\n\r\n",
    CHUNKS + b"2\nok\n0\n\n",
    CHUNKS + b"2\r\nokay\r\n0\r\n\r\n",
    b"",
    b"HTTP/1.1 200",
    b"ICY 200 OK\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"HTTP/1.1 2000 OK\r\n\r\n",
    OK + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope",
]
PIECES = [
    *(b"\r\n", b"\n", b"\r", b" ", b"\t", b":", b"\0", b"\xff", b"0", b"9", b"1", b";", b",", b"x", b" folded\r\n"),
    *(b"Content-Length: 3\r\n", b"Content-Length: 0\r\n", b"Content-Length : 9\r\n", b"Connection: close\r\n"),
    *(b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding : chunked\r\n", b"Transfer-Encoding: chunked \r\n"),
    *(b"Connection: upgrade\r\nUpgrade: h2c\r\n", b"X:\r\n", OK, b"Content-Encoding: gzip\r\n", b"RTSP", b"2.0"),
]
STRICTER = "its Transfer-Encoding is ", "its status is "
"""What aiohttp takes: a body in another coding than chunks as it stands, and three digits that are no status."""


async def outcome(asking: Coroutine[object, object, Outcome]) -> Outcome:
    try:
        return await asyncio.wait_for(asking, 20)
    except TargetError as error:
        return "no HTTP", str(error)
    except LostError as error:
        return "lost", error.begun


def by_both(method: str, sent: bytes, until: int) -> tuple[Outcome, Outcome]:
    """What aiohttp makes of the bytes up to `until`, and what we make of them all, each over a connection."""

    async def main() -> tuple[Outcome, Outcome]:
        says = sent[:until]
        ended = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            ended.append(asyncio.current_task())
            try:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(says)
                writer.write_eof()
                await reader.read()
            except OSError:
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = address_of(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        request = SentRequest(method, url, {"accept": "*/*"})
        connection = Connection(Redactor([]), Bounds(LIMIT, frozenset()), 1, secure=False)

        async def theirs() -> Outcome:
            async with connection.opened(request) as answer:
                return head_of(answer).status, await connection.body(answer)

        async def ours() -> Outcome:
            nonlocal says
            says = sent
            head, body = await connection.exchange(request)
            return head.status, body

        found = await outcome(theirs()), await outcome(ours())
        await connection.aclose()
        server.close()
        await asyncio.gather(*ended)
        return found

    return asyncio.run(main())


def byte_by_byte(method: str, sent: bytes) -> tuple[Outcome, int]:
    """What we make of bytes that come one by one, and after how many of them the answer is whole."""
    answer = IncomingAnswer(method, success_limit=LIMIT, error_limit=LIMIT)
    for at in range(len(sent)):
        try:
            answer.feed(sent[at : at + 1])
        except (NoHttpError, PackingError) as error:
            return ("no HTTP", str(error)), len(sent)
        if answer.whole:
            return (answer.head.status, bytes(answer.body)), at + 1
    if answer.ended():
        return (answer.head.status, bytes(answer.body)), len(sent)
    return ("lost", answer.head is not None), len(sent)


def check(method: str, sent: bytes) -> None:
    """What comes behind a whole answer is none of it here, wherever a piece ends; aiohttp minds it in the same one."""
    single, until = byte_by_byte(method, sent)
    theirs, ours = by_both(method, sent, until)
    kinds = [found if found[0] != "no HTTP" else found[:1] for found in (single, theirs, ours)]
    assert kinds[0] == kinds[2]
    if ours[0] == "no HTTP" and any(why in str(ours[1]) for why in STRICTER):
        return
    assert kinds[1] == kinds[2], (sent, theirs, ours)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["POST", "HEAD"])
@pytest.mark.parametrize("sent", [*WHOLE, *BROKEN], ids=range(len(WHOLE) + len(BROKEN)))
def test_exchange__bytes_that_aiohttp_reads_too__are_the_same_answer_or_kind_of_error(sent: bytes, method: str) -> None:
    check(method, sent)


@given(st.sampled_from(["POST", "POST", "HEAD"]), st.sampled_from(WHOLE), st.randoms(use_true_random=False))
def test_exchange__answers_with_something_wrong__are_what_they_are_to_aiohttp(
    method: str, sent: bytes, chance: random.Random
) -> None:
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(sent) + 1)
        if chance.random() < 0.5:
            at = max(sent.find(b"\r\n", at) + 2, 0)
        piece = chance.choice(PIECES)
        cut = chance.choice([0, 0, 0, 1, len(piece)])
        sent = sent[:at] + piece + sent[at + cut :] if chance.random() < 0.85 else sent[:at]
    check(method, sent)
