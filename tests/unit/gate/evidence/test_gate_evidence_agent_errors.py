"""Agent errors, timeouts among them: a rate of the run, and of a case only beyond that of the others."""

from __future__ import annotations

import pytest

from eval_gate.config.policy import FailOn, Policy
from eval_gate.errors import ExitCode
from eval_gate.gate.evidence.agent_errors import (
    ErrorShare,
    count_base_agent_executions,
    learn_error_share,
    recheck_error_finding,
    run_error_test,
)
from eval_gate.gate.verdict_decision import GateInputs, decide_verdict
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass, RuleCode
from eval_gate.model.evidence import Counts, ErrorRun, GroundKind
from eval_gate.model.result import RunResult, Shard
from eval_gate.struct import replace
from tests.support.histories import Asked, Branch, Engine

RULES = Policy(frozenset({FailOn.REGRESSIONS}))
SLOW = ["TPTTPTT"] * 8
"""Cases on a slow day: now and then they respond."""


def cases_of(*tapes: str) -> tuple[Asked, ...]:
    return tuple(Asked("a.json", f"case-{at}", tape) for at, tape in enumerate(tapes))


def branch_of(cases: int, runs: int = 10) -> Branch:
    branch = Branch()
    for number in range(runs):
        branch = branch.pushed(cases_of(*["P"] * cases), RULES, number)
    return branch


def judged(mine: str, others: list[str], passing: int = 10, runs: int = 10, rules: Policy = RULES) -> RunResult:
    """A case with this tape beside others, and so many that pass, after runs in which all of them passed."""
    question = GateInputs(branch_of(len(others) + passing + 1, runs).baseline, rules)
    return decide_verdict(Engine(cases_of(mine, *others, *["P"] * passing)).run(question), question)


def of_mine(run: RunResult) -> tuple[CaseClass, GroundKind | None]:
    assert run.comparison is not None
    change = next(one for one in run.comparison.changes if one.case_id == "case-0")
    return change.change, change.grounds.kind if change.grounds else None


def exit_code(run: RunResult) -> ExitCode:
    assert run.verdict is not None
    return run.verdict.exit_code


@pytest.mark.contract("verdict.crash")
@pytest.mark.parametrize("letter", ["C", "T"])
@pytest.mark.parametrize(("broken", "passing"), [(1, 4), (1, 59), (5, 13), (7, 14), (13, 27)])
def test_decide_verdict__always_errs_and_the_others_respond__is_a_regression(broken, passing, letter) -> None:
    run = judged(letter, [letter] * (broken - 1), passing)
    assert (of_mine(run)[0], exit_code(run)) == (CaseClass.REGRESSION, ExitCode.FAILED)


@pytest.mark.contract("verdict.crash")
@pytest.mark.parametrize(("letter", "code"), [("C", ExitCode.FAILED), ("T", ExitCode.INCOMPLETE)])
@pytest.mark.parametrize(("broken", "passing"), [(2, 2), (6, 10), (8, 12)])
def test_decide_verdict__more_than_a_third_err_always__is_a_regression_unless_they_are_late(
    broken, passing, letter, code
) -> None:
    run = judged(letter, [letter] * (broken - 1), passing)
    expected = CaseClass.REGRESSION if code is ExitCode.FAILED else CaseClass.ERRORED
    assert (of_mine(run)[0], exit_code(run)) == (expected, code)


@pytest.mark.contract("verdict.crash")
def test_decide_verdict__one_of_two_errs_always__is_a_regression() -> None:
    run = judged("C", [], 1)
    assert (of_mine(run)[0], exit_code(run)) == (CaseClass.REGRESSION, ExitCode.FAILED)


@pytest.mark.contract("verdict.crash")
def test_decide_verdict__always_errs_alone__takes_two_reruns() -> None:
    run = judged("C", [], 59)
    case = next(case for _, case in run.iter_cases())
    assert (len(case.trials), exit_code(run)) == (3, ExitCode.FAILED)


@pytest.mark.contract("verdict.crash")
@pytest.mark.parametrize("tape", ["CP", "CCP"])
@pytest.mark.parametrize("others", [[], ["CP"] * 2])
def test_decide_verdict__few_err_and_respond_when_they_are_run_again__still_pass(tape, others) -> None:
    run = judged(tape, others, 57)
    assert (of_mine(run)[0], exit_code(run)) == (CaseClass.STILL_PASSING, ExitCode.PASSED)


