"""Patterns of `measures`: `agents/**` is a glob of files, `!**/*.md` leaves out, `env:AGENT_IMAGE` is a variable."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from eval_gate.text.globs import covers_file
from eval_gate.text.quoting import quote_name, quote_value

_EVERY: Final = "**"
_VARIABLE: Final = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)")


class MeasuredPattern(NamedTuple):
    """One pattern, with its `text` as written: either a normalized `path`, or the name of a `variable`."""

    text: str
    path: str = ""
    variable: str = ""
    is_exclusion: bool = False


def parse_measured_pattern(text: str) -> MeasuredPattern:
    """Parse a pattern. Raises ValueError, for a person, if it can name no file of the repository and no variable."""
    path = text.removeprefix("!")
    if match := _VARIABLE.fullmatch(text):
        return MeasuredPattern(text, variable=match[1])
    if path.startswith("env:"):
        raise ValueError(f"{quote_value(text)} names no variable: write one such as env:AGENT_IMAGE")
    if not path.strip() or path.startswith("/") or ".." in path.split("/"):
        raise ValueError(f"{quote_value(text)} names no file below the working directory: write one such as agents/**")
    return MeasuredPattern(text, posixpath.normpath(f"{path}**" if path.endswith("/") else path), "", path != text)


def check_measured_pattern(text: str) -> str:
    """Validate a pattern, and return it as written. Raises ValueError for a person."""
    return parse_measured_pattern(text).text


def names_file(patterns: Sequence[str], path: str) -> bool:
    """Whether patterns name this file, relative to the root: whether or not it exists."""
    covering = [one for one in map(parse_measured_pattern, patterns) if one.path and covers_file(one.path, path)]
    return bool(covering) and not any(one.is_exclusion for one in covering)


def select_patterns(
    measures: Sequence[str] | Mapping[str, Sequence[str]], suite: str, of_targets: Iterable[str] = ()
) -> tuple[str, ...]:
    """Select the patterns of an eval file, as written, sorted: of a mapping those of all globs that cover it.

    Those `of_targets` come in addition. What every eval file measures is not all that one of them does: there are none
    if only `**`, of several globs, covers it.
    """
    by_glob = measures if isinstance(measures, Mapping) else {".": measures}
    globs = {glob: parse_measured_pattern(glob) for glob in by_glob}
    covering = [glob for glob, one in globs.items() if not one.is_exclusion and covers_file(one.path, suite)]
    patterns = set(of_targets)
    if patterns or len(by_glob) == 1 or any(globs[glob].path != _EVERY for glob in covering):
        patterns |= {pattern for glob in covering for pattern in by_glob[glob]}
    return tuple(sorted(patterns))


def iter_idle_globs(measures: Sequence[str] | Mapping[str, Sequence[str]], suites: Sequence[str]) -> Iterator[str]:
    """Yield a warning for each glob of the mapping that covers none of all eval files, such as a misspelt one."""
    for glob in measures if isinstance(measures, Mapping) else ():
        if not any(select_patterns({glob: ("",)}, suite) for suite in suites):
            yield f"{quote_name(glob)} in `measures` covers no eval file"
