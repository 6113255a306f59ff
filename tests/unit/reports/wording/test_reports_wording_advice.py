"""Every cause and every reason has one advice, and nobody else gives one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from eval_gate.errors import ExitCode, GateError
from eval_gate.model.case import MistakeKind
from eval_gate.model.comparison import Outcome, Reason, ReasonCode, RuleCode, Verdict
from eval_gate.model.execution import ErrorCause, ErrorKind
from eval_gate.reports.context import ReportContext
from eval_gate.reports.view.report_view import build_view
from eval_gate.reports.wording.advice import UNRELATED_TO_CHANGE, find_advice, find_problem_owner
from eval_gate.reports.wording.advice_table import (
    ADVICE_BY_CAUSE,
    ADVICE_BY_KIND,
    ADVICE_BY_MISTAKE,
    ADVICE_BY_REASON,
    NO_ADVICE,
    OWNERS_OF_PROBLEMS,
    Owner,
)
from eval_gate.results.baseline import NOT_REQUESTED
from eval_gate.struct import replace
from tests.support.results import make_result, make_run, make_suite_result
from tests.support.verdicts import judge_against

ROOT = Path(__file__).parents[4] / "runner" / "eval_gate"
IN_CI = ReportContext(run_url="https://x.test/runs/1", base_branch="main")
REFUSED = {
    "error": "agent error: HTTP 404 Not Found",
    "error_kind": ErrorKind.AGENT_ERROR,
    "error_cause": ErrorCause.NOT_FOUND,
    "error_hint": "check the path of the agent's URL",
}
BROKEN = REFUSED | {"error_cause": ErrorCause.AGENT_FAILED, "error_hint": None}
UNGRADED = {"error_kind": ErrorKind.EVALUATION_ERROR, "error_cause": ErrorCause.EVALUATOR_FAILED}


def inconclusive(code: str, **fields) -> Verdict:
    return Verdict(
        outcome=fields.pop("outcome", Outcome.INCONCLUSIVE),
        exit_code=ExitCode.INCOMPLETE,
        reasons=(Reason(code=code, message="it is so"),),
    )


def calls_of(*names: str) -> Iterator[tuple[Path, ast.Call]]:
    """Calls of these constructors anywhere in the package."""
    for file in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
                yield file, node


def test_table__has_every_cause_kind_and_reason_and_no_other() -> None:
    assert set(ADVICE_BY_CAUSE) == set(ErrorCause)
    assert set(ADVICE_BY_KIND) == set(ErrorKind)
    assert set(ADVICE_BY_MISTAKE) == set(MistakeKind)
    assert set(ADVICE_BY_REASON) | NO_ADVICE == {*RuleCode, *ReasonCode}
    assert not set(ADVICE_BY_REASON) & NO_ADVICE


def test_reasons__are_made_of_known_codes_only() -> None:
    """A text in place of a member could have no advice, and nobody would notice."""
    for file, call in calls_of("Reason", "NoBaseline"):
        given = [word.value for word in call.keywords if word.arg == "code"] or call.args[:1]
        assert not any(isinstance(value, ast.Constant) for value in given), (file, call.lineno)


def test_problems__that_leave_no_verdict__have_an_owner() -> None:
    found = {
        call.args[0].value
        for _, call in calls_of("GateError", "RelayedBaseError")
        if any(word.arg == "exit_code" and ast.unparse(word.value) != "error.exit_code" for word in call.keywords)
        and call.args
        and isinstance(call.args[0], ast.Constant)
    }
    assert found == set(OWNERS_OF_PROBLEMS)


@pytest.mark.parametrize(
    ("code", "exit_code", "unrelated"),
    [
        ("github-unreachable", ExitCode.INCOMPLETE, True),
        ("internal-error", ExitCode.INCOMPLETE, True),
        ("results-incomplete", ExitCode.INCOMPLETE, False),
        ("resource-exhausted", ExitCode.INCOMPLETE, False),
        ("invalid-configuration", ExitCode.USAGE, False),
    ],
)
def test_problem__is_called_unrelated__only_where_that_is_known(code, exit_code, unrelated) -> None:
    owner = find_problem_owner(GateError(code, "it is so", exit_code=exit_code))
    assert owner.is_unrelated_to_change == unrelated


def test_next_step__is_written_by_this_module_alone() -> None:
    """Other modules name the next step of a command, such as `init`, or print what this one says."""
    printed = [
        (file.name, line.strip())
        for file in [*(ROOT / "reports").rglob("*.py"), *(ROOT / "reports").rglob("*.j2")]
        for line in file.read_text(encoding="utf-8").splitlines()
        if re.search(r"\bNext step:", line) and file.name != "refresh_reply.py"
    ]
    assert len(printed) == 10
    assert all(re.search(r"(advice|target)\.next_step", line) or "error.hint" in line for _, line in printed), printed


@pytest.mark.parametrize("stopped", [False, True], ids=["every case", "circuit breaker"])
@pytest.mark.parametrize("code", [ReasonCode.NO_SCORED_CASES, ReasonCode.RUN_INCOMPLETE])
def test_errors__share_a_hint__it_is_the_next_step(code, stopped) -> None:
    cases = make_suite_result([make_result(name, "error", **REFUSED) for name in "abc"])
    run = make_run(cases)
    if stopped:
        run = replace(run, stop_cause=REFUSED["error_cause"], stop_hint=REFUSED["error_hint"])
    advice = find_advice(run, inconclusive(code), IN_CI)
    if code == ReasonCode.RUN_INCOMPLETE and not stopped:
        assert advice.next_step.startswith("Re-run the failed job.")
    else:
        assert advice[:3] == (ErrorCause.NOT_FOUND, Owner.TARGET, "Check the path of the agent's URL.")


@pytest.mark.parametrize(("others", "cause"), [(1, ErrorCause.NOT_FOUND), (2, ReasonCode.NO_SCORED_CASES)])
def test_errors__more_than_half_agree__decide(others, cause) -> None:
    cases = [make_result(f"a{number}", "error", **REFUSED) for number in range(2)]
    cases += [make_result(f"b{number}", "error", **BROKEN) for number in range(others)]
    advice = find_advice(make_run(make_suite_result(cases)), inconclusive(ReasonCode.NO_SCORED_CASES), IN_CI)
    assert advice.cause == cause


def test_error_of_another_tool__only_its_kind_is_known__has_the_advice_of_its_kind() -> None:
    cases = [make_result("a", "error", error_kind=ErrorKind.AGENT_ERROR)]
    advice = find_advice(make_run(make_suite_result(cases)), inconclusive(ReasonCode.NO_SCORED_CASES), IN_CI)
    assert advice.next_step == (
        "Re-run the failed job. If it ends the same way, look up the error in the log of the agent. "
        "This change may be the cause."
    )


def test_code_of_another_version__is_said_to_be_unknown() -> None:
    for outcome in (Outcome.FAILED, Outcome.INCONCLUSIVE):
        advice = find_advice(make_run({"a": "passed"}), inconclusive("from-the-future", outcome=outcome), IN_CI)
        assert (advice.cause, advice.owner) == ("from-the-future", Owner.UNKNOWN)
        assert "does not know it" in advice.next_step


@pytest.mark.parametrize("fields", [{}, {"partial": True}, {"stop_reason": "interrupted"}])
def test_no_error_at_all__is_never_called_unrelated(fields) -> None:
    """Whatever holds of all errors holds of none: such a question is never asked of no errors."""
    run = make_run({"a": "not_run", "b": "not_run"}, complete=False, **fields)
    view = build_view(judge_against(run, NOT_REQUESTED), IN_CI)
    assert view.advice is not None
    assert view.lead != UNRELATED_TO_CHANGE
    assert "judge" not in view.advice.next_step


@pytest.mark.parametrize(
    ("other", "unrelated"),
    [(("c", "error", UNGRADED), True), (("c", "error", BROKEN), False), (("c", "failed", {}), False)],
)
def test_judge_broke__is_unrelated__only_if_nothing_else_happened(other, unrelated) -> None:
    name, status, fields = other
    cases = [*(make_result(one, "error", **UNGRADED) for one in "ab"), make_result(name, status, **fields)]
    advice = find_advice(make_run(make_suite_result(cases)), inconclusive(ReasonCode.TOO_FEW_SCORED_CASES), IN_CI)
    assert advice.cause is ErrorCause.EVALUATOR_FAILED
    assert advice.owner.is_unrelated_to_change == unrelated
