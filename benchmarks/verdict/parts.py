"""The parts of the verdict that can be switched off, each by putting something neutral in place of one decision.

Only here: the program has no settings for it. What is put in place is what a gate without the part would do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import fsum
from types import MappingProxyType
from typing import Any, TypeAlias
from unittest.mock import patch

from eval_gate.gate import comparison_refinement, reruns, verdict_decision
from eval_gate.gate.evidence import (
    case_classification,
    case_history,
    day_effects,
    flakiness,
    prior,
    rerun_decision,
    suite_drop,
    thresholds,
)
from eval_gate.gate.evidence.rerun_decision import RerunCriteria, Suspicion, find_suspicion
from eval_gate.gate.evidence.run_share import NO_SHARES
from eval_gate.gate.evidence.suite import branch_level
from eval_gate.gate.evidence.suite.failures import Stratum
from eval_gate.gate.evidence.thresholds import EvidenceThresholds, compute_run_thresholds
from eval_gate.gate.reruns import Suspects
from eval_gate.model.evidence import BranchRun, Counts, SuiteFinding
from eval_gate.results.history import HistoryExecution
from eval_gate.struct import replace

Executions: TypeAlias = tuple[HistoryExecution, ...]
EVERYTHING = ""
"""The name under which the gate with all its parts is kept."""
_STRENGTHS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
"""Of Beta distributions: the executions that they are worth."""
_BARS = thresholds.compute_thresholds
"""Caches what was worked out with other parts, which must be forgotten."""


@dataclass(frozen=True)
class Part:
    """One part. `replaced` is what has the name, the name, and what stands there without the part."""

    name: str
    neutral: str
    replaced: tuple[tuple[object, str, object], ...] = ()
    judged_only: bool = False
    """Without it the same executions are made, so that they are only judged again."""
    on_branch: bool = True
    """Whether the branch's own runs may be made otherwise without it."""
    least: int = 1
    """The shortest history after which it can do anything."""
    special: bool = False
    """It can only matter in lines of its own, and is switched off in no others."""
    program: str = "without.py"
    """The program that switches it off."""


@contextmanager
def without(part: Part | None) -> Iterator[None]:
    """Switch off this part of the gate inside the context; None leaves all parts on.

    Callers give each part its own baseline, so that the evidence of its history is computed anew.
    """
    with ExitStack() as stack:
        if part is None or not part.judged_only:
            _BARS.cache_clear()
            stack.callback(_BARS.cache_clear)
        for where, name, neutral in part.replaced if part else ():
            stack.enter_context(patch.object(where, name, neutral))
        yield


def _all_alike(seen: tuple[BranchRun, ...]) -> day_effects.DayEffects:
    return day_effects.DayEffects(len(seen))


def _unchanged(first: object, *_: object) -> object:
    return first


def _nothing_dropped(_pairs: object, _days: object, limit: float, **_: object) -> SuiteFinding:
    return SuiteFinding(cases=0, failures=0, expected=0.0, chance=1.0, limit=limit)


def _one_kind(histories: Mapping[tuple[int, int], float], *_: object) -> prior.Prior:
    """Find the Beta distribution that explains the records of the cases best.

    Its mean is that of all records and one more case. Records that failed every time, and at least three times, are
    left out: here too, such a case is broken and not flaky. Return the default prior if no record is left.
    """
    known = {history: number for history, number in histories.items() if history[0] or 0 < history[1] < 3}
    if not known:
        return prior.DEFAULT_PRIOR
    passes, failures = (fsum(history[side] * many for history, many in known.items()) for side in (0, 1))
    mean = (failures + 1.0) / (passes + failures + 10.0)

    def likely(strength: float) -> float:
        belief = prior.Prior.from_counts(strength * (1 - mean), strength * mean)
        return fsum(many * belief.compute_log_chance(Counts(passes=p, failures=f)) for (p, f), many in known.items())

    strength = max(_STRENGTHS, key=likely)
    return prior.Prior.from_counts(strength * (1 - mean), strength * mean)


def _every_unknown(*arguments: Any) -> EvidenceThresholds | None:
    found = compute_run_thresholds(*arguments)
    return None if found is None else replace(found, all_failed_threshold=None)


def _count_errors_as_failures(first: Executions, again: Executions, pass_score: float) -> case_history.Responses:
    """Count an agent error as a wrong response, and repeat none."""

    def count(executions: Executions) -> Counts:
        seen = case_history.count_executions(executions, pass_score)
        return Counts(passes=seen.passes, failures=seen.failures + seen.agent_errors)

    return case_history.Responses(count(first), count(again))


def _suspect_no_fix(*facts: Any, **more: Any) -> Suspicion | None:
    found = find_suspicion(*facts, **more)
    return None if found is Suspicion.FIX else found


def _nothing(*_: object, **__: object) -> None:
    return None


