"""Pull request comment and job summary in GitHub's Markdown.

What all rows of a table share is stated once above it. Untrusted text is escaped here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from eval_gate.errors import GateError
from eval_gate.gate.failure_causes import drop_error_prefix
from eval_gate.model.execution import Status
from eval_gate.reports import markdown_fragments
from eval_gate.reports.context import ReportContext
from eval_gate.reports.detail_levels import COMMENT_LIMIT, DETAIL_LEVELS, DetailLevel, render_within_limit
from eval_gate.reports.markdown_fragments import format_case_link, format_evidence_cell, format_name_link
from eval_gate.reports.template_engine import build_environment, tidy_markdown
from eval_gate.reports.text_difference import CONTEXT_CHARACTERS
from eval_gate.reports.view.behaviour_rows import BehaviourReport, BehaviourRow
from eval_gate.reports.view.groups import Cause, group_causes
from eval_gate.reports.view.report_view import OPEN_ROWS, ReportView
from eval_gate.reports.view.response_comparison import ComparedTurn, ResponseComparison
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.wording.advice import UNRELATED_TO_CHANGE, find_problem_owner
from eval_gate.reports.wording.metrics import MAX_METRIC_NAME, NO_EFFECT, MetricReport, MetricRow
from eval_gate.struct import FrozenStruct
from eval_gate.text import escape
from eval_gate.text.escape import escape_markdown, format_code_cell, format_code_span, format_count, shorten_error
from eval_gate.text.quoting import capitalize_first

if TYPE_CHECKING:
    from jinja2 import Environment


MAX_PROMPT: Final = 200
MAX_CHECKS: Final = 10
"""Checks that are named; the page has the rest."""
MAX_CHECK: Final = 160
SUMMARY_LIMIT: Final = 900_000
"""Characters of a job summary: GitHub drops a summary of more than a mebibyte."""
SUMMARY_LEVELS: Final = (
    DetailLevel(rows=2_000, names=2_000, warnings=200, responses=20),
    DetailLevel(rows=2_000, names=2_000, warnings=200),
    DetailLevel(rows=500, names=500, warnings=100),
    *DETAIL_LEVELS[1:],
)
MAX_EVIDENCE: Final = 200
MAX_EVIDENCE_TEXT: Final = 600
"""Characters of all evidence of a case."""
MAX_EVIDENCE_NAMES: Final = 20
"""Cases with the same evidence that are named."""
MAX_BEHAVIOUR_NAMES: Final = 3
"""Cases with the same change of behaviour that are named."""
_NONE: Final = "–"
_MIN_SHARED_ROWS: Final = 2
"""Fewest rows whose shared text is stated once above the table."""


def render_comment(view: ReportView, *, limit: int = COMMENT_LIMIT, start: int = 0) -> str:
    """Render the pull request comment in at most `limit` characters.

    It has the marker, the verdict and its reasons, the cases to look at, the next step, counts, warnings and
    provenance. `start` selects a later detail level, for another attempt after the comment was refused.
    """
    return _render_template("comment.md.j2", view, limit, DETAIL_LEVELS[start:])


def render_summary(view: ReportView, *, limit: int = SUMMARY_LIMIT) -> str:
    """Render the job summary in at most `limit` characters and at most `limit` bytes.

    It is the complete page: the rules, every case, the responses, and the grounds of the verdict.
    """
    text = ""
    for allowed in (limit, limit // 4):  # a character takes four bytes at most
        text = _render_template("summary.md.j2", view, allowed, SUMMARY_LEVELS)
        if len(text.encode()) <= limit:
            break
    return text


def render_problem(error: GateError, context: ReportContext, heading: str, *, as_comment: bool = False) -> str:
    """Render the page of a step that ended before it had a run; as a comment it begins with the marker."""
    marker = escape.format_comment_marker(context.comment_key) if as_comment else None
    lead = UNRELATED_TO_CHANGE if find_problem_owner(error).is_unrelated_to_change else None
    names = {"error": error, "context": context, "heading": heading, "marker": marker, "lead": lead}
    return tidy_markdown(get_environment().get_template("problem.md.j2").render(names))


def _render_template(name: str, view: ReportView, limit: int, ladder: tuple[DetailLevel, ...]) -> str:
    template = get_environment().get_template(name)
    return render_within_limit(
        lambda detail: tidy_markdown(template.render(_build_variables(view, detail))), limit, ladder
    )


@cache
def get_environment() -> Environment:
    """Return the cached template environment of comment, summary and problem page."""
    pieces = (
        *(
            markdown_fragments.format_case_link,
            markdown_fragments.format_row_count,
            markdown_fragments.format_names,
            markdown_fragments.format_names_with_evidence,
            markdown_fragments.format_names_with_results,
            markdown_fragments.format_names_by_reason,
        ),
        *(
            markdown_fragments.format_prose,
            markdown_fragments.format_prose_cell,
            markdown_fragments.format_sentence,
            markdown_fragments.format_setup_changes,
        ),
        *(
            markdown_fragments.format_evidence_cell,
            markdown_fragments.format_terms_cell,
            markdown_fragments.format_waiver,
        ),
        *(render_case_table, render_regression_table, render_score_table, render_cause_groups, render_flaky_table),
        *(group_rows, reject_rows, select_single_rows),
        *(render_responses, render_evidence, render_behaviour, render_metrics),
    )
    filters = {piece.__name__: piece for piece in pieces}
    return build_environment({**filters, "html": escape.escape_html, "block": escape.format_code_block}, html=False)


def _build_variables(view: ReportView, detail: DetailLevel) -> dict[str, object]:
    refresh = markdown_fragments.describe_branch_run(view.context)
    return {
        "view": view,
        "context": view.context,
        "detail": detail,
        "summary": view.summary,
        "marker": escape.format_comment_marker(view.context.comment_key),
        "open_rows": OPEN_ROWS,
        "current_title": "This PR" if view.context.base_branch else "This run",
        "links_line": markdown_fragments.format_links(view),
        "provenance": markdown_fragments.format_provenance(view),
        # numbers that differ in every run come last
        "spent": " · ".join(filter(None, [view.reruns, view.spending])),
        "baseline_words": markdown_fragments.describe_baseline(view) if view.comparison else None,
        "unmeasured_note": markdown_fragments.describe_unmeasured_runs(view),
        "older_note": markdown_fragments.describe_older_baseline(view),
        "refresh_note": f"To make a new baseline, {refresh}." if view.context.baseline_refresh else None,
        "stale_note": markdown_fragments.describe_stale_baseline(view) if view.baseline_is_stale else None,
    }


def render_responses(row: CaseRow, limit: int = CONTEXT_CHARACTERS) -> str:
    """Render the evidence, prompt, tool calls and difference of both responses as an escaped, folded section.

    Each response is limited to `limit` characters. Return an empty string if nothing is stored.
    """
    sides = row.response_comparison
    contents = ["evidence"] if row.evidence else []
    if sides is not None:
        contents.append("conversation" if sides.turn else "responses" if sides.has_baseline else "response")
    if not contents:
        return ""
    parts = [f"<details><summary>{escape.escape_html(row.label)}: {' and '.join(contents)}</summary>"]
    if row.evidence:
        parts.append(escape_markdown(row.evidence_sentences, MAX_EVIDENCE_TEXT))
    if sides is not None:
        parts += [*_format_prompt_lines(sides, row), *_format_responses(sides, limit)]
        parts += [sides.turn.later_turns] if sides.turn and sides.turn.later_turns else []
    links = [f"[Open the case]({row.page_url})"] if row.page_url else []
    if links := [*links, *markdown_fragments.iter_traces(row)]:
        parts.append(" · ".join(links))
    return "\n\n".join([*parts, "</details>"])


def render_evidence(rows: Sequence[CaseRow], limit: int, more: bool = False) -> str:  # noqa: FBT001, FBT002 (a filter)
    """Render the evidence of these cases as a folded list, one line for all cases with the same evidence.

    At most `limit` lines are listed. `more` means that the evidence of other cases precedes this. Return an empty
    string if no case has evidence.
    """
    groups: dict[str, list[CaseRow]] = defaultdict(list)
    for row in rows:
        if row.evidence:
            groups[row.evidence_sentences].append(row)
    if not groups:
        return ""
    lines = [
        f"- {markdown_fragments.format_names(members, MAX_EVIDENCE_NAMES)}: {escape_markdown(text, MAX_EVIDENCE_TEXT)}"
        for text, members in list(groups.items())[:limit]
    ]
    left_out = sum(len(members) for members in list(groups.values())[limit:])
    lines += [f"- and {format_count(left_out, 'more case')}"] if left_out else []
    number = sum(map(len, groups.values()))
    title = f"Evidence of {format_count(number, 'more case' if more else 'case')}"
    return "\n".join([f"<details><summary>{title}</summary>", "", *lines, "", "</details>"])


def render_behaviour(report: BehaviourReport, limit: int, current_title: str) -> str:
    """Render the table of passing cases that behave differently, at most `limit` rows."""
    lines, rows = [], report.rows[:limit]
    if rows:
        lines += [f"| Case | What is different | Baseline | {current_title} |", "|:--|:--|:--|:--|"]
        lines += map(_format_behaviour_row, rows)
    listed_keys = {case.key for row in rows for case in row.cases}
    if left_out := report.changes.cases - len(listed_keys):
        lines += ["", f"{format_count(left_out, 'more case')} not shown here."]
    return "\n".join([*lines, "", NO_EFFECT])


def _format_behaviour_row(row: BehaviourRow) -> str:
    names = escape.format_first_few(row.cases, MAX_BEHAVIOUR_NAMES, format_name_link)
    what = markdown_fragments.format_prose_cell(row.what)
    sides = (format_code_cell(side) if side is not None else _NONE for side in (row.baseline, row.current))
    return f"| {names} | {what} | {' | '.join(sides)} |"


def render_metrics(report: MetricReport, limit: int, current_title: str) -> str:
    """Render the table of evaluators and tags, at most `limit` rows, and what its marks say."""
    rows = report.select_rows(limit)
    lines = [
        f"| Evaluator or tag | Cases | Mean score, baseline → {current_title} | Pass rate | Difference (95 %) |",
        "|:--|--:|:--|:--|:--|",
        *map(_format_metric_row, rows),
    ]
    if left_out := report.changes.tested - len(rows):
        lines += ["", f"{format_count(left_out, 'more row')} not shown here."]
    return "\n".join([*lines, "", report.note])


def _format_metric_row(row: MetricRow) -> str:
    name = " ".join(filter(None, [row.mark, "tag" if row.is_tag else "", format_code_cell(row.name, MAX_METRIC_NAME)]))
    difference = f"**{row.difference}**" if row.mark else row.difference
    return f"| {name} | {row.cases} | {row.scores} | {row.pass_rates} | {difference} |"


def _format_prompt_lines(sides: ResponseComparison, row: CaseRow) -> list[str]:
    label, failure = row.split_failure()
    if label is None and row.failed_turn:  # the failure of a graded case begins with the evaluator that fell most
        label, _ = row.split_turn(f"turn {row.failed_turn}: ")
    kind = "Failed" if label is None else f"Failed in {label}" if label.startswith("turn") else capitalize_first(label)
    lines = [f"**{kind}:** {format_code_span(failure)}"] if failure else []
    if sides.turn:
        lines.append(_format_turn(sides.turn))
    elif sides.prompt:
        lines.append(f"**Prompt:** {escape.escape_markdown(sides.prompt, MAX_PROMPT)}")
    expectations = {
        "Expected": sides.expected if not sides.turn else (),
        "Expected before this change": sides.expected_before,
    }
    for title, checks in expectations.items():
        if checks:
            listed = escape.format_first_few(checks, MAX_CHECKS, lambda one: format_code_span(one, MAX_CHECK))
            lines.append(f"**{title}:** {listed}")
    if sides.call_changes:
        turn = sides.turn.number if sides.turn else None
        where = f" in turn {turn}" if row.failed_turn else " in all turns" if turn else ""
        lines.append(f"**Tool calls{where}:** {'; '.join(map(markdown_fragments.format_prose, sides.call_changes))}")
    return ["<br>\n".join(lines)] if lines else []


def _format_turn(turn: ComparedTurn) -> str:
    """Format what happened before the compared turn, and the user's message in it."""
    sides = [escape_markdown(turn.message, MAX_PROMPT)] if turn.message else []
    sides += [f"in the baseline: {escape_markdown(turn.baseline_message, MAX_PROMPT)}"] if turn.baseline_message else []
    messages = f"**Turn {turn.number}, the user:** {' · '.join(sides)}" if sides else ""
    return "<br>\n".join(filter(None, [turn.earlier_turns, messages]))


