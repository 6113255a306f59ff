"""Messages of a conversation, in the encodings of protocols and frameworks, and the prompt of a user in them.

Encodings differ in the names of keys, in the structure around a message, and in whether it is JSON text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Final, Literal, TypeAlias

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Message
from eval_gate.model.limits import CALL_NAME, DRAFT_EARLIER_MESSAGES, DRAFT_PROMPT, RESPONSE_CALLS, RESPONSE_MESSAGES
from eval_gate.struct import FrozenStruct
from eval_gate.text.javascript.strings import dump_compact_json
from eval_gate.text.sources.validation_errors import describe_value
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, parse_untrusted_json
from eval_gate.text.untrusted.excerpt import format_keys
from eval_gate.text.untrusted.surrogates import to_well_formed

Role = Literal["system", "user", "assistant", "tool"]
_Entry: TypeAlias = Mapping[str, JsonValue] | JsonValue
ROLES: Final[Mapping[str, Role]] = {
    **dict.fromkeys(("user", "human", "role_user", "humanmessage"), "user"),
    **dict.fromkeys(("assistant", "ai", "agent", "model", "bot", "role_agent", "aimessage"), "assistant"),
    **dict.fromkeys(("system", "developer", "systemmessage"), "system"),
    **dict.fromkeys(("tool", "function", "toolmessage"), "tool"),
}
"""Roles by the words that protocols and frameworks use for them, in lower case."""
_ROLE_KEYS: Final = ("role", "type", "sender", "author")
_CONTAINERS: Final = ("messages", "contents", "generations", "choices", "prompt", "input", "output")
"""Keys of a request, a response or a state below which messages are."""
_ENVELOPES: Final = ("message", "kwargs", "data", "content")
"""Keys of a mapping without a role that has a whole message below it: OpenInference, LangChain, OpenAI, Google."""
_CONTENT: Final = ("parts", "contents", "content", "text", "message", "object")
_CALLS: Final = ("tool_calls", "toolCalls")
_PART_KINDS: Final[Mapping[str, Literal["text", "call", "result"]]] = {
    **dict.fromkeys(("text", "output_text", "input_text", "message_content", "content"), "text"),
    **dict.fromkeys(("tool_call", "server_tool_call", "function_call", "functionCall"), "call"),
    **dict.fromkeys(("tool_use", "toolUse", "tool-call"), "call"),
    **dict.fromkeys(("tool_call_response", "server_tool_call_response"), "result"),
    **dict.fromkeys(("function_response", "functionResponse"), "result"),
    **dict.fromkeys(("tool_result", "toolResult", "tool-result"), "result"),
}
"""Parts of a message by their `type`, or by the key of a mapping without one. Thoughts and files are left out."""
_IDS: Final = ("tool_call_id", "toolCallId", "toolUseId", "tool_use_id", "call_id", "id")
_ARGUMENTS: Final = ("arguments", "args", "input", "server_tool_call")
_RESULTS: Final = ("response", "result", "output", "content")


class SourceCall(FrozenStruct):
    """Tool call in a message. `arguments` is None if the source does not have them."""

    name: str
    id: str = ""
    arguments: JsonValue = None


class SourceMessage(FrozenStruct):
    """One message: its text, the tools that it calls and the results of tools that it brings, by the id of the call."""

    role: Role
    text: str = ""
    calls: tuple[SourceCall, ...] = ()
    results: tuple[tuple[str, JsonValue], ...] = ()

    @property
    def is_prompt(self) -> bool:
        """Whether it has text of a user: results of tools come in messages of a user, too."""
        return self.role == "user" and bool(self.text.strip())


def find_last_prompt(messages: Iterable[SourceMessage]) -> int:
    """Find the index of the last message with text of a user; -1 if there is none."""
    return max((at for at, one in enumerate(messages) if one.is_prompt), default=-1)


def iter_messages(value: JsonValue, role: Role | None = None) -> Iterator[SourceMessage]:
    """Yield the messages in a value or its JSON text, at most `RESPONSE_MESSAGES`.

    `role` is that of a plain text, and of a message that does not say it; without it, these are left out. The text of a
    user's message that has something else than text is the JSON of that.
    """
    for at, (entry, own) in enumerate(_iter_entries(decode_json(value), role)):
        if at >= RESPONSE_MESSAGES:
            return
        yield _parse_message(entry, own)


def decode_json(value: JsonValue) -> JsonValue:
    """Decode a value that may be the JSON text of a structure. Any other text stays as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    try:
        return parse_untrusted_json(value)
    except UntrustedJsonError:
        return value


