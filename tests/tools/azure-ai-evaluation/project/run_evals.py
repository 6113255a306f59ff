import json
import sys
from pathlib import Path

from agent import answer
from azure.ai.evaluation import F1ScoreEvaluator, evaluate


def target(query):
    try:
        return {"response": answer(query)}
    except Exception as error:  # one that leaves this function ends the run without a file
        return {"response": None, "error": repr(error)}


out, *ids = sys.argv[1:]  # the file to write, and with a second one only the cases that it names
lines = Path("data.jsonl").read_text().splitlines()  # with id, query and ground_truth
if ids:
    names = Path(ids[0]).read_text().splitlines()
    lines = [line for line in lines if json.loads(line)["id"] in names]
Path("chosen.jsonl").write_text("\n".join(lines))
evaluate(
    data="chosen.jsonl",
    target=target,
    evaluators={"f1": F1ScoreEvaluator(threshold=0.6)},
    evaluator_config={
        "f1": {"column_mapping": {"response": "${target.response}", "ground_truth": "${data.ground_truth}"}}
    },
    output_path=out,
)
