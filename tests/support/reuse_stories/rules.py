"""The decisions of the program that a history is told with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eval_gate.gate.reuse_decision import decide_reuse
from eval_gate.model.result import RunResult
from eval_gate.model.reuse import EvaluatedState, ReuseSummary
from tests.support.reuse_stories.github import find_own
from tests.support.reuse_stories.runs import FoundRun, Pull, Request

Decide = Callable[..., ReuseSummary]
FindOwn = Callable[[Sequence[FoundRun], Request, EvaluatedState, Sequence[Pull]], list[RunResult]]


@dataclass(frozen=True)
class Rules:
    """How the program decides. A mutant replaces one of these."""

    decide: Decide = decide_reuse
    find_own: FindOwn = find_own
