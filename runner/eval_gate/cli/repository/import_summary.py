"""Summary of an import: imported cases, written files, and what was not imported and why."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from eval_gate.importers.import_result import ImportResult, SkippedItem
from eval_gate.reports.wording.numbers import format_count

_MAX_SHOWN: Final = 20
"""Cases of one reason that are listed without --verbose."""


def iter_summary_lines(imported: ImportResult, folder: str, *, dry: bool, every: bool) -> Iterator[str]:
    """Yield the lines of the import summary.

    The first line alone says how many cases were imported. With `every`, long lists are complete.
    """
    total = imported.case_count + len(imported.skipped_cases)
    yield f"{imported.display_path}: {imported.case_count:,} of {total:,} cases converted"
    yield from _iter_file_lines(imported, folder, dry=dry)
    if imported.skipped_cases:
        yield ""
        yield f"{format_count(len(imported.skipped_cases), 'case')} not converted:"
        yield from _iter_reason_lines(imported.skipped_cases, every=every)
    if imported.skipped_settings:
        yield ""
        yield "settings not converted:"
        yield from (f"  {one.place}: {one.name}: {one.reason}" for one in imported.skipped_settings)
    if imported.remarks:
        yield ""
        yield from imported.remarks
    if imported.files and not dry:
        yield ""
        yield f"Next step: {_format_next_command(imported, folder)}"


def _iter_file_lines(result: ImportResult, folder: str, *, dry: bool) -> Iterator[str]:
    if not result.files:
        yield "nothing was written"
    for name in result.files:
        yield f"  {'would write' if dry else 'wrote'} {folder}/{name}: {_describe_content(name, result)}"


def _describe_content(name: str, result: ImportResult) -> str:
    """Describe the content of the file `name`: its cases, its targets, or a system message."""
    if name.endswith(".system.md"):
        return "a system message"
    return format_count(result.cases[name], "case") if name in result.cases else ", ".join(result.targets)


def _iter_reason_lines(left: Sequence[SkippedItem], *, every: bool) -> Iterator[str]:
    """Yield the skipped cases below the reason that they share, the most common reason first.

    Without `every`, each reason lists at most `_MAX_SHOWN` cases.
    """
    groups: dict[str, list[SkippedItem]] = {}
    for one in left:
        groups.setdefault(one.reason, []).append(one)
    for reason, group in sorted(groups.items(), key=lambda item: -len(item[1])):
        yield f"  {reason} ({len(group):,})"
        yield from (f"    {one.place}: {one.name}" for one in (group if every else group[:_MAX_SHOWN]))
        if not every and len(group) > _MAX_SHOWN:
            yield f"    and {len(group) - _MAX_SHOWN:,} more (-v lists them all)"


def _format_next_command(result: ImportResult, folder: str) -> str:
    if len(result.targets) > 1:
        return shlex.join(["eval-gate", "run", folder, "--target", result.targets[0]])
    if result.targets:
        return shlex.join(["eval-gate", "run", folder])
    return f"{shlex.join(['eval-gate', 'run', folder])} --agent-endpoint URL"
