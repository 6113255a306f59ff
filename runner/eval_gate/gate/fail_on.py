"""What fails the gate, in the words people use."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from eval_gate.errors import GateError, did_you_mean


class FailOn(StrEnum):
    """What fails the gate, beside execution errors."""

    FAILURES = "failures"
    REGRESSIONS = "regressions"
    NEVER = "never"
    STALE = "stale"
    FLAKY = "flaky"
    REMOVED = "removed"
    """A case that passed in the baseline is gone."""
    CHANGED = "changed"
    """A case that passed in the baseline is measured by another yardstick, or a rule asks for less."""
    NEW_FAILURES = "new-failures"
    """A case that the baseline does not have fails."""


def parse_fail_on(words: Iterable[str]) -> frozenset[FailOn]:
    """`failures`, `regressions` or `never`; all other words add to them, alone to `failures`.

    Raises GateError `unknown-value`.
    """
    known = [one.value for one in FailOn]
    chosen = set()
    for word in (part.strip() for text in words for part in text.split(",") if part.strip()):
        if word not in known:
            raise GateError(
                "unknown-value",
                f'--fail-on: "{word[:80]}" is not known{did_you_mean(word, known)}',
                f"allowed: {', '.join(known)}",
            )
        chosen.add(FailOn(word))
    if FailOn.NEVER in chosen and len(chosen) > 1:
        raise GateError("unknown-value", "--fail-on: never stands alone", "leave out never, or everything else")
    if not chosen & {FailOn.FAILURES, FailOn.REGRESSIONS, FailOn.NEVER}:
        chosen.add(FailOn.FAILURES)
    return frozenset(chosen)
