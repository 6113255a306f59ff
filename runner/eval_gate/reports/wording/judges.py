"""Wording for how well each LLM judge agrees with human labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from eval_gate.model.calibration import CalibrationStatus, JudgeAgreementRecord, RunJudge
from eval_gate.model.result import RunResult
from eval_gate.reports.run_statistics import compute_wilson_interval
from eval_gate.text.escape import format_count, to_one_line

MAX_JUDGES: Final = 3
"""Judges that are described one by one: those that scored most."""
MAX_JUDGE: Final = 80
_CALIBRATE_COMMAND: Final = "`eval-gate calibrate LABELS --save`"


def describe_judges(run: RunResult, of: frozenset[str] | None = None) -> tuple[str, ...]:
    """Describe each LLM judge of the run in a sentence without its period.

    Empty if the judges were not looked up; one sentence if the look-up failed. Judges beyond a limit are only counted.
    `of` selects judges; of all others, only those compared with human labels are described.
    """
    if run.judges is None:
        return ()
    judges = [
        one
        for one in run.judges.judges
        if of is None or one.judge in of or one.calibration is CalibrationStatus.COMPARED
    ]
    return tuple(_iter_descriptions(judges, run.judges.problem))


def _iter_descriptions(judges: list[RunJudge], trouble: str | None) -> Iterator[str]:
    if judges and trouble is not None:
        who = "the LLM judge agrees" if len(judges) == 1 else "the LLM judges agree"
        yield f"how often {who} with people is unknown: {trouble}"
        return
    for one in judges[:MAX_JUDGES]:
        note = "; the comparison in this pull request counts after the merge" if one.proposed else ""
        yield f"{_describe_judge(one)}{note}"
    if more := len(judges) - MAX_JUDGES:
        yield from (f"{format_count(more, 'more LLM judge')} scored cases",) if more > 0 else ()


def _describe_judge(one: RunJudge) -> str:
    name, agreement = to_one_line(one.judge, MAX_JUDGE), one.agreement
    how = "" if one.proposed else f"; to compare it, run {_CALIBRATE_COMMAND}"
    match one.calibration:
        case CalibrationStatus.COMPARED if agreement is not None:
            least = f"at least {compute_wilson_interval(agreement.agreed, agreement.responses)[0] * 100:.0f} %"
            return f"the LLM judge {name} {_format_agreement(agreement)} ({least}){_format_false_passes(agreement)}"
        case CalibrationStatus.OTHER_PROMPT if agreement is not None:
            return (
                f"the LLM judge {name} {_format_agreement(agreement)}, but its prompt or rubric has changed since{how}"
            )
        case CalibrationStatus.OTHER_JUDGE if agreement is not None:
            other = f"{to_one_line(agreement.judge, MAX_JUDGE)} {_format_agreement(agreement)}"
            return f"the LLM judge {name} has not been compared with people's labels, but {other}{how}"
        case _:
            return f"the LLM judge {name} has not been compared with people's labels yet{how}"


def _format_agreement(agreement: JudgeAgreementRecord) -> str:
    of = f" of {to_one_line(agreement.evaluator, MAX_JUDGE)}" if agreement.evaluator else ""
    labels, day = format_count(agreement.responses, "label"), agreement.compared_on.isoformat()
    return f"agreed with people on {agreement.agreed} of {labels}{of} on {day}"


def _format_false_passes(agreement: JudgeAgreementRecord) -> str:
    if not agreement.failed_by_people:
        return "; people failed none of these responses, so false passes are unknown"
    return f"; it passed {agreement.false_passes} of {agreement.failed_by_people} responses that people failed"
