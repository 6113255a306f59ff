"""Numbers and causes in words."""

import pytest

from eval_gate.model.comparison import BaselineFacts, Tally
from eval_gate.model.result import Summary
from eval_gate.reports.view.groups import group_causes
from eval_gate.reports.words.numbers import age, count, percent, points, signed, tally_words
from eval_gate.reports.words.spending import spending_words


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (count(1, "case"), "1 case"),
        (count(2, "new pass", "new passes"), "2 new passes"),
        (percent(None), "–"),
        (percent(0.925), "92.5 %"),
        (points(0.942, 0.925), "−1.7 pp"),
        (points(0.5, 0.5), "0.0 pp"),
        (points(0.5, 0.75), "+25.0 pp"),
        (signed(-1), "−1"),
        (signed(0), "0"),
        (tally_words(Tally(k=2, n=3, score=0.6)), "2/3"),
        (tally_words(Tally(k=0, n=1, score=0)), "fail"),
        (tally_words(None), None),
        (age(0.2), "5 hours old"),
        (age(1), "1 day old"),
        (age(None), None),
    ],
)
def test_words__number__reads_like_this(text, said) -> None:
    assert text == said


def test_group_causes__measured_numbers__do_not_split_a_cause() -> None:
    failures = [("a", "maxLatencyMs: expected at most 100 ms, took 120 ms"), ("b", "toolsCalled: x"), ("c", None)]
    failures.append(("d", "maxLatencyMs: expected at most 100 ms, took 250 ms"))
    causes = group_causes(failures)
    assert (causes[0].count, causes[0].examples) == (2, ("a", "d"))
    assert causes[0].what == "maxLatencyMs: expected at most N ms, took N ms"
    assert {cause.what for cause in causes[1:]} == {"toolsCalled: x", "no reason was given"}


def test_group_causes__the_same_words__are_shown_as_they_are() -> None:
    (cause,) = group_causes(
        [("a", "timeout: no response within 60000 ms"), ("b", "timeout: no response within 60000 ms")]
    )
    assert cause.what == "timeout: no response within 60000 ms"


@pytest.mark.parametrize(
    ("now", "then", "said"),
    [
        (
            {"estimated_cost_usd": 0.84, "wall_ms": 1500.0},
            {"estimated_cost_usd": 0.8},
            "$0.84 (+5 %) · 0 ms of answers · 1.5 s by the clock",
        ),
        ({"estimated_cost_usd": 0.0042}, {"estimated_cost_usd": 0.8, "total_cases": 9}, "$0.0042 · 0 ms of answers"),
        ({"input_tokens": 1200}, None, "0 ms of answers · 1,200 tokens in, 0 out"),
        ({"total_duration_ms": 214_000.0}, {"total_duration_ms": 225_000.0}, "214 s of answers (−5 %)"),
    ],
)
def test_spending__known_numbers__with_change_only_between_equals(now, then, said) -> None:
    baseline = BaselineFacts(run_id="r", timestamp="t", source="s", **then) if then is not None else None
    assert spending_words(Summary(**now), baseline) == said
