"""`eval-gate run --failing`, in a process of its own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.integration.test_integration_run import fails_on, gate, record, write_suite
from tests.support.agents import Exchange, agent


def asked(running) -> list[str]:
    """What the agent was asked, in any order of a round."""
    return sorted(json.loads(one.body)["message"] for one in running.requests)


def run(folder: Path, running, *arguments: str) -> subprocess.CompletedProcess[str]:
    return gate(folder, "run", "--agent-endpoint", running.url, *arguments)


def records(folder: Path) -> list[dict]:
    """Every run of the results folder."""
    return [json.loads(one.read_text()) for one in (folder / "evals/results").glob("*/run.json")]


def test_failing__after_a_run__asks_only_what_failed_and_forgets_what_was_fixed(tmp_path) -> None:
    write_suite(tmp_path, 5)
    with agent(fails_on(1, 3)) as running:
        run(tmp_path, running)
    with agent(fails_on(3)) as running:
        first = run(tmp_path, running, "--failing")
        assert asked(running) == ["ask 1", "ask 3"]
    assert (first.returncode, record(tmp_path)["partial"]) == (1, True)
    with agent() as running:
        second = run(tmp_path, running, "--failing")
        assert asked(running) == ["ask 3"]
        assert second.returncode == 0
        third = run(tmp_path, running, "--failing")
        assert len(running.requests) == 1
    assert third.returncode == 2
    assert "error[no-failing-cases]: no case failed in its last run (evals/results)" in third.stderr


def test_failing__a_case_of_another_file_has_the_same_id__only_the_one_that_failed_is_asked(tmp_path) -> None:
    write_suite(tmp_path, 2, "one.golden.json")
    two = write_suite(tmp_path, 2, "two.golden.json")
    two.write_text(two.read_text().replace("ask ", "say "))

    async def wrong(exchange: Exchange) -> None:
        exchange.answer({"response": "no" if exchange.json["message"] == "say 1" else "ok", "toolCalls": []})

    with agent(wrong) as running:
        run(tmp_path, running)
    with agent() as running:
        run(tmp_path, running, "--failing")
        assert asked(running) == ["say 1"]


@pytest.mark.slow
def test_failing__what_was_chosen_meanwhile__does_not_hide_what_failed_before(tmp_path) -> None:
    write_suite(tmp_path, 3)
    with agent(fails_on(0, 2)) as running:
        run(tmp_path, running)
        run(tmp_path, running, "--case", "gs-001")
        before = len(running.requests)
        done = run(tmp_path, running, "--failing", "--case", "gs-002")
        assert len(running.requests) == before + 1
    assert "0 of 1 pass" in done.stdout


@pytest.mark.slow
def test_failing__is_no_baseline_and_takes_no_result_away(tmp_path) -> None:
    write_suite(tmp_path, 3)
    with agent(fails_on(0)) as running:
        run(tmp_path, running)
    full = record(tmp_path)["runId"]
    stored = (tmp_path / "evals/results" / full / "run.json").read_bytes()
    with agent() as running:
        run(tmp_path, running, "--failing")
        assert record(tmp_path)["verdict"]["outcome"] == "passed"
        done = run(tmp_path, running, "--baseline", "latest")
    assert (tmp_path / "evals/results" / full / "run.json").read_bytes() == stored
    assert record(tmp_path)["baselineRunId"] is None
    assert done.returncode == 0


@pytest.mark.slow
def test_failing__accepted__is_left_to_whoever_accepted_it(tmp_path) -> None:
    write_suite(tmp_path, 2)
    gate(tmp_path, "waive", "gs-000", "--reason", "known", "--until", "14d")
    with agent(fails_on(0, 1)) as running:
        run(tmp_path, running)
    with agent() as running:
        done = run(tmp_path, running, "--failing")
        assert asked(running) == ["ask 1"]
        assert "--failing leaves out 1 waived failure: gs-000 (--case runs it)" in done.stderr


@pytest.mark.parametrize("kind", [(), ("--quarantine",)], ids=["waived", "quarantined"])
def test_failing__only_waived_cases_failed__says_so_and_names_them(tmp_path, kind) -> None:
    write_suite(tmp_path, 3)
    gate(tmp_path, "waive", "gs-000", "gs-002", "--reason", "known", "--until", "14d", *kind)
    with agent(fails_on(0, 2)) as running:
        run(tmp_path, running)
        before = len(running.requests)
        done = run(tmp_path, running, "--failing")
        assert len(running.requests) == before
    assert done.returncode == 2
    said = "error[no-failing-cases]: only waived cases failed in their last run (evals/results): gs-000, gs-002"
    assert said in done.stderr
    assert "hint: run them with --case, or run without --failing" in done.stderr


def test_failing__summary__names_the_cases_to_run_again_and_not_the_option(tmp_path) -> None:
    write_suite(tmp_path, 2)
    with agent(fails_on(1)) as running:
        run(tmp_path, running)
        done = run(tmp_path, running, "--failing")
    (line,) = [one for one in done.stdout.splitlines() if "eval-gate run" in one and "--case" in one]
    assert "--failing" not in line
    assert "gs-001" in line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--failing"], "error[run-not-found]: evals/results contains no run yet"),
        (["--failing", "--resume", "x"], "error[conflicting-options]: --failing cannot be combined with --resume"),
        (
            ["--failing", "--target", "a", "--target", "b"],
            "error[conflicting-options]: --failing cannot be combined with several --target",
        ),
        (["--failing", "--baseline", "nowhere"], "error[run-not-found]"),
    ],
)
def test_run__options_that_lead_nowhere__end_at_once(tmp_path, arguments, said) -> None:
    write_suite(tmp_path, 1)
    with agent() as running:
        done = run(tmp_path, running, *arguments)
        assert running.requests == []
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
