"""The team's tests, each case named as in its dataset."""

import pytest
from agent import answer
from deepeval import assert_test
from deepeval.test_case import LLMTestCase
from metrics import Says

CASES = {
    "opening hours": ("When are you open?", "9 to 18"),
    "refund für 4711": ("Refund order 4711", "4711 is refunded"),
    "where": ("Where is order 12?", "on its way"),
}


@pytest.mark.parametrize("case", CASES)
def test_agent(case: str) -> None:
    question, wanted = CASES[case]
    found = LLMTestCase(name=case, input=question, actual_output=answer(question), expected_output=wanted)
    assert_test(found, [Says()])
