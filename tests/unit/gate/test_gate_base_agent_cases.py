"""What the base branch's agent is asked: as little as decides, and nothing where it could not turn the gate."""

from __future__ import annotations

from eval_gate.config.policy import FailOn, Policy
from eval_gate.gate.base_agent_cases import (
    NO_WITNESSES,
    find_clearable_cases,
    select_base_agent_cases,
)
from eval_gate.gate.verdict_decision import GateInputs, decide_provisional_verdict, decide_verdict
from eval_gate.model.case import CaseKey
from eval_gate.model.execution import Status, Trial
from eval_gate.model.result import BaseAgentSummary, RunResult
from eval_gate.model.selection import BaseAgentCases
from eval_gate.results.baseline import NOT_REQUESTED, Baseline
from eval_gate.struct import replace
from tests.support.results import FILE, make_baseline_run, make_result, make_run, make_suite_result

POLICY = Policy(fail_on=frozenset({FailOn.REGRESSIONS}), reruns=6)


def trial(letter: str) -> Trial:
    status = Status.PASSED if letter == "P" else Status.FAILED
    return Trial(status=status, score=float(letter == "P"), duration_ms=1.0)


def run_of(control: dict[str, str] | None = None, /, causes: int = 1, **cases: str) -> RunResult:
    """A run whose cases did this, the first letter first; and what the base branch's agent did so far."""
    made = [
        make_result(
            name,
            "passed" if tape.count("P") * 2 > len(tape) else "failed",
            trials=tape,
            reruns=len(tape) - 1,
            error=None if tape[0] == "P" else f"check{at % causes}: it said no",
            base_agent_trials=tuple(map(trial, (control or {}).get(name, ""))),
        )
        for at, (name, tape) in enumerate(cases.items())
    ]
    run = make_run(make_suite_result(made))
    return replace(run, reruns=6, base_agent=BaseAgentSummary(target=run.target))


def question(run: RunResult, policy: Policy = POLICY) -> GateInputs:
    baseline = make_baseline_run({case.id: "passed" for _, case in run.iter_cases()})
    return GateInputs(Baseline(baseline, "b"), policy)


def asked(run: RunResult, policy: Policy = POLICY, without: tuple[str, ...] = ()) -> BaseAgentCases:
    keys = frozenset(key for key, _ in run.iter_cases() if key.case_id not in without)
    inputs = question(run, policy)
    return select_base_agent_cases(decide_provisional_verdict(run, inputs), inputs, keys)


def names(wanted: BaseAgentCases) -> list[str]:
    return [key.case_id for key in wanted.keys]


def test_asked__drop_of_all_by_trials__all_of_them_twice_though_none_fails_more_often_than_it_passes() -> None:
    tapes = [("PPPPP" if at < 4 else "FPPPP") for at in range(34)]
    cases = [make_result(f"c{at}", "passed", trials=tape) for at, tape in enumerate(tapes)]
    run = make_run(make_suite_result(cases))
    wanted = asked(replace(run, reruns=6, base_agent=BaseAgentSummary(target=run.target)))
    assert (len(wanted.keys), wanted.rounds) == (34, 2)


DEAD = {"dead": "FFFFFFF", "a": "P", "b": "P", "c": "P", "d": "P"}


def test_asked__one_died__is_it_and_three_that_pass() -> None:
    assert sorted(names(asked(run_of(**DEAD)))) == ["a", "b", "c", "dead"]


def test_asked__it_works__is_only_what_is_open() -> None:
    works = {"a": "P", "b": "P", "c": "P"}
    assert names(asked(run_of(works | {"dead": "F"}, **DEAD))) == ["dead"]
    assert asked(run_of(works | {"dead": "PP"}, **DEAD)) == BaseAgentCases()
    assert asked(run_of(works | {"dead": "FF"}, **DEAD)) == BaseAgentCases()


def test_asked__it_fails_what_passes__is_nothing_more() -> None:
    found = asked(run_of({"a": "F", "b": "F", "c": "P", "dead": "F"}, **DEAD))
    assert (names(found), found.trouble) == (
        [],
        "it fails 2 of 3 cases that pass in this run and in the history, so it does not seem to work",
    )


def test_asked__nothing_passes_here__is_nothing() -> None:
    assert asked(run_of(dead="FFFFFFF", other="FFFFFFF")).trouble == NO_WITNESSES


def test_asked__green_or_never_failing_or_uncompared__is_nothing() -> None:
    run = run_of(**DEAD)
    assert asked(run_of(a="P", b="P")) == BaseAgentCases()
    assert asked(run, replace(POLICY, fail_on=frozenset({FailOn.NEVER}))) == BaseAgentCases()
    uncompared = replace(question(run), baseline=NOT_REQUESTED)
    decided = decide_provisional_verdict(run, uncompared)
    assert select_base_agent_cases(decided, uncompared, frozenset(DEAD)) == BaseAgentCases()


def test_asked__another_rule_fails_it_too__is_nothing() -> None:
    assert asked(run_of(**DEAD), replace(POLICY, min_pass_rate=1.0)) == BaseAgentCases()
    assert asked(run_of(**DEAD), replace(POLICY, must_pass=("dead",))) == BaseAgentCases()


def test_asked__case_that_it_cannot_be_asked__is_nothing() -> None:
    assert asked(run_of(**DEAD), without=("dead",)) == BaseAgentCases()


def test_asked__one_of_two_stays_red__the_other_is_asked_no_more() -> None:
    works = {"a": "P", "b": "P", "c": "P", "dead": "PP", "other": "F"}
    assert asked(run_of(works, other="FFFFFFF", **DEAD)) == BaseAgentCases()


def test_asked__many_of_one_cause__ten_first_and_the_others_when_these_are_cleared() -> None:
    many = {f"m{at:02}": "FFFFFFF" for at in range(14)} | {"a": "P", "b": "P", "c": "P"}
    first = names(asked(run_of(**many)))
    assert (first[:3], len(first)) == (["a", "b", "c"], 13)
    said = dict.fromkeys(first[3:], "FF") | {"a": "P", "b": "P", "c": "P"}
    assert names(asked(run_of(said, **many))) == [name for name in many if name not in said]


def test_asked__several_causes__one_of_each_is_among_the_first() -> None:
    many = {f"m{at:02}": "FFFFFFF" for at in range(20)} | {"a": "P"}
    first = names(asked(run_of(None, 10, **many)))[1:]
    assert {int(name[1:]) % 10 for name in first} == set(range(10))


def test_left_to_base_agent__red__are_the_regressions() -> None:
    run = replace(run_of(**DEAD), base_agent=None)
    assert find_clearable_cases(decide_verdict(run, question(run)), question(run)) == (CaseKey(FILE, "dead"),)
    green = run_of(a="P")
    assert find_clearable_cases(decide_verdict(green, question(green)), question(green)) == ()
