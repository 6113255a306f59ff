"""Selection of cases: the filters and the shard of one call. Not part of the configuration file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from eval_gate.errors import GateError
from eval_gate.struct import FrozenStruct
from eval_gate.text.quoting import quote_value

if TYPE_CHECKING:
    from collections.abc import Collection

    from eval_gate.model.case import CaseKey
    from eval_gate.model.result import RunResult, Shard
    from eval_gate.model.selection import CaseSelection


class Selection(FrozenStruct):
    """Filters that choose the cases of a run; empty means all cases. Globs match case ids."""

    cases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ()
    shard: Shard | None = None
    """One part of what is left; all parts together hold each case once."""
    timing_run: RunResult | None = None
    """The run by whose durations parts are made that take equally long; None makes them equally large."""
    paths: tuple[str, ...] = ()
    """The eval files, folders and globs, as results name files, where a call names some of what is configured."""
    keys: frozenset[CaseKey] | None = None
    """Only these cases; None for all."""

    @property
    def has_filters(self) -> bool:
        """Whether cases are chosen by what they are; a shard only divides."""
        return bool(self.cases or self.tags or self.tiers or self.paths) or self.keys is not None

    @property
    def chosen_cases(self) -> tuple[CaseSelection, ...]:
        """What a run record keeps of the choice; empty where no case is left out by what it is."""
        from eval_gate.model.case import CaseName
        from eval_gate.model.selection import CaseSelection

        if not self.has_filters:
            return ()
        keys = tuple(CaseName(**key._asdict()) for key in sorted(self.keys or ()))
        return (CaseSelection(cases=self.cases, tags=self.tags, tiers=self.tiers, paths=self.paths, keys=keys),)

    @classmethod
    def from_chosen_cases(cls, chosen: CaseSelection) -> Selection:
        """Build the selection from the chosen cases that a run result stores."""
        keys = frozenset(one.key for one in chosen.keys)
        return cls(chosen.cases, chosen.tags, chosen.tiers, paths=chosen.paths, keys=keys or None)

    def includes_case(self, key: CaseKey, tags: Collection[str], tier: str | None) -> bool:
        """Whether a case is chosen: by its eval file, its id, its tags, and the tier of its suite."""
        from eval_gate.text import globs

        if self.tiers and tier not in self.tiers:
            return False
        if self.paths and not any(globs.covers_file(path, key.suite) for path in self.paths):
            return False
        if self.keys is not None and key not in self.keys:
            return False
        if self.cases and not any(globs.matches_glob(pattern, key.case_id) for pattern in self.cases):
            return False
        return not self.tags or not set(tags).isdisjoint(self.tags)


def parse_shard(text: str | None) -> Shard | None:
    """`2/4` is the second of four parts. Raises GateError `unknown-value`."""
    from eval_gate.model.result import Shard

    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text.strip())
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise GateError(
            "unknown-value", f"{quote_value(text)} is not a part such as 2/4", "write --shard I/N, with I from 1 to N"
        )
    return Shard(index=int(match[1]), count=int(match[2]))
