"""How a simulation whose size can be chosen prints its one table."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor


def print_table(
    table: Callable[[ProcessPoolExecutor, int, int], Iterable[str]], option: str, usual: int, words: str, about: str
) -> None:
    """Print a table as Markdown, line by line, with the size and seed of the command line.

    `table` takes the process pool, the size that `option` sets, and the seed. `words` is the help text of `option`,
    and `usual` its default.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(option, dest="size", type=int, default=usual, help=words)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for line in table(pool, given.size, given.seed):
            print(line, flush=True)
