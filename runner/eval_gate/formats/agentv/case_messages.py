"""Messages of an AgentV case: reading, attached files, and conversion to prompts and chat.

Source: agentv behaviour 1.3 and 1.4.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from eval_gate.formats.agentv import file_model
from eval_gate.formats.agentv.detection import find_used_name
from eval_gate.formats.agentv.eval_repository import EvalRepository, FileError, normalize_newlines
from eval_gate.formats.agentv.findings import AgentVFindings, Path
from eval_gate.formats.agentv.guidelines import Guidelines
from eval_gate.model import limits
from eval_gate.model.base import JsonValue
from eval_gate.model.case import CaseBrief
from eval_gate.model.conversation import Message
from eval_gate.struct import FrozenStruct
from eval_gate.text.sources.validation_errors import describe_value
from eval_gate.text.turns import format_turn

MAX_CASE_CHARACTERS: Final = limits.CASE_BYTES
"""Maximum characters of one case, with its files."""
MAX_SUITE_CHARACTERS: Final = limits.SUITE_BYTES
GUIDELINES_HEADER: Final = "[[ ## Guidelines ## ]]"
"""Heading of the guidelines if they follow the case's own system message."""


class TextPart(FrozenStruct):
    """A text part of a message."""

    text: str


class AttachedFile(FrozenStruct):
    """A file part of a message: path as written, absolute path and text.

    An absolute path that exists on one machine only is written relative to the repository's root.
    """

    written_path: str
    path: str
    text: str
    is_guideline: bool


Part = TextPart | AttachedFile


class MessageTurn(FrozenStruct):
    """One message of a case. In `content`, attached files replace their paths."""

    role: file_model.Role
    content: str | tuple[Part, ...] | Mapping[str, JsonValue] | None
    calls: tuple[Mapping[str, JsonValue], ...] = ()

    @property
    def parts(self) -> tuple[Part, ...]:
        """Parts of the content; an object is one text of indented JSON."""
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
    def is_visible(self) -> bool:
        """Whether it has content: a guideline does not count, nor does a file without text."""
        return any(part.text.strip() for part in self.parts if isinstance(part, TextPart) or not part.is_guideline)

    @property
    def files(self) -> Iterator[AttachedFile]:
        """The files that the message attaches, in the order of its content."""
        return (part for part in self.parts if isinstance(part, AttachedFile))

    def as_json(self) -> dict[str, JsonValue]:
        """Return the message as JSON for evaluators, with the text of its files."""
        content: JsonValue
        match self.content:
            case tuple():
                content = [_part_to_json(part) for part in self.content]
            case str() | None:
                content = self.content
            case _:
                content = dict(self.content)
        message: dict[str, JsonValue] = {"role": self.role}
        if content is not None or not self.calls:
            message["content"] = content
        if self.calls:
            message["tool_calls"] = [dict(call) for call in self.calls]
        return message


def _part_to_json(part: Part) -> dict[str, JsonValue]:
    if isinstance(part, TextPart):
        return {"type": "text", "value": part.text}
    return {"type": "file", "path": part.written_path, "text": part.text}


