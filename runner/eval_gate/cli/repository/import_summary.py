"""What a person reads about evals of another tool that were turned into ours: first what is missing, and why."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from eval_gate.importing.imported import Imported, LeftOut
from eval_gate.reports.words.numbers import count

_SHOWN: Final = 20
"""Cases of one reason that are listed unless all are asked for."""


def lines(imported: Imported, folder: str, *, dry: bool, every: bool) -> Iterator[str]:
    """The report. Its first line alone says how much was carried over; `every` lists also long lists in full."""
    total = imported.carried + len(imported.left_out)
    yield f"{imported.shown}: {imported.carried:,} of {total:,} cases carried over"
    yield from _files(imported, folder, dry=dry)
    if imported.left_out:
        yield ""
        yield f"{count(len(imported.left_out), 'case')} not carried over:"
        yield from _by_reason(imported.left_out, every=every)
    if imported.aside:
        yield ""
        yield "beside cases, not carried over:"
        yield from (f"  {one.place}: {one.name}: {one.reason}" for one in imported.aside)
    if imported.remarks:
        yield ""
        yield from imported.remarks
    if imported.files and not dry:
        yield ""
        yield f"Next: {_next(imported, folder)}"


def _files(made: Imported, folder: str, *, dry: bool) -> Iterator[str]:
    if not made.files:
        yield "nothing was written"
    for name in made.files:
        yield f"  {'would write' if dry else 'wrote'} {folder}/{name}: {_held(name, made)}"


def _held(name: str, made: Imported) -> str:
    """What is in the file of this name."""
    if name.endswith(".system.md"):
        return "a system message"
    return count(made.cases[name], "case") if name in made.cases else ", ".join(made.targets)


def _by_reason(left: Sequence[LeftOut], *, every: bool) -> Iterator[str]:
    """The cases, below the reason they share; what most share comes first."""
    groups: dict[str, list[LeftOut]] = {}
    for one in left:
        groups.setdefault(one.reason, []).append(one)
    for reason, group in sorted(groups.items(), key=lambda item: -len(item[1])):
        yield f"  {reason} ({len(group):,})"
        yield from (f"    {one.place}: {one.name}" for one in (group if every else group[:_SHOWN]))
        if not every and len(group) > _SHOWN:
            yield f"    and {len(group) - _SHOWN:,} more: -v lists them all"


def _next(made: Imported, folder: str) -> str:
    if len(made.targets) > 1:
        return shlex.join(["eval-gate", "run", folder, "--target", made.targets[0]])
    if made.targets:
        return shlex.join(["eval-gate", "run", folder])
    return f"{shlex.join(['eval-gate', 'run', folder])} --agent-endpoint URL"
