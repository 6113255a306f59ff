"""What the executions of `model_runs.py` say: how cases differ, and how much of that belongs to the run.

    python benchmarks/verdict/model_spread.py executions.jsonl

The share of the run is that of a case's variance: how much likelier two executions of a case in one run go the same
way than two of different runs. Both products of pairs are unbiased, so that the share may come out below 0.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from measured_rates import KEPT, MeasuredSuite, fit_rates, rates

SLOW = 10.0
"""Seconds from which an execution would have been a timeout."""
_RESAMPLED = 400


@dataclass(frozen=True)
class Execution:
    """One execution: its setting in words, its case and run, and what came of it."""

    setting: str
    agent: str
    case: str
    run: int
    failed: bool
    text: str
    error: str
    seconds: float


ByCase = Mapping[str, Mapping[int, Sequence[Execution]]]
"""By case and run."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    given = parser.parse_args(arguments)
    settings: dict[str, list[Execution]] = defaultdict(list)
    for one in read_executions(given.file.read_text().splitlines()):
        settings[one.setting].append(one)
    print(
        "| setting | runs | executions | fail | by agent | never, always | run's share | same text in a run, between |"
    )
    print("|:--|--:|--:|--:|:--|:--|--:|:--|")
    for setting in sorted(settings):
        print(_describe_setting(setting, settings[setting]))
    heads = "setting | cases by executions and failures | fit | under 2 % | from 20 % | after ten passes"
    print(f"\n| {heads} |\n|:--|:--|:--|--:|--:|--:|")
    for setting in sorted(settings):
        print(_describe_rates(setting, settings[setting]))
    every = [one for some in settings.values() for one in some]
    slow = Counter((one.run, one.seconds >= SLOW) for one in every)
    runs = sorted({one.run for one in every})
    print(f"\nErrors: {sum(bool(one.error) for one in every)} of {len(every)} executions. From {SLOW:g} s on, by run:")
    print(", ".join(f"{slow[run, True]} of {slow[run, True] + slow[run, False]}" for run in runs))
    return 0


def read_executions(lines: Iterable[str]) -> Iterator[Execution]:
    """Read the lines that `model_runs.py` wrote."""
    for line in lines:
        one = json.loads(line)
        daily = ", the date in the prompt" if one["daily"] else ""
        setting = f"{one['prompt']} prompt, temperature {one['temperature']:g}{daily}"
        result = not one["passed"], one["text"], one["error"], one["seconds"]
        yield Execution(setting, one["agent"], one["case"], one["run"], *result)


def group_by_case(executions: Iterable[Execution]) -> ByCase:
    """Group executions that have a response."""
    found: dict[str, dict[int, list[Execution]]] = defaultdict(lambda: defaultdict(list))
    for one in executions:
        if not one.error:
            found[one.case][one.run].append(one)
    return found


def estimate_run_share(cases: ByCase, seed: int = 1) -> tuple[float, float]:
    """Return the share of the variance within a case that belongs to the run, and its standard error.

    The error is that of cases drawn anew. NaN if no case varies, or no run has two executions of a case.
    """
    parts = [part for runs in cases.values() if (part := _compare_pairs(runs)) is not None]
    random = Random(seed)
    drawn = [_divide(random.choices(parts, k=len(parts))) for _ in range(_RESAMPLED)] if parts else []
    known = [share for share in drawn if not math.isnan(share)]
    mean = sum(known) / len(known) if known else math.nan
    error = math.sqrt(sum((share - mean) ** 2 for share in known) / len(known)) if known else math.nan
    return _divide(parts), error


def _compare_pairs(runs: Mapping[int, Sequence[Execution]]) -> tuple[float, float] | None:
    """Return how much oftener pairs of one run fail together than pairs of two runs, and the variance of one."""
    failed = [[one.failed for one in some] for some in runs.values()]
    within = [first * second for some in failed for first, second in itertools.combinations(some, 2)]
    pairs = list(itertools.combinations(failed, 2))
    if not within or not pairs:
        return None
    between = sum(sum(one) / len(one) * sum(other) / len(other) for one, other in pairs) / len(pairs)
    mean = sum(sum(some) / len(some) for some in failed) / len(failed)
    return sum(within) / len(within) - between, mean - between


def _divide(parts: Sequence[tuple[float, float]]) -> float:
    variance = sum(part[1] for part in parts)
    return sum(part[0] for part in parts) / variance if variance > 0 else math.nan


def count_failures(cases: ByCase) -> dict[int, tuple[int, ...]]:
    """Count cases by their executions and failures, as `measured_rates` has them."""
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for runs in cases.values():
        failed = [one.failed for some in runs.values() for one in some]
        counts[len(failed)][sum(failed)] += 1
    return {number: tuple(counts[number][at] for at in range(number + 1)) for number in sorted(counts)}


def rate_after_passes(failed: Mapping[int, Sequence[int]], passes: int) -> float:
    """Return how often a case fails next that passed so many executions in a row; NaN where none has as many."""
    chance = likely = 0.0
    for executions, cases in failed.items():
        for failures, number in enumerate(cases):
            passed = executions - failures
            if number and executions > passes and passed >= passes:
                all_passed = number * math.comb(passed, passes) / math.comb(executions, passes)
                likely += all_passed
                chance += all_passed * failures / (executions - passes)
    return chance / likely if likely else math.nan


def _describe_setting(setting: str, executions: Sequence[Execution]) -> str:
    cases = group_by_case(executions)
    share, error = estimate_run_share(cases)
    agents = []
    for agent in sorted({one.agent for one in executions}):
        failed = [one.failed for one in executions if one.agent == agent and not one.error]
        agents.append(f"{agent} {sum(failed) / len(failed):.0%}")
    whole = [[one.failed for some in runs.values() for one in some] for runs in cases.values()]
    never, always = (sum(part(some) for some in whole) / len(whole) for part in (lambda some: not any(some), all))
    fails = sum(map(sum, whole)) / sum(map(len, whole))
    cells = (
        len({one.run for one in executions}),
        len(executions),
        f"{fails:.1%}",
        ", ".join(agents),
        f"{never:.0%}, {always:.0%}",
        f"{share:.2f} ± {error:.2f}",
        ", ".join(f"{one:.0%}" for one in _count_same_texts(cases)),
    )
    return f"| {setting} | {' | '.join(map(str, cells))} |"


def _count_same_texts(cases: ByCase) -> tuple[float, float]:
    """Return how often two executions of a case have the same text, in one run and in two."""
    within, between = list[bool](), list[bool]()
    for runs in cases.values():
        for one, other in itertools.combinations([(run, x.text) for run, some in runs.items() for x in some], 2):
            (within if one[0] == other[0] else between).append(one[1] == other[1])
    return sum(within) / max(len(within), 1), sum(between) / max(len(between), 1)


def _describe_rates(setting: str, executions: Sequence[Execution]) -> str:
    failed = count_failures(group_by_case(executions))
    suite = MeasuredSuite(setting, failed, "")
    first, second, always = fit_rates(suite)
    usual = rates(suite, 100, KEPT)
    cells = (
        json.dumps(failed),
        f"{first:.2f}, {second:.2f}, {always:.2f}",
        f"{sum(rate < 0.02 for rate in usual)} %",
        f"{sum(rate >= 0.2 for rate in usual)} %",
        f"{rate_after_passes(failed, 10):.1%}",
    )
    return f"| {setting} | {' | '.join(cells)} |"


if __name__ == "__main__":
    raise SystemExit(main())
