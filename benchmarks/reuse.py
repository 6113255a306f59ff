"""Random histories of a repository whose results are reused, each decision held against what was really executed.

    python -m benchmarks.reuse                       # 10,000 histories: a quarter of an hour of one free core
    python -m benchmarks.reuse --histories 500 --first 20000
    python -m benchmarks.reuse --changes             # sixty changes of a repository by the command line, two minutes

Exits with 1 if a result was reused that must not be.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.support.reuse_stories.disk import Checkout
from tests.support.reuse_stories.sixty import SUITES, draw_kinds, run_changes
from tests.support.reuse_stories.story import Story

ROWS = {
    "runs": "runs",
    "suites": "suites in them",
    "reused": "reused",
    "reused from baseline": "of these from the baseline",
    "reused from own_run": "of these from an earlier run of the pull request",
    "rechecked": "executed again because the last execution was a week ago",
    "probes": "further decisions about results that must not count",
    "attacks": "forged results",
    "executions": "executions",
    "saved executions": "executions saved",
    "wrong": "reused, and must not be",
    "missed": "executed, and need not be",
}
"""Lines of the table, in order."""
PARTS = 500
"""Histories after which the figures are printed."""


def count_faults(first: int, histories: int) -> Counter[str]:
    """Tell the histories, print what is wrong in them, and count."""
    counts: Counter[str] = Counter()
    for begin in range(first, first + histories, PARTS):
        with tempfile.TemporaryDirectory() as folder:  # and a new memory of states
            checkout = Checkout(Path(folder))
            for seed in range(begin, min(begin + PARTS, first + histories)):
                attacks = 2 if seed % 2 else 12  # half of them are full of these
                story = Story(seed, checkout.read_state, attacks=attacks).tell()
                counts += story.counts
                for kind in ("wrong", "missed"):
                    faults = getattr(story, kind)
                    counts[kind] += len(faults)
                    print(*(f"{kind}: {one}" for one in faults), sep="\n", end="\n" if faults else "", flush=True)
        print(f"{min(begin + PARTS, first + histories) - first:,} histories", file=sys.stderr, flush=True)
    return counts


def print_changes() -> None:
    """Print what sixty changes cost without measures and with them."""
    kinds = draw_kinds(seed=1)
    with tempfile.TemporaryDirectory() as folder:
        without, reusing = run_changes(Path(folder), kinds)
    print("| changes | | runs without a request | suites reused | requests without `measures` | with |")
    print("|:--|--:|--:|--:|--:|--:|")
    groups = {"documents": {"document"}, "the agent of one suite": set(SUITES), "evals": {"evals"}}
    groups |= {"configuration": {"configuration"}, "together": set(kinds)}
    for words, group in groups.items():
        ran = [pair for kind, *pair in zip(kinds, without, reusing, strict=True) if kind in group]
        silent, reused = (sum(one.requests == 0 for _, one in ran), sum(one.reused for _, one in ran))
        before, after = (sum(pair[at].requests for pair in ran) for at in (0, 1))
        print(f"| {words} | {len(ran)} | {silent} | {reused} of {len(ran) * len(SUITES)} | {before} | {after} |")
    same = [one.code for one in without] == [one.code for one in reusing]
    print(f"\n{sum(one.code != 0 for one in reusing)} runs are red; {'the same' if same else 'NOT the same'} without.")


def main() -> None:
    """Tell the histories and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=int, help="10,000 without it")
    parser.add_argument("--first", type=int, default=0, help="seed of the first history")
    parser.add_argument("--changes", action="store_true")
    given = parser.parse_args()
    if given.changes:
        print_changes()
        return
    histories = given.histories or 10_000
    counts = count_faults(given.first, histories)
    print(f"| histories | {histories:,} |", "|:--|--:|", sep="\n")
    print(*(f"| {words} | {counts[name]:,} |" for name, words in ROWS.items()), sep="\n")
    sys.exit(bool(counts["wrong"]))


if __name__ == "__main__":
    main()
