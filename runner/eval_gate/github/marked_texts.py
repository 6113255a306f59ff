"""Comments and issues of the gate: recognized by author and marker, and never read beyond it."""

from __future__ import annotations

from pydantic import Field

from eval_gate.github.client import ApiResponse


class MarkedText(ApiResponse):
    """Comment or issue, of any author."""

    mine: bool = Field(alias="viewerDidAuthor")
    """GitHub says so without a name: a workflow's token may not ask who it is."""
    body: str
    url: str = ""

    def is_ours(self, marker: str) -> bool:
        """Whether it has this marker, and the account of this token wrote it."""
        return self.mine and self.body.startswith(marker)
