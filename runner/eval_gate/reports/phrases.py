"""Pieces of Markdown that say one thing: a linked case, a list of names, where a result comes from.

Foreign text in them is escaped here; the templates place them as they are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Final

from eval_gate.model.comparison import Outcome
from eval_gate.model.result import StaleFact, StaleKind
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.view.view import View
from eval_gate.reports.words import numbers as wording
from eval_gate.reports.words import verdict
from eval_gate.reports.words.headline import commits_before
from eval_gate.reports.words.measured import MAX_NAMED, MeasuredWords
from eval_gate.reports.words.waivers import WaiverWords
from eval_gate.text.escape import code_cell, code_span, cut, plain

MAX_SENTENCE: Final = 400
MAX_REASONS: Final = 5
"""Reasons that a list of cases names."""
MAX_WHY: Final = 200
"""Characters of what was seen of a case, and of each remark on it."""
MAX_BY: Final = 60
_FEW: Final = 3


def name_link(row: CaseRow) -> str:
    """The case's name as code for a cell, linked to its place in the page; to its line where no page opens."""
    shown, url = code_cell(row.label), row.page or row.url
    return f"[{shown}]({url})" if url else shown


def case_link(row: CaseRow) -> str:
    """The same, with its line of the eval file beside it as a small link, and a word where it is stale."""
    line = f" <sub>[L{row.location.line}]({row.url})</sub>" if row.page and row.url and row.location else ""
    return f"{name_link(row)}{line}{' (suspected)' if row.suspected else ''}{' stale' if row.stale else ''}"


def suspected_words(rows: Sequence[CaseRow]) -> str:
    """`, 9 of them suspected`; empty where none is."""
    number = sum(row.suspected for row in rows)
    return f", {number} of them suspected" if number else ""


def links_line(view: View) -> str:
    """Where to go from here, in one line: the report, and the page of documentation about this state.

    Empty where no address is known.
    """
    context = view.context
    parts = [f"**[Open the report]({context.page_url})**"] if context.page_url else []
    if not parts and context.report_url:
        parts = [f"[Download the report]({context.report_url}) (a zip)"]
    if view.explained and context.docs_url:
        parts.append(f"[{view.explained.words}]({context.docs_url}/{view.explained.target})")
    return " · ".join(parts)


def why_cell(row: CaseRow) -> str:
    """What was seen of the case, a line for each."""
    said = [plain(words, MAX_WHY) for words in row.seen_lines]
    said += [code_cell(row.what)] if row.what and row.waived else []  # whose table has no room for more
    return "<br>".join(said)


def terms_cell(waiver: WaiverWords) -> str:
    """`accepted until 2026-12-05, 14 days left`, who said so, and where."""
    new = "<br>**new in this pull request**" if waiver.new else ""
    return f"{waiver.done} until {waiver.until}<br>{_source(waiver)}{new}"


def entry_line(waiver: WaiverWords) -> str:
    """An entry as a whole: its id or glob, terms, the cases that fail, and the reason."""
    cases = f", about {', '.join(map(code_span, waiver.cases))}" if waiver.cases else ""
    terms = f"{waiver.done} until {waiver.until}, {_source(waiver)}"
    return f"{code_span(waiver.named)}: {terms}{cases}: {plain(waiver.reason, MAX_WHY)}"


def _source(waiver: WaiverWords) -> str:
    """Who said so, and where: a link where that is on this server."""
    by = f"by {plain(waiver.by, MAX_BY)}, " if waiver.by else ""
    if waiver.url is None:
        return f"{by}{code_cell(waiver.where)}"
    return f"{by}[{'comment' if waiver.url == waiver.where else code_cell(waiver.where)}]({waiver.url})"


def names(rows: Sequence[CaseRow], limit: int) -> str:
    """`a`, `b` and 3 more; graded cases with their scores: `a` 0.60 → 0.55 (−0.05)."""
    return _names(rows, limit, lambda row: row.scores or "")


def names_seen(rows: Sequence[CaseRow], limit: int) -> str:
    """The same with what was seen: `a` (passed 6 of 6 here, 2 of 20 on main)."""
    return _names(rows, limit, lambda row: f"({plain(row.why_words, MAX_WHY)})" if row.evidence else row.scores or "")


