"""Ledgers of runs that overlapped: joined they are the ledger of all the runs."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.results.ledger import EMPTY, MAX_RUNS, Ledger, ledger_of
from eval_gate.results.ledger_join import join_ledgers
from tests.support.results import make_run

STATUS = st.sampled_from(["passed", "failed", "error", "skipped"])
CASES = st.dictionaries(st.sampled_from("abcd"), STATUS, min_size=1)


def runs_of(cases: list[dict[str, str]]) -> list:
    """Runs, the oldest first, a second apart."""
    return [
        make_run(case, run_id=f"run-{at}", timestamp=f"2026-11-20T10:{at // 60:02}:{at % 60:02}Z")
        for at, case in enumerate(cases)
    ]


def seen(ledger: Ledger) -> dict:
    """What each run saw of each case: yardstick and executions."""
    return {
        key: [
            (run.run_id, ledger.case(key).yardsticks[entry.place], entry.first, entry.again)
            for run, entry in zip(ledger.runs, ledger.case(key).entries(), strict=False)
            if entry is not None
        ]
        for key in ledger.every_key()
    }


def not_empty(found: dict) -> dict:
    return {key: value for key, value in found.items() if value}


@given(st.lists(CASES, min_size=1, max_size=12), st.integers(1, 5))
def test_join__every_nth_run_in_each__is_the_ledger_of_all(cases, overlap) -> None:
    runs = runs_of(cases)
    chains = [ledger_of(runs[last::-overlap]) for last in range(len(runs) - 1, max(len(runs) - 1 - overlap, -1), -1)]
    joined = join_ledgers(chains[0], chains[1:])
    whole = ledger_of(runs[::-1])
    assert joined.runs == whole.runs
    assert not_empty(seen(joined)) == not_empty(seen(whole))
    assert msgspec.json.decode(msgspec.json.encode(joined).decode(), type=Ledger) == joined


def test_join__nothing_more_is_known__is_the_same_object() -> None:
    runs = runs_of([{"a": "passed"}] * 3)
    ledger = ledger_of(runs[::-1])
    assert join_ledgers(ledger, [ledger_of(runs[1::-1]), EMPTY]) is ledger
    assert join_ledgers(EMPTY, [ledger]) is EMPTY


def test_join__more_runs_than_are_kept__keeps_the_newest_and_the_first_stays_first() -> None:
    runs = runs_of([{"a": "passed" if at % 3 else "failed"} for at in range(80)])
    newest = ledger_of(runs[78::-2])  # another run was made after it, and is not before it
    joined = join_ledgers(newest, [ledger_of(runs[79::-2])])
    assert len(joined.runs) == MAX_RUNS
    assert [one.run_id for one in joined.runs[:4]] == ["run-78", "run-79", "run-77", "run-76"]
