"""Random histories of a repository whose results are reused, each decision held against what was really executed.

    python -m benchmarks.reuse                       # 10,000 histories: a quarter of an hour of one free core
    python -m benchmarks.reuse --histories 500 --first 20000
    python -m benchmarks.reuse --mutants             # the decision with one small mistake each: which are not noticed
    python -m benchmarks.reuse --changes             # sixty changes of a repository by the command line, two minutes

Exits with 1 if a result was reused that must not be, if a decision says what is not so, or if a mutant survives.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from eval_gate.model.reuse import EvaluatedState
from tests.support.reuse_stories.disk import Checkout
from tests.support.reuse_stories.mutants import MUTANTS, iter_source_mutants
from tests.support.reuse_stories.repository import Machine, Tree
from tests.support.reuse_stories.rules import Rules
from tests.support.reuse_stories.runs import model_state
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
    "untrue": "reasons that are not so",
    "missed": "executed, and need not be",
}
"""Lines of the table, in order."""
PARTS = 500
"""Histories after which the figures are printed."""


def tell(seed: int, read_state: Callable[[Tree, Machine], EvaluatedState], rules: Rules) -> Story:
    """Tell one history; half of them are full of attacks."""
    return Story(seed, read_state, rules, attacks=2 if seed % 2 else 12).tell()


def count_faults(first: int, histories: int) -> Counter[str]:
    """Tell the histories, print what is wrong in them, and count."""
    counts: Counter[str] = Counter()
    for begin in range(first, first + histories, PARTS):
        with tempfile.TemporaryDirectory() as folder:  # and a new memory of states
            checkout = Checkout(Path(folder))
            for seed in range(begin, min(begin + PARTS, first + histories)):
                story = tell(seed, checkout.read_state, Rules())
                counts += story.counts
                for kind in ("wrong", "untrue", "missed"):
                    faults = getattr(story, kind)
                    counts[kind] += len(faults)
                    print(*(f"{kind}: {one}" for one in faults), sep="\n", end="\n" if faults else "", flush=True)
        print(f"{min(begin + PARTS, first + histories) - first:,} histories", file=sys.stderr, flush=True)
    return counts


def find_survivors(histories: int) -> list[str]:
    """Name the mutants that no history notices."""
    survivors = []
    for name, rules in (*MUTANTS.items(), *iter_source_mutants()):
        if not any(_notices(seed, rules) for seed in range(histories)):
            survivors.append(name)
            print(f"survives: {name}", flush=True)
    return survivors


def _notices(seed: int, rules: Rules) -> bool:
    try:
        story = tell(seed, model_state, rules)
    except Exception:  # noqa: BLE001 (a mutant may raise anything, which is seen)
        return True
    return bool(story.wrong or story.untrue or story.missed)


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
    parser.add_argument("--histories", type=int, help="10,000 without it; of a mutant at most 600")
    parser.add_argument("--first", type=int, default=0, help="seed of the first history")
    parser.add_argument("--mutants", action="store_true")
    parser.add_argument("--changes", action="store_true")
    given = parser.parse_args()
    if given.changes:
        print_changes()
        return
    if given.mutants:
        sys.exit(bool(find_survivors(given.histories or 600)))
    histories = given.histories or 10_000
    counts = count_faults(given.first, histories)
    print(f"| histories | {histories:,} |", "|:--|--:|", sep="\n")
    print(*(f"| {words} | {counts[name]:,} |" for name, words in ROWS.items()), sep="\n")
    sys.exit(bool(counts["wrong"] or counts["untrue"]))


if __name__ == "__main__":
    main()
