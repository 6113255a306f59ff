"""Wording for setup changes since the baseline, and for a changed system prompt.

Names stand in backticks, and whoever shows them escapes. It belongs below the verdict's sentence and never into a fold:
a rule that was loosened explains a green gate better than anything else.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from eval_gate.model.comparison import Comparison
from eval_gate.model.execution import CaseDetails
from eval_gate.model.result import RunResult
from eval_gate.model.yardstick import Difference, DifferenceKind, SetupOf, TouchedCase
from eval_gate.reports.context import ReportContext
from eval_gate.reports.text_difference import compare_texts
from eval_gate.reports.wording.numbers import format_count, quote_in_backticks
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import to_one_line, truncate_text

MAX_NAMED: Final = 5
"""Cases that one half sentence names; the rest is counted."""
MAX_NAME: Final = 60
MAX_VALUE: Final = 100
MAX_LINES: Final = 12
MAX_BRANCH: Final = 60
_HARMLESS: Final = frozenset({DifferenceKind.TIGHTENED, DifferenceKind.CHANGED, DifferenceKind.RENAMED})
_RULE_PHRASES: Final = {
    DifferenceKind.LOOSENED: "rule loosened",
    DifferenceKind.TIGHTENED: "rule tightened",
    DifferenceKind.CHANGED: "rule changed",
}
_SETTING_KINDS: Final = frozenset({DifferenceKind.SETUP, DifferenceKind.MOVED, DifferenceKind.AGENT})
_OWNER_WORDS: Final = {
    SetupOf.TARGET: "target",
    SetupOf.JUDGE: "judge",
    SetupOf.RUN: "setting",
    SetupOf.CASE: "setting of the case",
    SetupOf.SUITE: "agent of",
}
_PASSING_CASE_PHRASES: Final = {
    DifferenceKind.REMOVED: ("is no longer checked (removed)", "are no longer checked (removed)"),
    DifferenceKind.SKIPPED: ("is skipped here", "are skipped here"),
    DifferenceKind.EMPTIED: ("checks nothing any more", "check nothing any more"),
    DifferenceKind.FEWER_CHECKS: ("checks less than it did", "check less than they did"),
    DifferenceKind.EXPECTATION: ("has another expectation", "have another expectation"),
    DifferenceKind.QUESTION: ("is asked another question", "are asked another question"),
    DifferenceKind.CASES_BEFORE: ("runs after other cases than before", "run after other cases than before"),
    DifferenceKind.ASKED: ("has another question or expectation", "have another question or expectation"),
}
"""What became of cases that pass in the baseline."""
MAX_PROMPT_PART: Final = 120


class SetupChangeText(FrozenStruct):
    """Setup changes as a report shows them; `is_alarming` means that the gate may check less."""

    title: str
    remark: str
    is_alarming: bool
    differences: tuple[Difference, ...]
    place: str
    ignored_rules: tuple[Difference, ...] = ()
    """Rules that the pull request brings and that do not count."""

    def format_lines(self, named: int = MAX_NAMED) -> tuple[str, ...]:
        """A half sentence for each difference, with at most so many names in it."""
        unused = [f"not used, the base branch's counts: {_describe_change(one, '', 0)}" for one in self.ignored_rules]
        said = [*unused, *(_describe_change(one, self.place, min(named, MAX_NAMED)) for one in self.differences)]
        shown, rest = said[:MAX_LINES], len(said) - MAX_LINES
        return (*shown, *([f"and {format_count(rest, 'more difference')}"] if rest > 0 else []))


def describe_setup_changes(comparison: Comparison | None, context: ReportContext) -> SetupChangeText | None:
    """What there is to say; None where nothing differs, or nothing is known."""
    found = comparison.measured.differences if comparison and comparison.measured else ()
    if not found and not context.ignored_rules:
        return None
    by_pull_request = context.base_branch is not None
    return SetupChangeText(
        title="Changed by this pull request" if by_pull_request else "Measured differently than the baseline",
        remark=" (in how it is measured)" if by_pull_request else "",
        is_alarming=any(one.kind not in _HARMLESS for one in (*found, *context.ignored_rules)),
        differences=found,
        ignored_rules=context.ignored_rules,
        place=f"on {to_one_line(context.branch, MAX_BRANCH)}" if context.branch else "in the baseline",
    )


def _describe_change(one: Difference, place: str, named: int) -> str:
    if one.kind in _RULE_PHRASES:
        return f"{_RULE_PHRASES[one.kind]}: {_describe_rule(one, named)}"
    if one.kind in _PASSING_CASE_PHRASES:
        who = format_count(one.count, f"case that passes {place}", f"cases that pass {place}")
        return f"{who} {_PASSING_CASE_PHRASES[one.kind][one.count != 1]}{_format_case_names(one, named)}"
    if one.kind in _SETTING_KINDS:
        return f"{_describe_setting(one)}{_format_case_names(one, named)}"
    return _describe_other(one, named)


def _describe_setting(one: Difference) -> str:
    """Whose setting has which other value, and how many cases that is about."""
    changed = f"{_format_code(one.then) or 'not set'} → {_format_code(one.now) or 'not set'}"
    if one.kind is DifferenceKind.MOVED:
        return f"target of {format_count(one.count, 'case')}: {changed}"
    whose = _OWNER_WORDS[one.setup_of or SetupOf.RUN]
    who = f"{whose} {_format_code(one.subject)}: " if one.subject else f"{whose} "
    return f"{who}{_format_code(one.setting)} {changed} ({format_count(one.count, 'case')})"


def _describe_other(one: Difference, named: int) -> str:
    cases = format_count(one.count, "case")
    match one.kind:
        case DifferenceKind.GRADER:
            return f"the script, prompt or rule that grades {cases} has changed{_format_case_names(one, named)}"
        case DifferenceKind.JUDGE:
            return f"judge of {cases}: {_format_code(one.then) or 'nobody'} → {_format_code(one.now) or 'nobody'}"
        case DifferenceKind.RECORDED:
            what = "is answered or graded" if one.count == 1 else "are answered or graded"
            return (
                f"{cases} {what} from recorded answers, {_format_code(one.now)}, and nobody was "
                f"asked{_format_case_names(one, named)}"
            )
        case DifferenceKind.SEEDS:
            return f"the seed values of {cases} have changed{_format_case_names(one, named)}"
        case DifferenceKind.SNAPSHOT_SOURCE:
            source = (
                f": {_format_code(one.then) or 'none'} → {_format_code(one.now) or 'none'}"
                if one.then != one.now
                else ""
            )
            return f"the snapshot of {cases} has changed{source or _format_case_names(one, named)}"
        case DifferenceKind.TARGET:
            what = f"target {_format_code(one.subject)}:" if one.subject else "target"
            return f"{what} {_format_code(one.then)} → {_format_code(one.now)}"
        case DifferenceKind.MODEL:
            return (
                f"model of {_format_code(one.subject)}: {_format_code(one.then) or 'none'} → "
                f"{_format_code(one.now) or 'none'}"
            )
        case _:
            known = "has another name and is" if one.count == 1 else "have other names and are"
            return f"{cases} {known} measured the same{_format_case_names(one, named)}"


def _describe_rule(one: Difference, named: int) -> str:
    if one.subject == "waiver":
        cases = format_count(one.count, "case")
        return (
            f"the waiver of {cases} names the new name{'' if one.count == 1 else 's'}{_format_case_names(one, named)}"
        )
    if one.subject == "must-pass":
        return f"must-pass {'no longer' if one.now is None else 'now'} covers {_format_code(one.then or one.now)}"
    if one.subject == "accepted":
        return (
            f"accepted failures from {_format_code(one.now) or 'the usual file'}, were from "
            f"{_format_code(one.then) or 'there'}"
        )
    changed = f"{one.subject} {_format_value(one.then)} → {_format_value(one.now)}"
    if (one.subject, one.then, one.now) == ("fail-on", "failures", "regressions"):
        return f"{changed}, by which a case that fails in the baseline too fails the gate no more"
    return changed


def _format_value(value: str | None) -> str:
    return "none" if value is None else truncate_text(to_one_line(value), MAX_VALUE)


def _format_case_names(one: Difference, most: int) -> str:
    """`: a, b and 3 more`, each name as code."""
    shown = [_format_case_name(case) for case in one.cases[:most]]
    rest = one.count - len(shown)
    return f": {', '.join(shown)}{f' and {rest} more' if rest else ''}" if shown else ""


def _format_case_name(case: TouchedCase) -> str:
    became = f" → {_format_code(case.became, MAX_NAME)}" if case.became else ""
    return f"{_format_code(case.case_id, MAX_NAME)}{became}"


def _format_code(text: str | None, most: int = MAX_VALUE) -> str:
    """The text between backticks, of which it has none itself; nothing for nothing."""
    return quote_in_backticks(text, most) if text else ""


def describe_prompt_change(run: RunResult) -> str | None:
    """The system prompt's first difference as half a sentence, in backticks; None where none is known.

    It is known where we led the conversation with a model, of cases that are not as they were, and where answers are
    kept. What an agent behind an address or a command tells its model is never known.
    """
    if run.comparison is None:
        return None
    here = run.by_key()
    pairs: Counter[tuple[str, str]] = Counter()
    for change in run.comparison.changes:
        if change.before is not None and change.key in here:
            then, now = _find_system_prompt(change.before.details), _find_system_prompt(here[change.key].details)
            if then is not None and now is not None and then != now:
                pairs[then, now] += 1
    if not pairs:
        return None
    (then, now), _ = pairs.most_common(1)[0]
    found = compare_texts(then, now).pieces
    gone, new = (
        next((quote_in_backticks(one.text, MAX_PROMPT_PART) for one in found if one.sign == sign), "nothing")
        for sign in "-+"
    )
    more = f", and {format_count(len(pairs) - 1, 'other')}" if len(pairs) > 1 else ""
    return f"{gone} → {new}{more}"


def _find_system_prompt(details: CaseDetails) -> str | None:
    """What the model was told at first; None where no conversation is kept."""
    first = details.conversation[0] if details.conversation else None
    return str(first.content) if first is not None and first.role == "system" else None