def _format_responses(sides: ResponseComparison, limit: int) -> list[str]:
    """Format the notes about the responses, then their difference, or the one response if there is no other."""
    difference = sides.compare_responses(limit)
    notes = [" ".join(sides.notes)] if sides.notes else []
    if difference is None:
        return notes
    if difference.is_equal or sides.baseline_response is None or sides.current_response is None:
        lines = "\n".join(line[2:] for line in difference.to_lines())
        return [*notes, escape.format_code_block(lines)] if lines.strip() else notes
    return [*notes, escape.format_code_block("\n".join(difference.to_lines()), language="diff")]


class _Column(FrozenStruct):
    """One column and its cells."""

    title: str
    align: str
    cell: Callable[[CaseRow], str]


def render_regression_table(rows: Sequence[CaseRow], title: str, current_title: str) -> str:
    """Render the table of regressions: what changed, and the results in the baseline and here."""
    columns = [
        _Column("What changed", ":--", _format_failure_cell),
        *_build_count_columns(current_title),
    ]
    return "\n".join(_render_table(rows, title, columns))


def _build_count_columns(current_title: str) -> list[_Column]:
    return [
        _Column("Baseline", "--:", lambda row: row.baseline_cell or _NONE),
        _Column(current_title, "--:", lambda row: row.current_cell or _NONE),
    ]


