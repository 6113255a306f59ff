"""What fails the gate, in the words people use."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from runner.errors import GateError, did_you_mean


class FailOn(StrEnum):
    """What fails the gate, beside execution errors."""

    FAILURES = "failures"
    REGRESSIONS = "regressions"
    NEVER = "never"
    STALE = "stale"
    FLAKY = "flaky"


def parse_fail_on(words: Iterable[str]) -> frozenset[FailOn]:
    """`failures`, `regressions` or `never`; `stale` and `flaky` add to them, alone to `failures`.

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
