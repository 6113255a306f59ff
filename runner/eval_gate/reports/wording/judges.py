"""Wording for how well each LLM judge agrees with human labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from eval_gate.model.calibration import JudgeComparison, JudgeKnowledge, JudgeOfRun
from eval_gate.model.result import RunResult
from eval_gate.reports.run_statistics import compute_wilson_interval
from eval_gate.reports.wording.numbers import format_count
from eval_gate.text.escape import to_one_line

MAX_JUDGES: Final = 3
"""Judges that are told one by one: those that graded most."""
MAX_JUDGE: Final = 80
_CALIBRATE_COMMAND: Final = "`eval-gate calibrate LABELS --save`"


def describe_judges(run: RunResult, of: frozenset[str] | None = None) -> tuple[str, ...]:
    """A sentence for each judge that graded, without its full stop; none where nobody looked.

    With `of`, the judges that decide something here: of the others only what is known is said.
    """
    if run.judges is None:
        return ()
    known = [
        one for one in run.judges.judges if of is None or one.judge in of or one.knowing is JudgeKnowledge.COMPARED
    ]
    return tuple(_iter_descriptions(known, run.judges.trouble))


def _iter_descriptions(judges: list[JudgeOfRun], trouble: str | None) -> Iterator[str]:
    if judges and trouble is not None:
        who = "the judge is" if len(judges) == 1 else "the judges are"
        yield f"how well {who} known could not be looked up: {trouble}"
        return
    for one in judges[:MAX_JUDGES]:
        brought = "; this pull request brings a comparison, which counts once it is merged" if one.proposed else ""
        yield f"{_describe_judge(one)}{brought}"
    if more := len(judges) - MAX_JUDGES:
        yield from (f"{format_count(more, 'more judge')} graded",) if more > 0 else ()


def _describe_judge(one: JudgeOfRun) -> str:
    name, known = to_one_line(one.judge, MAX_JUDGE), one.compared
    how = "" if one.proposed else f": {_CALIBRATE_COMMAND}"
    match one.knowing:
        case JudgeKnowledge.COMPARED if known is not None:
            least = f"at least {compute_wilson_interval(known.agreed, known.answers)[0] * 100:.0f} %"
            return (
                f"the judge {name} agreed with people on {_format_agreement(known)} "
                f"({least}){_format_false_passes(known)}"
            )
        case JudgeKnowledge.OTHER_PROMPT if known is not None:
            said = (
                f"the judge {name} agreed with people on {_format_agreement(known)}, but by another prompt or rubric "
                "than here"
            )
            return f"{said}, so how good it is now nobody knows{how}"
        case JudgeKnowledge.OTHER_JUDGE if known is not None:
            other = (
                f"another judge was: {to_one_line(known.judge, MAX_JUDGE)}, which agreed with them on "
                f"{_format_agreement(known)}"
            )
            return f"nobody has compared the judge {name} with people's labels; {other}{how}"
        case _:
            return f"nobody has compared the judge {name} with people's labels yet{how}"


def _format_agreement(known: JudgeComparison) -> str:
    of = f" of {to_one_line(known.evaluator, MAX_JUDGE)}" if known.evaluator else ""
    return f"{known.agreed} of {format_count(known.answers, 'label')}{of} on {known.on.isoformat()}"


def _format_false_passes(known: JudgeComparison) -> str:
    if not known.failed_by_people:
        return "; people failed none of these answers, so what it wrongly passes is not known"
    return f"; it passed {known.false_passes} of {known.failed_by_people} that people failed"
