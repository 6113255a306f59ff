"""What providers refuse with, and connections that break: one request each, one sentence in the provider's words."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from eval_gate.model.conversation import Message
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.model.build import build_chat
from eval_gate.targets.model.settings import ModelSettings
from tests.support.agents import unused_port
from tests.support.model_server import (
    Answer,
    anthropic_answer,
    gemini_answer,
    model_server,
    openai_answer,
)
from tests.support.packed import once_packed, twice_packed

# the libraries of the vendors take seconds to load
pytestmark = [pytest.mark.slow, pytest.mark.contract("retry.statuses")]

KEY = "sk-very-secret"
MODELS = {
    "openai": "gpt-4o",
    "openai-compatible": "qwen3",
    "azure": "gpt-4o",
    "anthropic": "claude-sonnet-5",
    "gemini": "gemini-2.5-flash",
    "model": "together:llama-3",
}
VENDORS = ["openai", "azure", "anthropic", "gemini"]


def settings(provider: str, url: str, **more) -> ModelSettings:
    place = {"endpoint" if provider == "azure" else "baseUrl": url}
    raw = {"name": "t", "provider": provider, "apiKey": KEY, "model": MODELS[provider]} | place | more
    return ModelSettings.model_validate(raw)


def ask(described: ModelSettings, *, times: int = 1, timeout_s: float = 10):
    """The last of so many answers to the same question."""

    async def main():
        chat = build_chat(described, {}, timeout_s=timeout_s)
        try:
            for _ in range(times):
                turn = await chat.ask([Message(role="user", content="hi")])
            return turn
        finally:
            await chat.aclose()

    return asyncio.run(main())


def refused(provider: str, answer: Answer, *, timeout_s: float = 10, **more) -> TargetError:
    """The error of a question that is answered so; it was asked once."""
    with model_server(answer) as server:
        with pytest.raises(TargetError) as caught:
            ask(settings(provider, server.url, **more), timeout_s=timeout_s)
        assert len(server.requests) == 1
    assert KEY not in caught.value.message
    return caught.value


# -- errors, as the vendors word them ---------------------------------------------------------------------------------


def openai_error(status: int) -> dict:
    """What OpenAI says with this status."""
    message, kind, code = {
        400: (
            "Invalid value: 'robot'. Supported values are: 'system', 'user'.",
            "invalid_request_error",
            "invalid_value",
        ),
        401: (
            (
                "Incorrect API key provided: sk-very-secret. You can find your API key at "
                "https://platform.openai.com/account/api-keys."
            ),
            "invalid_request_error",
            "invalid_api_key",
        ),
        403: (
            "Country, region, or territory not supported",
            "request_forbidden",
            "unsupported_country_region_territory",
        ),
        404: (
            "The model `gpt-nope` does not exist or you do not have access to it.",
            "invalid_request_error",
            "model_not_found",
        ),
        408: ("Request timed out.", "timeout", None),
        429: (
            (
                "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29500, "
                "Requested 1200. Please try again in 1.4s."
            ),
            "tokens",
            "rate_limit_exceeded",
        ),
        500: ("The server had an error while processing your request. Sorry about that!", "server_error", None),
        503: ("That model is currently overloaded with other requests.", "server_error", None),
        529: ("Overloaded", "server_error", None),
    }[status]
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def azure_error(status: int) -> dict:
    """What Azure says with this status, where it is not what OpenAI says."""
    found = {
        401: (
            "401",
            (
                "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key "
                "for an active subscription and use a correct regional API endpoint for your resource."
            ),
        ),
        403: ("403", "Access denied due to Virtual Network/Firewall rules."),
        404: (
            "DeploymentNotFound",
            (
                "The API deployment for this resource does not exist. If you created the deployment within the last "
                "5 minutes, please wait a moment and try again."
            ),
        ),
        408: ("Timeout", "The operation was timeout."),
        429: (
            "429",
            (
                "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-10-01-preview "
                "have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 26 seconds."
            ),
        ),
    }.get(status)
    return {"error": {"code": found[0], "message": found[1]}} if found else openai_error(status)


OPENAI_SPENT = {
    "error": {
        "message": "You exceeded your current quota, please check your plan and billing details.",
        "type": "insufficient_quota",
        "param": None,
        "code": "insufficient_quota",
    }
}


def anthropic_error(status: int) -> dict:
    """What Anthropic says with this status."""
    kind, message = {
        400: ("invalid_request_error", "messages: at least one message is required"),
        401: ("authentication_error", "invalid x-api-key"),
        403: ("permission_error", "Your API key does not have permission to use the specified resource."),
        404: ("not_found_error", "model: claude-nope"),
        408: ("timeout_error", "Request timed out"),
        429: (
            "rate_limit_error",
            "This request would exceed your organization's rate limit of 50,000 input tokens per minute.",
        ),
        500: ("api_error", "Internal server error"),
        503: ("api_error", "Service temporarily unavailable"),
        529: ("overloaded_error", "Overloaded"),
    }[status]
    return {
        "type": "error",
        "error": {"type": kind, "message": message},
        "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy",
    }


def gemini_error(status: int) -> dict:
    """What the Gemini API says with this status. A bad key is a 400 there."""
    name, message = {
        400: ("INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
        401: ("UNAUTHENTICATED", "Request had invalid authentication credentials."),
        403: ("PERMISSION_DENIED", "Generative Language API has not been used in project 1 before or it is disabled."),
        404: ("NOT_FOUND", "models/gemini-nope is not found for API version v1beta."),
        408: ("DEADLINE_EXCEEDED", "Deadline expired before operation could complete."),
        429: ("RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing details."),
        500: ("INTERNAL", "An internal error has occurred. Please retry or report it."),
        503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
        529: ("UNAVAILABLE", "Overloaded"),
    }[status]
    return {"error": {"code": status, "message": message, "status": name}}


def gemini_retry_info(delay: str, quota: str) -> dict:
    """A 429 of the Gemini API: which quota, and after how long to come back."""
    details = [
        {
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [
                {
                    "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
                    "quotaId": quota,
                    "quotaDimensions": {"location": "global", "model": "gemini-2.5-flash"},
                    "quotaValue": "10",
                }
            ],
        },
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
    ]
    body = gemini_error(429)
    body["error"]["details"] = details
    return body


ERRORS = {"openai": openai_error, "azure": azure_error, "anthropic": anthropic_error, "gemini": gemini_error}
ANSWERS = {"openai": openai_answer, "azure": openai_answer, "anthropic": anthropic_answer, "gemini": gemini_answer}


def words(body: dict) -> str:
    return body["error"]["message"].replace(KEY, "***")


@pytest.mark.parametrize("provider", VENDORS)
@pytest.mark.parametrize(
    ("status", "again"),
    [
        (400, False),
        (401, False),
        (403, False),
        (404, False),
        (408, True),
        (429, True),
        (500, True),
        (503, True),
        (529, True),
    ],
)
def test_refused__each_status__is_asked_once_and_told_in_the_providers_words(provider, status, again) -> None:
    body = ERRORS[provider](status)
    error = refused(provider, Answer(body, status))
    assert error.message == f"{provider} ({MODELS[provider]}): answered HTTP {status}: {words(body)}"
    assert (error.fault, error.status, error.retryable) == (TargetFault.REFUSED, status, again)
    assert error.retry_after_s is None


@pytest.mark.parametrize("provider", VENDORS)
@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(("header", "value", "expected"), [
    ("Retry-After", "7", 7.0),
    ("Retry-After", "1.5", 1.5),
    ("retry-after-ms", "250", 0.25),
    ("Retry-After", "soon", None),
    ("Retry-After", "-1", None),
    ("Retry-After", "99999999", 99_999_999.0),
])  # fmt: skip
def test_refused__with_a_wait__says_how_long(provider, status, header, value, expected) -> None:
    error = refused(provider, Answer(ERRORS[provider](status), status, {header: value}))
    assert error.retry_after_s == expected


@pytest.mark.parametrize("provider", VENDORS)
def test_refused__with_a_date__says_how_long_from_now(provider) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    error = refused(provider, Answer(ERRORS[provider](429), 429, {"Retry-After": date}))
    assert error.retry_after_s is not None
    assert 60 < error.retry_after_s <= 90


def test_refused__gemini_says_when_in_the_body__is_understood() -> None:
    error = refused("gemini", Answer(gemini_retry_info("34s", "GenerateRequestsPerMinutePerProjectPerModel"), 429))
    assert (error.retryable, error.retry_after_s) == (True, 34.0)


@pytest.mark.parametrize(
    ("provider", "body"),
    [
        ("openai", OPENAI_SPENT),
        ("gemini", gemini_retry_info("3600s", "GenerateRequestsPerDayPerProjectPerModel-FreeTier")),
    ],
)
def test_refused__the_quota_is_used_up__no_wait_helps(provider, body) -> None:
    error = refused(provider, Answer(body, 429))
    assert (error.status, error.retryable) == (429, False)
    assert error.hint == "renew the quota or credit of the account, which is used up"


def test_refused__codes_of_the_target__replace_the_usual_ones() -> None:
    codes = {"retryableStatusCodes": [400, 401, 403]}
    assert refused("openai", Answer(openai_error(400), 400), **codes).retryable
    assert not refused("openai", Answer(openai_error(429), 429), **codes).retryable
    for final in (401, 403):
        assert not refused("openai", Answer(openai_error(final), final), **codes).retryable


@pytest.mark.parametrize("provider", VENDORS)
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html><h1>Bad\x00 Gateway</h1> sk-very-secret</html>", "Bad Gateway"),
        (b"upstream connect error", "upstream connect error"),
        (b"[]", ""),
        (b'"no"', "no"),
        (b"", ""),
        (b"\xff\xfe", ""),
    ],
    ids=range(6),
)
def test_refused__a_gateway_that_speaks_no_json__is_told_all_the_same(provider, body, said) -> None:
    error = refused(provider, Answer(body, 502))
    assert error.message.startswith(f"{provider} ({MODELS[provider]}): answered HTTP 502")
    assert said in error.message
    assert (error.fault, error.status, error.retryable) == (TargetFault.REFUSED, 502, True)
    assert error.message.isprintable()


@pytest.mark.parametrize("provider", VENDORS)
def test_refused__at_length__is_bounded_and_masked_before_it_is_cut(provider) -> None:
    body = {"error": {"message": "x" * 290 + " " + KEY + "\u202e" + "y" * 5_000, "type": "t", "code": "c"}}
    error = refused(provider, Answer(body, 500))
    said = error.message.partition("HTTP 500: ")[2]
    assert len(said) == 300
    assert "sk-" not in said
    assert said.isprintable()


@pytest.mark.parametrize("provider", VENDORS)
def test_redirected__is_not_followed_and_says_where_to(provider) -> None:
    error = refused(provider, Answer(b"", 302, {"Location": "/elsewhere?key=sk-very-secret"}))
    assert error.message.endswith("answered HTTP 302: it redirects to /elsewhere?key=***")
    assert (error.fault, error.status, error.retryable) == (TargetFault.REFUSED, 302, False)


@pytest.mark.parametrize("provider", VENDORS)
def test_refused__with_200_and_an_error_within__tells_the_error(provider) -> None:
    error = refused(provider, Answer({"error": {"message": "Provider returned error", "code": 429}}))
    assert error.message.endswith("answered with an error: Provider returned error")
    assert (error.fault, error.status, error.retryable) == (TargetFault.REFUSED, 429, True)
    assert not refused(provider, Answer({"error": {"message": "no such model", "code": "x"}})).retryable


@pytest.mark.parametrize("provider", [*VENDORS, "openai-compatible", "model"])
def test_unreachable__nobody_listens__says_so_and_may_be_tried_again(provider) -> None:
    with pytest.raises(TargetError) as caught:
        ask(settings(provider, f"http://127.0.0.1:{unused_port()}"))
    assert (caught.value.fault, caught.value.retryable) == (TargetFault.UNREACHABLE, True)
    assert "no connection" in caught.value.message
    assert "Connection error." not in caught.value.message


@pytest.mark.parametrize("provider", [*VENDORS, "model"])
def test_broken__reset__is_asked_once_and_may_be_tried_again(provider) -> None:
    error = refused(provider, Answer(b"", reset=True))
    assert (error.fault, error.retryable) == (TargetFault.REFUSED, True)
    assert "the connection broke" in error.message


@pytest.mark.slow
@pytest.mark.parametrize("provider", [*VENDORS, "model"])
def test_slow__ends_with_the_callers_time_and_is_asked_once(provider) -> None:
    error = refused(provider, Answer(b"{}", delay_s=30), timeout_s=1.5)
    assert (error.fault, error.retryable, error.timed_out) == (TargetFault.LATE, True, True)
    assert "1.5 s" in error.message or "in time" in error.message


@pytest.mark.slow
@pytest.mark.parametrize("provider", VENDORS)
def test_cancelled__passes_through_and_the_chat_can_be_asked_again(provider) -> None:
    async def main() -> None:
        chat = build_chat(settings(provider, server.url), {}, timeout_s=10)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5):
                await chat.ask([Message(role="user", content="hi")])
        assert (await chat.ask([Message(role="user", content="hi")])).text == "Hello."
        await chat.aclose()

    with model_server(Answer(b"{}", delay_s=30), Answer(ANSWERS[provider]())) as server:
        asyncio.run(main())
        assert len(server.requests) == 2


@pytest.mark.parametrize("provider", [*VENDORS, "model"])
@pytest.mark.parametrize(
    "body",
    [
        b"<html>Sign in</html>",
        b"",
        b"not json",
        b"{}",
        b"[]",
        b"null",
        b'"text"',
        b'{"choices": [], "content": [], "candidates": []}',
        b'{"choices": null, "content": null, "candidates": null}',
        b'{"choices": [{}], "content": [{}], "candidates": [{}]}',
        b'{"choices": 5, "content": 5, "candidates": 5}',
        b'{"choices": [{"message": 5}], "content": "text", "candidates": [{"content": 5}]}',
        b"[" * 50_000,
        b"\xff\xfe\x00",
    ],
    ids=range(14),
)
def test_unreadable__whatever_it_is__is_malformed_and_asked_once(provider, body) -> None:
    error = refused(provider, Answer(body))
    assert (error.fault, error.retryable) == (TargetFault.MALFORMED, False)
    assert len(error.message) < 450
    assert error.message.isprintable()
    if provider != "model":
        assert f"it begins «{body[:20].decode('utf-8', 'replace').rstrip(chr(0))}" in error.message


@pytest.mark.parametrize("provider", VENDORS)
def test_unreadable__a_key_in_it__is_masked_before_it_is_cut(provider) -> None:
    error = refused(provider, Answer(b"x" * 190 + KEY.encode() + b"y" * 5_000))
    assert "it begins «xxx" in error.message
    assert "sk-" not in error.message


@pytest.mark.slow
@pytest.mark.parametrize("provider", VENDORS)
@pytest.mark.parametrize(
    ("body", "headers", "said"),
    [
        (twice_packed, {"content-encoding": "gzip, gzip"}, "it is compressed 2 times, which is not supported"),
        (once_packed, {"content-encoding": "gzip"}, "it is larger than 10,000,000 bytes"),
        (lambda: b"[" + b"[]," * 3_000_000 + b"0]", {}, "it has more than 250,000 values"),
    ],
    ids=["packed twice", "packed", "values"],
)
def test_finding_4__answer_that_stands_for_more__is_malformed(provider, body, headers, said) -> None:
    error = refused(provider, Answer(body(), headers=headers))
    assert (error.fault, error.retryable) == (TargetFault.MALFORMED, False)
    assert f"gave an unreadable response: {said}" in error.message


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_ask__answer_packed_once__is_read(encoding) -> None:
    packed = (gzip.compress if encoding == "gzip" else zlib.compress)(json.dumps(ANSWERS["openai"]()).encode())
    with model_server(Answer(packed, headers={"content-encoding": encoding})) as server:
        assert ask(settings("openai", server.url)).text == "Hello."
