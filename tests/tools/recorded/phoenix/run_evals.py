import os
import sys
from pathlib import Path

import httpx
from agent import answer, judge
from cases import CASES
from phoenix.client import Client

client = Client(base_url="http://127.0.0.1:16006")
dataset = client.datasets.create_dataset(
    name=f"orders {os.getpid()}",
    inputs=[{"question": one} for one in CASES],
    outputs=[{"expected": wanted} for wanted in CASES.values()],
)


def task(input):
    return answer(input["question"])


def correct(output, expected):
    return expected["expected"] in output


def brevity(input, output):
    return judge(input["question"], output)


ran = client.experiments.run_experiment(dataset=dataset, task=task, evaluators=[correct, brevity], repetitions=2)
done = httpx.get(f"http://127.0.0.1:16006/v1/experiments/{ran['experiment_id']}/json")
Path(sys.argv[1]).write_bytes(done.content)
