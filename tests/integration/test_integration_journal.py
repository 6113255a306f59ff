"""The journal of a large run is where its finished trials are: nobody else changes what they were."""

from __future__ import annotations

import pytest

from tests.integration.test_integration_run import gate, write_suite
from tests.support.agents import Exchange, agent

MANY = 1_050
"""More than are kept in memory."""


@pytest.mark.slow
def test_run__an_agent_makes_passes_of_failures_in_the_journal__is_not_completed_and_says_why(tmp_path) -> None:
    write_suite(tmp_path, MANY)
    asked = 0

    async def answers(exchange: Exchange) -> None:
        nonlocal asked
        asked += 1
        if asked == MANY:
            (journal,) = (tmp_path / "evals" / "results").glob("*/cases.jsonl")
            changed = journal.read_text().replace('"status":"failed"', '"status":"passed"')
            assert '"status":"passed"' in changed
            journal.write_text(changed)
        exchange.answer({"response": "no", "toolCalls": []})

    with agent(answers) as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url, "-q")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "error[invalid-journal]" in done.stderr
    assert "a finished trial is missing" in done.stderr
