"""Ledgers of runs that overlapped: joined they are the ledger of all the runs."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.results.history import EMPTY_HISTORY, MAX_RUNS, History, build_history
from eval_gate.results.run_history import join_histories
from tests.support.results import make_run

STATUS = st.sampled_from(["passed", "failed", "error", "skipped"])
CASES = st.dictionaries(st.sampled_from("abcd"), STATUS, min_size=1)


def runs_of(cases: list[dict[str, str]]) -> list:
    """Runs, the oldest first, a second apart."""
    return [
        make_run(case, run_id=f"run-{at}", timestamp=f"2026-11-20T10:{at // 60:02}:{at % 60:02}Z")
        for at, case in enumerate(cases)
    ]


def seen(ledger: History) -> dict:
    """What each run saw of each case: yardstick and executions."""
    return {
        key: [
            (run.run_id, ledger.get_case(key).fingerprints[entry.fingerprint_index], entry.first, entry.reruns)
            for run, entry in zip(ledger.runs, ledger.get_case(key).decode_entries(), strict=False)
            if entry is not None
        ]
        for key in ledger.iter_keys()
    }


def not_empty(found: dict) -> dict:
    return {key: value for key, value in found.items() if value}


@given(st.lists(CASES, min_size=1, max_size=12), st.integers(1, 5))
def test_join__every_nth_run_in_each__is_the_history_of_all(cases, overlap) -> None:
    runs = runs_of(cases)
    chains = [
        build_history(runs[last::-overlap]) for last in range(len(runs) - 1, max(len(runs) - 1 - overlap, -1), -1)
    ]
    joined = join_histories(chains[0], chains[1:])
    whole = build_history(runs[::-1])
    assert joined.runs == whole.runs
    assert not_empty(seen(joined)) == not_empty(seen(whole))
    assert msgspec.json.decode(msgspec.json.encode(joined).decode(), type=History) == joined


def test_join__nothing_more_is_known__is_the_same_object() -> None:
    runs = runs_of([{"a": "passed"}] * 3)
    ledger = build_history(runs[::-1])
    assert join_histories(ledger, [build_history(runs[1::-1]), EMPTY_HISTORY]) is ledger
    assert join_histories(EMPTY_HISTORY, [ledger]) is EMPTY_HISTORY


def test_join__more_runs_than_are_kept__keeps_the_newest_and_the_first_stays_first() -> None:
    runs = runs_of([{"a": "passed" if at % 3 else "failed"} for at in range(80)])
    newest = build_history(runs[78::-2])  # another run was made after it, and is not before it
    joined = join_histories(newest, [build_history(runs[79::-2])])
    assert len(joined.runs) == MAX_RUNS
    assert [one.run_id for one in joined.runs[:4]] == ["run-78", "run-79", "run-77", "run-76"]


def test_join__warm_up_rounds__stay_below_their_run() -> None:
    first, second, other = runs_of([{"a": "passed"}] * 3)
    rounds = [make_run({"a": "failed"}, run_id=f"run-0-warm-up-{at}", timestamp=other.timestamp) for at in (1, 2)]
    warm = EMPTY_HISTORY.with_run(first).with_warm_up(first, rounds)
    joined = join_histories(warm.with_run(other), [EMPTY_HISTORY.with_run(second)])
    assert [one.run_id for one in joined.runs] == ["run-2", "run-1", "run-0", "run-0-warm-up-2", "run-0-warm-up-1"]
    assert joined.trim_to(first).runs == warm.runs, "the rounds are a part of the history that ends with their run"
