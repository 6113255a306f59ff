"""Which comparison is the one of a run's judge, and that nobody is asked where none graded."""

from datetime import date

import pytest

from eval_gate.gate.judge_agreement import JudgeComparisons, add_judges
from eval_gate.model.calibration import CalibrationStatus, JudgeAgreementRecord
from eval_gate.model.result import CaseFingerprints, Shard
from eval_gate.struct import replace
from tests.support.graded import make_graded, make_graded_run

PROMPT, OTHER = "a" * 16, "b" * 16


def compared(judge: str = "j", **facts) -> JudgeAgreementRecord:
    said = {"compared_on": date(2026, 11, 2), "responses": 5, "agreed": 4, "failed_by_people": 2, "false_passes": 1}
    return JudgeAgreementRecord(judge=judge, **(said | facts))


def run(*yardsticks: CaseFingerprints, **fields):
    cases = [make_graded(f"c{n}", fingerprints=one) for n, one in enumerate(yardsticks)]
    return make_graded_run(cases, **fields)


def knowing(made, *entries, proposed=()):
    (found,) = add_judges(made, lambda: JudgeComparisons(entries, proposed)).judges.judges
    return found


def test_decide_verdict__nobody_graded__nobody_is_asked_and_an_older_word_is_gone() -> None:
    def ask() -> JudgeComparisons:
        raise AssertionError

    plain = make_graded_run({"a": 1.0})
    forged = add_judges(run(CaseFingerprints(judge="j")), lambda: JudgeComparisons([compared()])).judges
    assert add_judges(replace(plain, judges=forged), ask).judges is None


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (compared(), CalibrationStatus.OTHER_PROMPT),
        (compared(prompts=(PROMPT,)), CalibrationStatus.COMPARED),
        (compared(prompts=(OTHER,)), CalibrationStatus.OTHER_PROMPT),
        (compared(prompts=(PROMPT,), rubrics=(OTHER,)), CalibrationStatus.OTHER_PROMPT),
        (compared(prompts=(PROMPT,), rubrics=(OTHER, PROMPT)), CalibrationStatus.COMPARED),
        (compared("k", prompts=(PROMPT,)), CalibrationStatus.OTHER_JUDGE),
    ],
)
def test_decide_verdict__graded_by_a_prompt_and_rubric__is_known_where_these_were_compared(entry, expected) -> None:
    made = run(CaseFingerprints(judge="j", grader=PROMPT, expectation=PROMPT))
    assert knowing(made, entry).calibration is expected


def test_decide_verdict__by_the_built_in_prompt__is_known_where_that_was_compared() -> None:
    made = run(CaseFingerprints(judge="j"))
    assert knowing(made, compared()).calibration is CalibrationStatus.COMPARED
    assert knowing(made, compared(prompts=(PROMPT,))).calibration is CalibrationStatus.OTHER_PROMPT
    assert knowing(made).calibration is CalibrationStatus.NOT_COMPARED


def test_decide_verdict__in_a_shard__need_not_have_the_cases_that_were_labelled() -> None:
    made = run(CaseFingerprints(judge="j", expectation=OTHER), shard=Shard(index=1, count=2))
    assert knowing(made, compared(rubrics=(PROMPT,))).calibration is CalibrationStatus.COMPARED


def test_decide_verdict__compared_more_than_once__the_weakest_word_is_repeated() -> None:
    found = knowing(
        run(CaseFingerprints(judge="j")), compared(agreed=5, false_passes=0), compared(evaluator="tone", agreed=3)
    )
    assert found.agreement.evaluator == "tone"


def test_decide_verdict__only_the_change_has_compared_it__is_proposed_and_not_known() -> None:
    found = knowing(run(CaseFingerprints(judge="j")), proposed=[compared()])
    assert (found.calibration, found.proposed, found.agreement) == (CalibrationStatus.NOT_COMPARED, True, None)


def test_decide_verdict__several__those_first_who_graded_most() -> None:
    made = run(CaseFingerprints(judge="a"), CaseFingerprints(judge="b"), CaseFingerprints(judge="b"))
    found = add_judges(made, JudgeComparisons).judges.judges
    assert [(one.judge, one.cases) for one in found] == [("b", 2), ("a", 1)]
