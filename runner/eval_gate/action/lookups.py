"""GitHub lookups of a step, run concurrently and partly while the cases run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress

from eval_gate.action.baseline_lookup import BaselineOrigin, get_baseline
from eval_gate.action.own_runs import find_own_runs
from eval_gate.action.publishing.result_artifact import find_artifact_service, refuse_second_leg
from eval_gate.action.relay import load_relayed_result
from eval_gate.action.step import Step
from eval_gate.action.step_log import BackgroundWork, StepEndedError, StepLog
from eval_gate.action.step_plan import BaselineKind, StepMode
from eval_gate.action.trust.trusted_config import load_trusted_config
from eval_gate.action.trust.trusted_waivers import add_comment_waivers, load_file_waivers
from eval_gate.config.settings import RecordingMode, RunConfig
from eval_gate.files.certificates import load_ssl_context
from eval_gate.gate.verdict_decision import GateInputs
from eval_gate.gate.waivers.waiver_file import KnownWaivers
from eval_gate.model.comparison import ReasonCode
from eval_gate.model.result import RunResult
from eval_gate.model.reuse import EvaluatedState
from eval_gate.results.baseline import NoBaseline
from eval_gate.struct import FrozenStruct, replace

BASELINE_PENDING = NoBaseline(ReasonCode.BASELINE_UNAVAILABLE, "the baseline is not read yet", unavailable=True)
BASELINE_TOO_LATE = NoBaseline(
    ReasonCode.BASELINE_UNAVAILABLE, "the run was stopped before the baseline was read", unavailable=True
)


class Lookups:
    """Lookups in progress. Request the result of `second_leg_check` first, then that of `trusted_config`.

    The baseline can arrive while cases run, if no case needs it (`is_deferred`). It is downloaded then, and parsed
    when the cases are done: parsing a large one would distort their measured times.
    """

    def __init__(self, step: Step, config: RunConfig, variables: Mapping[str, str], log: StepLog) -> None:
        self._step, self._log = step, log
        # whether cases here need no baseline; a named one that is missing ends the step before anything is paid for
        asks = step.plan.mode is StepMode.GATE and not step.settings.results
        # shards are cut by the durations in the baseline, and recorded responses come with it
        by_itself = step.settings.selection.shard is None and config.recording is RecordingMode.OFF
        self.is_deferred = asks and by_itself and step.plan.baseline.kind is BaselineKind.ARTIFACT
        self._due = threading.Event()
        if not self.is_deferred:
            self._due.set()
        self._ended: Future[float] = Future()
        start = log.start_work
        self.trusted_config = start(lambda own: load_trusted_config(step, config, variables, own), "the policy")
        # no rule changes the choice of the baseline, so both are looked up at once
        self.relayed: BackgroundWork[RunResult] | None = None
        if step.plan.mode is StepMode.RELAY:
            self.relayed = start(lambda own: load_relayed_result(step, own), "the result of that run")
        self._origin = start(lambda own: get_baseline(step, config, own, self._due.wait, self.relayed), "the baseline")
        self.waivers = start(lambda own: load_file_waivers(step, self.trusted_config.peek().config, own), "the waivers")
        if find_artifact_service(step) is not None:
            # takes 60 ms, and longer while the engine loads: the first case waits for it
            with suppress(OSError):  # the first request reports missing certificates
                load_ssl_context()
        self.second_leg_check = start(lambda _: refuse_second_leg(step), "whether another leg has stored its result")

    def get_origin(self) -> BaselineOrigin:
        """Wait for the baseline and replay the log of its lookup.

        Raises GateError like `get_baseline`. If the step ends before the baseline arrives, the baseline is unavailable.
        """
        return self._wait_for_origin(self._origin.get_result)

    def add_comment_waivers(self, waivers: KnownWaivers) -> KnownWaivers:
        """Return the waivers with those from comments; `waivers` alone if the step ends before comments are read."""
        begun = self._log.start_work(lambda own: add_comment_waivers(self._step, waivers, own), "waivers in comments")
        try:
            return begun.get_result(self._ended)
        except StepEndedError:
            return waivers

    def load_own_runs(self, state: EvaluatedState) -> tuple[RunResult, ...]:
        """Load earlier runs of the pull request that may be reused; none if the step ends before."""
        begun = self._log.start_work(lambda own: find_own_runs(self._step, state, own), "an earlier run")
        try:
            return begun.get_result(self._ended)
        except StepEndedError:
            return ()

    def peek(self) -> BaselineOrigin:
        """Wait for the baseline from other background work; its log stays until `get_origin` asks in order."""
        return self._wait_for_origin(self._origin.peek)

    def _wait_for_origin(self, wait: Callable[[Future[float]], BaselineOrigin]) -> BaselineOrigin:
        self._due.set()
        try:
            return wait(self._ended)
        except StepEndedError:
            return BaselineOrigin(BASELINE_TOO_LATE)

    def stop_waiting(self) -> None:
        """Give up lookups that do not finish within moments, because the step is ended from outside."""
        if not self._ended.done():
            self._ended.set_result(time.monotonic())


class DeferredBaseline(FrozenStruct):
    """Gate inputs of a run whose baseline is fetched while its cases run."""

    lookups: Lookups
    initial_inputs: GateInputs

    def wait_for_inputs(self) -> GateInputs:
        """Wait for the baseline, and return the gate inputs with it."""
        return replace(self.initial_inputs, baseline=self.lookups.peek().baseline)

    def stop_waiting(self) -> None:
        """End the wait for the baseline."""
        self.lookups.stop_waiting()
