"""Whether what must pass is there at all, in a result that somebody else made or that was stored."""

from __future__ import annotations

from collections.abc import Iterable

from eval_gate.model.result import RunResult
from eval_gate.text.case_pattern import idle_patterns


def with_idle_patterns(run: RunResult, patterns: Iterable[str], *, strict: bool = False) -> RunResult:
    """The run with a warning for every pattern that names none of its cases; nothing where only some were chosen.

    Raises GateError `must-pass-unmatched` if `strict`.
    """
    if run.partial or run.shard is not None:
        return run
    idle = idle_patterns(patterns, [(case.id, case.tags) for _, case in run.cases()], strict=strict)
    return run.model_copy(update={"warnings": tuple(dict.fromkeys((*run.warnings, *idle)))}) if idle else run
