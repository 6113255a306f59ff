"""Patterns that name cases by id or by tag, as `mustPass` has them: `refund/*`, `tag:safety`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from eval_gate.errors import GateError, Problem, did_you_mean
from eval_gate.text import globs
from eval_gate.text.quoting import quoted_name

TAG: Final = "tag:"
"""Begins a pattern that is about tags."""
MAX_SHOWN: Final = 80
"""Characters of a pattern in a sentence."""


def fits(pattern: str, case_id: str, tags: Collection[str]) -> bool:
    """Whether a case is meant: by a glob over whole ids, capitals count, or by `tag:` and one of its tags."""
    if pattern.startswith(TAG):
        return pattern.removeprefix(TAG) in tags
    return globs.fits(pattern, case_id)


def idle_patterns(
    patterns: Iterable[str], cases: Sequence[tuple[str, Collection[str]]], *, strict: bool = False
) -> tuple[str, ...]:
    """A sentence for every pattern that names none of these cases, which are given by id and tags.

    Where that is `strict`, they are an error: raises GateError `must-pass-unmatched`.
    """
    idle = [one for one in dict.fromkeys(patterns) if not any(fits(one, *case) for case in cases)]
    if not idle:
        return ()
    known = [*sorted({TAG + tag for _, tags in cases for tag in tags}), *dict.fromkeys(case_id for case_id, _ in cases)]
    told = tuple(f"{quoted_name(one)} names no case{did_you_mean(one[:MAX_SHOWN], known)}" for one in idle)
    if strict:
        raise GateError(
            "must-pass-unmatched",
            "cases that must pass are not there",
            "`eval-gate validate --verbose` lists the cases; without strict this is a warning",
            problems=[Problem(sentence, field="must-pass") for sentence in told],
        )
    return tuple(f"must-pass: {sentence}, so nothing has to pass because of it" for sentence in told)
