"""What a step asks GitHub: all at the same time as far as no answer needs another one first, some beside the cases."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress

from eval_gate.action.baseline import Origin, get_baseline
from eval_gate.action.log import Log, NotThereError, SideWork
from eval_gate.action.plan import BaselineKind, Mode
from eval_gate.action.publishing.artifacts import service_of
from eval_gate.action.publishing.store import refuse_second
from eval_gate.action.relay import relayed_result
from eval_gate.action.step import Step
from eval_gate.action.trust.policy import ruled_by
from eval_gate.action.trust.waivers import waivers_from_file, with_comments
from eval_gate.config.settings import CacheMode, RunConfig
from eval_gate.files.certificates import certificates
from eval_gate.gate.judge import GateQuestion
from eval_gate.gate.waivers.file import KnownWaivers
from eval_gate.model.result import RunResult
from eval_gate.results.baseline import NoBaseline
from eval_gate.struct import FrozenStruct, replace

ON_ITS_WAY = NoBaseline("baseline-unavailable", "the baseline is still on its way", unavailable=True)
TOO_LATE = NoBaseline("baseline-unavailable", "the run was ended before the baseline was there", unavailable=True)


class Lookups:
    """The questions, all under way. Each result says what is wrong with it: ask for `second` first, then for `ruled`.

    The baseline may come while cases are asked, where no case needs it (`beside_cases`). It is fetched then, and read
    when the cases are done: reading a large one would stop the clock's hands for them.
    """

    def __init__(self, step: Step, config: RunConfig, variables: Mapping[str, str], log: Log) -> None:
        def second(_: Log) -> None:
            if step.plan.mode is Mode.GATE:
                refuse_second(step)

        self._step, self._log = step, log
        self.beside_cases = _may_come_later(step, config)
        self._due = threading.Event()
        if not self.beside_cases:
            self._due.set()
        self._ended: Future[float] = Future()
        self.ruled = log.begin(lambda own: ruled_by(step, config, variables, own), "the rules that count")
        # which baseline it is, and what is taken from it, no rule says
        self.relayed: SideWork[RunResult] | None = None
        if step.plan.mode is Mode.RELAY:
            self.relayed = log.begin(lambda own: relayed_result(step, own), "the result of that run")
        self._origin = log.begin(
            lambda own: get_baseline(step, config, own, self._due.wait, self.relayed), "the baseline"
        )
        self.waivers = log.begin(
            lambda own: waivers_from_file(step, self.ruled.peek().config, own), "what people have accepted"
        )
        if service_of(step) is not None:
            # takes 60 ms, and longer beside the engine's loading: the first case waits for this answer
            with suppress(OSError):  # whoever needs them says so
                certificates()
        self.second = log.begin(second, "whether another leg has stored its result")

    def origin(self) -> Origin:
        """The baseline. Raises GateError as `get_baseline`."""
        self._due.set()
        try:
            return self._origin.result(self._ended)
        except NotThereError:
            return Origin(TOO_LATE)

    def with_comments(self, waivers: KnownWaivers) -> KnownWaivers:
        """These, with what was accepted in comments; without, where the step is ended before they are read."""
        begun = self._log.begin(lambda own: with_comments(self._step, waivers, own), "acceptances in comments")
        try:
            return begun.result(self._ended)
        except NotThereError:
            return waivers

    def peek(self) -> Origin:
        """The baseline for work that is itself beside: what is said of it is left for whoever asks in order."""
        self._due.set()
        try:
            return self._origin.peek(self._ended)
        except NotThereError:
            return Origin(TOO_LATE)

    def end(self) -> None:
        """The step is ended from outside: what is not there in a moment is not waited for."""
        if not self._ended.done():
            self._ended.set_result(time.monotonic())


class LaterBaseline(FrozenStruct):
    """The gate question of a run whose baseline is fetched while its cases run: a `LaterQuestion` of the session."""

    lookups: Lookups
    without: GateQuestion

    def question(self) -> GateQuestion:
        """With the baseline: waits for it."""
        return replace(self.without, baseline=self.lookups.peek().baseline)

    def end(self) -> None:
        """Nobody waits for it any more."""
        self.lookups.end()


def _may_come_later(step: Step, config: RunConfig) -> bool:
    """Whether cases are asked here that need no baseline, and it is none that somebody named.

    One that was named and is not there ends the step before anything is paid for. Shards are cut by the baseline's
    durations, and recorded answers come with it.
    """
    asks = step.plan.mode is Mode.GATE and not step.settings.results
    by_itself = step.settings.selection.shard is None and config.cache is CacheMode.OFF
    return asks and by_itself and step.plan.baseline.kind is BaselineKind.ARTIFACT
