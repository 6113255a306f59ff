"""Factories for judged runs with records, re-runs and waivers: a case is its letters, `P` and `F`, the rest is made.

A record reads from the newest run to the oldest; what happened here begins with the first execution, and every further
letter is a re-run. `C` crashed, `T` came too late, `U` could not be reached, `O` is ours, and of `E` nobody says whose
fault it is; `.` is a run that does not have the case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta

from eval_gate.config.loader import load_config
from eval_gate.config.policy import FailOn, Policy
from eval_gate.gate.case_comparison import compare_cases
from eval_gate.gate.case_matching import GateCases
from eval_gate.gate.evidence.case_history import HistoryEvidence
from eval_gate.gate.verdict_decision import GateInputs, decide_verdict
from eval_gate.gate.waivers.waiver_file import KnownWaivers
from eval_gate.model.case import Location
from eval_gate.model.comparison import Comparison
from eval_gate.model.execution import ErrorCause, ErrorKind, Status, Trial
from eval_gate.model.result import CaseResult, GitFacts, RunResult
from eval_gate.model.waiver import CommentOrigin, FileOrigin, Waiver, WaiverKind
from eval_gate.results.baseline import NOT_REQUESTED, Baseline, NoBaseline
from eval_gate.results.history import build_history
from eval_gate.struct import replace
from tests.support.results import make_baseline_run, make_result, make_run, make_suite_result

TODAY = date(2026, 11, 21)
ACCEPTED = ".eval-gate/waivers.yaml"
REGRESSIONS = Policy(frozenset({FailOn.REGRESSIONS}))
STEADY = "P" * 20
_STATUS = {"P": Status.PASSED, "F": Status.FAILED, **dict.fromkeys("ECTUO", Status.ERROR)}
_BLAME = {
    "C": ErrorKind.AGENT_ERROR,
    "T": ErrorKind.AGENT_ERROR,
    "U": ErrorKind.AGENT_UNREACHABLE,
    "O": ErrorKind.EVALUATION_ERROR,
}
_CAUSES = {
    "C": ErrorCause.AGENT_FAILED,
    "T": ErrorCause.TIMED_OUT,
    "U": ErrorCause.NO_CONNECTION,
    "O": ErrorCause.EVALUATOR_FAILED,
}
_ERRORS = {
    "E": "agent error: HTTP 500",
    "C": "agent error: HTTP 500 (AttributeError)",
    "T": "timeout: no response within 60000 ms",
    "U": "agent error: no connection to 127.0.0.1:3000: refused",
    "O": "rubric: the judge gave no verdict",
}
_FAILED = "toolsCalled: expected [issue_refund], called [escalate]"


def make_executed(case_id: str, letters: str, *, line: int = 12, **fields) -> CaseResult:
    """A case with these executions, of which all but the first are re-runs."""
    error = fields.pop("error", _FAILED)
    judged = [letter for letter in letters if letter in "PF"]
    passes = judged.count("P")
    status = "error" if not judged else "passed" if passes * 2 > len(judged) else "failed"
    trials = tuple(
        Trial(
            status=_STATUS[letter],
            score=float(letter == "P"),
            duration_ms=120.0,
            error=({"F": error} | _ERRORS).get(letter),
            error_kind=_BLAME.get(letter),
            error_cause=_CAUSES.get(letter),
            http_status=500 if letter in "EC" else None,
            timed_out=letter == "T",
        )
        for letter in letters
    )
    values = {
        "trials": None,
        "reruns": len(letters) - 1,
        "flaky": 0 < passes < len(judged),
        "duration_ms": 120.0 * len(letters),
        "location": Location(file="evals/refund.json", line=line),
        "error": {"failed": error, "error": _ERRORS.get(letters[0])}.get(status),
        "error_kind": _BLAME.get(letters[0]) if status == "error" else None,
        "error_cause": _CAUSES.get(letters[0]) if status == "error" else None,
        "http_status": 500 if status == "error" and letters[0] in "EC" else None,
    }
    made = make_result(case_id, status, **(values | fields))
    return replace(made, trials=trials)


def make_history(records: Mapping[str, str]) -> tuple[RunResult, ...]:
    """The runs of the default branch, newest first, of cases with these records."""
    length = max(map(len, records.values()))
    return tuple(
        make_baseline_run(
            make_suite_result(
                [
                    make_executed(case_id, record[number])
                    for case_id, record in records.items()
                    if number < len(record) and record[number] != "."
                ]
            ),
            run_id=f"{number:02}b7a5e1-0000-4000-8000-000000000000",
            timestamp=f"2026-10-{30 - number:02}T10:00:00Z",
            git=GitFacts(sha=f"{number:02}c1ab7e0000" if number else "3f2c1ab00000"),
        )
        for number in range(length)
    )


def make_judged(
    here: Mapping[str, str] | Sequence[CaseResult],
    records: Mapping[str, str] | None = None,
    *,
    policy: Policy = REGRESSIONS,
    reruns: int = 6,
    waivers: KnownWaivers | None = None,
    **fields,
) -> RunResult:
    """A run with these executions, judged against a branch with these records; without them there is no baseline."""
    cases = here if not isinstance(here, Mapping) else [make_executed(*one) for one in here.items()]
    run = make_run(make_suite_result(list(cases)), reruns=reruns, **fields)
    if records is None:
        return decide_verdict(run, GateInputs(NOT_REQUESTED, policy, waivers=waivers))
    runs = make_history(records)
    baseline = Baseline(runs[0], "main", age_days=2, commits_behind=4, history=build_history(runs))
    return decide_verdict(run, GateInputs(baseline, policy, waivers=waivers))


def rules_of(*words: str) -> frozenset[FailOn]:
    """What fails the gate by these words, as a command line would be told them; without any, what is usual."""
    return load_config({"failOn": list(words)}, {}, None).policy.fail_on


def judge_against(
    run: RunResult,
    baseline: Baseline | NoBaseline,
    policy: Policy = REGRESSIONS,
    *,
    waivers: KnownWaivers | None = None,
) -> RunResult:
    """The run as the one judge has it."""
    return decide_verdict(run, GateInputs(baseline, policy, waivers))


def compare_with(baseline: Baseline, run: RunResult, **options) -> Comparison:
    """The plain comparison, with all that the baseline's ledger knows."""
    cases = GateCases.pair(baseline.result, run)
    return compare_cases(cases, baseline, HistoryEvidence(baseline, 1.0).get_case_evidence(cases), **options)


def make_waiver(case: str, kind: str = "waiver", *, days: int = 14, line: int = 3, **fields) -> Waiver:
    """From the file, unless `url` makes it a comment's. It lasts so many days more."""
    url, is_new, owner = fields.pop("url", None), fields.pop("is_new", None), fields.pop("owner", None)
    origin = (
        CommentOrigin(author=owner or "ada", url=url, written_at="2026-11-20T10:00:00Z")
        if url
        else FileOrigin(file=ACCEPTED, line=line, is_new=is_new)
    )
    owner = (owner or "ada") if url else owner
    values = {"reason": "the new tool answers later, #481", "until": TODAY + timedelta(days=days), "owner": owner}
    return Waiver(kind=WaiverKind(kind), case=case, origin=origin, **(values | fields))


def make_waivers(*waivers: Waiver, **fields) -> KnownWaivers:
    """What these say today."""
    return KnownWaivers(TODAY, waivers, **fields)
