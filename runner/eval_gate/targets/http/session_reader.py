"""Read what an HTTP agent returns of the session of a conversation: its id, a task to continue, and tool calls so far.

The values are untrusted, and the next request has them: they are checked here.
"""

from __future__ import annotations

import re
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Response
from eval_gate.struct import replace
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.conversation_session import ConversationSession
from eval_gate.targets.http.connection import ResponseHead
from eval_gate.targets.http.settings import HttpSettings
from eval_gate.targets.response.settings import find_value
from eval_gate.text.mask import MASK
from eval_gate.text.quoting import quote_name
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, parse_untrusted_json
from eval_gate.text.untrusted.excerpt import format_keys

_MAX_ID: Final = 1_000
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class SessionReader:
    """Reader of the session in one response. `update_session` comes last."""

    def __init__(self, settings: HttpSettings, session: ConversationSession) -> None:
        self._settings = settings
        self._session = session
        self._id: JsonValue = None
        self._task: JsonValue = None
        self._document: JsonValue = None
        """Body of the response if it is JSON, or the names of its headers or cookies, whatever may have the id."""
        self.has_unread_id = False
        """Whether the agent returned another `session` than it got, and no setting reads it."""

    def read_head(self, head: ResponseHead) -> None:
        """Read the header, or the cookie, that has the id."""
        header, cookie = self._settings.session_header, self._settings.session_cookie
        text = head.get_header(header.lower()) if header else head.find_cookie(cookie) if cookie else ""
        self._id = text or self._id
        if header or cookie:
            self._document = dict.fromkeys(head.cookie_names if cookie else head.headers)

    def read_body(self, body: bytes) -> None:
        """Read a JSON body, which alone says whether there is still a task; another one has no paths."""
        self._task = None
        if self._settings.session_path or self._settings.task_path or self._settings.sends_own_member:
            try:
                document = parse_untrusted_json(body)
            except UntrustedJsonError:
                return
            self._document = document if self._settings.session_path else self._document
            self.read_value(document)
            own_id = document.get("session") if isinstance(document, dict) else None
            is_other = isinstance(own_id, str | int) and str(own_id) != self._session.id
            self.has_unread_id = is_other and self._settings.sends_own_member

    def read_value(self, value: JsonValue, name: str = "") -> None:
        """Read a response, or its event `name`. The newest id and the newest task count."""
        self._id = find_value(self._settings.session_path, value, name, self._id)
        self._task = find_value(self._settings.task_path, value, name, self._task)

    def update_session(self, response: Response) -> Response:
        """Note the id and the task in the session, and return the response without the calls of earlier turns.

        Raises TargetError for an id that is missing or malformed, and for other calls than before.
        """
        session, setting = self._session, self._settings.id_setting
        if setting is not None and self._id is not None:
            session.own_id = self._check_id(self._id, setting)
        elif setting is not None and session.own_id is None and self._is_id_required:
            raise self._build_missing_error(setting)
        session.task = None if self._task is None else self._check_id(self._task, "taskPath")
        return self._drop_earlier_calls(response)

    @property
    def _is_id_required(self) -> bool:
        """Whether the next turn needs the id: no condition lets a response be without it, or nothing else is sent."""
        rules = self._settings.session_path
        is_conditional = bool(rules) and not any(rule.where is None and rule.event is None for rule in rules)
        return not (is_conditional and self._settings.repeats_messages)

    def _check_id(self, value: JsonValue, key: str) -> str | int:
        """Return an id. Raises TargetError for a value that must not be sent."""
        text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
        if not isinstance(value, str | int) or not 1 <= len(text) <= _MAX_ID or _UNPRINTABLE.search(text):
            what = f"the id is not a text of 1 to {_MAX_ID:,} characters without control characters"
            raise self._build_error(what, key)
        if MASK in text:
            raise self._build_error("the id has a secret in it, which is masked in responses", key)
        return value

    def _drop_earlier_calls(self, response: Response) -> Response:
        """Return the response with the calls of its own turn, if it lists any."""
        if self._settings.tool_calls_scope == "turn" or response.tool_calls_known is None:
            return response
        earlier, names = self._session.calls, tuple(call.name for call in response.tool_calls)
        if names[: len(earlier)] != earlier:
            what = f"has {len(names):,}, and {len(earlier):,} in the turn before"
            if len(names) >= len(earlier):
                what = "begins with other calls than in the turn before"
            what = f"the list of tool calls {what}, so it is not that of the conversation"
            raise self._build_error(what, "toolCallsScope")
        self._session.calls = names
        return replace(response, tool_calls=response.tool_calls[len(earlier) :])

    def _build_missing_error(self, key: str) -> TargetError:
        """Build the error for a response without the id. It names what is there instead, as for a missing text."""
        settings, keys = self._settings, self._document if isinstance(self._document, dict) else {}
        paths = [rule.path for rule in settings.session_path if rule.path is not None]
        if settings.session_path:
            what = f"value at {' or '.join(map(quote_name, paths))}" if paths else "id of the conversation"
            names = paths[0].describe_nearest_keys(keys) if paths else ""
        else:
            kind = "header" if settings.session_header else "cookie"
            what = f"{kind} {quote_name(settings.session_header or settings.session_cookie or '')}"
            names = f"it has the {kind}s {format_keys(keys)}" if keys else f"it has no {kind}"
        return self._build_error(f"the response has no {what}", key, rest=f"; {names}" if names else "", who="")

    def _build_error(self, what: str, key: str, *, rest: str = "", who: str = "agent error: ") -> TargetError:
        place = self._settings.find_place(key)
        return TargetError(
            f"{who}{what} ({place or key}){rest}",
            fault=TargetFault.MALFORMED,
            hint=f"describe the response with the target's {key}",
        )