def dump_structure(value: JsonValue) -> str:
    """Dump a list or mapping with something in it as JSON; the result is empty for any other value."""
    return to_well_formed(dump_compact_json(value)) if value and isinstance(value, list | dict) else ""


def unwrap_result(value: JsonValue) -> JsonValue:
    """Return what a tool returned: the text of its parts, or the value without its type."""
    if isinstance(value, dict) and value.keys() == {"type", "value"}:
        return value["value"]
    texts = [one.get("text") if isinstance(one, dict) else None for one in value] if isinstance(value, list) else []
    strings = [text for text in texts if isinstance(text, str)]
    return decode_json("".join(strings)) if texts and len(strings) == len(texts) else value


def _iter_entries(
    value: JsonValue, role: Role | None, *, listed: bool = False
) -> Iterator[tuple[Mapping[str, JsonValue], Role]]:
    """Yield every mapping that is a message, with its role, and a plain text as one unless it is `listed`."""
    match value:
        case str() if role and value.strip() and not listed:
            yield {"content": value}, role
        case list():
            for member in value:
                yield from _iter_entries(member, role, listed=True)
        case dict():
            container = None if _find_role(value) else next((key for key in _CONTAINERS if key in value), None)
            if container is not None:
                yield from _iter_entries(decode_json(value[container]), role, listed=listed)
                return
            entry = _open_envelope(value)
            own = _find_role(entry) or role
            if own and any(key in entry for key in (*_CONTENT, *_CALLS)):
                yield entry, own


def _find_role(entry: Mapping[str, JsonValue]) -> Role | None:
    words = (word.strip().lower() for key in _ROLE_KEYS if isinstance(word := entry.get(key), str))
    return next((ROLES[word] for word in words if word in ROLES), None)


