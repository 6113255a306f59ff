import json
import sys
from pathlib import Path

from agent import answer, judge
from cases import CASES
from langfuse import Evaluation, Langfuse

langfuse = Langfuse(public_key="pk-lf-1", secret_key="sk-lf-1", host="http://127.0.0.1:9", tracing_enabled=False)
data = [{"input": one, "expected_output": wanted} for one, wanted in CASES.items()]


def task(*, item, **_):
    return answer(item["input"])


def correct(*, output, expected_output, **_):
    return Evaluation(name="correct", value=expected_output in output, data_type="BOOLEAN")


def brevity(*, input, output, **_):
    return Evaluation(name="brevity", value=judge(input, output))


result = langfuse.run_experiment(name="orders", data=data, task=task, evaluators=[correct, brevity])
both = {"data": data, "result": result}
Path(sys.argv[1]).write_text(json.dumps(both, default=lambda one: getattr(one, "__dict__", str(one))))
