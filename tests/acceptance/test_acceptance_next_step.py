"""The next step follows from what happened, in comment, summary, check, page and console alike."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.program import gate
from tests.support.world import NOBODY, ActionWorld, Seen, plain

INNOCENT = "says nothing about your change"
NOT_STARTED = "The agent did not start: see the log of the step that starts it."
ADDRESS_HINT = "If it did start: (check its URL|inside a container localhost is the container itself)"
"""What the connection itself advises, here and where the tests run in a container."""
WAITS = {"EVAL_GATE_WAIT_FOR": "1"}
"""Shorter than users wait, and by their own setting."""


def pull_request(made: ActionWorld, url: str, **variables: str) -> Seen:
    """A pull request of four cases whose agent is asked at this address."""
    pull = made.pull()
    made.of_length("PPPP")
    made.script.begin("PPPP")
    inputs = {"timeout-ms": "5000", "max-retries": "0", "concurrency": "4"}
    return made.seen(made.job.pull_request(pull, url, inputs, **variables), pull)


def places_of(seen: Seen) -> dict[str, str]:
    """All places that name a next step, by their names."""
    assert seen.ended is not None
    return {
        "comment": plain(seen.report),
        "summary": plain(seen.ended.summary),
        "check": plain(seen.check["output"]["summary"]),
        "console": " ".join(seen.text.split()),
    }


@pytest.mark.parametrize("runs", ["PPPP*3", ""], ids=["with a baseline", "first run"])
@pytest.mark.parametrize("waits", [WAITS, {}], ids=["waited for", "not waited for"])
def test_pull_request__its_agent_does_not_start__the_step_that_starts_it_is_named_everywhere(
    action, runs, waits
) -> None:
    if runs:
        action.main(runs)
    seen = pull_request(action, NOBODY, **waits)
    assert (seen.code, "inconclusive: agent unreachable" in seen.title) == (3, True), seen.text
    assert seen.check["conclusion"] == "failure"
    assert seen.check["output"]["title"].startswith("Inconclusive: ")
    assert "no connection to 127.0.0.1" in seen.check["output"]["title"]
    for place, text in places_of(seen).items():
        assert re.search(rf"{re.escape(NOT_STARTED)} ({ADDRESS_HINT})", text), (place, text)
        assert INNOCENT not in text, (place, text)
        assert "judge" not in text, (place, text)
    assert "exit 3" in seen.text


@pytest.mark.parametrize("runs", ["PPPP*3", ""], ids=["with a baseline", "first run"])
def test_run__its_program_ends_with_an_import_error__what_it_printed_is_named(empty, runs) -> None:
    """Whether main ran it or not: what the change broke is in the program's own words."""
    empty.of_length("PPPP")
    target = {"name": "a", "provider": "cli", "commandTemplate": "cat {PROMPT_FILE}; python3 agent.py"}
    (empty.folder / "eval-gate.json").write_text(json.dumps({"targets": [target], "target": "a"}))
    (empty.folder / "evals" / "agent.py").write_text("print('ok')")
    baseline = []
    if runs:
        assert empty.gate("run", "--output-dir", "main").returncode == 0
        baseline = ["--baseline", "main", "--fail-on", "regressions"]
    (empty.folder / "evals" / "agent.py").write_text("import nothing_of_that_name")
    seen = empty.seen(empty.gate("run", *baseline, "--report", "md=report.md"))
    assert seen.code == (1 if runs else 3), seen.text
    assert "No module named 'nothing_of_that_name'" in seen.text
    step = " ".join(seen.text.split()).partition("Next step: ")[2]
    assert step.startswith("Read what the agent's program printed, which is part of each error"), step
    assert INNOCENT not in seen.report + seen.text


def test_run__its_agent_does_not_start__and_is_waited_for__the_console_says_where_to_look(empty) -> None:
    empty.of_length("PP")
    done = gate(empty.folder, "run", "--agent-endpoint", NOBODY, **WAITS)
    told = " ".join(done.stdout.split())
    assert done.returncode == 3
    assert re.search(rf"Next step: {re.escape(NOT_STARTED)} ({ADDRESS_HINT})", told), told


def test_everything_hangs__is_a_time_out_and_not_an_unreachable_agent(world) -> None:
    """The glossary: a target that timed out is an agent error."""
    seen = world("PPPPPPPP*4").here("HHHHHHHH", timeout_ms="300", concurrency="1")
    assert (seen.code, seen.reasons[0]) == (3, "no-scored-cases")
    assert "inconclusive: agent timed out" in seen.title
    assert "5 agent errors" in seen.head
    assert "unreachable" not in seen.report + seen.text
    assert "Increase timeoutMs" in re.sub(r"\s+", " ", seen.text.partition("Next step:")[2])
