"""Tools that an agent calls at once, in whichever order: which assertion holds, and what a failure says."""

from __future__ import annotations

import json

import pytest

from tests.integration.test_integration_run import gate, record, write_suite
from tests.support.agents import Exchange, agent


async def in_parallel(exchange: Exchange) -> None:
    exchange.answer({"response": "ok", "toolCalls": [{"name": "forecast"}, {"name": "weather"}]})


@pytest.mark.contract("toolsCalledAnyOrder")
def test_run__calls_in_another_order__fail_tools_called_alone_and_the_reason_names_the_other(tmp_path) -> None:
    write_suite(tmp_path, 1, "ordered.labeled.json", toolsCalled=["weather", "forecast"])
    write_suite(tmp_path, 1, "free.labeled.json", toolsCalledAnyOrder=["weather", "forecast"])
    write_suite(tmp_path, 1, "twice.labeled.json", toolsCalledAnyOrder=["weather", "weather"])
    with agent(in_parallel) as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url)
    assert done.returncode == 1, done.stderr
    errors = {suite["evalFile"]: suite["cases"][0]["error"] for suite in record(tmp_path)["suites"]}
    assert errors == {
        "evals/free.labeled.json": None,
        "evals/ordered.labeled.json": "toolsCalled: expected [weather, forecast], called [forecast, weather]: "
        "only the order differs; toolsCalledAnyOrder takes any order",
        "evals/twice.labeled.json": "toolsCalledAnyOrder: expected [weather, weather] in any order, "
        "called [forecast, weather]: missing [weather], extra [forecast]",
    }
    assert "missing [weather], extra [forecast]" in done.stdout


@pytest.mark.contract("toolsCalledAnyOrder", "agentv.behaviour.calls-unknown")
def test_run__agent_never_lists_calls__the_case_is_an_error_and_no_pass(tmp_path) -> None:
    write_suite(tmp_path, 1, toolsCalledAnyOrder=[])

    async def says_nothing(exchange: Exchange) -> None:
        exchange.answer({"response": "ok"})

    with agent(says_nothing) as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url)
    assert record(tmp_path)["suites"][0]["cases"][0]["status"] == "error"
    assert done.returncode == 3


@pytest.mark.contract("case.refused")
def test_validate__both_orders__are_refused_and_a_misspelt_one_is_named(tmp_path) -> None:
    file = write_suite(tmp_path, 1, toolsCalled=["a"], toolsCalledAnyOrder=["a"])
    done = gate(tmp_path, "validate", "evals")
    assert (done.returncode, "toolsCalled and toolsCalledAnyOrder exclude each other: keep one" in done.stderr) == (
        2,
        True,
    ), done.stderr
    file.write_text(json.dumps([{"id": "gs-1", "input": {"message": "x"}, "expect": {"toolsCalledAnyorder": ["a"]}}]))
    done = gate(tmp_path, "validate", "evals", "--strict")
    assert done.returncode == 2
    assert 'unknown assertion "toolsCalledAnyorder" (did you mean "toolsCalledAnyOrder"?)' in done.stderr
