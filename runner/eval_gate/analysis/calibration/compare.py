"""Holds the verdicts of a stored run against people's labels of the same answers."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Final

from eval_gate.config.settings import ResultsFormat
from eval_gate.errors import PAGES, GateError, Problem, did_you_mean
from eval_gate.files.writing import write_atomically
from eval_gate.gate.evidence.agreement import Agreement, Calibration, Disagreement, JudgeAgreement
from eval_gate.gate.judges.file import PATH, comparison, read_comparisons, with_comparisons
from eval_gate.model.calibration import JudgeComparison
from eval_gate.model.case import CaseKey
from eval_gate.model.execution import EvaluatorResult, Status
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.result_formats.jsonl import ResultLine
from eval_gate.result_formats.load import BroughtResults, load_results
from eval_gate.result_formats.rows import ResultRow
from eval_gate.result_formats.scoring import ScoreRules
from eval_gate.struct import FrozenStruct, Struct, field
from eval_gate.text.quoting import quoted_name

_NO_SUITE: Final = ResultLine.model_fields["suite"].default
"""The suite of a label that names none: its id has to be the only one in the run."""
_NAMED: Final = 10


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
