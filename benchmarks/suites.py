"""Eval files of any size, with the assertions a usual case has."""

from __future__ import annotations

import json
from pathlib import Path


def write_suite(file: Path, cases: int) -> None:
    """Write a golden suite in which each case has six assertions that all hold.

    The suite has `cases` cases.
    """
    file.write_text(json.dumps({"metadata": None, "cases": [_case(number) for number in range(cases)]}, indent=1))


def _case(number: int) -> dict[str, object]:
    return {
        "id": f"gs-get-weather-{number:05}",
        "description": f"weather question number {number}",
        "input": {"message": f"What is the weather in Lisbon? ({number})"},
        "expect": {
            "toolsCalled": ["get_weather"],
            "noToolErrors": True,
            "responseNonEmpty": True,
            "responseContains": ["Lisbon", "21"],
            "responseNotContains": ["fetchedAt", "API_KEY"],
            "maxLatencyMs": 60_000,
        },
    }
