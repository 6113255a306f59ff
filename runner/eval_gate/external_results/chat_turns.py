"""Turns in lists of messages, which most tools keep of a conversation: a message of the user begins one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from eval_gate.external_results.records import Fields
from eval_gate.model.execution import TurnResult
from eval_gate.struct import Struct, field

_USER_ROLES: Final = frozenset({"user", "human"})
_AGENT_ROLES: Final = frozenset({"assistant", "ai", "model"})


class _OpenTurn(Struct):
    """Texts of a turn, which are joined once, however many there are."""

    messages: list[str] = field(default_factory=list)
    responses: list[str] = field(default_factory=list)
    calls: int = 0

    def close(self) -> TurnResult:
        message, response = ("\n\n".join(texts) if texts else None for texts in (self.messages, self.responses))
        return TurnResult(message=message, response=response, calls=self.calls)


def is_of_user(message: Fields) -> bool:
    """Whether the user wrote a message."""
    return _find_role(message) in _USER_ROLES


def build_turns(messages: Iterable[Fields], calls_key: str | None = None) -> tuple[TurnResult, ...]:
    """Build the turns in a list of messages, with the number of their calls at `calls_key`. Empty for a single turn.

    Several messages of the user in a row are one, and so are several of the agent, which calls tools between them. What
    the agent says first is a turn without a message.
    """
    turns: list[_OpenTurn] = []
    for message in messages:
        role, text = _find_role(message), format_content(message)
        if role in _USER_ROLES:
            if not turns or not turns[-1].messages or turns[-1].responses or turns[-1].calls:
                turns.append(_OpenTurn())
            turns[-1].messages.append(text)
        elif role in _AGENT_ROLES:
            turns = turns or [_OpenTurn()]
            turns[-1].responses += [text] if text else []
            turns[-1].calls += len(message.members(calls_key)) if calls_key else 0
    return tuple(turn.close() for turn in turns) if len(turns) > 1 else ()


def find_turns(values: Fields) -> tuple[TurnResult, ...]:
    """Build the turns of the first member that is a list of messages, if it has at least two."""
    lists = (one.members() for _, one in values.items())
    chats = (one for one in lists if all(_find_role(message) and message.has("content") for message in one))
    return next((turns for messages in chats if (turns := build_turns(messages))), ())


def _find_role(message: Fields) -> str:
    """Find the role of a message, which LangChain calls its type."""
    return message.text("role", "type").lower()


def format_content(message: Fields) -> str:
    """Format the content of a message as text, without parts that are none."""
    if not isinstance(message.get("content"), list):
        return message.text("content")
    return "".join(
        part.text() if isinstance(part.value, str) else part.text("text") for part in message.members("content")
    )
