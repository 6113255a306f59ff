"""How far a run is, in a log: so seldom that it can be read afterwards, and never by a sleep of ours."""

from __future__ import annotations

import pytest

from eval_gate.engine.journal import TrialRecord
from eval_gate.model.execution import Status
from eval_gate.model.reuse import ReuseSummary
from eval_gate.reports.wording.progress import LogProgress, format_opening_line
from tests.support.cases import make_plan, make_suite
from tests.support.results import make_suite_result

OPENING = "running 1 case of 1 suite against http://agent.test/chat, 1 at a time"


def trial(number: int, status: Status = Status.PASSED, again: int = 0) -> TrialRecord:
    return TrialRecord(eval_file="e", case_id=f"c{number}", trial=again, fingerprint="f", status=status)


def collect_progress(cases: int, seconds_each: float) -> list[tuple[float, str]]:
    """What is said of a run of so many cases that are finished one after the other, with the time of each line."""
    now, said = [0.0], list[tuple[float, str]]()
    progress = LogProgress(lambda line: said.append((now[0], line)), clock=lambda: now[0])
    progress.on_start(make_plan(), cases, 0)
    for number in range(cases):
        now[0] += seconds_each
        progress.on_trial(trial(number, Status.FAILED if number % 10 == 3 else Status.PASSED))
    progress.close()
    return said


@pytest.mark.parametrize(("cases", "seconds_each"), [(10_000, 0.01), (10_000, 0.001), (200, 1.0), (20, 60.0), (3, 0.0)])
def test_progress__any_number_of_cases__is_a_line_in_ten_seconds_at_most_and_one_at_the_end(
    cases, seconds_each
) -> None:
    (_, opening), *lines, (_, last) = collect_progress(cases, seconds_each)
    assert opening.startswith("running ")
    times = [at for at, _ in lines]
    assert all(later - earlier >= 10 for earlier, later in zip([0.0, *times], times, strict=False))
    assert len(lines) <= cases * seconds_each / 10
    assert last.startswith(f"  {cases}/{cases}")


def test_progress__last_line_says_it_already__it_is_not_said_twice() -> None:
    assert [line for _, line in collect_progress(2, 10.0)][1:] == ["  1/2", "  2/2"]


def test_progress__nothing_was_to_be_done__is_the_opening_alone() -> None:
    assert len(collect_progress(0, 1.0)) == 1


def test_progress__reruns__are_counted_beside_the_cases() -> None:
    said = list[str]()
    progress = LogProgress(said.append, clock=lambda: 0.0)
    progress.on_start(make_plan(), 1, 0)
    progress.on_trial(trial(0, Status.FAILED))
    progress.on_trial(trial(0, Status.FAILED, again=1))
    progress.close()
    assert said[1:] == ["  1/1 · 1 failed · 1 re-run"]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            ("a.yaml",),
            "running 1 case of 1 suite against http://agent.test/chat, 1 at a time · reusing 1 suite",
        ),
        (("a.yaml", "b.yaml"), "running nothing: reusing 2 suites, because no measured file has changed"),
    ],
)
def test_progress__reused_suites__are_named_apart_from_what_runs(files, words) -> None:
    plan = make_plan(*[make_suite(file=name) for name in ("a.yaml", "b.yaml")])
    results = {name: make_suite_result({"a": "passed", "b": "passed"}, eval_file=name) for name in files}

    assert format_opening_line(plan.with_reused(results, ReuseSummary()), 0, 0) == words
