"""Markdown fragments: case links, lists of names, waivers, provenance, baseline notes.

Untrusted text is escaped here; the templates insert the fragments unchanged.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from eval_gate.model.comparison import Outcome
from eval_gate.reports.context import ReportContext
from eval_gate.reports.view.report_view import ReportView
from eval_gate.reports.view.rows import TRACE, CaseRow
from eval_gate.reports.wording import numbers as wording
from eval_gate.reports.wording import verdict
from eval_gate.reports.wording.headline import find_earlier_commits
from eval_gate.reports.wording.setup_changes import MAX_NAMED, SetupChangeText
from eval_gate.reports.wording.waivers import WaiverText
from eval_gate.text.escape import escape_markdown, format_code_cell, format_code_span, format_count, truncate_text

MAX_SENTENCE: Final = 400
MAX_REASONS: Final = 5
"""Reasons that a list of cases names."""
MAX_EVIDENCE: Final = 200
"""Characters of the evidence of a case, and of each remark on it."""
MAX_AUTHOR: Final = 60
_MAX_INLINE: Final = 3


def format_name_link(row: CaseRow) -> str:
    """Format a case's name as code for a table cell, linked to its place on the page or in its file."""
    label, url = format_code_cell(row.label), row.page_url or row.url
    return f"[{label}]({url})" if url else label


def format_case_link(row: CaseRow) -> str:
    """Format a case's name like `format_name_link`, with small links to its line and its trace.

    Marks follow in parentheses: not re-run, flaky on the default branch, and what of its suite is stale.
    """
    line = f" <sub>[L{row.location.line}]({row.url})</sub>" if row.page_url and row.url and row.location else ""
    marks = ["not re-run" if row.suspected else "", "flaky" if row.is_flaky_in_history else "", row.stale]
    text = ", ".join(filter(None, marks))
    return f"{format_name_link(row)}{line}{format_trace_link(row)}{f' ({text})' if text else ''}"


def format_trace_link(row: CaseRow) -> str:
    """Format a small link to the trace of a case, after a blank; empty if there is none."""
    return "".join(f" <sub>[{one.label}]({one.url})</sub>" for one in row.traces if one.label == TRACE and one.url)


def iter_traces(row: CaseRow) -> Iterator[str]:
    """Yield the traces of a case, each as a link where the configuration allows one, else as code."""
    for one in row.traces:
        yield f"[{one.label}]({one.url})" if one.url else f"{one.label} {format_code_span(one.trace)}"


def format_row_count(rows: Sequence[CaseRow]) -> str:
    """Format how many rows there are: `12`, and with suspected regressions among them `3, 9 more suspected`."""
    number = sum(row.suspected for row in rows)
    return f"{len(rows) - number}, {number} more suspected" if number else f"{len(rows)}"


def format_links(view: ReportView) -> str:
    """Format the links to the report and to the documentation page about this verdict, as one line.

    Empty if no address is known.
    """
    context = view.context
    parts = [f"**[Open the report]({context.page_url})**"] if context.page_url else []
    if not parts and context.report_url:
        parts = [f"[Download the report]({context.report_url}) (a zip)"]
    if view.doc_link and context.docs_url:
        parts.append(f"[{view.doc_link.text}]({context.docs_url}/{view.doc_link.target})")
    return " · ".join(parts)


def format_evidence_cell(row: CaseRow) -> str:
    """Format the evidence of a case, one line per item; a waived case also gives its failure."""
    lines = [escape_markdown(words, MAX_EVIDENCE) for words in row.evidence_lines]
    lines += (
        [format_code_cell(failure)] if row.waiver and (failure := row.shorten_failure()) else []
    )  # whose table has no room for more
    return "<br>".join(lines)


def format_terms_cell(waiver: WaiverText) -> str:
    """Format a waiver's effect, end and source for a table cell, and whether this pull request adds it."""
    new = "<br>**new in this pull request**" if waiver.new else ""
    return f"{waiver.effect} until {waiver.expiry}<br>{_format_source(waiver)}{new}"


def format_waiver(waiver: WaiverText) -> str:
    """Format a complete waiver: its id or glob, terms, failing cases and reason."""
    case_ids = () if waiver.cases == (waiver.pattern,) else waiver.cases
    cases = f", for {', '.join(map(format_code_span, case_ids))}" if case_ids else ""
    terms = f"{waiver.effect} until {waiver.expiry}, {_format_source(waiver)}"
    return f"{format_code_span(waiver.pattern)}: {terms}{cases}: {escape_markdown(waiver.reason, MAX_EVIDENCE)}"


def _format_source(waiver: WaiverText) -> str:
    """Format the author and the place of a waiver, with a link if the place is on this server."""
    by = f"by {escape_markdown(waiver.author, MAX_AUTHOR)}, " if waiver.author else ""
    if waiver.url is None:
        return f"{by}{format_code_cell(waiver.place)}"
    return f"{by}[{'comment' if waiver.url == waiver.place else format_code_cell(waiver.place)}]({waiver.url})"


