import sys

import mlflow
from agent import answer, judge
from cases import CASES
from mlflow.genai import scorer


@scorer
def correct(outputs, expectations):
    return expectations["expected"] in (outputs or "")


@scorer
def brevity(inputs, outputs):
    return judge(inputs["question"], outputs or "")


mlflow.set_tracking_uri("sqlite:///mlflow.db")
data = [{"inputs": {"question": one}, "expectations": {"expected": wanted}} for one, wanted in CASES.items()]
result = mlflow.genai.evaluate(data=data, predict_fn=answer, scorers=[correct, brevity])
result.result_df.drop(columns="trace").to_json(sys.argv[1], orient="records", default_handler=str)
