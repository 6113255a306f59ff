"""The runs whose pages are looked at: made by our command line against an agent that answers otherwise than before.

Only the page of ten thousand cases is made of a record: two runs of that size would take a minute.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eval_gate.reports.rendering import render
from tests.support.agents import Exchange, Handler, agent
from tests.support.evidence import LANGUAGES, NOW, POLICY, PULL_REQUEST, THEN, large
from tests.support.program import gate

HOSTILE = (
    "</script><script>alert(1)</script><img src=https://evil.test/x onerror=alert(2)><style>*{display:none}</style>"
    "<a href='javascript:alert(3)'>x</a> {{7*7}} ${alert(4)} <!-- \u2028 \u202e"
)
LOOKUP = {
    "name": "lookup_order",
    "params": {"order": "A-1043"},
    "result": {"items": 3},
    "success": True,
    "durationMs": 212,
}
REFUND = {"name": "issue_refund", "params": {"order": "A-1043", "amount": 39.8}, "success": True, "durationMs": 640}
BRIEF = LOOKUP | {"params": {"order": "A-1043", "detail": "short"}}
ESCALATE = {"name": "escalate", "params": {"reason": "partial return"}, "success": False, "durationMs": 95}
LONG = "".join(f"Paragraph {number} of the terms is the same in both answers.\n" for number in range(40))

Answer = Mapping[str, Any]
REGRESSIONS: Mapping[str, tuple[Answer, Answer]] = {
    "partial-order": (
        {"response": THEN, "toolCalls": [LOOKUP, REFUND]},
        {"response": NOW, "toolCalls": [BRIEF, ESCALATE]},
    ),
    "terms": (
        {"response": f"{LONG}You have 14 days.\n", "toolCalls": [REFUND]},
        {"response": f"{LONG}You have 30 days.\n", "toolCalls": []},
    ),
    **{
        name: ({"response": then, "toolCalls": [REFUND]}, {"response": now, "toolCalls": [ESCALATE]})
        for name, (then, now) in LANGUAGES.items()
    },
    "hostile": (
        {"response": f"As it was. {HOSTILE}", "toolCalls": [REFUND]},
        {"response": f"As it is. {HOSTILE}", "toolCalls": [{"name": HOSTILE[:60], "params": {HOSTILE: HOSTILE}}]},
    ),
}
"""By the name of the case: what is answered first, and what later."""
PASSING: Answer = {"response": f"Done. {POLICY}", "toolCalls": [LOOKUP, REFUND]}


def with_sixty(folder: Path) -> Path:
    """Three runs of the branch, then one with six regressions, a new pass and a crash among sixty cases."""
    write_sixty(folder)
    for failing in (["status-07", "split"], ["status-07", "split", "status-30"], ["split"]):
        run(folder, {name: then for name, (then, _) in REGRESSIONS.items()}, failing, "", "--fail-on", "never")
    compared = ("--baseline", "latest", "--reruns", "0")
    page = run(folder, {name: now for name, (_, now) in REGRESSIONS.items()}, (), "crashes", *compared)
    assert "GATE FAILED" in page
    return folder / "page.html"


def with_eight(folder: Path) -> Path:
    """Three runs of the branch, then one with eight confirmed regressions among sixty cases."""
    names = write_sixty(folder)
    first = {name: then for name, (then, _) in REGRESSIONS.items()}
    for _ in range(3):
        run(folder, first, ())
    later = {name: now for name, (_, now) in REGRESSIONS.items()}
    page = run(folder, later, ("status-07", "status-08"), "", "--baseline", "latest")
    assert "REGRESSIONS (8)" in page, names
    return folder / "page.html"


def with_outage(folder: Path, share: int) -> Path:
    """Three runs of the branch, then one whose agent answers 503 to every case, or to one of `share`."""
    names = write_sixty(folder)
    first = {name: then for name, (then, _) in REGRESSIONS.items()}
    for _ in range(3):
        run(folder, first, ())
    run(folder, first, (), names[::share], "--baseline", "latest", "--concurrency", "30")
    return folder / "page.html"


def write_sixty(folder: Path) -> list[str]:
    """Two eval files of thirty cases; the names of all."""
    names = [*REGRESSIONS, "split", "crashes", *(f"status-{number:02}" for number in range(52))]
    write(folder, names[:30], "refunds.golden.json")
    write(folder, names[30:], "orders.golden.json")
    return names


def with_one(folder: Path) -> Path:
    """One case that fails, and nothing to compare it with."""
    write(folder, ["partial-order"], "refunds.golden.json")
    run(folder, {"partial-order": REGRESSIONS["partial-order"][1]}, ())
    return folder / "page.html"


def with_nothing(folder: Path) -> Path:
    """A run in which every case was taken away: the page of no cases."""
    write(folder, ["partial-order"], "refunds.golden.json")
    run(folder, {}, ())
    record = next((folder / "evals" / "results").glob("*/run.json"))
    empty = json.loads(record.read_text()) | {"suites": [], "summary": {}, "verdict": None, "complete": False}
    record.write_text(json.dumps(empty))
    done = gate(folder, "report", record.as_posix(), "--format", "html", "-o", "page.html")
    assert done.returncode == 0, done.stderr
    return folder / "page.html"


def ten_thousand(folder: Path) -> Path:
    """Ten thousand cases with five hundred regressions."""
    file = folder / "page.html"
    file.write_text(render("html", large(), PULL_REQUEST), encoding="utf-8")
    return file


def write(folder: Path, names: Sequence[str], file: str) -> None:
    """An eval file of these cases, all of which want a refund."""
    cases = [
        {
            "id": f"refund/{name}",
            "description": "a partial return is refunded at once",
            "input": {"message": f"{name}: I sent back two of three shirts of order A-1043. When do I get my money?"},
            "expect": {"toolsCalled": ["issue_refund"]},
        }
        for name in names
    ]
    for case in cases:
        if case["id"] in {"refund/partial-order", *(f"refund/status-{number:02}" for number in range(52))}:
            case["expect"]["toolsCalled"] = ["lookup_order", "issue_refund"]
    (folder / "evals").mkdir(exist_ok=True)
    (folder / "evals" / file).write_text(json.dumps(cases))


def run(
    folder: Path,
    answers: Mapping[str, Answer],
    failing: Sequence[str],
    crashing: str | Sequence[str] = "",
    *options: str,
) -> str:
    """Run all cases against an agent with these answers; what was printed. The page is `page.html`."""
    with agent(answering(answers, failing, crashing)) as running:
        words = ["--agent-endpoint", running.url, "--concurrency", "8", "--report", "html=page.html"]
        return gate(folder, "run", *words, *options, CI="true").stdout  # where rules are part of a workflow


def answering(answers: Mapping[str, Answer], failing: Sequence[str], crashing: str | Sequence[str]) -> Handler:
    """An agent that knows the case by the first word of the question; several that crash are an outage."""

    async def handler(exchange: Exchange) -> None:
        name = exchange.json["message"].partition(":")[0]
        if name == crashing:
            exchange.answer({"error": "boom"}, "500 Internal Server Error")
        elif not isinstance(crashing, str) and name in crashing:
            exchange.answer({"error": "upstream unavailable"}, "503 Service Unavailable")
        else:
            usual = {"response": "I cannot help.", "toolCalls": []} if name in failing else dict(PASSING)
            if name in {"split", "crashes"} and name not in failing:
                usual["toolCalls"] = [REFUND]
            exchange.answer(dict(answers.get(name, usual)))

    return handler
