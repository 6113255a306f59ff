"""All cases of a file in one call, for targets that take batches (agentv spec, "Provider-level batching flag")."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence

from eval_gate.config.settings import RunLimits
from eval_gate.engine.journal import TrialKey
from eval_gate.engine.trials import TrialJob, request_of
from eval_gate.model.case import CaseKey
from eval_gate.model.conversation import Response
from eval_gate.struct import Struct, field
from eval_gate.targets.base import BatchTarget, TargetError, TargetFault


class BatchAnswers(Struct):
    """What the calls brought. A job without an answer here is asked by itself; `notices` say why."""

    answers: dict[TrialKey, Response] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)


async def ask_batches(
    target: BatchTarget, jobs: Sequence[TrialJob], limits: RunLimits, stop: asyncio.Event
) -> BatchAnswers:
    """One call for each eval file and trial. A call that breaks is a notice, since asking again costs as much again."""
    groups: dict[tuple[str, int], list[TrialJob]] = defaultdict(list)
    for job in jobs:
        groups[job.case.suite, job.trial].append(job)
    found = BatchAnswers()
    for (suite, trial), group in groups.items():
        if stop.is_set():
            break
        try:
            answers = await _until_stopped(target, group, limits, stop)
        except TargetError as error:
            found.notices.append(
                f"the batch of {len(group)} cases of {suite} broke, and each was asked by itself: {error.message}"
            )
            continue
        found.answers |= {(CaseKey(suite, case_id), trial): answer for case_id, answer in answers.items()}
    return found


async def _until_stopped(
    target: BatchTarget, group: Sequence[TrialJob], limits: RunLimits, stop: asyncio.Event
) -> Mapping[str, Response]:
    """The answers; none when the run is stopped before they are there. Raises TargetError."""
    asking = asyncio.ensure_future(_ask(target, group, limits))
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({asking, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return asking.result() if asking.done() else {}
    finally:
        for task in (asking, stopping):
            task.cancel()
        await asyncio.gather(asking, stopping, return_exceptions=True)


async def _ask(target: BatchTarget, group: Sequence[TrialJob], limits: RunLimits) -> Mapping[str, Response]:
    limit_s = None if target.timeout_ms is not None else limits.timeout_ms * len(group) / 1000
    requests = [request_of(job) for job in group]
    try:
        async with asyncio.timeout(limit_s):
            return await target.respond_batch(requests)
    except TimeoutError as error:
        raise TargetError(f"no answer within {limit_s:g} s", fault=TargetFault.LATE) from error
