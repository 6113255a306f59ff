"""Flatten the messages of a conversation into one text, for targets and graders that take no list.

Source: agentv behaviour 1.4: one user message stands for itself; otherwise every turn has its marker on a line.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal, TypeAlias

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Message

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
_INDENT = "  "
_MARKERS = {"system": "@[System]:", "user": "@[User]:", "assistant": "@[Assistant]:", "tool": "@[Tool]:"}


def flatten_messages(messages: Sequence[Message]) -> str:
    """Format the whole conversation as one text, without blank messages."""
    visible = [(message.role, text) for message in messages if (text := format_content(message.content)).strip()]
    if len(visible) == 1 and not any(message.role in {"assistant", "tool"} for message in messages):
        return visible[0][1]
    return "\n\n".join(format_turn(role, text) for role, text in visible)


def format_turn(role: str, text: str) -> str:
    """Format one turn with its marker on a line of its own."""
    return f"{_MARKERS[role]}\n{text}"


def format_transcript(history: Sequence[Message]) -> str:
    """Format the messages as text, each under its role, without tool calls and their results.

    The lines of a message are indented, so that no message can contain a line that looks like the role of another.
    """
    return "\n\n".join(
        "\n".join((f"{role}:", *(f"{_INDENT}{line}" for line in text.splitlines())))
        for role, text in list_texts(history)
    )


def list_texts(history: Sequence[Message]) -> list[tuple[Role, str]]:
    """List roles and texts of the messages that say something; a model's calls and their results do not."""
    texts = [(message, format_content(message.content)) for message in history if message.role != "tool"]
    return [(message.role, text) for message, text in texts if text or not message.tool_calls]


def format_content(content: JsonValue) -> str:
    """Format the content of a message: text as it is, null as nothing, anything else as indented JSON."""
    if content is None:
        return ""
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=2)
