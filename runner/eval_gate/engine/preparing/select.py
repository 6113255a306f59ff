"""Which cases of the suites are run."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapreplace

from eval_gate.config.settings import Selection
from eval_gate.errors import GateError, did_you_mean
from eval_gate.model.case import CaseKey, EvalCase, EvalSuite, Tier
from eval_gate.model.result import Shard
from eval_gate.text import globs


def select(suites: Iterable[EvalSuite], selection: Selection) -> tuple[EvalSuite, ...]:
    """The suites with only the selected cases; a suite without any is left out.

    Raises GateError `nothing-selected` when no case is left: a gate on
    zero cases would be green about nothing.
    """
    suites = tuple(suites)
    _known_tiers(selection)
    chosen = tuple(
        suite.model_copy(update={"cases": cases})
        for suite in suites
        if not selection.tiers or (suite.tier is not None and suite.tier.value in selection.tiers)
        if selection.files is None or suite.file in selection.files
        if (cases := tuple(case for case in suite.cases if _matches(suite.file, case, selection)))
    )
    if selection.shard is not None and chosen:
        chosen = _part(chosen, selection.shard)
    if not chosen:
        ids = [case.id for suite in suites for case in suite.cases]
        asked = [*selection.cases, *selection.tags, *selection.tiers]
        asked += sorted(selection.files or ())
        asked += ["the cases that failed"] if selection.keys is not None else []
        asked += [f"shard {selection.shard.index}/{selection.shard.count}"] if selection.shard else []
        meant = next((text for text in (did_you_mean(pattern, ids) for pattern in selection.cases) if text), "")
        raise GateError(
            "nothing-selected",
            f"no case is left of {len(ids)}: nothing matches {', '.join(asked)}{meant}",
            "`eval-gate validate --verbose` lists the cases",
        )
    return chosen


def missed_files(suites: Iterable[EvalSuite], chosen: Iterable[EvalSuite]) -> tuple[str, ...]:
    """A sentence for every suite whose cases may miss the files of others that were not chosen."""
    left = {suite.file: len(suite.cases) for suite in chosen}
    return tuple(
        f"{suite.file}: {left[suite.file]} of {len(suite.cases)} cases are chosen, and they do not find files that the "
        "others would have written"
        for suite in suites
        if _shares_files(suite) and 0 < left.get(suite.file, 0) < len(suite.cases)
    )


def _shares_files(suite: EvalSuite) -> bool:
    """Whether the suite's agent has file tools: then its cases work in one folder, one after the other."""
    return any(case.agent is not None and case.agent.tools for case in suite.cases)


def _part(suites: tuple[EvalSuite, ...], shard: Shard) -> tuple[EvalSuite, ...]:
    """One of parts as equal as can be: the same files give the same parts, each case is in one of them.

    Suites whose cases share files are dealt out whole, the largest first; then case after case to the smallest part.
    """
    parts = [(0, index) for index in range(1, shard.count + 1)]  # cases so far: sorted, it is a heap already

    def mine(cases: int) -> bool:
        size, index = parts[0]
        heapreplace(parts, (size + cases, index))
        return index == shard.index

    whole = sorted(filter(_shares_files, suites), key=lambda suite: -len(suite.cases))
    dealt = {suite.file: suite.cases if mine(len(suite.cases)) else () for suite in whole}
    dealt |= {suite.file: tuple(case for case in suite.cases if mine(1)) for suite in suites if suite.file not in dealt}
    return tuple(suite.model_copy(update={"cases": dealt[suite.file]}) for suite in suites if dealt[suite.file])


def _matches(file: str, case: EvalCase, selection: Selection) -> bool:
    if selection.keys is not None and CaseKey(file, case.id) not in selection.keys:
        return False
    if selection.cases and not any(globs.fits(pattern, case.id) for pattern in selection.cases):
        return False
    return not selection.tags or not set(case.tags).isdisjoint(selection.tags)


def _known_tiers(selection: Selection) -> None:
    known = [tier.value for tier in Tier]
    for tier in selection.tiers:
        if tier not in known:
            raise GateError(
                "unknown-value",
                f'--tier: "{tier}" is not known{did_you_mean(tier, known)}',
                f"allowed: {', '.join(known)}",
            )
