"""Drift of a branch whose runs reuse results: what was not executed shows no change, and hides none."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.analysis.drift.branch_drift import find_drift
from eval_gate.analysis.drift.case_drift import find_broken_cases
from eval_gate.config.policy import Policy
from eval_gate.model.execution import CaseDetails
from eval_gate.results.baseline import Baseline
from eval_gate.results.levels import LevelKind
from eval_gate.session.history_update import build_next_history
from tests.support.histories import Asked, Branch
from tests.support.results import make_baseline_run, make_result, make_run, make_suite_result
from tests.support.reuse import CARE, PAY, reuse_suites

EVERYTHING = frozenset({CARE, PAY})


def grow(*steps: tuple[str, Collection[str]]) -> Branch:
    """A branch after these runs: a letter for each case, three of each suite, and the suites that were reused."""
    branch = Branch()
    for number, (letters, reused) in enumerate(steps):
        cases = [
            Asked(file, f"{file[6]}{at}", letter)
            for file, part in ((CARE, letters[:3]), (PAY, letters[3:]))
            for at, letter in enumerate(part)
        ]
        branch = branch.pushed(cases, Policy(), number, reruns=0, reused=frozenset(reused) if number else frozenset())
    return branch


@given(st.lists(st.one_of(st.just("="), st.text("PF", min_size=6, max_size=6)), min_size=1, max_size=25))
def test_levels__runs_that_only_reused__add_none_and_change_none(steps) -> None:
    mixed = grow(*[("PPPPPP" if step == "=" else step, EVERYTHING if step == "=" else ()) for step in steps])
    places = [number for number, step in enumerate(steps) if number == 0 or step != "="]
    alone = grow(*[("PPPPPP" if steps[number] == "=" else steps[number], ()) for number in places])
    assert [one.levels for one in mixed.ledger.levels] == [one.levels for one in alone.ledger.levels]
    assert [one.run_id for one in mixed.ledger.levels] == [f"main-{number}" for number in reversed(places)]
    assert not any(one.executed_since for one in mixed.ledger.levels)


def test_levels__one_suite_executed__moves_as_much_as_its_cases_are() -> None:
    branch = grow(("PPPPPP", ()), ("FFFPPP", {PAY}), ("FFFFPP", {CARE}), ("PPPFPP", {PAY}))
    failing = [one.levels[LevelKind.FAILING] for one in branch.ledger.levels]
    assert failing == pytest.approx([1 / 6, 4 / 6, 3 / 6, 0.0], abs=1e-5)
    assert [one.executed_since for one in branch.ledger.levels] == [
        "2026-10-03T10:00:00Z",
        "2026-10-02T10:00:00Z",
        "2026-10-01T10:00:00Z",
        None,
    ]


def test_levels__models_of_a_run__are_those_that_it_called() -> None:
    details = [CaseDetails(tools_called=(), response_length=2, response="it", model=name) for name in ("m1", "m2")]
    old, new = ([make_result("c0", details=one)] for one in details)
    before = make_baseline_run(make_suite_result(old, eval_file=CARE), make_suite_result(old, eval_file=PAY))
    run = reuse_suites(make_run(make_suite_result(new, eval_file=CARE)), before, {PAY})
    newest = build_next_history(run, Baseline(before, "main")).levels[0]
    assert newest.models == ("m2",)


@pytest.mark.parametrize("reused_runs", [0, 7])
def test_drift__outside_change_shows_in_rechecks__raises_the_same_alarm(reused_runs) -> None:
    steps = []
    for letters in [*["PPPPPP"] * 20, *["FFFFPP"] * 8]:
        steps += [(letters, ()), *[("PPPPPP", EVERYTHING)] * reused_runs]
    drift = find_drift(grow(*steps).ledger)
    assert {one.kind for one in drift.degradations} >= {LevelKind.FAILING}
    first_bad = drift.degradations[0].first_bad
    assert first_bad.run_id == f"main-{20 * (1 + reused_runs)}"


def test_drift__one_unlucky_execution_reused_many_times__is_no_new_level() -> None:
    # each suite is executed by turns; what PAY did once stays in the sum of six runs
    steady = [step for _ in range(8) for step in (("PPPPPP", ()), ("PPPPPP", {PAY}))]
    branch = grow(*steady, ("PPPFPP", {CARE}), *[("PPPPPP", {PAY})] * 12)
    assert not find_drift(branch.ledger).degradations


def test_drift__case_of_a_reused_suite__is_broken_by_its_own_runs() -> None:
    steps = [*[("PPPPPP", ())] * 14, *[("FPPPPP", ())] * 6, *[("PPPPPP", {CARE})] * 3]
    mixed, alone = grow(*steps), grow(*steps[:20])
    found = find_broken_cases(mixed.ledger, 10.0)
    assert [(one.key.case_id, one.first_bad.run_id) for one in found] == [("c0", "main-14")]
    assert found == find_broken_cases(alone.ledger, 10.0)
