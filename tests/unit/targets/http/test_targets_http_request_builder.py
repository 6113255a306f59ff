"""What is sent to an HTTP agent: method, address, headers, body, and what no case may put there."""

import asyncio
import json
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from eval_gate.model.conversation import Message
from eval_gate.targets.agent_address import ContainerProbe
from eval_gate.targets.base import Request, TargetError, TargetFault
from eval_gate.targets.http.request_builder import RequestBuilder
from eval_gate.targets.http.settings import HttpSettings
from eval_gate.targets.http.target import HttpTarget
from eval_gate.text.redaction import Redactor
from tests.support.agents import Exchange, agent


def request(message: object = "hi", *before: str, case_id: str = "gs-1", trial: int = 0) -> Request:
    messages = (*(Message(role="user", content=text) for text in before), Message(role="user", content=message))
    return Request(case_id, messages, trial, eval_file="evals/a.json", run_id="run-7")


def described(url: str = "http://a/chat", **settings) -> HttpSettings:
    return HttpSettings.model_validate({"name": "a", "url": url} | settings)


def sent(*requests: Request, path: str = "/chat", **settings) -> list[Exchange]:
    """What arrives at a real server, one after the other."""

    async def main(url: str) -> None:
        target = HttpTarget(described(url, **settings), redact=Redactor(), concurrency=1)
        try:
            for one in requests or (request(),):
                await target.respond(one)
        finally:
            await target.aclose()

    with agent() as running:
        asyncio.run(main(f"http://127.0.0.1:{running.port}{path}"))
        return running.requests


def line(exchange: Exchange) -> str:
    return exchange.head.split("\r\n", 1)[0]


def test_request__get__asks_in_the_query_and_has_no_body() -> None:
    (exchange,) = sent(
        request("rain & sun?\r\nX: é"), method="get", query={"q": "{{message}}", "n": 3}, path="/ask?k=1"
    )
    assert line(exchange) == "GET /ask?k=1&q=rain+%26+sun%3F%0D%0AX%3A+%C3%A9&n=3 HTTP/1.1"
    assert (exchange.body, exchange.header("content-type")) == (b"", None)


def test_request__form__is_one() -> None:
    (exchange,) = sent(request("a&b=c é"), form={"text": "{{message}}", "case": "{{caseId}}", "n": 1})
    assert parse_qs(exchange.body.decode()) == {"text": ["a&b=c é"], "case": ["gs-1"], "n": ["1"]}
    assert exchange.header("content-type") == "application/x-www-form-urlencoded"


def test_request__placeholders_everywhere__are_escaped_where_they_stand() -> None:
    (exchange,) = sent(
        request("x", case_id="a/../b?c#d\r\nEvil: 1"),
        path="/cases/{{caseId}}/{{ trial }}",
        method="PUT",
        headers={"X-Case": "case {{caseId}}", "X-Run": "{{runId}}"},
        requestTemplate={"q": "{{message}}", "trial": "{{trial}}", "as text": "no. {{trial}}"},
    )
    assert line(exchange) == "PUT /cases/a%2F..%2Fb%3Fc%23d%0D%0AEvil%3A%201/0 HTTP/1.1"
    assert exchange.header("x-case") == "case a%2F..%2Fb%3Fc%23d%0D%0AEvil%3A%201"
    assert (exchange.header("evil"), exchange.header("x-run")) == (None, "run-7")
    assert exchange.json == {"q": "x", "trial": 0, "as text": "no. 0"}


@pytest.mark.parametrize("case_id", [".", ".."])
def test_request__case_that_would_lead_elsewhere__is_not_sent(case_id) -> None:
    asking = RequestBuilder(described("http://a/cases/{{caseId}}/ask"), ContainerProbe())
    with pytest.raises(TargetError, match="would change its path") as caught:
        asking.build_request(request(case_id=case_id))
    assert caught.value.fault is TargetFault.NOT_SENT


@given(case_id=st.text(min_size=1), message=st.text())
def test_request__any_case__stays_in_its_place(case_id, message) -> None:
    settings = described(
        "http://a/cases/{{caseId}}?q={{message}}", method="GET", query={"m": "{{message}}"}, headers={"X": "{{caseId}}"}
    )
    try:
        made = RequestBuilder(settings, ContainerProbe()).build_request(request(message, case_id=case_id))
    except TargetError:
        assert case_id in {".", ".."}
        return
    parts = urlsplit(str(made.url))
    assert (parts.scheme, parts.netloc, parts.fragment) == ("http", "a", "")
    assert parts.path.count("/") == 2
    assert unquote(parts.path) == "/cases/" + case_id
    assert list(parse_qs(parts.query, keep_blank_values=True)) == ["q", "m"]
    assert unquote(made.headers["x"]) == case_id
    assert made.headers["x"].isascii()


def test_request__uuid__is_one_within_a_request_and_another_in_the_next() -> None:
    template = {"q": "{{message}}", "id": "{{uuid}}", "thread": "t-{{session}}"}
    first, second = sent(request(), request(), headers={"X-Id": "{{uuid}}"}, requestTemplate=template)
    assert first.json["id"] == first.header("x-id") != second.json["id"]
    assert UUID(first.json["id"])
    assert first.json["thread"] != second.json["thread"]
    assert first.json["thread"].removeprefix("t-") != first.json["id"]


