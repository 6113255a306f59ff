"""The team's own metric: no model, no key."""

from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase


class Says(BaseMetric):
    def __init__(self) -> None:
        self.threshold = 1.0
        self.async_mode = False

    def measure(self, test_case: LLMTestCase, *_: object, **__: object) -> float:
        self.score = float(test_case.expected_output in test_case.actual_output)
        self.success = self.score >= self.threshold
        self.reason = f"{test_case.expected_output!r} is {'' if self.success else 'not '}in the answer"
        return self.score

    async def a_measure(self, test_case: LLMTestCase, *_: object, **__: object) -> float:
        return self.measure(test_case)

    def is_successful(self) -> bool:
        return self.success

    @property
    def __name__(self) -> str:
        return "Says"
