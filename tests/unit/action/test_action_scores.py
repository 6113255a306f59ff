"""A pass score and score drops, as the action puts them out."""

from __future__ import annotations

from eval_gate.action.inputs import read_inputs
from eval_gate.action.publishing.comment import draft_comment
from eval_gate.action.publishing.run_publication import build_outputs
from eval_gate.action.step_config import load_step_config
from eval_gate.config.policy import FailOn, Policy
from eval_gate.errors import ExitCode
from eval_gate.model.comparison import Outcome
from eval_gate.model.result import RunResult
from eval_gate.results.baseline import NOT_REQUESTED, Baseline
from tests.support.graded import make_graded_baseline, make_graded_run
from tests.support.verdicts import judge_against

REPORT_ONLY = frozenset({FailOn.NEVER})


def judged(now: dict[str, float], then: dict[str, float] | None = None, **policy) -> RunResult:
    baseline = Baseline(make_graded_baseline(then), "b") if then else NOT_REQUESTED
    return judge_against(make_graded_run(now), baseline, Policy(REPORT_ONLY, **policy))


def test_outputs__pass_score__count_as_the_comment_does() -> None:
    outputs = build_outputs(judged({"a": 0.85, "b": 0.5}, pass_score=0.8), Outcome.PASSED, ExitCode.PASSED)
    assert (outputs["passed"], outputs["failed"], outputs["pass-rate"]) == ("1", "1", "0.5000")


def test_comment__score_drop_of_a_known_failure__is_a_change() -> None:
    assert draft_comment(judged({"a": 0.5}, {"a": 0.9})).noteworthy
    assert not draft_comment(judged({"a": 0.85}, {"a": 0.9})).noteworthy


def test_comment__without_a_baseline__accepted_cases_are_no_failures() -> None:
    assert draft_comment(judged({"a": 0.85})).noteworthy
    assert not draft_comment(judged({"a": 0.85}, pass_score=0.8)).noteworthy


def test_inputs__of_scores__are_the_policy(tmp_path) -> None:
    given = "passScore: 0.8\nscoreTolerance: 0.05\n\nmaxScoreDrop: 0.2\nexports: agentv=a.jsonl, agentv=b"
    variables = {"INPUT_GITHUB-TOKEN": "ghs_x", "INPUT_SET": given}
    config = load_step_config(read_inputs(variables), {}, tmp_path)
    policy = config.policy
    assert (policy.pass_score, policy.score_tolerance, policy.max_score_drop) == (0.8, 0.05, 0.2)
    assert [(one.format, str(one.file)) for one in config.exports] == [("agentv", "a.jsonl"), ("agentv", "b")]
