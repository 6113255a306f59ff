"""Wording for waivers: who waived a failure, why, until when, and how to waive more.

The texts contain untrusted text unescaped; the caller escapes it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from eval_gate.gate.must_pass import find_must_pass_cases
from eval_gate.gate.waivers.case_names import find_name_problem
from eval_gate.gate.waivers.waive_command import format_waive_command
from eval_gate.gate.waivers.wording import (
    KIND_WORDS,
    MAX_NAMED,
    format_author,
    format_terms,
    format_waiver_place,
    format_warnings,
)
from eval_gate.model.case import CaseKey, Location
from eval_gate.model.comparison import CaseClass, Outcome, RuleCode
from eval_gate.model.result import RunResult
from eval_gate.model.waiver import (
    AppliedWaivers,
    CommentOrigin,
    FileOrigin,
    WaivedCase,
    WaiverEntry,
    WaiverKind,
    WaiverStanding,
    WaiverState,
)
from eval_gate.reports.context import ReportContext
from eval_gate.reports.links import build_line_url
from eval_gate.reports.run_statistics import select_counted_changes
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import format_count
from eval_gate.text.globs import escape_glob
from eval_gate.text.shell import format_shell_line

_URL_PATH: Final = re.compile(r"[A-Za-z0-9._~/?#=&%-]{1,500}", re.ASCII)
"""Characters of a path on GitHub, without those that end a link."""
_NOT_NEW: Final = frozenset({WaiverState.PROPOSED, WaiverState.EXPIRED})
"""States of new entries that have a text of their own, or no effect."""
MAX_CASES: Final = 10
"""Maximum cases in the offered command."""
MAX_COMMAND: Final = 1_500
"""Characters of the command."""
REASON: Final = "<reason>"
"""Placeholder that the author of the comment replaces."""
_DEFAULT_PERIOD: Final = "14d"


class WaiverText(FrozenStruct):
    """Texts of one waiver."""

    kind: WaiverKind
    effect: str
    """`waived`, `quarantined`; `would be waived` if the waiver does not count."""
    expiry: str
    """`2026-12-05, 14 days left`."""
    author: str
    """`@ada` for a GitHub login, `Kim` for a name in a file; empty if it is unknown."""
    place: str
    """`.eval-gate/waivers.yaml:12`, or the URL of the comment."""
    url: str | None
    reason: str
    pattern: str
    """The id or glob in the waiver."""
    cases: tuple[str, ...]
    """The first few of its cases that fail."""
    terms: str
    """All of it in one line."""
    new: bool = False


class WaiverReport(FrozenStruct):
    """Waivers of a run as its reports show them: by case, added, proposed, and warnings."""

    by_case: Mapping[tuple[str, str], WaiverText]
    """Waiver of each waived case, by its eval file and id."""
    added: tuple[WaiverText, ...] = ()
    """Waivers that this pull request adds, whatever their effect on this run."""
    proposed: tuple[WaiverText, ...] = ()
    """Waivers that this pull request proposes; only those of the base branch count."""
    warnings: tuple[str, ...] = ()


def build_waiver_report(run: RunResult, context: ReportContext) -> WaiverReport:
    """Build the report of the waivers of a run: by case, new, proposed, and their warnings."""
    waiving = run.waivers
    if waiving is None:
        return WaiverReport({})
    words = [_build_waiver_text(entry, context) for entry in waiving.entries]
    both = list(zip(waiving.entries, words, strict=True))
    return WaiverReport(
        by_case={(one.suite, one.case_id): words[one.entry] for one in _iter_valid(waiving)},
        added=tuple(text for entry, text in both if entry.waiver.is_new and entry.state not in _NOT_NEW),
        proposed=tuple(text for entry, text in both if entry.state is WaiverState.PROPOSED),
        warnings=format_warnings(waiving, excluded_states={WaiverState.PROPOSED}),
    )


def format_waived_counts(run: RunResult) -> tuple[str, ...]:
    """Count the waived cases that a rule would have counted: `1 regression waived`, `2 failures quarantined`."""
    if run.waivers is None:
        return ()
    counts: dict[tuple[WaiverKind, str], int] = {}
    for kind, word in _iter_kinds(run):
        counts[kind, word] = counts.get((kind, word), 0) + 1
    order = sorted(counts, key=lambda one: (one[0] is not WaiverKind.WAIVER, _FAILURE_ORDER.index(one[1])))
    return tuple(f"{format_count(counts[one], one[1])} {KIND_WORDS[one[0]]}" for one in order)


_FAILURE_ORDER: Final = ("regression", "failure", "score drop", "inconclusive case", "flaky case")


def _iter_kinds(run: RunResult) -> Iterator[tuple[WaiverKind, str]]:
    """Yield kind and word of each waived case that a rule of this verdict would have counted."""
    assert run.waivers is not None
    flaky_counts = run.verdict is not None and run.verdict.find_rule(RuleCode.FLAKY) is not None
    drops_count = run.verdict is not None and run.verdict.find_rule(RuleCode.SCORE_DROP) is not None
    changes = {one.key: one.change for one in (run.comparison.changes if run.comparison else ())}
    flaky = {key for key, case in run.iter_cases() if case.flaky}
    for one in _iter_valid(run.waivers):
        key, kind = one.key, run.waivers.get_entry(one).waiver.kind
        if one.standing is WaiverStanding.REGRESSED and kind is WaiverKind.WAIVER:
            yield kind, "regression"
        elif one.standing in {WaiverStanding.REGRESSED, WaiverStanding.FAILS}:
            yield kind, "failure"  # every failure of a quarantined case has the same name
        elif changes.get(key) is CaseClass.INCONCLUSIVE:
            if flaky_counts:
                yield kind, "inconclusive case"
        elif key in flaky or changes.get(key) is CaseClass.FLAKY:
            if flaky_counts:
                yield kind, "flaky case"
        elif drops_count:
            yield kind, "score drop"


def _build_waiver_text(entry: WaiverEntry, context: ReportContext) -> WaiverText:
    waiver, origin = entry.waiver, entry.waiver.origin
    return WaiverText(
        kind=waiver.kind,
        effect=f"would be {KIND_WORDS[waiver.kind]}"
        if entry.state is WaiverState.PROPOSED
        else KIND_WORDS[waiver.kind],
        expiry=f"{waiver.until}, {_format_days_left(entry.days_left)}",
        author=format_author(waiver),
        place=format_waiver_place(waiver),
        url=_find_origin_url(origin, context),
        reason=waiver.reason,
        pattern=waiver.case,
        cases=tuple(case.case_id for case in entry.failing[:MAX_NAMED]),
        terms=format_terms(entry),
        new=waiver.is_new is True,
    )


def _iter_valid(waiving: AppliedWaivers) -> Iterator[WaivedCase]:
    """Yield the waived cases whose entry exists: a stored result is untrusted."""
    return (one for one in waiving.waived if 0 <= one.entry < len(waiving.entries))


def _format_days_left(days: int) -> str:
    if days < 0:
        return "ended"
    return f"{format_count(days, 'day')} left" if days else "last day"


def _find_origin_url(origin: FileOrigin | CommentOrigin, context: ReportContext) -> str | None:
    """Find the URL of its line at the evaluated commit, or of its comment; None for another server."""
    if isinstance(origin, FileOrigin):
        return build_line_url(Location(file=origin.file, line=origin.line), context)
    path = origin.url.removeprefix(f"{context.server_url}/")
    return origin.url if path != origin.url and _URL_PATH.fullmatch(path) else None


def build_waive_command(run: RunResult, file: str | None) -> str | None:
    """Build the command that waives the regressions of a failed run; return None if it could name none.

    A must-pass case cannot be waived. The reason is a placeholder that the command refuses, so that the user gives one.
    `file` is the path of the waivers, if it is not the usual one.
    """
    if run.comparison is None or run.verdict is None or run.verdict.outcome is not Outcome.FAILED:
        return None
    must = find_must_pass_cases(run, run.policy.must_pass if run.policy else ())
    regressions = [one for one in select_counted_changes(run, CaseClass.REGRESSION) if one.key not in must]
    files = [key.suite for key, _ in run.iter_cases() if key.case_id in {one.case_id for one in regressions}]
    # `--suite` distinguishes cases of the same id
    suite = regressions[0].suite if regressions and len(files) > len(regressions) else None
    ids = (one.case_id for one in regressions if suite in (None, one.suite))
    case_ids = [case_id for case_id in ids if find_name_problem(case_id) is None]
    if not case_ids:
        return None
    return _format_waive_line(case_ids[:MAX_CASES], suite, file)


def build_case_waive_command(key: CaseKey, line: str) -> str | None:
    """Build the command of `build_waive_command` for this case alone; None where it cannot be named."""
    if find_name_problem(key.case_id) is not None or "$'" in line:
        return None
    words = shlex.split(line)
    return _format_waive_line([key.case_id], key.suite, words[words.index("--file") + 1] if "--file" in words else None)


def _format_waive_line(cases: Sequence[str], suite: str | None, file: str | None) -> str:
    options = ["--reason", "…", "--until", _DEFAULT_PERIOD, *(["--suite", escape_glob(suite)] if suite else [])]
    options += ["--file", file] if file else []
    if any(case.startswith("-") for case in cases):
        return format_shell_line(["eval-gate", "waive", *options, "--", *cases])
    return format_shell_line(["eval-gate", "waive", *cases, *options])


def build_waive_comment(cases: Iterable[str], context: ReportContext) -> str | None:
    """Build the comment that waives as many of the first cases as a command can name; None if it cannot be used."""
    if not context.can_waive_by_comment or (context.waive_requires_sha and context.head_sha is None):
        return None
    line, case_ids = None, list[str]()
    for case_id in list(dict.fromkeys(cases))[:MAX_CASES]:
        longer = _build_comment_line([*case_ids, case_id], context)
        if longer is not None and len(longer) <= MAX_COMMAND:
            line, case_ids = longer, [*case_ids, case_id]
    return line


def _build_comment_line(cases: list[str], context: ReportContext) -> str | None:
    try:
        return format_waive_command(cases, REASON, commit=context.head_sha if context.waive_requires_sha else None)
    except ValueError:
        return None
