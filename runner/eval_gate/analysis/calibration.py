"""How well the judge of a stored run agrees with people who labeled the same answers: the figures, and their words.

Source: Cohen 1960, Educational and Psychological Measurement 20, 37-46. Agreement alone flatters: where nine answers of
ten are good, a judge that always says "good" agrees nine times of ten. Kappa is 0 for that judge, and 1 for one that
never differs.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Final, NamedTuple

from eval_gate.config.settings import ResultsFormat
from eval_gate.errors import PAGES, GateError, Problem, did_you_mean
from eval_gate.files.writing import write_atomically
from eval_gate.gate.judge_comparisons import PATH, comparison, read_comparisons, with_comparisons
from eval_gate.model.calibration import JudgeComparison
from eval_gate.model.case import CaseKey
from eval_gate.model.execution import EvaluatorResult, Status
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.reports.facts import wilson
from eval_gate.reports.words.numbers import count, score
from eval_gate.result_formats.jsonl import ResultLine
from eval_gate.result_formats.load import BroughtResults, load_results
from eval_gate.result_formats.rows import ResultRow
from eval_gate.result_formats.scoring import ScoreRules
from eval_gate.struct import FrozenStruct, Struct, field
from eval_gate.text.escape import console_line, first_few
from eval_gate.text.quoting import quoted_name

_DRAWS: Final = 4_000
_SEED: Final = 20_260_101
_TAIL: Final = 0.025
_NO_SUITE: Final = ResultLine.model_fields["suite"].default
"""The suite of a label that names none: its id has to be the only one in the run."""
_NAMED: Final = 10
_MOST_LISTED: Final = 20
_FEW: Final = 30
"""Answers from which on an interval is narrow enough to be of use."""
_GRADES: Final = ((0.81, "almost perfect"), (0.61, "substantial"), (0.41, "moderate"), (0.21, "fair"), (0.0, "slight"))
"""Landis and Koch 1977, Biometrics 33, 159-174."""


class Agreement(NamedTuple):
    """How many answers judge and people called good or bad, by what both said."""

    both_pass: int = 0
    false_passes: int = 0
    """The judge passes what people fail: what a gate lets through."""
    false_failures: int = 0
    """The judge fails what people pass."""
    both_fail: int = 0

    @property
    def compared(self) -> int:
        """Answers that both have judged."""
        return sum(self)

    @property
    def agreed(self) -> int:
        """Answers of which both say the same."""
        return self.both_pass + self.both_fail

    @property
    def passed_by_people(self) -> int:
        """Answers that people call good."""
        return self.both_pass + self.false_failures

    @property
    def failed_by_people(self) -> int:
        """Answers that people call bad."""
        return self.both_fail + self.false_passes

    @property
    def kappa(self) -> float | None:
        """Agreement beyond chance, -1 to 1; None where people said the same of every answer."""
        if not (self.passed_by_people and self.failed_by_people):
            return None
        return _kappa(*self)

    def kappa_between(self) -> tuple[float, float] | None:
        """The middle 95 % of what kappa may be, after these answers; None where there is none.

        Drawn from the table's posterior with half an answer more in each cell (Jeffreys), always with the same seed:
        formulas for large samples say "exactly 1" after three answers without a difference. What was seen is always
        among them: the posterior by itself ends short of 1 and -1, also where nothing differs.
        """
        seen = self.kappa
        if seen is None:
            return None
        draw = random.Random(_SEED).gammavariate  # noqa: S311 (statistics)
        found = sorted(_kappa(*(draw(cell + 0.5, 1.0) for cell in self)) for _ in range(_DRAWS))
        return min(seen, found[int(_TAIL * _DRAWS)]), max(seen, found[int((1 - _TAIL) * _DRAWS)])


class Disagreement(NamedTuple):
    """An answer of which judge and people do not say the same."""

    key: CaseKey
    passed: bool
    """By the judge; people say the opposite."""
    score: float
    said: str | None
    """What people wrote beside their label."""


class JudgeAgreement(NamedTuple):
    """One judge, and what it graded by, as the record has it."""

    judge: str
    agreement: Agreement
    prompts: tuple[str, ...]
    rubrics: tuple[str, ...]


class Calibration(FrozenStruct):
    """What came of holding a run against labels."""

    agreement: Agreement
    differs: tuple[Disagreement, ...]
    judges: tuple[str, ...]
    """Who graded, as the record says it."""
    unmatched: tuple[str, ...]
    """Labels for which the run has no case."""
    undecided: int
    """Labels of which people are as many for as against, or that say neither."""
    unjudged: int
    """Cases with a label that this run, or the evaluator, has not judged."""
    by_judge: tuple[JudgeAgreement, ...] = ()
    """The same for each judge by itself; a case that nobody graded is in none."""


def _kappa(both_pass: float, false_passes: float, false_failures: float, both_fail: float) -> float:
    whole = both_pass + false_passes + false_failures + both_fail
    agreed = (both_pass + both_fail) / whole
    judge, people = (both_pass + false_passes) / whole, (both_pass + false_failures) / whole
    chance = judge * people + (1 - judge) * (1 - people)
    return (agreed - chance) / (1 - chance)


class _Counted(Struct):
    """What one judge and people said of the same answers, and what it graded by."""

    cells: Counter[tuple[bool, bool]] = field(default_factory=Counter)
    prompts: set[str] = field(default_factory=set)
    rubrics: set[str] = field(default_factory=set)

    def of(self, judge: str) -> JudgeAgreement:
        return JudgeAgreement(judge, _agreement(self.cells), tuple(sorted(self.prompts)), tuple(sorted(self.rubrics)))


class _Said(FrozenStruct):
    passed: bool | None
    """By people; None where that is undecided."""
    why: str | None


def compare_with_people(
    run: RunResult, labels: Sequence[str], evaluator: str | None = None, pass_score: float | None = None
) -> Calibration:
    """Hold a run's verdicts, or those of one evaluator, against the labels in these files.

    A label is a line of our own results format; several of one case (by `trial`) are several people, and most of them
    decide. Of an evaluator a score from `pass_score` on passes, or from the run's own.

    Raises GateError `labels-unreadable`, and `labels-unmatched` where nothing can be compared.
    """
    people = _labels(labels, pass_score)
    least = pass_score if pass_score is not None else run.verdict.pass_score if run.verdict else 1.0
    ids = Counter(key.case_id for key, _ in run.cases())
    by_id = {key.case_id: key for key, _ in run.cases() if ids[key.case_id] == 1}
    cases = run.by_key()
    cells: Counter[tuple[bool, bool]] = Counter()
    differs, unmatched, judges = list[Disagreement](), list[str](), defaultdict[str, _Counted](_Counted)
    undecided = unjudged = 0
    for key, rows in people.cases.items():
        place = by_id.get(key.case_id) if key.suite == _NO_SUITE and key not in cases else key
        case = cases.get(place) if place else None
        said = _said(rows)
        if place is None or case is None:
            unmatched.append(str(key.case_id) if key.suite == _NO_SUITE else f"{key.suite}: {key.case_id}")
            continue
        verdict = _verdict(case, evaluator, least)
        if said.passed is None:
            undecided += 1
        elif verdict is None:
            unjudged += 1
        else:
            passed, score = verdict
            cells[passed, said.passed] += 1
            if case.yardstick and case.yardstick.judge:
                counted = judges[case.yardstick.judge]
                counted.cells[passed, said.passed] += 1
                counted.prompts |= {one for one in (case.yardstick.grader,) if one}
                counted.rubrics |= {one for one in (case.yardstick.expectation,) if one}
            if passed is not said.passed:
                differs.append(Disagreement(place, passed, score, said.why))
    agreement = _agreement(cells)
    if not agreement.compared:
        raise _nothing(run, cases, evaluator, unmatched)
    order = sorted(differs, key=lambda one: not one.passed)  # what a gate lets through comes first
    by_judge = tuple(counted.of(judge) for judge, counted in judges.items())
    return Calibration(agreement, tuple(order), tuple(judges), tuple(unmatched), undecided, unjudged, by_judge)


def _labels(files: Sequence[str], pass_score: float | None) -> BroughtResults:
    """What people say, read as results are, though no tool wrote it. Raises GateError `labels-unreadable`."""
    wrong: Sequence[Problem] = [Problem("there is no such file", file=one) for one in files if not Path(one).exists()]
    if not wrong:
        try:
            return load_results(files, ResultsFormat.JSONL, ScoreRules((), pass_score))
        except GateError as error:
            wrong = error.problems
    hint = f'a line is such as {{"id": "refund-1", "status": "failed"}}: {PAGES}/models.md#a-judge-and-people'
    raise GateError("labels-unreadable", "the labels cannot be read", hint, problems=wrong)


def save(
    found: Calibration, run_id: str, evaluator: str | None, root: Path, today: date
) -> tuple[JudgeComparison, ...]:
    """Write what came of it where runs below `root` find it, in place of what was known of the same judges.

    Raises GateError: `labels-unmatched` where no judge graded, and what reading and writing the file raise.
    """
    new = tuple(
        comparison(
            judge=one.judge,
            evaluator=evaluator,
            on=today,
            answers=one.agreement.compared,
            agreed=one.agreement.agreed,
            failed_by_people=one.agreement.failed_by_people,
            false_passes=one.agreement.false_passes,
            prompts=one.prompts,
            rubrics=one.rubrics,
            run_id=run_id,
        )
        for one in found.by_judge
    )
    if not new:
        said = f"no judge graded the answers of run {run_id} that have labels, so there is nothing to save"
        raise GateError("labels-unmatched", said, "leave --save away: what was compared are checks without a judge")
    write_atomically(root / PATH, with_comparisons(read_comparisons(root), new))
    return new


def _agreement(cells: Mapping[tuple[bool, bool], int]) -> Agreement:
    counts = (cells.get((judge, people), 0) for judge in (True, False) for people in (True, False))
    return Agreement(*counts)


def as_json(found: Calibration, run_id: str, evaluator: str | None) -> str:
    """The same for programs."""
    agreement, between = found.agreement, found.agreement.kappa_between()
    told = {
        "runId": run_id,
        "evaluator": evaluator,
        "judges": list(found.judges),
        "compared": agreement.compared,
        "agreed": agreement.agreed,
        "kappa": agreement.kappa,
        "kappaBetween": list(between) if between else None,
        "falsePasses": agreement.false_passes,
        "failedByPeople": agreement.failed_by_people,
        "falseFailures": agreement.false_failures,
        "passedByPeople": agreement.passed_by_people,
        "unmatched": list(found.unmatched),
        "undecided": found.undecided,
        "unjudged": found.unjudged,
        "differs": [
            {
                "suite": one.key.suite,
                "id": one.key.case_id,
                "passed": one.passed,
                "score": one.score,
                "people": one.said,
            }
            for one in found.differs
        ],
    }
    return json.dumps(told, indent=2)


def _said(rows: Sequence[ResultRow]) -> _Said:
    judged = [row.status is Status.PASSED for row in rows if row.status and row.status.judged]
    passes = sum(judged)
    passed = None if passes * 2 == len(judged) else passes * 2 > len(judged)
    return _Said(passed, next((row.error or row.answer for row in rows if row.error or row.answer), None))


def _verdict(case: CaseResult, evaluator: str | None, least: float) -> tuple[bool, float] | None:
    """Whether it passes, and its score; None where it was not judged."""
    if not case.status.judged:
        return None
    if evaluator is None:
        return case.passed, case.score
    found = next((one for one in _all(case.evaluator_results) if one.name == evaluator), None)
    return None if found is None else (found.score >= least and not found.vetoed, found.score)


def _all(results: Sequence[EvaluatorResult]) -> Iterator[EvaluatorResult]:
    for one in results:
        yield one
        yield from _all(one.evaluator_results)


def _nothing(
    run: RunResult, cases: Mapping[CaseKey, CaseResult], evaluator: str | None, unmatched: Sequence[str]
) -> GateError:
    names = sorted({one.name for case in cases.values() for one in _all(case.evaluator_results)})
    if evaluator is not None and evaluator not in names:
        said = f"no case of run {run.run_id} has an evaluator {quoted_name(evaluator)}{did_you_mean(evaluator, names)}"
        return GateError("labels-unmatched", said, f"it has {', '.join(names[:_NAMED]) or 'none'}")
    ids = ", ".join(key.case_id[:60] for key in list(cases)[:3])
    named = f", such as {unmatched[0][:80]}" if unmatched else ""
    return GateError(
        "labels-unmatched",
        f"no label{named} is of an answer that run {run.run_id} has judged",
        f"a label's id is its case's: {ids or 'the run has no cases'}",
    )


def calibration_lines(found: Calibration, who: str, run_id: str) -> Iterator[str]:
    """All there is to say. `who` is the judge, as a sentence begins with it."""
    yield from _describe_agreement(found.agreement, who)
    yield from _left_out(found.unmatched, found.undecided, found.unjudged)
    for passed, title in ((True, "passed, and people fail it:"), (False, "failed, and people pass it:")):
        differs = [one for one in found.differs if one.passed is passed]
        yield from ("", title) if differs else ()
        yield from map(_difference, differs[:_MOST_LISTED])
        if len(differs) > _MOST_LISTED:
            yield f"  … and {len(differs) - _MOST_LISTED} more (--json has all)"
    by = f", graded by {'; '.join(console_line(one, 200) for one in found.judges)}" if found.judges else ""
    yield ""
    yield f"run {run_id}{by}"


def _describe_agreement(agreement: Agreement, who: str) -> Iterator[str]:
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
