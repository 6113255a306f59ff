"""`--earlier`: on a command line, too, a change remembers what its earlier runs saw."""

from __future__ import annotations

import json

import pytest

from tests.integration.test_integration_run import gate, record
from tests.support.agents import Exchange, agent

CASES = 20
CONFIRM = ("--confirm", "6", "--fail-on", "regressions")


def scripted(script: str):
    asked = 0

    async def handler(exchange: Exchange) -> None:
        nonlocal asked
        answer = "ok"
        if int(exchange.json["message"].split()[1]) == 2:
            answer = "ok" if script[min(asked, len(script) - 1)] == "P" else "no"
            asked += 1
        exchange.answer({"response": answer, "toolCalls": []})

    return handler


@pytest.fixture
def run(tmp_path):
    """One run after the other in a folder; the first three are the branch's."""
    cases = [
        {"id": f"gs-{number:03}", "input": {"message": f"ask {number}"}, "expect": {"responseContains": ["ok"]}}
        for number in range(CASES)
    ]
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "weather.golden.json").write_text(json.dumps(cases))

    def run(script: str, *options: str):
        with agent(scripted(script)) as running:
            done = gate(tmp_path, "run", "--agent-endpoint", running.url, *CONFIRM, *options)
        return done, record(tmp_path)["runId"]

    for _ in range(3):
        done, _ = run("P", "--baseline", "latest")
        assert done.returncode == 0
    return run


@pytest.mark.slow
def test_earlier__three_runs_of_a_change__are_judged_by_all_of_them(tmp_path, run) -> None:
    main = record(tmp_path)["runId"]
    first, one = run("FFPPPPP", "--baseline", main)
    assert first.returncode == 0
    alone, _ = run("PFFFFFF", "--baseline", main)
    assert alone.returncode == 0
    second, two = run("PFPPPPP", "--baseline", main, "--earlier", one)
    assert second.returncode == 0
    third, three = run("PFFFFFF", "--baseline", main, "--earlier", two)
    assert third.returncode == 1, third.stdout
    assert "in 2 earlier pushes, 0 of 3" in third.stdout
    kept = json.loads((tmp_path / "evals" / "results" / three / "pushes.json").read_text())
    assert [one["runId"] for one in kept["ledger"]["runs"]] == [three, two, one]
    compared = gate(tmp_path, "compare", main, three)
    assert (compared.returncode, "in 2 earlier pushes" in compared.stdout) == (1, True)
    told = gate(tmp_path, "compare", main, three, "--earlier", one)
    assert "in 1 earlier push," in told.stdout


def test_earlier__no_such_run__is_an_error_before_anything_is_run(tmp_path, run) -> None:
    before = record(tmp_path)["runId"]
    done, after = run("P", "--earlier", "nobody")
    assert (done.returncode, after) == (2, before)
    assert "nobody" in done.stderr


def test_earlier__damaged__is_an_error_and_says_which_file(tmp_path, run) -> None:
    before = record(tmp_path)["runId"]
    (tmp_path / "evals" / "results" / before / "pushes.json").write_text("{")
    done, _ = run("P", "--earlier", before)
    assert done.returncode == 2
    assert "pushes.json does not say what earlier pushes saw" in done.stderr


def pushed(tmp_path, run_id: str) -> dict:
    """What this push leaves for the next one, by case."""
    kept = json.loads((tmp_path / "evals" / "results" / run_id / "pushes.json").read_text())
    return kept["ledger"].get("suites", {}).get("evals/weather.golden.json", {})


@pytest.mark.slow
def test_earlier__case_that_failed_with_the_base_branchs_agent_too__is_not_held_against_the_next_push(
    tmp_path, run
) -> None:
    main = record(tmp_path)["runId"]
    _, one = run("P", "--baseline", main)
    with agent(scripted("F")) as base:
        done, two = run("F", "--baseline", main, "--earlier", one, "--control-endpoint", base.url)
    assert (done.returncode, "not of this change" in " ".join(done.stdout.split())) == (0, True), done.stdout
    assert "gs-002" not in pushed(tmp_path, two)
    last, _ = run("PFFFFFF", "--baseline", main, "--earlier", two)
    assert (last.returncode, "earlier push" in last.stdout) == (0, False), last.stdout


@pytest.mark.slow
def test_earlier__re_runs_that_repeat_the_first_failure__count_once_for_the_next_push_too(tmp_path, run) -> None:
    main = record(tmp_path)["runId"]
    _, one = run("P", "--baseline", main)
    done, two = run("F", "--baseline", main, "--earlier", one)
    assert "answered byte for byte the same" in " ".join(done.stdout.split())
    assert pushed(tmp_path, two)["gs-002"]["runs"].split()[0] == "0F"
    last, _ = run("PFPFPFP", "--baseline", main, "--earlier", two)
    assert last.returncode == 0, last.stdout
