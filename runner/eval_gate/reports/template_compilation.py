"""Compile all templates at once, when a container image is built."""

from __future__ import annotations

from eval_gate.reports import markdown, matrix
from eval_gate.reports.page import html as page


def compile_templates() -> None:
    """Compile the templates of all reports, and store them for later processes (`template_engine.CACHE_FOLDER`)."""
    for engine, kinds in (
        (markdown.get_environment(), ("comment.md", "parts.md", "problem.md", "summary.md", "verdict.md")),
        (page.get_environment(), ("page.html",)),
        (matrix.get_environment(html=False), ("matrix.md",)),
        (matrix.get_environment(html=True), ("badge.svg", "matrix.html", "trend.html")),
    ):
        for kind in kinds:
            engine.get_template(f"{kind}.j2")
