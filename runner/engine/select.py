"""Which cases of the suites are run."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from itertools import count

from runner.config.settings import Selection
from runner.errors import GateError, did_you_mean
from runner.model.case import EvalSuite, Tier
from runner.model.result import Shard


def select(suites: Iterable[EvalSuite], selection: Selection) -> tuple[EvalSuite, ...]:
    """The suites with only the selected cases; a suite without any is left out.

    Case globs match whole ids, case-sensitive. Raises GateError `nothing-selected` when no case is left: a gate on
    zero cases would be green about nothing.
    """
    suites = tuple(suites)
    _known_tiers(selection)
    chosen = tuple(
        suite.model_copy(update={"cases": cases})
        for suite in suites
        if not selection.tiers or (suite.tier is not None and suite.tier.value in selection.tiers)
        if (cases := tuple(case for case in suite.cases if _matches(case.id, case.tags, selection)))
    )
    if selection.shard is not None and chosen:
        chosen = _part(chosen, selection.shard)
    if not chosen:
        ids = [case.id for suite in suites for case in suite.cases]
        asked = [*selection.cases, *selection.tags, *selection.tiers]
        asked += [f"shard {selection.shard.index}/{selection.shard.count}"] if selection.shard else []
        meant = next((text for text in (did_you_mean(pattern, ids) for pattern in selection.cases) if text), "")
        raise GateError(
            "nothing-selected",
            f"no case is left of {len(ids)}: nothing matches {', '.join(asked)}{meant}",
            "`eval-gate validate --verbose` lists the cases",
        )
    return chosen


def _part(suites: tuple[EvalSuite, ...], shard: Shard) -> tuple[EvalSuite, ...]:
    """Every n-th case over all suites: the same files give the same parts, which differ by one case at most."""
    places = count()
    parts = (
        suite.model_copy(
            update={"cases": tuple(case for case in suite.cases if next(places) % shard.count == shard.index - 1)}
        )
        for suite in suites
    )
    return tuple(suite for suite in parts if suite.cases)


def _matches(case_id: str, tags: tuple[str, ...], selection: Selection) -> bool:
    if selection.cases and not any(fnmatch.fnmatchcase(case_id, pattern) for pattern in selection.cases):
        return False
    return not selection.tags or not set(tags).isdisjoint(selection.tags)


def _known_tiers(selection: Selection) -> None:
    known = [tier.value for tier in Tier]
    for tier in selection.tiers:
        if tier not in known:
            raise GateError(
                "unknown-value",
                f'--tier: "{tier}" is not known{did_you_mean(tier, known)}',
                f"allowed: {', '.join(known)}",
            )
