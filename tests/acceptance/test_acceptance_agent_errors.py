"""An agent that errs now and then, on main as here, and one that errs in one run: through `evaluate()`, with seeds."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from eval_gate import Evaluation, evaluate
from tests.support.sizes import size

RUNS = 10


class OverloadedError(RuntimeError):
    """What the agent raises instead of an answer."""


class Repository:
    """Cases in a folder, ten runs of main, and pull requests."""

    def __init__(self, cases: int, errors: float) -> None:
        self.random = random.Random(f"{cases} {errors}")
        self.executions = 0
        Path("evals").mkdir()
        made = [
            {"id": f"gs-{at:03}", "input": {"message": "ask"}, "expect": {"responseContains": ["ok"]}}
            for at in range(cases)
        ]
        Path("evals", "a.golden.json").write_text(json.dumps(made))
        for run in range(RUNS):
            self.run(errors, "main", "main" if run else None)

    def agent(self, errors: float, first: str) -> Callable[..., str]:
        def answer(request) -> str:
            self.executions += 1
            broken = request.case_id == "gs-000"
            if self.random.random() < errors or (broken and first == "error"):
                raise OverloadedError("503")
            return "no" if broken and first == "wrong" else "ok"

        return answer

    def run(self, errors: float, output: str = "here", baseline: str | None = "main", first: str = "ok") -> Evaluation:
        return evaluate(
            "evals",
            self.agent(errors, first),
            output_dir=output,
            baseline=baseline,
            fail_on=["regressions"],
            reruns=6,
            max_retries=0,
        )


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Callable[[int, float], Repository]:
    monkeypatch.chdir(tmp_path)
    return Repository


def named(done: Evaluation) -> list[str]:
    assert done.run.comparison is not None
    return [one.case_id for one in done.run.comparison.changes if "regression" in one.change.value]


@pytest.mark.slow
@pytest.mark.contract("verdict.crash")
@pytest.mark.parametrize("cases", [5, 20, 60, 100])
def test_evaluate__executions_err_three_times_in_ten_on_main_and_here__is_green(repository, cases) -> None:
    made = repository(cases, 0.3)
    made.executions = 0
    pull_requests = size(20)
    done = [made.run(0.3) for _ in range(pull_requests)]
    assert Counter(one.exit_code for one in done)[0] >= pull_requests - 1
    assert made.executions / pull_requests / cases < 1.75


@pytest.mark.slow
@pytest.mark.contract("verdict.crash")
@pytest.mark.parametrize("errors", [0.2, 0.6])
def test_evaluate__a_burst_of_errors_here__is_one_finding_and_names_no_case(repository, errors) -> None:
    made = repository(60, 0.002)
    for _ in range(size(5)):
        done = made.run(errors)
        assert named(done) == []
        assert done.exit_code == 3
        assert done.verdict.reasons[0].code == "agent-errors"
        assert "more agent errors than usual" in done.markdown


@pytest.mark.contract("verdict.crash")
@pytest.mark.parametrize(("errors", "first"), [(0.3, "wrong"), (0.0, "wrong"), (0.0, "error")])
def test_evaluate__one_case_is_broken__is_the_regression(repository, errors, first) -> None:
    done = repository(20, errors).run(errors, first=first)
    assert (named(done), int(done.exit_code)) == (["gs-000"], 1)
