"""What the words for a verdict speak of: the cases that count, and the errors among them."""

from __future__ import annotations

from eval_gate.gate.compare import nobody_answered
from eval_gate.gate.rules import new_errors
from eval_gate.model.comparison import CaseChange, CaseClass
from eval_gate.model.grounds import GroundKind
from eval_gate.model.result import RunResult
from eval_gate.reports.facts import blame_of, changes_that_count, not_waived
from eval_gate.reports.words.blame import together


def alone_and_dropped(run: RunResult) -> tuple[list[CaseChange], list[CaseChange]]:
    """Regressions by themselves, and those that are part of a drop of all cases together."""
    found = changes_that_count(run, CaseClass.REGRESSION)
    dropped = [one for one in found if one.grounds is not None and one.grounds.why is GroundKind.SUITE]
    return [one for one in found if one not in dropped], dropped


def by_control(run: RunResult) -> list[CaseChange]:
    """What is not of this change, because the base branch's agent failed it in the same minutes."""
    return [one for one in changes_not_waived(run) if one.grounds is not None and one.grounds.why is GroundKind.CONTROL]


def changes_not_waived(run: RunResult) -> list[CaseChange]:
    """What became of every case that nobody waived."""
    return not_waived(run, run.comparison.changes if run.comparison else ())


def errors_words(run: RunResult) -> tuple[str, ...]:
    """The same in few words, where there are any: `4 cases could not be judged`."""
    return (all_errors_words(run).partition(":")[0],) if any(new_errors(run, run.comparison)) else ()


def all_errors_words(run: RunResult) -> str:
    """`2 cases crashed`, `4 cases could not be judged: 2 crashed, 1 unreachable, 1 not graded`: those that count."""
    silent = nobody_answered(run)
    return together(blame_of(case, silent=silent) for case in new_errors(run, run.comparison))