def _parts_of_history() -> Iterator[Part]:
    alike = ((comparison_refinement, "learn_day_effects", _all_alike),)
    yield Part("days", "runs never differ as a whole; nor is this one on a day", alike, least=5)
    today = ((comparison_refinement, "adjust_to_day", _unchanged), (verdict_decision, "adjust_to_day", _unchanged))
    yield Part("days.today", "single cases know nothing of the day", today, least=5)
    mishap = ((suite_drop, "compute_chance_at_rate", lambda *_: 0.0),)
    yield Part("days.mishap", "a first mishap is not allowed for", mishap, judged_only=True)
    levels = ((case_history, "count_level_runs", lambda runs: len(runs[: branch_level.MAX_RUNS])),)
    yield Part("levels", "all runs of history count, whatever the branch did as a whole", levels, least=2)
    turned = ((flakiness, "is_level_change", lambda *_: False),)
    yield Part("levels.case", "all runs of a case count, whether it broke or was mended", turned, least=2)
    yield Part("days and levels", "none of both, of the suite and of a case", (*alike, *levels, *turned), least=2)
    unknown = ((case_history, "learn_prior", lambda *_: prior.DEFAULT_PRIOR),)
    yield Part("prior", "every suite is believed to be an unknown one: Beta(9, 1)", unknown)
    one_kind = ((case_history, "learn_prior", _one_kind),)
    yield Part("prior.mixture", "one kind of cases: the Beta distribution that explains the records best", one_kind)
    half = tuple((thresholds, name, getattr(thresholds, name) / 2) for name in ("THRESHOLD_SHARE", "ALL_FAILED_SHARE"))
    strict = "the same, and single cases may spend half as much of the error rate"
    yield Part("prior.mixture, strict", strict, (*one_kind, *half))


def _parts_of_verdict() -> Iterator[Part]:
    no_bars = ((rerun_decision, "compute_run_thresholds", _nothing),)
    yield Part("bars", "N / error rate for every case; of an unsteady one also where it failed every time", no_bars)
    no_every = ((rerun_decision, "compute_run_thresholds", _every_unknown),)
    every = "what failed every time counts where it is steady on record, else it needs the bar"
    yield Part("bars.every", every, no_every)
    shares, share_lines = ((case_history, "learn_run_shares", lambda *_: NO_SHARES),), "run_shares.py"
    yield Part(
        "run share",
        "executions of one run are independent, whatever main's show",
        shares,
        special=True,
        program=share_lines,
    )
    trials = ((RerunCriteria, "trial_share", property(lambda _: 0.0)),)
    yield Part(
        "run share.trials",
        "trials of one run are independent for the suite test",
        trials,
        special=True,
        program=share_lines,
    )
    at_once = ((thresholds, "_lower_never_failed", lambda *_: 0.0),)
    yield Part(
        "run share.another run",
        "a case that never failed and fails all is confirmed",
        at_once,
        special=True,
        program=share_lines,
    )
    settled = ((thresholds, "compute_history_share", lambda _: 1.0),)
    yield Part("bars.short", "single cases with few runs of history may spend as much as with ten", settled)
    uncached = case_history._build_case_runs.__wrapped__  # noqa: SLF001 (what it built with other parts must be forgotten)
    errors = (
        *((where, "count_responses", _count_errors_as_failures) for where in (case_history, reruns)),
        (case_history, "_build_case_runs", uncached),
    )
    yield Part("errors", "an agent error is a wrong answer like any other", errors, special=True)
    whole = ((case_classification, "run_suite_test", _nothing_dropped),)
    yield Part("suite", "all cases together are never worse", whole, judged_only=True)
    steady = ((Stratum, "is_steady", property(lambda _: False)),)
    yield Part("suite.steady", "the suite is asked one question: whether all cases fail more", steady, judged_only=True)
    scores = ((comparison_refinement, "_select_scored_cases", lambda *_: []),)
    both = "scores of all cases together are not looked at; passes have their share"
    yield Part("scores", both, scores, judged_only=True, special=True)
    sparing = ((reruns.Reruns, "_build_suspects", lambda *_: Suspects({}, None)),)
    yield Part("sparing", "every suspect is run again, whatever is known by then", sparing, special=True)
    minimum = ((rerun_decision, "MIN_RERUN_EVIDENCE", 0.0),)
    yield Part("long re-runs", "what passed is re-run while failing from now on would confirm it", minimum)
    fixes = ((case_classification, "find_suspicion", _suspect_no_fix),)
    yield Part("fixes", "a case that the branch failed and that passes is run once", fixes, least=2, special=True)
    fresh = ((reruns, "plan_extra_executions", lambda *_, **__: {}),)
    yield Part("new cases", "a case that no run knows is run once", fresh, special=True)
    yield Part("base agent", "nobody asks the base branch's agent", on_branch=False, special=True)


PARTS: Mapping[str, Part] = MappingProxyType({part.name: part for part in (*_parts_of_history(), *_parts_of_verdict())})
