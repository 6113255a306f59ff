"""Everything that people have said about failures of a run, from wherever it came."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from eval_gate.gate.waivers.file import DEFAULT_PATH, read_waivers
from eval_gate.model.waiver import RefusedCommand, Waiver
from eval_gate.struct import FrozenStruct, replace

if TYPE_CHECKING:
    from eval_gate.config.settings import RunConfig


class KnownWaivers(FrozenStruct):
    """The waivers that people have given, and on which day they are looked at (UTC).

    `trusted` is False where the file comes from a fork, or only the base branch's rules count: entries that it does not
    have do not count then.
    `refusals` are commands in comments that were not followed, `troubles` sentences about what could not be asked.
    """

    today: date
    waivers: Sequence[Waiver] = ()
    trusted: bool = True
    refusals: tuple[RefusedCommand, ...] = ()
    troubles: tuple[str, ...] = ()

    @property
    def anything(self) -> bool:
        """Whether there is anything to look at."""
        return bool(self.waivers or self.refusals or self.troubles)

    def with_more(self, found: KnownWaivers) -> KnownWaivers:
        """The same with what was found elsewhere; whether the file is trusted stays as it is."""
        return replace(
            self,
            waivers=(*self.waivers, *found.waivers),
            refusals=(*self.refusals, *found.refusals),
            troubles=(*self.troubles, *found.troubles),
        )


def known_waivers(config: RunConfig, root: Path, today: date) -> KnownWaivers:
    """What the file that the configuration names says, or the usual one where it exists. Raises GateError."""
    named = config.policy.accepted
    file = root / (named or DEFAULT_PATH)
    if named is None and not file.exists():
        return KnownWaivers(today)
    return KnownWaivers(today, read_waivers(file, today, shown_as=named or DEFAULT_PATH))
