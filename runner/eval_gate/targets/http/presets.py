"""Known ways in which agents speak HTTP: each is a row of the settings that a person could write instead."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from eval_gate.model.base import JsonValue


class PresetName(StrEnum):
    """The words that `preset` may be."""

    EVAL_GATE = "eval-gate"
    TOOL_FORGE_SIDECAR = "tool-forge-sidecar"
    OPENAI_CHAT = "openai-chat"


Row = Mapping[str, JsonValue]

PRESETS: Final[Mapping[PresetName, Row]] = {
    PresetName.EVAL_GATE: {},
    PresetName.TOOL_FORGE_SIDECAR: {"responsePath": "message", "argsField": "args"},
    PresetName.OPENAI_CHAT: {
        "requestTemplate": {"messages": "{{conversation}}"},
        "responsePath": "choices[0].message.content",
        "toolCallsPath": "choices[0].message.tool_calls",
        "calledNoneAt": "choices[0].message",
        "nameField": "function.name",
        "argsField": "function.arguments",
    },
}
_OF_THE_LIST: Final = ("calledNoneAt", "toolResults")
"""What a preset knows of its own list of calls, and of no other."""
_WITHOUT_BODY: Final = ("GET", "DELETE")


def with_preset(values: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The settings, with those of their preset where they say nothing themselves."""
    named = values.get("preset", PresetName.EVAL_GATE)
    if named not in set(PresetName):  # said by whoever checks the values
        return values
    row = dict(PRESETS[PresetName(str(named))])
    if "form" in values or str(values.get("method", "")).strip().upper() in _WITHOUT_BODY:
        row.pop("requestTemplate", None)
    if "toolCallsPath" in values:
        for key in _OF_THE_LIST:
            row.pop(key, None)
    return {**row, **values}
