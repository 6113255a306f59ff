"""AgentV 4 features that are not supported, with the message for each.

Source: AgentV 4.42.4. docs/agentv.md shows the same table to people; a test holds the two together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from eval_gate.model.base import JsonValue

UNSUPPORTED_KEYS: Final[Mapping[str, str]] = {
    "workspace": "no workspace is set up for a case",
    "preprocessors": "answers are graded as they are",
    "depends_on": "cases are run by themselves",
    "on_dependency_failure": "cases are run by themselves",
    "mode": "a conversation is put to the target as a whole, not turn by turn",
    "turns": "a conversation is put to the target as a whole, not turn by turn",
    "aggregation": "a conversation is put to the target as a whole, not turn by turn",
    "on_turn_failure": "a conversation is put to the target as a whole, not turn by turn",
    "window_size": "a conversation is put to the target as a whole, not turn by turn",
    "threshold": "a case passes at 1, or at `passScore` of the configuration",
    "trials": "how often a case is executed is set in the configuration (`trials`)",
    "budget_usd": "what a run may cost is set in the configuration",
    "fail_on_error": "a case that could not be judged never passes",
    "score_ranges": "a criterion is met or not",
    "operator": "a criterion is met or not",
    "required_min_score": "a criterion is met or not",
    "max_steps": "a judge is asked once and has no tools",
    "maxSteps": "a judge is asked once and has no tools",
    "temperature": "it is set at the target that judges",
    "target_exploration_ratio": "what a tool call is for is not known",
    "targetExplorationRatio": "what a tool call is for is not known",
    "exploration_tolerance": "what a tool call is for is not known",
    "explorationTolerance": "what a tool call is for is not known",
}
"""Keys, and why there is nothing behind them here."""
UNSUPPORTED_CALL_KEYS: Final[Mapping[str, str]] = {
    "input": "the arguments of a call stand in `args`",
    "output": "what a call gave back is not compared",
}
"""The same for keys of an expected call, which AgentV passes over."""
CUSTOM_EVALUATOR: Final = (
    "is none of the evaluators that are known here, and those of your own are not run: use code-grader"
)
UNSUPPORTED_CHECK_KEYS: Final = frozenset({"min_score"})
"""The same for keys that only a criterion may not have."""
SEVERAL_TARGETS: Final = "several targets are not supported: choose one with --target, and run once for each"
TARGET_HOOKS: Final = "targets with hooks or other settings of their own are not supported: give the name of one"
MEMBER_KEY: Final = "is not supported at a member of a composite: the composite itself can have it"
IMAGE: Final = "images are not supported: a part is a text or a file of text"
PROMPT_COMMAND: Final = "a prompt that a command makes is not supported: write the prompt itself, or a file"
INCLUDE: Final = "assertions of another file (`include`) are not supported: write them here"
GRADER_TARGET: Final = "a command that grades cannot ask a model: `target` is not supported here"
IGNORED_KEYS: Final = frozenset(
    {"$comment", "$schema", "id", "name", "description", "version", "author", "license", "tags", "category"}
    | {"governance", "requires", "metadata", "note", "notes", "dataset", "suite"}
)
"""Keys that say something to people, wherever they stand."""
_DESCRIPTIVE_KEYS: Final = IGNORED_KEYS - {"id", "metadata"}
_VARIABLE: Final = re.compile(r"\$\{\{\s*([A-Za-z_]\w*)\s*\}\}")


def describe_unsupported_key(key: str) -> str | None:
    """Describe why a key of AgentV is not supported, or return None for any other key."""
    why = UNSUPPORTED_KEYS.get(key)
    return None if why is None else f"`{key}` is not supported: {why}"


def iter_environment_references(
    value: JsonValue, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    """Every text that takes something out of the environment: what it wants, and where it stands.

    An eval file comes with a pull request. What it could put into a prompt, it could put anywhere.
    """
    match value:
        case str():
            found = _VARIABLE.search(value)
            if found is not None:
                yield found[1], path
        case list():
            for index, one in enumerate(value):
                yield from iter_environment_references(one, (*path, index))
        case dict():
            for key, one in value.items():
                if key not in _DESCRIPTIVE_KEYS:
                    yield from iter_environment_references(one, (*path, key))
        case _:
            return
