"""Pull request comment and job summary in GitHub's Markdown.

What all rows of a table share stands once above it. Untrusted text is escaped here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from eval_gate.errors import GateError
from eval_gate.gate.failure_causes import drop_error_prefix
from eval_gate.reports import markdown_fragments
from eval_gate.reports.context import ReportContext
from eval_gate.reports.detail_levels import COMMENT_LIMIT, DETAIL_LEVELS, DetailLevel, render_within_limit
from eval_gate.reports.markdown_fragments import format_case_link, format_evidence_cell, format_name_link
from eval_gate.reports.template_engine import build_environment, tidy_markdown
from eval_gate.reports.text_difference import CONTEXT_CHARACTERS
from eval_gate.reports.view.behaviour_rows import BehaviourReport, BehaviourRow
from eval_gate.reports.view.groups import Cause
from eval_gate.reports.view.metric_rows import MetricReport, MetricRow
from eval_gate.reports.view.report_view import OPEN_ROWS, ReportView
from eval_gate.reports.view.response_comparison import ResponseComparison
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.wording.advice import UNRELATED_TO_CHANGE, find_problem_owner
from eval_gate.reports.wording.behaviour import NO_EFFECT
from eval_gate.reports.wording.metrics import MAX_METRIC_NAME
from eval_gate.reports.wording.numbers import format_count
from eval_gate.struct import FrozenStruct
from eval_gate.text import escape
from eval_gate.text.escape import escape_markdown, format_code_cell, format_code_span

if TYPE_CHECKING:
    from jinja2 import Environment


MAX_PROMPT: Final = 200
MAX_CHECKS: Final = 3
"""Checks that are named; the rest is in the page."""
MAX_CHECK: Final = 160
SUMMARY_LIMIT: Final = 900_000
"""Characters of a job summary. Beyond a mebibyte GitHub drops all of it, and a character may be more than a byte."""
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
_MIN_SHARED_ROWS: Final = 3
"""Fewest rows whose shared text stands once above the table."""


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
    marker = escape.to_comment_key(context.comment_key) if as_comment else None
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
            markdown_fragments.format_suspected_count,
            markdown_fragments.format_names,
            markdown_fragments.format_names_with_evidence,
            markdown_fragments.format_names_with_results,
            markdown_fragments.format_names_by_reason,
        ),
        *(
            markdown_fragments.format_prose,
            markdown_fragments.format_sentence,
            markdown_fragments.format_setup_changes,
            markdown_fragments.describe_stale_fact,
        ),
        *(
            markdown_fragments.format_evidence_cell,
            markdown_fragments.format_terms_cell,
            markdown_fragments.format_waiver,
        ),
        *(render_case_table, render_regression_table, render_score_table, render_cause_table, render_cause_lines),
        *(render_responses, render_evidence, render_behaviour, render_metrics),
    )
    filters = {piece.__name__: piece for piece in pieces}
    return build_environment({**filters, "html": escape.escape_html, "block": escape.format_code_block}, html=False)


def _build_variables(view: ReportView, detail: DetailLevel) -> dict[str, object]:
    return {
        "view": view,
        "context": view.context,
        "detail": detail,
        "summary": view.summary,
        "marker": escape.to_comment_key(view.context.comment_key),
        "open_rows": OPEN_ROWS,
        "current_title": "This PR" if view.context.base_branch else "This run",
        "links_line": markdown_fragments.format_links(view),
        "provenance": markdown_fragments.format_provenance(view),
        "spent": markdown_fragments.format_spending(view),
        "baseline_words": markdown_fragments.describe_baseline(view) if view.comparison else None,
        "unmeasured_note": markdown_fragments.describe_unmeasured_runs(view),
        "older_note": markdown_fragments.describe_older_baseline(view),
        "refresh_note": markdown_fragments.describe_refresh(view),
        "stale_note": markdown_fragments.describe_stale_baseline(view) if view.baseline_is_stale else None,
    }


def render_responses(row: CaseRow, around: int = CONTEXT_CHARACTERS) -> str:
    """Render the evidence, prompt, tool calls and difference of both responses as an escaped, folded section.

    Each response is limited to `around` characters. Return an empty string if nothing is stored that could be
    shown.
    """
    sides = row.response_comparison
    shown = ["evidence"] if row.evidence else []
    if sides is not None:
        shown.append("responses" if sides.has_baseline else "response")
    if not shown:
        return ""
    parts = [f"<details><summary>{escape.escape_html(row.label)}: {' and '.join(shown)}</summary>"]
    if row.evidence:
        parts.append(escape_markdown(row.evidence_sentences, MAX_EVIDENCE_TEXT))
    if sides is not None:
        parts += [*_format_prompt_lines(sides), *_format_responses(sides, around)]
    if row.page_url:
        parts.append(f"[Open the case]({row.page_url})")
    return "\n\n".join([*parts, "</details>"])


def render_evidence(rows: Sequence[CaseRow], limit: int, more: bool = False) -> str:  # noqa: FBT001, FBT002 (a filter)
    """Render the evidence of these cases as a folded list, one line for all cases with the same evidence.

    At most `limit` lines are listed. `more` means that the evidence of other cases stands above. Return an empty
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


