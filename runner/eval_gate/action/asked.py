"""What a step asks GitHub before its first case: all at the same time, as far as no answer needs another one first."""

from __future__ import annotations

from collections.abc import Mapping

from eval_gate.action.baseline import get_baseline
from eval_gate.action.log import Log
from eval_gate.action.plan import Mode
from eval_gate.action.publishing.store import refuse_second
from eval_gate.action.pushes import earlier_pushes
from eval_gate.action.step import Step
from eval_gate.action.trust.policy import ruled_by
from eval_gate.action.trust.waivers import waivers_from_file
from eval_gate.config.settings import RunConfig


class Asked:
    """The questions, all under way. Each result says what is wrong with it: take them in the order they stand in."""

    def __init__(self, step: Step, config: RunConfig, variables: Mapping[str, str], log: Log) -> None:
        def second(_: Log) -> None:
            if step.plan.mode is Mode.GATE:
                refuse_second(step)

        self.second = log.begin(second, "whether another leg has stored its result")
        self.ruled = log.begin(lambda own: ruled_by(step, config, variables, own), "the rules that count")
        # which baseline it is, and what is taken from it, no rule says
        self.origin = log.begin(lambda own: get_baseline(step, config, own), "the baseline")
        self.pushes = log.begin(lambda own: earlier_pushes(step, self.ruled.peek().config, own), "earlier pushes")
        self.waivers = log.begin(
            lambda own: waivers_from_file(step, self.ruled.peek().config, own), "what people have accepted"
        )
