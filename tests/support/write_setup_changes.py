"""Writes the phrases for setup changes of docs/baselines.md: `python -m tests.support.write_setup_changes`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from eval_gate.model.setup_change import SettingOwner, SetupChange
from eval_gate.model.setup_change import SetupChangeKind as Kind
from eval_gate.reports.wording.setup_changes import SetupChangeText
from tests.support.write_verdict_page import fill_block

PAGE = Path(__file__).parents[2] / "docs" / "baselines.md"
START = "<!-- setup changes: made by `python -m tests.support.write_setup_changes` -->\n"
END = "<!-- end of setup changes -->"
EXAMPLES = (
    (
        SetupChange(kind=Kind.LOST_BASELINE, subject="gate", baseline="a", current="b", count=12),
        "the baseline is [lost](#a-lost-baseline): its results have another name",
    ),
    (
        SetupChange(kind=Kind.LOOSENED, subject="max-errors", baseline="0", current="3"),
        "a rule requires less, or a case lost the tag or id by which it must pass; *tightened* is the opposite",
    ),
    (SetupChange(kind=Kind.REMOVED, count=2), "they passed in the baseline and are missing"),
    (SetupChange(kind=Kind.SKIPPED, count=1), "it passed in the baseline"),
    (SetupChange(kind=Kind.NO_CHECKS, count=1), "its checks are gone, or accept every response"),
    (SetupChange(kind=Kind.FEWER_CHECKS, count=1), "the same of some of its checks"),
    (
        SetupChange(kind=Kind.NO_LONGER_DECIDES, count=1),
        "in results of another tool, it passed or failed the case there, and here has a number, a text, or nothing",
    ),
    (
        SetupChange(kind=Kind.UNSTATED, count=1),
        "a row of another tool leaves out what it had, so nobody can tell whether it is the same",
    ),
    (SetupChange(kind=Kind.EXPECTATION, count=1), "the expectation has another text"),
    (SetupChange(kind=Kind.PROMPT, count=1), "the prompt has another text"),
    (
        SetupChange(kind=Kind.CASES_BEFORE, count=3),
        "the earlier cases of its [Agent Evals](agent-evals.md) suite changed, so it finds other files",
    ),
    (
        SetupChange(kind=Kind.GRADER, count=12, files=("words.txt",), file_count=1),
        "a file that it [can load](#graders-and-hooks) changed; else its command, a judge prompt or a score rule",
    ),
    (
        SetupChange(kind=Kind.PREPARATION, count=3, files=("seed.sh",), file_count=1),
        "the same of a program that prepares a case",
    ),
    (
        SetupChange(kind=Kind.JUDGE, count=3, baseline="gpt-5-mini", current="gpt-5"),
        "the judge's name, model or address changed",
    ),
    (
        SetupChange(kind=Kind.USER, count=3, baseline="gpt-5-mini", current="gpt-5"),
        "another model plays the simulated user",
    ),
    (
        SetupChange(
            kind=Kind.SETUP,
            subject="a",
            owner=SettingOwner.TARGET,
            setting="responsePath",
            baseline="response",
            current="extra",
            count=12,
        ),
        "what is called, how its response is read, or a setting of the run or of a case changed",
    ),
    (
        SetupChange(kind=Kind.TARGET_ASSIGNMENT, baseline="a", current="b", count=1),
        "another target is asked",
    ),
    (
        SetupChange(kind=Kind.RECORDING, count=12, current="replay"),
        "a recording that did not come with the baseline replaced a model or a judge",
    ),
    (SetupChange(kind=Kind.SEEDS, count=1), "tokens of a case have other values"),
    (
        SetupChange(kind=Kind.SNAPSHOT_SOURCE, count=1, baseline="a.json", current="b.json"),
        "the same of the snapshot, or it has another source",
    ),
    (
        SetupChange(kind=Kind.MODEL, subject="a", baseline="gpt-5-mini", current="gpt-5"),
        "the agent changed, in its model, target or settings. That is what you test, so it never fails the gate",
    ),
    (SetupChange(kind=Kind.RENAMED, count=1), "a case was moved or renamed"),
)
"""A change of each kind, and what its phrase means to a reader."""


def page() -> str:
    """The page with its table made anew."""
    return fill_block(PAGE.read_text(encoding="utf-8"), START, END, "\n".join(_list_rows()))


def _list_rows() -> Iterator[str]:
    yield "| the report says | meaning |"
    yield "|:--|:--|"
    for change, meaning in EXAMPLES:
        (phrase,) = SetupChangeText("", is_alarming=False, differences=(change,), place="on main").format_lines()
        yield f"| {phrase} | {meaning} |"
    yield ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
