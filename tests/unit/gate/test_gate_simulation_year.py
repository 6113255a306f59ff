"""A year of pull requests in a small form: the rules beside this gate, the bounds, what is kept, and the promises."""

import importlib
import math
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.sizes import size

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
MODULES = ("branch", "bounds", "worlds", "days", "rules", "rival_rules", "year_parts", "long_reruns", "year_table")
MODULES += ("year_page", "year")
ALL_2 = "all cases fail 2 %"


@pytest.fixture
def year(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "verdict"))
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("year")


@pytest.fixture
def rivals(year) -> ModuleType:
    return sys.modules["rival_rules"]


@pytest.fixture
def bounds(year) -> ModuleType:
    return sys.modules["bounds"]


def test_trusted_cases__below_sixty_per_cent_in_one_night__are_not_gated(rivals) -> None:
    assert rivals.trusted_cases([[3, 3, 2, 1], [3, 2, 2, 3], [3, 3, 2, 3]]) == {0, 1, 2}
    assert rivals.trusted_cases([[3, 0]] * 2) == frozenset()  # too few nights
    assert rivals.trusted_cases([[3]] * 4 + [[0]]) == {0}  # only the last four count


@pytest.mark.parametrize(
    ("again", "main", "red", "executions", "there"),
    [
        ("PP", None, False, 3, 0),
        ("FPF", None, True, 4, 0),
        ("FF", "FFP", True, 3, 3),
        ("FF", "FFF", False, 3, 3),
        ("PFF", "P", True, 4, 1),
    ],
)
def test_best_of_four__a_trusted_case_fails__is_run_until_it_is_clear(
    rivals, again, main, red, executions, there
) -> None:
    here, beside = iter(again), iter(main or "")
    called = rivals.best_of_four(
        [True, True], {0}, lambda _: next(here) == "P", (lambda _: next(beside) == "P") if main else None
    )
    assert (called.red, called.executions, called.asked_there) == (red, executions, there)
    assert called.regressions == (frozenset({0}) if red else frozenset())


def test_best_of_four__by_hand__is_what_its_chances_are(rivals) -> None:
    """A case that passes 90 % is red for no reason in 0.28 %, one that passes half of the time in 25 %."""

    def chance(fails: float, so_far: str = "F") -> float:
        tries = iter(so_far[1:])
        try:
            red = rivals.best_of_four([True], {0}, lambda _: next(tries) == "P").red
        except StopIteration:
            return fails * chance(fails, f"{so_far}F") + (1 - fails) * chance(fails, f"{so_far}P")
        return float(red)

    assert 0.1 * chance(0.1) == pytest.approx(0.0028)
    assert 0.5 * chance(0.5) == pytest.approx(0.25)


def test_tests_of_the_suite__ten_of_a_hundred_break__is_significant_where_none_is_fixed(rivals) -> None:
    then, broke = [False] * 100, [True] * 10 + [False] * 90
    assert rivals.mcnemar(then, broke)
    assert rivals.paired_t(then, broke)
    assert rivals.pass_rate_fell(then, broke)
    assert not rivals.mcnemar(broke, then)
    assert not rivals.paired_t(broke, then)
    few = [True] * 5 + [False] * 95
    assert not rivals.mcnemar(then, few)  # 2 / 2^5 is 6 %
    assert not rivals.pass_rate_fell(then, few)


def test_bound__one_kind_of_cases__is_that_of_a_case(bounds) -> None:
    kinds = [bounds.Kind(100, 0.02)]
    assert bounds.of_kinds(kinds, lambda _: 0.5, red=1 - math.exp(-0.02)) == pytest.approx(bounds.of_a_case(0.5))


def test_bound__more_red_or_more_executions__finds_no_less(bounds) -> None:
    kinds = [bounds.Kind(80, 0.01), bounds.Kind(20, 0.3)]
    found = [bounds.of_kinds(kinds, lambda usual: 1 - (1 - usual) / 2, red=red) for red in (0.01, 0.02, 0.05)]
    assert found == sorted(found)
    lost = [bounds.of_loss(kinds, 0.1, executions=executions) for executions in (1.0, 1.25, 2.0)]
    assert lost == sorted(lost)
    assert bounds.of_loss(kinds, 0.0) == pytest.approx(0.02)


def test_simulated__a_year_that_was_killed__goes_on_where_it_was(year, tmp_path) -> None:
    wanted = list(year.places([ALL_2], [20], ["ten", "one"], 8))
    file = tmp_path / "year.jsonl"
    whole = year.simulate(file, wanted, 1)
    lines = file.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2
    file.write_text(f"{lines[0]}\n{lines[1][:60]}", encoding="utf-8")
    assert year.simulate(file, wanted, 1) == whole
    assert year.kept_in(file) == whole
    assert len(list(year.places([ALL_2], [20], ["ten"], 120))) == 2  # a part has a hundred


def test_simulated__the_past_is_remembered__says_the_same(year) -> None:
    place = year.Place("a fifth fails 30 %, the others 1 %", 20, "ten", 0)
    assert year.simulated(place, 2, 1) == year.simulate_days(place, 2, 1)