def names_here(rows: Sequence[CaseRow], limit: int) -> str:
    """`a` (crashed), `b` (unreachable)."""
    return _names(rows, limit, lambda row: f"({row.here})" if row.here else "")


def _names(rows: Sequence[CaseRow], limit: int, details: Callable[[CaseRow], str]) -> str:
    shown = ", ".join(f"{code_span(row.label)} {details(row)}".rstrip() for row in rows[:limit])
    rest = len(rows) - limit
    if rest <= 0:
        return shown
    return f"{shown} and {rest} more" if shown else wording.count(rest, "case")


def names_by_reason(rows: Sequence[CaseRow], limit: int) -> str:
    """`a`, `b` (needs a judge); `c` (no question)."""
    groups: dict[str, list[CaseRow]] = defaultdict(list)
    for row in rows:
        groups[row.reason or row.what or "no reason was given"].append(row)
    shown = [f"{names(members, limit)} ({plain(reason)})" for reason, members in list(groups.items())[:MAX_REASONS]]
    left_out = sum(len(members) for members in list(groups.values())[MAX_REASONS:])
    return "; ".join([*shown, *([f"{wording.count(left_out, 'case')} for other reasons"] if left_out else [])])


def prose(words: str, limit: int = MAX_SENTENCE) -> str:
    """Half a sentence that has names in backticks; whatever stands between two of them is code."""
    pieces = re.split(r"`([^`]*)`", cut(words, limit))
    return "".join(code_span(piece) if place % 2 else _between(piece) for place, piece in enumerate(pieces))


def measured_block(found: MeasuredWords, names: int = MAX_NAMED) -> str:
    """What differs in how the run was measured, in one paragraph; more than a few things as a list."""
    sign = "⚠️ " if found.alarming else ""
    said = [prose(line) for line in found.lines(names)]
    several = len(said) > _FEW
    shown = "\n" + "".join(f"\n- {words}" for words in said) if several else f" {' · '.join(said)}"
    return f"{sign}**{found.title}**{found.remark}:{shown}"


def _between(text: str) -> str:
    """Escaped, with the blanks at its ends."""
    before, after = (" " if text[:1].isspace() else ""), (" " if text[1:][-1:].isspace() else "")
    return f"{before}{plain(text, MAX_SENTENCE)}{after}"


def sentence(words: str) -> str:
    """Half a sentence of a verdict or a note as a whole one."""
    return plain(verdict.sentence(words), MAX_SENTENCE)


def staleness(fact: StaleFact) -> str:
    """One fact as half a sentence."""
    recorded, current = (code_span(value or "unknown") for value in (fact.recorded, fact.current))
    match fact.kind:
        case StaleKind.DESCRIPTION:
            return f"generated for description {recorded}, now {current}; results may not reflect the current contract"
        case StaleKind.REGISTRY_SIZE:
            grown = f"the registry grew from {plain(fact.recorded or '?')} to {plain(fact.current or '?')} tools"
            return f"{grown}: `toolsAcceptable` sets may be too narrow"
        case StaleKind.VERSION:
            return f"generated for version {recorded}, now {current}: the schema may have changed"
        case StaleKind.MISSING:
            return "the tool is not in the registry"
        case StaleKind.STATUS:
            return f"the tool is {plain(fact.current or 'not in use')}"


def stale_baseline(view: View) -> str:
    """How old the baseline is, both limits, and the remedy."""
    assert view.comparison is not None
    facts, context = view.comparison.baseline, view.context
    branch = code_span(context.branch) if context.branch else "the default branch"
    parts = []
    if facts.age_days is not None:
        parts.append(f"**{wording.age(facts.age_days)}** (limit {context.max_baseline_age_days:g} days)")
    if facts.commits_behind is not None:
        behind = wording.count(facts.commits_behind, "commit")
        parts.append(f"**{behind} behind** {branch} (limit {context.max_baseline_commits})")
    remedy = (
        f"run [the workflow]({context.workflow_url}) on {branch}" if context.workflow_url else f"run it on {branch}"
    )
    why = f"Differences may come from {branch}, not from this change."
    return f"The baseline is {' and '.join(parts)}. {why} Refresh: {remedy}."


