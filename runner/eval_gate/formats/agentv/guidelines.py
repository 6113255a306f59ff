"""Guideline files: patterns from the nearest configuration, or AgentV's defaults.

Source: agentv evaluation spec, "Guideline Pattern Configuration"; agentv behaviour 3. Patterns match
paths from the repository's root, which are the same in every checkout.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from eval_gate.errors import Problem
from eval_gate.formats.agentv.eval_repository import EvalRepository, FileError, RepositoryFile
from eval_gate.formats.base import EvalFileError
from eval_gate.model.base import JsonValue
from eval_gate.text.sources.validation_errors import describe_value, format_field_path

DEFAULT_PATTERNS: Final = ("**/*.instructions.md", "**/instructions/**", "**/*.prompt.md", "**/prompts/**")
PATTERNS_KEY: Final = "guideline_patterns"
CONFIG_FILES: Final = (".agentv.yaml", ".agentv/config.yaml")
"""Names of configuration files with patterns, in any folder; the first name counts."""
MAX_PATTERNS: Final = 100
MAX_PATTERN_LENGTH: Final = 200
MAX_GLOBSTARS: Final = 3
"""Maximum `**` in one pattern. Each multiplies the work of matching a deep path."""
MAX_COMMAS: Final = 7
"""Maximum commas in a pattern with braces: each at most doubles the number of expanded patterns."""
MAX_FOLDER_DEPTH: Final = 60
"""Maximum folders above a guideline; deeper files are no guidelines."""


class Guidelines:
    """Patterns that decide whether a file is a guideline."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = list(patterns)
        self._known: dict[str, bool] = {}

    def is_guideline(self, file: RepositoryFile) -> bool:
        """Whether one of the patterns makes this file a guideline."""
        if file.relative_path not in self._known:
            self._known[file.relative_path] = matches_glob(file.relative_path, self._patterns)
        return self._known[file.relative_path]


def matches_glob(path: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern matches, as in micromatch: `**` any folders, `*` no slash, and neither a first dot."""
    if not patterns or path.count("/") > MAX_FOLDER_DEPTH:
        return False
    from wcmatch import glob

    flags = glob.GLOBSTAR | glob.BRACE | glob.FORCEUNIX | glob.CASE
    return bool(glob.globmatch(path, list(patterns), flags=flags, limit=0))


def load_guidelines(repository: EvalRepository) -> Guidelines:
    """Load the guideline patterns nearest to the eval file, or the defaults. Raises GateError for invalid patterns."""
    for name in CONFIG_FILES:
        for place in repository.iter_parent_folders():
            patterns = _load_patterns(place / name, repository)
            if patterns is not None:
                return Guidelines(patterns)
    return Guidelines(DEFAULT_PATTERNS)


def _load_patterns(path: Path, repository: EvalRepository) -> list[str] | None:
    shown_as = repository.format_path(path)
    try:
        file = repository.find_file_at(path)
        text = None if file is None else repository.read_text(file)
    except FileError as error:
        raise EvalFileError(shown_as, [Problem(str(error), file=shown_as)]) from error
    if text is None:
        return None
    from eval_gate.text.sources.yaml import parse_yaml

    document, positions = parse_yaml(text.encode(), shown_as)
    if not isinstance(document, dict) or PATTERNS_KEY not in document:
        return None
    value = document[PATTERNS_KEY]
    problems = [
        Problem(
            message,
            file=shown_as,
            line=positions.find_line([PATTERNS_KEY, *step]),
            field=format_field_path([PATTERNS_KEY, *step]),
        )
        for step, message in _iter_problems(value)
    ]
    if problems or not isinstance(value, list):
        raise EvalFileError(shown_as, problems)
    return [str(pattern) for pattern in value]


def _iter_problems(value: JsonValue) -> Iterator[tuple[list[int], str]]:
    if not isinstance(value, list):
        yield [], f"expected a list of patterns, got {describe_value(value)}; [] means no guidelines"
        return
    if len(value) > MAX_PATTERNS:
        yield [], f"more than {MAX_PATTERNS} patterns"
    for index, pattern in enumerate(value[:MAX_PATTERNS]):
        message = _find_problem(pattern)
        if message:
            yield [index], message


def _find_problem(pattern: JsonValue) -> str | None:
    if not isinstance(pattern, str):
        return f"expected text, got {describe_value(pattern)}"
    if not pattern.strip():
        return "must not be empty"
    if len(pattern) > MAX_PATTERN_LENGTH:
        return f"is longer than {MAX_PATTERN_LENGTH} characters"
    if pattern.count("**") > MAX_GLOBSTARS:
        return f"has `**` more than {MAX_GLOBSTARS} times"
    if "{" in pattern and (pattern.count(",") > MAX_COMMAS or ".." in pattern):
        return f"has braces with ranges or with more than {MAX_COMMAS} commas"
    return None
