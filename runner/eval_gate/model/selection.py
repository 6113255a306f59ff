"""Which cases of its suites a run was asked for, as its record keeps it."""

from eval_gate.model.base import Record
from eval_gate.model.case import CaseName


class CaseSelection(Record, kw_only=True):
    """Cases chosen by what they are. A case is chosen by every part together; an empty part chooses all."""

    cases: tuple[str, ...] = ()
    """Globs over whole case ids."""
    tags: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """Eval files, folders and globs, as results name files: all that the call named of what is configured."""
    keys: tuple[CaseName, ...] = ()
    """Single cases, such as those that failed when they were last run."""

    def covers(self, other: "CaseSelection") -> bool:
        """Whether a run of this choice has all cases that the other choice takes; one by name never counts as such."""
        parts = (self.cases, other.cases), (self.tags, other.tags), (self.tiers, other.tiers), (self.paths, other.paths)
        # one of a part is enough to be chosen: so the same ones or more take all of the other's
        return not self.names_single_cases and all(
            not own or (their and set(own).issuperset(their)) for own, their in parts
        )

    @property
    def names_single_cases(self) -> bool:
        """Whether single cases were picked, which is not how a gate is set up."""
        return bool(self.keys)