def render_case_table(
    rows: Sequence[CaseRow],
    title: str,
    compared: bool = True,  # noqa: FBT001, FBT002 (a filter)
    current_title: str = "This PR",
) -> str:
    """Render a table of cases with their evidence and failures.

    What all cases share is stated once above the table. If they share everything, the table is a list of names.
    """
    if not rows:
        return ""
    has_evidence = any(row.evidence for row in rows)
    shared = (
        [_Column("Evidence", ":--", format_evidence_cell)],
        lambda row: "; ".join(escape_markdown(words, MAX_EVIDENCE) for words in row.evidence_lines),
    )
    if not has_evidence:
        shared = _build_result_columns(compared=compared, current_title=current_title), lambda row: row.results
    what = _Column(f"What {'changed' if compared and not has_evidence else 'failed'}", ":--", _format_failure_cell)
    expected = _Column("Expected before", ":--", _format_expected_cell)
    changed = [([expected], _format_expected_cell)] if any(row.expected_before for row in rows) else []
    return _render_shared_table(rows, title, [([what], _format_failure), *changed, shared])


def _render_shared_table(
    rows: Sequence[CaseRow],
    title: str,
    parts: Sequence[tuple[Sequence[_Column], Callable[[CaseRow], str]]],
) -> str:
    """Render a table with the columns that all rows share stated once above it."""
    common, own = list[str](), list[_Column]()
    for columns, once in parts:
        if all(_is_uniform(rows, column) for column in columns):
            common.append(once(rows[0]))
        else:
            own += columns
    above = [f"**All {len(rows)}:** {' · '.join(common)}", ""] if common else []
    if not own:
        return "\n".join([*above, ", ".join(map(format_case_link, rows))])
    return "\n".join([*above, *_render_table(rows, title, own)])


