"""The chance to find one case: what the judge makes of every tape, weighed; and that more never shows less."""

import math
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from eval_gate.config.policy import FailOn, Policy
from eval_gate.gate.evidence.execution_groups import ExecutionGroup, compute_log_group_chance
from eval_gate.gate.evidence.prior import DEFAULT_PRIOR
from eval_gate.gate.evidence.rerun_decision import RerunCriteria
from eval_gate.gate.power.case_groups import (
    CaseGroup,
    CaseGroups,
    group_baseline_cases,
    group_run_cases,
    scale_history,
    scale_number,
    set_max_reruns,
)
from eval_gate.gate.power.detection_power import UngatedReason, compute_detection_power
from eval_gate.gate.power.loss_detection import ExecutionTree
from eval_gate.gate.verdict_decision import GateInputs, decide_verdict
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass
from eval_gate.model.evidence import CaseHistorySummary, Counts, RunShare
from eval_gate.reports.wording.power import describe_ungated_case
from eval_gate.struct import replace
from tests.support.histories import Asked, Branch, Engine, learned

CONFIRM = 4
RULES = Policy(frozenset({FailOn.REGRESSIONS}), reruns=CONFIRM)
PASSED_THEN = Counts(passes=1)


def suite(tape: str, others: int = 11) -> list[Asked]:
    """One case with this tape among others that pass."""
    return [Asked("a.json", "it", tape), *(Asked("a.json", f"other-{at}", "P") for at in range(others))]


def branch(history: str, **options) -> Branch:
    """Main with such a record of the case, the oldest run first."""
    made = Branch()
    for number, letter in enumerate(history):
        made = made.pushed(suite(letter), RULES, number, reruns=CONFIRM, **options)
    return made


def cases(*histories: Counts, reruns: int = 6, number: int = 1, runs: int = 10) -> CaseGroups:
    """So many cases of each of these records; the newest run of all of them passed."""
    kinds = tuple(CaseGroup(CaseHistorySummary(counts=one, newest_run=PASSED_THEN), number) for one in histories)
    prior = learned(one for one in histories for _ in range(number))
    return CaseGroups(kinds, RerunCriteria(len(histories) * number, prior, max_reruns=reruns), runs)


@pytest.mark.slow
@pytest.mark.parametrize("history", ["P", "P" * 6, "FPPPPP", "PFPFPPPP", "PPPPPF", "FFPFFP", "FFFF"])
@pytest.mark.parametrize("trials", [1, 2])
def test_tree__every_tape_through_the_judge__has_exactly_this_chance(history, trials) -> None:
    """The whole path of a run: comparison, suspects, re-runs, what stops them, and the verdict of the finished run."""
    main = branch(history, trials=trials)
    known = group_baseline_cases(main.baseline, RULES)
    tree = next(ExecutionTree(kind, known) for kind in known.groups if CaseKey("a.json", "it") in kind.keys)
    for rate in (1.0, 0.5, 0.2):
        found = 0.0
        for tape in map("".join, product("PF", repeat=trials + CONFIRM)):
            question = GateInputs(main.baseline, RULES)
            judged = decide_verdict(Engine(suite(tape), reruns=CONFIRM, trials=trials).run(question), question)
            called = [one.case_id for one in judged.comparison.select_changes(CaseClass.REGRESSION)]
            first, again = tape[:trials], tape[trials:]
            group = ExecutionGroup(first.count("P"), first.count("F"), again.count("P"), again.count("F"))
            chance = math.exp(compute_log_group_chance(rate, group, known.criteria.prior.shares))
            found += ("it" in called) * chance
        assert tree.compute_regression_chance(rate) == pytest.approx(found)


def test_cases__of_a_judged_run__are_those_that_were_known_before_it() -> None:
    main = branch("PFPPPP")
    question = GateInputs(main.baseline, RULES)
    judged = decide_verdict(Engine(suite("P"), reruns=CONFIRM).run(question), question)
    before, after = group_baseline_cases(main.baseline, RULES), group_run_cases(judged)
    assert after is not None
    assert compute_detection_power(after) == compute_detection_power(before)


def test_cases__nothing_to_compare_with__are_none() -> None:
    question = GateInputs(Branch().baseline, RULES)
    assert group_run_cases(decide_verdict(Engine(suite("P"), reruns=CONFIRM).run(question), question)) is None


def test_found__no_reruns__is_as_often_as_it_fails() -> None:
    kind = CaseGroup(CaseHistorySummary(counts=Counts(passes=10), newest_run=PASSED_THEN), 1)
    tree = ExecutionTree(kind, CaseGroups((kind,), RerunCriteria(1, DEFAULT_PRIOR, max_reruns=0), 10))
    assert [tree.compute_regression_chance(rate) for rate in (0.0, 0.2, 1.0)] == pytest.approx([0.0, 0.2, 1.0])


