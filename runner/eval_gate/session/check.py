"""Looks at runs that are to be made one after the other, so that the last one's mistakes are said before the first."""

from __future__ import annotations

from collections.abc import Iterable

from eval_gate.engine.preparing.assign import assign
from eval_gate.engine.preparing.prepare import read_inputs
from eval_gate.session.session import Session
from eval_gate.targets.book import TargetBook
from eval_gate.targets.build import Surroundings
from eval_gate.targets.model.recording import Mode, Recording


async def check_each(sessions: Iterable[Session]) -> None:
    """Raise GateError for what is wrong with the files or with any of the targets. Nobody is asked anything."""
    for session in sessions:
        config, root = session.config, session.around.root
        inputs = await read_inputs(
            config, session.selection, root, environment=session.around.environment, offline=True
        )
        around = Surroundings(session.around.environment, root, recording=Recording(Mode(config.cache.value)))
        book = TargetBook(config.target, around)
        assign(inputs.suites, book, judge=config.judge, rubric=config.rubric, timeout_s=config.limits.timeout_ms / 1000)
