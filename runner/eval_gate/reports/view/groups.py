"""Groups of cases and suites: failures by cause, errors by kind, stale suites by tool."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, Generic, TypeVar

from eval_gate.gate.failure_causes import drop_error_prefix, find_check_name, get_group_key
from eval_gate.model.execution import ErrorKind, Status
from eval_gate.model.result import StaleFact, SuiteResult
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.wording.case_errors import (
    ERROR_KIND_ORDER,
    TITLES,
    describe_error_regressions,
    explain_errors,
    format_error_count,
)
from eval_gate.struct import FrozenStruct

MAX_EXAMPLES: Final = 2
"""Examples of a cause."""
NO_REASON: Final = "no reason given"
MAX_VALUES: Final = 3
"""Different failure texts of a cause that are shown, the most frequent first."""

CaseT = TypeVar("CaseT")


class CauseValue(FrozenStruct):
    """Failure text within a cause, and how many failures have it."""

    text: str
    count: int


class Cause(FrozenStruct, Generic[CaseT]):
    """Cause that several failures share, with their cases."""

    text: str
    """The check alone if its failures have different texts; else their text."""
    cases: tuple[CaseT, ...]
    examples: tuple[CaseT, ...]
    """The first cases with the most frequent failure text."""
    values: tuple[CauseValue, ...] = ()
    """Different failure texts, the most frequent first, without `rest` more."""
    rest: int = 0

    @property
    def count(self) -> int:
        """Number of its cases."""
        return len(self.cases)

    @property
    def is_shared(self) -> bool:
        """Whether several cases have it; failures without a reason may have different causes."""
        return self.count > 1 and self.text != NO_REASON


def group_causes(failures: Iterable[tuple[CaseT, str | None]]) -> tuple[Cause[CaseT], ...]:
    """Group (case, failure) pairs by cause, the most frequent first.

    Failures of the same check have one cause, and so do errors that differ only in their numbers. Every text that is
    shown is one that a failure has.
    """
    groups: dict[str, list[tuple[CaseT, str]]] = defaultdict(list)
    for case, what in failures:
        text = what or NO_REASON
        groups[get_group_key(text)].append((case, text))
    return tuple(_build_cause(members) for members in sorted(groups.values(), key=len, reverse=True))


def _build_cause(members: Sequence[tuple[CaseT, str]]) -> Cause[CaseT]:
    """Build a cause from its failures, with examples of the most frequent one."""
    cases, ordered = tuple(case for case, _ in members), Counter(text for _, text in members).most_common()
    often = ordered[0][0]
    examples = tuple(case for case, _ in sorted(members, key=lambda one: one[1] != often))[:MAX_EXAMPLES]
    if len(ordered) == 1:
        return Cause(often, cases, examples)
    check = find_check_name(often)
    values = [
        CauseValue(drop_error_prefix(text).removeprefix(f"{check}: "), number)
        for text, number in ordered[0 if check else 1 :]
    ]
    return Cause(check or often, cases, examples, tuple(values[:MAX_VALUES]), max(len(values) - MAX_VALUES, 0))


class ErrorGroup(FrozenStruct):
    """Cases without a score of the same error kind."""

    headline: str
    """`2 agent errors`."""
    explanation: str
    """What the kind means, as a text to follow a colon."""
    title: str
    """Title of one of them: `Agent error`."""
    rows: tuple[CaseRow, ...]
    title_for_many: str
    """Title of all: `Agent errors`."""
    causes: tuple[Cause[CaseRow], ...]
    """Their causes, the most frequent first."""


def group_errors(rows: Sequence[CaseRow], regressions: Sequence[CaseRow]) -> tuple[ErrorGroup, ...]:
    """Group cases without a score by error kind; errors that the change may have caused come first.

    The explanation also counts the `regressions` with an error of the same kind, which are not among `rows`.
    """
    groups = (
        (error_kind, tuple(row for row in rows if row.error_kind is error_kind)) for error_kind in ERROR_KIND_ORDER
    )
    return tuple(_build_error_group(error_kind, members, regressions) for error_kind, members in groups if members)


def _build_error_group(
    error_kind: ErrorKind | None, rows: tuple[CaseRow, ...], regressions: Sequence[CaseRow]
) -> ErrorGroup:
    more = sum(row.status is Status.ERROR and row.error_kind is error_kind for row in regressions)
    return ErrorGroup(
        format_error_count(error_kind, len(rows)),
        explain_errors(error_kind, (row.case for row in rows)) + describe_error_regressions(error_kind, more),
        TITLES[error_kind][0],
        rows,
        TITLES[error_kind][1],
        group_causes((row, row.cause) for row in rows),
    )


class StaleSuites(FrozenStruct):
    """Stale suites of one tool that share the same reasons."""

    tool: str
    tiers: tuple[str, ...]
    facts: tuple[StaleFact, ...]
    warnings: tuple[str, ...]
    """Sentences that the contract defines."""


def group_stale_suites(suites: Iterable[SuiteResult]) -> tuple[StaleSuites, ...]:
    """Group suites by tool and reasons, in order; golden and labeled evals of one tool and reason are one group."""
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
