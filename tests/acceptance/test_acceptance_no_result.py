"""What passed before and has no result here is never green without a word: chosen away, renamed, gone, or held back."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.support.world import World, expect

GONE = "1 case that passes in the baseline is no longer checked (removed): `gs-000`"


def tagged(made: World) -> World:
    """Three cases with a tag that main's runs know, and one without it."""
    made.of_length("PPPP")
    for case in made.cases[:3]:
        case["tags"] = ["fast"]
    made.write()
    made.main("PPPP*2")
    return made


def another_tag(made: World) -> None:
    made.cases[0]["tags"] = ["slow"]
    made.write()


def another_tier(made: World) -> None:
    moved = made.cases.pop(0) | {"difficulty": "straightforward"}
    (made.folder / "evals" / "weather.labeled.json").write_text(json.dumps([moved]))
    made.write()


def another_id(made: World) -> None:
    made.cases[0] |= {"id": "other", "tags": []}
    made.write()


def deleted(made: World) -> None:
    del made.cases[0]
    made.write()


CHOICES = [("--tag", "fast"), ("--tier", "golden"), ("--case", "gs-*")]
ESCAPES: list[tuple[Callable[[World], None], tuple[str, str]]] = [
    *((deleted, choice) for choice in CHOICES),
    (another_tag, CHOICES[0]),
    (another_tier, CHOICES[1]),
    (another_id, CHOICES[0]),
    (another_id, CHOICES[2]),
]


@pytest.mark.parametrize(("escape", "choice"), ESCAPES)
def test_chosen_cases__one_that_was_among_them_broke_and_is_not_any_more__is_named_and_can_block(
    empty, escape, choice
) -> None:
    made = tagged(empty)
    escape(made)
    seen = made.here("FPPP", *choice)
    expect(seen, 0, "no regressions", says=[GONE], removed=[0])
    assert made.here("FPPP", *choice, fail_on="regressions,removed").code == 1
    again = made.compare()
    assert (again.code, again.classes["gs-000"]) == (1, "removed")
    must = made.here("FPPP", *choice, must_pass="gs-000")
    expect(must, 3, "could not decide", first="must-pass-not-run", removed=[0])
    assert "1 case that must pass has no result here: gs-000" in must.gate


def test_chosen_cases__that_were_not_among_them_before__are_only_counted(empty) -> None:
    made = tagged(empty)
    seen = made.here("PPPF", "--tag", "fast", fail_on="regressions,removed,changed")
    expect(seen, 0, "no regressions")
    assert "1 of the baseline's 4 cases is not among those that were chosen for this run" in seen.report
    assert made.here("PPPF", "--tag", "fast", must_pass="gs-003").code == 3
