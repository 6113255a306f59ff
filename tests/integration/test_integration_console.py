"""The summary on the console: each regression once, by cause; every case only with --verbose; no line too long."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.integration.test_integration_run import gate, record
from tests.support.agents import Exchange, agent

TOOLS = {"refund": "issue_refund", "order": "lookup_order", "faq": "search_faq"}
ESCALATES = ("faq 09", "faq 12", "order 06", "refund 03")
REFUSES = ("order 07", "refund 01", "refund 02", "refund 04")
REGRESSIONS = [name.replace(" ", "/case-") for name in (*ESCALATES, *REFUSES)]
COMMANDS = ("rerun:", "waive:", "result:")


def support_agent(*, broken: bool):
    """Respond as a support agent that in the broken state escalates some requests, and refuses others."""

    async def handler(exchange: Exchange) -> None:
        asked = exchange.json["message"]
        tool, text = TOOLS[asked.split()[0]], f"Here is your {asked}: it is on its way."
        if broken and asked in ESCALATES:
            tool = "escalate"
        if broken and asked in REFUSES:
            text = f"I am sorry, I cannot help with {asked}."
        exchange.answer({"response": text, "toolCalls": [{"name": tool, "success": True}]})

    return handler


@pytest.fixture(scope="module")
def red(tmp_path_factory) -> tuple[Path, str]:
    """Run 60 cases in three suites, of which 8 regress by two causes; its folder and its console of 80 columns."""
    folder = tmp_path_factory.mktemp("red")
    (folder / "evals").mkdir()
    for name, tool in TOOLS.items():
        cases = [
            {
                "id": f"{name}/case-{number:02}",
                "input": {"message": f"{name} {number:02}"},
                "expect": {"toolsCalled": [tool], "responseContains": ["on its way"]},
            }
            for number in range(20)
        ]
        (folder / "evals" / f"{name}.golden.json").write_text(json.dumps(cases))
    with agent(support_agent(broken=False)) as running:
        assert gate(folder, "run", "--agent-endpoint", running.url).returncode == 0
    with agent(support_agent(broken=True)) as running:
        compared = ("--baseline", "latest", "--fail-on", "regressions")
        done = gate(folder, "run", "--agent-endpoint", running.url, *compared, COLUMNS="80")
    assert done.returncode == 1, done.stdout
    return folder, done.stdout


def drop_commands(console: str) -> list[str]:
    """Drop the lines of the commands at the end, which name cases to be copied."""
    lines = console.splitlines()
    return lines[: next(at for at, line in enumerate(lines) if line.startswith(COMMANDS))]


def test_console__60_cases_with_8_regressions__names_each_once_by_cause(red) -> None:
    lines = drop_commands(red[1])
    text = "\n".join(lines)
    assert [text.count(case_id) for case_id in REGRESSIONS] == [1] * 8
    assert "  4 cases: responseContains: expected 'on its way' in response but not found\n" in text
    assert "  4 cases: toolsCalled\n    faq/case-09, faq/case-12: expected [search_faq], called [escalate]\n" in text
    assert not re.search(r"case-1[3-9]", text), "no case that passes"
    assert len(lines) <= 35


def test_console__whole_output__is_short_and_ends_with_the_verdict_and_the_next_step(red) -> None:
    lines = red[1].splitlines()
    assert len(lines) <= 45
    assert lines[:3] == [
        "✗ faq golden     18 of 20 pass",
        "✗ order golden   18 of 20 pass",
        "✗ refund golden  16 of 20 pass",
    ]
    first = [
        lines.index(line)
        for line in lines
        if line.startswith(("REGRESSIONS (8)", "52 of 60 pass (baseline: 60 of 60)"))
    ]
    last = [
        next(at for at, line in enumerate(lines) if line.startswith(word)) for word in ("GATE", "Next step:", *COMMANDS)
    ]
    assert [*first, *last[:2]] == sorted([*first, *last[:2]])
    assert len(first) == 2
    assert min(last) == last[0]


def test_console__verbose__lists_every_case_of_every_suite_as_the_contract_does(red) -> None:
    folder, _ = red
    text = gate(folder, "report", "latest", "--format", "console", "--verbose", COLUMNS="80").stdout
    listed = re.findall(r"^  [✓✗] (\S+)", text, re.MULTILINE)
    assert len(listed) == len(set(listed)) == 60
    assert text.count("═══ ") == text.count(" passed | ") == 3
    assert "    → toolsCalled: expected [search_faq], called [escalate]\n" in text


def test_console__baseline__is_named_by_its_day_and_not_by_its_run_id(red) -> None:
    folder, console = red
    baseline = record(folder)["baselineRunId"]
    line = next(line for line in console.splitlines() if line.startswith("baseline"))
    assert re.fullmatch(r"baseline (of|\S{7} of) \d{4}-\d\d-\d\d.*", line)
    assert baseline not in "\n".join(drop_commands(console))


def test_progress__narrow_terminal__wraps_every_line(red) -> None:
    folder, _ = red
    with agent(support_agent(broken=True)) as running:
        done = gate(
            folder, "run", "--agent-endpoint", running.url, "--concurrency", "4", "--output-dir", "narrow", COLUMNS="60"
        )
    assert "running 60 cases of 3 suites against" in done.stderr
    assert max(map(len, done.stderr.splitlines())) <= 60
    demo = gate(folder, "demo", "--output-dir", "shown", COLUMNS="60").stderr
    assert [line for line in demo.splitlines() if len(line) > 60 and not line.startswith(("wrote ", "report: "))] == []


def test_first_run__failing_cases_and_no_baseline__lists_each_with_its_failing_expectation(tmp_path) -> None:
    (tmp_path / "evals").mkdir()
    cases = [
        {"id": name, "input": {"message": f"{name} 01"}, "expect": {"responseContains": [f"{name} in Oslo"]}}
        for name in TOOLS
    ]
    passing = {"id": "hello", "input": {"message": "faq 00"}, "expect": {"responseContains": ["on its way"]}}
    (tmp_path / "evals" / "shop.golden.json").write_text(json.dumps([*cases, passing]))
    with agent(support_agent(broken=False)) as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url)
    lines = done.stdout.splitlines()
    assert lines[:5] == [
        "✗ shop golden  1 of 4 pass",
        "",
        "FAILED (3)",
        "  3 cases: responseContains",
        "    refund: expected 'refund in Oslo' in response but not found",
    ]
    assert "1 of 4 pass   3 do not pass   (--verbose lists every case)" in lines


def test_small_run__everything_passes__is_a_line_for_the_suite_the_totals_and_the_verdict(tmp_path) -> None:
    (tmp_path / "evals").mkdir()
    cases = [
        {"id": f"g-{number}", "input": {"message": "faq 00"}, "expect": {"responseContains": ["on its way"]}}
        for number in range(3)
    ]
    (tmp_path / "evals" / "shop.golden.json").write_text(json.dumps(cases))
    with agent(support_agent(broken=False)) as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url)
    suite, empty, totals, spending, second, verdict, result = done.stdout.splitlines()
    assert (suite, empty, totals, second) == (
        "✓ shop golden  3 of 3 pass",
        "",
        "3 of 3 pass   (--verbose lists every case)",
        "",
    )
    assert spending.startswith("agent time ")
    assert verdict == "GATE PASSED: all rules hold for 3 cases   exit 0"
    assert result.startswith("result: ")