def render_behaviour(found: BehaviourReport, limit: int, current_title: str) -> str:
    """Render the table of passing cases that behave differently, at most `limit` rows, and what differs in most."""
    lines, rows = [], found.rows[:limit]
    if rows:
        lines += [f"| Case | What is different | Baseline | {current_title} |", "|:--|:--|:--|:--|"]
        lines += map(_format_behaviour_row, rows)
    shown = {case.key for row in rows for case in row.cases}
    if left_out := found.found.cases - len(shown):
        lines += ["", f"{format_count(left_out, 'more case')} not shown here."]
    for words in found.widespread[: limit or 1]:
        lines += ["", markdown_fragments.format_prose(words)]
    return "\n".join([*lines, "", NO_EFFECT])


def _format_behaviour_row(row: BehaviourRow) -> str:
    names = escape.format_first_few(row.cases, MAX_BEHAVIOUR_NAMES, format_name_link)
    what = markdown_fragments.format_prose(row.what).replace("|", "\\|")  # only within code are there any left
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
    if left_out := report.found.tested - len(rows):
        lines += ["", f"{format_count(left_out, 'more row')} not shown here."]
    return "\n".join([*lines, "", report.note])


def _format_metric_row(row: MetricRow) -> str:
    name = " ".join(filter(None, [row.mark, "tag" if row.is_tag else "", format_code_cell(row.name, MAX_METRIC_NAME)]))
    difference = f"**{row.difference}**" if row.mark else row.difference
    return f"| {name} | {row.cases} | {row.scores} | {row.pass_rates} | {difference} |"


def _format_prompt_lines(sides: ResponseComparison) -> list[str]:
    said = []
    if sides.question:
        said.append(f"**Prompt:** {escape.escape_markdown(sides.question, MAX_PROMPT)}")
    if sides.expected:
        expected = escape.format_first_few(
            sides.expected, MAX_CHECKS, lambda one: escape.format_code_span(one, MAX_CHECK)
        )
        said.append(f"**Expected:** {expected}")
    if sides.call_changes:
        said.append(f"**Tool calls:** {'; '.join(map(markdown_fragments.format_prose, sides.call_changes))}")
    return ["<br>\n".join(said)] if said else []


def _format_responses(sides: ResponseComparison, around: int) -> list[str]:
    """Format the notes about the responses, then their difference.

    If only one side has a response, format that one. Equal responses are shown once.
    """
    found = sides.compare_responses(around)
    notes = [" ".join(sides.notes)] if sides.notes else []
    if found is None:
        return notes
    if found.is_equal or sides.baseline_response is None or sides.current_response is None:
        lines = "\n".join(line[2:] for line in found.to_lines())
        return [*notes, escape.format_code_block(lines)] if lines.strip() else notes
    return [*notes, escape.format_code_block("\n".join(found.to_lines()), language="diff")]


class _Column(FrozenStruct):
    """One column and its cells."""

    title: str
    align: str
    cell: Callable[[CaseRow], str]


def render_regression_table(rows: Sequence[CaseRow], title: str, current_title: str) -> str:
    """Render the table of regressions: what each case did before, what it did here, and what changed."""
    columns = [
        _Column("Baseline", "--:", lambda row: row.baseline_cell or _NONE),
        _Column(current_title, "--:", lambda row: row.current_cell or _NONE),
        _Column("What changed", ":--", _format_failure_cell),
    ]
    return "\n".join(_render_table(rows, title, columns))


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
    by_record = any(row.evidence for row in rows)
    seen = (
        [_build_evidence_column(rows)]
        if by_record
        else _build_result_columns(compared=compared, current_title=current_title)
    )
    what = _Column(f"What {'changed' if compared and not by_record else 'failed'}", ":--", _format_failure_cell)
    said, own = [], []
    for columns, once in ((seen, _format_evidence if by_record else _format_results), ([what], _format_failure)):
        if all(_is_uniform(rows, column) for column in columns):
            said.append(once(rows[0]))
        else:
            own += columns
    above = [f"**All {len(rows)}:** {' · '.join(said)}", ""] if said else []
    if not own:
        return "\n".join([*above, ", ".join(map(format_case_link, rows))])
    most = _format_common_evidence(rows) if by_record and seen[0] in own else ""
    return "\n".join([*above, *([most, ""] if most else []), *_render_table(rows, title, own)])