def test_with_number__as_many_as_there_are__changes_nothing() -> None:
    known = cases(Counts(passes=10), Counts(passes=8, failures=2), Counts(passes=5, failures=5), number=7)
    assert scale_number(known, 21).groups == known.groups
    assert scale_number(known, 21).criteria.prior == known.criteria.prior
    assert scale_history(known, 10).groups == known.groups
    assert scale_history(known, 10).criteria == scale_number(known, 21).criteria
    assert [kind.number for kind in scale_number(known, 4).groups] == [1, 2, 1]


RECORDS = st.integers(1, 20).flatmap(
    lambda runs: st.integers(0, runs).map(lambda failed: Counts(passes=runs - failed, failures=failed))
)


@pytest.mark.slow
@given(RECORDS, st.integers(0, 40), st.integers(2, 4), st.integers(1, 500))
def test_more_history__of_a_case_as_flaky_as_before__never_hides_its_death(history, steady, factor, size) -> None:
    """By one belief: a suite that is known better to flake a lot may need more proof of a case that does as well.

    Nor of a case that fails more than one time in five, which a short record may take for a steadier one. And of whole
    multiples: another number of runs rounds its failures, and makes it another case.
    """
    assume(history.failures * 5 <= history.executions)
    known = cases(history, *[Counts(passes=history.executions)] * steady, number=size, runs=history.executions)
    longer = replace(scale_history(known, history.executions * factor), criteria=known.criteria)
    assert ExecutionTree(longer.groups[0], longer).compute_regression_chance(1.0) >= ExecutionTree(
        known.groups[0], known
    ).compute_regression_chance(1.0)


@given(RECORDS, st.integers(0, 40), st.integers(2, 4), st.integers(1, 500))
def test_more_history__of_a_case_that_never_failed__finds_its_death_every_time(history, steady, factor, size) -> None:
    history = Counts(passes=history.executions)
    known = cases(history, *[Counts(passes=history.executions)] * steady, number=size, runs=history.executions)
    for one in (known, scale_history(known, history.executions * factor)):
        assert ExecutionTree(one.groups[0], one).compute_regression_chance(1.0) == pytest.approx(1.0)


@given(RECORDS, st.integers(0, 40), st.integers(1, 12), st.integers(1, 12), st.integers(1, 500))
def test_more_reruns__never_hide_a_death(history, steady, some, more, size) -> None:
    known = set_max_reruns(cases(history, *[Counts(passes=history.executions)] * steady, number=size), some)
    further = set_max_reruns(known, some + more)
    assert ExecutionTree(further.groups[0], further).compute_regression_chance(1.0) >= ExecutionTree(
        known.groups[0], known
    ).compute_regression_chance(1.0)


def test_more_reruns__a_half_broken_case_where_failing_every_time_decided__is_found_less_often() -> None:
    """Why the other property is of death only: with one re-run two failures do, and with more the evidence must."""
    few, many = (cases(Counts(passes=9, failures=1), number=100, reruns=reruns) for reruns in (1, 6))
    assert ExecutionTree(few.groups[0], few).compute_regression_chance(0.5) == pytest.approx(0.25)
    assert ExecutionTree(many.groups[0], many).compute_regression_chance(0.5) < 0.25


def test_ungated__nine_of_twenty_fail__says_how_many_failures_would_be_proof() -> None:
    flaky = CaseGroup(
        CaseHistorySummary(counts=Counts(passes=11, failures=9), newest_run=PASSED_THEN), 1, (CaseKey("a", "it"),)
    )
    steady = CaseGroup(CaseHistorySummary(counts=Counts(passes=20), newest_run=PASSED_THEN), 19)
    known = CaseGroups((steady, flaky), RerunCriteria(20, learned([Counts(passes=20)] * 19), max_reruns=6), 20)
    (one,) = compute_detection_power(known).ungated_cases
    assert (one.key.case_id, one.reason, one.executions) == ("it", UngatedReason.FLAKY, 7)
    assert one.needed_failures is not None
    assert compute_detection_power(set_max_reruns(known, one.needed_failures - 1)).ungated_cases == ()


def test_ungated__executions_of_one_run_belong_together__the_share_is_the_reason_and_not_the_case() -> None:
    prior = replace(learned([Counts(passes=20)] * 20), shares=(RunShare(trials=0.95, reruns=0.95, weight=1.0),))
    steady = CaseGroup(CaseHistorySummary(counts=Counts(passes=20), newest_run=PASSED_THEN), 20, (CaseKey("a", "it"),))
    known = set_max_reruns(CaseGroups((steady,), RerunCriteria(20, prior), 20), 6)
    (one,) = compute_detection_power(known).ungated_cases
    assert one.reason is UngatedReason.RUN_SHARE
    assert describe_ungated_case(one, "on main") == (
        "it fails 0 of 20 on main: 7 failures in a row would not confirm a regression, because executions of one run "
        "belong together: if it fails every time, run the job again; if it fails again, fix it"
    )
