"""One assertion of promptfoo after the other, on the same answers: the configuration, and what promptfoo said of each.

`verdicts.json` is made by promptfoo itself: `EVAL_GATE_TOOLS=promptfoo pytest tests/tools/test_tools_import.py
--update-golden`. Its provider echoes, so that the prompt is the answer.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.agents import Exchange

TRIED = Path(__file__).parents[1] / "unit" / "importers" / "promptfoo" / "tried"
CONFIG = TRIED / "promptfooconfig.yaml"
VERDICTS = TRIED / "verdicts.json"

Verdicts = dict[str, dict[str, str]]
"""Of each test by its description: what became of each answer."""


async def echo(exchange: Exchange) -> None:
    """An agent that says what it is asked."""
    exchange.answer({"response": exchange.json["message"]})


def recorded() -> Verdicts:
    """What promptfoo said when it was last run."""
    return json.loads(VERDICTS.read_text())["verdicts"]


def said(out: dict) -> dict:
    """What promptfoo's own `-o out.json` says, as it is kept."""
    found: Verdicts = {}
    for one in out["results"]["results"]:
        status = "error" if one["failureReason"] == 2 else "passed" if one["success"] else "failed"
        answer = one.get("response", {}).get("output", one["prompt"]["raw"])
        found.setdefault(one["testCase"]["description"], {})[answer] = status
    return {
        "tool": f"promptfoo {out['metadata']['promptfooVersion']}",
        "made": out["results"]["timestamp"][:10],
        "verdicts": found,
    }


def asked(folder: Path) -> dict[str, tuple[str, str]]:
    """The cases of the imported file by id: the test's description, and the answer that its prompt is."""
    cases = json.loads((folder / "promptfoo.golden.json").read_text())["cases"]
    return {case["id"]: (case.get("description", case["id"]), case["input"]["message"]) for case in cases}
