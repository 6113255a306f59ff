"""Cases and suites by what they share: failures by cause, errors by whose fault they are, stale suites by tool."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from eval_gate.model.result import StaleFact, SuiteResult
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.words.blame import MEANS, ORDER, TITLES, did

EXAMPLES: Final = 2
"""Cases that stand for a cause."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What failures have in common, with how many there are and the first of their cases."""

    what: str
    count: int
    examples: tuple[str, ...]


def group_causes(failures: Iterable[tuple[str, str | None]]) -> tuple[Cause, ...]:
    """The causes of (case, failure) pairs, the most frequent first: a list of a hundred names is often one broken tool.

    A cause whose failures are the same to the letter is shown as it is, else without what differs.
    """
    groups: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for case, what in failures:
        said = what or "no reason was given"
        groups[_normalised(said)].append((case, said))
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return tuple(
        Cause(
            what=members[0][1] if len({said for _, said in members}) == 1 else common,
            count=len(members),
            examples=tuple(case for case, _ in members[:EXAMPLES]),
        )
        for common, members in ordered
    )


def _normalised(failure: str) -> str:
    """A failure without the numbers that were measured, which differ from case to case."""
    return re.sub(r"\b\d+(?:\.\d+)?(?=(?:ms|s)?\b)", "N", failure)


@dataclass(frozen=True, slots=True)
class Errors:
    """Cases that could not be judged for the same reason."""

    did: str
    """`2 cases crashed`."""
    means: str
    """What that is, to be read after a colon."""
    title: str
    """One of them, over a column: `Crashed case`."""
    rows: tuple[CaseRow, ...]


def errors_by_blame(rows: Sequence[CaseRow]) -> tuple[Errors, ...]:
    """What may be of the change's making first."""
    groups = ((blame, tuple(row for row in rows if row.blame is blame)) for blame in ORDER)
    return tuple(Errors(did(blame, len(found)), MEANS[blame], TITLES[blame], found) for blame, found in groups if found)


@dataclass(frozen=True, slots=True)
class StaleSuites:
    """Suites of one tool that are stale for the same reasons."""

    tool: str
    tiers: tuple[str, ...]
    facts: tuple[StaleFact, ...]
    warnings: tuple[str, ...]
    """The contract's own sentences."""


def stale_suites(suites: Iterable[SuiteResult]) -> tuple[StaleSuites, ...]:
    """The stale ones in order of appearance: one line for a tool whose golden and labeled evals are old alike."""
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
