"""Wording for what is stale about a suite: its tool's description, version or status, or the registry."""

from __future__ import annotations

from typing import Final

from eval_gate.model.result import StaleKind, SuiteResult

_STALE_PARTS: Final = {
    StaleKind.DESCRIPTION: "tool description",
    StaleKind.REGISTRY_SIZE: "tool registry",
    StaleKind.VERSION: "tool version",
    StaleKind.MISSING: "tool missing",
    StaleKind.STATUS: "tool status",
}


def describe_stale_suite(suite: SuiteResult) -> str:
    """Describe what of a suite is stale: `stale: tool description, tool registry`; empty if nothing is."""
    parts = dict.fromkeys(_STALE_PARTS[fact.kind] for fact in suite.stale_facts)
    return f"stale: {', '.join(parts)}" if suite.stale else ""


def has_acceptable_sets(suite: SuiteResult) -> bool:
    """Whether a case of the suite names sets of tools that it accepts, which a grown registry may make too narrow."""
    return any(result.type == "toolsAcceptable" for case in suite.cases for result in case.evaluator_results)
