"""The messages of a case: read, with the text of the files that are attached, and made into what is sent.

Source: agentv behaviour 1.3 and 1.4.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from eval_gate.formats.agentv import wire
from eval_gate.formats.agentv.files import EvalRepository, FileError, unix_lines
from eval_gate.formats.agentv.findings import AgentVFindings, Path
from eval_gate.formats.agentv.guidelines import Guidelines
from eval_gate.formats.agentv.recognising import name_used
from eval_gate.model import limits
from eval_gate.model.base import JsonValue
from eval_gate.model.case import Brief
from eval_gate.model.conversation import Message
from eval_gate.struct import FrozenStruct
from eval_gate.text.sources.shape import kind_of
from eval_gate.text.turns import marked_turn

MAX_CASE: Final = limits.CASE_BYTES
"""Characters that one case says, with its files."""
MAX_SUITE: Final = limits.SUITE_BYTES
"""Characters that all cases of a file say together."""
GUIDELINES: Final = "[[ ## Guidelines ## ]]"
"""Stands above the guidelines where they follow the case's own system message."""


class TextPart(FrozenStruct):
    """A part of a message that is text."""

    text: str


class Attached(FrozenStruct):
    """A part of a message that is a file: as it is written, where it lies, and what it holds.

    A path that only one machine has is written as its way from the repository's root.
    """

    written: str
    path: str
    text: str
    guideline: bool


Part = TextPart | Attached


class MessageTurn(FrozenStruct):
    """One message. `content` is what it is in the file, with files in the place of their paths."""

    role: wire.Role
    content: str | tuple[Part, ...] | Mapping[str, JsonValue] | None
    calls: tuple[Mapping[str, JsonValue], ...] = ()

    @property
    def parts(self) -> tuple[Part, ...]:
        """What is said, part by part; an object is said as indented JSON."""
        match self.content:
            case None:
                return ()
            case str():
                return (TextPart(self.content),)
            case tuple():
                return self.content
            case _:
                return (TextPart(json.dumps(self.content, ensure_ascii=False, indent=2)),)

    @property
    def visible(self) -> bool:
        """Whether it says anything itself: a guideline does not, and neither does a file without text."""
        return any(part.text.strip() and not _is_guideline(part) for part in self.parts)

    @property
    def files(self) -> Iterator[Attached]:
        """The files that the message attaches, in the order of its content."""
        return (part for part in self.parts if isinstance(part, Attached))

    def as_json(self) -> dict[str, JsonValue]:
        """The message for graders, the text of its files within."""
        content: JsonValue
        match self.content:
            case tuple():
                content = [_part_json(part) for part in self.content]
            case str() | None:
                content = self.content
            case _:
                content = dict(self.content)
        said: dict[str, JsonValue] = {"role": self.role}
        if content is not None or not self.calls:
            said["content"] = content
        if self.calls:
            said["tool_calls"] = [dict(call) for call in self.calls]
        return said


def _is_guideline(part: Part) -> bool:
    return isinstance(part, Attached) and part.guideline


def _part_json(part: Part) -> dict[str, JsonValue]:
    if isinstance(part, TextPart):
        return {"type": "text", "value": part.text}
    return {"type": "file", "path": part.written, "text": part.text}


