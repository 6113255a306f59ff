"""The decisions of the program that a history is told with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from eval_gate.gate.reuse_decision import EarlierRun, collect_reused, decide_reuse
from eval_gate.model.result import RunResult, SuiteResult
from eval_gate.model.reuse import EvaluatedState, ReuseOff, ReuseSource, ReuseSummary
from tests.support.reuse_stories.github import find_own
from tests.support.reuse_stories.runs import FoundRun, Pull, Request

Decide = Callable[..., ReuseSummary]
Collect = Callable[[ReuseSummary, Sequence[EarlierRun]], Mapping[str, SuiteResult]]
FindOwn = Callable[[Sequence[FoundRun], Request, EvaluatedState, Sequence[Pull]], list[RunResult]]


@dataclass(frozen=True)
class Rules:
    """How the program decides. A mutant replaces one of these."""

    decide: Decide = decide_reuse
    collect: Collect = collect_reused
    build_source: Callable[[RunResult, ReuseSource], EarlierRun] = EarlierRun
    find_own: FindOwn = find_own
    read_off: Callable[[Request], ReuseOff | None] = lambda request: request.off
