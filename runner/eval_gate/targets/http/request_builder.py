"""Build the requests to an HTTP agent: values of placeholders, method, address, headers and body."""

from __future__ import annotations

import json
import secrets
import uuid
from base64 import b64encode
from collections.abc import Mapping
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode, urljoin, urlsplit

from yarl import URL

from eval_gate.config.preset import PresetName
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Message
from eval_gate.targets.agent_address import ContainerProbe, resolve_host
from eval_gate.targets.base import Request, TargetError, TargetFault
from eval_gate.targets.http.connection import HttpRequest
from eval_gate.targets.http.placeholders import (
    SESSION,
    TASK,
    Placeholder,
    SessionScope,
    fill_address,
    fill_header,
    fill_template,
    format_value,
    iter_placeholders,
)
from eval_gate.targets.model.proxied_providers import EXECUTION_HEADER
from eval_gate.targets.response.field_paths import MISSING, MissingValue
from eval_gate.text.turns import flatten_messages
from eval_gate.text.untrusted.surrogates import to_well_formed

if TYPE_CHECKING:
    from eval_gate.targets.http.settings import HttpSettings

_FORM_TYPE: Final = "application/x-www-form-urlencoded"
_SAFE_CHARACTERS: Final = "%/:@!$&'()*+,;=?~"
"""Characters that are not encoded in a path or query, including the percent sign of already encoded text."""

_MAX_CASE_ID: Final = 500
"""Characters of a case's id in `baggage`, which has at most 8,192 bytes."""


class PlaceholderValues:
    """Values of the placeholders in one request. A `uuid` is the same everywhere in the request."""

    def __init__(self, request: Request, settings: HttpSettings) -> None:
        self.request = request
        self._settings = settings
        self._values: dict[str, Placeholder] = {}

    def __getitem__(self, name: str) -> Placeholder:
        """Return the value of the placeholder `name`, computed once. Raises KeyError for an unknown one."""
        if name not in self._values:
            self._values[name] = self._compute_value(name)
        return self._values[name]

    def _compute_value(self, name: str) -> Placeholder:
        request = self.request
        match name:
            case "message":
                return request.messages[-1].content
            case "conversation":
                template = self._settings.message_template.open()
                return [self._render_message(template, message, at) for at, message in enumerate(request.messages)]
            case "prompt":
                knows_session = self._settings.names_session and self[SESSION] is not MISSING
                is_known = request.turn > 1 and knows_session  # the agent has the turns before this one
                return flatten_messages(request.messages[-1:] if is_known else request.messages)
            case "caseId":
                return request.case_id
            case "trial":
                return request.trial
            case "runId":
                return request.run_id
            case _:
                return self._compute_id(name)

    def _compute_id(self, name: str) -> Placeholder:
        """Compute the id of a session, a task or a request. Raises KeyError for an unknown placeholder."""
        request, session = self.request, self.request.open_session
        if name == TASK or (name == SESSION and self._settings.id_setting):
            value = None if session is None else session.task if name == TASK else session.own_id
            return MISSING if value is None else value
        if name == SESSION and session is not None:
            return session.id
        if name == SESSION and self._settings.session is SessionScope.CASE:
            place = f"{request.run_id}\n{request.eval_file}\n{request.case_id}"
            place += f"\n{request.rerun}" if request.rerun else ""
            return str(uuid.uuid5(uuid.NAMESPACE_URL, to_well_formed(place)))
        if name in {SESSION, "uuid"}:
            return str(uuid.uuid4())
        raise KeyError(name)

    def _render_message(self, template: JsonValue, message: Message, at: int) -> JsonValue:
        own: dict[str, JsonValue] = {"role": message.role, "content": message.content}
        if template is None:
            return own
        own["index"] = at
        return fill_template(template, lambda name: own[name] if name in own else self[name])


