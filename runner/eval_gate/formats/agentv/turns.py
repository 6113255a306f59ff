"""The messages of a case, read: what is said, and the files that are attached, with their text.

Source: agentv behaviour 1.3.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from eval_gate.formats.agentv import wire
from eval_gate.formats.agentv.files import EvalRepository, FileError, unix_lines
from eval_gate.formats.agentv.findings import AgentVFindings, Path
from eval_gate.formats.agentv.guidelines import Guidelines
from eval_gate.formats.agentv.recognising import name_used
from eval_gate.model import limits
from eval_gate.model.base import JsonValue
from eval_gate.struct import FrozenStruct
from eval_gate.text.sources.shape import kind_of

MAX_CASE: Final = limits.CASE_BYTES
"""Characters that one case says, with its files."""
MAX_SUITE: Final = limits.SUITE_BYTES
"""Characters that all cases of a file say together."""


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
