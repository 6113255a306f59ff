"""Reuses results of earlier runs for suites whose measured files and setup are the same, instead of executing them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from eval_gate.config.settings import RecordingMode
from eval_gate.engine.run_plan import RunPlan
from eval_gate.gate.evidence.case_history import find_comparable_runs
from eval_gate.gate.reuse_decision import EarlierRun, collect_reused, decide_reuse
from eval_gate.model.model_recording import CallMode
from eval_gate.model.reuse import ReuseOff, ReuseSource
from eval_gate.results.baseline import Baseline
from eval_gate.session.session import ReuseSources, Session
from eval_gate.struct import replace

_Loaded = TypeVar("_Loaded")


def allow_reuse(session: Session) -> Session:
    """Let a session reuse results of its baseline, if its configuration says so."""
    return replace(session, reuse=ReuseSources()) if session.config.reuse else session


async def apply_reuse(session: Session, plan: RunPlan) -> RunPlan:
    """Return the plan without the suites whose results are reused, and with the decision about every suite.

    This waits for a baseline that is not available yet, but only if a suite has a digest.
    """
    sources, state = session.reuse, plan.evaluated_state
    if sources is None or state is None:
        return plan
    off, earlier = _find_off(session, sources, plan), list[EarlierRun]()
    measured = sum(suite.digest is not None for suite in state.suites)
    if measured and off is None:
        pending = session.pending_gate_inputs
        inputs = await _wait_for(pending.wait_for_inputs, session) if pending is not None else session.gate_inputs
        if isinstance(inputs.baseline, Baseline) and _may_reuse(inputs.baseline, plan):
            rounds = session.config.warm_up or 0 if session.is_run_of_branch else 0
            # warm-up rounds are executions of every suite
            is_short = len(find_comparable_runs(inputs.baseline.own_history)) < rounds
            off = ReuseOff.WARM_UP if is_short else None
            earlier.append(EarlierRun(inputs.baseline.result, ReuseSource.BASELINE))
    is_run_of_branch, decided_at = session.is_run_of_branch, datetime.now(UTC)
    decide = partial(decide_reuse, state, earlier, off=off, is_run_of_branch=is_run_of_branch, decided_at=decided_at)
    summary = decide()
    if off is None and len(summary.reused_suites) < measured and sources.load_own_runs is not None:
        own_runs = await _wait_for(partial(sources.load_own_runs, state), session)
        earlier += [EarlierRun(one, ReuseSource.OWN_RUN) for one in own_runs]
        summary = decide()
    return plan.with_reused(collect_reused(summary, earlier), summary)


def _may_reuse(baseline: Baseline, plan: RunPlan) -> bool:
    """Whether this gate made the baseline, and no commit: the change that is evaluated could have written it."""
    folder, files = baseline.folder, plan.program_files
    places = () if folder is None else (str(folder.absolute()), str(folder.resolve()))
    is_committed = files is not None and any(map(files.repository.tracks, places))
    return baseline.other_gate is None and not is_committed


def _find_off(session: Session, sources: ReuseSources, plan: RunPlan) -> ReuseOff | None:
    """Find out why a session reuses nothing, before its baseline is known."""
    records_calls = plan.model_proxy is not None and plan.model_proxy.recording.mode is not CallMode.REPLAY
    reasons = {
        ReuseOff.SELECTED_CASES: bool(session.selection.chosen_cases or session.selection.shard),
        ReuseOff.RESUMED: session.context.resume is not None,
        ReuseOff.RECORDING: session.config.recording is not RecordingMode.OFF or records_calls,
    }
    return sources.off or next((one for one, applies in reasons.items() if applies), None)


async def _wait_for(load: Callable[[], _Loaded], session: Session) -> _Loaded:
    """Load something in a thread, which would keep a cancelled process from ending unless it stops waiting."""
    try:
        return await asyncio.to_thread(load)
    except asyncio.CancelledError:
        if session.pending_gate_inputs is not None:
            session.pending_gate_inputs.stop_waiting()
        raise
