"""AgentV 4 features that are not supported, with the message for each.

Source: AgentV 4.42.4. docs/agentv.md has the same table; a test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.text.json_values import ValuePath, iter_leaves

UNSUPPORTED_KEYS: Final[Mapping[str, str]] = {
    "preprocessors": "responses are evaluated unchanged",
    "depends_on": "cases run independently",
    "on_dependency_failure": "cases run independently",
    "user": "only a case in tool-forge's format can have a simulated user",
    "threshold": "set it in `execution`, where AgentV reads it",
    "trials": "set it in the `execution` of the file, where AgentV reads it",
    "budget_usd": "set the budget in the configuration",
    "fail_on_error": "a case without a score never passes",
    "score_ranges": "a criterion is either met or not",
    "operator": "a criterion is either met or not",
    "required_min_score": "a criterion is either met or not",
    "max_steps": "a judge is called once and has no tools",
    "maxSteps": "a judge is called once and has no tools",
    "temperature": "set it at the judge's target",
    "target_exploration_ratio": "the purpose of a tool call is not known",
    "targetExplorationRatio": "the purpose of a tool call is not known",
    "exploration_tolerance": "the purpose of a tool call is not known",
    "explorationTolerance": "the purpose of a tool call is not known",
}
"""Unsupported keys, and why."""
UNSUPPORTED_CALL_KEYS: Final[Mapping[str, str]] = {
    "input": "the arguments of a call are in `args`",
    "output": "the result of a call is not compared",
}
"""The same for keys of an expected call, which AgentV ignores."""
CUSTOM_EVALUATOR: Final = "is not a known evaluator, and custom evaluators are not run: use code-grader"
UNSUPPORTED_WORKSPACE_KEYS: Final[Mapping[str, str]] = {
    "repos": (
        "repositories are not cloned: clone them in a `before_all` hook, or check them out in a step of the workflow "
        "and use a `template`"
    ),
    "docker": "cases do not run in containers: run Eval Gate in the container that they need",
    "path": "a workspace is always a fresh folder: use a `template`",
    "env": "install and check what the cases need in a step of the workflow",
}
"""The same for keys of a workspace."""
UNSUPPORTED_CHECK_KEYS: Final[Mapping[str, str]] = {"min_score": "a criterion is met or not"}
"""The same for keys of a criterion."""
CASE_TARGETS: Final = "targets of a case are not supported beside several of the file: every case goes to each of these"
SEVERAL_CASE_TARGETS: Final = "several targets of a case are not supported: name them in the `execution` of the file"
OTHER_WORKSPACE: Final = (
    "has another workspace than the first case, which AgentV ignores: all cases share that of the first one. Set "
    "`isolation: per_test` in the workspace of the file"
)
RESET: Final = "`reset` is not supported: set `isolation: per_test`, with which each case has a fresh copy"
NO_AFTER_ALL: Final = "is not run, as in AgentV: each case has a workspace of its own, so use `after_each`"
OTHER_HOOK: Final = (
    "has another command than that of the first case, whose workspace all cases share: AgentV ignores it"
)
TARGET_HOOKS: Final = "targets with hooks or other settings are not supported here: use the name of a target"
MEMBER_KEY: Final = "is not supported at a member of a composite: set it at the composite"
IMAGE: Final = "images are not supported: a part must be text or a text file"
PROMPT_COMMAND: Final = "a prompt from a command is not supported: write the prompt itself or a file"
INCLUDE: Final = "assertions of another file (`include`) are not supported: write them here"
GRADER_TARGET: Final = "a grading command cannot call a model: `target` is not supported here"
IGNORED_KEYS: Final = frozenset(
    {"$comment", "$schema", "id", "name", "description", "version", "author", "license", "tags", "category"}
    | {"governance", "requires", "metadata", "note", "notes", "dataset", "suite"}
)
"""Keys of texts for people, at any place."""
_DESCRIPTIVE_KEYS: Final = IGNORED_KEYS - {"id", "metadata"}
_VARIABLE: Final = re.compile(r"\$\{\{\s*([A-Za-z_]\w*)\s*\}\}")


def describe_unsupported_key(key: str) -> str | None:
    """Describe why a key of AgentV is not supported, or return None for any other key."""
    why = UNSUPPORTED_KEYS.get(key)
    return None if why is None else f"`{key}` is not supported: {why}"


def describe_environment_reference(variable: str) -> str:
    """Describe why a text with this variable of the environment is refused."""
    return f"`${{{{ {variable} }}}}` is not supported: eval files do not use environment variables"


def iter_environment_references(value: JsonValue) -> Iterator[tuple[str, ValuePath]]:
    """Yield the environment variables in texts, with their places: an eval file may come with a pull request."""
    for path, text in iter_leaves(value):
        match = _VARIABLE.search(text) if isinstance(text, str) and _DESCRIPTIVE_KEYS.isdisjoint(path) else None
        if match is not None:
            yield match[1], path
