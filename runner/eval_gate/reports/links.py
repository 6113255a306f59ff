"""Addresses on GitHub, only where they are known to lead somewhere."""

from __future__ import annotations

from urllib.parse import quote

from eval_gate.model.case import Location
from eval_gate.reports.context import ReportContext


def line_url(location: Location | None, context: ReportContext) -> str | None:
    """A line of a file at the commit that was evaluated; None where one of these is not known."""
    if location is None or context.repository is None or context.head_sha is None:
        return None
    if location.file.startswith("/") or ".." in location.file.split("/"):
        return None  # not in the repository: a link built of it would lead somewhere else
    base = f"{context.server_url}/{context.repository}/blob/{context.head_sha}"
    return f"{base}/{quote(location.file, errors='replace')}#L{location.line}"
