"""Stale suites grouped by tool: one line for a tool whose golden and labeled evals are old for the same reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from eval_gate.model.result import StaleFact, SuiteResult


@dataclass(frozen=True, slots=True)
class StaleSuites:
    """Suites of one tool that are stale for the same reasons."""

    tool: str
    tiers: tuple[str, ...]
    facts: tuple[StaleFact, ...]
    warnings: tuple[str, ...]
    """The contract's own sentences."""


def stale_suites(suites: Iterable[SuiteResult]) -> tuple[StaleSuites, ...]:
    """The stale ones, in order of appearance."""
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
