"""Executions of conversations never share a session: on an agent that reports each mixture."""

import asyncio
import random
from collections import defaultdict

from eval_gate.config.settings import RunLimits
from eval_gate.engine.run import Run
from eval_gate.model.case import CaseKey
from eval_gate.model.conversation import Response
from eval_gate.model.execution import Status
from eval_gate.model.result import RerunStopReason
from eval_gate.targets.base import Request, RetryPolicy
from tests.support.cases import EVAL_FILE, Watching, make_plan, make_suite
from tests.support.talks import AWAY, SessionTarget, copy_error, make_talk, make_turn

CASES, TRIALS, RERUNS, AT_ONCE = 180, 5, 5, 50
BROKEN = 20
"""Cases that fail, and are run again."""


class Witness(SessionTarget):
    """An agent that remembers each session, and says what is wrong in it: of another case, execution or order.

    Of its requests, one in thirty meets a 503 after it was taken in, and one in thirty before.
    """

    retry_policy = RetryPolicy(max_retries=20, initial_delay_ms=0)

    def __init__(self) -> None:
        super().__init__()
        self._random = random.Random(61)
        self._full = asyncio.Event()
        """Set when as many executions as allowed were in progress; the first ones wait for it."""
        self.executions: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
        self.owners: dict[str, tuple[str, int]] = {}
        self.mixtures: list[str] = []

    async def _meet(self, request: Request) -> Response:
        if self.in_flight == AT_ONCE:
            self._full.set()
        await self._full.wait()
        if self._random.random() < 1 / 30:
            raise copy_error(AWAY)
        own, session = (request.case_id, request.trial), request.session
        if self.owners.setdefault(session, own) != own:
            self.mixtures.append(f"{own} in the session of {self.owners[session]}")
        self.executions[own].add(session)
        turns = self.taken_in[session]
        turns.append(request.turn)
        if turns != list(range(1, len(turns) + 1)):
            self.mixtures.append(f"{own}: turns {turns} in one session")
        if any(request.case_id not in str(one.content) for one in request.messages):
            self.mixtures.append(f"{own}: messages of another case")
        for _ in range(self._random.randrange(4)):
            await asyncio.sleep(0)
        if self._random.random() < 1 / 30:
            raise copy_error(AWAY)
        is_broken = int(request.case_id.removeprefix("c")[:3]) < BROKEN and request.turn == 2
        return Response(text=f"{'no' if is_broken else 'ok'} {request.case_id}")


class Again:
    """Re-runs each broken case `RERUNS` times."""

    rerun_wait = 0
    new_cases: frozenset[CaseKey] = frozenset()

    def get_interval_s(self, key) -> float:
        return 0.0

    def find_rerun_candidates(self, result):
        return [key for key, case in result.iter_cases() if case.status is Status.FAILED]

    def select_next(self, waiting):
        return waiting

    def should_rerun(self, key, reruns) -> bool:
        return len(reruns) < RERUNS

    def get_rerun_end(self, key, reruns) -> RerunStopReason:
        return RerunStopReason.DECIDED


def test_run__thousand_executions_at_once_with_re_runs_and_faults__never_share_a_session(tmp_path) -> None:
    names = [f"c{number:03}." for number in range(CASES)]
    talks = [make_talk(name, *[make_turn(f"{name} turn {turn}") for turn in (1, 2, 3)]) for name in names]
    target = Witness()
    plan = make_plan(make_suite(*talks), target=target, concurrency=AT_ONCE, limits=RunLimits(trials=TRIALS))
    result = asyncio.run(Run(plan.with_rerun_policy(Again(), RERUNS), tmp_path, Watching()).execute())
    assert target.mixtures == []
    assert len(target.executions) == CASES * TRIALS + BROKEN * RERUNS == 1_000
    assert target.most_in_flight == AT_ONCE
    sessions = [session for one in target.executions.values() for session in one]
    assert len(sessions) == len(set(sessions)) > 1_000
    trials = [trial for _, case in result.iter_cases() for trial in case.trials]
    assert len(trials) == 1_000
    assert {trial.failed_turn for trial in trials if trial.status is Status.FAILED} == {2}
    assert {key for key, case in result.iter_cases() if case.status is Status.FAILED} == {
        CaseKey(EVAL_FILE, name) for name in names[:BROKEN]
    }
