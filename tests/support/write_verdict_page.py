"""Writes the figures of the six worked examples of docs/verdict.md: run and judged by the program, never typed.

And the belief behind the first of them, in benchmarks/verdict/README.md, so that anybody can add up its evidence.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from eval_gate.config.policy import DEFAULT_RERUNS
from eval_gate.gate.evidence.case_classification import CaseFacts
from eval_gate.gate.evidence.prior import RATES, Prior
from eval_gate.gate.evidence.rerun_decision import RerunCriteria, compute_e_value
from eval_gate.gate.evidence.suite.failures import compute_tail_chance, count_strata
from eval_gate.gate.evidence.thresholds import THRESHOLD_SHARE, compute_alternative
from eval_gate.gate.reason_wording import describe_suite_drop
from eval_gate.gate.verdict_decision import GateInputs, build_facts_before_reruns, decide_verdict
from eval_gate.model.comparison import CaseChange, CaseClass
from eval_gate.model.evidence import Counts
from eval_gate.model.result import RunResult
from eval_gate.reports.context import ReportContext
from eval_gate.reports.view.report_view import build_view
from eval_gate.struct import FrozenStruct
from tests.support.histories import Asked, Branch, Engine
from tests.support.verdicts import REGRESSIONS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "verdict.md"
METHOD = ROOT / "benchmarks" / "verdict" / "README.md"
COMMAND = "`python -m tests.support.write_verdict_page`"
CASES, RUNS, RERUNS = 100, 20, DEFAULT_RERUNS
FLAKY, VERY_FLAKY = 96, 99
FAILED_ON_MAIN: Mapping[int, tuple[int, ...]] = {
    **{90 + number: (3 * number + 1,) for number in range(6)},
    FLAKY: (3, 9, 15),
    97: (2, 8, 16),
    98: (5, 11, 13),
    VERY_FLAKY: (1, 3, 4, 7, 9, 12, 14, 16, 17),
}
"""The runs of main, of `RUNS`, in which a case failed at first and passed its re-run; all other cases always passed."""
STEADY = 7
DROPPED = (3, 11, 19, 28, 37, 44, 58)
TOOL = range(40, 80)

EXAMPLES: Mapping[str, Mapping[int, str]] = {
    "dead": {STEADY: "F"},
    "flake": {STEADY: "FP"},
    "flaky": {FLAKY: "F"},
    "half": {STEADY: "FPFF"},
    "suite": dict.fromkeys(DROPPED, "FP"),
    "tool": dict.fromkeys(TOOL, "F"),
}
"""What cases do in the pull request of each example: a letter an execution, `P` where a case is not named."""


class Judged(FrozenStruct):
    """One example after its verdict."""

    run: RunResult
    executions: int
    confirmation: RerunCriteria
    facts: Mapping[str, CaseFacts]

    @property
    def changes(self) -> list[CaseChange]:
        """Every case that does not simply pass as before."""
        assert self.run.comparison is not None
        return [one for one in self.run.comparison.changes if one.change is not CaseClass.STILL_PASSING]


@cache
def main_branch() -> Branch:
    """Main after its runs, each judged against the one before and with re-runs, as in a workflow."""
    branch = Branch()
    for run in range(RUNS):
        failing = {number: "FP" for number, runs in FAILED_ON_MAIN.items() if run in runs}
        branch = branch.pushed(_cases(failing), REGRESSIONS, run, reruns=RERUNS)
    return branch


@cache
def judged(example: str) -> Judged:
    """The pull request of an example, run with re-runs and judged as the action does."""
    question = GateInputs(main_branch().baseline, REGRESSIONS)
    engine = Engine(_cases(EXAMPLES[example]), reruns=RERUNS)
    run = decide_verdict(engine.run(question), question)
    facts, confirmation, _ = build_facts_before_reruns(run, question)
    return Judged(run, engine.executions, confirmation, {one.key.case_id: one for one in facts})


def _cases(tapes: Mapping[int, str]) -> list[Asked]:
    return [Asked("evals/support.json", f"case-{number:02}", tapes.get(number, "P")) for number in range(CASES)]


def block_of(example: str) -> str:
    """What stands between the markers of an example."""
    made = judged(example)
    tables = {"suite": _suite_table, "tool": _tool_table}
    table = tables[example](made) if example in tables else _case_table(made, EXAMPLES[example])
    assert made.run.verdict is not None
    kinds = Counter(one.change for one in made.changes)
    several = len(made.changes) > 1
    classes = ", ".join(f"{number} × `{kind}`" if several else f"`{kind}`" for kind, number in kinds.items())
    last = f"Result: {classes}, exit code {made.run.verdict.exit_code}. The report says: “{report_words(made)}”"
    return "\n".join([*table, "", *(_sums(made) if example == "dead" else ()), last, ""])


def report_words(made: Judged) -> str:
    """What the report says of the first case, or of all cases together where that decides."""
    assert made.run.comparison is not None
    finding = made.run.comparison.suite_finding
    if finding is not None and finding.is_drop:
        return describe_suite_drop(finding)
    view = build_view(made.run, ReportContext(baseline_branch="main"))
    return next(row.evidence_sentences for row in view.cases if row.key == made.changes[0].key)


def _case_table(made: Judged, tapes: Mapping[int, str]) -> Iterator[str]:
    (case,), (tape,) = made.changes, tapes.values()
    assert case.grounds is not None
    runs = case.grounds.current.executions
    letters = [tape[min(at, len(tape) - 1)] for at in range(runs)]
    found = [_evidence(made, case.grounds.history, letters[: at + 1]) for at in range(runs)]
    yield from _table(
        ["execution", *map(str, range(1, runs + 1))],
        ["result", *("failed" if letter == "F" else "passed" for letter in letters)],
        [f"evidence ({math.ceil(made.confirmation.threshold):,} needed)", *map(_number, found)],
    )


def _evidence(made: Judged, record: Counts, letters: list[str]) -> float:
    here = Counts(passes=letters.count("P"), failures=letters.count("F"))
    return compute_e_value(made.confirmation.prior, record, here, made.confirmation.day)


def _sums(made: Judged) -> Iterator[str]:
    """Why two failures in a row are not enough, and three are."""
    (case,) = made.changes
    assert case.grounds is not None
    record, failures = case.grounds.history, case.grounds.current.failures
    unchanged = _unchanged(made)
    chance, before = (unchanged.compute_failure_chance(Counts(failures=number)) for number in (failures, failures - 1))
    same = sum(one.history.counts == record for one in made.facts.values())
    budget = 100 * made.confirmation.false_alarm_rate * THRESHOLD_SHARE
    yield (
        f"{_WORDS[failures - 1].capitalize()} failures in a row happen by chance in 1 of {round(1 / before, -2):,.0f} "
        f"such cases. The suite has {same} of them, so a gate that stopped at {_WORDS[failures - 1]} would fail "
        f"{100 * same * before:.1f} of 100 harmless pull requests. Single cases may cause {budget:.2f}. "
        f"{_WORDS[failures].capitalize()} happen in 1 of {round(1 / chance, -3):,.0f} cases, or in 1 of "
        f"{round(1 / (same * chance), -2):,.0f} pull requests. So the evidence that is needed lies "
        f"just above that of {_WORDS[failures - 1]}, and it takes {_WORDS[failures]}."
    )
    yield ""


def _unchanged(made: Judged) -> Prior:
    """Failure rates of the case of the first example, if nothing changed."""
    (case,) = made.changes
    assert case.grounds is not None
    return made.confirmation.prior.add_history(case.grounds.history).adjust_to_day(made.confirmation.day)


def chance_sum() -> str:
    """The chance that the case of the first example fails that often if nothing changed, as a sum."""
    made = judged("dead")
    (case,) = made.changes
    assert case.grounds is not None
    failures, unchanged = case.grounds.current.failures, _unchanged(made)
    shares = [(weight, rate) for weight, rate in zip(unchanged.weights, RATES, strict=True) if weight >= 0.0005]
    terms = " + ".join(f"{weight:.4f}·{rate:g}{_POWERS[failures]}" for weight, rate in shares)
    chance = unchanged.compute_failure_chance(Counts(failures=failures))
    return f"{terms} + … = 1 in {round(1 / chance, -3):,.0f}.\n"


def _suite_table(made: Judged) -> Iterator[str]:
    assert made.run.comparison is not None
    finding = made.run.comparison.suite_finding
    assert finding is not None
    assert finding.steady_cases_only
    strata = count_strata(one.stratum for one in made.facts.values() if one.is_in_suite_test and one.stratum.is_steady)
    once = sum(number for kind, number in strata.items() if kind.total_failures == 1)
    (runs,) = {kind.total_runs for kind in strata}
    yield from _table(
        ["cases that seldom fail", "failed at first", "expected", "chance without a real change", "a drop from"],
        [
            f"{finding.cases}",
            f"{finding.failures}",
            f"{finding.expected:.2f}",
            f"1 in {round(1 / finding.chance, -2):,.0f}",
            f"1 in {round(1 / finding.limit):,}",
        ],
    )
    yield ""
    alone = round(1 / compute_tail_chance(strata, finding.failures), -4)
    yield (
        f"{once} of these cases failed once in {runs} runs: here, or in {runs - 1} on main. So {once} / {runs} = "
        f"{once / runs:.2f} failures are expected here. {finding.failures} or more of {once} happen 1 time in "
        f"{alone:,.0f} if no day is worse than others."
    )


def _tool_table(made: Judged) -> Iterator[str]:
    kinds = Counter(one.change for one in made.changes)
    again = sum(case.reruns > 0 for _, case in made.run.iter_cases())
    yield from _table(
        ["cases that failed", "cases re-run", "re-runs", "confirmed regressions", "not re-run"],
        [
            f"{len(made.changes)}",
            f"{again}",
            f"{made.executions - CASES}",
            f"{kinds[CaseClass.REGRESSION]}",
            f"{len(made.changes) - again}",
        ],
    )


def _table(*rows: list[str]) -> Iterator[str]:
    head, *others = rows
    yield f"| {' | '.join(head)} |"
    yield f"|:--|{'--:|' * (len(head) - 1)}"
    yield from (f"| {' | '.join(row)} |" for row in others)


_POWERS = dict(enumerate("⁰¹²³⁴⁵⁶⁷"))
_WORDS = dict(enumerate(("no", "one", "two", "three", "four", "five", "six", "seven")))


def _number(value: float) -> str:
    return f"{math.floor(value):,}" if value >= 10 else f"{value:.1f}"


def weights() -> str:
    """The shares of all failure rates for the case of the first example, if nothing changed and if it got worse."""
    made = judged("dead")
    (case,) = made.changes
    assert case.grounds is not None
    unchanged = _unchanged(made)
    shares = unchanged.weights, compute_alternative(unchanged)
    powers = range(1, case.grounds.current.executions + 1)
    sums = [
        [math.fsum(w * rate**power for w, rate in zip(kind, RATES, strict=True)) for kind in shares] for power in powers
    ]
    rows = [
        [f"{100 * rate:g} %", f"{same:.1e}", f"{worse:.1e}" if worse > 1e-200 else "0"]
        for rate, same, worse in zip(RATES, *shares, strict=True)
    ]
    table = "\n".join(_table(["failure rate", "nothing changed", "got worse"], *rows))
    found = (f"{worse:.2e} / {same:.2e} = {_number(worse / same)}" for same, worse in sums)
    evidence = "; ".join(f"{power} failed: {words}" for power, words in zip(powers, found, strict=True))
    return f"{table}\n\nEvidence: {evidence}.\n"


def pages() -> Mapping[Path, str]:
    """Both pages with their figures made anew."""
    text = PAGE.read_text(encoding="utf-8")
    for example in EXAMPLES:
        text = fill_block(
            text, f"<!-- example {example}: made by {COMMAND} -->\n", "<!-- end of example -->", block_of(example)
        )
    text = fill_block(text, f"<!-- sum: made by {COMMAND} -->\n", "<!-- end of sum -->", chance_sum())
    method = METHOD.read_text(encoding="utf-8")
    place = f"<!-- weights: made by {COMMAND} -->\n", "<!-- end of weights -->"
    return {PAGE: text, METHOD: fill_block(method, *place, weights())}


def fill_block(text: str, start: str, end: str, block: str) -> str:
    """Put a block between two marks of a page."""
    head, found, rest = text.partition(start)
    _, closed, tail = rest.partition(end)
    assert found, f"there is no {start}"
    assert closed, f"there is no {end} after {start}"
    return f"{head}{start}\n{block}\n{end}{tail}"


def main() -> None:
    """Write both pages."""
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
