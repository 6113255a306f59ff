"""What changed where nothing failed, from a real agent to the words that people read."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.test_integration_run import record
from tests.support.agents import Exchange, agent
from tests.support.program import gate

SAID = "Your order A7 was sent on Sunday, and you will have it at home within three days at the latest."
LOOKUP = ("lookup_order", {"id": "A7"})
CASES = ("status", "late", "steady")
WORDS = "behaves? differently"
Answer = tuple[str, list[tuple[str, dict]]]


@pytest.fixture
def project(tmp_path) -> Path:
    (tmp_path / "evals").mkdir()
    cases = [
        {"id": name, "input": {"message": name}, "expect": {"responseNonEmpty": True, "responseNotContains": ["fail"]}}
        for name in CASES
    ]
    (tmp_path / "evals" / "orders.golden.json").write_text(json.dumps(cases))
    return tmp_path


def answers(**cases: Callable[[int], Answer]):
    """An agent that answers these cases in its own way, by the number of the request, and all others alike."""
    numbers = itertools.count()

    async def handler(exchange: Exchange) -> None:
        said, calls = cases.get(exchange.json["message"], lambda _: (SAID, [LOOKUP]))(next(numbers))
        told = [{"name": name, "params": params, "success": True} for name, params in calls]
        exchange.answer({"response": said, "toolCalls": told})

    return handler


def run(project: Path, handler, *arguments: str):
    with agent(handler) as running:
        done = gate(project, "run", "--agent-endpoint", running.url, "--baseline", "latest", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def changes(project: Path) -> list[tuple]:
    found = record(project)["comparison"]["behaviourChanges"]["changes"]
    return [(one["caseId"], one["kind"], one["baseline"], one["current"]) for one in found]


def test_run__second_version_calls_another_tool_and_still_passes__is_said_everywhere(project) -> None:
    first = run(project, answers())
    assert not re.search(WORDS, first)
    second = answers(
        status=lambda _: (SAID, [("search_orders", {"text": "A7"})]),
        late=lambda _: ("I am sorry, but I cannot help you with that.", [LOOKUP, LOOKUP]),
    )
    reports = ("--report", "md=comment.md", "--report", "html=page.html")
    shown = run(project, second, *reports)
    assert "2 cases pass and behave differently: status, late (--verbose shows how)\n" in shown
    assert "GATE PASSED: all rules hold for 3 cases   exit 0" in shown
    assert changes(project) == [
        ("status", "tool", "lookup_order", "search_orders"),
        ("late", "call_count", "1", "2"),
        ("late", "response", f"20 words: {SAID}", "10 words: I am sorry, but I cannot help you with that."),
    ]
    comment = (project / "comment.md").read_text()
    fold = comment.partition("<details><summary>2 cases pass and behave differently</summary>")[2]
    assert "| `status` | another tool | `lookup_order` | `search_orders` |" in fold
    assert "| `late` | number of calls of `lookup_order` | `1` | `2` |" in fold
    assert "This has no effect on the verdict." in fold
    page = json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', (project / "page.html").read_text())[1]
    )
    assert [group[0] for group in page["groups"]] == ["behaves-differently", "passing"]
    assert page["rows"]["group"] == [0, 0, 1]
    classes = {one["caseId"]: one["change"] for one in record(project)["comparison"]["changes"]}
    assert classes == dict.fromkeys(CASES, "still_passing")


def test_run__verbose__lists_what_is_different(project) -> None:
    run(project, answers())
    shown = run(project, answers(status=lambda _: (SAID, [("lookup_order", {"id": "B9"})])), "--verbose")
    assert '  status: parameter `id` of `lookup_order`: "A7" → "B9"\n' in shown


def test_run__unchanged_agent_that_varies_by_itself__nothing_is_said(project) -> None:
    """Another id and time in each call, and now and then one more call and other words."""

    def vary(number: int) -> Answer:
        more = [("check_stock", {})] if number % 2 else []
        call = ("lookup_order", {"id": "A7", "trace": f"{number:08x}", "at": f"10:00:{number:02}"})
        return (SAID if number % 3 else f"It is on its way, number {number}."), [call, *more]

    handler = answers(status=vary, late=vary)
    for number in range(6):
        shown = run(project, handler)
        if number >= 4:
            assert not re.search(WORDS, shown), shown
            assert changes(project) == []


def test_run__executions_of_one_run_differ__nothing_is_said(project) -> None:
    def vary(number: int) -> Answer:
        return SAID, [("lookup_order", {"id": "A7", "trace": str(number)}), *([("check_stock", {})] * (number % 2))]

    shown = [run(project, answers(status=vary), "--trials", "3") for _ in range(2)]
    assert not re.search(WORDS, shown[1]), shown[1]


def test_run__first_two_runs_of_an_agent_with_an_id_in_each_call__name_no_case(project) -> None:
    def vary(number: int) -> Answer:
        return SAID, [("lookup_order", {"id": "A7", "trace": str(number)})]

    handler = answers(**dict.fromkeys(CASES, vary))
    run(project, handler)
    run(project, handler)
    found = record(project)["comparison"]["behaviourChanges"]
    assert (found["cases"], found["changes"]) == (0, [])


def test_run__responses_are_not_kept__only_names_of_tools_are_compared(project) -> None:
    run(project, answers(), "--keep-responses", "none")
    second = answers(
        status=lambda _: (SAID, [("search_orders", {"text": "A7"})]),
        late=lambda _: ("No.", [("lookup_order", {"id": "B9"})]),
    )
    run(project, second, "--keep-responses", "none")
    assert changes(project) == [("status", "tool", "lookup_order", "search_orders")]


@pytest.mark.slow
def test_check__results_of_another_tool_with_calls__are_compared_alike(project) -> None:
    def write(name: str, tool: str) -> None:
        lines = [
            {
                "id": one,
                "status": "passed",
                "output": SAID,
                "tool_calls": [{"name": tool if one == "late" else "lookup"}],
            }
            for one in CASES
        ]
        (project / name).write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    write("main.jsonl", "lookup")
    write("change.jsonl", "search")
    first = gate(project, "check", "main.jsonl")
    assert first.returncode == 0, first.stdout + first.stderr
    second = gate(project, "check", "change.jsonl", "--baseline", "latest")
    assert "1 case passes and behaves differently: late" in second.stdout, second.stdout + second.stderr
