"""Agreement of a stored run's LLM judge with human labels: figures and their wording.

Source: Cohen 1960, Educational and Psychological Measurement 20, 37-46. Agreement alone flatters: if nine of ten
responses are good, a judge that passes every response agrees with nine. Kappa is 0 for that judge, and 1 for one that
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
from eval_gate.errors import PAGES, GateError, Problem, format_suggestion
from eval_gate.external_results.jsonl import ResultLine
from eval_gate.external_results.loader import ExternalResults, load_external_results
from eval_gate.external_results.result_rows import ResultRow
from eval_gate.external_results.score_rules import ScoreRules
from eval_gate.files.writing import write_atomically
from eval_gate.gate.judge_agreement import JUDGES_PATH, build_comparison, merge_comparisons, read_judge_agreements
from eval_gate.model.calibration import JudgeAgreementRecord
from eval_gate.model.case import CaseKey
from eval_gate.model.execution import EvaluatorResult, Status
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.reports.run_statistics import compute_wilson_interval
from eval_gate.reports.wording.numbers import format_score
from eval_gate.struct import FrozenStruct, Struct, field
from eval_gate.text.escape import format_count, format_first_few, to_console_line
from eval_gate.text.quoting import quote_name

_DRAWS: Final = 4_000
_SEED: Final = 20_260_101
_TAIL: Final = 0.025
_NO_SUITE: Final = ResultLine.model_fields["suite"].default
"""The suite of a label without one: its id has to be unique in the run."""
_MAX_NAMED: Final = 10
_MAX_LISTED: Final = 20
_MIN_RESPONSES: Final = 30
"""Fewest responses for which an interval is narrow enough to be useful."""
_GRADES: Final = ((0.81, "almost perfect"), (0.61, "substantial"), (0.41, "moderate"), (0.21, "fair"), (0.0, "slight"))
"""Landis and Koch 1977, Biometrics 33, 159-174."""


class Agreement(NamedTuple):
    """Confusion matrix of judge and human verdicts."""

    both_pass: int = 0
    false_passes: int = 0
    """The judge passes what people fail: what a gate lets through."""
    false_failures: int = 0
    both_fail: int = 0

    @property
    def compared_count(self) -> int:
        """Responses with a verdict of both."""
        return sum(self)

    @property
    def agreed_count(self) -> int:
        """Responses with the same verdict of both."""
        return self.both_pass + self.both_fail

    @property
    def passed_by_people(self) -> int:
        """Responses that people pass."""
        return self.both_pass + self.false_failures

    @property
    def failed_by_people(self) -> int:
        """Responses that people fail."""
        return self.both_fail + self.false_passes

    @property
    def kappa(self) -> float | None:
        """Agreement beyond chance, -1 to 1; None if people give every response the same verdict."""
        if not (self.passed_by_people and self.failed_by_people):
            return None
        return _compute_kappa(*self)

    def compute_kappa_interval(self) -> tuple[float, float] | None:
        """Compute the central 95 % interval of kappa, or None if kappa is undefined.

        The interval is drawn from the table's posterior with half a response added to each cell (Jeffreys), always with
        the same seed. Formulas for large samples say "exactly 1" after three responses without a disagreement. The
        interval always includes the observed kappa: the posterior alone ends short of 1 and -1, even without any
        disagreement.
        """
        kappa = self.kappa
        if kappa is None:
            return None
        draw = random.Random(_SEED).gammavariate  # noqa: S311 (statistics)
        samples = sorted(_compute_kappa(*(draw(cell + 0.5, 1.0) for cell in self)) for _ in range(_DRAWS))
        return min(kappa, samples[int(_TAIL * _DRAWS)]), max(kappa, samples[int((1 - _TAIL) * _DRAWS)])


class Disagreement(NamedTuple):
    """A response on which judge and people disagree."""

    key: CaseKey
    passed: bool
    """By the judge; people say the opposite."""
    score: float
    comment: str | None


class JudgeCounts(Struct):
    """Results of one judge and of people for the same responses, and its prompts and rubrics."""

    cells: Counter[tuple[bool, bool]] = field(default_factory=Counter)
    prompts: set[str] = field(default_factory=set)
    rubrics: set[str] = field(default_factory=set)


class Calibration(FrozenStruct):
    """Comparison of a run with human labels."""

    agreement: Agreement
    disagreements: tuple[Disagreement, ...]
    unmatched_labels: tuple[str, ...]
    undecided_labels: int
    """Labels without a verdict, or whose people disagree evenly."""
    unjudged_cases: int
    """Labeled cases that have no score in this run, or none of the evaluator."""
    by_judge: Mapping[str, JudgeCounts]
    """The same for each judge, by its name in the run; a case without a judge is in none."""


def _compute_kappa(both_pass: float, false_passes: float, false_failures: float, both_fail: float) -> float:
    whole = both_pass + false_passes + false_failures + both_fail
    agreed = (both_pass + both_fail) / whole
    judge, people = (both_pass + false_passes) / whole, (both_pass + false_failures) / whole
    chance = judge * people + (1 - judge) * (1 - people)
    return (agreed - chance) / (1 - chance)


class _PeopleVerdict(FrozenStruct):
    passed: bool | None
    """By people; None if they disagree evenly."""
    comment: str | None


def compare_with_people(
    run: RunResult, labels: Sequence[str], evaluator: str | None = None, pass_score: float | None = None
) -> Calibration:
    """Compare a run's verdicts, or those of one evaluator, with the labels in these files.

    A label is a line of Eval Gate's results format. Several labels of one case (by `trial`) are several people, and the
    majority decides. An evaluator passes a response from `pass_score` on, by default the run's own.

    Raises GateError `invalid-labels`, and `unmatched-labels` if there is nothing to compare.
    """
    people = _load_labels(labels, pass_score)
    least = pass_score if pass_score is not None else run.verdict.pass_score if run.verdict else 1.0
    ids = Counter(key.case_id for key, _ in run.iter_cases())
    by_id = {key.case_id: key for key, _ in run.iter_cases() if ids[key.case_id] == 1}
    cases = run.index_cases()
    cells: Counter[tuple[bool, bool]] = Counter()
    differs, unmatched, judges = list[Disagreement](), list[str](), defaultdict[str, JudgeCounts](JudgeCounts)
    undecided = unjudged = 0
    for key, rows in people.cases.items():
        place = by_id.get(key.case_id) if key.suite == _NO_SUITE and key not in cases else key
        case = cases.get(place) if place else None
        label = _join_labels(rows)
        if place is None or case is None:
            unmatched.append(str(key.case_id) if key.suite == _NO_SUITE else f"{key.suite}: {key.case_id}")
            continue
        verdict = _find_verdict(case, evaluator, least)
        if label.passed is None:
            undecided += 1
        elif verdict is None:
            unjudged += 1
        else:
            passed, score = verdict
            cells[passed, label.passed] += 1
            if case.fingerprints and case.fingerprints.judge:
                counted = judges[case.fingerprints.judge]
                counted.cells[passed, label.passed] += 1
                counted.prompts |= {one for one in (case.fingerprints.grader,) if one}
                counted.rubrics |= {one for one in (case.fingerprints.expectation,) if one}
            if passed is not label.passed:
                differs.append(Disagreement(place, passed, score, label.comment))
    agreement = _build_agreement(cells)
    if not agreement.compared_count:
        raise _build_no_match_error(run, cases, evaluator, unmatched)
    order = sorted(differs, key=lambda one: not one.passed)  # what a gate lets through comes first
    return Calibration(agreement, tuple(order), tuple(unmatched), undecided, unjudged, judges)


def _load_labels(files: Sequence[str], pass_score: float | None) -> ExternalResults:
    wrong: Sequence[Problem] = [Problem("file not found", file=one) for one in files if not Path(one).exists()]
    if not wrong:
        try:
            return load_external_results(files, ResultsFormat.JSONL, ScoreRules((), pass_score))
        except GateError as error:
            wrong = error.problems
    hint = f'write lines such as {{"id": "refund-1", "status": "failed"}}: {PAGES}/models.md#calibrate-an-llm-judge'
    raise GateError("invalid-labels", "the labels cannot be read", hint, problems=wrong)


def save_comparisons(
    calibration: Calibration, run_id: str, evaluator: str | None, root: Path, today: date
) -> tuple[JudgeAgreementRecord, ...]:
    """Save the comparisons for the runs below `root`, in place of earlier ones of the same judges.

    Raises GateError: `unmatched-labels` if no judge scored a labeled response, and what reading and writing raise.
    """
    new = tuple(
        build_comparison(
            judge=judge,
            evaluator=evaluator,
            compared_on=today,
            responses=agreement.compared_count,
            agreed=agreement.agreed_count,
            failed_by_people=agreement.failed_by_people,
            false_passes=agreement.false_passes,
            prompts=tuple(sorted(counts.prompts)),
            rubrics=tuple(sorted(counts.rubrics)),
            run_id=run_id,
        )
        for judge, counts in calibration.by_judge.items()
        for agreement in [_build_agreement(counts.cells)]
    )
    if not new:
        message = f"no judge scored a labeled response of run {run_id}, so there is nothing to save"
        raise GateError("unmatched-labels", message, "remove --save: the labeled checks have no judge")
    write_atomically(root / JUDGES_PATH, merge_comparisons(read_judge_agreements(root), new))
    return new


def _build_agreement(cells: Mapping[tuple[bool, bool], int]) -> Agreement:
    counts = (cells.get((judge, people), 0) for judge in (True, False) for people in (True, False))
    return Agreement(*counts)


def as_json(calibration: Calibration, run_id: str, evaluator: str | None) -> str:
    """Format the calibration as JSON for programs."""
    agreement, interval = calibration.agreement, calibration.agreement.compute_kappa_interval()
    document = {
        "runId": run_id,
        "evaluator": evaluator,
        "judges": list(calibration.by_judge),
        "compared": agreement.compared_count,
        "agreed": agreement.agreed_count,
        "kappa": agreement.kappa,
        "kappaBetween": list(interval) if interval else None,
        "falsePasses": agreement.false_passes,
        "failedByPeople": agreement.failed_by_people,
        "falseFailures": agreement.false_failures,
        "passedByPeople": agreement.passed_by_people,
        "unmatched": list(calibration.unmatched_labels),
        "undecided": calibration.undecided_labels,
        "unscored": calibration.unjudged_cases,
        "differs": [
            {
                "suite": one.key.suite,
                "id": one.key.case_id,
                "passed": one.passed,
                "score": one.score,
                "people": one.comment,
            }
            for one in calibration.disagreements
        ],
    }
    return json.dumps(document, indent=2)


def _join_labels(rows: Sequence[ResultRow]) -> _PeopleVerdict:
    judged = [row.status is Status.PASSED for row in rows if row.status and row.status.is_scored]
    passes = sum(judged)
    passed = None if passes * 2 == len(judged) else passes * 2 > len(judged)
    return _PeopleVerdict(passed, next((row.error or row.response for row in rows if row.error or row.response), None))


def _find_verdict(case: CaseResult, evaluator: str | None, least: float) -> tuple[bool, float] | None:
    """Return whether the response passes, and its score; None without a score."""
    if not case.status.is_scored:
        return None
    if evaluator is None:
        return case.passed, case.score
    result = next((one for one in _iter_results(case.evaluator_results) if one.name == evaluator), None)
    return None if result is None else (result.score >= least and not result.vetoed, result.score)


def _iter_results(results: Sequence[EvaluatorResult]) -> Iterator[EvaluatorResult]:
    for one in results:
        yield one
        yield from _iter_results(one.evaluator_results)


def _build_no_match_error(
    run: RunResult, cases: Mapping[CaseKey, CaseResult], evaluator: str | None, unmatched: Sequence[str]
) -> GateError:
    names = sorted({one.name for case in cases.values() for one in _iter_results(case.evaluator_results)})
    if evaluator is not None and evaluator not in names:
        message = (
            f"no case of run {run.run_id} has an evaluator {quote_name(evaluator)}{format_suggestion(evaluator, names)}"
        )
        return GateError("unmatched-labels", message, f"it has {', '.join(names[:_MAX_NAMED]) or 'none'}")
    ids = ", ".join(key.case_id[:60] for key in list(cases)[:3])
    example = f", such as {unmatched[0][:80]}" if unmatched else ""
    return GateError(
        "unmatched-labels",
        f"no label{example} matches a response with a score in run {run.run_id}",
        f"use the ids of cases as ids of labels: {ids or 'the run has no cases'}",
    )


def iter_calibration_lines(calibration: Calibration, who: str, run_id: str) -> Iterator[str]:
    """Yield the lines of a calibration for a terminal. `who` is the judge, as a sentence begins with it."""
    yield from _describe_agreement(calibration.agreement, who)
    yield from _iter_skipped_lines(
        calibration.unmatched_labels, calibration.undecided_labels, calibration.unjudged_cases
    )
    for passed, title in ((True, "passed, but people fail it:"), (False, "failed, but people pass it:")):
        differs = [one for one in calibration.disagreements if one.passed is passed]
        yield from ("", title) if differs else ()
        yield from map(_format_disagreement, differs[:_MAX_LISTED])
        if len(differs) > _MAX_LISTED:
            yield f"  … and {len(differs) - _MAX_LISTED} more (--json has all)"
    judges = "; ".join(to_console_line(one, 200) for one in calibration.by_judge)
    by = f", graded by {judges}" if judges else ""
    yield ""
    yield f"run {run_id}{by}"


def _describe_agreement(agreement: Agreement, who: str) -> Iterator[str]:
    low, high = compute_wilson_interval(agreement.agreed_count, agreement.compared_count)
    yield (
        f"{who} and people agree on {agreement.agreed_count} of {format_count(agreement.compared_count, 'response')} "
        f"({_format_share(agreement.agreed_count, agreement.compared_count)}; 95 %: {low * 100:.0f} to "
        f"{high * 100:.0f} %)"
    )
    kappa, interval = agreement.kappa, agreement.compute_kappa_interval()
    if kappa is None or interval is None:
        kind = "pass" if agreement.passed_by_people else "fail"
        other = "fail" if kind == "pass" else "pass"
        yield f"kappa is unknown, because people {kind} all of them: also label some that they {other}"
    else:
        grade = next((word for least, word in _GRADES if kappa >= least), "no")
        yield f"kappa {kappa:.2f} (95 %: {interval[0]:.2f} to {interval[1]:.2f}), {grade} agreement beyond chance"
    yield _format_false_alarm_rate("false passes", agreement.false_passes, agreement.failed_by_people, "fail")
    yield _format_false_alarm_rate("false failures", agreement.false_failures, agreement.passed_by_people, "pass")
    if agreement.compared_count < _MIN_RESPONSES:
        yield (
            f"{format_count(agreement.compared_count, 'response')}: too few for useful intervals, label about "
            f"{_MIN_RESPONSES}"
        )


def _iter_skipped_lines(unmatched: Sequence[str], undecided: int, unjudged: int) -> Iterator[str]:
    if unmatched:
        first_labels = format_first_few(unmatched, 5, lambda one: to_console_line(one, 60))
        yield f"ignored {format_count(len(unmatched), 'label')} without a case in this run: {first_labels}"
    if undecided:
        yield f"ignored {format_count(undecided, 'label')}: people disagree evenly, or gave no verdict"
    if unjudged:
        yield f"ignored {format_count(unjudged, 'label')}: the response has no score in this run"


def _format_disagreement(one: Disagreement) -> str:
    people = f"  people: {to_console_line(one.comment, 200)}" if one.comment else ""
    return f"  {to_console_line(f'{one.key.suite}: {one.key.case_id}', 200)}  score {format_score(one.score)}{people}"


def _format_false_alarm_rate(what: str, wrong: int, of: int, people: str) -> str:
    if not of:
        return f"{what}: unknown, because people {people} none of them"
    high = compute_wilson_interval(wrong, of)[1]
    return (
        f"{what}: {wrong} of {of} that people {people} ({_format_share(wrong, of)}; 95 %: at most {high * 100:.0f} %)"
    )


def _format_share(part: int, whole: int) -> str:
    return f"{part / whole * 100:.0f} %"
