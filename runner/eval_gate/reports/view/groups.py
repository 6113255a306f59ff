"""Groups of cases and suites: failures by cause, errors by kind, stale suites by tool."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, Generic, TypeVar

from eval_gate.gate.failure_causes import get_group_key, mask_numbers
from eval_gate.model.execution import ErrorKind, Status
from eval_gate.model.result import StaleFact, SuiteResult
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.wording.case_errors import (
    ERROR_KIND_ORDER,
    TITLES,
    TITLES_FOR_MANY,
    describe_error_regressions,
    explain_errors,
    format_error_count,
)
from eval_gate.struct import FrozenStruct

MAX_EXAMPLES: Final = 2
"""Cases that stand for a cause."""
MAX_VALUES: Final = 3
"""Different things that failures of one check say, of which the most frequent are shown."""

CaseT = TypeVar("CaseT")


class CauseValue(FrozenStruct):
    """Failure text within a cause, and how many failures have it."""

    text: str
    count: int


class Cause(FrozenStruct, Generic[CaseT]):
    """Cause that several failures share, with their cases."""

    text: str
    """The check alone where its failures say different things; else what they say."""
    cases: tuple[CaseT, ...]
    examples: tuple[CaseT, ...]
    """Cases that stand for the others: the first of those that say the most frequent thing."""
    values: tuple[CauseValue, ...] = ()
    """What they say, the most frequent first, where it is not the same; `rest` more are not among them."""
    rest: int = 0

    @property
    def count(self) -> int:
        """Number of its cases."""
        return len(self.cases)

    @property
    def names_all(self) -> bool:
        """Whether the examples are all cases of this cause."""
        return self.count <= len(self.examples)


def group_causes(failures: Iterable[tuple[CaseT, str | None]]) -> tuple[Cause[CaseT], ...]:
    """Group (case, failure) pairs by cause, the most frequent first.

    A list of a hundred names is often one broken tool. Failures with the same check belong together. A cause whose
    failures are identical keeps their exact text; otherwise the numbers that differ are masked.
    """
    groups: dict[str, list[tuple[CaseT, str]]] = defaultdict(list)
    for case, what in failures:
        said = what or "no reason given"
        groups[get_group_key(said)].append((case, said))
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return tuple(_build_cause(common, members) for common, members in ordered)


def _build_cause(common: str, members: Sequence[tuple[CaseT, str]]) -> Cause[CaseT]:
    """Build a cause from its failures, with examples of the most frequent one."""
    kinds: dict[str, list[tuple[CaseT, str]]] = defaultdict(list)
    for case, said in members:
        kinds[mask_numbers(said)].append((case, said))
    cases, ordered = tuple(case for case, _ in members), sorted(kinds.items(), key=lambda kind: -len(kind[1]))
    often = ordered[0][1]
    examples = tuple(case for case, _ in often[:MAX_EXAMPLES])
    if len(ordered) == 1:
        return Cause(_choose_text(*ordered[0]), cases, examples)
    values = [
        CauseValue(_choose_text(kind, alike).removeprefix(f"{common}: "), len(alike))
        for kind, alike in ordered[:MAX_VALUES]
    ]
    return Cause(common, cases, examples, tuple(values), max(len(ordered) - MAX_VALUES, 0))


def _choose_text(common: str, members: Sequence[tuple[CaseT, str]]) -> str:
    return members[0][1] if len({said for _, said in members}) == 1 else common


class ErrorGroup(FrozenStruct):
    """Cases without a score of the same error kind."""

    headline: str
    """`2 agent errors`."""
    explanation: str
    """What that is, to be read after a colon."""
    title: str
    """One of them: `Agent error`."""
    rows: tuple[CaseRow, ...]
    title_for_many: str
    """All of them: `Agent errors`."""
    causes: tuple[Cause[CaseRow], ...]
    """What they have in common, the most frequent first."""


def group_errors(rows: Sequence[CaseRow], regressions: Sequence[CaseRow]) -> tuple[ErrorGroup, ...]:
    """Group cases without a score by error kind; errors that the change may have caused come first.

    The explanation also counts the `regressions` with an error of the same kind, which are not among `rows`.
    """
    groups = (
        (error_kind, tuple(row for row in rows if row.error_kind is error_kind)) for error_kind in ERROR_KIND_ORDER
    )
    return tuple(_build_error_group(error_kind, found, regressions) for error_kind, found in groups if found)


def _build_error_group(
    error_kind: ErrorKind | None, rows: tuple[CaseRow, ...], regressions: Sequence[CaseRow]
) -> ErrorGroup:
    more = sum(row.status is Status.ERROR and row.error_kind is error_kind for row in regressions)
    return ErrorGroup(
        format_error_count(error_kind, len(rows)),
        explain_errors(error_kind, (row.case for row in rows)) + describe_error_regressions(error_kind, more),
        TITLES[error_kind],
        rows,
        TITLES_FOR_MANY[error_kind],
        group_causes((row, row.cause) for row in rows),
    )


class StaleSuites(FrozenStruct):
    """Stale suites of one tool that share the same reasons."""

    tool: str
    tiers: tuple[str, ...]
    facts: tuple[StaleFact, ...]
    warnings: tuple[str, ...]
    """The contract's own sentences."""


def group_stale_suites(suites: Iterable[SuiteResult]) -> tuple[StaleSuites, ...]:
    """Group stale suites by tool and by why they are stale, in order of appearance.

    A tool whose golden and labeled evals are stale for the same reason gets one line.
    """
    groups: dict[tuple[str, tuple[StaleFact, ...]], list[SuiteResult]] = defaultdict(list)
    for suite in suites:
        if suite.stale:
            groups[suite.tool_name, suite.stale_facts].append(suite)
    return tuple(
        StaleSuites(
            tool=tool,
            tiers=tuple(suite.tier.value for suite in members if suite.tier),
            facts=facts,
            warnings=members[0].staleness_warnings,
        )
        for (tool, facts), members in groups.items()
    )
