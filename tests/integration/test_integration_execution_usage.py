"""Time, tokens and cost of a case are those of one execution on both sides, however often the case was re-run."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from tests.integration.test_integration_run import gate, record, write_suite
from tests.support.agents import Exchange, agent
from tests.support.pages import case_on

SLOW_MS = 200
"""Time of each wrong response."""


def responds(*, wrong: int | None = None):
    """Respond to each case with the same usage, and to `wrong` slowly."""

    async def handler(exchange: Exchange) -> None:
        number = int(exchange.json["message"].split()[1])
        if number == wrong:
            await asyncio.sleep(SLOW_MS / 1000)
        usage = {"inputTokens": 200, "outputTokens": 20}
        text = "no" if number == wrong else "ok"
        exchange.answer({"response": text, "toolCalls": [], "usage": usage, "costUsd": 0.25})

    return handler


@pytest.fixture(scope="module")
def rerun(tmp_path_factory) -> tuple[Path, str]:
    """A run with one regression, which was re-run, after a run that passed; its folder and its console."""
    folder = tmp_path_factory.mktemp("rerun")
    write_suite(folder)
    with agent(responds()) as running:
        assert gate(folder, "run", "--agent-endpoint", running.url).returncode == 0
    reports = ("--report", "html=page.html", "--report", "junit=junit.xml", "--export", "agentv=rows.jsonl")
    with agent(responds(wrong=3)) as running:
        done = gate(
            folder,
            *("run", "--agent-endpoint", running.url, "--baseline", "latest", "--fail-on", "regressions", "--verbose"),
            *reports,
        )
    assert done.returncode == 1, done.stdout + done.stderr
    return folder, done.stdout


def find_red_run(folder: Path) -> dict:
    """Find the run that failed, whichever is the newest."""
    found = [json.loads(file.read_text()) for file in (folder / "evals" / "results").glob("*/run.json")]
    [red] = [run for run in found if run["verdict"]["outcome"] == "failed"]
    return red


def find_red_case(folder: Path) -> dict:
    """Find its regression."""
    return find_red_run(folder)["suites"][0]["cases"][3]


def test_run_result__case_that_was_rerun__has_sums_as_documented(rerun) -> None:
    folder, _ = rerun
    case, summary = find_red_case(folder), find_red_run(folder)["summary"]
    executions = len(case["trials"])
    assert case["reruns"] > 0
    assert (case["usage"]["inputTokens"], case["costUsd"]) == (200 * executions, 0.25 * executions)
    assert case["durationMs"] == pytest.approx(sum(trial["durationMs"] for trial in case["trials"]))
    assert summary["estimatedCostUsd"] == pytest.approx(0.25 * (5 + executions)), "the budget counts everything"


def test_page__case_that_was_rerun__has_time_tokens_and_cost_of_one_execution_on_both_sides(rerun) -> None:
    folder, _ = rerun
    shown = case_on((folder / "page.html").read_text(), "gs-003")
    before, now = shown["before"], shown["now"]
    assert (before["tokens"], now["tokens"]) == ([200, 20], [200, 20])
    assert (before["cost"], now["cost"]) == ("$0.25", "$0.25")
    assert now["ms"] == pytest.approx(find_red_case(folder)["trials"][0]["durationMs"], abs=0.1)


def test_baseline_side__baseline_that_was_rerun__is_of_one_execution(rerun) -> None:
    folder, _ = rerun
    red = find_red_run(folder)["runId"]
    with agent(responds()) as running:
        assert gate(folder, "run", "--agent-endpoint", running.url, "--baseline", red).returncode == 0
    [change] = [one for one in record(folder)["comparison"]["changes"] if one["caseId"] == "gs-003"]
    before = change["baselineResult"]
    assert (before["inputTokens"], before["outputTokens"], before["costUsd"]) == (200, 20, 0.25)
    assert SLOW_MS <= before["durationMs"] < 2 * SLOW_MS


def test_reports__case_that_was_rerun__show_the_same_time(rerun) -> None:
    folder, console = rerun
    took = find_red_case(folder)["trials"][0]["durationMs"]
    assert f" {took:.0f}ms" in next(line for line in console.splitlines() if line.startswith("  ✗"))
    [seconds] = re.findall(r'name="gs-003"[^>]*time="([\d.]+)"', (folder / "junit.xml").read_text())
    assert float(seconds) == pytest.approx(took / 1000, abs=0.001)
    row = json.loads((folder / "rows.jsonl").read_text().splitlines()[3])
    assert (row["duration_ms"], row["usage"]["input_tokens"], row["cost_usd"]) == (pytest.approx(took), 200, 0.25)
