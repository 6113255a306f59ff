"""Glob patterns for eval files, case ids and the eval files of a waiver (docs/cli.md, "Globs").

`**/` is any number of folders, none too; `?` is one character, `[abc]` one of these, `[!abc]` any other. Capitals
count. A `*` is any characters. In a name, which is compared as a whole, these may be slashes; where
`formats/discovery.py` looks through folders, it stays in its folder. `**` that is no whole step is `*`. A pattern that
names cases, as in `mustPass`, is a glob over their ids or one of their tags: `refund/*`, `tag:safety`.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Final

from eval_gate.errors import GateError, Problem, format_suggestion
from eval_gate.text.quoting import quote_name

_WILDCARD: Final = re.compile(r"(?P<folders>(?<![^/])(?:\*\*/)+)|(?P<any>\*+)|\?|\[!?\]?[^\]]{0,200}\]")
_WILDCARD_START: Final = re.compile(r"[*?\[]")
_ANY: Final = r".*?"
_ANY_FOLDERS: Final = rf"{_ANY}(?<![^/])"
"""Anything that ends where a step begins. It is only found where one begins, so that it may be nothing, too."""
_ANY_IN_FOLDER: Final = "[^/]*?"
_FOLDERS: Final = "(?:[^/]*/)*?"
_STEP_START: Final = "(?<![^/])"
_STEP_END: Final = r"(?:/|\Z)"
TAG_PREFIX: Final = "tag:"
"""Begins a pattern that is about tags."""
MAX_SHOWN: Final = 80
"""Characters of a pattern in a sentence."""


def is_glob(text: str) -> bool:
    """Whether the text holds a sign that stands for something else."""
    return _WILDCARD.search(text) is not None


def escape_glob(name: str) -> str:
    """Escape a name as a pattern that matches this name and no other."""
    return _WILDCARD_START.sub(r"[\g<0>]", name) if is_glob(name) else name


def strip_wildcards(pattern: str) -> str:
    """Remove the wildcards of a pattern, so that only its literal text is left."""
    return _WILDCARD.sub("", pattern)


def matches_glob(pattern: str, name: str) -> bool:
    """Whether the pattern means the whole of this name. Time grows by the product of both lengths at most."""
    return _compile_glob(pattern).match(name) is not None


def covers_file(path: str, file: str) -> bool:
    """Whether a path, folder or glob of eval files leads to this file: a `*` stays in its folder, as for discovery."""
    return _compile_path(path).match(file) is not None


@lru_cache(maxsize=1_000)
def _compile_glob(pattern: str) -> re.Pattern[str]:
    return re.compile(_translate_glob(pattern, _ANY) + r"\Z", re.DOTALL)


@lru_cache(maxsize=1_000)
def _compile_path(path: str) -> re.Pattern[str]:
    """Compile a path so that it matches a file that it leads to, in time as `_compile_glob`."""
    if path == ".":
        return re.compile("")
    parts: list[list[str]] = [[]]
    for step in path.split("/"):
        if step == "**":
            parts.append([])
        else:
            parts[-1].append(_translate_glob(step, _ANY_IN_FOLDER))
    first, *following = ["".join([_STEP_START, "/".join(steps), _STEP_END]) if steps else "" for steps in parts]
    # each one has as many steps as it has, so that the first place where it stands is the best (atomic)
    return re.compile(
        f"{re.escape(path)}(?=/|\\Z)|{first}" + "".join(f"(?>{_FOLDERS}{one})" for one in following if one), re.DOTALL
    )


def _translate_glob(pattern: str, anything: str) -> str:
    """Translate a pattern to a regular expression, in which a `*` is `anything`."""
    parts, place = [""], 0
    for sign in _WILDCARD.finditer(pattern):
        parts[-1] += re.escape(pattern[place : sign.start()])
        place = sign.end()
        if sign["folders"] or sign["any"]:
            parts.append(_ANY_FOLDERS if sign["folders"] else anything)
        else:
            parts[-1] += (r"" if anything is _ANY else "(?!/)") + _translate_character(sign)
    *heads, last = parts
    # What stands before is taken where it is found first, and never sought anew (atomic): no later place is better.
    return "".join(f"(?>{part})" for part in heads) + last + re.escape(pattern[place:])


def _translate_character(sign: re.Match[str]) -> str:
    """Translate `?` or `[…]`, bounded in length, to a regular expression: the library knows ranges and negations."""
    return fnmatch.translate(sign[0]).removeprefix("(?s:").rpartition(")")[0]


def matches_case(pattern: str, case_id: str, tags: Collection[str]) -> bool:
    """Whether a case is meant: by a glob over whole ids, capitals count, or by `tag:` and one of its tags."""
    if pattern.startswith(TAG_PREFIX):
        return pattern.removeprefix(TAG_PREFIX) in tags
    return matches_glob(pattern, case_id)


def check_unmatched_patterns(
    patterns: Iterable[str], cases: Sequence[tuple[str, Collection[str]]], *, strict: bool = False
) -> tuple[str, ...]:
    """Describe patterns that match no case, given by id and tags; with `strict`, raises GateError instead."""
    idle = [one for one in dict.fromkeys(patterns) if not any(matches_case(one, *case) for case in cases)]
    if not idle:
        return ()
    names = [
        *sorted({TAG_PREFIX + tag for _, tags in cases for tag in tags}),
        *dict.fromkeys(case_id for case_id, _ in cases),
    ]
    sentences = tuple(f"{quote_name(one)} matches no case{format_suggestion(one[:MAX_SHOWN], names)}" for one in idle)
    if strict:
        raise GateError(
            "unmatched-must-pass",
            "cases that must pass were not found",
            "`eval-gate validate --verbose` lists the cases; without strict this is a warning",
            problems=[Problem(sentence, field="must-pass") for sentence in sentences],
        )
    return tuple(f"must-pass: {sentence}: this entry has no effect" for sentence in sentences)