def render_flaky_table(rows: Sequence[CaseRow], title: str) -> str:
    """Render a table of cases that are flaky on the default branch, with their histories."""
    history = _Column("History", ":--", lambda row: escape_markdown(row.flakiness or _NONE, MAX_EVIDENCE))
    columns = [_Column("What failed", ":--", _format_failure_cell)] if any(row.failures for row in rows) else []
    return "\n".join(_render_table(rows, title, [*columns, history]))


def render_score_table(rows: Sequence[CaseRow], title: str) -> str:
    """Render a table of graded cases with what they lack and their scores; what all share is stated once above it."""
    if not rows:
        return ""
    shortfalls = _Column("What lowers it", ":--", _format_failure_cell)
    scores = _Column("Score", "--:", lambda row: row.scores or _NONE)
    parts = [([shortfalls], _format_failure), ([scores], lambda row: row.scores or _NONE)]
    return _render_shared_table(rows, title, parts)


def group_rows(rows: Sequence[CaseRow]) -> tuple[Cause[CaseRow], ...]:
    """Group the rows of cases by the cause of their failures."""
    return group_causes((row, row.cause) for row in rows)


def reject_rows(rows: Sequence[CaseRow], excluded: Sequence[CaseRow]) -> list[CaseRow]:
    """Return the rows that are not among `excluded`."""
    return [row for row in rows if row not in excluded]


