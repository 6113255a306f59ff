"""The agent under test, which breaks on one question."""

import json
from pathlib import Path

HERE = Path(__file__).parent


def answer(question: str) -> str:
    if "Refund" in question:
        raise KeyError("refunds")
    return json.loads((HERE / "answers.json").read_text())[question][-1]
