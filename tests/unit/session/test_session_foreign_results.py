"""Results of another tool as a run: of very many, what passing cases said is not kept for longer than it is needed."""

import asyncio
import json

import pytest

from eval_gate.config.load import load_config
from eval_gate.config.selection import Selection
from eval_gate.engine.preparing.context import RunContext
from eval_gate.results.record import fitting
from eval_gate.results.record.fitting import fitted_record, lessened_run
from eval_gate.session import foreign_results as brought_runs
from eval_gate.session.foreign_results import brought_run, read_brought
from eval_gate.session.session import open_session

MOST = 10_000


def results(trials: int) -> list[dict]:
    """A hundred cases with long answers, of which two fail; calls with results, and reasons, in some."""
    return [
        {
            "id": f"case {number:03}",
            "status": "failed" if number % 50 == 3 else "passed",
            "trial": trial,
            "output": "x" * 500,
            "tool_calls": [{"name": "look up", "arguments": {"n": number}, "result": "y" * 50}] if number % 7 else [],
            "checks": [{"name": "polite", "passed": True, "reason": "it says please"}] if number % 2 else [],
        }
        for number in range(100)
        for trial in range(trials)
    ]


@pytest.fixture
def run_of(tmp_path, monkeypatch):
    """The run that these lines are."""
    monkeypatch.chdir(tmp_path)

    def run(lines: list[dict]):
        (tmp_path / "out.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        config = load_config({}, {}, None)
        session = open_session(config, Selection(), RunContext(tmp_path, {}))
        brought = read_brought(config, ["out.jsonl"], session.context)
        found = asyncio.run(brought_run(session, brought)).run
        return found.model_copy(update={"run_id": "r", "timestamp": "t"})

    return run


@pytest.mark.parametrize("trials", [1, 3])
def test_brought_run__more_passing_answers_than_there_is_room_for__is_written_as_if_all_were_kept(
    run_of, monkeypatch, trials
) -> None:
    whole = run_of(results(trials))
    for module in (fitting, brought_runs):
        monkeypatch.setattr(module, "MANY", 50)
        monkeypatch.setattr(module, "EVERY", 5)
    monkeypatch.setattr(fitting.lessened_run, "__defaults__", (MOST,))
    monkeypatch.setattr(fitting.RoomKeeper.__init__, "__defaults__", (MOST,))
    spared = run_of(results(trials))
    assert [case.details.response is None for _, case in spared.cases()].count(True) == 98
    found, expected = (fitted_record(lessened_run(run), MOST) for run in (spared, whole))
    assert found.run.warnings == expected.run.warnings
    assert [case for _, case in found.run.cases()] == [case for _, case in expected.run.cases()]
    assert "evaluators' words about passing cases (48)" in found.run.warnings[0]


def test_brought_run__few_cases__keep_every_answer(run_of) -> None:
    run = run_of(results(1))
    assert all(case.details.response for _, case in run.cases())
    assert run.warnings == ()
