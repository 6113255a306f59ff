"""How what comes after the asking grows with the number of cases: processor seconds of each step, within one process.

    python -m benchmarks.growth                          # 1,000, 10,000 and 100,000 cases
    python -m benchmarks.growth --cases 1000 10000

A run of which one case in a hundred fails (with an answer of 60 characters each, in suites of a thousand) is compared
with one that passed, which has five runs of history. The last column is how often a step takes longer for ten times as
many cases: ten is linear. Steps below 50 ms say nothing of that. With `--check` the exit code is 1 where a step takes
over ten seconds, or over fifteen times as long for ten times as many cases.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).parents[1]))

from tabulate import tabulate

from eval_gate.config.policy import Policy
from eval_gate.gate.case_comparison import compare_cases
from eval_gate.gate.case_matching import GateCases
from eval_gate.gate.evidence.case_history import HistoryEvidence
from eval_gate.gate.verdict_decision import GateInputs, decide_verdict
from eval_gate.model.execution import CaseDetails, EvaluatorResult, Status, Trial
from eval_gate.model.result import CaseFingerprints, CaseResult, RunResult, Shard, SuiteResult, ToolIdentity
from eval_gate.model.run_totals import summarize_cases
from eval_gate.model.setup import TargetIdentity
from eval_gate.reports.console.style import ConsoleStyle
from eval_gate.reports.context import ReportContext
from eval_gate.reports.markdown import render_comment, render_summary
from eval_gate.reports.rendering import render
from eval_gate.reports.view.report_view import build_view
from eval_gate.results.baseline import Baseline
from eval_gate.results.history import History, encode_history, parse_history
from eval_gate.results.merge import merge_runs
from eval_gate.results.run_reader import read_run
from eval_gate.results.run_writer import write_history, write_result
from eval_gate.session.history_update import build_next_history
from eval_gate.struct import replace

SUITE = 1_000
SHARDS = 4
HISTORY = 5
MOST_S = 10.0
TOLD_S = 0.05
STEEPEST = 15.0
WHAT = TypeVar("WHAT")


def _written(run: RunResult, ledger: History) -> None:
    write_history(Path("runs"), run.run_id, ledger)
    write_result(Path("runs"), run)


def case_of(number: int, *, failing: bool) -> CaseResult:
    """One case, as a run of an HTTP agent leaves it."""
    status = Status.FAILED if failing else Status.PASSED
    error = "responseContains: expected '21' in response but not found" if failing else None
    said = f"It is {number % 40} degrees in place {number}, and it will stay so."
    return CaseResult(
        id=f"weather {number}",
        description=f"asks for the weather in place {number}",
        passed=not failing,
        status=status,
        score=float(not failing),
        duration_ms=12.0 + number % 7,
        assertions_run=2,
        error=error,
        attempts=1,
        details=CaseDetails(response=said, response_length=len(said)),
        evaluator_results=(EvaluatorResult(name="responseContains", type="check", score=float(not failing)),),
        trials=(Trial(status=status, score=float(not failing), duration_ms=12.0, error=error, decisive=True),),
        fingerprint=f"{number:064x}",
        fingerprints=CaseFingerprints(prompt=f"{number:016x}", expectation=f"{number + 1:016x}"),
    )


def run_of(cases: int, every: int) -> RunResult:
    """Build a run result with `cases` cases, in which one case in `every` fails.

    If `every` is 0, no case fails.
    """
    run_id, suites = str(uuid.uuid4()), []
    for begin in range(0, cases, SUITE):
        numbers = range(begin, min(begin + SUITE, cases))
        some = tuple(case_of(number, failing=every > 0 and number % every == 0) for number in numbers)
        file = f"evals/weather-{begin // SUITE}.json"
        common = {"run_id": run_id, "timestamp": "2026-11-23T06:00:00Z", "tier": None, "tool_name": "weather"}
        suites.append(SuiteResult(**common, eval_file=file, cases=some, summary=summarize_cases(some)))
    return RunResult(
        run_id=run_id,
        timestamp="2026-11-23T06:00:00Z",
        complete=True,
        tool=ToolIdentity(version="1"),
        target=TargetIdentity(name="agent", provider="http", identity="http://localhost:3000/chat"),
        suites=tuple(suites),
        summary=summarize_cases([case for suite in suites for case in suite.cases]),
        planned_cases=cases,
        reruns=0,
    )


def shards_of(run: RunResult) -> list[RunResult]:
    """Split a run result into the results of its shards, with every fourth case in one shard."""
    parts = []
    for index in range(SHARDS):
        suites = []
        for suite in run.suites:
            some = suite.cases[index::SHARDS]
            suites.append(replace(suite, cases=some, summary=summarize_cases(some)))
        whole = summarize_cases([case for suite in suites for case in suite.cases])
        shard = {"run_id": str(uuid.uuid4()), "shard": Shard(index=index + 1, count=SHARDS)}
        parts.append(
            replace(
                run,
                suites=tuple(suites),
                summary=whole,
                **shard,
            )
        )
    return parts


class Steps:
    """What each step took, in processor seconds."""

    def __init__(self) -> None:
        self.took: dict[str, float] = {}

    def __call__(self, name: str, work: Callable[[], WHAT]) -> WHAT:
        """Do it, and note what it took."""
        begun = time.process_time()
        result = work()
        self.took[name] = time.process_time() - begun
        return result


def measure(cases: int) -> dict[str, float]:
    """Measure every step for this number of cases, and return processor seconds by step."""
    then, now, step = run_of(cases, 0), run_of(cases, 100), Steps()
    ledger = History()
    for number in range(HISTORY):
        ledger = ledger.with_run(replace(then, run_id=f"{number}-{then.run_id}"))
    ledger = ledger.with_run(then)
    with tempfile.TemporaryDirectory() as name, chdir(name):
        write_history(Path("runs"), then.run_id, ledger)
        record = write_result(Path("runs"), then).file
        then = step("baseline read", lambda: read_run(str(record), Path("runs")))
        ledger = step("ledger read", lambda: parse_history(encode_history(ledger), "history.json"))
        baseline = Baseline(then, "main", history=ledger)
        paired = step("cases paired", lambda: GateCases.pair(then, now))
        past = step("past", lambda: HistoryEvidence(baseline, 1.0).get_case_evidence(paired))
        step("compare", lambda: compare_cases(paired, baseline, past))
        parts = shards_of(now)
        merged = step(f"merge of {SHARDS} shards", lambda: merge_runs(parts, now.run_id))
        assert merged.summary.total_cases == cases
        judged = step("verdict, comparing included", lambda: decide_verdict(now, GateInputs(baseline, Policy())))
        assert judged.verdict is not None
        assert judged.verdict.exit_code == 1
        after = step("ledger carried on", lambda: build_next_history(judged, baseline))
        step("record, suites and ledger written", lambda: _written(judged, after))
        context = ReportContext()
        step("comment", lambda: render_comment(build_view(judged, context)))
        step("summary", lambda: render_summary(build_view(judged, context)))
        step("console", lambda: render("console", judged, context, style=ConsoleStyle()))
        step("page", lambda: render("html", judged, context))
        step("JUnit", lambda: render("junit", judged, context))
    step.took["all of it"] = sum(step.took.values()) - step.took["compare"] - step.took["past"]
    return step.took


def _growth(took: list[float], cases: list[int]) -> float | None:
    """How often the last takes as long as the one before, per ten times as many cases; None where that is too short."""
    if len(took) < 2 or took[-2] < TOLD_S or cases[-1] <= cases[-2]:
        return None
    return took[-1] / took[-2] / (cases[-1] / cases[-2]) * 10


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    gc.set_threshold(50_000)  # as the program does
    measure(100)  # templates and modules are loaded once
    found = [measure(cases) for cases in asked.cases]
    rows, steep = [], []
    for name in found[0]:
        took = [one[name] for one in found]
        growth = _growth(took, asked.cases)
        rows.append([name, *(f"{one:.2f}" for one in took), "–" if growth is None else f"{growth:.0f}"])
        if name != "all of it" and (took[-1] > MOST_S or (growth or 0.0) > STEEPEST):
            steep.append(name)
    heads = ["step", *(f"{cases:,} cases, s" for cases in asked.cases), "for ten times as many"]
    print(
        tabulate(
            rows,
            headers=heads,
            tablefmt="github",
            disable_numparse=True,
            colalign=["left"] + ["right"] * (len(heads) - 1),
        )
    )
    if asked.check and steep:
        sys.exit(f"too slow, or not linear: {', '.join(steep)}")


if __name__ == "__main__":
    main()