@pytest.mark.contract("verdict.crash")
def test_decide_verdict__a_burst__is_one_finding_about_the_run_and_names_no_case() -> None:
    run = judged("CP", ["CP"] * 15 + ["CCP"] * 6, 38)
    assert run.comparison is not None
    assert run.verdict is not None
    assert not run.comparison.select_changes(CaseClass.REGRESSION)
    assert [reason.code for reason in run.verdict.reasons] == [RuleCode.AGENT_ERRORS]
    expected = "22 of 60 first executions ended in an agent error, usually 0: an outage, or the change"
    assert run.verdict.reasons[0].message == expected
    assert exit_code(run) is ExitCode.INCOMPLETE


@pytest.mark.contract("verdict.crash")
@pytest.mark.parametrize("limit", [0, 30])
def test_decide_verdict__a_burst_and_a_limit_of_the_user__the_limit_decides(limit) -> None:
    rules = replace(RULES, max_errors=limit)
    assert exit_code(judged("CP", ["CP"] * 21, 38, rules=rules)) is ExitCode.PASSED
    code = exit_code(judged("TTCTTTT", ["TP"] * 21 + ["TCTTTTTTT"] * 3, 36, rules=rules))
    assert code is ExitCode.FAILED


@pytest.mark.contract("verdict.crash")
def test_decide_verdict__nothing_responds__is_the_change_or_an_outage_and_fails() -> None:
    run = judged("C", ["C"] * 20, 0)
    assert (of_mine(run)[0], exit_code(run)) == (CaseClass.REGRESSION, ExitCode.FAILED)


@pytest.mark.contract("verdict.crash")
@pytest.mark.parametrize("tape", ["F", "TF", "TTFTFTF", "FTF", "CTF"])
def test_decide_verdict__responds_wrong_whenever_it_responds__is_a_regression(tape) -> None:
    run = judged(tape, ["TP"] * 8)
    assert of_mine(run)[0] is CaseClass.REGRESSION
    assert exit_code(run) is ExitCode.FAILED


@pytest.mark.contract("verdict.crash")
@pytest.mark.parametrize(
    ("tape", "expected"),
    [
        ("FT", (CaseClass.ERRORED, GroundKind.MISSING_RERUNS)),
        ("FTP", (CaseClass.INCONCLUSIVE, GroundKind.RECOVERED)),
        ("TFP", (CaseClass.INCONCLUSIVE, GroundKind.RECOVERED)),
        ("TP", (CaseClass.STILL_PASSING, None)),
    ],
)
def test_decide_verdict__fails_once_on_a_slow_day__is_no_regression(tape, expected) -> None:
    run = judged(tape, SLOW)
    assert of_mine(run) == expected
    assert exit_code(run) is ExitCode.INCOMPLETE


@pytest.mark.contract("verdict.crash")
@pytest.mark.parametrize("shard", [None, Shard(index=1, count=4)])
def test_reruns__an_error_among_the_reruns__a_run_and_a_shard_go_on_until_responses_decide(shard) -> None:
    mine = Asked("a.json", "case-0", "FTF")
    cases = cases_of(*["P"] * 12)
    part = Engine((mine, *cases[1:]), fields={"shard": shard} if shard else {})
    made = part.run(GateInputs(branch_of(12, 6).baseline, RULES)).index_cases()[mine.key]
    assert [trial.timed_out for trial in made.trials] == [False, True, False]


@pytest.mark.contract("verdict.crash")
def test_decide_verdict__main_errs_as_often__a_case_without_a_response_does_not_fail_the_gate() -> None:
    branch, tapes = Branch(), ["P"] * 42 + ["CP"] * 18
    for number in range(10):
        branch = branch.pushed(cases_of(*tapes[number:], *tapes[:number]), RULES, number)
    question = GateInputs(branch.baseline, RULES)
    run = decide_verdict(Engine(cases_of("C", *tapes[:-1])).run(question), question)
    assert of_mine(run) == (CaseClass.ERRORED, GroundKind.AGENT_ERRORS)
    assert exit_code(run) is ExitCode.PASSED


@pytest.mark.contract("verdict.crash")
@pytest.mark.parametrize("since", [0, 5])
def test_decide_verdict__main_was_slow_once__cases_that_never_respond_are_not_explained_by_it(since) -> None:
    branch = branch_of(60, 1).pushed(cases_of(*["TP"] * 20, *["P"] * 40), RULES, 1)
    for number in range(since):
        branch = branch.pushed(cases_of(*["P"] * 60), RULES, number + 2)
    run = decide_verdict(Engine(cases_of(*["T"] * 25, *["P"] * 35)).run(q := GateInputs(branch.baseline, RULES)), q)
    assert of_mine(run) == (CaseClass.ERRORED, GroundKind.MISSING_RERUNS)
    assert exit_code(run) is ExitCode.INCOMPLETE