class TurnReader:
    """Read messages of one eval file within size limits."""

    def __init__(self, findings: AgentVFindings, repository: EvalRepository, guidelines: Guidelines) -> None:
        self._findings = findings
        self._repository = repository
        self._guidelines = guidelines
        self._of_case = 0
        self._of_suite = 0

    def begin_case(self) -> None:
        """Begin a new case, whose size is limited by itself."""
        self._of_case = 0

    def read(self, raw: JsonValue, path: Path, role: file_model.Role) -> tuple[MessageTurn, ...]:
        """Read the messages at `path`, without those with a reported problem. A text is one of `role`."""
        if isinstance(raw, str):
            return (MessageTurn(role, self._read_text(raw, path)),)
        if not isinstance(raw, list):
            self._findings.add_problem(f"expected a list of messages, or one text, got {describe_value(raw)}", path)
            return ()
        turns = (self._read_message(message, (*path, index)) for index, message in enumerate(raw))
        return tuple(turn for turn in turns if turn is not None)

    def _read_message(self, raw: JsonValue, path: Path) -> MessageTurn | None:
        message = self._findings.read_part(file_model.AgentVMessage, raw, path)
        if message is None or not isinstance(raw, dict):
            return None
        calls = self._read_calls(raw, path)
        if raw.get("content") is None:
            if not calls:
                self._findings.add_problem("is missing", (*path, "content"))
                return None
            return MessageTurn(message.role, None, calls)
        return MessageTurn(message.role, self._read_content(raw["content"], (*path, "content")), calls)

    def _read_content(self, raw: JsonValue, path: Path) -> str | tuple[Part, ...] | Mapping[str, JsonValue]:
        match raw:
            case str():
                return self._read_text(raw, path)
            case list():
                parts = (self._read_part(part, (*path, index)) for index, part in enumerate(raw))
                return tuple(part for part in parts if part is not None)
            case dict():
                self._count_characters(len(json.dumps(raw)), path)
                return raw
            case _:
                self._findings.add_problem(
                    f"expected text, a list of parts or an object, got {describe_value(raw)}", path
                )
                return ""

    def _read_part(self, raw: JsonValue, path: Path) -> Part | None:
        part = self._findings.read_part(file_model.AgentVPart, raw, path)
        if part is None:
            return None
        if part.type == "text":
            return TextPart(self._read_text(part.value, (*path, "value")))
        try:
            file = self._repository.find_file(part.value)
            text = self._repository.read_text(file)
        except FileError as error:
            self._findings.add_problem(f'"{part.value[:100]}": {error}', (*path, "value"))
            return None
        self._count_characters(len(text), path)
        shown_as = file.relative_path if part.value == str(file.path) else part.value
        return AttachedFile(shown_as, str(file.path), text, self._guidelines.is_guideline(file))

    def _read_calls(self, raw: Mapping[str, JsonValue], path: Path) -> tuple[Mapping[str, JsonValue], ...]:
        key = find_used_name(raw, ("tool_calls", "toolCalls"))
        calls = raw[key] if key else None
        if key is None or calls is None:
            return ()
        if not isinstance(calls, list):
            self._findings.add_problem(f"expected a list of tool calls, got {describe_value(calls)}", (*path, key))
            return ()
        return tuple(self._read_call(call, (*path, key, index)) for index, call in enumerate(calls))

    def _read_call(self, raw: JsonValue, path: Path) -> Mapping[str, JsonValue]:
        call = self._findings.read_part(file_model.AgentVCall, raw, path)
        if call is None or not isinstance(raw, dict):
            return {}
        self._count_characters(len(json.dumps(raw)), path)
        return {key: raw[key] for key in ("tool", "input", "output") if key in raw}

    def _read_text(self, text: str, path: Path) -> str:
        self._count_characters(len(text), path)
        return normalize_newlines(text)

    def _count_characters(self, characters: int, path: Path) -> None:
        """Add to the characters of case and suite; report once where a limit is exceeded."""
        for limit, total, whose in (
            (MAX_CASE_CHARACTERS, self._of_case, "a case"),
            (MAX_SUITE_CHARACTERS, self._of_suite, "all cases of a file together"),
        ):
            if total <= limit < total + characters:
                self._findings.add_problem(f"{whose} may have {limit:,} characters, including attached files", path)
        self._of_case += characters
        self._of_suite += characters


def turns_to_json(turns: Sequence[MessageTurn]) -> list[JsonValue]:
    """Return the messages as JSON for evaluators, with the text of their files."""
    return [turn.as_json() for turn in turns]


