"""Names that were replaced. An error for an old name gives the new one; no old name is an alias."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from eval_gate.errors import format_suggestion


class NameKind(StrEnum):
    """Kinds of names that users type."""

    COMMAND = "command"
    OPTION = "option"
    """Only options whose new name does not follow from a setting. `power --history` is the option of one command."""
    SETTING = "setting"
    """By the key of the configuration file: variables, flags, keywords and inputs follow from it."""
    INPUT = "input"
    """Only inputs of the action that are not settings."""
    TARGET_SETTING = "target setting"
    WAIVER_KEY = "waiver key"
    COMMENT_VERB = "verb of a comment"
    RESULT_KEY = "result key"
    LABEL = "label"
    FILE = "file"


RENAMED: Final[Mapping[NameKind, Mapping[str, str]]] = MappingProxyType(
    {
        NameKind.COMMAND: {"judge": "check", "accept": "waive"},
        NameKind.OPTION: {
            "--accepted": "--waivers",
            "--by": "--owner",
            "--good": "--no-regression",
            "power --history": "--history-runs",
        },
        NameKind.SETTING: {
            "acceptedPath": "waiversPath",
            "agentPreset": "agentProtocol",
            "cache": "recording",
            "confirm": "reruns",
            "controlCommand": "baseAgentCommand",
            "controlEndpoint": "baseAgentEndpoint",
            "controlTarget": "baseAgentTarget",
            "errorRate": "falseAlarmRate",
            "junit": "junitFailures",
            "rerunNonce": "rerunCacheBusting",
            "rerunSpread": "rerunInterval",
            "store": "keepResponses",
            "storeResponses": "keepResponses",
        },
        NameKind.INPUT: {"accept-label": "waive-label", "control": "base-agent"},
        NameKind.TARGET_SETTING: {
            "calledNoneAt": "noToolCallsPath",
            "preset": "agentProtocol",
            "whole": "fullResponse",
        },
        NameKind.WAIVER_KEY: {"accepted": "waivers", "by": "owner"},
        NameKind.COMMENT_VERB: {"accept": "waive"},
        NameKind.RESULT_KEY: {"blame": "error_kind"},
        NameKind.LABEL: {"eval-gate:accept": "eval-gate:waive"},
        NameKind.FILE: {".eval-gate/accepted.yaml": ".eval-gate/waivers.yaml"},
    }
)
_PREFIX: Final = re.compile(r"--|EVAL_GATE_")


def _normalize_name(word: str) -> str:
    """Normalize the spellings of one name: `errorRate`, `--error-rate` and `EVAL_GATE_ERROR_RATE` become the same."""
    return re.sub("[-_]", "", _PREFIX.sub("", word)).casefold()


_NEW_NAMES: Final = {kind: {_normalize_name(old): new for old, new in names.items()} for kind, names in RENAMED.items()}


def find_new_name(kind: NameKind, word: str) -> str | None:
    """Return the new name for an old name in any spelling, or None for a name that was not replaced."""
    return _NEW_NAMES[kind].get(_normalize_name(word))


def find_old_name(kind: NameKind, name: str) -> str | None:
    """Return the name that `name` replaced, or None."""
    return next((old for old, new in RENAMED[kind].items() if new == name), None)


def format_rename(new: str) -> str:
    """Format the new name for an error about the old one: ` (now called "x")`."""
    return f' (now called "{new}")'


def suggest_name(kind: NameKind, word: str, known: Collection[str], spell: Callable[[str], str] = str) -> str:
    """Suggest a known name for an unknown word: the new name of a replaced one, else the nearest.

    `spell` converts the new name to the spelling of the place where the old one was written.
    """
    new = find_new_name(kind, word)
    return format_rename(spell(new)) if new and spell(new) in known else format_suggestion(word, known)
