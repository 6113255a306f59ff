"""`reportOnly`: which verdicts it softens, and for how long."""

from __future__ import annotations

import pytest

from eval_gate.config.loader import load_config
from eval_gate.config.policy import Policy
from eval_gate.errors import ExitCode, GateError
from eval_gate.gate.verdict_reasons import HISTORY_CODES
from eval_gate.model.comparison import Outcome, ReasonCode, RuleCode
from eval_gate.results.baseline import Baseline
from eval_gate.results.history import build_history
from eval_gate.struct import replace
from tests.support.results import make_baseline_run, make_result, make_run, make_suite_result
from tests.support.verdicts import judge_against, rules_of

CODES = {
    True: "regressions suite-drop suite-score-drop unconfirmed-regressions",
    False: "max-score-drop max-latency-increase max-cost-increase max-token-increase"
    " must-pass failures min-pass-rate agent-errors max-errors min-coverage flaky removed changed loosened-rules"
    " new-failures stale passed report-only no-baseline no-comparable-cases no-verdict no-scored-cases"
    " too-few-scored-cases run-incomplete all-agent-errors missing-must-pass-result missing-case-result not-in-baseline"
    " not-comparable baseline-not-requested no-run-yet no-passing-baseline baseline-lost baseline-unavailable"
    " baseline-branch-not-found baseline-artifact-not-found branch-renamed",
}


def test_report_only__every_code_of_a_reason__is_softened_or_not() -> None:
    assert {one.value for one in (*RuleCode, *ReasonCode)} == {*CODES[True].split(), *CODES[False].split()}
    assert {one.value for one in HISTORY_CODES} == {*CODES[True].split()}


def decide(now: dict[str, str], period: str | None = "until 3 runs", runs: int = 2, *words: str, **rules):
    then = make_baseline_run(dict.fromkeys(now, "passed"))
    history = build_history([replace(then, run_id=f"r{at}") for at in range(runs - 1)][::-1])
    run = make_run(make_suite_result([make_result(name, status) for name, status in now.items()]))
    policy = Policy(rules_of(*words or ("regressions",)), report_only=period, **rules)
    decided = judge_against(run, Baseline(then, "b", history=history), policy).verdict
    assert decided is not None
    return decided


@pytest.mark.parametrize(
    ("runs", "period", "left"),
    [(1, "until 3 runs", 2), (2, "until 3 runs", 1), (3, "until 3 runs", None), (1, None, None)],
)
def test_report_only__regression__exits_with_0_while_runs_are_missing(runs, period, left) -> None:
    verdict = decide({"a": "failed", "b": "passed"}, period, runs)
    assert (verdict.outcome, verdict.runs_until_failing) == (Outcome.FAILED, left)
    assert verdict.exit_code is (ExitCode.FAILED if left is None else ExitCode.PASSED)


@pytest.mark.parametrize(
    ("now", "words", "rules", "outcome"),
    [
        ({"a": "failed", "b": "passed"}, ("failures",), {}, Outcome.FAILED),
        ({"a": "failed", "b": "passed"}, (), {"must_pass": ("a",)}, Outcome.FAILED),
        ({"a": "failed", "b": "passed"}, (), {"min_pass_rate": 0.9}, Outcome.FAILED),
        ({"a": "failed", "b": "not_run"}, (), {}, Outcome.FAILED),
        ({"a": "failed", "b": "error", "c": "error"}, (), {}, Outcome.FAILED),
        ({"a": "passed", "b": "not_run"}, (), {}, Outcome.INCONCLUSIVE),
        ({"a": "passed", "b": "passed"}, (), {}, Outcome.PASSED),
    ],
    ids=str,
)
def test_report_only__any_other_ground__keeps_its_exit_code(now, words, rules, outcome) -> None:
    verdict = decide(now, "until 3 runs", 1, *words, **rules)
    assert (verdict.outcome, verdict.exit_code, verdict.runs_until_failing) == (outcome, outcome.exit_code, None)


@pytest.mark.parametrize("text", ["until 1 runs", "until 101 runs", "10", "until ten runs", "until 010 runs", "always"])
def test_report_only__text_that_names_no_period__is_refused(text, tmp_path) -> None:
    (tmp_path / "eval-gate.yaml").write_text(f"# gate\nreportOnly: {text!r}\n")
    with pytest.raises(GateError) as refusal:
        load_config({}, {}, tmp_path / "eval-gate.yaml")
    problem = refusal.value.problems[0]
    assert (problem.line, problem.field, "until N runs" in problem.message) == (2, "reportOnly", True)