def format_names(rows: Sequence[CaseRow], limit: int) -> str:
    """Format at most `limit` case names: `a`, `b` and 3 more; graded with scores: `a` 0.60 → 0.55 (−0.05)."""
    return _format_names(rows, limit, lambda row: row.scores or "")


def format_names_with_evidence(rows: Sequence[CaseRow], limit: int) -> str:
    """Format case names like `format_names`, with evidence: `a` (passed 6 of 6 here, 2 of 20 on main)."""
    return _format_names(
        rows,
        limit,
        lambda row: f"({escape_markdown(row.evidence_text, MAX_EVIDENCE)})" if row.evidence else row.scores or "",
    )


def format_names_with_results(rows: Sequence[CaseRow], limit: int) -> str:
    """Format case names with the current result of each in parentheses, such as an agent error."""
    return _format_names(rows, limit, lambda row: f"({row.current_result})" if row.current_result else "")


def _format_names(rows: Sequence[CaseRow], limit: int, details: Callable[[CaseRow], str]) -> str:
    names = ", ".join(f"{format_code_span(row.label)} {details(row)}".rstrip() for row in rows[:limit])
    rest = len(rows) - limit
    if rest <= 0:
        return names
    return f"{names} and {rest} more" if names else format_count(rest, "case")


def format_names_by_reason(rows: Sequence[CaseRow], limit: int) -> str:
    """Format names by reason: `a`, `b` (needs a judge); `c` (no question). Some groups are only counted."""
    groups: dict[str, list[CaseRow]] = defaultdict(list)
    for row in rows:
        groups[row.reason or row.failure_summary or "no reason given"].append(row)
    parts = [
        f"{format_names(members, limit)} ({escape_markdown(reason)})"
        for reason, members in list(groups.items())[:MAX_REASONS]
    ]
    left_out = sum(len(members) for members in list(groups.values())[MAX_REASONS:])
    return "; ".join([*parts, *([f"{format_count(left_out, 'case')} for other reasons"] if left_out else [])])


def format_prose(words: str, limit: int = MAX_SENTENCE) -> str:
    """Format a phrase that has names in backticks; text between two backticks is code."""
    pieces = re.split(r"`([^`]*)`", truncate_text(words, limit))
    return "".join(format_code_span(piece) if place % 2 else _escape_text(piece) for place, piece in enumerate(pieces))


def format_prose_cell(words: str) -> str:
    """Format a phrase like `format_prose` for a table cell: the escaped text has `|` only within code."""
    return format_prose(words).replace("|", "\\|")


def format_setup_changes(changes: SetupChangeText, names: int = MAX_NAMED) -> str:
    """Format the setup changes since the baseline as a paragraph, or as a list if they are many."""
    sign = "⚠️ " if changes.is_alarming else ""
    lines = [format_prose(line) for line in changes.format_lines(names)]
    several = len(lines) > _MAX_INLINE
    text = "\n" + "".join(f"\n- {words}" for words in lines) if several else f" {' · '.join(lines)}"
    return f"{sign}**{changes.title}:**{text}"


def _escape_text(text: str) -> str:
    """Escape a text, and keep a blank at each end."""
    start, end = (" " if text[:1].isspace() else ""), (" " if text[1:][-1:].isspace() else "")
    return f"{start}{escape_markdown(text, MAX_SENTENCE)}{end}"


def format_sentence(words: str) -> str:
    """Format a phrase of a verdict or a note as a sentence."""
    return escape_markdown(verdict.to_sentence(words), MAX_SENTENCE)


def describe_stale_baseline(view: ReportView) -> str:
    """Describe how old the baseline is, both limits, and the remedy."""
    assert view.comparison is not None
    facts, context = view.comparison.baseline, view.context
    branch = format_code_span(context.branch) if context.branch else "the default branch"
    parts = []
    if facts.age_days is not None:
        parts.append(f"**{wording.format_age(facts.age_days)}** (limit {context.max_baseline_age_days:g} days)")
    if facts.commits_behind is not None:
        behind = format_count(facts.commits_behind, "commit")
        parts.append(f"**{behind} behind** {branch} (limit {context.max_baseline_commits})")
    why = f"Differences may come from {branch}, not from this change."
    return f"The baseline is {' and '.join(parts)}. {why} To refresh it, {describe_branch_run(context)}."


def describe_branch_run(context: ReportContext) -> str:
    """Describe how to run the workflow on the baseline's branch, with the commands where they start it."""
    refresh = context.baseline_refresh
    branch = format_code_span(context.branch) if context.branch else "the default branch"
    where = f"run [the workflow]({context.workflow_url}) on {branch}" if context.workflow_url else f"run it on {branch}"
    how = f"{where}: {format_code_span(refresh.command, 400)}" if refresh and refresh.command else where
    by_comment = refresh.comment_command if refresh else None
    return f"comment {format_code_span(by_comment)}, or {how}" if by_comment else how