def _open_envelope(entry: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Return the message in a mapping that has it below a key; otherwise the mapping."""
    while "role" not in entry and (
        inner := next((member for key in _ENVELOPES if isinstance(member := entry.get(key), dict)), None)
    ):
        names = entry.get("id")  # of a class of LangChain
        entry = {"type": names[-1] if isinstance(names, list) and names else None, **inner}
    content = entry.get("content")  # Google writes {"role": …, "parts": …} there
    return {**entry, **content} if isinstance(content, dict) and "parts" in content else entry


def _parse_message(entry: Mapping[str, JsonValue], role: Role) -> SourceMessage:
    content = _get_first(entry, _CONTENT)
    decoded = decode_json(content)
    is_parts = isinstance(decoded, list) and all(_find_part_kind(one) for one in decoded)
    content = decoded if is_parts else content  # any other JSON is the message's text
    parts = [_open_part(one) for one in (content if isinstance(content, list) else [content])]
    text = "".join(_get_text(part) for kind, part in parts if kind == "text")
    listed = decode_json(_get_first(entry, _CALLS))
    calls = [part for kind, part in parts if kind == "call"] + (listed if isinstance(listed, list) else [])
    results = [(_get_id(part), _get_first(part, _RESULTS)) for kind, part in parts if kind == "result"]
    if role == "tool":
        text, results = "", results or [(_get_id(entry), content)]
    if role == "user" and not text and not results:
        text = dump_structure(content)
    return SourceMessage(
        role,
        to_well_formed(text),
        tuple(_iter_calls(calls[:RESPONSE_CALLS])),
        tuple((key, unwrap_result(decode_json(value))) for key, value in results[:RESPONSE_CALLS]),
    )


def _find_part_kind(part: JsonValue) -> str | None:
    """Find the word for the kind of a part: its type, or its only key."""
    if not isinstance(part, dict):
        return None
    kind = part.get("type", part.get("kind"))
    if kind is None:
        keys = [key for key, value in part.items() if value is not None]
        kind = next((key for key in keys if key in _PART_KINDS), keys[0] if len(keys) == 1 else None)
    return kind if isinstance(kind, str) else None


def _open_part(part: JsonValue) -> tuple[str, JsonValue]:
    """Return the kind of a part, and the part itself or what is below the key of its kind."""
    if not isinstance(part, dict):
        return "text", part
    word = _find_part_kind(part) or "text"
    inner = part.get(word)
    kind = "" if part.get("thought") is True else _PART_KINDS.get(word, "")
    return kind, inner if isinstance(inner, dict) else part


def _get_text(part: JsonValue) -> str:
    values = (part.get("content"), part.get("text")) if isinstance(part, dict) else (part,)
    return next((value for value in values if isinstance(value, str)), "")


def _iter_calls(entries: Iterable[JsonValue]) -> Iterator[SourceCall]:
    for entry in entries:
        outer = _get_first(entry, ("tool_call",)) or entry
        inner = _get_first(outer, ("function",)) or outer
        name = _get_first(inner, ("name", "toolName"))
        if isinstance(name, str) and 0 < len(name) <= CALL_NAME:
            yield SourceCall(to_well_formed(name), _get_id(outer), decode_json(_get_first(inner, _ARGUMENTS)))


def _get_id(value: _Entry) -> str:
    identifier = _get_first(value, _IDS)
    return identifier if isinstance(identifier, str) else str(identifier) if isinstance(identifier, int) else ""


def _get_first(value: _Entry, keys: Iterable[str]) -> JsonValue:
    values = map(value.get, keys) if isinstance(value, dict) else ()
    return next((one for one in values if one is not None), None)


class PromptError(ValueError):
    """A conversation without a usable prompt, such as a `blank question`; `detail` is the structure read instead."""

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


class UserPrompt(FrozenStruct):
    """The last message of a user, and the messages before it, oldest first."""

    text: str
    earlier_messages: tuple[Message, ...] = ()


def build_prompt(text: str, earlier_messages: tuple[Message, ...] = ()) -> UserPrompt:
    """Build a prompt. Raises PromptError if it is blank, too large or not what a person wrote."""
    if not text.strip():
        raise PromptError("blank question")
    structure = _describe_structure(text)
    if structure is not None:
        raise PromptError("the question is JSON, not a text that a person wrote", structure)
    if len(earlier_messages) > DRAFT_EARLIER_MESSAGES:
        raise PromptError(f"more than {DRAFT_EARLIER_MESSAGES:,} messages before the question")
    if any(len(str(one)) > DRAFT_PROMPT for one in (text, *(one.content for one in earlier_messages))):
        raise PromptError(f"message of more than {DRAFT_PROMPT:,} characters")
    return UserPrompt(to_well_formed(text), earlier_messages)


class SessionMessages:
    """Messages of each session so far, for sources in which an entry has only its own; of `most` sessions at most."""

    def __init__(self, most: float = inf) -> None:
        self._messages: dict[str, tuple[Message, ...]] = {}
        self._unanswered: set[str] = set()
        self._most = most

    def complete_prompt(self, session: str | None, prompt: UserPrompt) -> UserPrompt:
        """Add the messages before a prompt that has none. Raises PromptError if they are too many.

        The same message after one without a response is another attempt at it.
        """
        earlier = self._messages.get(session or "", ())
        if session in self._unanswered and earlier[-1].content == prompt.text:
            earlier = earlier[:-1]
        return build_prompt(prompt.text, earlier) if earlier and not prompt.earlier_messages else prompt

    def add_exchange(self, session: str | None, prompt: UserPrompt, text: str, reply: str | None) -> None:
        """Remember a prompt, as `text`, and the reply to it, if there was one."""
        if session and (session in self._messages or len(self._messages) < self._most):
            (self._unanswered.add if reply is None else self._unanswered.discard)(session)
            replies = (Message(role="assistant", content=reply),) if reply and reply.strip() else ()
            self._messages[session] = (*prompt.earlier_messages, Message(role="user", content=text), *replies)


def parse_prompt(value: JsonValue) -> UserPrompt:
    """Parse a prompt: a text, or messages or their JSON text. Raises PromptError."""
    messages = tuple(iter_messages(value))
    if messages or isinstance(value, list):
        return find_prompt(messages)
    if isinstance(value, str):
        return build_prompt(value)
    raise PromptError("the question is neither a text nor a list of messages", _describe_value(value))


def find_prompt(messages: Sequence[SourceMessage], problem: str = "no message of a user") -> UserPrompt:
    """Find the last message of a user, and the messages before it.

    Messages of the system and of tools are left out, because a target makes them itself. Raises PromptError, with
    `problem` if there is no message of a user.
    """
    last = find_last_prompt(messages)
    if last < 0:
        raise PromptError(problem)
    earlier = tuple(
        Message(role=one.role, content=one.text)
        for one in messages[:last]
        if one.role in ("user", "assistant") and one.text.strip()
    )
    return build_prompt(messages[last].text, earlier)


def _describe_structure(text: str) -> str | None:
    """Describe the JSON structure that a text is; None for any other text, such as `[1] is a list`."""
    if not text.lstrip().startswith(("[", "{")):
        return None
    try:
        return _describe_value(parse_untrusted_json(text))
    except UntrustedJsonError as error:
        return "it ends in the middle" if error.cut_off else f"it {error}" if error.too_much else None


def _describe_value(value: JsonValue) -> str:
    keys = f" with the keys {format_keys(value)}" if value and isinstance(value, dict) else ""
    return f"{describe_value(value)}{keys}"
