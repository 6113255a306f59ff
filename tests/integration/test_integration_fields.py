"""Fields of an agent's JSON, from the eval file to the words that people read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.integration.test_integration_run import record
from tests.support.agents import Exchange, agent
from tests.support.program import gate

REFUND = {"response": "Done.", "order": {"status": "refunded", "total": 49.9}, "items": [{"id": 1}, {"id": 2}]}
EXPECTED = {"order.status": "refunded", "order.total": {"exists": True}, "items.length": 2, "items[1].id": 2}
TARGET = """\
targets:
- name: desk
  provider: http
  url: ${{ AGENT }}
  requestTemplate: { message: "{{message}}", session: "{{session}}" }
"""


def write_case(folder: Path, fields: object) -> None:
    (folder / "evals").mkdir(exist_ok=True)
    case = {"id": "refund", "input": {"message": "Refund order 4711."}, "expect": {"fields": fields}}
    (folder / "evals/orders.golden.json").write_text(json.dumps([case], indent=1))


def run(folder: Path, body: object, *arguments: str):
    async def handler(exchange: Exchange) -> None:
        exchange.answer(body)

    with agent(handler) as running:
        return gate(folder, "run", "--agent-endpoint", running.url, "--baseline", "latest", *arguments)


def test_fields__other_value__is_a_regression_that_names_the_field(tmp_path) -> None:
    write_case(tmp_path, EXPECTED)
    green = run(tmp_path, REFUND)
    assert green.returncode == 0, green.stdout + green.stderr
    report = ("--report", "md=comment.md")
    red = run(tmp_path, REFUND | {"order": {"status": "pending", "total": 49.9}}, *report)
    assert (red.returncode, "REGRESSIONS (1): refund" in red.stdout) == (1, True), red.stdout
    comment = (tmp_path / "comment.md").read_text()
    assert 'fields: order.status is "pending", expected "refunded"' in comment, comment
    assert "response with order.status = " in comment


def test_fields__checked_value_changes_and_still_passes__behaves_differently(tmp_path) -> None:
    write_case(tmp_path, {"order.status": {"oneOf": ["refunded", "pending"]}, "items": {"exists": True}})
    run(tmp_path, REFUND)
    shown = run(tmp_path, REFUND | {"order": {"status": "pending"}}, "--verbose", "--report", "md=comment.md")
    assert shown.returncode == 0, shown.stdout
    assert '  refund: field `order.status`: "refunded" → "pending"\n' in shown.stdout, shown.stdout
    assert '| `refund` | field `order.status` | `"refunded"` | `"pending"` |' in (tmp_path / "comment.md").read_text()
    (suite,) = record(tmp_path)["suites"]
    assert suite["cases"][0]["details"]["fields"]["order.status"] == "pending"


def test_fields__mistakes__are_named_with_line_and_field(tmp_path) -> None:
    bad: dict[str, Any] = {"order..status": 1, "total": {"oneof": [1]}, "a": {"exists": False}, "b": {"matches": 3}}
    write_case(tmp_path, bad)
    done = gate(tmp_path, "validate")
    assert (done.returncode, "4 problems" in done.stdout) == (2, True)
    place = "evals/orders.golden.json:{}: [0].expect.fields.{}: "
    for line, path, problem in (
        (9, "order..status", "is not a path: write one such as order.status, items[0].id or items.length"),
        (10, "total", 'notExists, matches (did you mean "oneOf"?); {"equals": …} takes an object'),
        (15, "a", '"exists" takes true, got false'),
        (18, "b", '"matches" takes a text, got the number 3'),
    ):
        lines = (done.stdout + done.stderr).splitlines()
        assert next(one for one in lines if place.format(line, path) in one).endswith(problem)


def test_fields__of_turns__are_checked_and_compared_by_turn(tmp_path) -> None:
    (tmp_path / "evals").mkdir()
    turns = [{"message": "Hi"}, {"message": "Refund.", "expect": {"fields": {"order.status": {"exists": True}}}}]
    (tmp_path / "evals/chat.golden.json").write_text(json.dumps([{"id": "chat", "turns": turns}]))
    (tmp_path / "targets.yaml").write_text(TARGET)
    bodies = [{"response": "Hello."}, REFUND, {"response": "Hello."}, REFUND | {"order": {"status": "pending"}}]
    bodies += [{"response": "Hello."}, {"response": "Done."}]

    async def handler(exchange: Exchange) -> None:
        exchange.answer(bodies.pop(0))

    with agent(handler) as running:
        run = ("run", "--target", "desk", "--baseline", "latest", "--concurrency", "1", "--verbose")
        results = [gate(tmp_path, *run, AGENT=running.url) for _ in range(2)]
        assert results[0].returncode == 0, results[0].stdout + results[0].stderr
        assert 'chat: turn 2: field `order.status`: "refunded" → "pending"' in results[1].stdout, results[1].stdout
        red = gate(tmp_path, *run, "--reruns", "0", AGENT=running.url)
    assert "fields: order.status is missing" in red.stdout, red.stdout


def test_draft__agent_with_json__expects_the_fields_that_did_not_vary(tmp_path) -> None:
    numbers = iter(range(100))

    async def handler(exchange: Exchange) -> None:
        number = next(numbers)
        order = {"status": "refunded", "trace": str(number), "open": False, "note": None}
        exchange.answer(
            {"response": "Done.", "order": order, "items": [1], "usage": {"outputTokens": 5}, "toolCalls": []}
        )

    (tmp_path / "questions.txt").write_text("Refund order 4711.\n")
    with agent(handler) as running:
        made = gate(tmp_path, "draft", "questions.txt", "-o", "evals/a.golden.json", "--agent-endpoint", running.url)
        assert made.returncode == 0, made.stdout + made.stderr
        (case,) = json.loads((tmp_path / "evals/a.golden.json").read_text())
        assert case["expect"]["fields"] == {"order.status": "refunded", "order.open": False}
        gate(tmp_path, "draft", "evals/a.golden.json", "--accept", "all")
        green = gate(tmp_path, "run", "--agent-endpoint", running.url)
    assert green.returncode == 0, green.stdout