def select_single_rows(causes: Sequence[Cause[CaseRow]]) -> list[CaseRow]:
    """Select the rows whose cause no other row shares."""
    return [row for cause in causes if not cause.is_shared for row in cause.cases]


def render_cause_groups(
    causes: Sequence[Cause[CaseRow]], noun: str, detail: DetailLevel, current_title: str, total: int = 0
) -> str:
    """Render the causes of several cases, the most frequent first: what they share, and the name of each case.

    `noun` names one case, such as `regression`; `total` is the number of cases of the run if each cause states its
    share of them. A cause of a single case is left out, unless all are of one kind of error.
    """
    listed = [cause for cause in causes if cause.is_shared or total][: min(detail.rows, OPEN_ROWS)]
    blocks = [_render_cause_group(cause, noun, detail, current_title, total) for cause in listed]
    if left_out := sum(cause.is_shared or bool(total) for cause in causes) - len(listed):
        blocks.append(f"{format_count(left_out, 'more cause')} not shown.")
    return "\n\n".join(blocks)


def _render_cause_group(cause: Cause[CaseRow], noun: str, detail: DetailLevel, current_title: str, total: int) -> str:
    facts = "" if total else _format_shared_facts(cause.cases, current_title)
    number = f"{cause.count} of {format_count(total, 'case')}" if total else _count_group(cause, noun)
    lines = [f"**{number}:** {format_code_span(shorten_error(drop_error_prefix(cause.text)))}{facts}"]
    if cause.count == 1:
        return f"{lines[0]}: {format_name_link(cause.cases[0])}{markdown_fragments.format_trace_link(cause.cases[0])}"
    if cause.values and cause.count <= OPEN_ROWS:
        columns = [_Column("What failed", ":--", _format_failure_cell)]
        columns += [] if facts or total else _build_count_columns(current_title)
        return "\n".join([*lines, "", *_render_table(cause.cases, noun.capitalize(), columns)])
    values = [f"{format_code_span(shorten_error(value.text))} ({value.count})" for value in cause.values]
    values += [format_count(cause.rest, "other value")] if cause.rest else []
    lines += ["", ", ".join(values)] if values else []
    names = [format_name_link(row) for row in cause.cases[: detail.names + OPEN_ROWS]]
    more = cause.count - OPEN_ROWS
    lines += ["", f"{', '.join(names[:OPEN_ROWS])}{f' and {more} more' if more > 0 else ''}"]
    if len(names) > OPEN_ROWS:
        unnamed = f" and {cause.count - len(names)} more" if cause.count > len(names) else ""
        title = f"{format_count(more, 'more case')} with this cause"
        folded = f"{', '.join(names[OPEN_ROWS:])}{unnamed}"
        lines += ["", f"<details><summary>{title}</summary>", "", folded, "", "</details>"]
    return "\n".join(lines)


