"""Wording for setup changes since the baseline, and for a changed system prompt.

Names stand in backticks, and reports escape them. Setup changes never belong into a fold: a loosened rule explains a
gate that passed better than anything else.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from eval_gate.model.execution import CaseDetails
from eval_gate.model.result import RunResult
from eval_gate.model.setup_change import ChangedCase, SettingOwner, SetupChange, SetupChangeKind
from eval_gate.reports.context import ReportContext
from eval_gate.reports.text_difference import compare_texts
from eval_gate.reports.wording.numbers import quote_in_backticks
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import format_count, to_one_line, truncate_text

MAX_NAMED: Final = 5
"""Cases that one half sentence names; the rest is counted."""
MAX_NAME: Final = 60
MAX_VALUE: Final = 100
MAX_LINES: Final = 12
MAX_BRANCH: Final = 60
_HARMLESS: Final = frozenset({SetupChangeKind.TIGHTENED, SetupChangeKind.CHANGED, SetupChangeKind.RENAMED})
_RULE_PHRASES: Final = {
    SetupChangeKind.LOOSENED: "loosened",
    SetupChangeKind.TIGHTENED: "tightened",
    SetupChangeKind.CHANGED: "changed",
}
_SETTING_KINDS: Final = frozenset({SetupChangeKind.SETUP, SetupChangeKind.TARGET_ASSIGNMENT, SetupChangeKind.AGENT})
_OWNER_WORDS: Final = {
    SettingOwner.TARGET: "target",
    SettingOwner.JUDGE: "LLM judge",
    SettingOwner.RUN: "setting",
    SettingOwner.CASE: "case setting",
    SettingOwner.SUITE: "agent of suite",
}
_PASSING_CASE_PHRASES: Final = {
    SetupChangeKind.REMOVED: ("was removed", "were removed"),
    SetupChangeKind.SKIPPED: ("is now skipped", "are now skipped"),
    SetupChangeKind.NO_CHECKS: ("no longer has a check", "no longer have a check"),
    SetupChangeKind.FEWER_CHECKS: ("has fewer checks", "have fewer checks"),
    SetupChangeKind.NO_LONGER_DECIDES: (
        "has an evaluator that no longer decides",
        "have an evaluator that no longer decides",
    ),
    SetupChangeKind.UNSTATED: (
        "no longer says what its prompt or expectation is",
        "no longer say what their prompt or expectation is",
    ),
    SetupChangeKind.EXPECTATION: ("has a changed expectation", "have a changed expectation"),
    SetupChangeKind.PROMPT: ("has a changed prompt", "have a changed prompt"),
    SetupChangeKind.CASES_BEFORE: ("now runs after other cases", "now run after other cases"),
    SetupChangeKind.PROMPT_OR_EXPECTATION: (
        "has a changed prompt or expectation",
        "have a changed prompt or expectation",
    ),
}
"""What became of cases that pass in the baseline."""
_PROGRAM_PHRASES: Final = {
    SetupChangeKind.GRADER: ("grader", "(script, prompt or rule)"),
    SetupChangeKind.PREPARATION: ("hook or health check", "(command)"),
}
"""What has other files, and what changed where no file did."""
MAX_PROMPT_PART: Final = 120


class SetupChangeText(FrozenStruct):
    """Setup changes as a report shows them; `is_alarming` means that the gate may check less."""

    title: str
    is_alarming: bool
    differences: tuple[SetupChange, ...]
    place: str
    ignored_rules: tuple[SetupChange, ...] = ()
    """Rules of the pull request that do not apply."""

    def format_lines(self, named: int = MAX_NAMED) -> tuple[str, ...]:
        """Format each setup change as a phrase with at most `named` names.

        Ignored rules of the pull request come first. Phrases beyond a limit are only counted.
        """
        because = "ignored, because the base branch's rule applies"
        ignored = [f"{because}: {_describe_change(one, '', 0)}" for one in self.ignored_rules]
        said = [*ignored, *(_describe_change(one, self.place, min(named, MAX_NAMED)) for one in self.differences)]
        shown, rest = said[:MAX_LINES], len(said) - MAX_LINES
        return (*shown, *([f"and {format_count(rest, 'more difference')}"] if rest > 0 else []))


def describe_setup_changes(run: RunResult, context: ReportContext) -> SetupChangeText | None:
    """Describe the setup changes since the baseline; return None if nothing differs or nothing is known."""
    found = run.comparison.setup_changes.changes if run.comparison and run.comparison.setup_changes else ()
    found = found if run.lost_baseline is None else (run.lost_baseline, *found)
    if not found and not context.ignored_rules:
        return None
    return SetupChangeText(
        title="Evaluation setup changed since the baseline",
        is_alarming=any(one.kind not in _HARMLESS for one in (*found, *context.ignored_rules)),
        differences=found,
        ignored_rules=context.ignored_rules,
        place=f"on {to_one_line(context.branch, MAX_BRANCH)}" if context.branch else "in the baseline",
    )


def _describe_change(one: SetupChange, place: str, named: int) -> str:
    if one.kind in _RULE_PHRASES:
        return _describe_rule(one, named)
    if one.kind in _PASSING_CASE_PHRASES:
        who = format_count(one.count, f"case that passes {place}", f"cases that pass {place}")
        return f"{who} {_PASSING_CASE_PHRASES[one.kind][one.count != 1]}{_format_case_names(one, named)}"
    if one.kind in _SETTING_KINDS:
        return f"{_describe_setting(one)}{_format_case_names(one, named)}"
    return _describe_other(one, named)


def _describe_setting(one: SetupChange) -> str:
    """Whose setting has which other value, and how many cases that is about."""
    changed = f"{_format_code(one.baseline) or 'not set'} → {_format_code(one.current) or 'not set'}"
    if one.kind is SetupChangeKind.TARGET_ASSIGNMENT:
        return f"target of {format_count(one.count, 'case')}: {changed}"
    whose = _OWNER_WORDS[one.owner or SettingOwner.RUN]
    who = f"{whose} {_format_code(one.subject)}: " if one.subject else f"{whose} "
    return f"{who}{_format_code(one.setting)} {changed} ({format_count(one.count, 'case')})"


def _describe_other(one: SetupChange, named: int) -> str:
    cases = format_count(one.count, "case")
    match one.kind:
        case SetupChangeKind.GRADER | SetupChangeKind.PREPARATION:
            what, otherwise = _PROGRAM_PHRASES[one.kind]
            return f"{what} of {cases} changed{_describe_program(one, named, otherwise)}"
        case SetupChangeKind.JUDGE:
            return (
                f"LLM judge of {cases}: {_format_code(one.baseline) or 'none'} → {_format_code(one.current) or 'none'}"
            )
        case SetupChangeKind.RECORDING:
            what = "uses" if one.count == 1 else "use"
            return (
                f"{cases} {what} recorded responses or scores ({_format_code(one.current)}) instead of new ones"
                f"{_format_case_names(one, named)}"
            )
        case SetupChangeKind.SEEDS:
            return f"seed values of {cases} changed{_format_case_names(one, named)}"
        case SetupChangeKind.SNAPSHOT_SOURCE:
            source = (
                f": {_format_code(one.baseline) or 'none'} → {_format_code(one.current) or 'none'}"
                if one.baseline != one.current
                else ""
            )
            return f"snapshot of {cases} changed{source or _describe_program(one, named, '')}"
        case SetupChangeKind.LOST_BASELINE | SetupChangeKind.TARGET:
            return _describe_name_change(one)
        case SetupChangeKind.MODEL:
            return (
                f"model of {_format_code(one.subject)}: {_format_code(one.baseline) or 'none'} → "
                f"{_format_code(one.current) or 'none'}"
            )
        case _:
            were = "was" if one.count == 1 else "were"
            return f"{cases} {were} renamed and nothing else{_format_case_names(one, named)}"


def _describe_name_change(one: SetupChange) -> str:
    """Name what is another target, or has another name than its results."""
    changed = f"{_format_code(one.baseline)} → {_format_code(one.current)}"
    if one.kind is SetupChangeKind.TARGET:
        return f"target {_format_code(one.subject)}: {changed}" if one.subject else f"target {changed}"
    have = format_count(one.count, "case has results", "cases have results")
    return f"{one.subject} {changed}, so nothing is compared ({have} under the earlier name)"


def _describe_program(one: SetupChange, named: int, otherwise: str) -> str:
    """Name the changed files of a program, else say what may have changed and in which cases."""
    if not one.files:
        return f"{f' {otherwise}' if otherwise else ''}{_format_case_names(one, named)}"
    shown = one.files[: max(named, 1)]
    rest = one.file_count - len(shown)
    more = f" and {format_count(rest, 'more file')}" if rest > 0 else ""
    return f": {', '.join(map(_format_code, shown))}{more}"


def _describe_rule(one: SetupChange, named: int) -> str:
    """`max-errors` loosened: 0 → 3."""
    rule = f"{_format_code(one.subject) or 'rule'} {_RULE_PHRASES[one.kind]}"
    if one.subject == "waiver":
        return f"{rule}: {format_count(one.count, 'renamed case')}{_format_case_names(one, named)}"
    if one.subject == "must-pass":
        covers = "no longer covers" if one.current is None else "now covers"
        return f"{rule}: {covers} {_format_code(one.baseline or one.current)}"
    if one.subject == "waivers":
        usual = "the usual file"
        return f"{rule}: {_format_code(one.baseline) or usual} → {_format_code(one.current) or usual}"
    changed = f"{rule}: {_format_value(one.baseline)} → {_format_value(one.current)}"
    if (one.subject, one.baseline, one.current) == ("fail-on", "failures", "regressions"):
        return f"{changed}, so a case that also fails in the baseline no longer fails the gate"
    return changed


def _format_value(value: str | None) -> str:
    return "none" if value is None else truncate_text(to_one_line(value), MAX_VALUE)


def _format_case_names(one: SetupChange, most: int) -> str:
    """`: a, b and 3 more`, each name as code."""
    shown = [_format_case_name(case) for case in one.cases[:most]]
    rest = one.count - len(shown)
    return f": {', '.join(shown)}{f' and {rest} more' if rest else ''}" if shown else ""


def _format_case_name(case: ChangedCase) -> str:
    became = f" → {_format_code(case.current_name, MAX_NAME)}" if case.current_name else ""
    return f"{_format_code(case.case_id, MAX_NAME)}{became}"


def _format_code(text: str | None, most: int = MAX_VALUE) -> str:
    """Quote `text` in backticks, and replace backticks in it; return an empty string for no text."""
    return quote_in_backticks(text, most) if text else ""


def describe_prompt_change(run: RunResult) -> str | None:
    """Describe the first difference of the system prompt as a phrase in backticks; None if none is known.

    It is known if Eval Gate led the conversation with a model, if the case changed since the baseline, and if
    responses are stored. The prompts that an agent behind a URL or a command sends to its model are never known.
    """
    if run.comparison is None:
        return None
    here = run.index_cases()
    pairs: Counter[tuple[str, str]] = Counter()
    for change in run.comparison.changes:
        if change.baseline_result is not None and change.key in here:
            then, now = (
                _find_system_prompt(change.baseline_result.details),
                _find_system_prompt(here[change.key].details),
            )
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
    """Return the system prompt of an execution; return None if no conversation with one is stored."""
    first = details.conversation[0] if details.conversation else None
    return str(first.content) if first is not None and first.role == "system" else None