def unmeasured_words(view: View, mark: Callable[[str], str] = code_span) -> str | None:
    """Which runs of the baseline's branch were passed over because they could not be measured; None where none was.

    `mark` sets off names and commits as the place where the sentence stands does it.
    """
    if view.comparison is None or not view.comparison.baseline.unmeasured:
        return None
    facts = view.comparison.baseline
    first, more = facts.unmeasured[0], len(facts.unmeasured) > 1
    branch = view.context.branch
    sha = mark(first.sha[:7] if first.sha else first.run_id[:40])
    if branch:
        runs = (
            f"newest {len(facts.unmeasured)} runs before this change"
            if more
            else f"newest run before this change, {sha},"
        )
        which = f"{mark(branch)}'s {runs}"
    else:  # there may be others between them: `latest` passes over red ones too
        which = f"{len(facts.unmeasured)} newer runs" if more else f"A newer run, {sha},"
    judged = (
        f"{'in ' + sha + ' ' if more else ''}{first.judged} of {wording.count(first.cases, 'case')} could be judged"
    )
    compared = mark(facts.sha[:7] if facts.sha else facts.run_id[:40])
    return f"{which} could not be measured: {judged}. Compared with {compared}."


def older_baseline(view: View, mark: Callable[[str], str] = code_span) -> str | None:
    """Which commits of the base have no result and count here too, where something is red; else None.

    `mark` as for `unmeasured_words`.
    """
    if view.comparison is None or (view.verdict.outcome is Outcome.PASS and not view.regressions):
        return None
    counted, base = commits_before(view.run), view.comparison.baseline.base_sha or ""
    if counted is None:
        return None
    commits, it = wording.count(counted[0], "commit"), "it" if counted[0] == 1 else "they"
    what = f"what {it} did counts here too ({mark(counted[1])})"
    if view.run.sha == base:
        return f"Between the baseline and {mark(base[:7])} {'is' if counted[0] == 1 else 'are'} {commits}: {what}"
    return (
        f"{mark(base[:7])}, which this change is held against, has no result of its own. The baseline is {commits}"
        f" older: {what}"
    )


def provenance(view: View) -> str:
    """What was evaluated and compared with, in one line; addresses only where they are known."""
    context, parts = view.context, []
    if view.undecided:
        parts.append(f"Exit code {int(view.verdict.exit_code)}")
    sha = context.head_sha or view.run.sha
    parts.append(f"Evaluated {code_span(sha[:7])}{_into(view)}" if sha else f"Run {code_span(view.run.run_id)}")
    if view.comparison is not None:
        parts.append(baseline(view))
    for words, url in (("stored result", context.report_url), ("this run", context.run_url)):
        if url:
            parts.append(f"[{words}]({url})")
    parts.append(f"eval-gate {plain(view.run.tool.version)}")
    return " · ".join(parts)


def _into(view: View) -> str:
    """What is evaluated beside the head: nothing, or the base branch as it was merged with it."""
    context, base = view.context, view.comparison.baseline.base_sha if view.comparison else None
    if context.is_believed and context.workspace_sha:
        believed = (
            f" (nothing here names the commit: the workflow's {code_span(context.workspace_sha[:7])} is believed)"
        )
    else:
        believed = ""
    if not (context.base_branch and context.head_sha):
        return believed
    branch = code_span(context.base_branch)
    if context.workspace_sha == context.head_sha:
        return f", not merged into {branch} yet{believed}"
    at = f" at {code_span(base[:7])}" if base and context.workspace_sha else ""
    return f" merged into {branch}{at}{believed}"


def spent(view: View) -> str:
    """What the run took, in one line: it is other numbers every time, and stands where nobody looks for news."""
    return " · ".join(filter(None, [view.reruns, view.spending]))


def baseline(view: View) -> str:
    """Which run this one is compared with, how old it is, and where it can be seen."""
    assert view.comparison is not None
    facts, context = view.comparison.baseline, view.context
    day = wording.day_of(facts.timestamp)
    details = [words for words in (wording.age(facts.age_days),) if words]
    if facts.commits_behind is not None:
        details.append(f"{wording.count(facts.commits_behind, 'commit')} behind")
    branch = f" on {code_span(context.branch)}" if context.branch else ""
    name = f"baseline {code_span(facts.sha[:7] if facts.sha else facts.run_id)}{f' of {day}' if day else ''}{branch}"
    link = f" ([run]({context.baseline_run_url}))" if context.baseline_run_url else ""
    return ", ".join([name, *details]) + link
