"""Settings of an HTTP target."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, ValidationInfo, field_validator

from eval_gate.config.preset import PresetName
from eval_gate.model.limits import MAX_RESPONSE_BYTES
from eval_gate.targets.http.placeholders import (
    MESSAGE_PLACEHOLDERS,
    PROMPT_PLACEHOLDERS,
    SESSION,
    TASK,
    TURN_PLACEHOLDERS,
    SessionScope,
    check_placeholders,
    is_only_part,
    iter_placeholders,
    iter_session_fields,
)
from eval_gate.targets.http.protocols import apply_preset
from eval_gate.targets.response.field_paths import FieldPath
from eval_gate.targets.response.settings import PathText, PathTexts, ResponseFormat, Rules, StreamSettings, to_list
from eval_gate.targets.settings import (
    AGENT_PLACE,
    READINESS,
    RETRIES,
    SIZES,
    CaseInsensitiveNames,
    DescribedSettings,
    NoEffect,
    NotSecret,
    Text,
    expand_text,
    to_camel_case,
)
from eval_gate.text.quoting import quote_value
from eval_gate.text.secret import Secret, SecretAddress
from eval_gate.text.urls import find_url_problem

ENDPOINT_NAME: Final = "agent"
"""Name of a target that only has an address."""
_NOTHING: Final = Secret[JsonValue](None)
_AUTHORITY: Final = re.compile(r"[^/?#]*(?://[^/?#]*)?")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class Method(StrEnum):
    """HTTP method of a request to an agent."""

    POST = "POST"
    GET = "GET"
    PUT = "PUT"
    PATCH = "PATCH"
    DELETE = "DELETE"

    @property
    def has_body(self) -> bool:
        """Whether the question may be in a body."""
        return self not in {Method.GET, Method.DELETE}


WordList = Annotated[
    tuple[Text, ...],
    NotSecret("they are words of a response"),
    AfterValidator(lambda words: tuple(map(str.lower, words))),
    BeforeValidator(to_list, json_schema_input_type=Text | list[Text]),
]


class HttpHealthCheck(DescribedSettings):
    """Health check before the run: any 2xx response is healthy."""

    type: Literal["http"] = "http"
    url: SecretAddress[Text]
    timeout_seconds: float = Field(default=10, gt=0, le=600)


class Polling(DescribedSettings):
    """How to poll an asynchronous agent for its response."""

    url: SecretAddress[Text] | None = Field(
        default=None, description="URL of the job's status, with {{id}}; relative to the agent's URL."
    )
    url_path: PathText | None = Field(
        default=None, description="Path of that URL in the first response; by default its Location header is used."
    )
    id_path: PathText | None = Field(default=None, description="Path of {{id}} in the first response.")
    request_template: Secret[JsonValue] = Field(
        default=None,
        validate_default=True,
        description="JSON body of the status request, which is then a POST; otherwise it is a GET.",
    )
    status_path: PathTexts = Field(default=(FieldPath("status"),), description="Path of the job's status.")
    done: WordList = Field(
        default=("done", "completed", "complete", "succeeded", "success", "finished"),
        description="Statuses of a finished job.",
    )
    failed: WordList = Field(
        default=("failed", "failure", "error", "errored", "cancelled", "canceled", "rejected", "expired"),
        description="Statuses of a failed job. With any other status, the job is running.",
    )
    interval_ms: float = Field(default=1000, ge=20, le=600_000)
    timeout_seconds: float | None = Field(
        default=None, gt=0, le=86_400, description="Time limit of the job; by default that of the case."
    )

    @field_validator("url", "request_template")
    @classmethod
    def _check_job_placeholders(cls, template: Secret[JsonValue] | None) -> Secret[JsonValue] | None:
        check_placeholders(None if template is None else template.open(), more=("id",))
        return template


_ACCEPTS: Final = {
    ResponseFormat.JSON: "application/json",
    ResponseFormat.TEXT: "text/plain, */*",
    ResponseFormat.SSE: "text/event-stream",
    ResponseFormat.NDJSON: "application/x-ndjson, application/json",
}


class HttpSettings(StreamSettings):
    """Settings of an HTTP agent. Keys can also be written in snake_case."""

    refers_within_texts: ClassVar[bool] = True

    provider: Literal["http"] = "http"
    url: Annotated[SecretAddress[Text], AGENT_PLACE]
    agent_protocol: PresetName = PresetName.EVAL_GATE
    method: Method = Method.POST
    task_path: Rules = Field(
        default=(),
        description="Path of a task that the next turn must continue, as {{task}}; without a value there is none.",
    )
    headers: Annotated[Secret[dict[str, str]], CaseInsensitiveNames()] = Field(
        default_factory=dict, validate_default=True
    )
    request_template: Secret[JsonValue] = Field(
        default=None,
        validate_default=True,
        description="JSON body; placeholders such as {{message}} are replaced in its strings.",
    )
    form: Secret[Annotated[dict[str, JsonValue], Field(min_length=1)]] | None = Field(
        default=None, description="Form body, instead of JSON."
    )
    request_fields: Secret[dict[str, JsonValue]] = Field(
        default_factory=dict,
        validate_default=True,
        description="Additional members of the JSON body, such as model, merged with those of a preset.",
    )
    query: Secret[dict[str, JsonValue]] = Field(
        default_factory=dict, validate_default=True, description="Query parameters to add to the URL."
    )
    message_template: Secret[JsonValue] = Field(
        default=None,
        validate_default=True,
        description="Format of each message in {{conversation}}, with {{role}}, {{content}} and {{index}}.",
    )
    session: SessionScope = Field(
        default=SessionScope.EXECUTION,
        description="Scope of {{session}}: new for every execution of a case, or the same for all trials of a case.",
    )
    poll: Polling | None = Field(default=None, description="How to poll an asynchronous agent for its response.")
    session_path: Rules = Field(
        default=(),
        description="Path of the conversation's id in a response, which is then {{session}} of the next turns. With "
        "where, only responses that meet the condition have one.",
    )
    session_header: Annotated[Text | None, NotSecret("it is the name of a header")] = Field(
        default=None, description="Header of a response with that id, instead of sessionPath."
    )
    session_cookie: Annotated[Text | None, NotSecret("it is the name of a cookie")] = Field(
        default=None, description="Cookie with that id, instead of sessionPath; it is sent back with the next turns."
    )
    trace_header: Annotated[
        Text | None, NotSecret("it is the name of a header"), NoEffect("it only finds the trace of a response")
    ] = Field(
        default=None,
        pattern=f"^{_HEADER_NAME.pattern}$",
        description="Header of a response with the id or address of its trace; by default traceparent or x-trace-id.",
    )
    traceparent: Annotated[bool, NoEffect("it only names the trace of a request")] = Field(
        default=False,
        description="Send the headers traceparent, with a new trace id for each execution, and baggage, with the case "
        "and the run.",
    )
    tool_calls_scope: Literal["turn", "conversation"] = Field(
        default="turn", description="Calls in a response: those of its turn, or those of all turns so far, in order."
    )
    healthcheck: Annotated[
        HttpHealthCheck | None,
        BeforeValidator(expand_text("url"), json_schema_input_type=HttpHealthCheck | Text | None),
        READINESS,
    ] = None
    wait_for: Annotated[float | None, READINESS] = Field(
        default=None,
        ge=0,
        le=3600,
        description="Seconds to wait until the agent is ready; by default 30 if it is on this machine, otherwise 0.",
    )
    max_retries: Annotated[int | None, RETRIES] = Field(default=None, ge=0, le=20)
    initial_delay_ms: Annotated[float | None, RETRIES] = Field(default=None, ge=0)
    max_delay_ms: Annotated[float | None, RETRIES] = Field(default=None, ge=0)
    backoff_factor: Annotated[float | None, RETRIES] = Field(default=None, ge=1)
    retryable_status_codes: Annotated[frozenset[int] | None, RETRIES] = None
    max_response_bytes: Annotated[int, SIZES] = Field(default=MAX_RESPONSE_BYTES, gt=0, le=1_000_000_000)

    @property
    def place(self) -> SecretAddress[str]:
        """The agent's URL."""
        return self.url

    @property
    def accepts(self) -> str:
        """Content types that the agent may respond with."""
        return _ACCEPTS[self.response_format]

    @field_validator("url")
    @classmethod
    def _check_host(cls, url: SecretAddress[str]) -> SecretAddress[str]:
        text = url.open()
        check_placeholders(text)
        authority = _AUTHORITY.match(text)
        if authority and any(iter_placeholders(authority[0])):
            raise ValueError("placeholders are not allowed in the host: a case must not choose the agent")
        problem = find_url_problem(text)
        if problem is not None:
            raise ValueError(problem)
        return url

    @field_validator("method", mode="before")
    @classmethod
    def _normalize_method(cls, method: object) -> object:
        """Convert a method to upper case, or return it as written if validation is to report it as unknown."""
        word = method.strip().upper() if isinstance(method, str) else ""
        return word if word in set(Method) else method

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: Secret[dict[str, str]]) -> Secret[dict[str, str]]:
        plain = {name: value.strip() for name, value in headers.open().items()}
        for name, value in plain.items():
            check_placeholders(value)
            if not _HEADER_NAME.fullmatch(name):
                raise ValueError(f"{quote_value(name)} is not the name of a header")
            if any(sign < " " or sign == "\x7f" for sign in value):
                raise ValueError(f"the value of {name} contains a line break or another control character")
        return Secret(plain)

    @field_validator("request_template", "form", "request_fields", "query", "message_template")
    @classmethod
    def _check_template_placeholders(
        cls, template: Secret[JsonValue] | None, info: ValidationInfo
    ) -> Secret[JsonValue] | None:
        value, is_body = None if template is None else template.open(), info.field_name != "message_template"
        check_placeholders(value, more=(TASK,) if is_body else MESSAGE_PLACEHOLDERS)
        if TASK in iter_placeholders(value) and not info.data.get("task_path", True):
            raise ValueError("{{task}} has no value: set taskPath")
        if is_only_part(value, TASK):
            raise ValueError("{{task}} must be a whole value, which is left out if there is no task")
        return template

    @field_validator("request_template", "form", "request_fields")
    @classmethod
    def _check_body_allowed(cls, body: Secret[JsonValue] | None, info: ValidationInfo) -> Secret[JsonValue] | None:
        method = info.data.get("method", Method.POST)
        if body and not method.has_body:
            raise ValueError(f"a request with {method} has no body: put {{{{message}}}} into query or url")
        return body

    @field_validator("form", "request_fields")
    @classmethod
    def _check_single_body(cls, body: Secret[JsonValue] | None, info: ValidationInfo) -> Secret[JsonValue] | None:
        template = info.data.get("request_template", _NOTHING).open()
        if info.field_name == "form" and body and template is not None:
            raise ValueError("set form or requestTemplate, not both")
        if info.field_name == "request_fields" and body:
            if info.data.get("form"):
                raise ValueError("these are members of a JSON body, but the body is a form")
            if template is not None and not isinstance(template, dict):
                raise ValueError("requestTemplate is not a mapping, so it cannot have more members")
        return body

    @field_validator("query")
    @classmethod
    def _check_prompt_sent(
        cls, query: Secret[dict[str, JsonValue]], info: ValidationInfo
    ) -> Secret[dict[str, JsonValue]]:
        """Check that the prompt is sent; `query` is the last of these fields, so the others are known here."""
        data = info.data
        if not {"url", "method", "headers", "request_template", "form", "request_fields"} <= data.keys():
            return query
        if data["method"].has_body and data["request_template"].open() is None and not data["form"]:
            return query
        sent = [template for _, template in _iter_request_parts(data | {"query": query})]
        if not PROMPT_PLACEHOLDERS & set(iter_placeholders(sent)):
            raise ValueError("the prompt is not sent: {{message}} is missing in url, query or body")
        return query

    @field_validator("session_path", "session_header", "session_cookie")
    @classmethod
    def _check_session(cls, place: object, info: ValidationInfo) -> object:
        """Check that an id that the agent makes is read at one place, and can be left out before it is known."""
        data = info.data
        if not place:
            return place
        if isinstance(place, str) and not _HEADER_NAME.fullmatch(place):
            raise ValueError(f"{quote_value(place)} is not a name of a header or cookie")
        if isinstance(place, tuple) and data.get("response_format") is ResponseFormat.TEXT:
            raise ValueError("a plain text has no paths: use sessionHeader or sessionCookie")
        if data.get("session") is SessionScope.CASE:
            raise ValueError("the agent makes the ids, so that trials cannot share one: remove `session: case`")
        if any(data.get(name) for name in ("session_path", "session_header") if name != info.field_name):
            raise ValueError("keep one of sessionPath, sessionHeader and sessionCookie: the agent's id is at one place")
        poll: Polling | None = data.get("poll")
        job: list[JsonValue] = [one.open() for one in (poll.url, poll.request_template) if one] if poll else []
        for key, template in (*_iter_request_parts(data), ("poll", job)):
            if is_only_part(template, SESSION):
                raise ValueError(
                    f"the first request has no id yet: write {{{{session}}}} in {key} as a whole value, which is then "
                    "left out, or in query"
                )
        return place

    @property
    def sent_placeholders(self) -> frozenset[str]:
        """Placeholders in the requests, with those of the body that an agent without a template gets."""
        is_plain = self.method.has_body and self.request_template.open() is None and self.form is None
        own = {"message", "session", "conversation"} if self.agent_protocol is PresetName.EVAL_GATE else {"message"}
        return self._written_placeholders | (own if is_plain else set())

    @property
    def _written_placeholders(self) -> frozenset[str]:
        parts = _iter_request_parts(vars(self))
        return frozenset(name for _, template in parts for name in iter_placeholders(template))

    @property
    def id_setting(self) -> str | None:
        """Name of the setting that says where the agent's id is; None if Eval Gate makes the ids."""
        names = ("session_path", "session_header", "session_cookie")
        return next((to_camel_case(name) for name in names if getattr(self, name)), None)

    @property
    def names_session(self) -> bool:
        """Whether the agent can tell conversations apart, by `{{session}}` or its own cookie."""
        return "session" in self.sent_placeholders or self.session_cookie is not None

    @property
    def sends_own_member(self) -> bool:
        """Whether a turn has Eval Gate's id as `session` of its own protocol, and the agent's id is read nowhere."""
        return "session" in self.sent_placeholders - self._written_placeholders and self.id_setting is None

    @property
    def repeats_messages(self) -> bool:
        """Whether requests have all messages, at least as long as the agent cannot know them."""
        return bool(self.sent_placeholders & {"conversation", "prompt"})

    @property
    def repeats_turns(self) -> bool:
        """Whether requests name the conversation and also repeat it, though their protocol does not ask for both."""
        asks_for_both = self.agent_protocol in {PresetName.AG_UI, PresetName.VERCEL_AI}
        return {"session", "conversation"} <= self._written_placeholders and not asks_for_both

    @property
    def conversation_problem(self) -> str | None:
        """Why it cannot hold a conversation, as the rest of a sentence; None where it can."""
        if self.session is SessionScope.CASE:
            return "`session: case` shares one session between executions, and a conversation needs its own"
        if not self.sent_placeholders & TURN_PLACEHOLDERS:
            return "it does not send {{message}}, so that all turns would be the same request"
        if self.id_setting and not self.names_session:
            return "it does not send {{session}}, the id that the agent returned"
        if not self.names_session and not self.repeats_messages:
            key, example = self._session_example
            place = self.find_place(key) or self.find_place("url")
            return (
                "it sends neither {{session}} nor {{conversation}} nor {{prompt}}, so the agent knows no earlier turn. "
                f"Send the id of the conversation where the agent expects it, such as `{key}: {example}`"
                f"{f' ({place})' if place else ''}, with sessionPath if the agent makes the id; or all messages, as "
                "{{conversation}} or {{prompt}}"
            )
        return None

    @property
    def _session_example(self) -> tuple[str, str]:
        """Setting that can send the id of a conversation, and an example of its value."""
        if self.agent_protocol is PresetName.LANGGRAPH_THREAD:
            return "url", "http://localhost:2024/threads/{{session}}/runs/wait"
        return "requestFields" if self.method.has_body and not self.form else "query", '{ session: "{{session}}" }'

    @property
    def remarks(self) -> tuple[str, ...]:
        """Whether all executions of a case share one conversation."""
        sent = (self.url, self.query, self.request_template, self.form or _NOTHING, self.request_fields)
        field = next(iter_session_fields([*(one.open() for one in sent), dict(self.headers.open())]), None)
        if field is None:
            return ()
        what = f"{{{{caseId}}}} in {field[:80]} is the same in every trial, re-run and run: an agent with a memory"
        return (f"{what} continues the earlier conversation; {{{{session}}}} is new each time",)

    @classmethod
    def complete_values(cls, values: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Complete the settings with those of their preset."""
        if values.get("agentProtocol", PresetName.EVAL_GATE) == PresetName.EVAL_GATE:
            return super().complete_values(values)
        return apply_preset(values)


def _iter_request_parts(settings: Mapping[str, object]) -> Iterator[tuple[str, JsonValue]]:
    """Yield the parts of a request that have placeholders, by the names of their settings."""
    names = ("url", "headers", "query", "request_template", "form", "request_fields", "message_template")
    for name in names:
        part = settings.get(name)
        if isinstance(part, Secret):
            yield to_camel_case(name), part.open()
