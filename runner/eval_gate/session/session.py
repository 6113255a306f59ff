"""One use of the gate as data: what is run, with what, what the result is judged by, and what is written."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from eval_gate.config.selection import Selection
from eval_gate.config.settings import RunConfig
from eval_gate.engine.preparing.context import RunContext
from eval_gate.gate.judge import GateQuestion
from eval_gate.gate.judge_comparisons import Comparisons, read_comparisons
from eval_gate.gate.waivers.file import known_waivers
from eval_gate.results.baseline import NOT_ASKED_FOR, Baseline, NoBaseline
from eval_gate.results.names import LATEST
from eval_gate.results.read import find_baseline
from eval_gate.struct import FrozenStruct


class LaterQuestion(Protocol):
    """A question that is still on its way: what the run is compared with comes while it is made."""

    def question(self) -> GateQuestion:
        """The whole of it: waits, so not for an event loop."""
        ...

    def end(self) -> None:
        """The run is ended from outside: what is not there in a moment is not waited for."""
        ...


class Session(FrozenStruct):
    """A run that is about to be made. Whoever has one has read and checked everything but eval files and targets."""

    config: RunConfig
    selection: Selection
    context: RunContext
    question: GateQuestion
    later_question: LaterQuestion | None = None
    """Where the question's baseline is not there yet; nothing is judged by `question` before it is."""

    @property
    def folder(self) -> Path:
        """Where results go."""
        return Path(self.config.output_dir)

    @property
    def most_reruns(self) -> int:
        """The most re-runs of one case: by default none where nobody named a baseline."""
        policy = self.config.policy
        return 0 if policy.confirm is None and self.question.baseline is NOT_ASKED_FOR else policy.most_reruns


def open_session(
    config: RunConfig, selection: Selection, context: RunContext, baseline: Baseline | NoBaseline | None = None
) -> Session:
    """What the configuration says: its rules, baseline and accepted failures.

    `baseline` is what the run is compared with where that is not simply what the configuration names.
    Raises GateError for whatever is wrong with them, before anybody is asked anything.
    """
    if baseline is None:
        folder = Path(config.output_dir)
        baseline = find_baseline(
            config.baseline,
            folder,
            config.history,
            besides=context.resume,
            chosen=selection.chosen_cases,
            target=_asked_target(config, context),
        )
    question = question_of(config, context.root, baseline)
    return Session(config, selection, context, question)


def _asked_target(config: RunConfig, context: RunContext) -> str | None:
    """The name of the target that all cases are asked of; None where the eval files say whom. Raises GateError."""
    if context.answerer is not None:
        return context.answerer.identity.name
    if config.baseline != LATEST or not config.target.said:
        return None
    from eval_gate.targets.build import described_by_flags  # 100 ms that only a run needs

    described = described_by_flags(config.target)
    return described.settings.name if described else config.target.name


def question_of(config: RunConfig, root: Path, baseline: Baseline | NoBaseline) -> GateQuestion:
    """What a run is judged by: the configuration's rules, and what files below `root` say of failures and judges.

    Raises GateError for whatever is wrong with these files.
    """
    waivers = known_waivers(config, root, datetime.now(UTC).date())
    comparisons = Comparisons(read_comparisons(root))
    return GateQuestion(
        baseline,
        config.policy,
        waivers=waivers,
        keeping=config.keeping,
        comparisons=lambda: comparisons,
    )
