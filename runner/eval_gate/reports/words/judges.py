"""How well the judges of a run are known, in a line each: what people said of the same answers, or that nobody did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from eval_gate.model.calibration import JudgeComparison, JudgeKnowledge, JudgeOfRun
from eval_gate.model.result import RunResult
from eval_gate.reports.facts import wilson
from eval_gate.reports.words.numbers import count
from eval_gate.text.escape import one_line

MOST: Final = 3
"""Judges that are told one by one: those that graded most."""
MAX_JUDGE: Final = 80
_HOW: Final = "`eval-gate calibrate LABELS --save`"


def judge_lines(run: RunResult, of: frozenset[str] | None = None) -> tuple[str, ...]:
    """A sentence for each judge that graded, without its full stop; none where nobody looked.

    With `of`, the judges that decide something here: of the others only what is known is said.
    """
    if run.judges is None:
        return ()
    known = [
        one for one in run.judges.judges if of is None or one.judge in of or one.knowing is JudgeKnowledge.COMPARED
    ]
    return tuple(_lines(known, run.judges.trouble))


def _lines(judges: list[JudgeOfRun], trouble: str | None) -> Iterator[str]:
    if judges and trouble is not None:
        who = "the judge is" if len(judges) == 1 else "the judges are"
        yield f"how well {who} known could not be looked up: {trouble}"
        return
    for one in judges[:MOST]:
        brought = "; this pull request brings a comparison, which counts once it is merged" if one.proposed else ""
        yield f"{_line(one)}{brought}"
    if more := len(judges) - MOST:
        yield from (f"{count(more, 'more judge')} graded",) if more > 0 else ()


def _line(one: JudgeOfRun) -> str:
    name, known = one_line(one.judge, MAX_JUDGE), one.compared
    how = "" if one.proposed else f": {_HOW}"
    match one.knowing:
        case JudgeKnowledge.COMPARED if known is not None:
            least = f"at least {wilson(known.agreed, known.answers)[0] * 100:.0f} %"
            return f"the judge {name} agreed with people on {_agreed(known)} ({least}){_wrong(known)}"
        case JudgeKnowledge.OTHER_PROMPT if known is not None:
            said = f"the judge {name} agreed with people on {_agreed(known)}, but by another prompt or rubric than here"
            return f"{said}, so how good it is now nobody knows{how}"
        case JudgeKnowledge.OTHER_JUDGE if known is not None:
            other = f"another judge was: {one_line(known.judge, MAX_JUDGE)}, which agreed with them on {_agreed(known)}"
            return f"nobody has compared the judge {name} with people's labels; {other}{how}"
        case _:
            return f"nobody has compared the judge {name} with people's labels yet{how}"


def _agreed(known: JudgeComparison) -> str:
    of = f" of {one_line(known.evaluator, MAX_JUDGE)}" if known.evaluator else ""
    return f"{known.agreed} of {count(known.answers, 'label')}{of} on {known.on.isoformat()}"


def _wrong(known: JudgeComparison) -> str:
    if not known.failed_by_people:
        return "; people failed none of these answers, so what it wrongly passes is not known"
    return f"; it passed {known.false_passes} of {known.failed_by_people} that people failed"
