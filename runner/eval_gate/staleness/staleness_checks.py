"""Staleness checks of a suite against the tool registry (tool-forge runner contract)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Final

from eval_gate.model.case import EvalSuite, SuiteMetadata
from eval_gate.model.result import StaleFact, StaleKind, ToolFacts
from eval_gate.staleness.tool_registry import ToolDefinition, ToolRegistry
from eval_gate.struct import FrozenStruct
from eval_gate.text.untrusted.surrogates import to_well_formed

HASH_DIGITS: Final = 12
_FIRST_NUMBER: Final = re.compile(r"\s*[vV]?([0-9]+)(?![0-9])")
_ENDED_STATUSES: Final = frozenset({"deprecated", "removed"})


class Staleness(FrozenStruct):
    """Result of the staleness checks of one suite.

    `warnings` are the contract's sentences and `stale_facts` the same as data, in the same order. `notices` list
    skipped checks with reasons. `facts` are the current values, for the result's `metadata`.
    """

    facts: ToolFacts
    warnings: tuple[str, ...] = ()
    stale_facts: tuple[StaleFact, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def is_stale(self) -> bool:
        """Whether the result is to be marked as stale. The cases are run all the same."""
        return bool(self.stale_facts)


class _StalenessFinding(FrozenStruct):
    """Result of one check: a fact with its sentence, or why the check was skipped."""

    fact: StaleFact | None = None
    warning: str = ""
    notice: str = ""


_NO_FINDING: Final = _StalenessFinding()


def hash_description(text: str) -> str:
    """Return 12 hex digits of the SHA-256 of the text in UTF-8; a lone surrogate counts as U+FFFD, as in Node."""
    return hashlib.sha256(to_well_formed(text).encode()).hexdigest()[:HASH_DIGITS]


def check_staleness(suite: EvalSuite, registry: ToolRegistry | None) -> Staleness:
    """Compare what the suite records with the registry. Each check needs both sides, else a notice says so."""
    tool = registry.find_tool(suite.tool_name) if registry else None
    description = tool.description if tool else None
    facts = ToolFacts(
        tool_version=tool.version if tool else None,
        description_hash=None if description is None else hash_description(description),
        registry_size=registry.size if registry else None,
        eval_file_hash=suite.file_hash,
    )
    if suite.metadata is None:
        skipped = "Staleness was not checked: the eval file has no metadata."
        return Staleness(facts, notices=(skipped,) if registry else ())
    if registry is None:
        return Staleness(facts, notices=("Staleness was not checked: no tool registry is configured.",))
    size = _check_size(suite.metadata, registry)
    if tool is None:
        return _merge_findings(facts, [_report_missing_tool(suite.tool_name, registry), size])
    return _merge_findings(
        facts,
        [_check_description(suite.metadata, tool), size, _check_version(suite.metadata, tool), _check_status(tool)],
    )


def format_console_line(fact: StaleFact, warning: str) -> str:
    """Format a fact as a line: the contract's short form of the description hash, or else its `warning`."""
    if fact.kind is not StaleKind.DESCRIPTION:
        return warning
    return f"Description hash mismatch (generated: {fact.recorded}, current: {fact.current})"


def _merge_findings(facts: ToolFacts, findings: Sequence[_StalenessFinding]) -> Staleness:
    return Staleness(
        facts,
        warnings=tuple(finding.warning for finding in findings if finding.fact),
        stale_facts=tuple(finding.fact for finding in findings if finding.fact),
        notices=tuple(finding.notice for finding in findings if finding.notice),
    )


def _report_missing_tool(name: str, registry: ToolRegistry) -> _StalenessFinding:
    """Report a tool as missing, unless it may be one whose definition could not be read."""
    if registry.unresolved_tools:
        count = len(registry.unresolved_tools)
        which = f"{count} tool {'definitions' if count > 1 else 'definition'} in {registry.source} could not be read"
        return _StalenessFinding(notice=f"Tool {name} was not checked for staleness: {which}.")
    return _StalenessFinding(
        StaleFact(kind=StaleKind.MISSING),
        f"Tool {name} is not in the registry {registry.source}. Its description and version were not checked.",
    )


def _skip_check(what: str, recorded: object, why: str) -> _StalenessFinding:
    why = "the eval file records none" if recorded is None else why
    return _StalenessFinding(notice=f"{what} was not checked: {why}.")


def _check_description(metadata: SuiteMetadata, tool: ToolDefinition) -> _StalenessFinding:
    recorded = metadata.description_hash
    if recorded is None or tool.description is None:
        return _skip_check("Description hash", recorded, f"the description of {tool.name} is not known")
    current = hash_description(tool.description)
    if current == recorded:
        return _NO_FINDING
    return _StalenessFinding(
        StaleFact(kind=StaleKind.DESCRIPTION, recorded=recorded, current=current),
        f"Evals for {tool.name} generated against description hash {recorded}, current is {current}. "
        "Results may not reflect current routing contract.",
    )


def _check_version(metadata: SuiteMetadata, tool: ToolDefinition) -> _StalenessFinding:
    recorded = metadata.tool_version
    if recorded is None or tool.version is None:
        return _skip_check("Tool version", recorded, f"the version of {tool.name} is not known")
    majors = [_FIRST_NUMBER.match(version) for version in (recorded, tool.version)]
    if not (majors[0] and majors[1]):
        odd = recorded if not majors[0] else tool.version
        return _skip_check("Tool version", recorded, f'"{odd[:40]}" does not begin with a number')
    if majors[0][1].lstrip("0") == majors[1][1].lstrip("0"):
        return _NO_FINDING
    return _StalenessFinding(
        StaleFact(kind=StaleKind.VERSION, recorded=recorded, current=tool.version),
        f"Tool {tool.name} is version {tool.version}, evals were generated for {recorded}. Schema may have changed.",
    )


def _check_status(tool: ToolDefinition) -> _StalenessFinding:
    status = (tool.status or "").strip().lower()
    if status not in _ENDED_STATUSES:
        return _NO_FINDING
    return _StalenessFinding(StaleFact(kind=StaleKind.STATUS, current=status), f"Tool {tool.name} is {status}.")


def _check_size(metadata: SuiteMetadata, registry: ToolRegistry) -> _StalenessFinding:
    recorded, current = metadata.registry_size, registry.size
    if recorded is None:
        return _skip_check("Registry size", recorded, "")
    if 2 * current <= 3 * recorded:  # current > recorded * 1.5, without rounding
        return _NO_FINDING
    return _StalenessFinding(
        StaleFact(kind=StaleKind.REGISTRY_SIZE, recorded=str(recorded), current=str(current)),
        f"Registry has grown from {recorded} to {current} tools. "
        "Labeled evals may have under-specified toolsAcceptable sets.",
    )
