"""Requests to a target: which are of it, and where its question is, by its settings and its protocol."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.drafts.sources.request_mapping import RequestContent, RequestMapping
from eval_gate.drafts.sources.source_messages import PromptError
from eval_gate.model.conversation import Message
from eval_gate.targets.agent_address import ContainerProbe
from eval_gate.targets.base import Request
from eval_gate.targets.http.request_builder import RequestBuilder
from eval_gate.targets.http.settings import HttpSettings

HISTORY = (
    Message(role="user", content="first"),
    Message(role="assistant", content="answer"),
    Message(role="user", content="second & ä/?"),
)


def describe(**settings: Any) -> HttpSettings:
    return HttpSettings.model_validate({"name": "a", "url": "http://127.0.0.1:9/chat", **settings})


def build(settings: HttpSettings, messages: tuple[Message, ...], case_id: str = "c") -> RequestContent:
    """Build the very request that the target is sent."""
    made = RequestBuilder(settings, ContainerProbe()).build_request(Request(messages=messages, case_id=case_id))
    return RequestContent(made.method, made.url.raw_path_qs, made.content or b"")


SINGLE = {
    "default": {},
    "template": {"requestTemplate": {"input": {"text": "{{message}}", "id": "{{uuid}}"}}},
    "text around": {"requestTemplate": ["User {{caseId}} asks:\n{{message}}\nAnswer."]},
    "form": {"form": {"q": "{{message}}", "k": "1"}},
    "query": {"method": "GET", "query": {"q": "{{message}}"}},
    "query of the URL": {"method": "GET", "url": "http://127.0.0.1:9/ask?q={{message}}&k=1"},
    "path": {"method": "GET", "url": "http://127.0.0.1:9/ask/{{message}}/now"},
    "fields": {"requestTemplate": {"a": 1}, "requestFields": {"q": "{{message}}"}},
}
CONVERSATIONS = {
    "default": {},
    "openai-chat": {"agentProtocol": "openai-chat"},
    "openai-responses": {"agentProtocol": "openai-responses"},
    "langgraph": {"agentProtocol": "langgraph"},
    "ag-ui": {"agentProtocol": "ag-ui"},
    "vercel-ai": {"agentProtocol": "vercel-ai"},
    "ollama": {"agentProtocol": "ollama"},
    "own messages": {
        "requestTemplate": {"turns": "{{conversation}}"},
        "messageTemplate": {"who": "{{role}}", "says": {"it": "{{content}}"}},
    },
}


@pytest.mark.parametrize("form", SINGLE)
def test_parse_prompt__request_of_the_target__has_the_question_that_was_sent(form) -> None:
    settings = describe(**SINGLE[form])
    content = build(settings, HISTORY[-1:])
    mapping = RequestMapping(settings)
    assert mapping.is_exchange(content)
    assert mapping.parse_prompt(content).text == "second & ä/?"


@pytest.mark.parametrize("form", CONVERSATIONS)
def test_parse_prompt__request_with_a_conversation__has_the_earlier_messages_too(form) -> None:
    settings = describe(**CONVERSATIONS[form])
    content = build(settings, HISTORY)
    prompt = RequestMapping(settings).parse_prompt(content)
    assert (prompt.text, prompt.earlier_messages) == ("second & ä/?", HISTORY[:-1])


@pytest.mark.parametrize("protocol", ["a2a", "langserve"])
def test_parse_prompt__protocol_with_one_text__has_the_question(protocol) -> None:
    settings = describe(agentProtocol=protocol, poll=None)
    assert RequestMapping(settings).parse_prompt(build(settings, HISTORY[-1:])).text == "second & ä/?"


def parse_sent(form: str, text: str) -> str:
    """Send a text in a request of this form, and parse the prompt in it."""
    settings = describe(**SINGLE[form])
    return RequestMapping(settings).parse_prompt(build(settings, (Message(role="user", content=text),))).text


def is_question(text: str) -> bool:
    return bool(text.strip()) and not text.lstrip().startswith(("[", "{"))


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


@given(TEXTS.filter(is_question) | st.sampled_from(["[TODO] fix it", "{{name}} is here", "[urgent]"]))
def test_parse_prompt__any_text_but_json__comes_back(text) -> None:
    for form in ("default", "text around", "form", "query"):
        assert parse_sent(form, text) == text, form


@pytest.mark.parametrize("text", ["{", "[1", '{"a": ', "{}", "[]", ' {"a": 1}'])
@pytest.mark.parametrize("form", ["default", "text around", "form", "query"])
def test_parse_prompt__json_or_its_beginning__is_no_question(form, text) -> None:
    with pytest.raises(PromptError):
        parse_sent(form, text)


def test_is_exchange__path_and_method__are_those_of_the_target() -> None:
    mapping = RequestMapping(describe(url="http://127.0.0.1:9/v1/{{caseId}}/chat?key=1"))
    assert mapping.is_exchange(RequestContent("POST", "/v1/any/chat?other=2", b""))
    assert mapping.is_exchange(RequestContent("POST", "/v1/any/chat/", b""))
    for method, target in (
        ("GET", "/v1/any/chat"),
        ("POST", "/v1/a/b/chat"),
        ("POST", "/v1/any/chats"),
        ("POST", "/v1//chat"),
        ("POST", "/"),
    ):
        assert not mapping.is_exchange(RequestContent(method, target, b"")), target
    assert RequestMapping(describe(url="http://127.0.0.1:9")).is_exchange(RequestContent("POST", "/", b""))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"text": "a"}, "no question where the target sends it (requestTemplate, form, query)"),
        ({"message": None}, "no question where the target sends it (requestTemplate, form, query)"),
        ({"message": 5}, "the question is neither a text nor a list of messages"),
        ({"message": "", "conversation": []}, "blank question"),
    ],
)
def test_parse_prompt__request_without_one__says_what_is_missing(body, said) -> None:
    with pytest.raises(PromptError) as caught:
        RequestMapping(describe()).parse_prompt(RequestContent("POST", "/chat", json.dumps(body).encode()))
    assert str(caught.value) == said


@pytest.mark.parametrize("target", [f"/ask?{'&' * 2_000}q=1", "/ask?q=%ff%00", f"/ask?q={quote('x' * 9)}&q=2"])
def test_parse_prompt__hostile_query__is_bounded(target) -> None:
    mapping = RequestMapping(describe(method="GET", url="http://127.0.0.1:9/ask?q={{message}}"))
    try:
        assert mapping.parse_prompt(RequestContent("GET", target, b"")).text in {"\ufffd\x00", "x" * 9}
    except PromptError as error:
        assert "no question" in str(error)


def test_find_session__place_of_the_placeholder__is_read() -> None:
    mapping = RequestMapping(describe(requestTemplate={"m": "{{message}}", "s": "{{session}}"}))
    contents = [RequestContent("POST", "/chat", json.dumps({"s": value}).encode()) for value in ("x", 5, None, [1])]
    assert [mapping.find_session(one) for one in contents] == ["x", "5", None, None]
