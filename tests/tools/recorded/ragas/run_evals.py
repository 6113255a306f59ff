import sys
from dataclasses import dataclass, field

from agent import answer, judge
from cases import CASES
from ragas import EvaluationDataset, SingleTurnSample, evaluate
from ragas.metrics import StringPresence
from ragas.metrics.base import MetricType, SingleTurnMetric


@dataclass
class Brevity(SingleTurnMetric):
    name: str = "brevity"
    _required_columns: dict = field(default_factory=lambda: {MetricType.SINGLE_TURN: {"user_input", "response"}})

    def init(self, run_config):
        pass

    async def _single_turn_ascore(self, sample, callbacks):
        return judge(sample.user_input, sample.response)


def respond(question):
    try:
        return answer(question)
    except RuntimeError:
        return ""


rows = [SingleTurnSample(user_input=one, response=respond(one), reference=wanted) for one, wanted in CASES.items()]
result = evaluate(EvaluationDataset(samples=rows), metrics=[StringPresence(), Brevity()])
result.to_pandas().to_json(sys.argv[1], orient="records", lines=True)
