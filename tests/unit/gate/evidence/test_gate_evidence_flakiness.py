"""The record of one case, and since when the branch is as it is."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.gate.evidence.case_history import HistoryEvidence
from eval_gate.gate.evidence.flakiness import CaseRun, build_case_history
from eval_gate.gate.evidence.suite.branch_level import MAX_RUNS, count_level_runs
from eval_gate.model.evidence import CaseHistorySummary, Counts, Stability
from eval_gate.results.baseline import Baseline
from eval_gate.results.history import build_history
from tests.support.results import make_run

RESULTS = st.text("PF", max_size=MAX_RUNS)


def counts(letters: str) -> Counts:
    return Counts(passes=letters.count("P"), failures=letters.count("F"))


def history(words: str) -> list[CaseRun]:
    """Newest first, a word for each run: `P`, `FFP` with trials, `F+FF` with re-runs, `-` not judged."""
    runs = []
    for number, word in enumerate(words.split()):
        first, _, again = word.partition("+")
        runs.append(CaseRun(f"r{number}", counts(first), counts(again)))
    return runs


def summarize(words: str) -> tuple[int, int, str]:
    found = build_case_history(history(words))
    return found.counts.passes, found.counts.executions, found.stability.value


@pytest.mark.contract("verdict.record", "verdict.record.flaky")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", (0, 0, "unknown")),
        ("- -", (0, 0, "unknown")),
        ("P", (1, 1, "passing")),
        ("P - P", (2, 2, "passing")),
        ("F F", (0, 2, "failing")),
        ("P F", (1, 2, "changed")),
        ("F P P P P P", (5, 6, "changed")),
        ("P F P", (2, 3, "flaky")),
        ("P P F P P F P P P P", (8, 10, "flaky")),
    ],
)
def test_record_of__runs__counts_and_calls_them(words, expected) -> None:
    assert summarize(words) == expected


@pytest.mark.contract("verdict.trials")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("PPF PPP", (5, 6, "flaky")),
        ("PPP FFF", (3, 6, "changed")),
        ("F+P P", (1, 2, "flaky")),
        ("P F+FP", (1, 2, "flaky")),
    ],
)
def test_record_of__trials_and_reruns__trials_count_and_reruns_only_tell_flaky(words, expected) -> None:
    assert summarize(words) == expected


@pytest.mark.contract("verdict.record.broken-branch")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        # two failures after seven passes and more: broken since
        ("F F P P P P P", (0, 2, "failing")),
        ("F F P P P P P P P P", (0, 2, "failing")),
        ("F F P P P P", (4, 6, "changed")),
        # with a failure before, it takes a third
        ("F F P P P F P P P P", (7, 10, "flaky")),
        ("F F F P P P F P P P", (0, 3, "failing")),
        # one failure is a flake, unless re-runs there failed too
        ("F P P P P P P P P P P P P P P P P P P P", (19, 20, "changed")),
        ("F+FFF P P P P P P", (0, 1, "failing")),
        ("F+P P P P P P P", (6, 7, "flaky")),
        # the other way round: mended
        ("P P F F F F F", (2, 2, "passing")),
        ("P P P F F F", (3, 6, "changed")),
        ("P P P P F F F", (4, 4, "passing")),
        # getting a little steadier is not being mended
        ("P " * 13 + "F P F P F P P", (17, 20, "flaky")),
        # an old failure is no reason to forget it
        ("P P P P P P P P P F", (9, 10, "changed")),
    ],
)
def test_record_of__broken_or_fixed_on_the_branch__starts_there(words, expected) -> None:
    assert summarize(words) == expected


@pytest.mark.contract("verdict.record.broken-branch")
@pytest.mark.parametrize(
    ("words", "among", "expected"),
    [
        ("P P P P P F F F F F", 1, (5, 5, "passing")),
        ("P P P P P F F F F F", 12, (5, 5, "passing")),
        # of many that come and go one ends so by chance
        ("P P P P P F F F F F", 13, (5, 10, "changed")),
        ("P P P P P P P P F F", 2, (8, 8, "passing")),
        ("P P P P P P P P F F", 3, (8, 10, "changed")),
        # broken is broken
        ("F F P P P P P", 1000, (0, 2, "failing")),
    ],
)
def test_record_of__fixed_among_many_that_come_and_go__is_chance(words, among, expected) -> None:
    found = build_case_history(history(words), among)
    assert (found.counts.passes, found.counts.executions, found.stability.value) == expected


def test_record_of__broken_on_the_branch__says_since_when() -> None:
    found = build_case_history(history("F - F P P P P P P"))
    assert found.oldest_run_id == "r2"
    assert found.newest_failed
    assert build_case_history(history("F P P")).oldest_run_id is None


@pytest.mark.contract("verdict.record.flaky")
@pytest.mark.parametrize(
    ("words", "shown_by", "rate"),
    [
        ("P F P - P F+P", ("r1", "r5"), 0.4),
        ("F P F F", ("r1",), 0.75),
        ("PPF FFP", ("r0", "r1"), 0.5),
        ("P P", (), 0.0),
        ("", (), None),
    ],
)
def test_record_of__flaky__names_the_runs_that_show_it(words, shown_by, rate) -> None:
    found = build_case_history(history(words))
    assert found.evidence_run_ids == shown_by
    assert found.failure_rate == rate


@given(RESULTS)
def test_record_of__passes_for_failures__is_the_mirror_image(letters) -> None:
    swap = {
        Stability.PASSING: Stability.FAILING,
        Stability.FAILING: Stability.PASSING,
    }
    found = build_case_history(history(" ".join(letters)))
    mirrored = build_case_history(history(" ".join(letters.translate(str.maketrans("PF", "FP")))))
    tied = {letters[:cut].count("P") * 2 == cut for cut in range(1, len(letters) + 1)}
    tied |= {letters[cut:].count("P") * 2 == len(letters) - cut for cut in range(len(letters))}
    if True in tied or 2 * letters.count("P") == len(letters):
        return  # as often passed as failed counts as failing, which has no mirror image
    assert mirrored.counts == found.counts.inverse
    assert mirrored.stability is swap.get(found.stability, found.stability)
    assert mirrored.oldest_run_id == found.oldest_run_id


@given(RESULTS)
def test_record_of__any_history__counts_its_newest_runs_and_no_others(letters) -> None:
    found = build_case_history(history(" ".join(letters)))
    kept = letters[: found.counts.executions]
    assert found.counts == counts(kept)
    assert (found.oldest_run_id is None) == (kept == letters)
    assert found.newest_failed == letters.startswith("F")
    assert msgspec.convert(msgspec.to_builtins(found), CaseHistorySummary) == found


def runs(*results: str) -> list[dict[int, Counts]]:
    """Runs newest first, a letter a case; `-` was not judged."""
    return [{at: counts(letter) for at, letter in enumerate(run) if letter != "-"} for run in results]


@pytest.mark.contract("verdict.record.broken-branch")
def test_runs_of_this_level__the_branch_lost_many_cases__starts_after() -> None:
    good, bad = "P" * 60, "P" * 50 + "F" * 10
    assert count_level_runs(runs(*[bad] * 2, *[good] * 8)) == 2
    assert count_level_runs(runs(*[good] * 3, *[bad] * 7)) == 3


@pytest.mark.contract("verdict.record.bad-days")
@pytest.mark.parametrize("place", range(10))
def test_runs_of_this_level__one_bad_run__is_a_day_and_no_level(place) -> None:
    good, bad = "P" * 60, "P" * 40 + "F" * 20
    assert count_level_runs(runs(*[good] * place, bad, *[good] * (9 - place))) == 10


@pytest.mark.contract("verdict.record.bad-days")
def test_runs_of_this_level__bad_days_among_the_older_runs__are_no_level() -> None:
    """Two of four runs were bad: without the worse half of them, the older runs are like the newer ones."""
    usual = ["".join("F" if case % 20 == run else "P" for case in range(200)) for run in range(8)]
    bad = ["".join("F" if case % 5 == run else "P" for case in range(200)) for run in range(4)]
    assert count_level_runs(runs(*usual[:6], bad[0], *usual[6:], bad[1])) == 10
    assert count_level_runs(runs(bad[0], *usual[6:], bad[1], *usual[:6])) == 10
    assert count_level_runs(runs(*usual[:6], *bad)) == 6


@pytest.mark.slow
def test_runs_of_this_level__little_has_happened__takes_all() -> None:
    good, other = "P" * 60, "P" * 58 + "FF"
    assert count_level_runs(runs(other, *[good] * 9)) == 10
    assert count_level_runs(runs(*[good] * 5, other, *[good] * 4)) == 10


@pytest.mark.parametrize("history", [[], ["P"], ["F", "P"], ["-", "-"], ["P-", "-F"]])
def test_runs_of_this_level__next_to_nothing__takes_all(history) -> None:
    assert count_level_runs(runs(*history)) == len(history)


@pytest.mark.contract("verdict.record")
def test_runs_of_this_level__long_history__takes_the_newest_twenty() -> None:
    steady = build_history([make_run({"a": "passed"}, run_id=f"r{number}") for number in range(30)])
    newest = make_run({"a": "passed"}, run_id="r0")
    assert HistoryEvidence(Baseline(newest, "b", history=steady), 1.0).level_run_count == MAX_RUNS == 20


@pytest.mark.contract("verdict.order")
@given(st.lists(st.text("PF-", min_size=8, max_size=8), max_size=8), st.randoms(use_true_random=False))
def test_runs_of_this_level__cases_in_another_order__is_the_same(history, random) -> None:
    order = random.sample(range(8), 8)
    shuffled = ["".join(run[at] for at in order) for run in history]
    assert count_level_runs(runs(*shuffled)) == count_level_runs(runs(*history))


def test_runs_of_this_level__only_the_oldest_runs_were_others__ends_before_them() -> None:
    good, bad = "P" * 60, "P" * 40 + "F" * 20
    assert count_level_runs(runs(good, bad, bad)) == 1
    assert count_level_runs(runs(*[good] * 8, bad, bad)) == 8