class TurnReader:
    """Reads messages of one eval file, and keeps what they say within bounds."""

    def __init__(self, findings: AgentVFindings, repository: EvalRepository, guidelines: Guidelines) -> None:
        self._findings = findings
        self._repository = repository
        self._guidelines = guidelines
        self._of_case = 0
        self._of_suite = 0

    def begin_case(self) -> None:
        """A new case has its own bound."""
        self._of_case = 0

    def read(self, raw: JsonValue, path: Path, role: wire.Role) -> tuple[MessageTurn, ...]:
        """The messages at `path`, without those in which something is wrong: that was said.

        One text stands for one message of `role`.
        """
        if isinstance(raw, str):
            return (MessageTurn(role, self._text(raw, path)),)
        if not isinstance(raw, list):
            self._findings.problem(f"expected a list of messages, or one text, got {kind_of(raw)}", path)
            return ()
        turns = (self._message(message, (*path, index)) for index, message in enumerate(raw))
        return tuple(turn for turn in turns if turn is not None)

    def _message(self, raw: JsonValue, path: Path) -> MessageTurn | None:
        found = self._findings.read(wire.Message, raw, path)
        if found is None or not isinstance(raw, dict):
            return None
        calls = self._calls(raw, path)
        if raw.get("content") is None:
            if not calls:
                self._findings.problem("is missing", (*path, "content"))
                return None
            return MessageTurn(found.role, None, calls)
        return MessageTurn(found.role, self._content(raw["content"], (*path, "content")), calls)

    def _content(self, raw: JsonValue, path: Path) -> str | tuple[Part, ...] | Mapping[str, JsonValue]:
        match raw:
            case str():
                return self._text(raw, path)
            case list():
                parts = (self._part(part, (*path, index)) for index, part in enumerate(raw))
                return tuple(part for part in parts if part is not None)
            case dict():
                self._count(len(json.dumps(raw)), path)
                return raw
            case _:
                self._findings.problem(f"expected text, a list of parts or an object, got {kind_of(raw)}", path)
                return ""

    def _part(self, raw: JsonValue, path: Path) -> Part | None:
        found = self._findings.read(wire.Part, raw, path)
        if found is None:
            return None
        if found.type == "text":
            return TextPart(self._text(found.value, (*path, "value")))
        try:
            file = self._repository.find(found.value)
            text = self._repository.read(file)
        except FileError as error:
            self._findings.problem(f'"{found.value[:100]}": {error}', (*path, "value"))
            return None
        self._count(len(text), path)
        shown = file.inside if found.value == str(file.path) else found.value
        return Attached(shown, str(file.path), text, self._guidelines.match(file))

    def _calls(self, raw: Mapping[str, JsonValue], path: Path) -> tuple[Mapping[str, JsonValue], ...]:
        key = name_used(raw, ("tool_calls", "toolCalls"))
        calls = raw[key] if key else None
        if key is None or calls is None:
            return ()
        if not isinstance(calls, list):
            self._findings.problem(f"expected a list of tool calls, got {kind_of(calls)}", (*path, key))
            return ()
        return tuple(self._call(call, (*path, key, index)) for index, call in enumerate(calls))

    def _call(self, raw: JsonValue, path: Path) -> Mapping[str, JsonValue]:
        found = self._findings.read(wire.Call, raw, path)
        if found is None or not isinstance(raw, dict):
            return {}
        self._count(len(json.dumps(raw)), path)
        return {key: raw[key] for key in ("tool", "input", "output") if key in raw}

    def _text(self, text: str, path: Path) -> str:
        self._count(len(text), path)
        return unix_lines(text)

    def _count(self, characters: int, path: Path) -> None:
        """Add to what is said. The bound is named where it is passed, once."""
        for limit, before, whose in (
            (MAX_CASE, self._of_case, "a case"),
            (MAX_SUITE, self._of_suite, "all cases of a file together"),
        ):
            if before <= limit < before + characters:
                self._findings.problem(f"{whose} may say {limit:,} characters, with the files attached", path)
        self._of_case += characters
        self._of_suite += characters


def turns_as_json(turns: Sequence[MessageTurn]) -> list[JsonValue]:
    """The messages as graders read them, with the text of their files within."""
    return [turn.as_json() for turn in turns]


def brief_of(turns: Sequence[MessageTurn], expected: Sequence[MessageTurn], expected_outcome: str) -> Brief:
    """What the case says to graders, and to targets that take a prompt and files."""
    files = [file for turn in turns for file in turn.files]
    return Brief(  # all of it was checked as it is written, and may be lists in lists
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