class RequestBuilder:
    """Builder of the requests to one target. Parts that never change are built once.

    Only this module opens the secret address, headers and templates of the target.
    """

    def __init__(self, settings: HttpSettings, system: ContainerProbe) -> None:
        self._settings = settings
        self._system = system
        self._address, self._query = settings.url.open(), settings.query.open()
        self._template, self._fields = settings.request_template.open(), settings.request_fields.open()
        self._form = None if settings.form is None else settings.form.open()
        headers = settings.headers.open()
        self._own_headers = {name.lower(): text for name, text in headers.items() if any(iter_placeholders(text))}
        self.url, self.headers = self._build_fixed_parts(self._address, headers)
        """Where to connect to, as far as it is the same for every case, and the headers that are, without those of a
        case."""
        self._per_case = bool(self._query) or any(iter_placeholders(self._address))

    def build_values(self, request: Request) -> PlaceholderValues:
        """Build the placeholder values of one case, for its request and all that follow from it."""
        return PlaceholderValues(request, self._settings)

    def find_agent_address(self, text: str) -> URL | None:
        """Resolve an address relative to that of the agent; None if it is invalid or at another host or port."""
        try:
            own, address = URL(self._address), parse_address(urljoin(self._address, text))
        except ValueError:
            return None
        same = (address.scheme, address.port) == (own.scheme, own.port) and address.host in {own.host, self.url.host}
        return self.resolve_url(address) if same else None

    def build_request(self, request: Request, values: PlaceholderValues | None = None) -> HttpRequest:
        """Build the request for one case. Raises TargetError if the request must not be sent."""
        settings = self._settings
        values = values or self.build_values(request)
        url = self._build_url(values) if self._per_case else self.url
        return HttpRequest(
            settings.method,
            url,
            self.build_headers(values),
            self._build_body(request, values),
            is_repeatable=request.open_session is None or not settings.names_session,
        )

    def build_headers(self, values: PlaceholderValues) -> Mapping[str, str]:
        """Build the headers for one case, with names in lower case."""
        cookie = self._settings.session_cookie
        if not self._own_headers and cookie is None:
            return self._add_execution_headers(self.headers, values.request)
        filled = {name: fill_header(text, values.__getitem__) for name, text in self._own_headers.items()}
        headers = {
            **self.headers,
            **{name: text for name, text in filled.items() if not isinstance(text, MissingValue)},
        }
        if cookie is not None and values[SESSION] is not MISSING:
            headers["cookie"] = "; ".join(filter(None, (headers.get("cookie"), f"{cookie}={values[SESSION]}")))
        return self._add_execution_headers(headers, values.request)

    def _add_execution_headers(self, headers: Mapping[str, str], request: Request) -> Mapping[str, str]:
        """Add the headers that tell the agent which execution a request is of (W3C Trace Context, W3C Baggage)."""
        if request.variables:
            headers = {**headers, EXECUTION_HEADER: request.execution_id}
        if not request.execution_id or not self._settings.traceparent:
            return headers
        case_id, run_id = quote(to_well_formed(request.case_id[:_MAX_CASE_ID]), safe=""), quote(request.run_id, safe="")
        baggage = (headers.get("baggage"), f"eval-gate.case={case_id}", f"eval-gate.run={run_id}")
        traceparent = f"00-{request.execution_id}-{secrets.token_hex(8)}-01"
        return {**headers, "traceparent": traceparent, "baggage": ",".join(filter(None, baggage))}

    def _build_body(self, request: Request, values: PlaceholderValues) -> bytes | None:
        if not self._settings.method.has_body:
            return None
        if self._form is not None:
            return _encode_fields(self._form, values).encode()
        template = self._template
        if template is None:
            content = request.messages[-1].content
            is_single = len(request.messages) == 1 and request.open_session is None
            if isinstance(content, str) and is_single and not self._fields:
                # the same bytes as below, in a third of the time
                return b'{"message": %b}' % encode_basestring_ascii(content).encode()
            template = self._build_own_template(request)
        body = fill_template(template, values.__getitem__)
        if self._fields:
            fields = fill_template(self._fields, values.__getitem__)
            assert isinstance(body, dict)  # the settings were checked
            assert isinstance(fields, dict)
            body = body | fields
        return json.dumps(body).encode()

    def _build_own_template(self, request: Request) -> JsonValue:
        """Build the body of Eval Gate's own protocol; an agent of tool-forge takes nothing but a message in a turn."""
        is_turn, is_own = request.open_session is not None, self._settings.agent_protocol is PresetName.EVAL_GATE
        names = ["message", *(["session"] if is_turn and is_own else [])]
        names += ["conversation"] if len(request.messages) > 1 and (is_own or not is_turn) else []
        return {name: f"{{{{{name}}}}}" for name in names}

    def _build_url(self, values: PlaceholderValues) -> URL:
        """Build the address for one case. Raises TargetError if the values of the case would lead to another path."""
        text = fill_address(self._address, values.__getitem__)
        address, mark, fragment = text.partition("#")
        if self._query:
            address += ("&" if "?" in address else "?") + _encode_fields(self._query, values)
        steps = address.partition("?")[0].split("/")
        if "." in steps or ".." in steps:
            raise TargetError(
                "the case puts . or .. into the agent's URL, which would change its path",
                fault=TargetFault.NOT_SENT,
            )
        return self.resolve_url(parse_address(address + mark + fragment))

    def _build_fixed_parts(self, url: str, header_texts: Mapping[str, str]) -> tuple[URL, Mapping[str, str]]:
        """Where to connect to and the headers of every request, their names in lower case."""
        settings, address = self._settings, parse_address(url)
        headers = {"accept": settings.accepts, "user-agent": "eval-gate"}
        if settings.method.has_body:
            headers["content-type"] = _FORM_TYPE if self._form is not None else "application/json"
        for name, text in header_texts.items():
            if name.lower() not in self._own_headers:
                headers[name.lower()] = text
        if address.user is not None or address.password is not None:
            credentials = b64encode(f"{address.user or ''}:{address.password or ''}".encode()).decode()
            headers.setdefault("authorization", f"Basic {credentials}")
        plain = self.resolve_url(address)
        if plain.host != address.host:
            headers.setdefault("host", address.host_port_subcomponent or "")
        return plain, headers

    def resolve_url(self, address: URL) -> URL:
        """Where to connect to, without credentials."""
        host = resolve_host(address.host or "", self._system)
        plain = address.with_user(None)
        return plain if host == address.host else plain.with_host(host)


def parse_address(text: str) -> URL:
    """Parse an address and keep its percent-encoding as it is written.

    yarl alone decodes characters that need no encoding, which would break the signature of a signed address. Raises
    ValueError.
    """
    url, parts = URL(text), urlsplit(text)
    if "%" not in parts.path + parts.query:
        return url
    path, query = (quote(part, safe=_SAFE_CHARACTERS) for part in (parts.path, parts.query))
    return URL.build(scheme=url.scheme, authority=url.raw_authority, path=path, query_string=query, encoded=True)


def _encode_fields(fields: dict[str, JsonValue], values: PlaceholderValues) -> str:
    """Encode the fields as a query or a form, with placeholders replaced."""
    filled = fill_template(fields, values.__getitem__)
    assert isinstance(filled, dict)
    return urlencode({to_well_formed(name): to_well_formed(format_value(value)) for name, value in filled.items()})