def build_brief(turns: Sequence[MessageTurn], expected: Sequence[MessageTurn], expected_outcome: str) -> CaseBrief:
    """Build the case's brief for evaluators, and for targets that take a prompt and files."""
    files = [file for turn in turns for file in turn.files]
    return CaseBrief(  # all of it was checked as it is written, and may be lists in lists
        question=format_question(turns, linked=False),
        linked_question=format_question(turns, linked=True),
        expected_outcome=expected_outcome,
        reference_answer=format_reference_answer(expected[-1]) if expected else None,
        input_messages=turns_to_json(turns),
        expected_messages=turns_to_json(expected) if expected else None,
        guidelines=join_guidelines(turns),
        guideline_files=_list_paths(file for file in files if file.is_guideline),
        input_files=_list_paths(file for file in files if not file.is_guideline),
    )


def _list_paths(files: Iterable[AttachedFile]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(file.path for file in files))


def join_guidelines(turns: Sequence[MessageTurn]) -> str:
    """Join the texts of all guidelines, each once, with a blank line between them."""
    texts = {file.path: file.text.strip() for turn in turns for file in turn.files if file.is_guideline}
    return _join_paragraphs(texts.values())


def format_question(turns: Sequence[MessageTurn], *, linked: bool) -> str:
    """Join the messages to one text, without guidelines. `linked` names files instead of showing what they hold.

    One message stands for itself; of several, each has the marker of its role.
    """
    visible = [turn for turn in turns if turn.is_visible]
    if not _is_conversation(turns):
        return _join_paragraphs(_format_part(part, linked=linked) for turn in visible for part in turn.parts)
    return _join_paragraphs(format_turn(turn.role, _format_turn(turn, linked=linked)) for turn in visible)


def _is_conversation(turns: Sequence[MessageTurn]) -> bool:
    """Whether there are several messages, or one of an assistant or a tool."""
    return sum(turn.is_visible for turn in turns) > 1 or any(turn.role in {"assistant", "tool"} for turn in turns)


def _format_turn(turn: MessageTurn, *, linked: bool = False) -> str:
    """Format one turn of several. The path of a guideline stands for its text."""
    return _join_paragraphs(
        f"<Attached: {part.written_path}>"
        if isinstance(part, AttachedFile) and part.is_guideline
        else _format_part(part, linked=linked)
        for part in turn.parts
    )


def _format_part(part: Part, *, linked: bool) -> str:
    if isinstance(part, TextPart):
        return part.text.strip()
    if part.is_guideline:
        return ""
    if linked:
        return f'<file: path="{part.written_path}">'
    text = part.text.strip("\n")
    return f'<file path="{part.written_path}">\n{text}\n</file>'


def _join_paragraphs(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text)


def to_chat_messages(turns: Sequence[MessageTurn]) -> tuple[Message, ...]:
    """Convert the messages to chat messages for a model.

    Guidelines become part of the system message, as do leading system turns. A later system turn and every tool
    turn become text that the assistant saw, because providers accept neither in that place.
    """
    guidelines = join_guidelines(turns)
    visible = [turn for turn in turns if turn.is_visible]
    leading = next((index for index, turn in enumerate(visible) if turn.role != "system"), len(visible))
    if not _is_conversation(turns) or leading == len(visible):
        system, rest = guidelines, [Message(role="user", content=format_question(turns, linked=False))]
    else:
        own = [_format_turn(turn) for turn in visible[:leading]]
        system = _join_paragraphs([*own, f"{GUIDELINES_HEADER}\n\n{guidelines}" if guidelines else ""])
        rest = [_to_chat_message(turn) for turn in visible[leading:]]
    return (*([Message(role="system", content=system)] if system else []), *rest)


def _to_chat_message(turn: MessageTurn) -> Message:
    text = _format_turn(turn)
    if turn.role in {"system", "tool"}:
        return Message(role="assistant", content=format_turn(turn.role, text))
    return Message(role=turn.role, content=text)


def format_reference_answer(last: MessageTurn) -> str | None:
    """Format the last expected message: its text with the texts of its files, else its tool calls as JSON."""
    text = last.content if isinstance(last.content, str) else _join_paragraphs(part.text.strip() for part in last.parts)
    if text.strip():
        return text
    calls: list[JsonValue] = [dict(call) for call in last.calls]
    return json.dumps(calls, ensure_ascii=False, indent=2) if calls else None
