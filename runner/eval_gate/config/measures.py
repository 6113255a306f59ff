"""Patterns of `measures`: the files and variables of which a suite is the measure.

`agents/**` is a glob relative to the root of the run, `!agents/**/*.md` leaves files out of the others, and
`env:AGENT_IMAGE` is a variable. A folder stands for all that is below it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from eval_gate.text.globs import covers_file
from eval_gate.text.quoting import quote_value

_EXCLUSION: Final = "!"
_VARIABLE_PREFIX: Final = "env:"
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class MeasuredPattern(NamedTuple):
    """One pattern: either a `path`, normalized, or the name of a `variable`."""

    text: str
    """The pattern as its author wrote it."""
    path: str = ""
    variable: str = ""
    is_exclusion: bool = False


def parse_measured_pattern(text: str) -> MeasuredPattern:
    """Parse a pattern. Raises ValueError, for a person, if it can name no file of the repository and no variable."""
    is_exclusion = text.startswith(_EXCLUSION)
    path = text.removeprefix(_EXCLUSION)
    if path.startswith(_VARIABLE_PREFIX):
        variable = path.removeprefix(_VARIABLE_PREFIX)
        if is_exclusion:
            raise ValueError(f"{quote_value(text)} leaves out a variable, which no other pattern names")
        if _VARIABLE.fullmatch(variable) is None:
            raise ValueError(f"{quote_value(text)} names no variable: write one such as env:AGENT_IMAGE")
        return MeasuredPattern(text, variable=variable)
    return MeasuredPattern(text, parse_relative_glob(path, text), is_exclusion=is_exclusion)


def check_measured_pattern(text: str) -> str:
    """Validate a pattern, and return it as written. Raises ValueError for a person."""
    return parse_measured_pattern(text).text


def check_glob(text: str) -> str:
    """Validate a glob of eval files, and return it as written. Raises ValueError for a person."""
    parse_relative_glob(text)
    return text


def parse_relative_glob(path: str, shown_as: str | None = None) -> str:
    """Normalize a glob that is relative to the root of the run: `./agents/` is `agents/**`. Raises ValueError."""
    shown_as = quote_value(path if shown_as is None else shown_as)
    if not path.strip():
        raise ValueError(f"{shown_as} names no file")
    if path.startswith("/"):
        raise ValueError(f"{shown_as} is absolute: write it relative to the working directory")
    if ".." in path.split("/"):
        raise ValueError(f"{shown_as} leads out of a folder with `..`: write it relative to the working directory")
    return posixpath.normpath(f"{path}**" if path.endswith("/") else path)


def select_patterns(measures: Sequence[str] | Mapping[str, Sequence[str]], suite: str) -> tuple[str, ...]:
    """Select the patterns of an eval file, as written, sorted: of a mapping those of all globs that cover it."""
    lists = (
        [patterns for glob, patterns in measures.items() if covers_file(parse_relative_glob(glob), suite)]
        if isinstance(measures, Mapping)
        else [measures]
    )
    return tuple(sorted({pattern for patterns in lists for pattern in patterns}))
