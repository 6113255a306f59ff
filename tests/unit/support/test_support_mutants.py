"""The mutants that `benchmarks/mutation.py` makes: small, every one another program, none where nothing can be seen."""

from __future__ import annotations

import ast
from pathlib import Path

from benchmarks.mutants import mutants_of

SOURCE = b'''"""A module."""

from __future__ import annotations

LIMIT: int = 3
"""So many."""


def over(found: list[int], *, most: int = LIMIT) -> bool:
    """Whether there are too many."""
    assert found is not None
    if not found:
        raise ValueError("nothing here")
    return len(found) > most and max(found, default=0) >= 1
'''


def changes() -> set[tuple[str, str]]:
    return {(one.was, one.text) for one in mutants_of(Path("a.py"), SOURCE)}


def test_mutants__module__are_the_mistakes_that_people_make() -> None:
    assert changes() == {
        ("3", "(4)"),
        ("not found", "True"),
        ("not found", "False"),
        ("not found", "(found)"),
        ('raise ValueError("nothing here")', "pass"),
        ("return len(found) > most and max(found, default=0) >= 1", "return None"),
        ("len(found) > most and max(found, default=0) >= 1", "(len(found) > most or max(found, default=0) >= 1)"),
        ("len(found) > most and max(found, default=0) >= 1", "(max(found, default=0) >= 1)"),
        ("len(found) > most and max(found, default=0) >= 1", "(len(found) > most)"),
        ("len(found) > most", "(len(found) >= most)"),
        ("len(found) > most", "(len(found) <= most)"),
        ("max(found, default=0) >= 1", "(max(found, default=0) > 1)"),
        ("max(found, default=0) >= 1", "(max(found, default=0) < 1)"),
        ("max(found, default=0)", "(min(found, default=0))"),
        ("max(found, default=0)", "(max(found))"),
        ("0", "(1)"),
        ("1", "(2)"),
    }


def test_mutants__each__is_a_program_and_another_one() -> None:
    made = [one.of(SOURCE) for one in mutants_of(Path("a.py"), SOURCE)]
    assert len(set(made)) == len(made)
    assert all(ast.dump(ast.parse(one)) != ast.dump(ast.parse(SOURCE)) for one in made)
