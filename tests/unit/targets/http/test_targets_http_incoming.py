"""HTTP answers as their bytes come, in any pieces."""

import gzip
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.targets.http.incoming import MAX_HEAD, IncomingAnswer, NoHttpError
from eval_gate.text.foreign.unpacking import PackingError

LIMIT = 1_000


def fed(pieces: list[bytes], *, method: str = "POST", ended: bool = False) -> IncomingAnswer:
    """What has come once all pieces are there, or the answer is whole."""
    answer = IncomingAnswer(method, success_limit=LIMIT, error_limit=10)
    for piece in pieces:
        if answer.whole:
            break
        answer.feed(piece)
    if ended:
        answer.ended()
    return answer


def told(answer: IncomingAnswer) -> tuple[object, ...]:
    return answer.whole, answer.head, bytes(answer.body)


def head(*lines: str, status: str = "HTTP/1.1 200 OK") -> bytes:
    return "".join(f"{line}\r\n" for line in (status, *lines, "")).encode("latin-1")


@st.composite
def answers(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """An answer as it is sent, and its body."""
    body = draw(st.binary(max_size=60))
    sent, lines = body, []
    if draw(st.booleans()):
        sent, lines = gzip.compress(body), ["Content-Encoding: gzip"]
    before = draw(st.sampled_from([b"", head(status="HTTP/1.1 100 Continue"), b"\r\n"]))
    if draw(st.booleans()):
        return before + head(*lines, f"Content-Length: {len(sent)}") + sent, body
    cuts = sorted(draw(st.lists(st.integers(0, len(sent)), max_size=4)))
    parts = [sent[a:b] for a, b in zip([0, *cuts], [*cuts, len(sent)], strict=True) if a < b]
    chunks = b"".join(b"%x;a=b\r\n%b\r\n" % (len(part), part) for part in parts)
    trailer = draw(st.sampled_from([b"", b"X-Sum: 1\r\n"]))
    begin = head(*lines, "Transfer-Encoding: chunked")
    begin = draw(st.sampled_from([begin, begin.replace(b"\r", b"")]))
    return before + begin + chunks + b"0\r\n" + trailer + b"\r\n", body


@given(answers(), st.lists(st.integers(0, 400), max_size=6))
def test_feed__in_any_pieces__gives_the_same_answer(answer: tuple[bytes, bytes], cuts: list[int]) -> None:
    sent, body = answer
    places = [0, *sorted(min(cut, len(sent)) for cut in cuts), len(sent)]
    pieces = [sent[a:b] for a, b in pairwise(places)]
    found = fed(pieces)
    assert told(found) == told(fed([sent[at : at + 1] for at in range(len(sent))])) == told(fed([sent]))
    assert (found.whole, bytes(found.body), found.reusable) == (True, body, True)


@given(st.binary(max_size=300), st.sampled_from([b"", b"HTTP/1.1 ", head(), head("Transfer-Encoding: chunked")]))
def test_feed__any_bytes__is_an_answer_or_one_of_two_errors(data: bytes, before: bytes) -> None:
    try:
        answer = fed([before + data], ended=True)
    except (NoHttpError, PackingError) as error:
        assert 0 < len(str(error)) < 1_000
    else:
        assert len(answer.body) <= len(data)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n", "it begins «SSH-2.0-OpenSSH_9.6»"),
        (b"HTTP/1.1 two hundred\r\n\r\n", "it begins «HTTP/1.1 two hundred»"),
        (head("Content-Length: 2", status="HTTP/1.1 099 No") + b"ok", "its status is 99"),
        (head("Content-Length: 2", status="HTTP/1.1 000 No") + b"ok" + head("Content-Length: 0"), "its status is 0"),
        (head("Content-Length: many"), "Invalid character in Content-Length"),
        (head("Content-Length: -1"), "Invalid character in Content-Length"),
        (head("Content-Length: 2", "Content-Length: 2"), "Duplicate Content-Length"),
        (head("Content-Length: 9", "Transfer-Encoding: chunked"), "Transfer-Encoding can't be present with Content-L"),
        (head("Transfer-Encoding: gzip, chunked"), "its Transfer-Encoding is «gzip, chunked»"),
        (head("Transfer-Encoding: chunked\t") + b"2\r\nok\r\n0\r\n\r\n", "its Transfer-Encoding is «chunked\\t»"),
        (head("no colon"), "Invalid header token"),
        (head("a name: 1"), "Invalid header token"),
        (head("X: " + "a" * 70_000), "a line of its head is none: «X: aaa"),
        (head("X: 1\0"), "a line of its head is none: «X: 1"),
        (head(*["X: 1"] * 300), "its head has more than 256 lines"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * MAX_HEAD, "its head is longer than 262,144 bytes"),
        (head("Transfer-Encoding: chunked") + b"xyz\r\n", "Invalid character in chunk size"),
        (head("Transfer-Encoding: chunked") + b"1\r\nab\r\n", "Expected LF after chunk data"),
        (head("Transfer-Encoding: chunked") + b"1" * 5_000, "Chunk size overflow"),
        (head("Transfer-Encoding: chunked") + b"1;" + b"a" * 300_000, "what is around its body is longer than 262,144"),
        (head("Transfer-Encoding: chunked") + b"0\r\n" + b"X: 1234567\r\n" * 30_000, "what is around its body is "),
    ],
    ids=range(21),
)
def test_feed__no_http__says_what_is_wrong(sent: bytes, said: str) -> None:
    with pytest.raises(NoHttpError) as caught:
        fed([sent])
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("sent", "reusable"),
    [
        (head("Content-Length: 2") + b"ok", True),
        (head("Content-Length: 2", "Connection: Keep-Alive, close") + b"ok", False),
        (head("Content-Length: 2", status="HTTP/1.0 200 OK") + b"ok", False),
        (head("Content-Length: 2", "Connection: keep-alive", status="HTTP/1.0 200 OK") + b"ok", True),
        (head("Content-Length: 2") + b"okHTTP/1.1 200 OK\r\n", False),
        (head("Content-Length: 2", "Connection: close") + b"okmore", False),
        (head("Transfer-Encoding: chunked") + b"2\r\nok\r\n0\r\n\r\nmore", False),
        (head("X-Folded: one", " two", "Content-Length: 2") + b"ok", True),
    ],
    ids=range(8),
)
def test_feed__whole_answer__says_whether_the_connection_may_be_asked_again(sent: bytes, reusable: bool) -> None:
    answer = fed([sent])
    assert (answer.whole, bytes(answer.body), answer.reusable) == (True, b"ok", reusable)


