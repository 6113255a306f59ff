"""URLs on GitHub, each built only if all its parts are known."""

from __future__ import annotations

import hashlib
import re
from typing import Final
from urllib.parse import quote

from eval_gate.model.case import CaseKey, Location
from eval_gate.reports.context import ReportContext

_NOT_IN_ANCHOR: Final = re.compile(r"[^a-z0-9]+")
_MAX_ANCHOR_PART: Final = 40
"""Characters of each readable half of an anchor; the digest distinguishes cases."""


def compute_case_digest(key: CaseKey) -> str:
    """Compute eight hex digits that distinguish cases."""
    return hashlib.sha256("\0".join(key).encode("utf-8", "surrogatepass")).hexdigest()[:8]


def build_anchor(key: CaseKey) -> str:
    """Build the anchor of a case on the page, `case-refund-partial-order-1f3a90bc`, the same in every run."""
    stem = key.suite.rpartition("/")[2].partition(".")[0]
    words = [
        _NOT_IN_ANCHOR.sub("-", part.lower()).strip("-")[:_MAX_ANCHOR_PART].rstrip("-") for part in (stem, key.case_id)
    ]
    return "-".join(["case", *filter(None, words), compute_case_digest(key)])


def build_case_url(key: CaseKey, context: ReportContext) -> str | None:
    """Build the URL of a case on the page at `context.page_url`; return None without such a page."""
    return f"{context.page_url}#{build_anchor(key)}" if context.page_url else None


def to_repository_path(file: str, context: ReportContext) -> str:
    """Convert a path relative to the workspace to one relative to the repository."""
    prefixes = [f"{folder}/" for folder in context.checkouts if file.startswith(f"{folder}/")]
    return file.removeprefix(max(prefixes, key=len, default=""))


def is_in_other_repository(file: str, context: ReportContext) -> bool:
    """Whether a file is in a submodule or in a checkout of another repository: this one has no such path."""
    return any(file.startswith(f"{folder}/") for folder in context.other_repositories)


def build_line_url(location: Location | None, context: ReportContext) -> str | None:
    """Build the URL of a line at the evaluated commit.

    Return None if the location, the repository or the commit is unknown, or the file is outside the repository.
    """
    if location is None or context.repository is None or context.head_sha is None:
        return None
    if (
        location.file.startswith("/")
        or ".." in location.file.split("/")
        or is_in_other_repository(location.file, context)
    ):
        return None  # outside the repository the link would have another target
    base = f"{context.server_url}/{context.repository}/blob/{context.head_sha}"
    return f"{base}/{quote(to_repository_path(location.file, context), errors='replace')}#L{location.line}"
