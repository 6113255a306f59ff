"""Numbers and causes in words."""

import pytest

from runner.model.comparison import Tally
from runner.reports.causes import group_causes
from runner.reports.wording import age, count, percent, points, signed, tally_words


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
    assert {cause.what for cause in causes[1:]} == {"toolsCalled: x", "unknown"}
