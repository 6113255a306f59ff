"""The agent may do no worse than in the run that is kept beside this file."""

from pathlib import Path

import agent

from eval_gate import Request, evaluate

HERE = Path(__file__).parent


def ask(request: Request) -> dict:
    return agent.answer(request.message)


def test_agent_breaks_nothing_that_it_could_do(monkeypatch, tmp_path):
    monkeypatch.chdir(HERE)
    found = evaluate("evals", ask, baseline="baseline.json", fail_on=["regressions"], output_dir=tmp_path)
    assert found.passed, str(found)
