"""A row of another tool as a trial of ours, and all rows of a case as its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from eval_gate.config.settings import RunConfig
from eval_gate.engine.journal import TrialRecord
from eval_gate.engine.trials import settle
from eval_gate.model.case import Aggregation, EvalCase, Location
from eval_gate.model.execution import CaseDetails, KeptCall, Status
from eval_gate.model.result import Asked, CaseResult, RerunEnd, Yardstick
from eval_gate.result_formats.rows import Row, evaluator_of
from eval_gate.result_formats.scoring import Rules
from eval_gate.text.digest import digest, fingerprint

MAX_QUESTION: Final = 4_000
MAX_ANSWER: Final = 20_000
MAX_ERROR: Final = 2_000
_NOWHERE: Final = Location(file="results", line=1)
"""A case's place where nobody says one; it is not on record."""


def rules_of(config: RunConfig) -> Rules:
    """What is asked of scores that nobody has judged."""
    least = config.policy.pass_score
    return Rules(config.results.scores, least if least < 1.0 else None)


def case_of(rows: Sequence[Row], more: Sequence[Row], end: RerunEnd | None, rules: Sequence[str]) -> CaseResult:
    """The case's result: `rows` are its executions, `more` its re-runs, `rules` what is asked of scores."""
    first, every = rows[0], [*rows, *more]
    case = EvalCase(
        id=first.id,
        description=first.description,
        messages=(),
        aggregation=Aggregation.WEIGHTED_MEAN if any(row.graded for row in every) else Aggregation.ALL,
        tags=first.tags,
        location=first.location or _NOWHERE,
        fingerprint="" if first.content is None else fingerprint(first.content),
    )
    records = [trial_record(row, number, case.fingerprint) for number, row in enumerate(every)]
    settled = settle(case, records, first.target, first=len(rows), end=end)
    return settled.model_copy(
        update={
            "location": first.location,
            "fingerprint": case.fingerprint or None,
            "asked": _asked(first),
            "yardstick": Yardstick(
                question=None if first.content is None else digest(first.question),
                expectation=None if first.content is None else digest(first.content),
                grader=digest(list(rules)) if rules else None,
            ),
        }
    )


def _asked(row: Row) -> Asked | None:
    if not row.question and not row.expectation:
        return None
    shown = tuple(line[:300] for line in row.expectation[:20])
    cut = len(row.question) > MAX_QUESTION or shown != row.expectation
    return Asked(question=row.question[:MAX_QUESTION], expectation=shown, cut=cut)


def trial_record(row: Row, number: int, case_fingerprint: str = "") -> TrialRecord:
    """One row as one trial."""
    status = row.status or Status.ERROR
    passed = status is Status.PASSED
    return TrialRecord(
        eval_file=row.suite,
        case_id=row.id,
        trial=number,
        fingerprint=case_fingerprint,
        status=status,
        score=_score(row, passed=passed),
        duration_ms=row.duration_ms or 0.0,
        attempts=1,
        assertions_run=len(row.scores),
        error=None if passed else _why(row)[:MAX_ERROR] or None,
        blame=row.blame if status is Status.ERROR else None,
        calls_listed=bool(row.calls),
        details=_details(row),
        evaluator_results=tuple(evaluator_of(score) for score in row.scores),
        usage=row.usage,
        cost_usd=row.cost_usd,
    )


def _score(row: Row, *, passed: bool) -> float:
    if row.graded and row.score is not None:
        return row.score
    return float(passed)


def _why(row: Row) -> str:
    missed = [f"{one.name}: {one.reason}" if one.reason else one.name for one in row.scores if one.passed is False]
    return row.error or "; ".join(missed) or (row.status or Status.ERROR).value


def _details(row: Row) -> CaseDetails:
    answer = row.answer
    return CaseDetails(
        tools_called=tuple(call.name for call in row.calls),
        response_length=len(answer or ""),
        response=None if answer is None else answer[:MAX_ANSWER],
        response_truncated=len(answer or "") > MAX_ANSWER,
        tool_calls=tuple(
            KeptCall(
                name=call.name,
                arguments=call.params or None,
                result=call.result,
                success=call.success,
                duration_ms=call.duration_ms,
            )
            for call in row.calls[:100]
        ),
    )
