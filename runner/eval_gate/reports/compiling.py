"""All templates compiled at once: an image does it when it is built, and keeps nothing when it runs."""

from __future__ import annotations

from eval_gate.reports import markdown, matrix
from eval_gate.reports.page import render as page


def compile_templates() -> None:
    """Compile what every report is rendered with, and keep it for later processes (`templating.KEPT`)."""
    for engine, kinds in (
        (markdown.engine(), ("comment.md", "parts.md", "problem.md", "summary.md", "verdict.md")),
        (page.engine(), ("page.html",)),
        (matrix.engine(html=False), ("matrix.md",)),
        (matrix.engine(html=True), ("matrix.html",)),
    ):
        for kind in kinds:
            engine.get_template(f"{kind}.j2")