def test_feed__neither_length_nor_chunks__is_whole_at_the_connections_end() -> None:
    sent = [head(), b"as much ", b"as comes"]
    assert not fed(sent).whole
    answer = fed(sent, ended=True)
    assert (answer.whole, bytes(answer.body), answer.reusable) == (True, b"as much as comes", False)


def test_ended__before_the_length_is_there__is_not_whole() -> None:
    assert not fed([head("Content-Length: 9"), b"half"], ended=True).whole
    assert not fed([head("Transfer-Encoding: chunked"), b"9\r\nhalf"], ended=True).whole
    assert not fed([head("Content-Length : 9"), b"half"], ended=True).whole
    assert not fed([head("Transfer-Encoding : chunked"), b"9\r\nhalf"], ended=True).whole


@pytest.mark.parametrize(("method", "status"), [("POST", "204 No Content"), ("POST", "304 Same"), ("HEAD", "200 OK")])
def test_feed__answer_that_has_no_body__ends_with_its_head(method: str, status: str) -> None:
    for line in "Content-Length: 5", "Transfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked":
        answer = fed([head(line, status=f"HTTP/1.1 {status}")], method=method)
        assert (answer.whole, bytes(answer.body)) == (True, b"")


@pytest.mark.parametrize("lines", [[], ["Connection: upgrade", "Upgrade: websocket"]], ids=["bare", "upgrade"])
@pytest.mark.parametrize("behind", [b"", b"\x81\x02hi"], ids=["nothing", "frames"])
def test_feed__switches_to_something_else__is_an_answer_without_body(lines: list[str], behind: bytes) -> None:
    answer = fed([head(*lines, status="HTTP/1.1 101 Switching Protocols") + behind])
    assert (answer.whole, answer.head.status, bytes(answer.body), answer.reusable) == (True, 101, b"", False)


@pytest.mark.parametrize(("status", "limit"), [("200 OK", LIMIT), ("500 Oh", 10)])
def test_feed__larger_than_the_limit__ends_there_and_is_not_asked_again(status: str, limit: int) -> None:
    bomb = gzip.compress(b"a" * 10_000_000)
    lines = ["Content-Encoding: gzip", f"Content-Length: {len(bomb)}"]
    answer = fed([head(*lines, status=f"HTTP/1.1 {status}") + bomb])
    assert (answer.whole, answer.reusable) == (True, False)
    assert limit < len(answer.body) <= limit + 65_536


def test_feed__packed_oddly__is_an_error_of_packing() -> None:
    with pytest.raises(PackingError):
        fed([head("Content-Encoding: br", "Content-Length: 1") + b"x"])
    with pytest.raises(PackingError):
        fed([head("Content-Encoding: gzip", "Content-Length: 4") + b"nope"])
    bare = zlib.compress(b"fine")[2:-4]
    deflated = fed([head("Content-Encoding: deflate", f"Content-Length: {len(bare)}") + bare])
    assert bytes(deflated.body) == b"fine"


def test_head__same_name_twice__is_the_first_and_names_have_no_case() -> None:
    answer = fed([head("X-A: 1", "x-a: 2", "LOCATION: /there", "Content-Length: 0", status="HTTP/1.1 302")])
    assert (answer.head.header("x-a"), answer.head.header("location"), answer.head.reason) == ("1", "/there", "Found")
