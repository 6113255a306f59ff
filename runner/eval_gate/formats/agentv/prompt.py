"""From the messages of a case to what is sent: one text, one text with links, or a list of messages.

Source: agentv behaviour 1.4.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final

from eval_gate.formats.agentv.turns import Attached, MessageTurn, Part, TextPart, turns_as_json
from eval_gate.model.base import JsonValue, construct
from eval_gate.model.case import Brief
from eval_gate.model.conversation import Message
from eval_gate.text.turns import marked_turn

GUIDELINES: Final = "[[ ## Guidelines ## ]]"
"""Stands above the guidelines where they follow the case's own system message."""


def brief_of(turns: Sequence[MessageTurn], expected: Sequence[MessageTurn], expected_outcome: str) -> Brief:
    """What the case says to graders, and to targets that take a prompt and files."""
    files = [file for turn in turns for file in turn.files]
    return construct(  # all of it was checked as it is written, and may be lists in lists
        Brief,
        question=question(turns, linked=False),
        linked_question=question(turns, linked=True),
        expected_outcome=expected_outcome,
        reference_answer=reference_answer(expected[-1]) if expected else None,
        input_messages=turns_as_json(turns),
        expected_messages=turns_as_json(expected) if expected else None,
        guidelines=guidelines_of(turns),
        guideline_files=_paths(file for file in files if file.guideline),
        input_files=_paths(file for file in files if not file.guideline),
    )


def _paths(files: Iterable[Attached]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(file.path for file in files))


def guidelines_of(turns: Sequence[MessageTurn]) -> str:
    """The text of all guidelines, each once, a blank line between them."""
    texts = {file.path: file.text.strip() for turn in turns for file in turn.files if file.guideline}
    return _joined(texts.values())


def question(turns: Sequence[MessageTurn], *, linked: bool) -> str:
    """All that is said as one text, without guidelines. `linked` names files instead of showing what they hold.

    One message stands for itself; of several, each has the marker of its role.
    """
    visible = [turn for turn in turns if turn.visible]
    if not _is_exchange(turns):
        return _joined(_shown(part, linked=linked) for turn in visible for part in turn.parts)
    return _joined(marked_turn(turn.role, _said(turn, linked=linked)) for turn in visible)


def _is_exchange(turns: Sequence[MessageTurn]) -> bool:
    """Whether there is more than one question: several messages, or one of an assistant or a tool."""
    return sum(turn.visible for turn in turns) > 1 or any(turn.role in {"assistant", "tool"} for turn in turns)


def _said(turn: MessageTurn, *, linked: bool = False) -> str:
    """One turn of several. Where a guideline was, its path stays as a mark."""
    return _joined(
        f"<Attached: {part.written}>" if isinstance(part, Attached) and part.guideline else _shown(part, linked=linked)
        for part in turn.parts
    )


def _shown(part: Part, *, linked: bool) -> str:
    if isinstance(part, TextPart):
        return part.text.strip()
    if part.guideline:
        return ""
    if linked:
        return f'<file: path="{part.written}">'
    text = part.text.strip("\n")
    return f'<file path="{part.written}">\n{text}\n</file>'


def _joined(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text)


def chat(turns: Sequence[MessageTurn]) -> tuple[Message, ...]:
    """The messages for a model. Guidelines go to the system; only leading system turns are the system's.

    A later system turn, and every tool's, is told as what the assistant saw: providers take neither there.
    """
    guidelines = guidelines_of(turns)
    visible = [turn for turn in turns if turn.visible]
    leading = next((index for index, turn in enumerate(visible) if turn.role != "system"), len(visible))
    if not _is_exchange(turns) or leading == len(visible):
        system, rest = guidelines, [Message(role="user", content=question(turns, linked=False))]
    else:
        own = [_said(turn) for turn in visible[:leading]]
        system = _joined([*own, f"{GUIDELINES}\n\n{guidelines}" if guidelines else ""])
        rest = [_message(turn) for turn in visible[leading:]]
    return (*([Message(role="system", content=system)] if system else []), *rest)


def _message(turn: MessageTurn) -> Message:
    text = _said(turn)
    if turn.role in {"system", "tool"}:
        return Message(role="assistant", content=marked_turn(turn.role, text))
    return Message(role=turn.role, content=text)


def reference_answer(last: MessageTurn) -> str | None:
    """What the last expected message says: its text with the texts of its files, else its tool calls as JSON."""
    said = last.content if isinstance(last.content, str) else _joined(part.text.strip() for part in last.parts)
    if said.strip():
        return said
    calls: list[JsonValue] = [dict(call) for call in last.calls]
    return json.dumps(calls, ensure_ascii=False, indent=2) if calls else None
