"""The prompt of a user: the last message of a conversation, and the messages before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Message
from eval_gate.model.limits import DRAFT_EARLIER_MESSAGES, DRAFT_QUESTION
from eval_gate.struct import FrozenStruct
from eval_gate.targets.response.extraction import extract_text
from eval_gate.text.sources.validation_errors import describe_value
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, parse_untrusted_json
from eval_gate.text.untrusted.excerpt import format_keys
from eval_gate.text.untrusted.surrogates import to_well_formed

Role = Literal["system", "user", "assistant", "tool"]
ROLES: Final[Mapping[str, Role]] = {
    **dict.fromkeys(("user", "human", "role_user", "humanmessage"), "user"),
    **dict.fromkeys(("assistant", "ai", "agent", "model", "bot", "role_agent", "aimessage"), "assistant"),
    **dict.fromkeys(("system", "developer", "systemmessage"), "system"),
    **dict.fromkeys(("tool", "function", "toolmessage"), "tool"),
}
"""Roles by the words that protocols and frameworks use for them, in lower case."""
_ROLE_KEYS: Final = ("role", "type", "sender", "author")
_CONTENT_KEYS: Final = ("content", "text", "parts", "message")


class PromptError(ValueError):
    """A conversation without a usable prompt. The message names what is wrong, such as `blank question`.

    `found` is what was found instead, in words.
    """

    def __init__(self, message: str, found: str = "") -> None:
        super().__init__(message)
        self.found = found


class UserPrompt(FrozenStruct):
    """The last message of a user, and the messages before it, oldest first."""

    text: str
    earlier_messages: tuple[Message, ...] = ()


def build_prompt(text: str, earlier_messages: tuple[Message, ...] = ()) -> UserPrompt:
    """Build a prompt within the limits.

    Raises PromptError if it is blank or not what a person wrote, or if the conversation is too large.
    """
    if not text.strip():
        raise PromptError("blank question")
    structure = _describe_structure(text)
    if structure is not None:
        raise PromptError("the question is JSON, not a text that a person wrote", structure)
    if len(earlier_messages) > DRAFT_EARLIER_MESSAGES:
        raise PromptError(f"more than {DRAFT_EARLIER_MESSAGES:,} messages before the question")
    if any(len(str(one)) > DRAFT_QUESTION for one in (text, *(one.content for one in earlier_messages))):
        raise PromptError(f"message of more than {DRAFT_QUESTION:,} characters")
    return UserPrompt(to_well_formed(text), earlier_messages)


def parse_prompt(value: JsonValue) -> UserPrompt:
    """Parse a prompt: a text, or a list of messages of which the last one of a user counts.

    Messages of the system and of tools are left out, because a target makes them itself. Raises PromptError.
    """
    if isinstance(value, str):
        return build_prompt(value)
    if not isinstance(value, list):
        raise PromptError("the question is neither a text nor a list of messages", _describe_value(value))
    messages = [one for entry in value if (one := parse_message(entry)) is not None]
    last = max((at for at, one in enumerate(messages) if one.role == "user"), default=None)
    if last is None:
        raise PromptError("no message of a user")
    return build_prompt(str(messages[last].content), tuple(messages[:last]))


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


def parse_message(entry: JsonValue) -> Message | None:
    """Parse one message of a user or an assistant. Return None for any other message, and for one without text."""
    if not isinstance(entry, dict):
        return None
    role = next((known for key in _ROLE_KEYS if (known := find_role(entry.get(key)))), None)
    if role not in ("user", "assistant"):
        return None
    text = next((found for key in _CONTENT_KEYS if (found := extract_text(entry.get(key))) is not None), "")
    return Message(role=role, content=to_well_formed(text)) if text.strip() else None


def find_role(word: JsonValue) -> Role | None:
    """Find the role that a word stands for. Return None for an unknown word."""
    return ROLES.get(word.strip().lower()) if isinstance(word, str) else None