def render_score_table(rows: Sequence[CaseRow], title: str) -> str:
    """Render a table of graded cases with their scores, and what they lack."""
    scores = _Column("Score", "--:", lambda row: row.scores or _NONE)
    missing = _Column("What is missing", ":--", _format_failure_cell)
    return "\n".join(_render_table(rows, title, [scores, missing]))


def render_cause_table(causes: Sequence[Cause[CaseRow]], limit: int) -> str:
    """Render a table of at most `limit` causes: the check, its message, the number of cases, and examples.

    Causes come in the given order, the most frequent first.
    """
    lines = ["| Cause | Cases | For example |", "|:--|--:|:--|"]
    for cause in causes[:limit]:
        examples = ", ".join(map(format_name_link, cause.examples))
        lines.append(f"| {_format_cause(cause)} | {cause.count} | {examples} |")
    if len(causes) > limit:
        lines += ["", f"{format_count(len(causes) - limit, 'more cause')} not shown."]
    return "\n".join(lines)


def render_cause_lines(causes: Sequence[Cause[CaseRow]], total: int, limit: int) -> str:
    """Render one line for each cause: its text, its number of all `total` cases, and its first cases."""
    lines = []
    for cause in causes[:limit]:
        names = ", ".join(map(format_name_link, cause.examples))
        first = f": {names}" if cause.names_all else f", first {names}, …"
        values = [f"{format_code_span(value.text)} ({value.count})" for value in cause.values]
        values += [f"{format_count(cause.rest, 'other value')}"] if cause.rest else []
        number = f"{cause.count} of {format_count(total, 'case')}"
        details = f" ({', '.join(values)})" if values else ""
        text = format_code_span(drop_error_prefix(cause.text))
        lines.append(f"- {text}{details} in {number}{first}")
    if len(causes) > limit:
        lines.append(f"- and {format_count(len(causes) - limit, 'more cause')}")
    return "\n".join(lines)


def _format_cause(cause: Cause[CaseRow]) -> str:
    said = [f"{format_code_cell(value.text)} ({value.count})" for value in cause.values]
    rest = f"<br>and {format_count(cause.rest, 'other value')}" if cause.rest else ""
    return format_code_cell(cause.text) + "".join(f"<br>{words}" for words in said) + rest


_AS_MOST: Final = "see above"


def _build_evidence_column(rows: Sequence[CaseRow]) -> _Column:
    common = _find_common_evidence(rows)

    def cell(row: CaseRow) -> str:
        return _AS_MOST if common is not None and row.evidence_lines == common else format_evidence_cell(row)

    return _Column("Evidence", ":--", cell)


def _format_evidence(row: CaseRow) -> str:
    return "; ".join(escape_markdown(words, MAX_EVIDENCE) for words in row.evidence_lines)


def _find_common_evidence(rows: Sequence[CaseRow]) -> tuple[str, ...] | None:
    """Find the evidence that most rows share.

    Return None if all rows share it, at most half of them do, or too few to be worth stating.
    """
    lines, number = Counter(row.evidence_lines for row in rows).most_common(1)[0]
    return lines if _MIN_SHARED_ROWS <= number < len(rows) and number * 2 > len(rows) else None


def _format_common_evidence(rows: Sequence[CaseRow]) -> str:
    """`**11 of these 12:** failed 3 of 3 here, 0 of 3 on main`."""
    common = _find_common_evidence(rows)
    if common is None:
        return ""
    equal = [row for row in rows if row.evidence_lines == common]
    return f"**{len(equal)} of these {len(rows)}:** {_format_evidence(equal[0])}"


def _build_result_columns(*, compared: bool, current_title: str) -> list[_Column]:
    here = _Column(current_title, "--:", lambda row: row.current_result or _NONE)
    return [_Column("Baseline", "--:", lambda row: row.baseline_result or _NONE), here] if compared else [here]


def _format_results(row: CaseRow) -> str:
    """`pass → fail`, `fail`."""
    return " → ".join(filter(None, [row.baseline_result, row.current_result]))


def _format_failure_cell(row: CaseRow) -> str:
    return format_code_cell(row.failure_summary) if row.failure_summary else _NONE


def _format_failure(row: CaseRow) -> str:
    return format_code_span(row.failure_summary or "no reason given")


def _is_uniform(rows: Sequence[CaseRow], column: _Column) -> bool:
    return len(rows) >= _MIN_SHARED_ROWS and len({column.cell(row) for row in rows}) == 1


def _render_table(rows: Sequence[CaseRow], title: str, columns: Sequence[_Column]) -> list[str]:
    head = "".join(f" {column.title} |" for column in columns)
    rule = "".join(f"{column.align}|" for column in columns)
    cells = ("".join(f" {column.cell(row)} |" for column in columns) for row in rows)
    body = [f"| {format_case_link(row)} |{shown}" for row, shown in zip(rows, cells, strict=True)]
    return [f"| {title} |{head}", f"|:--|{rule}", *body]
