"""Agents that answer later: where they are asked about their jobs, and what done and failed look like."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from eval_gate.model.conversation import Message, Response
from eval_gate.targets.base import Request, TargetError, TargetFault
from eval_gate.targets.http.settings import HttpSettings
from eval_gate.targets.http.target import HttpTarget
from eval_gate.text.redaction import Redactor
from tests.support.agents import Exchange, agent

Step = Callable[[Exchange], None]


def says(body: dict | bytes, status: str = "200 OK", **headers: str) -> Step:
    return lambda exchange: exchange.answer(body, status, **headers)


ACCEPTED = says({"id": "job 7/a"}, "202 Accepted", Location="/jobs/7")
OPEN = says({"status": "running"}, "202 Accepted")
DONE = says({"status": "Done", "response": "ok", "toolCalls": [{"name": "t"}]})


def ask(*steps: Step, **poll: object) -> tuple[Response, list[str]]:
    """The answer, and the first lines of what the agent was asked; the last step is what it says from then on."""
    heads: list[str] = []

    async def handler(exchange: Exchange) -> None:
        heads.append(" ".join(exchange.head.split(" ", 2)[:2]))
        steps[min(exchange.number, len(steps) - 1)](exchange)

    async def main(url: str) -> Response:
        settings = {"name": "a", "url": url, "initialDelayMs": 1, "poll": {"intervalMs": 20} | poll}
        target = HttpTarget(HttpSettings.model_validate(settings), redact=Redactor(), concurrency=1)
        try:
            async with asyncio.timeout(20):
                return await target.respond(Request("gs-1", (Message(role="user", content="hi"),)))
        finally:
            await target.aclose()

    with agent(handler) as running:
        try:
            return asyncio.run(main(running.url)), heads
        except TargetError as error:
            error.args = (*error.args, heads)
            raise


def broken(*steps: Step, **poll: object) -> TargetError:
    with pytest.raises(TargetError) as caught:
        ask(*steps, **poll)
    return caught.value


def test_poll__accepted__is_asked_about_at_its_location_until_it_is_done() -> None:
    response, asked = ask(ACCEPTED, OPEN, OPEN, DONE)
    assert (response.text, response.tool_calls[0].name, response.attempts) == ("ok", "t", 1)
    assert asked == ["POST /chat", *["GET /jobs/7"] * 3]
    assert response.duration_ms >= 60


def test_poll__status_200_without_a_word_for_it__is_the_answer() -> None:
    assert ask(ACCEPTED, says(b"", "202 Accepted"), says({"response": "ok"}))[0].text == "ok"
    assert ask(says({"response": "at once"}))[1] == ["POST /chat"]


def test_poll__word_at_its_path__counts_whatever_the_http_status_is() -> None:
    steps = says({"job": {"id": 5, "state": "queued"}}), says({"job": {"state": "RUNNING"}}), DONE
    _, asked = ask(*steps, url="/v1/jobs/{{id}}?case={{caseId}}", idPath="job.id", statusPath=["job.state", "status"])
    assert asked == ["POST /chat", *["GET /v1/jobs/5?case=gs-1"] * 2]


def test_poll__id_of_a_job__stays_in_its_place_of_the_address() -> None:
    _, asked = ask(ACCEPTED, DONE, url="/jobs/{{id}}/x", idPath="id")
    assert asked[1] == "GET /jobs/job%207%2Fa/x"


def test_poll__address_in_the_answer__is_taken() -> None:
    _, asked = ask(says({"status": "new", "links": {"self": "runs/9"}}), DONE, urlPath="links.self")
    assert asked[1] == "GET /runs/9"


def test_poll__body_to_ask_with__is_posted_where_the_question_was() -> None:
    template = {"method": "tasks/get", "id": "{{id}}", "call": "{{uuid}}"}
    _, asked = ask(says({"id": "1", "status": "working"}), DONE, requestTemplate=template, idPath="id")
    assert asked == ["POST /chat", "POST /chat"]


@pytest.mark.parametrize("word", ["failed", "Cancelled", "rejected"])
def test_poll__job_that_comes_to_nothing__is_an_error_of_the_agent(word) -> None:
    error = broken(ACCEPTED, says({"status": word, "why": "no money"}))
    assert error.message.startswith(f"agent error: its job ended as «{word.lower()}»: ")
    assert "no money" in error.message
    assert (error.fault, error.retryable) == (TargetFault.REFUSED, False)


@pytest.mark.parametrize(
    "location", ["http://elsewhere.example/jobs/7", "http://127.0.0.1:1/jobs/7", "//evil/x", "file:///x"]
)
def test_poll__address_of_somebody_else__is_not_asked(location) -> None:
    error = broken(says({}, "202 Accepted", Location=location))
    assert error.message.startswith("agent error: the URL of its job is on another host, ")
    assert (error.fault, len(error.args[1])) == (TargetFault.MALFORMED, 1)


@pytest.mark.parametrize(
    ("first", "poll", "said"),
    [
        ({}, {}, "it does not give the URL of its job"),
        ({"id": None}, {"url": "/{{id}}", "idPath": "id"}, 'the id of its job was not found at "id"'),
        ({"id": ".."}, {"url": "/{{id}}", "idPath": "id"}, 'the id of its job was not found at "id"'),
        ({"at": 5}, {"urlPath": "at"}, "it does not give the URL of its job"),
    ],
)
def test_poll__nothing_to_ask_at__is_said_with_what_to_describe(first, poll, said) -> None:
    error = broken(says(first, "202 Accepted"), **poll)
    assert error.message.startswith(f"agent error: {said}; the response begins ")
    assert error.hint is not None
    assert "set the target's poll" in error.hint


@pytest.mark.slow
def test_poll__answer_that_breaks_now_and_then__is_asked_again_and_the_job_not_begun_anew() -> None:
    cut: Step = lambda exchange: exchange.reset()  # noqa: E731
    _, asked = ask(ACCEPTED, says(b"", "503 Service Unavailable"), cut, OPEN, says(b"", "502 Bad Gateway"), DONE)
    assert asked.count("POST /chat") == 1


@pytest.mark.slow
@pytest.mark.parametrize("status", ["503 Service Unavailable", "404 Not Found"])
def test_poll__answer_that_stays_broken__ends_without_beginning_the_job_anew(status) -> None:
    error = broken(ACCEPTED, says(b"gone", status))
    assert error.message == f"agent error: HTTP {status}: «gone» (status of its job)"
    assert [error.args[1].count("POST /chat"), error.retryable] == [1, False]


@pytest.mark.slow
def test_poll__job_that_is_never_done__ends_in_its_time() -> None:
    error = broken(ACCEPTED, OPEN, timeoutSeconds=0.3)
    assert (error.message, error.fault) == ("agent error: its job did not finish within 0.3 s", TargetFault.LATE)


def test_waived__where_no_poll_is_described__the_hint_names_it() -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.answer({"id": 1}, "202 Accepted")

    async def main(url: str) -> None:
        target = HttpTarget(HttpSettings.model_validate({"name": "a", "url": url}), redact=Redactor(), concurrency=1)
        try:
            await target.respond(Request("gs-1", (Message(role="user", content="hi"),)))
        finally:
            await target.aclose()

    with agent(handler) as running, pytest.raises(TargetError) as caught:
        asyncio.run(main(running.url))
    assert caught.value.hint == "HTTP 202 means that the response comes later: set the target's `poll`"