def test_request__session_of_the_case__is_shared_by_its_executions_and_by_nothing_else() -> None:
    template = {"q": "{{message}}", "thread": "{{session}}"}
    again, other = request(trial=1), request(case_id="gs-2")
    threads = [one.json["thread"] for one in sent(request(), again, other, requestTemplate=template, session="case")]
    assert threads[0] == threads[1] != threads[2]


def test_request__prompt__is_the_whole_conversation_as_one_text() -> None:
    (exchange,) = sent(request("second", "first"), requestTemplate={"q": "{{prompt}}"})
    assert exchange.json == {"q": "@[User]:\nfirst\n\n@[User]:\nsecond"}


def test_request__template_of_a_message__writes_every_one() -> None:
    (exchange,) = sent(
        request("second", "first"),
        requestTemplate={"messages": "{{conversation}}"},
        messageTemplate={"id": "m{{index}}", "role": "{{role}}", "parts": [{"type": "text", "text": "{{content}}"}]},
    )
    assert exchange.json == {
        "messages": [
            {"id": "m0", "role": "user", "parts": [{"type": "text", "text": "first"}]},
            {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "second"}]},
        ]
    }


def test_request__more_fields__stand_beside_those_of_the_preset() -> None:
    (exchange,) = sent(requestFields={"model": "m", "user": "{{caseId}}"})
    assert exchange.json == {"message": "hi", "model": "m", "user": "gs-1"}
    made = RequestBuilder(
        described(agent_protocol="openai-chat", requestFields={"model": "m"}), ContainerProbe()
    ).build_request(request())
    assert json.loads(made.content) == {"messages": [{"role": "user", "content": "hi"}], "model": "m"}


def test_request__text_with_a_placeholder_in_it__is_not_filled_in_again() -> None:
    (exchange,) = sent(request("{{caseId}} {{uuid}}"), requestTemplate={"q": "[{{message}}]"})
    assert exchange.json == {"q": "[{{caseId}} {{uuid}}]"}


@pytest.mark.parametrize(
    ("settings", "place", "said"),
    [
        (
            {"requestTemplate": {"q": "{{mesage}}"}},
            "requestTemplate",
            'unknown placeholder "mesage" (did you mean "message"?)',
        ),
        ({"url": "http://a/{{cas}}"}, "url", 'unknown placeholder "cas"'),
        ({"headers": {"X": "{{role}}"}}, "headers", 'unknown placeholder "role"'),
        ({"messageTemplate": {"r": "{{rol}}"}}, "messageTemplate", '"rol" (did you mean "role"?)'),
        ({"url": "http://{{caseId}}.example/chat"}, "url", "a case must not choose the agent"),
        ({"url": "http://{{message}}@a/chat"}, "url", "a case must not choose the agent"),
        ({"url": "{{caseId}}://a/chat"}, "url", "a case must not choose the agent"),
        ({"url": "http://a:{{trial}}/chat"}, "url", "a case must not choose the agent"),
        ({"method": "GET"}, "query", "the prompt is not sent"),
        ({"method": "GET", "requestTemplate": {"q": "{{message}}"}}, "requestTemplate", "GET has no body"),
        ({"method": "FETCH"}, "method", "expected 'POST'"),
        ({"requestTemplate": {"q": "hi"}}, "query", "the prompt is not sent"),
        ({"form": {"q": "{{message}}"}, "requestTemplate": {"q": "{{message}}"}}, "form", "not both"),
        ({"form": {"q": "{{message}}"}, "requestFields": {"a": 1}}, "requestFields", "the body is a form"),
        ({"requestTemplate": "{{message}}", "requestFields": {"a": 1}}, "requestFields", "is not a mapping"),
        ({"headers": {"X": "a\r\nEvil: 1"}}, "headers", "the value of X contains a line break"),
        ({"headers": {"X Y": "a"}}, "headers", '"X Y" is not the name of a header'),
        ({"responsePath": "a..b"}, "responsePath", '"a..b" is not a path from "..b" on'),
        ({"toolResults": {"path": "a", "idField": "[x]"}}, "toolResults", '"[x]" is not a path'),
    ],
)
def test_settings__that_cannot_be_meant__are_refused_at_their_key(settings, place, said) -> None:
    from eval_gate.text.sources.validation_errors import describe_error

    with pytest.raises(ValidationError) as caught:
        described(**settings)
    (error,) = caught.value.errors()
    assert error["loc"][0] == place
    assert said in describe_error(error)


def test_settings__form_or_get__leave_out_the_body_of_the_preset() -> None:
    assert described(agent_protocol="openai-chat", form={"q": "{{message}}"}).request_template.open() is None
    assert (
        described(agent_protocol="openai-chat", method="GET", query={"q": "{{message}}"}).request_template.open()
        is None
    )


def test_settings__header_with_a_line_break_at_its_end__is_without_it() -> None:
    assert described(headers={"X": "token\n"}).headers == {"X": "token"}
