"""Which files are guidelines: patterns from the configuration near the eval file, or AgentV's own.

Source: agentv evaluation spec, "Guideline Pattern Configuration"; agentv behaviour 3. A guideline is matched once, by
its way from the repository's root, so that it is the same file everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from eval_gate.errors import Problem
from eval_gate.formats.agentv.files import EvalRepository, FileError, FoundFile
from eval_gate.formats.base import EvalFileError
from eval_gate.model.base import JsonValue
from eval_gate.text.sources.shape import field_path, kind_of

DEFAULTS: Final = ("**/*.instructions.md", "**/instructions/**", "**/*.prompt.md", "**/prompts/**")
KEY: Final = "guideline_patterns"
FILES: Final = (".agentv.yaml", ".agentv/config.yaml")
"""Where patterns may stand, at every level; the first name wins at any level."""
MAX_PATTERNS: Final = 100
MAX_LENGTH: Final = 200
"""Characters of a pattern."""
MAX_ANYWHERE: Final = 3
"""`**` in one pattern. Each of them multiplies the work of matching a deep path."""
MAX_COMMAS: Final = 7
"""Commas in a pattern with braces: each of them at most doubles the patterns that it stands for."""
MAX_STEPS: Final = 60
"""Folders above a file that is matched; one that lies deeper is no guideline."""


class Guidelines:
    """Decides whether a file is a guideline."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = list(patterns)
        self._known: dict[str, bool] = {}

    def match(self, found: FoundFile) -> bool:
        """Whether one of the patterns makes this file a guideline."""
        if found.inside not in self._known:
            self._known[found.inside] = glob_match(found.inside, self._patterns)
        return self._known[found.inside]


def glob_match(path: str, patterns: Sequence[str]) -> bool:
    """Whether one of the patterns takes this path, as micromatch has it: `**` takes any folders, `*` no slash.

    A dot at the beginning of a name is only taken by a dot.
    """
    if not patterns or path.count("/") > MAX_STEPS:
        return False
    from wcmatch import glob

    flags = glob.GLOBSTAR | glob.BRACE | glob.FORCEUNIX | glob.CASE
    return bool(glob.globmatch(path, list(patterns), flags=flags, limit=0))


def load_guidelines(repository: EvalRepository) -> Guidelines:
    """The patterns nearest to the eval file, or the defaults. Raises GateError for patterns that are none."""
    for name in FILES:
        for place in repository.upward():
            patterns = _patterns_in(place / name, repository)
            if patterns is not None:
                return Guidelines(patterns)
    return Guidelines(DEFAULTS)


def _patterns_in(path: Path, repository: EvalRepository) -> list[str] | None:
    """The patterns of one file; None when it is not there or says nothing of guidelines."""
    shown = repository.shown(path)
    try:
        found = repository.at(path)
        text = None if found is None else repository.read(found)
    except FileError as error:
        raise EvalFileError(shown, [Problem(str(error), file=shown)]) from error
    if text is None:
        return None
    from eval_gate.text.sources.yaml import parse_yaml

    document, positions = parse_yaml(text.encode(), shown)
    if not isinstance(document, dict) or KEY not in document:
        return None
    value = document[KEY]
    problems = [
        Problem(message, file=shown, line=positions.line([KEY, *step]), field=field_path([KEY, *step]))
        for step, message in _problems(value)
    ]
    if problems or not isinstance(value, list):
        raise EvalFileError(shown, problems)
    return [str(pattern) for pattern in value]


def _problems(value: JsonValue) -> Iterator[tuple[list[int], str]]:
    """What is wrong with the patterns, and with which of them."""
    if not isinstance(value, list):
        yield [], f"expected a list of patterns, got {kind_of(value)}; [] means no guidelines"
        return
    if len(value) > MAX_PATTERNS:
        yield [], f"more than {MAX_PATTERNS} patterns"
    for index, pattern in enumerate(value[:MAX_PATTERNS]):
        message = _problem(pattern)
        if message:
            yield [index], message


def _problem(pattern: JsonValue) -> str | None:
    if not isinstance(pattern, str):
        return f"expected text, got {kind_of(pattern)}"
    if not pattern.strip():
        return "must not be empty"
    if len(pattern) > MAX_LENGTH:
        return f"is longer than {MAX_LENGTH} characters"
    if pattern.count("**") > MAX_ANYWHERE:
        return f"has more than {MAX_ANYWHERE} times `**`"
    if "{" in pattern and (pattern.count(",") > MAX_COMMAS or ".." in pattern):
        return f"has braces with ranges or with more than {MAX_COMMAS} commas"
    return None
