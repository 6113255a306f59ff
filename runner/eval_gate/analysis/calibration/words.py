"""How well a judge agrees with people, in words: counts first, then how sure that is, then each difference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from eval_gate.gate.evidence.agreement import Agreement, Calibration, Disagreement
from eval_gate.reports.facts import wilson
from eval_gate.reports.words.numbers import count, score
from eval_gate.text.escape import console_line, first_few

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST: Final = 20
_FEW: Final = 30
"""Answers from which on an interval is narrow enough to be of use."""
_GRADES: Final = ((0.81, "almost perfect"), (0.61, "substantial"), (0.41, "moderate"), (0.21, "fair"), (0.0, "slight"))
"""Landis and Koch 1977, Biometrics 33, 159-174."""


def calibration_lines(found: Calibration, who: str, run_id: str) -> Iterator[str]:
    """All there is to say. `who` is the judge, as a sentence begins with it."""
    yield from _agreement(found.agreement, who)
    yield from _left_out(found.unmatched, found.undecided, found.unjudged)
    for passed, title in ((True, "passed, and people fail it:"), (False, "failed, and people pass it:")):
        differs = [one for one in found.differs if one.passed is passed]
        yield from ("", title) if differs else ()
        yield from map(_difference, differs[:_MOST])
        if len(differs) > _MOST:
            yield f"  … and {len(differs) - _MOST} more (--json has all)"
    by = f", graded by {'; '.join(console_line(one, 200) for one in found.judges)}" if found.judges else ""
    yield ""
    yield f"run {run_id}{by}"


def _agreement(agreement: Agreement, who: str) -> Iterator[str]:
    low, high = wilson(agreement.agreed, agreement.compared)
    yield (
        f"{who} and people agree on {agreement.agreed} of {count(agreement.compared, 'answer')} "
        f"({_share(agreement.agreed, agreement.compared)}; 95 %: {low * 100:.0f} to {high * 100:.0f} %)"
    )
    kappa, between = agreement.kappa, agreement.kappa_between()
    if kappa is None or between is None:
        kind = "pass" if agreement.passed_by_people else "fail"
        yield f"kappa cannot be told: people {kind} every one of them; label some that they {_other(kind)}, too"
    else:
        yield f"kappa {kappa:.2f} (95 %: {between[0]:.2f} to {between[1]:.2f}), {_grade(kappa)} agreement beyond chance"
    yield _wrong("false passes", agreement.false_passes, agreement.failed_by_people, "fail")
    yield _wrong("false failures", agreement.false_failures, agreement.passed_by_people, "pass")
    if agreement.compared < _FEW:
        yield f"{count(agreement.compared, 'answer')} leave much open: from some {_FEW} on the intervals are of use"


def _grade(kappa: float) -> str:
    return next((word for least, word in _GRADES if kappa >= least), "no")


def _left_out(unmatched: Sequence[str], undecided: int, unjudged: int) -> Iterator[str]:
    if unmatched:
        named = first_few(unmatched, 5, lambda one: console_line(one, 60))
        yield f"{count(len(unmatched), 'label')} of no case of this run: {named}"
    if undecided:
        yield f"{count(undecided, 'label')} left out: as many people for as against, or neither"
    if unjudged:
        yield f"{count(unjudged, 'label')} left out: the answer was not judged here"


def _difference(one: Disagreement) -> str:
    people = f"  people: {console_line(one.said, 200)}" if one.said else ""
    return f"  {console_line(f'{one.key.suite}: {one.key.case_id}', 200)}  score {score(one.score)}{people}"


def _wrong(what: str, wrong: int, of: int, people: str) -> str:
    if not of:
        return f"{what}: nothing can be said, people {people} none of them"
    high = wilson(wrong, of)[1]
    return f"{what}: {wrong} of {of} that people {people} ({_share(wrong, of)}; 95 %: at most {high * 100:.0f} %)"


def _other(kind: str) -> str:
    return "fail" if kind == "pass" else "pass"


def _share(part: int, whole: int) -> str:
    return f"{part / whole * 100:.0f} %"
