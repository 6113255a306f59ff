"""Which cases of the suites are run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from eval_gate.config.selection import Selection
from eval_gate.engine.preparing.shards import cut_of, shard_part, shares_files
from eval_gate.errors import GateError, did_you_mean
from eval_gate.model.case import EvalCase, EvalSuite, Tier
from eval_gate.model.result import ShardCut
from eval_gate.text.quoting import quoted, shown_name


def select(suites: Iterable[EvalSuite], selection: Selection) -> tuple[EvalSuite, ...]:
    """The suites with only the selected cases; a suite without any is left out.

    Raises GateError `nothing-selected` when no case is left: a gate on
    zero cases would be green about nothing.
    """
    suites = tuple(suites)
    _known_tiers(selection)
    chosen = _narrowed(suites, selection)
    if selection.shard is not None and chosen:
        chosen = shard_part(chosen, selection.shard, selection.before)
    if not chosen:
        ids = [case.id for suite in suites for case in suite.cases]
        asked = [*map(shown_name, (*selection.cases, *selection.tags, *selection.tiers))]
        asked += ["the cases that failed"] if selection.keys is not None else []
        asked += [f"shard {selection.shard.index}/{selection.shard.count}"] if selection.shard else []
        meant = next((text for text in (did_you_mean(pattern, ids) for pattern in selection.cases) if text), "")
        raise GateError(
            "nothing-selected",
            f"no case is left of {len(ids)}: nothing matches {', '.join(asked)}{meant}",
            "`eval-gate validate --verbose` lists the cases",
        )
    return chosen


def cut_by(suites: Iterable[EvalSuite], selection: Selection) -> ShardCut | None:
    """How the cases of all shards were cut; None where there are no shards."""
    if selection.shard is None:
        return None
    return cut_of(_narrowed(suites, selection), selection.shard.count, selection.before)


def _narrowed(suites: Iterable[EvalSuite], selection: Selection) -> tuple[EvalSuite, ...]:
    """What is left of the suites for all shards together.

    Where cases are chosen by how they did (`keys`), those before them are run too: without their files a case says
    something else than it did. Who chooses by names, tags or tiers is told instead (`missed_files`).
    """
    return tuple(
        suite.model_copy(update={"cases": cases if selection.keys is None else _with_those_before(suite.cases, cases)})
        for suite in suites
        if (cases := tuple(case for case in suite.cases if selection.takes(case.key, case.tags, suite.tier)))
    )


def missed_files(suites: Iterable[EvalSuite], chosen: Iterable[EvalSuite]) -> tuple[str, ...]:
    """A sentence for every suite whose cases may miss the files of earlier ones that were not chosen."""
    left = {suite.file: suite.cases for suite in chosen}
    return tuple(
        f"{suite.file}: {len(left[suite.file])} of {len(suite.cases)} cases are chosen, and they do not find files that"
        " the others would have written"
        for suite in suites
        if shares_files(suite) and suite.file in left
        if left[suite.file] != _with_those_before(suite.cases, left[suite.file])
    )


def _with_those_before(cases: Sequence[EvalCase], chosen: Collection[EvalCase]) -> tuple[EvalCase, ...]:
    """The chosen cases of a suite, and those on whose files they work: all that stand before a dependent one."""
    ids = {case.id for case in chosen}
    last = max((at for at, case in enumerate(cases) if case.dependent and case.id in ids), default=-1)
    return tuple(case for at, case in enumerate(cases) if at <= last or case.id in ids)


def _known_tiers(selection: Selection) -> None:
    known = [tier.value for tier in Tier]
    for tier in selection.tiers:
        if tier not in known:
            raise GateError(
                "unknown-value",
                f"--tier: {quoted(tier)} is not known{did_you_mean(tier, known)}",
                f"allowed: {', '.join(known)}",
            )
