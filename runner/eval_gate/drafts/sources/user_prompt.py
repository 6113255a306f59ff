"""The prompt of a user: the last message of a conversation, and the messages before it."""

from __future__ import annotations

from collections.abc import Sequence

from eval_gate.drafts.sources.source_messages import SourceMessage, find_last_prompt, iter_messages
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Message
from eval_gate.model.limits import DRAFT_EARLIER_MESSAGES, DRAFT_QUESTION
from eval_gate.struct import FrozenStruct
from eval_gate.text.sources.validation_errors import describe_value
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, parse_untrusted_json
from eval_gate.text.untrusted.excerpt import format_keys
from eval_gate.text.untrusted.surrogates import to_well_formed


class PromptError(ValueError):
    """A conversation without a usable prompt, such as a `blank question`; `found` is what is there instead."""

    def __init__(self, message: str, found: str = "") -> None:
        super().__init__(message)
        self.found = found


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
    if any(len(str(one)) > DRAFT_QUESTION for one in (text, *(one.content for one in earlier_messages))):
        raise PromptError(f"message of more than {DRAFT_QUESTION:,} characters")
    return UserPrompt(to_well_formed(text), earlier_messages)


def parse_prompt(value: JsonValue) -> UserPrompt:
    """Parse a prompt: a text, or messages or their JSON text. Raises PromptError."""
    messages = tuple(iter_messages(value))
    if messages or isinstance(value, list):
        return find_prompt(messages)
    if isinstance(value, str):
        return build_prompt(value)
    raise PromptError("the question is neither a text nor a list of messages", _describe_value(value))


def find_prompt(messages: Sequence[SourceMessage], missing: str = "no message of a user") -> UserPrompt:
    """Find the last message of a user, and the messages before it.

    Messages of the system and of tools are left out, because a target makes them itself. Raises PromptError, with
    `missing` if there is no message of a user.
    """
    last = find_last_prompt(messages)
    if last < 0:
        raise PromptError(missing)
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
