"""Looks at runs that are to be made one after the other, so that the last one's mistakes are said before the first."""

from __future__ import annotations

from collections.abc import Iterable

from eval_gate.engine.preparing.assign import assign
from eval_gate.engine.preparing.prepare import read_inputs
from eval_gate.session.session import Session
from eval_gate.targets.build import BuildContext
from eval_gate.targets.lookup import TargetBook
from eval_gate.targets.model.recording import Recording


async def check_each(sessions: Iterable[Session]) -> None:
    """Raise GateError for what is wrong with the files or with any of the targets. Nobody is asked anything."""
    for session in sessions:
        config, context = session.config, session.context
        inputs = await read_inputs(config, session.selection, context, offline=True)
        shared = BuildContext(context.environment, context.root, recording=Recording(config.cache))
        assign(inputs.suites, TargetBook(config.target, shared), config)
