"""The pull request comment and the job summary, in GitHub's Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from runner.model.comparison import CaseClass
from runner.model.result import StaleFact, StaleKind
from runner.reports import wording
from runner.reports.fit import COMMENT_LIMIT, LADDER, Detail, fit
from runner.reports.view import CaseRow, View
from runner.text import escape

if TYPE_CHECKING:
    from jinja2 import Environment

OPEN_ROWS: Final = 10
"""Rows of the first table that are not folded."""
SUMMARY_LIMIT: Final = 900_000
"""Characters of a job summary: beyond a mebibyte GitHub drops all of it."""
SUMMARY_DETAIL: Final = Detail(rows=2_000, names=2_000, warnings=200)


def render_comment(view: View, *, limit: int = COMMENT_LIMIT, start: int = 0) -> str:
    """The comment: marker, verdict, why, the cases to look at, what to do, counts, warnings, provenance.

    At most `limit` characters; `start` begins further down the ladder, after a refusal.
    """
    template = _environment().get_template("comment.md.j2")
    return fit(lambda detail: _tidy(template.render(_names(view, detail))), limit, start)


def render_summary(view: View, *, limit: int = SUMMARY_LIMIT) -> str:
    """The job summary: the complete page, with the rules, every case, and how it was decided."""
    template = _environment().get_template("summary.md.j2")
    return fit(
        lambda detail: _tidy(template.render(_names(view, SUMMARY_DETAIL if detail is LADDER[0] else detail))), limit
    )


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("runner.reports"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 (Markdown is escaped by the filters below; a test walks the templates)
    )
    filters: dict[str, Callable[..., object]] = {
        "code": escape.code_span,
        "code_cell": escape.code_cell,
        "text": escape.plain,
        "html": escape.html_text,
        "block": escape.block,
        "percent": wording.percent,
        "signed": wording.signed,
        "case_link": case_link,
        "names": _name_list,
        "staleness": staleness_words,
    }
    environment.filters.update(filters)
    environment.globals["count"] = wording.count
    return environment


def _names(view: View, detail: Detail) -> dict[str, object]:
    comparison = view.comparison
    added = comparison.of(CaseClass.ADDED) if comparison else ()
    return {
        "view": view,
        "context": view.context,
        "detail": detail,
        "summary": view.summary,
        "marker": escape.comment_key(view.context.comment_key),
        "open_rows": OPEN_ROWS,
        "added": added,
        "provenance": _provenance(view),
        "stale_note": _stale_note(view) if view.baseline_is_stale else None,
        "MISSING": "–",
    }


def case_link(row: CaseRow) -> str:
    """The case's id as code, linked to its line where that is known."""
    shown = escape.code_cell(row.id)
    stale = " stale" if row.stale else ""
    return f"[{shown}]({row.url}){stale}" if row.url else f"{shown}{stale}"


def _name_list(rows: Sequence[CaseRow], limit: int) -> str:
    """`a`, `b` and 3 more."""
    shown = ", ".join(escape.code_span(row.id) for row in rows[:limit])
    rest = len(rows) - limit
    if rest <= 0:
        return shown
    return f"{shown} and {rest} more" if shown else f"{rest} cases"


def staleness_words(fact: StaleFact) -> str:
    """One fact as half a sentence; its values are foreign text."""
    recorded, current = (escape.code_span(value or "unknown") for value in (fact.recorded, fact.current))
    match fact.kind:
        case StaleKind.DESCRIPTION:
            return f"generated for description {recorded}, now {current}; results may not reflect the current contract"
        case StaleKind.REGISTRY_SIZE:
            return f"the registry grew from {recorded} to {current} tools: `toolsAcceptable` sets may be too narrow"
        case StaleKind.VERSION:
            return f"generated for version {recorded}, now {current}: the schema may have changed"
        case StaleKind.MISSING:
            return "the tool is not in the registry"
        case StaleKind.STATUS:
            return f"the tool is {current}"


def _stale_note(view: View) -> str:
    """How old the baseline is, both limits, and the remedy."""
    assert view.comparison is not None
    facts, context = view.comparison.baseline, view.context
    branch = escape.code_span(context.base_branch) if context.base_branch else "the default branch"
    parts = []
    if facts.age_days is not None:
        parts.append(f"**{wording.age(facts.age_days)}** (limit {context.max_baseline_age_days:g} days)")
    if facts.commits_behind is not None:
        parts.append(f"**{facts.commits_behind} commits behind** {branch} (limit {context.max_baseline_commits})")
    remedy = (
        f"run [the workflow]({context.workflow_url}) on {branch}" if context.workflow_url else f"run it on {branch}"
    )
    why = f"Differences may come from {branch}, not from this change."
    return f"The baseline is {' and '.join(parts)}. {why} Refresh: {remedy}."


def _provenance(view: View) -> str:
    """What was evaluated and compared with, in one line; addresses only where they are known."""
    context, parts = view.context, []
    sha = context.head_sha or (view.run.git.sha if view.run.git else None)
    into = f" merged into {escape.code_span(context.base_branch)}" if context.base_branch else ""
    parts.append(f"Evaluated {escape.code_span(sha[:7])}{into}" if sha else f"Run {escape.code_span(view.run.run_id)}")
    if view.comparison is not None:
        parts.append(_baseline_words(view))
    for words, url in (("full report", context.report_url), ("this run", context.run_url)):
        if url:
            parts.append(f"[{words}]({url})")
    parts.append(f"eval-gate {view.run.tool.version}")
    return " · ".join(parts)


def _baseline_words(view: View) -> str:
    assert view.comparison is not None
    facts, context = view.comparison.baseline, view.context
    name = escape.code_span(facts.sha[:7]) if facts.sha else escape.code_span(facts.run_id)
    details = [f"on {escape.code_span(context.base_branch)}"] if context.base_branch else []
    details += [words for words in (wording.age(facts.age_days),) if words]
    if facts.commits_behind is not None:
        details.append(f"{wording.count(facts.commits_behind, 'commit')} behind")
    link = f" ([run]({context.baseline_run_url}))" if context.baseline_run_url else ""
    return f"baseline {name}{' ' if details else ''}{', '.join(details)}{link}"


def _tidy(text: str) -> str:
    """Never more than one blank line, and one line break at the end."""
    lines: list[str] = []
    fenced = False
    for line in text.splitlines():
        if line.startswith("~~~"):
            fenced = not fenced
        if line.strip() or fenced or (lines and lines[-1]):
            lines.append(line.rstrip() if not fenced else line)
    return "\n".join(lines).strip() + "\n"