def describe_unmeasured_runs(view: ReportView, mark: Callable[[str], str] = format_code_span) -> str | None:
    """Describe newer runs of the baseline's branch that have too few scores to be the baseline; None without any.

    `mark` formats names and commits for the report that shows the sentence.
    """
    if view.comparison is None or not view.comparison.baseline.unscored_runs:
        return None
    facts = view.comparison.baseline
    first, more = facts.unscored_runs[0], len(facts.unscored_runs) > 1
    branch = view.context.branch
    sha = mark(first.sha[:7] if first.sha else first.run_id[:40])
    if branch:
        runs = (
            f"newest {len(facts.unscored_runs)} runs before this change"
            if more
            else f"newest run before this change, {sha},"
        )
        which = f"{mark(branch)}'s {runs}"
    else:  # `latest` skips failed runs too, so there may be others between them
        which = f"{len(facts.unscored_runs)} newer runs" if more else f"A newer run, {sha},"
    scored = (
        f"{'in ' + sha + ', ' if more else ''}{first.scored} of {format_count(first.cases, 'case')} "
        f"{'has' if first.scored == 1 or first.cases == 1 else 'have'} a score"
    )
    compared = mark(facts.sha[:7] if facts.sha else facts.run_id[:40])
    return f"{which} cannot be the baseline: {scored}. Compared with {compared} instead."


def describe_older_baseline(view: ReportView, mark: Callable[[str], str] = format_code_span) -> str | None:
    """Describe the commits of the base without a result whose effects count too; None if the gate found nothing.

    `mark` as for `describe_unmeasured_runs`.
    """
    if view.comparison is None or (view.verdict.outcome is Outcome.PASSED and not view.regressions):
        return None
    counted, base = find_earlier_commits(view.run), view.comparison.baseline.base_sha or ""
    if counted is None:
        return None
    commits = format_count(counted[0], "commit")
    what = f"{'its' if counted[0] == 1 else 'their'} effects count too ({mark(counted[1])})"
    if view.run.sha == base:
        return f"Between the baseline and {mark(base[:7])} {'is' if counted[0] == 1 else 'are'} {commits}: {what}"
    return f"{mark(base[:7])}, the base of this change, has no result. The baseline is {commits} older: {what}"


def format_provenance(view: ReportView) -> str:
    """Format the evaluated commit and its baseline as one line, with links if their URLs are known."""
    context, parts = view.context, []
    if view.is_inconclusive:
        parts.append(f"Exit code {int(view.verdict.exit_code)}")
    sha = context.head_sha or view.run.sha
    parts.append(
        f"Evaluated {format_code_span(sha[:7])}{_describe_merge(view)}"
        if sha
        else f"Run {format_code_span(view.run.run_id)}"
    )
    if view.comparison is not None:
        parts.append(describe_baseline(view))
    for words, url in (("stored result", context.report_url), ("this run", context.run_url)):
        if url:
            parts.append(f"[{words}]({url})")
    parts.append(f"eval-gate {escape_markdown(view.run.tool.version)}")
    return " · ".join(parts)


def _describe_merge(view: ReportView) -> str:
    """Describe if the evaluated commit is merged into the base branch, and if only the workflow names it."""
    context, base = view.context, view.comparison.baseline.base_sha if view.comparison else None
    if context.is_believed and context.workspace_sha:
        commit = format_code_span(context.workspace_sha[:7])
        believed = f" (there is no checkout to confirm it; the workflow says {commit})"
    else:
        believed = ""
    if not (context.base_branch and context.head_sha):
        return believed
    branch = format_code_span(context.base_branch)
    if context.workspace_sha == context.head_sha:
        return f", not merged into {branch} yet{believed}"
    at = f" at {format_code_span(base[:7])}" if base and context.workspace_sha else ""
    return f", merged with {branch}{at} for this test{believed}"


def describe_baseline(view: ReportView) -> str:
    """Describe the baseline: its run, its age, its branch and a link."""
    assert view.comparison is not None
    facts, context = view.comparison.baseline, view.context
    day = wording.extract_day(facts.timestamp)
    details = [words for words in (wording.format_age(facts.age_days),) if words]
    if facts.commits_behind is not None:
        behind = f"{format_count(facts.commits_behind, 'commit')} behind"
        details.append(f"{behind} {format_code_span(context.branch)}" if context.branch else behind)
    branch = f" on {format_code_span(context.branch)}" if context.branch else ""
    run = f" {format_code_span(facts.sha[:7])}" if facts.sha else "" if day else f" {format_code_span(facts.run_id)}"
    name = f"baseline{run}{f' of {day}' if day else ''}{branch}"
    link = f" ([run]({context.baseline_run_url}))" if context.baseline_run_url else ""
    return ", ".join([name, *details]) + link
