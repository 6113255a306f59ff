"""promptfoo's prompts, and what one of them asks with the variables of a test.

Source: promptfoo 0.121, src/prompts and src/evaluatorHelpers.ts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from eval_gate.importing.imported import CannotCarryError, SourcePlace
from eval_gate.importing.promptfoo.sources import (
    YAML_SUFFIXES,
    SourceFile,
    SourceFolder,
    document_of,
    lines_of,
    text_of,
)
from eval_gate.importing.promptfoo.templates import DATE, render_template, rendered_within
from eval_gate.model.base import JsonValue
from eval_gate.struct import FrozenStruct
from eval_gate.text.foreign.json import ForeignJsonError, is_json, read_foreign
from eval_gate.text.javascript.strings import compact_json

_SUFFIXES: Final = (
    *(".cjs", ".cts", ".j2", ".js", ".json", ".jsonl", ".md", ".mjs", ".mts", ".py", ".ts", ".txt", ".yml", ".yaml"),
)
_ELSEWHERE: Final = ("portkey://", "langfuse://", "helicone://")
_HARMLESS: Final = frozenset({"id", "label", "raw", "display"})
_BETWEEN: Final = "---"
_PATTERN_SIGNS: Final = re.compile(r"[*?\[]")


class PromptfooPrompt(FrozenStruct):
    """A prompt as it is written, with its variables. `why_not` says why none of its cases can be carried over."""

    place: SourcePlace
    raw: str
    why_not: str | None = None


class RenderedPrompt(FrozenStruct):
    """What is put to the target: the question, and what a system message says before it."""

    message: str
    system: str | None = None
    chat: bool = False
    """Whether it stood in a list of messages."""


def prompts_of(config: SourceFile, folder: SourceFolder) -> Iterator[PromptfooPrompt]:
    """Every prompt of the configuration."""
    value = config.value
    assert isinstance(value, dict)
    prompts = value.get("prompts")
    if isinstance(prompts, str):
        yield from _read(prompts, config.place("prompts"), folder)
    elif isinstance(prompts, dict):
        for raw in prompts:
            yield from _read(raw, config.place("prompts", raw), folder)
    elif isinstance(prompts, list):
        for index, one in enumerate(prompts):
            yield from _entry(one, config.place("prompts", index), folder)


def _entry(one: JsonValue, place: SourcePlace, folder: SourceFolder) -> Iterator[PromptfooPrompt]:
    if isinstance(one, str):
        yield from _read(one, place, folder)
        return
    raw = one.get("raw") or one.get("id") if isinstance(one, dict) else None
    if not isinstance(one, dict) or not isinstance(raw, str):
        yield PromptfooPrompt(place, "", "the prompt is no text")
    elif further := sorted(set(one) - _HARMLESS):
        yield PromptfooPrompt(place, raw, f"`{further[0][:60]}` of the prompt changes how it is asked")
    else:
        yield from _read(raw, place, folder)


def _read(raw: str, place: SourcePlace, folder: SourceFolder) -> Iterator[PromptfooPrompt]:
    try:
        yield from (PromptfooPrompt(place, text) for text in _texts(raw, folder))
    except CannotCarryError as error:
        yield PromptfooPrompt(place, raw, str(error))


def _texts(raw: str, folder: SourceFolder) -> list[str]:
    """The prompts that an entry stands for. Raises CannotCarryError."""
    if raw.startswith("exec:"):
        raise CannotCarryError("a program makes the prompt, and no program is run")
    if raw.startswith(_ELSEWHERE):
        raise CannotCarryError("the prompt is kept by a service, which is not asked")
    if not _may_be_file(raw):
        return [raw]
    name = raw.removeprefix("file://")
    if not folder.exists(name):
        if not _PATTERN_SIGNS.search(name):
            raise CannotCarryError("promptfoo takes the prompt for a file, which is not in the configuration's folder")
        try:
            found = folder.files(name)
        except CannotCarryError:
            return [raw]  # as promptfoo does: a question mark is no pattern then
        return [text for path, shown in found for text in _of_file(path, shown)]
    return list(_of_file(*folder.one(name)))


def _may_be_file(text: str) -> bool:
    """Whether promptfoo takes this for a path."""
    if "\n" in text:
        return False
    ends = text.split(":")[-2:]
    return (
        text.startswith("file://")
        or any(end.endswith(_SUFFIXES) for end in ends)
        or text[-3:-2] == "."
        or text[-4:-3] == "."
        or any(sign in text for sign in "*/\\")
    )


def _of_file(path: Path, shown: str) -> Iterator[str]:
    suffix = path.suffix
    if suffix == ".txt":
        yield from _parted(text_of(path, shown))
    elif suffix in {".md", ".j2"}:
        yield text_of(path, shown)
    elif suffix == ".json":
        text = text_of(path, shown)
        yield compact_json(_no_files(document_of(path, shown).value)) if is_json(text) else text
    elif suffix == ".jsonl":
        yield from (line for _, line in lines_of(text_of(path, shown)))
    elif suffix in YAML_SUFFIXES:
        yield compact_json(_no_files(document_of(path, shown).value))
    else:
        raise CannotCarryError(f"{shown} is a program, or a prompt of a kind that is not read")


def _parted(text: str) -> Iterator[str]:
    """The prompts of a text that lines of `---` part."""
    parts: list[list[str]] = [[]]
    for line in re.split(r"\r?\n", text):
        if line.strip() == _BETWEEN:
            parts.append([])
        else:
            parts[-1].append(line)
    yield from (found for part in parts if (found := "\n".join(part).strip()))


def _no_files(value: JsonValue) -> JsonValue:
    """The value itself. Raises CannotCarryError where it names files, or holds what is no JSON."""
    if (text := compact_json(value)) and ('"file://' in text or f'"{DATE}"' in text):
        raise CannotCarryError("the prompt's file names further files, or holds dates without quotes")
    return value


def render_prompt(raw: str, variables: Mapping[str, JsonValue], *, chat: bool) -> RenderedPrompt:
    """What the prompt asks. Raises CannotCarryError.

    `chat`: a list of messages is a conversation, as models take it. An agent over HTTP is sent its text.
    """
    try:
        value = read_foreign(raw)
    except ForeignJsonError as error:
        if error.too_much:
            raise CannotCarryError(f"the prompt {error}") from error
        return RenderedPrompt(_some(render_template(raw, variables)))
    value = rendered_within(value, variables)
    if not isinstance(value, list | dict):
        return RenderedPrompt(_some(compact_json(value)))
    if not chat or not _is_chat(value):
        return RenderedPrompt(json.dumps(_plain_numbers(value), ensure_ascii=False, indent=2))
    return _conversation(value)


def _some(text: str) -> str:
    if not text:
        raise CannotCarryError("the prompt is empty")
    return text


def _is_chat(value: JsonValue) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) and "role" in one for one in value) and bool(value)


def _conversation(value: JsonValue) -> RenderedPrompt:
    assert isinstance(value, list)
    said = [(one.get("role"), one.get("content")) for one in value if isinstance(one, dict)]
    roles = [role for role, _ in said]
    texts = [content for _, content in said]
    if roles not in (["user"], ["system", "user"], ["developer", "user"]):
        raise CannotCarryError("a conversation of more than a system message and a question has no place in a case")
    if not all(isinstance(text, str) for text in texts):
        raise CannotCarryError("a message of the prompt is no text")
    return RenderedPrompt(_some(str(texts[-1])), str(texts[0]) if len(texts) > 1 else None, chat=True)


def _plain_numbers(value: JsonValue) -> JsonValue:
    """Numbers as JavaScript writes them: 1.0 is 1."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_plain_numbers(member) for member in value]
        case dict():
            return {key: _plain_numbers(member) for key, member in value.items()}
        case _:
            return value
