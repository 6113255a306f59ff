"""What a step asks GitHub: all at the same time as far as no answer needs another one first, some beside the cases.

What earlier pushes of a pull request saw is sought in its own runs' artifacts, and never in a fork's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress

from eval_gate.action.baseline import Origin, get_baseline
from eval_gate.action.log import Log, NotThereError, SideWork
from eval_gate.action.plan import BaselineKind, Mode, Plan
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
from eval_gate.github.artifacts.pushes import WatchedChange, remembered
from eval_gate.github.failure import GitHubError
from eval_gate.model.result import RunResult
from eval_gate.reports.words.numbers import count
from eval_gate.results.baseline import NoBaseline
from eval_gate.results.pushes import Pushes
from eval_gate.struct import FrozenStruct, replace

ON_ITS_WAY = NoBaseline("baseline-unavailable", "the baseline is still on its way", unavailable=True)
TOO_LATE = NoBaseline("baseline-unavailable", "the run was ended before the baseline was there", unavailable=True)


class Lookups:
    """The questions, all under way. Each result says what is wrong with it: ask for `second` first, then for `ruled`.

    Baseline and earlier pushes may come while cases are asked, where no case needs them (`beside_cases`). They are
    fetched then, and the baseline is read when the cases are done: reading a large one would stop the clock's hands
    for them.
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
        self._pushes = log.begin(lambda own: earlier_pushes(step, self.ruled.peek().config, own), "earlier pushes")
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

    def pushes(self) -> Pushes | None:
        """The earlier pushes of this pull request."""
        try:
            return self._pushes.result(self._ended)
        except NotThereError:
            return None

    def with_comments(self, waivers: KnownWaivers) -> KnownWaivers:
        """These, with what was accepted in comments; without, where the step is ended before they are read."""
        begun = self._log.begin(lambda own: with_comments(self._step, waivers, own), "acceptances in comments")
        try:
            return begun.result(self._ended)
        except NotThereError:
            return waivers

    def peek(self) -> tuple[Origin, Pushes | None]:
        """Both, for work that is itself beside: what is said of them is left for whoever asks in order."""
        self._due.set()
        try:
            return self._origin.peek(self._ended), self._pushes.peek(self._ended)
        except NotThereError:
            return Origin(TOO_LATE), None

    def end(self) -> None:
        """The step is ended from outside: what is not there in a moment is not waited for."""
        if not self._ended.done():
            self._ended.set_result(time.monotonic())


class LaterBaseline(FrozenStruct):
    """The gate question of a run whose baseline is fetched while its cases run: a `LaterQuestion` of the session."""

    lookups: Lookups
    without: GateQuestion

    def question(self) -> GateQuestion:
        """With baseline and earlier pushes: waits for them."""
        origin, pushes = self.lookups.peek()
        return replace(self.without, baseline=origin.baseline, pushes=pushes)

    def end(self) -> None:
        """Nobody waits for them any more."""
        self.lookups.end()


def _may_come_later(step: Step, config: RunConfig) -> bool:
    """Whether cases are asked here that need no baseline, and it is none that somebody named.

    One that was named and is not there ends the step before anything is paid for. Shards are cut by the baseline's
    durations, and recorded answers come with it.
    """
    asks = step.plan.mode is Mode.GATE and not step.settings.results
    by_itself = step.settings.selection.shard is None and config.cache is CacheMode.OFF
    return asks and by_itself and step.plan.baseline.kind is BaselineKind.ARTIFACT


def earlier_pushes(step: Step, config: RunConfig, log: Log) -> Pushes | None:
    """The pushes before this one, perhaps none; None where this is no pull request that may remember any.

    What cannot be had is said and costs nothing: the run is judged by itself, as it would be without.
    """
    plan, environment = step.plan, step.environment
    if not (step.settings.remember_pushes and config.policy.confirm and _remembers(plan)):
        return None
    assert plan.pull_number is not None
    change = WatchedChange(
        plan.pull_number,
        plan.head_branch or "",
        environment.event_name,
        environment.workflow_path,
        step.artifact_names,
        step.key,
        environment.run_id,
    )
    if not change.workflow:
        return Pushes(pull_request=change.number, gate=change.gate)
    try:
        found = remembered(step.client, change, environment.temporary)
    except GitHubError as error:
        log.missed(f"what earlier pushes of this pull request saw is not known: {error}")
        return Pushes(pull_request=change.number, gate=change.gate)
    for note in found.notes:
        log.missed(f"what an earlier push of this pull request saw is not known: {note}")
    if found.run_id is not None:
        pushes = count(len(found.pushes.ledger.runs), "earlier push", "earlier pushes")
        log.did(f"{pushes} of this pull request may count too, by run {found.run_id}")
    return found.pushes


def _remembers(plan: Plan) -> bool:
    """Whether it is an open pull request of a branch of this repository, and is compared with anything."""
    of_a_branch = plan.pull_number is not None and plan.head_branch is not None and not plan.from_fork
    return plan.mode is Mode.GATE and of_a_branch and plan.baseline.kind is not BaselineKind.NONE
