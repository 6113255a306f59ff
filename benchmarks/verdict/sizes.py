"""Whether the promise holds in suites of any size: how often harmless pull requests are red, from 20 cases to 2,000.

    python benchmarks/verdict/sizes.py                  # the table of figures.md
    python benchmarks/verdict/sizes.py --times 0.1      # a tenth of the pull requests

What costs is the branch: five pull requests share one. A pull request of 2,000 cases takes about a second.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from case_worlds import PER_BRANCH, Line, Measured, lines, measured

PULL_REQUESTS: Mapping[int, int] = MappingProxyType({20: 200, 100: 200, 500: 100, 1000: 60, 2000: 40})
"""So many for each line, by the number of cases."""
OF_THE_MIX: Mapping[int, int] = MappingProxyType({20: 600, 100: 600, 500: 400, 1000: 200, 2000: 100})
"""And for the last one, of solid and flaky cases, in which most gates were red."""


def size_lines(cases: int) -> list[tuple[Line, int]]:
    """Return the harmless worlds of single cases, each with its number of pull requests."""
    *others, mix = (line for line in lines(cases) if line.world.harmless)
    return [*((line, PULL_REQUESTS[cases]) for line in others), (mix, OF_THE_MIX[cases])]


def cell(found: Measured) -> str:
    """`0.5 % ± 0.4 (1.05, of 200)`: the share, its standard error, executions a case, and pull requests."""
    return f"{found.share:.1f} % ± {found.error:.1f} ({found.per_case:.2f}, of {found.gates})"


def table(times: float, seed: int) -> Iterator[str]:
    """Yield the table as Markdown, with a row for each world and a column for each size."""
    yield f"| red, at most 2 % | {' | '.join(f'{cases:,} cases' for cases in PULL_REQUESTS)} |"
    yield "|:--|" + "--:|" * len(PULL_REQUESTS)
    for row in zip(*map(size_lines, PULL_REQUESTS), strict=True):
        number = [max(round(number * times / PER_BRANCH), 1) * PER_BRANCH for _, number in row]
        cells = [cell(measured(line, many, seed=seed)) for (line, _), many in zip(row, number, strict=True)]
        yield f"| {row[0][0].world.name} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=float, default=1.0, help="so many times as many pull requests")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for line in table(given.times, given.seed):
        print(line, flush=True)


if __name__ == "__main__":
    main()
