"""Finding 4: 2,487 bytes from the agent cost 2.9 GB. No single answer costs more than 150 MB above an idle run.

Measured on the whole program in a process of its own, against a real server.
"""

import json

import pytest

from tests.support.agents import Exchange, agent, ok
from tests.support.measured import Measured, measured
from tests.support.packed import deflated, once_packed, twice_packed

MOST_MB = 150
MEGA = 1_000_000


def suite(folder, **expect) -> None:
    case = {"id": "gs-1", "input": {"message": "ask"}, "expect": expect or {"responseContains": ["ok"]}}
    (folder / "evals").mkdir(exist_ok=True)
    (folder / "evals" / "weather.golden.json").write_text(json.dumps([case]))


def answering(body: bytes, **headers: str):
    async def handler(exchange: Exchange) -> None:
        exchange.answer(body, **headers)

    return handler


def record(folder) -> dict:
    results = folder / "evals" / "results"
    return json.loads((results / json.loads((results / "latest.json").read_text())["path"]).read_text())


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Measured:
    """A run in which the agent says nothing unusual."""
    folder = tmp_path_factory.mktemp("plain")
    suite(folder)
    return asked(folder, ok)


def asked(folder, handler) -> Measured:
    with agent(handler) as running:
        return measured(folder, "run", "--agent-endpoint", running.url)


def cost(folder, handler, plain: Measured) -> tuple[float, dict]:
    """Megabytes above a run with a plain answer, and the case as it was recorded."""
    done = asked(folder, handler)
    assert done.code in {0, 1, 3}, done.stderr
    assert "Traceback" not in done.stderr
    return done.peak_mb - plain.peak_mb, record(folder)["suites"][0]["cases"][0]


def many(value: bytes, size: int = 9_900_000) -> bytes:
    """An answer whose `more` is this value again and again."""
    begin, end = b'{"response": "ok", "toolCalls": [], "more": [', b"0]}"
    return begin + (value + b",") * ((size - len(begin) - len(end)) // (len(value) + 1)) + end


HOSTILE = {
    "packed twice": (twice_packed, {"Content_Encoding": "gzip, gzip"}, "compressed 2 times, which is not supported"),
    "packed once": (
        once_packed,
        {"Content_Encoding": "gzip"},
        "is larger than 10,000,000 bytes",
    ),
    "deflated": (
        deflated,
        {"Content_Encoding": "deflate"},
        "is larger than 10,000,000 bytes",
    ),
    "brotli": (lambda: b"\x1b\x0f", {"Content_Encoding": "br"}, 'is compressed as "br", which was not requested'),
    "lists": (lambda: many(b"[]"), {}, "has more than 250,000 values"),
    "mappings": (lambda: many(b'{"a":{}}'), {}, "has more than 250,000 values"),
    "numbers": (lambda: many(b"1e5"), {}, "has more than 250,000 values"),
    "as many as may be": (lambda: many(b'{"a":"b"}', 1_200_000), {}, None),
    "long texts": (lambda: many(b'"' + "é😀".encode() * 10 + b'"'), {}, None),
    "one long text": (lambda: b'{"response": "ok ' + "é😀".encode() * 1_600_000 + b'", "toolCalls": []}', {}, None),
    "arguments as text": (
        lambda: json.dumps(
            {"response": "ok", "toolCalls": [{"name": "a", "params": '{"a": [' + "[]," * 3_000_000 + "0]}"}]}
        ).encode(),
        {},
        "has more than 250,000 values",
    ),
    "calls": (lambda: many(b"1", 400_000), {}, None),
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.slow
def test_finding_4__one_answer__costs_less_than_150_mb(tmp_path, plain, kind) -> None:
    make, headers, said = HOSTILE[kind]
    suite(tmp_path)
    above, case = cost(tmp_path, answering(make(), **headers), plain)
    assert above < MOST_MB
    if said:
        assert (case["status"], case["errorKind"]) == ("error", "agent_error")
        assert said in case["error"]
    else:
        assert case["status"] == "passed"


def test_finding_4__an_answer_in_single_bytes__costs_what_it_holds(tmp_path, plain) -> None:
    async def drip(exchange: Exchange) -> None:
        body = b'{"response": "ok", "toolCalls": [], "more": "' + b"a" * MEGA + b'"}'
        exchange.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        exchange.write(b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n")

    suite(tmp_path)
    above, case = cost(tmp_path, drip, plain)
    assert case["status"] == "passed"
    assert above < MOST_MB


@pytest.mark.parametrize(
    "begin",
    [
        '"suites":[',
        '"suites":[{"runId":"a","timestamp":"t","tier":null,"toolName":"a","cases":[',
        '"waivers":{"waived":[',
        '"judges":{"judges":[',
    ],
)
@pytest.mark.slow
def test_stored_result__very_many_mistakes__cost_what_it_holds(tmp_path, begin) -> None:
    """As many empty cases as are read: six million bytes of them were 3.2 GB of mistakes."""
    head = '"schemaVersion":1,"runId":"a","timestamp":"t","complete":true,"tool":{"version":"1"}'
    target = '"target":{"name":"a","provider":"b","identity":"c"}'
    end = "".join({"[": "]", "{": "}"}[sign] for sign in reversed(begin) if sign in "[{") + "}"
    (tmp_path / "run.json").write_text(f"{{{head},{target},{begin}" + ",".join(["{}"] * 2_950_000) + end)
    done = measured(tmp_path, "report", "run.json", "--format", "md")
    assert (done.code, "error[invalid-run-result]" in done.stderr) == (2, True)
    assert done.peak_mb < 1_000
