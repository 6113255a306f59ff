"""Evaluators and tags compared with the baseline, from files and a real agent to the words that people read."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.integration.test_integration_behaviour_changes import SAID, answers
from tests.integration.test_integration_run import record
from tests.support.agents import agent
from tests.support.pages import page_data
from tests.support.program import gate

TAG = "a|</td><script>`"
"""A tag that would end a cell, or begin a script."""


def write_lines(path: Path, style: float) -> None:
    lines = [
        {
            "id": f"case-{number}",
            "status": "passed",
            "checks": [{"name": "style", "score": style}, {"name": "format", "passed": True}],
            "tags": [TAG if number % 2 else "refunds"],
        }
        for number in range(16)
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def test_check__an_evaluator_falls_in_every_case__is_marked_everywhere_and_passes(tmp_path) -> None:
    write_lines(tmp_path / "main.jsonl", 0.9)
    write_lines(tmp_path / "change.jsonl", 0.85)
    first = gate(tmp_path, "check", "main.jsonl", "--verbose")
    assert "Evaluators and tags" not in first.stdout, first.stdout + first.stderr
    reports = ("--report", "md=comment.md", "--report", "html=page.html")
    again = gate(tmp_path, "check", "change.jsonl", "--baseline", "latest", *reports)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "Evaluators and tags: 1 of 4 changed (--verbose shows them)\n" in again.stdout
    fold = (tmp_path / "comment.md").read_text().partition("<summary>Evaluators and tags: 1 of 4 changed</summary>")[2]
    assert "| ⚠️ `style` | 16 | 0.90 → 0.85 | – | **−0.05 (−0.06 to −0.03)** |\n" in fold
    assert "| `format` | 16 | 1.00 | 100.0 % | none |\n" in fold
    assert "| tag `` a\\|</td><script>` `` | 8 | 1.00 | 100.0 % | none |\n" in fold
    assert "This has no effect on the verdict." in fold
    page = (tmp_path / "page.html").read_text()
    assert re.search(r"<bdi>style</bdi></span></td><td class=\"n\">16</td><td class=\"n\">0\.90 → 0\.85</td>", page)
    assert TAG not in page
    stored = record(tmp_path)
    assert [(row["kind"], row["name"], row["changed"]) for row in stored["comparison"]["metricChanges"]["rows"]] == [
        ("evaluator", "style", True),
        ("evaluator", "format", False),
        ("tag", "refunds", False),
        ("tag", TAG, False),
    ]


def test_run__cases_with_a_tag_fail__rows_leave_out_the_reruns(tmp_path) -> None:
    """A case that fails once and passes when it is re-run counts as failed, as its first execution did."""
    names = [f"c{number}" for number in range(6)]
    (tmp_path / "evals").mkdir()
    cases = [
        {"id": name, "input": {"message": name}, "tags": ["late"], "expect": {"responseContains": ["Sunday"]}}
        for name in names
    ]
    (tmp_path / "evals" / "orders.golden.json").write_text(json.dumps(cases))

    def run(handler, *arguments: str) -> str:
        with agent(handler) as running:
            return gate(tmp_path, "run", "--agent-endpoint", running.url, "--baseline", "latest", *arguments).stdout

    for _ in range(3):
        run(answers(), "--keep-responses", "none")
    seen = set()

    def fail_once(_number: int):
        first = "c0" not in seen
        seen.add("c0")
        return ("No." if first else SAID), []

    shown = run(answers(c0=fail_once), "--keep-responses", "none", "--verbose")
    (case,) = [one for one in record(tmp_path)["suites"][0]["cases"] if one["id"] == "c0"]
    assert case["reruns"] >= 1, shown
    assert "tag late: score 1.00 → 0.83, pass rate 100.0 % → 83.3 %" in shown
    assert "responseContains: score 1.00 → 0.83, pass rate 100.0 % → 83.3 %" in shown


COMPOSITE = """
evalcases:
{cases}
"""
CASE = """
  - id: c{number}
    expected_outcome: Looks the order up, and closes the ticket.
    input_messages: c{number}
    execution:
      evaluators:
        - name: policy
          type: composite
          evaluators:
            - {{ name: lookup, type: tool_trajectory, mode: in_order, expected: [{{ tool: lookup_order }}] }}
            - {{ name: close, type: tool_trajectory, mode: in_order, expected: [{{ tool: close_ticket }}] }}
          aggregator: {{ type: weighted_average }}
"""


def test_run__one_member_of_a_composite_falls__is_marked_and_the_composite_is_not(tmp_path) -> None:
    """Which of two tools the agent calls has changed; each case still calls one of two."""
    cases = "".join(CASE.format(number=number) for number in range(10))
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "support.yaml").write_text(COMPOSITE.format(cases=cases))

    def run(tool: str, *arguments: str) -> str:
        always = {f"c{number}": lambda _: (SAID, [(tool, {})]) for number in range(10)}
        with agent(answers(**always)) as running:
            options = ("--agent-endpoint", running.url, "--pass-score", "0.5", *arguments)
            done = gate(tmp_path, "run", *options)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("lookup_order")
    shown = run("close_ticket", "--baseline", "latest", "--verbose", "--report", "html=page.html")
    assert "Evaluators and tags: 2 of 3 changed" in shown
    assert "LOWER policy / lookup: score 1.00 → 0.00, pass rate 100.0 % → 0.0 %" in shown
    assert "HIGHER policy / close: score 0.00 → 1.00, pass rate 0.0 % → 100.0 %" in shown
    assert "  policy: score 0.50, pass rate 100.0 %, difference none in 10 cases" in shown
    assert page_data((tmp_path / "page.html").read_text())["rows"]["evaluatorNames"] == []
