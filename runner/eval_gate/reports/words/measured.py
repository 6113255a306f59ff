"""What differs in how a run was measured and in what the agent was told, in half sentences.

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
from eval_gate.reports.difference import difference
from eval_gate.reports.words.numbers import count, in_backticks
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import cut, one_line

MAX_NAMED: Final = 5
"""Cases that one half sentence names; the rest is counted."""
MAX_NAME: Final = 60
MAX_VALUE: Final = 100
MAX_LINES: Final = 12
MAX_BRANCH: Final = 60
_HARMLESS: Final = frozenset({DifferenceKind.TIGHTENED, DifferenceKind.CHANGED, DifferenceKind.RENAMED})
_RULES: Final = {
    DifferenceKind.LOOSENED: "rule loosened",
    DifferenceKind.TIGHTENED: "rule tightened",
    DifferenceKind.CHANGED: "rule changed",
}
_SETTINGS: Final = frozenset({DifferenceKind.SETUP, DifferenceKind.MOVED, DifferenceKind.AGENT})
_WHOSE: Final = {
    SetupOf.TARGET: "target",
    SetupOf.JUDGE: "judge",
    SetupOf.RUN: "setting",
    SetupOf.CASE: "setting of the case",
    SetupOf.SUITE: "agent of",
}
_PASSING: Final = {
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
MAX_WORDS: Final = 120


class MeasuredWords(FrozenStruct):
    """The block as a report shows it. `alarming`: something may have been taken from what the gate looks at."""

    title: str
    remark: str
    alarming: bool
    differences: tuple[Difference, ...]
    place: str
    unused: tuple[Difference, ...] = ()
    """Rules that the pull request brings and that do not count."""

    def lines(self, named: int = MAX_NAMED) -> tuple[str, ...]:
        """A half sentence for each difference, with at most so many names in it."""
        unused = [f"not used, the base branch's counts: {_words(one, '', 0)}" for one in self.unused]
        said = [*unused, *(_words(one, self.place, min(named, MAX_NAMED)) for one in self.differences)]
        shown, rest = said[:MAX_LINES], len(said) - MAX_LINES
        return (*shown, *([f"and {count(rest, 'more difference')}"] if rest > 0 else []))


def measured_words(comparison: Comparison | None, context: ReportContext) -> MeasuredWords | None:
    """What there is to say; None where nothing differs, or nothing is known."""
    found = comparison.measured.differences if comparison and comparison.measured else ()
    if not found and not context.unused_rules:
        return None
    by_pull_request = context.base_branch is not None
    return MeasuredWords(
        title="Changed by this pull request" if by_pull_request else "Measured differently than the baseline",
        remark=" (in how it is measured)" if by_pull_request else "",
        alarming=any(one.kind not in _HARMLESS for one in (*found, *context.unused_rules)),
        differences=found,
        unused=context.unused_rules,
        place=f"on {one_line(context.branch, MAX_BRANCH)}" if context.branch else "in the baseline",
    )


def _words(one: Difference, place: str, named: int) -> str:
    if one.kind in _RULES:
        return f"{_RULES[one.kind]}: {_rule(one, named)}"
    if one.kind in _PASSING:
        who = count(one.count, f"case that passes {place}", f"cases that pass {place}")
        return f"{who} {_PASSING[one.kind][one.count != 1]}{_named(one, named)}"
    if one.kind in _SETTINGS:
        return f"{_about_setting(one)}{_named(one, named)}"
    return _about_others(one, named)


def _about_setting(one: Difference) -> str:
    """Whose setting has which other value, and how many cases that is about."""
    changed = f"{_code(one.then) or 'not set'} → {_code(one.now) or 'not set'}"
    if one.kind is DifferenceKind.MOVED:
        return f"target of {count(one.count, 'case')}: {changed}"
    whose = _WHOSE[one.setup_of or SetupOf.RUN]
    who = f"{whose} {_code(one.subject)}: " if one.subject else f"{whose} "
    return f"{who}{_code(one.setting)} {changed} ({count(one.count, 'case')})"


def _about_others(one: Difference, named: int) -> str:
    cases = count(one.count, "case")
    match one.kind:
        case DifferenceKind.GRADER:
            return f"the script, prompt or rule that grades {cases} has changed{_named(one, named)}"
        case DifferenceKind.JUDGE:
            return f"judge of {cases}: {_code(one.then) or 'nobody'} → {_code(one.now) or 'nobody'}"
        case DifferenceKind.RECORDED:
            what = "is answered or graded" if one.count == 1 else "are answered or graded"
            return f"{cases} {what} from recorded answers, {_code(one.now)}, and nobody was asked{_named(one, named)}"
        case DifferenceKind.SEEDS:
            return f"the seed values of {cases} have changed{_named(one, named)}"
        case DifferenceKind.SNAPSHOT_SOURCE:
            source = f": {_code(one.then) or 'none'} → {_code(one.now) or 'none'}" if one.then != one.now else ""
            return f"the snapshot of {cases} has changed{source or _named(one, named)}"
        case DifferenceKind.TARGET:
            what = f"target {_code(one.subject)}:" if one.subject else "target"
            return f"{what} {_code(one.then)} → {_code(one.now)}"
        case DifferenceKind.MODEL:
            return f"model of {_code(one.subject)}: {_code(one.then) or 'none'} → {_code(one.now) or 'none'}"
        case _:
            known = "has another name and is" if one.count == 1 else "have other names and are"
            return f"{cases} {known} measured the same{_named(one, named)}"


def _rule(one: Difference, named: int) -> str:
    if one.subject == "waiver":
        cases = count(one.count, "case")
        return f"the waiver of {cases} names the new name{'' if one.count == 1 else 's'}{_named(one, named)}"
    if one.subject == "must-pass":
        return f"must-pass {'no longer' if one.now is None else 'now'} covers {_code(one.then or one.now)}"
    if one.subject == "accepted":
        return f"accepted failures from {_code(one.now) or 'the usual file'}, were from {_code(one.then) or 'there'}"
    changed = f"{one.subject} {_value(one.then)} → {_value(one.now)}"
    if (one.subject, one.then, one.now) == ("fail-on", "failures", "regressions"):
        return f"{changed}, by which a case that fails in the baseline too fails the gate no more"
    return changed


def _value(value: str | None) -> str:
    return "none" if value is None else cut(one_line(value), MAX_VALUE)


def _named(one: Difference, most: int) -> str:
    """`: a, b and 3 more`, each name as code."""
    shown = [_name(case) for case in one.cases[:most]]
    rest = one.count - len(shown)
    return f": {', '.join(shown)}{f' and {rest} more' if rest else ''}" if shown else ""


def _name(case: TouchedCase) -> str:
    became = f" → {_code(case.became, MAX_NAME)}" if case.became else ""
    return f"{_code(case.case_id, MAX_NAME)}{became}"


def _code(text: str | None, most: int = MAX_VALUE) -> str:
    """The text between backticks, of which it has none itself; nothing for nothing."""
    return in_backticks(text, most) if text else ""


def prompt_words(run: RunResult) -> str | None:
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
            then, now = _system(change.before.details), _system(here[change.key].details)
            if then is not None and now is not None and then != now:
                pairs[then, now] += 1
    if not pairs:
        return None
    (then, now), _ = pairs.most_common(1)[0]
    found = difference(then, now).pieces
    gone, new = (
        next((in_backticks(one.text, MAX_WORDS) for one in found if one.sign == sign), "nothing") for sign in "-+"
    )
    more = f", and {count(len(pairs) - 1, 'other')}" if len(pairs) > 1 else ""
    return f"{gone} → {new}{more}"


def _system(details: CaseDetails) -> str | None:
    """What the model was told at first; None where no conversation is kept."""
    first = details.conversation[0] if details.conversation else None
    return str(first.content) if first is not None and first.role == "system" else None
