"""Wording for setup changes since the baseline, and for a changed system prompt.

Names are in backticks, and reports escape them. Reports never fold setup changes, because a loosened rule may explain
why a gate passed.
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
"""Cases that a phrase names; the rest is counted."""
MAX_NAME: Final = 60
MAX_VALUE: Final = 100
MAX_LINES: Final = 12
MAX_BRANCH: Final = 60
MAX_PROMPT_PART: Final = 120
_HARMLESS: Final = frozenset({SetupChangeKind.TIGHTENED, SetupChangeKind.CHANGED, SetupChangeKind.RENAMED})
_RULE_PHRASES: Final = {
    SetupChangeKind.LOOSENED: "loosened",
    SetupChangeKind.TIGHTENED: "tightened",
    SetupChangeKind.CHANGED: "changed",
}
_OWNER_WORDS: Final = {
    SettingOwner.TARGET: "target",
    SettingOwner.JUDGE: "LLM judge",
    SettingOwner.USER: "simulated user",
    SettingOwner.RUN: "setting",
    SettingOwner.CASE: "case setting",
    SettingOwner.SUITE: "agent of suite",
}
_PHRASES: Final = {
    SetupChangeKind.REMOVED: "{passing} {was} removed{names}",
    SetupChangeKind.SKIPPED: "{passing} {is} now skipped{names}",
    SetupChangeKind.NO_CHECKS: "{passing} no longer {has} a check{names}",
    SetupChangeKind.FEWER_CHECKS: "{passing} {has} fewer checks{names}",
    SetupChangeKind.NO_LONGER_DECIDES: "{passing} {has} an evaluator that no longer decides{names}",
    SetupChangeKind.UNSTATED: "{passing} no longer {says} what {its} prompt or expectation is{names}",
    SetupChangeKind.EXPECTATION: "{passing} {has} a changed expectation{names}",
    SetupChangeKind.PROMPT: "{passing} {has} a changed prompt{names}",
    SetupChangeKind.CASES_BEFORE: "{passing} now {runs} after other cases{names}",
    SetupChangeKind.PROMPT_OR_EXPECTATION: "{passing} {has} a changed prompt or expectation{names}",
    SetupChangeKind.GRADER: "grader of {cases} changed{files}",
    SetupChangeKind.PREPARATION: "hook or health check of {cases} changed{files}",
    SetupChangeKind.JUDGE: "LLM judge of {cases}: {sides}",
    SetupChangeKind.USER: "simulated user of {cases}: {sides}",
    SetupChangeKind.SETUP: "{setting} {sides} ({cases}){names}",
    SetupChangeKind.AGENT: "{setting} {sides} ({cases}){names}",
    SetupChangeKind.TARGET_ASSIGNMENT: "target of {cases}: {sides}{names}",
    SetupChangeKind.RECORDING: "{cases} {uses} recorded responses or scores ({current}) instead of new ones{names}",
    SetupChangeKind.SEEDS: "seed values of {cases} changed{names}",
    SetupChangeKind.SNAPSHOT_SOURCE: "snapshot of {cases} changed{files}",
    SetupChangeKind.LOST_BASELINE: "{subject} {sides}, so nothing is compared ({cases} {has} results under the earlier "
    "name)",
    SetupChangeKind.TARGET: "target {sides}",
    SetupChangeKind.MODEL: "model of {subject}: {sides}",
    SetupChangeKind.RENAMED: "{cases} {was} renamed and nothing else{names}",
}
"""Phrase for each kind, except changes of rules; a `passing` case passes in the baseline."""
_VERBS: Final = {
    "was": "were",
    "is": "are",
    "has": "have",
    "says": "say",
    "runs": "run",
    "uses": "use",
    "its": "their",
}
"""Verbs for one case, and for several."""
_UNSET: Final = frozenset({SetupChangeKind.SETUP, SetupChangeKind.AGENT, SetupChangeKind.TARGET_ASSIGNMENT})
"""Kinds whose missing side is `not set`; that of others is `none`."""
_CHANGED_WITHOUT_FILE: Final = {
    SetupChangeKind.GRADER: " (script, prompt or rule)",
    SetupChangeKind.PREPARATION: " (command)",
}
"""What may have changed if no file did."""


class SetupChangeText(FrozenStruct):
    """Setup changes as a report shows them; `is_alarming` means that the gate may check less."""

    title: str
    is_alarming: bool
    differences: tuple[SetupChange, ...]
    place: str
    ignored_rules: tuple[SetupChange, ...] = ()
    """Rules of the pull request that do not apply."""

    def format_lines(self, max_names: int = MAX_NAMED) -> tuple[str, ...]:
        """Format each setup change as a phrase with at most `max_names` names.

        Ignored rules of the pull request come first. Phrases beyond a limit are only counted.
        """
        because = "ignored, because the base branch's rule applies"
        ignored = [f"{because}: {_describe_change(one, '', 0)}" for one in self.ignored_rules]
        lines = [*ignored, *(_describe_change(one, self.place, min(max_names, MAX_NAMED)) for one in self.differences)]
        listed, rest = lines[:MAX_LINES], len(lines) - MAX_LINES
        return (*listed, *([f"and {format_count(rest, 'more difference')}"] if rest > 0 else []))


def describe_setup_changes(run: RunResult, context: ReportContext) -> SetupChangeText | None:
    """Describe the setup changes since the baseline; return None if nothing differs or nothing is known."""
    changes = run.comparison.setup_changes.changes if run.comparison and run.comparison.setup_changes else ()
    changes = changes if run.lost_baseline is None else (run.lost_baseline, *changes)
    if not changes and not context.ignored_rules:
        return None
    return SetupChangeText(
        title="Evaluation setup changed since the baseline",
        is_alarming=any(one.kind not in _HARMLESS for one in (*changes, *context.ignored_rules)),
        differences=changes,
        ignored_rules=context.ignored_rules,
        place=f"on {to_one_line(context.branch, MAX_BRANCH)}" if context.branch else "in the baseline",
    )


def _describe_change(one: SetupChange, place: str, max_names: int) -> str:
    if one.kind in _RULE_PHRASES:
        return _describe_rule(one, max_names)
    absent, subject = "not set" if one.kind in _UNSET else "none", _format_code(one.subject)
    target = f"{subject}: " if one.kind is SetupChangeKind.TARGET and subject else ""
    return _PHRASES[one.kind].format(
        **(_VERBS if one.count != 1 else dict(zip(_VERBS, _VERBS, strict=True))),
        passing=format_count(one.count, f"case that passes {place}", f"cases that pass {place}"),
        cases=format_count(one.count, "case"),
        names=_format_case_names(one, max_names),
        files=_describe_files(one, max_names),
        sides=f"{target}{_format_code(one.baseline) or absent} → {_format_code(one.current) or absent}",
        current=_format_code(one.current),
        setting=_describe_setting(one),
        subject=one.subject if one.kind is SetupChangeKind.LOST_BASELINE else subject,
    )


def _describe_setting(one: SetupChange) -> str:
    """Name a setting and its owner."""
    whose = _OWNER_WORDS[one.owner or SettingOwner.RUN]
    who = f"{whose} {_format_code(one.subject)}: " if one.subject else f"{whose} "
    return f"{who}{_format_code(one.setting)}"


def _describe_files(one: SetupChange, max_names: int) -> str:
    """Name the other source of a snapshot or the changed files of a program, else what changed in which cases."""
    if one.kind is SetupChangeKind.SNAPSHOT_SOURCE and one.baseline != one.current:
        return f": {_format_code(one.baseline) or 'none'} → {_format_code(one.current) or 'none'}"
    if not one.files:
        return f"{_CHANGED_WITHOUT_FILE.get(one.kind, '')}{_format_case_names(one, max_names)}"
    files = one.files[: max(max_names, 1)]
    rest = one.file_count - len(files)
    more = f" and {format_count(rest, 'more file')}" if rest > 0 else ""
    return f": {', '.join(map(_format_code, files))}{more}"


def _describe_rule(one: SetupChange, max_names: int) -> str:
    """`max-errors` loosened: 0 → 3."""
    rule = f"{_format_code(one.subject) or 'rule'} {_RULE_PHRASES[one.kind]}"
    if one.subject == "waiver":
        return f"{rule}: {format_count(one.count, 'renamed case')}{_format_case_names(one, max_names)}"
    if one.subject == "must-pass":
        covers = "no longer covers" if one.current is None else "now covers"
        return f"{rule}: {covers} {_format_code(one.baseline or one.current)}"
    if one.subject == "waivers":
        usual = "the usual file"
        return f"{rule}: {_format_code(one.baseline) or usual} → {_format_code(one.current) or usual}"
    changed = f"{rule}: {_format_value(one.baseline)} → {_format_value(one.current)}"
    if one.cases:
        return f"{changed} in {format_count(one.count, 'case')}{_format_case_names(one, max_names)}"
    if (one.subject, one.baseline, one.current) == ("fail-on", "failures", "regressions"):
        return f"{changed}, so a case that also fails in the baseline no longer fails the gate"
    return changed


def _format_value(value: str | None) -> str:
    return "none" if value is None else truncate_text(to_one_line(value), MAX_VALUE)


def _format_case_names(one: SetupChange, most: int) -> str:
    """`: a, b and 3 more`, each name as code."""
    names = [_format_case_name(case) for case in one.cases[:most]]
    rest = one.count - len(names)
    return f": {', '.join(names)}{f' and {rest} more' if rest else ''}" if names else ""


def _format_case_name(case: ChangedCase) -> str:
    became = f" → {_format_code(case.current_name, MAX_NAME)}" if case.current_name else ""
    return f"{_format_code(case.case_id, MAX_NAME)}{became}"


def _format_code(text: str | None, most: int = MAX_VALUE) -> str:
    """Quote `text` in backticks, and replace backticks in it; return an empty string for no text."""
    return quote_in_backticks(text, most) if text else ""


def describe_prompt_change(run: RunResult) -> str | None:
    """Describe the first difference of the system prompt as a phrase in backticks; None if none is known.

    It is known if the gate led the conversation with a model, if the case changed since the baseline, and if responses
    are stored. The prompts that an agent behind a URL or a command sends to its model are unknown.
    """
    if run.comparison is None:
        return None
    cases = run.index_cases()
    prompts = Counter(
        (_find_system_prompt(change.baseline_result.details), _find_system_prompt(cases[change.key].details))
        for change in run.comparison.changes
        if change.baseline_result is not None and change.key in cases
    )
    changed = Counter({(old, new): count for (old, new), count in prompts.items() if old and new and old != new})
    if not changed:
        return None
    pieces = compare_texts(*changed.most_common(1)[0][0]).pieces
    removed, added = (
        next((quote_in_backticks(one.text, MAX_PROMPT_PART) for one in pieces if one.sign == sign), "nothing")
        for sign in "-+"
    )
    more = f", and {format_count(len(changed) - 1, 'other')}" if len(changed) > 1 else ""
    return f"{removed} → {added}{more}"


def _find_system_prompt(details: CaseDetails) -> str:
    """Return the system prompt of an execution; empty if no conversation with one is stored."""
    first = details.conversation[0] if details.conversation else None
    return str(first.content) if first is not None and first.role == "system" else ""
