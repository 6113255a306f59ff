"""All assertions of a case, none cut short: a yes or no for the case, and the share that holds as its score."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.evaluators.base import CaseScore, EvaluatorError
from eval_gate.model.case import Aggregation
from eval_gate.model.conversation import FileEntry, Response
from eval_gate.model.specs.agent_evals import (
    FileExists,
    OutputContains,
    OutputEquals,
    OutputJsonPath,
    OutputMatches,
    SuiteAssertion,
)
from tests.support.grading import judgement_of

NOTE = FileEntry(path="note.txt", kind="file", text="milk")


def judged(*specs: SuiteAssertion, text: str = "It is in Rome.", files=(NOTE,)) -> CaseScore:
    response = Response(text=text, files=files)
    return judgement_of(*specs, response=response, aggregation=Aggregation.ALL)


def test_all__everything_holds__passes_in_the_order_of_the_file() -> None:
    judgement = judged(OutputContains(value="Rome"), FileExists(path="note.txt"), OutputContains(value="It"))
    assert (judgement.passed, judgement.score, judgement.error, judgement.assertions_run) == (True, 1.0, None, 3)
    assert [result.type for result in judgement.results] == ["contains", "fileExists", "contains"]
    assert [result.score for result in judgement.results] == [1.0, 1.0, 1.0]


@pytest.mark.contract("agent_evals.case.all_assertions")
def test_all__first_one_fails__the_others_are_still_evaluated_and_reported() -> None:
    judgement = judged(
        OutputContains(value="Oslo"), OutputContains(value="Rome"), OutputEquals(expected=1), FileExists(path="a")
    )
    assert (judgement.passed, judgement.score, judgement.assertions_run) == (False, 0.25, 4)
    assert [result.score for result in judgement.results] == [0.0, 1.0, 0.0, 0.0]
    assert judgement.error.startswith('contains: Output does not contain "Oslo"')
    seen = [result.evaluator_provider_request["actual"] for result in judgement.results]
    assert seen == ["It is in Rome."] * 3 + ["Path does not exist."]


@pytest.mark.contract("agent_evals.case.all_assertions")
def test_all__no_assertions__passes_with_a_warning() -> None:
    judgement = judged()
    assert (judgement.passed, judgement.score, judgement.assertions_run) == (True, 1.0, 0)
    assert judgement.warnings == ("the case has no assertions",)


@pytest.mark.contract("case.checks-nothing")
def test_all__assertions_that_hold_for_every_answer__are_no_checks() -> None:
    judgement = judged(OutputContains(value=""), OutputMatches(pattern="^"))
    assert (judgement.passed, judgement.assertions_run, len(judgement.results)) == (True, 0, 2)
    assert judgement.warnings == ("nothing is checked: the assertions pass with every response",)


def test_all__one_cannot_judge__the_case_is_an_error_and_no_failure() -> None:
    with pytest.raises(EvaluatorError, match="the target has no files"):
        judged(OutputContains(value="Oslo"), FileExists(path="note.txt"), files=None)


def test_all__same_assertion_twice__counts_twice() -> None:
    twice = OutputJsonPath(path="$.a", expected=1)
    assert judged(twice, twice, OutputContains(value="a"), text='{"a": 2}').score == pytest.approx(1 / 3)


@given(st.lists(st.booleans(), max_size=12))
def test_all__any_mixture__passes_when_each_does_and_scores_their_share(wanted) -> None:
    judgement = judged(*(OutputContains(value="Rome" if holds else "Oslo") for holds in wanted))
    assert judgement.passed is all(wanted)
    assert judgement.score == (sum(wanted) / len(wanted) if wanted else 1.0)
    assert [result.score == 1.0 for result in judgement.results] == wanted
    assert (judgement.error is None) is all(wanted)
