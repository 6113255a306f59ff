"""Selections of cases: those of a run, as stored in the run result, and those that the base agent runs next."""

from collections.abc import Sequence

from eval_gate.model.base import Record
from eval_gate.model.case import CaseKey, CaseName
from eval_gate.struct import FrozenStruct


class BaseAgentCases(FrozenStruct):
    """Cases that the base agent runs next, once each, or why it cannot be used."""

    keys: Sequence[CaseKey] = ()
    rounds: int = 1
    """Rounds that are needed for a decision, this one included."""
    trouble: str | None = None
    """Why required cases do not run, as a sentence."""


class CaseSelection(Record, kw_only=True):
    """Criteria that select cases. A case must match all of them; an empty one matches every case."""

    cases: tuple[str, ...] = ()
    """Globs that match a whole case id."""
    tags: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """Eval files, folders and globs, as results name files: all that the call named of the configured ones."""
    keys: tuple[CaseName, ...] = ()
    """Individual cases, such as those that failed in the last run."""

    def covers(self, other: "CaseSelection") -> bool:
        """Whether a run with this selection has all cases of the other; a selection of individual cases never does."""
        parts = (self.cases, other.cases), (self.tags, other.tags), (self.tiers, other.tiers), (self.paths, other.paths)
        # one of a part is enough to be chosen: so the same ones or more take all of the other's
        return not self.names_single_cases and all(
            not own or (their and set(own).issuperset(their)) for own, their in parts
        )

    @property
    def names_single_cases(self) -> bool:
        """Whether individual cases are selected, as in a manual run."""
        return bool(self.keys)
