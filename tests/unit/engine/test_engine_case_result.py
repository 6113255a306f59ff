"""How the trials of a case become its result."""

import pytest

from eval_gate.engine.case_result import build_unrun_result, join_trials
from eval_gate.engine.journal import TrialRecord
from eval_gate.model.case import PassRule
from eval_gate.model.execution import CaseDetails, ErrorCause, EvaluatorResult, Status
from eval_gate.model.usage import Usage
from eval_gate.struct import replace
from tests.support.cases import make_case

P, F, E = Status.PASSED, Status.FAILED, Status.ERROR


def records(*statuses: Status, **fields) -> list[TrialRecord]:
    return [
        TrialRecord(
            eval_file="e.json",
            case_id="a",
            trial=number,
            fingerprint="f",
            status=status,
            score=1.0 if status is P else 0.0,
            duration_ms=10.0,
            attempts=1,
            error=None if status is P else f"{status} {number}",
            **fields,
        )
        for number, status in enumerate(statuses)
    ]


@pytest.mark.parametrize(
    ("trials", "status", "flaky", "error"),
    [
        ((P,), P, False, None),
        ((F,), F, False, "failed 0"),
        ((E,), E, False, "error 0"),
        ((P, P, P), P, False, None),
        ((P, F, P), P, True, None),
        ((P, F, F), F, True, "failed 1"),
        ((P, F), F, True, "failed 1"),
        ((E, P, P), P, False, None),
        ((E, E, F), F, False, "failed 2"),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, tuple) else None,
)
def test_classify__trials__passes_when_more_than_half_do(trials, status, flaky, error) -> None:
    result = join_trials(build_unrun_result(make_case()), records(*trials))
    assert (result.status, result.flaky, result.error) == (status, flaky, error)
    assert result.passed is (status is P)
    assert [trial.status for trial in result.trials] == list(trials)


@pytest.mark.parametrize("rule", [None, PassRule(trials=3, passes=1)])
def test_classify__trial_that_missed_a_model_call__is_outweighed_by_no_other(rule) -> None:
    """What the agent did without that answer is unknown, and so is what it would do in the others."""
    trials = records(P, E, P)
    trials[1] = replace(trials[1], error_cause=ErrorCause.MODEL_CALL_MISSING)
    result = join_trials(replace(build_unrun_result(make_case()), pass_rule=rule), trials)
    assert (result.status, result.error, result.score) == (E, "error 1", 0.0)


def test_classify__out_of_order__shows_trials_in_order() -> None:
    result = join_trials(build_unrun_result(make_case()), list(reversed(records(P, F, F))))
    assert [trial.status for trial in result.trials] == [P, F, F]


def test_classify__usage__is_summed_and_unknown_stays_unknown() -> None:
    usage = Usage(input_tokens=3, output_tokens=None)
    result = join_trials(build_unrun_result(make_case()), records(P, P, usage=usage, cost_usd=0.25))
    assert result.usage == Usage(input_tokens=6, output_tokens=None)
    assert result.cost_usd == 0.5
    assert join_trials(build_unrun_result(make_case()), records(P)).cost_usd is None


def test_classify__several_trials__score_is_the_mean_and_duration_the_sum() -> None:
    result = join_trials(build_unrun_result(make_case()), records(P, F, F, F))
    assert result.score == 0.25
    assert result.duration_ms == 40.0


@pytest.mark.parametrize(("reason", "status"), [(None, Status.NOT_RUN), ("no judge", Status.SKIPPED)])
def test_unrun__case__is_never_a_pass(reason, status) -> None:
    result = build_unrun_result(make_case(skip_reason=reason))
    assert (result.status, result.passed, result.error) == (status, False, reason)


def test_classify__several_executions__each_keeps_its_answer_and_the_deciding_one_has_the_cases() -> None:
    made = [
        replace(
            record,
            details=CaseDetails(response=f"answer {number}", response_length=8),
            evaluator_results=(EvaluatorResult(name="e", type="e", score=record.score),),
        )
        for number, record in enumerate(records(P, F, F))
    ]
    result = join_trials(build_unrun_result(make_case()), made)
    assert result.details.response == "answer 1"
    assert [trial.decisive for trial in result.trials] == [False, True, False]
    assert [trial.details and trial.details.response for trial in result.trials] == ["answer 0", None, "answer 2"]
    assert [[one.score for one in trial.evaluator_results] for trial in result.trials] == [[1.0], [], [0.0]]


def test_classify__one_execution__has_no_copy() -> None:
    (trial,) = join_trials(build_unrun_result(make_case()), records(P)).trials
    assert (trial.decisive, trial.details, trial.evaluator_results) == (True, None, ())
