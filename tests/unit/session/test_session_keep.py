"""A run that was judged is kept, and of a large one no more is held than what is written."""

import gc
import weakref

import pytest

from eval_gate.config.load import load_config
from eval_gate.config.selection import Selection
from eval_gate.engine.preparing.context import RunContext
from eval_gate.gate.judge import judge
from eval_gate.model.execution import CaseDetails
from eval_gate.results.read import read_run
from eval_gate.results.record import fitting
from eval_gate.session import keep as keeping
from eval_gate.session.keep import keep
from eval_gate.session.session import open_session
from tests.support.results import make_run


def answered(cases: int):
    """A run whose answers are most of it."""
    run = make_run({f"case {number}": "passed" for number in range(cases)})
    (suite,) = run.suites
    said = CaseDetails(response="x" * 1_000, response_length=1_000)
    cases_with = tuple(case.model_copy(update={"details": said.model_copy()}) for case in suite.cases)
    return run.model_copy(update={"suites": (suite.model_copy(update={"cases": cases_with}),)})


@pytest.fixture
def session(tmp_path, monkeypatch):
    """A session whose records may be as large as two hundred cases without their answers, and large runs have fifty."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fitting, "MANY", 50)
    monkeypatch.setattr(fitting.lessened_run, "__defaults__", (100_000,))
    return open_session(load_config({}, {}, None), Selection(), RunContext(tmp_path, {}))


def test_keep__of_a_run_whose_answers_have_no_room__holds_none_of_them_when_it_writes(session, monkeypatch) -> None:
    first, alive = [], []
    write = keeping.write_result

    def looking(*given, **named):
        alive.append([one() is not None for one in first])
        return write(*given, **named)

    def judged():
        run = answered(200)
        first.extend(map(weakref.ref, run.suites[0].cases))
        return judge(run, session.question)

    monkeypatch.setattr(keeping, "write_result", looking)
    there = gc.isenabled()
    gc.disable()
    try:
        kept = keep(session, judged())
    finally:
        if there:
            gc.enable()
    assert alive == [[False] * 200]
    assert "answers" in kept.run.warnings[0]
    assert read_run(str(kept.record), session.folder).suites == kept.run.suites
    assert (kept.record.parent / "ledger.json").is_file()
