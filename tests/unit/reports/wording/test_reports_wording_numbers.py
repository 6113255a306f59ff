"""Numbers and causes in words."""

import pytest

from eval_gate.model.comparison import BaselineFacts, PassCount
from eval_gate.model.result import Summary
from eval_gate.reports.view.groups import group_causes
from eval_gate.reports.wording.numbers import format_age, format_percent, format_points, format_signed, format_tally
from eval_gate.reports.wording.spending import describe_spending
from eval_gate.text.escape import format_count


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (format_count(1, "case"), "1 case"),
        (format_count(0, "case"), "0 cases"),
        (format_count(2, "new pass", "new passes"), "2 new passes"),
        (format_percent(None), "–"),
        (format_percent(0.925), "92.5 %"),
        (format_points(0.942, 0.925), "−1.7 pp"),
        (format_points(0.5, 0.5), "0.0 pp"),
        (format_points(0.5, 0.75), "+25.0 pp"),
        (format_signed(-1), "−1"),
        (format_signed(0), "0"),
        (format_tally(PassCount(passes=2, executions=3, score=0.6)), "2 of 3 pass"),
        (format_tally(PassCount(passes=0, executions=1, score=0)), "fail"),
        (format_tally(None), None),
        (format_age(0.2), "5 hours old"),
        (format_age(1), "1 day old"),
        (format_age(None), None),
    ],
)
def test_words__number__reads_like_this(text, said) -> None:
    assert text == said


def test_group_causes__measured_numbers__do_not_split_a_cause() -> None:
    failures = [("a", "maxLatencyMs: expected at most 100 ms, took 120 ms"), ("b", "toolsCalled: x"), ("c", None)]
    failures.append(("d", "maxLatencyMs: expected at most 100 ms, took 250 ms"))
    causes = group_causes(failures)
    assert (causes[0].count, causes[0].examples) == (2, ("a", "d"))
    assert causes[0].text == "maxLatencyMs"
    assert [value.text for value in causes[0].values] == [
        "expected at most 100 ms, took 120 ms",
        "expected at most 100 ms, took 250 ms",
    ]
    assert {cause.text for cause in causes[1:]} == {"toolsCalled: x", "no reason given"}


def test_group_causes__the_same_words__are_shown_as_they_are() -> None:
    (cause,) = group_causes(
        [("a", "timeout: no response within 60000 ms"), ("b", "timeout: no response within 60000 ms")]
    )
    assert cause.text == "timeout: no response within 60000 ms"


def test_group_causes__agent_errors__are_held_together_by_their_exception() -> None:
    errors = ["KeyError: 'order'", "KeyError: 'name'", "ValueError: no number", "connection closed after 3 s"]
    causes = group_causes([(text, f"agent error: {text}") for text in errors])
    assert [cause.count for cause in causes] == [2, 1, 1]
    assert (causes[0].text, [value.text for value in causes[0].values]) == ("KeyError", ["'order'", "'name'"])


@pytest.mark.parametrize(
    ("now", "then", "said"),
    [
        (
            {"estimated_cost_usd": 0.84, "wall_ms": 1500.0},
            {"estimated_cost_usd": 0.8},
            "cost $0.84 (+5 %) · agent time 0 ms · wall time 1.5 s",
        ),
        (
            {"estimated_cost_usd": 0.0042},
            {"estimated_cost_usd": 0.8, "total_cases": 9},
            "cost $0.0042 · agent time 0 ms",
        ),
        ({"input_tokens": 1200}, None, "agent time 0 ms · 1,200 tokens in, 0 out"),
        ({"total_duration_ms": 214_000.0}, {"total_duration_ms": 225_000.0}, "agent time 214 s (−5 %)"),
        (
            {"total_duration_ms": 2_000.0, "replayed": 1},
            {"total_duration_ms": 225_000.0},
            "1 replayed · agent time 2.0 s",
        ),
    ],
)
def test_spending__known_numbers__with_change_only_between_equals(now, then, said) -> None:
    baseline = BaselineFacts(run_id="r", timestamp="t", source="s", **then) if then is not None else None
    assert describe_spending(Summary(**now), baseline) == said
