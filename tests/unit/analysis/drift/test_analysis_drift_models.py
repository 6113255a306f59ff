"""Which model answered: where it changed among runs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eval_gate.analysis.drift.branch_drift import find_change_between, find_model_changes
from eval_gate.results.levels import RunLevels


def runs(*models: str) -> list[RunLevels]:
    """One run for each word, newest first: a letter is a model, `-` a run that does not say."""
    return [
        RunLevels(run_id=f"r{number}", timestamp="2026-11-01", models=tuple(sorted(word.replace("-", ""))))
        for number, word in enumerate(models)
    ]


def found(*models: str) -> list[tuple[str, str, int]]:
    changes = find_model_changes(runs(*models))
    return [("".join(one.old_run.models), "".join(one.new_run.models), one.runs) for one in changes]


def test_changes__one_model_all_the_time__are_none() -> None:
    assert found("a", "a", "-", "a") == []


def test_changes__each__newest_first_with_the_runs_since() -> None:
    assert found("b", "b", "a", "b") == [("a", "b", 2), ("b", "a", 3)]


def test_changes__runs_that_do_not_say__are_passed_over() -> None:
    assert found("-", "b", "-", "a") == [("a", "b", 2)]


def test_changes__a_second_model_besides__is_a_change() -> None:
    assert found("ab", "a") == [("a", "ab", 1)]


def test_change_between__is_the_one_after_the_good_run_up_to_the_bad_one() -> None:
    levels = runs("c", "c", "b", "b", "a")
    changes = find_model_changes(levels)
    assert find_change_between(changes, levels, levels[4], levels[2]) == changes[1]
    assert find_change_between(changes, levels, levels[3], levels[2]) is None
    assert find_change_between(changes, levels, levels[4], levels[0]) == changes[0]


@given(st.lists(st.sampled_from(["a", "b", "ab", "-"]), max_size=60))
def test_changes__any_runs__begin_and_end_where_the_models_differ(words) -> None:
    for change in find_model_changes(runs(*words)):
        assert change.old_run.models
        assert change.new_run.models
        assert change.old_run.models != change.new_run.models
