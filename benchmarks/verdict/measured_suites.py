"""The promises on suites with the failure rates of real agents (`measured_rates.py`).

    python benchmarks/verdict/measured_suites.py --cases 20 100 --harmless 200 --worse 60

Harmless pull requests that are red, and pull requests that broke one case which are found: the case in the middle,
which seldom fails, and a flaky one, dead or passing half as often. One line as soon as it is known.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from case_worlds import Line, Measured, measured
from measured_rates import SUITES, MeasuredSuite
from worlds import measured_worlds


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, nargs="+", default=[20, 100])
    parser.add_argument("--harmless", type=int, default=200, help="pull requests that change nothing, of each suite")
    parser.add_argument("--worse", type=int, default=60, help="pull requests of each kind that broke a case")
    parser.add_argument("--history", type=int, default=10, help="runs of main before")
    parser.add_argument("--suites", default="", metavar="NAME", help="only those whose name begins so")
    given = parser.parse_args(arguments)
    heads = ("dead", "half-broken", "flaky, dead", "flaky, half-broken")
    print(f"| suite | cases | harmless, red | {' | '.join(heads)} | executions a case |", flush=True)
    print(f"|:--|--:|--:|{'--:|' * len(heads)}--:|", flush=True)
    for cases in given.cases:
        for suite in (one for one in SUITES if one.name.startswith(given.suites)):
            print(_describe_suite(suite, cases, given), flush=True)
    return 0


def _describe_suite(suite: MeasuredSuite, cases: int, given: argparse.Namespace) -> str:
    found = [
        measured(Line(world, given.history), given.harmless if world.harmless else given.worse)
        for world in measured_worlds(suite, cases)
    ]
    cells = " | ".join(_describe_share(one) for one in found)
    return f"| {suite.name} | {cases} | {cells} | {found[0].per_case:.2f} |"


def _describe_share(found: Measured) -> str:
    return f"{found.share:.1f} ± {found.error:.1f}"


if __name__ == "__main__":
    raise SystemExit(main())