@pytest.mark.parametrize(("length", "runs"), [("one", 1), ("ten", 10), ("twenty", 20)])
def test_simulated__a_history_of_so_many_runs__has_exactly_these_on_every_day(year, monkeypatch, length, runs) -> None:
    seen = set()
    judged = year.judged

    def look(pull, branch, *rest, **more):
        seen.add(len(branch.ledger.runs))
        return judged(pull, branch, *rest, **more)

    monkeypatch.setattr(year, "judged", look)
    year.simulated(year.Place(ALL_2, 20, length, 0), 3, 1)
    assert seen == {runs}


@pytest.mark.parametrize("line", [ALL_2, "a fifth fails 30 %, the others 1 %"])
def test_chances__of_a_half_broken_case__are_how_often_it_is_found(year, line) -> None:
    """Drawn in the whole way of a pull request, for every case of the suite in turn."""
    suite = year.kinds(line, 20)
    kinds_of = [number for number, kind in enumerate(suite) for _ in range(kind.cases)]
    main = year.Main(tuple(suite[number].rate for number in kinds_of), year.Random("chances"))
    for _ in range(8):
        main.push()
    random, rounds = year.Random("pulls"), size(6)
    calm = year.pull_of(main, {}, random, bad=False)
    while "F" in calm.first:
        calm = year.pull_of(main, {}, random, bad=False)
    chances = year.compute_chances(calm, main, kinds_of, year.half_broken)
    wanted = sum(chances[number] for number in kinds_of) * rounds
    found = 0
    for number in range(rounds):
        for at, rate in enumerate(main.usual):
            broken = {at: year.half_broken(rate)}
            pull = year.pull_of(main, broken, random, bad=False)
            called = year.judged(pull, main.branch, f"{number}/{at}")["ours"]
            found += at in called.regressions
    assert found == pytest.approx(wanted, abs=3 * math.sqrt(wanted))


def test_conditions__executions_of_one_run_belong_together__have_the_same_mean_and_that_share(year) -> None:
    random, conditions = year.Random(1), year.Conditions(run_share=0.3)
    rates = conditions.draw_rates([0.2] * 20_000, random)
    mean = sum(rates) / len(rates)
    variance = sum((rate - mean) ** 2 for rate in rates) / len(rates)
    assert mean == pytest.approx(0.2, abs=0.01)
    assert variance / (0.2 * 0.8) == pytest.approx(0.3, abs=0.02)
    assert conditions.draw_rates([0.0, 1.0], random) == (0.0, 1.0)


def test_conditions__agent_errors__are_drawn_in_every_run(year) -> None:
    place = year.Place(ALL_2, 20, "ten", 0)
    part = year.simulated(place, 1, 1, year.Conditions(errors=0.3))
    assert part.chances == {}, "what is found is drawn"
    assert part.said["dead/0|ours"] + part.said["half/0|ours"] <= 2
    letters = [year.Conditions(errors=0.3).execute(0.0, year.Random(seed)) for seed in range(1000)]
    assert 200 < letters.count("C") < 400
    assert letters.count("F") == 0


def test_pages__figures__are_those_of_the_table(year) -> None:
    """README.md says what docs/verdict.md has in its table, and both are made by the program."""
    page = sys.modules["year_page"]
    table = page.read_block(page.PAGE)
    assert page.read_block(page.README) == page.build_readme_words(table)
    rows = [line.strip("| ").split(" | ")[0] for line in table[2:]]
    assert rows[:-1] == [words for words, *_ in page.PROMISES.values()]


def test_pages__a_small_year__has_a_range_for_each_size(year) -> None:
    page = sys.modules["year_page"]
    parts = [year.simulated(year.Place(ALL_2, 20, length, 0), 1, 1) for length in ("one", "ten", "twenty")]
    table = list(page.page_table(parts))
    assert table[0] == "| 20 / 100 cases | goal | 1 run | 10 runs | 20 runs |"
    assert table[4].startswith("| dead cases found, % | at least 99 | ")
    assert all(line.count("|") == 6 for line in table)


def test_calendar__a_year__has_as_many_bad_days_and_breaks_as_are_said(year) -> None:
    calendar = year.Calendar("seed")
    assert sum(calendar.is_bad("harmless", number) for number in range(1000)) == 20
    breaks = [calendar.breaks(day) for day in range(200)]
    assert breaks.count(year.Breaks.OUTAGE) == breaks.count(year.Breaks.LOST) == 1


def test_judged__main_was_an_outage__no_rule_is_red(year) -> None:
    main = year.Main((0.0,) * 20, year.Random("outage"))
    for _ in range(4):
        main.push()
    main.push(year.Breaks.OUTAGE)
    pull = year.pull_of(main, {}, year.Random(1), bad=False)
    assert not any(called.red for called in year.judged(pull, main.branch, "seed").values())


@pytest.mark.contract("verdict.targets")
def test_year__small__keeps_the_promises_that_it_can_within_their_errors(year) -> None:
    rows = importlib.import_module("year_table").rows
    parts = [year.simulated(year.Place(ALL_2, 100, "ten", at), 10, 3) for at in range(size(3))]
    found = {row.promise: row for row in rows(parts)}
    assert len(found) == 6
    for row in found.values():
        ours = row.figures["ours"]
        far = (row.limit - ours.value) * (1 if row.least else -1)
        assert far <= 3 * ours.error or row.kept == "–" or row.promise.startswith("half-broken"), row
    plain = found["red of 1,000 harmless, ten runs of main"].figures["plain"]
    assert plain.value > 500
