"""Which cases of the suites are run: what a call chooses, and no configuration says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from eval_gate.errors import GateError
from eval_gate.struct import FrozenStruct

if TYPE_CHECKING:
    from eval_gate.model.case import CaseKey
    from eval_gate.model.result import RunResult, Shard


class Selection(FrozenStruct):
    """Which cases of the suites are run; empty means all. Globs match case ids."""

    cases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ()
    shard: Shard | None = None
    """One part of what is left; all parts together hold each case once."""
    before: RunResult | None = None
    """The run by whose durations parts are made that take equally long; None makes them equally large."""
    files: frozenset[str] | None = None
    """Only cases of these eval files, as results name them; None for all."""
    keys: frozenset[CaseKey] | None = None
    """Only these cases; None for all."""

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return not (self.chosen or self.shard)

    @property
    def chosen(self) -> bool:
        """Whether cases are chosen by what they are; a shard only divides."""
        return bool(self.cases or self.tags or self.tiers) or (self.files, self.keys) != (None, None)


def parse_shard(text: str | None) -> Shard | None:
    """`2/4` is the second of four parts. Raises GateError `unknown-value`."""
    from eval_gate.model.result import Shard

    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text.strip())
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise GateError("unknown-value", f'shard: "{text[:40]}" is not a part such as 2/4', "I/N with I from 1 to N")
    return Shard(index=int(match[1]), count=int(match[2]))