@pytest.mark.contract("verdict.crash")
def test_decide_verdict__later_errors_of_new_cases__do_not_explain_what_was_decided_before_them() -> None:
    branch = Branch().pushed(cases_of(*["P"] * 57, *["CP"] * 3), RULES, 0)
    cases = cases_of("C", *["P"] * 58, "CP", *["PC"] * 5)
    run = decide_verdict(Engine(cases).run(question := GateInputs(branch.baseline, RULES)), question)
    assert of_mine(run) == (CaseClass.ERRORED, GroundKind.MISSING_RERUNS)
    assert exit_code(run) is ExitCode.INCOMPLETE


@pytest.mark.contract("verdict.crash")
@pytest.mark.parametrize("letter", ["C", "T"])
def test_decide_verdict__few_reruns_and_main_errs__many_that_never_respond_tell_together(letter) -> None:
    branch = Branch().pushed(cases_of(*["P"] * 57, *["CP"] * 3), RULES, 0)
    cases = cases_of(*[letter] * 10, *["P"] * 45, *["CP"] * 5)
    run = decide_verdict(Engine(cases, reruns=2).run(question := GateInputs(branch.baseline, RULES)), question)
    assert (of_mine(run)[0], exit_code(run)) == (CaseClass.REGRESSION, ExitCode.FAILED)


@pytest.mark.parametrize(
    ("tape", "executions", "expected"),
    [("CP", 2, CaseClass.INCOMPARABLE), ("CCF", 3, CaseClass.INCOMPARABLE), ("C", 3, CaseClass.STILL_ERRORED)],
)
def test_reruns__case_of_which_main_has_no_response__is_repeated_and_does_not_fail_the_gate(
    tape, executions, expected
) -> None:
    main = Branch().pushed(cases_of("C", *["P"] * 12), RULES, 0)
    run = decide_verdict(Engine(cases_of(tape, *["P"] * 12)).run(q := GateInputs(main.baseline, RULES)), q)
    case = run.index_cases()[CaseKey("a.json", "case-0")]
    assert (len(case.trials), of_mine(run)[0], exit_code(run)) == (executions, expected, ExitCode.PASSED)


@pytest.mark.parametrize("runs", [0, 1, 3, 10, 20])
@pytest.mark.parametrize("cases", [1, 5, 20, 60, 500])
def test_error_test__one_error_where_main_has_none__is_usual_and_all_are_not(runs, cases) -> None:
    share = learn_error_share((ErrorRun(errors=0, executions=cases),) * runs)

    def test(errors: int) -> bool:
        return run_error_test(Counts(passes=cases - errors, agent_errors=errors), share, 0.05).is_unusual

    assert not test(1)
    assert test(cases) or cases < 5 or runs < 1


@pytest.mark.parametrize("errors", [[0] * 10, [6] * 10, [0, 40, 0, 0, 0, 0, 0, 0, 0, 0], [10, 20, 30, 15, 25], [30]])
def test_learn_error_share__runs_that_differ__leave_more_open(errors) -> None:
    found = learn_error_share(tuple(ErrorRun(errors=one, executions=60) for one in errors))
    assert found.mean == pytest.approx(sum(errors) / len(errors) / 60, abs=0.01)
    calm = learn_error_share((ErrorRun(errors=sum(errors), executions=60 * len(errors)),) * 10)
    assert found.errors + found.responses <= calm.errors + calm.responses


@pytest.mark.parametrize(("there", "caused"), [((0, 10), True), ((4, 10), False), ((1, 3), False), ((0, 0), False)])
def test_recheck_error_finding__base_agent_without_errors__shows_that_the_change_errs(there, caused) -> None:
    share = learn_error_share((ErrorRun(errors=0, executions=60),) * 10)
    finding = run_error_test(Counts(passes=38, agent_errors=22), share, 0.05)
    counts = Counts(passes=there[1] - there[0], agent_errors=there[0])
    found = recheck_error_finding(finding, [counts])
    assert found.is_caused_by_change is caused
    assert found.base_agent == counts
    assert count_base_agent_executions(finding) <= 10


def test_error_share__row__is_that_of_a_beta_binomial() -> None:
    assert ErrorShare(1.0, 1.0).compute_row_chance(3) == pytest.approx(1 / 4)
