"""Whether an eval file is older than the tool it speaks about (tool-forge runner contract, Staleness Checks)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Final

from eval_gate.model.case import EvalSuite, SuiteMetadata
from eval_gate.model.result import StaleFact, StaleKind, ToolFacts
from eval_gate.registry.base import Registry, ToolDefinition
from eval_gate.struct import FrozenStruct
from eval_gate.text.foreign.well_formed import well_formed

HASH_DIGITS: Final = 12
_FIRST_NUMBER: Final = re.compile(r"\s*[vV]?([0-9]+)(?![0-9])")
_ENDED: Final = frozenset({"deprecated", "removed"})


class Staleness(FrozenStruct):
    """What the checks of one suite found.

    `warnings` are the contract's sentences and `stale_facts` the same as data, in the same order. `notices` say what
    was not checked and why. `facts` are the current values, for the result's `metadata`.
    """

    facts: ToolFacts
    warnings: tuple[str, ...] = ()
    stale_facts: tuple[StaleFact, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def stale(self) -> bool:
        """Whether the result is to be marked as stale. The cases are run all the same."""
        return bool(self.stale_facts)


class _Finding(FrozenStruct):
    """The outcome of one check: a fact with its sentence, or why nothing can be said."""

    fact: StaleFact | None = None
    warning: str = ""
    notice: str = ""


_NOTHING: Final = _Finding()


def description_hash(text: str) -> str:
    """The first 12 hex digits of the SHA-256 of the description in UTF-8.

    A lone surrogate, which UTF-8 cannot hold, counts as U+FFFD: so does Node's `createHash().update(text)`.
    """
    return hashlib.sha256(well_formed(text).encode()).hexdigest()[:HASH_DIGITS]


def check(suite: EvalSuite, registry: Registry | None) -> Staleness:
    """Compare what the suite records with the registry. Each check needs both sides, else a notice says so."""
    tool = registry.find(suite.tool_name) if registry else None
    facts = _current_facts(suite, registry, tool)
    if suite.metadata is None:
        skipped = "Staleness was not checked: the eval file carries no metadata."
        return Staleness(facts, notices=(skipped,) if registry else ())
    if registry is None:
        return Staleness(facts, notices=("Staleness was not checked: no tool registry is configured.",))
    size = _size(suite.metadata, registry)
    if tool is None:
        return _gathered(facts, [_absent(suite.tool_name, registry), size])
    return _gathered(facts, [_description(suite.metadata, tool), size, _version(suite.metadata, tool), _status(tool)])


def console_line(fact: StaleFact, warning: str) -> str:
    """The fact on one line of the console summary, where the contract has a short form for the hash alone."""
    if fact.kind is not StaleKind.DESCRIPTION:
        return warning
    return f"Description hash mismatch (generated: {fact.recorded}, current: {fact.current})"


def _current_facts(suite: EvalSuite, registry: Registry | None, tool: ToolDefinition | None) -> ToolFacts:
    description = tool.description if tool else None
    return ToolFacts(
        tool_version=tool.version if tool else None,
        description_hash=None if description is None else description_hash(description),
        registry_size=registry.size if registry else None,
        eval_file_hash=suite.file_hash,
    )


def _gathered(facts: ToolFacts, findings: Sequence[_Finding]) -> Staleness:
    return Staleness(
        facts,
        warnings=tuple(finding.warning for finding in findings if finding.fact),
        stale_facts=tuple(finding.fact for finding in findings if finding.fact),
        notices=tuple(finding.notice for finding in findings if finding.notice),
    )


def _absent(name: str, registry: Registry) -> _Finding:
    """A tool that is not found is gone, unless it may be one of those that could not be read."""
    if registry.unresolved:
        count = len(registry.unresolved)
        which = f"{count} tool {'definitions' if count > 1 else 'definition'} in {registry.source} could not be read"
        return _Finding(notice=f"Tool {name} was not checked for staleness: {which}.")
    return _Finding(
        StaleFact(kind=StaleKind.MISSING),
        f"Tool {name} is not in the registry {registry.source}. Its description and version were not checked.",
    )


def _description(metadata: SuiteMetadata, tool: ToolDefinition) -> _Finding:
    recorded = metadata.description_hash
    if recorded is None:
        return _Finding(notice="Description hash was not checked: the eval file records none.")
    if tool.description is None:
        return _Finding(notice=f"Description hash was not checked: the description of {tool.name} is not known.")
    current = description_hash(tool.description)
    if current == recorded:
        return _NOTHING
    return _Finding(
        StaleFact(kind=StaleKind.DESCRIPTION, recorded=recorded, current=current),
        f"Evals for {tool.name} generated against description hash {recorded}, current is {current}. "
        "Results may not reflect current routing contract.",
    )


def _version(metadata: SuiteMetadata, tool: ToolDefinition) -> _Finding:
    recorded = metadata.tool_version
    if recorded is None:
        return _Finding(notice="Tool version was not checked: the eval file records none.")
    if tool.version is None:
        return _Finding(notice=f"Tool version was not checked: the version of {tool.name} is not known.")
    majors = [_FIRST_NUMBER.match(version) for version in (recorded, tool.version)]
    if not (majors[0] and majors[1]):
        odd = recorded if not majors[0] else tool.version
        return _Finding(notice=f'Tool version was not checked: "{odd[:40]}" does not begin with a number.')
    if majors[0][1].lstrip("0") == majors[1][1].lstrip("0"):
        return _NOTHING
    return _Finding(
        StaleFact(kind=StaleKind.VERSION, recorded=recorded, current=tool.version),
        f"Tool {tool.name} is version {tool.version}, evals were generated for {recorded}. Schema may have changed.",
    )


def _status(tool: ToolDefinition) -> _Finding:
    status = (tool.status or "").strip().lower()
    if status not in _ENDED:
        return _NOTHING
    return _Finding(StaleFact(kind=StaleKind.STATUS, current=status), f"Tool {tool.name} is {status}.")


def _size(metadata: SuiteMetadata, registry: Registry) -> _Finding:
    recorded, current = metadata.registry_size, registry.size
    if recorded is None:
        return _Finding(notice="Registry size was not checked: the eval file records none.")
    if 2 * current <= 3 * recorded:  # current > recorded * 1.5, without rounding
        return _NOTHING
    return _Finding(
        StaleFact(kind=StaleKind.REGISTRY_SIZE, recorded=str(recorded), current=str(current)),
        f"Registry has grown from {recorded} to {current} tools. "
        "Labeled evals may have under-specified toolsAcceptable sets.",
    )