def _count_group(cause: Cause[CaseRow], noun: str) -> str:
    """Count the cases of a cause: `3 regressions, 9 more suspected`; those without a score are just cases."""
    suspected = sum(row.suspected for row in cause.cases)
    if all(row.status is Status.ERROR for row in cause.cases):
        return f"{format_count(cause.count, 'case')}{f', {suspected} of them not re-run' if suspected else ''}"
    if not suspected:
        return format_count(cause.count, noun)
    confirmed = cause.count - suspected
    return f"{format_count(confirmed, noun)}, {suspected} more suspected" if confirmed else f"{suspected} suspected"


def _format_shared_facts(rows: Sequence[CaseRow], current_title: str) -> str:
    """Format what the re-run cases of a cause all show: ` · each: baseline 3 of 3 pass, this PR 0 of 3 pass`."""
    if expected := rows[0].expected_before:
        is_shared = all(row.expected_before == expected for row in rows)
        return f" · expected before: {format_code_span(expected, MAX_CHECK)}" if is_shared else ""
    confirmed = [row for row in rows if not row.suspected] or rows
    sides = {(row.baseline_cell, row.current_cell) for row in confirmed}
    if len(sides) > 1:
        return ""
    baseline, current = sides.pop()
    current_text = f"{current_title[:1].lower()}{current_title[1:]} {current}" if current else None
    return f" · each: {', '.join(filter(None, [baseline and f'baseline {baseline}', current_text]))}" if current else ""


def _build_result_columns(*, compared: bool, current_title: str) -> list[_Column]:
    current = _Column(current_title, "--:", lambda row: row.current_result or _NONE)
    return [_Column("Baseline", "--:", lambda row: row.baseline_result or _NONE), current] if compared else [current]


def _format_failure_cell(row: CaseRow) -> str:
    user = f"<br>{row.user_change}" if row.user_change else ""
    return f"{_format_failure(row, format_code_cell)}{user}" if row.failures else _NONE


def _format_expected_cell(row: CaseRow) -> str:
    return format_code_cell(row.expected_before, MAX_CHECK) if row.expected_before else _NONE


def _format_failure(row: CaseRow, format_code: Callable[[str], str] = format_code_span) -> str:
    label, failure = row.split_failure()
    text = format_code(failure or "no reason given")
    return f"**{label}:** {text}" if label else text


def _is_uniform(rows: Sequence[CaseRow], column: _Column) -> bool:
    return len(rows) >= _MIN_SHARED_ROWS and len({column.cell(row) for row in rows}) == 1


def _render_table(rows: Sequence[CaseRow], title: str, columns: Sequence[_Column]) -> list[str]:
    head = "".join(f" {column.title} |" for column in columns)
    rule = "".join(f"{column.align}|" for column in columns)
    cells = ("".join(f" {column.cell(row)} |" for column in columns) for row in rows)
    body = [f"| {format_case_link(row)} |{row_text}" for row, row_text in zip(rows, cells, strict=True)]
    return [f"| {title} |{head}", f"|:--|{rule}", *body]
