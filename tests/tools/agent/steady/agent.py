"""The agent under test, in Python: the same as agent.mjs."""

import json
from pathlib import Path

HERE = Path(__file__).parent


def answer(question: str) -> str:
    with (HERE / "asked.txt").open("a") as asked:
        asked.write(f"{question}\n")
    times = (HERE / "asked.txt").read_text().splitlines().count(question)
    answers = json.loads((HERE / "answers.json").read_text())[question]
    return answers[min(times, len(answers)) - 1]
