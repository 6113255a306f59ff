"""The budget for re-runs, as people write it."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from eval_gate.config.rerun_budget import RerunBudget, parse_rerun_budget, parse_rerun_interval
from eval_gate.config.wire import parse_config


@pytest.mark.parametrize(
    ("text", "budget", "said"),
    [
        ("50", RerunBudget(executions=50), "50 re-runs"),
        (1, RerunBudget(executions=1), "1 re-run"),
        ("90s", RerunBudget(seconds=90), "90 s"),
        (" 5m ", RerunBudget(seconds=300), "300 s"),
        ("1.5h", RerunBudget(seconds=5400), "5400 s"),
        ("$0.25", RerunBudget(usd=0.25), "$0.25"),
    ],
)
def test_parse__one_of_three_kinds__is_known_by_its_sign(text, budget, said) -> None:
    assert parse_rerun_budget(text) == budget
    assert str(budget) == said


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "1.5", "5 m", "$", "$2m", "5d", "m", "nan", "1e3", "$-1", "50 re-runs"]
)
def test_parse__anything_else__says_what_is_known(text) -> None:
    with pytest.raises(ValueError, match="not a number of re-runs such as 50, a time such as 5m, or money such as"):
        parse_rerun_budget(text)


@pytest.mark.parametrize(("cases", "most"), [(3, 100), (100, 100), (2_000, 2_000)])
def test_usual__is_as_much_as_the_run_itself(cases, most) -> None:
    assert RerunBudget.compute_default(cases) == RerunBudget(executions=most)


@pytest.mark.parametrize("value", [50, "5m", "$2"])
def test_configuration__as_a_number_or_a_text__is_read(value) -> None:
    assert parse_rerun_budget(parse_config(json.dumps({"rerunBudget": value})).limits.rerun_budget)


@pytest.mark.parametrize("value", [0, "soon", 1.5, True])
def test_configuration__something_else__is_refused(value) -> None:
    with pytest.raises(ValidationError):
        parse_config(json.dumps({"rerunBudget": value}))


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("5m", 300), ("0.5h", 1800), (" 24h ", 86_400), ("0s", 0)])
def test_rerun_interval__a_time__is_so_many_seconds(text, seconds) -> None:
    assert parse_rerun_interval(text) == seconds


@pytest.mark.parametrize("text", ["5", "$5", "soon", "", "25h", "-5m", "5 m"])
def test_rerun_interval__anything_else__is_refused_with_what_it_may_be(text) -> None:
    with pytest.raises(ValueError, match=r"is not a time such as 30s or 5m \(at most 24h\)"):
        parse_rerun_interval(text)
