"""Wording for how well each LLM judge agrees with human labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from eval_gate.model.calibration import CalibrationStatus, JudgeAgreementRecord, RunJudge
from eval_gate.model.result import RunResult
from eval_gate.reports.run_statistics import compute_wilson_interval
from eval_gate.text.escape import format_count, to_one_line

MAX_JUDGES: Final = 3
"""Judges that are told one by one: those that graded most."""
MAX_JUDGE: Final = 80
_CALIBRATE_COMMAND: Final = "`eval-gate calibrate LABELS --save`"


def describe_judges(run: RunResult, of: frozenset[str] | None = None) -> tuple[str, ...]:
    """Describe each LLM judge of the run in a sentence without its period.

    Return an empty tuple if the judges were not looked up; if the look-up failed, one sentence says so. Judges
    beyond a limit are only counted. With `of`, of all other judges only those that were compared with human labels
    are described.
    """
    if run.judges is None:
        return ()
    known = [
        one
        for one in run.judges.judges
        if of is None or one.judge in of or one.calibration is CalibrationStatus.COMPARED
    ]
    return tuple(_iter_descriptions(known, run.judges.problem))


def _iter_descriptions(judges: list[RunJudge], trouble: str | None) -> Iterator[str]:
    if judges and trouble is not None:
        who = "the LLM judge agrees" if len(judges) == 1 else "the LLM judges agree"
        yield f"how often {who} with people is unknown: {trouble}"
        return
    for one in judges[:MAX_JUDGES]:
        brought = "; the comparison in this pull request counts after the merge" if one.proposed else ""
        yield f"{_describe_judge(one)}{brought}"
    if more := len(judges) - MAX_JUDGES:
        yield from (f"{format_count(more, 'more LLM judge')} scored cases",) if more > 0 else ()


def _describe_judge(one: RunJudge) -> str:
    name, known = to_one_line(one.judge, MAX_JUDGE), one.agreement
    how = "" if one.proposed else f"; to compare it, run {_CALIBRATE_COMMAND}"
    match one.calibration:
        case CalibrationStatus.COMPARED if known is not None:
            least = f"at least {compute_wilson_interval(known.agreed, known.responses)[0] * 100:.0f} %"
            return (
                f"the LLM judge {name} agreed with people on {_format_agreement(known)} "
                f"({least}){_format_false_passes(known)}"
            )
        case CalibrationStatus.OTHER_PROMPT if known is not None:
            return (
                f"the LLM judge {name} agreed with people on {_format_agreement(known)}, but its prompt or rubric has "
                f"changed since{how}"
            )
        case CalibrationStatus.OTHER_JUDGE if known is not None:
            other = f"{to_one_line(known.judge, MAX_JUDGE)} agreed with people on {_format_agreement(known)}"
            return f"the LLM judge {name} has not been compared with people's labels, but {other}{how}"
        case _:
            return f"the LLM judge {name} has not been compared with people's labels yet{how}"


def _format_agreement(known: JudgeAgreementRecord) -> str:
    of = f" of {to_one_line(known.evaluator, MAX_JUDGE)}" if known.evaluator else ""
    return f"{known.agreed} of {format_count(known.responses, 'label')}{of} on {known.compared_on.isoformat()}"


def _format_false_passes(known: JudgeAgreementRecord) -> str:
    if not known.failed_by_people:
        return "; people failed none of these responses, so false passes are unknown"
    return f"; it passed {known.false_passes} of {known.failed_by_people} responses that people failed"
