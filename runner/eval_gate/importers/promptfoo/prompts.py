"""promptfoo prompts, and their rendering with the variables of a test.

Source: promptfoo 0.121, src/prompts and src/evaluatorHelpers.ts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from eval_gate.importers.import_result import NotImportableError, SourcePlace
from eval_gate.importers.promptfoo.config_files import (
    YAML_SUFFIXES,
    PromptfooFile,
    PromptfooFolder,
    iter_lines,
    read_importable_document,
    read_text_file,
)
from eval_gate.importers.promptfoo.templates import DATE_KEY, render_template, render_values
from eval_gate.model.base import JsonValue
from eval_gate.struct import FrozenStruct
from eval_gate.text.javascript.strings import dump_compact_json
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, is_json, parse_untrusted_json

_FILE_SUFFIXES: Final = (
    *(".cjs", ".cts", ".j2", ".js", ".json", ".jsonl", ".md", ".mjs", ".mts", ".py", ".ts", ".txt", ".yml", ".yaml"),
)
_REMOTE_PREFIXES: Final = ("portkey://", "langfuse://", "helicone://")
_IGNORED_KEYS: Final = frozenset({"id", "label", "raw", "display"})
_SEPARATOR: Final = "---"
_GLOB_CHARACTERS: Final = re.compile(r"[*?\[]")


class PromptfooPrompt(FrozenStruct):
    """A prompt template. `skip_reason` says why none of its cases can be imported."""

    place: SourcePlace
    raw: str
    skip_reason: str | None = None


class RenderedPrompt(FrozenStruct):
    """A rendered prompt: the message to the target and an optional system message."""

    message: str
    system: str | None = None
    chat: bool = False
    """Whether it stood in a list of messages."""


def iter_prompts(config: PromptfooFile, folder: PromptfooFolder) -> Iterator[PromptfooPrompt]:
    """Every prompt of the configuration."""
    value = config.value
    assert isinstance(value, dict)
    prompts = value.get("prompts")
    if isinstance(prompts, str):
        yield from _iter_text_prompts(prompts, config.locate("prompts"), folder)
    elif isinstance(prompts, dict):
        for raw in prompts:
            yield from _iter_text_prompts(raw, config.locate("prompts", raw), folder)
    elif isinstance(prompts, list):
        for index, one in enumerate(prompts):
            yield from _iter_entry_prompts(one, config.locate("prompts", index), folder)


def _iter_entry_prompts(one: JsonValue, place: SourcePlace, folder: PromptfooFolder) -> Iterator[PromptfooPrompt]:
    if isinstance(one, str):
        yield from _iter_text_prompts(one, place, folder)
        return
    raw = one.get("raw") or one.get("id") if isinstance(one, dict) else None
    if not isinstance(one, dict) or not isinstance(raw, str):
        yield PromptfooPrompt(place, "", "the prompt is not text")
    elif further := sorted(set(one) - _IGNORED_KEYS):
        yield PromptfooPrompt(place, raw, f"`{further[0][:60]}` of the prompt changes the request")
    else:
        yield from _iter_text_prompts(raw, place, folder)


def _iter_text_prompts(raw: str, place: SourcePlace, folder: PromptfooFolder) -> Iterator[PromptfooPrompt]:
    try:
        yield from (PromptfooPrompt(place, text) for text in _load_texts(raw, folder))
    except NotImportableError as error:
        yield PromptfooPrompt(place, raw, str(error))


def _load_texts(raw: str, folder: PromptfooFolder) -> list[str]:
    """Load the prompts that an entry stands for.

    Raises NotImportableError.
    """
    if raw.startswith("exec:"):
        raise NotImportableError("a program generates the prompt, and programs are not run")
    if raw.startswith(_REMOTE_PREFIXES):
        raise NotImportableError("the prompt is stored in a service, which is not called")
    if not _may_be_file(raw):
        return [raw]
    name = raw.removeprefix("file://")
    if not folder.has_file(name):
        if not _GLOB_CHARACTERS.search(name):
            raise NotImportableError("promptfoo reads the prompt as a file, which is not in the configuration's folder")
        try:
            found = folder.find_files(name)
        except NotImportableError:
            return [raw]  # as promptfoo does: a question mark is no pattern then
        return [text for path, shown in found for text in _iter_file_texts(path, shown)]
    return list(_iter_file_texts(*folder.get_file(name)))


def _may_be_file(text: str) -> bool:
    """Whether promptfoo takes this for a path."""
    if "\n" in text:
        return False
    ends = text.split(":")[-2:]
    return (
        text.startswith("file://")
        or any(end.endswith(_FILE_SUFFIXES) for end in ends)
        or text[-3:-2] == "."
        or text[-4:-3] == "."
        or any(sign in text for sign in "*/\\")
    )


def _iter_file_texts(path: Path, shown: str) -> Iterator[str]:
    suffix = path.suffix
    if suffix == ".txt":
        yield from _split_prompts(read_text_file(path, shown))
    elif suffix in {".md", ".j2"}:
        yield read_text_file(path, shown)
    elif suffix == ".json":
        text = read_text_file(path, shown)
        yield (
            dump_compact_json(_require_no_files(read_importable_document(path, shown).value)) if is_json(text) else text
        )
    elif suffix == ".jsonl":
        yield from (line for _, line in iter_lines(read_text_file(path, shown)))
    elif suffix in YAML_SUFFIXES:
        yield dump_compact_json(_require_no_files(read_importable_document(path, shown).value))
    else:
        raise NotImportableError(f"{shown} is a program, or an unsupported kind of prompt")


def _split_prompts(text: str) -> Iterator[str]:
    """Yield the prompts of a text in which lines of `---` separate them."""
    parts: list[list[str]] = [[]]
    for line in re.split(r"\r?\n", text):
        if line.strip() == _SEPARATOR:
            parts.append([])
        else:
            parts[-1].append(line)
    yield from (found for part in parts if (found := "\n".join(part).strip()))


def _require_no_files(value: JsonValue) -> JsonValue:
    """Return the value unchanged.

    Raises NotImportableError if the value names files, or contains dates without quotes, which are not JSON.
    """
    if (text := dump_compact_json(value)) and ('"file://' in text or f'"{DATE_KEY}"' in text):
        raise NotImportableError("the prompt's file names other files, or contains dates without quotes")
    return value


def render_prompt(raw: str, variables: Mapping[str, JsonValue], *, chat: bool) -> RenderedPrompt:
    """Render a prompt with its variables.

    With `chat`, a list of messages is a conversation, as models accept it. An agent over HTTP receives its text
    instead. Raises NotImportableError.
    """
    try:
        value = parse_untrusted_json(raw)
    except UntrustedJsonError as error:
        if error.too_much:
            raise NotImportableError(f"the prompt {error}") from error
        return RenderedPrompt(_require_text(render_template(raw, variables)))
    value = render_values(value, variables)
    if not isinstance(value, list | dict):
        return RenderedPrompt(_require_text(dump_compact_json(value)))
    if not chat or not _is_chat(value):
        return RenderedPrompt(json.dumps(_simplify_numbers(value), ensure_ascii=False, indent=2))
    return _render_conversation(value)


def _require_text(text: str) -> str:
    if not text:
        raise NotImportableError("the prompt is empty")
    return text


def _is_chat(value: JsonValue) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) and "role" in one for one in value) and bool(value)


def _render_conversation(value: JsonValue) -> RenderedPrompt:
    assert isinstance(value, list)
    said = [(one.get("role"), one.get("content")) for one in value if isinstance(one, dict)]
    roles = [role for role, _ in said]
    texts = [content for _, content in said]
    if roles not in (["user"], ["system", "user"], ["developer", "user"]):
        raise NotImportableError("a case cannot have a conversation of more than a system message and a user message")
    if not all(isinstance(text, str) for text in texts):
        raise NotImportableError("a message of the prompt is not text")
    return RenderedPrompt(_require_text(str(texts[-1])), str(texts[0]) if len(texts) > 1 else None, chat=True)


def _simplify_numbers(value: JsonValue) -> JsonValue:
    """Numbers as JavaScript writes them: 1.0 is 1."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_simplify_numbers(member) for member in value]
        case dict():
            return {key: _simplify_numbers(member) for key, member in value.items()}
        case _:
            return value
