"""The prompt of a user: the last message of a conversation, and the messages before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Message
from eval_gate.model.limits import DRAFT_EARLIER_MESSAGES, DRAFT_QUESTION
from eval_gate.struct import FrozenStruct
from eval_gate.targets.response.extraction import extract_text
from eval_gate.text.untrusted.surrogates import to_well_formed

Role = Literal["system", "user", "assistant", "tool"]
ROLES: Final[Mapping[str, Role]] = {
    **dict.fromkeys(("user", "human", "role_user", "humanmessage"), "user"),
    **dict.fromkeys(("assistant", "ai", "agent", "model", "bot", "role_agent", "aimessage"), "assistant"),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("tool", "function"), "tool"),
}
"""Roles by the words that protocols and frameworks use for them, in lower case."""
_ROLE_KEYS: Final = ("role", "type", "sender", "author")
_CONTENT_KEYS: Final = ("content", "text", "parts", "message")


class PromptError(ValueError):
    """A conversation without a usable prompt. The message names what is wrong, such as `blank question`."""


class UserPrompt(FrozenStruct):
    """The last message of a user, and the messages before it, oldest first."""

    text: str
    earlier_messages: tuple[Message, ...] = ()


def build_prompt(text: str, earlier_messages: tuple[Message, ...] = ()) -> UserPrompt:
    """Build a prompt within the limits. Raises PromptError if it is blank, or if the conversation is too large."""
    if not text.strip():
        raise PromptError("blank question")
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
        raise PromptError("the question is neither a text nor a list of messages")
    messages = [one for entry in value if (one := parse_message(entry)) is not None]
    last = max((at for at, one in enumerate(messages) if one.role == "user"), default=None)
    if last is None:
        raise PromptError("no message of a user")
    return build_prompt(str(messages[last].content), tuple(messages[:last]))


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
