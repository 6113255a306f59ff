"""The branch that makes baselines runs some cases only: a result of the same ones serves, and others are no absence."""

from __future__ import annotations

import pytest

from tests.support.world import ActionWorld, scripted


@pytest.fixture
def world(tmp_path, github):
    with scripted() as script:
        yield ActionWorld(tmp_path, github, script)


def tagged(world: ActionWorld) -> None:
    """Three cases to be looked at on every push, and one that is not."""
    world.of_length("PPPP")
    for number, case in enumerate(world.cases):
        case["tags"] = ["smoke"] if number < 3 else ["deep"]
    world.write()


def test_same_tag_on_both_sides__is_compared(world) -> None:
    tagged(world)
    *_, base = world.main("PPPP*3", tag="smoke")
    seen = world.here("FFFP", world.merged(world.pull()), tag="smoke")
    assert (seen.code, seen.ended.outputs["regressions"], seen.ended.outputs["baseline-sha"]) == (1, "3", base)


@pytest.mark.parametrize(
    ("there", "here", "words"),
    [
        ({"tag": "deep"}, {"tag": "smoke"}, "2 of some cases only"),
        pytest.param({"tag": "smoke"}, {}, "2 of some cases only", marks=pytest.mark.slow),
        pytest.param({"shard": "1/2"}, {"shard": "1/3"}, "2 of another part of the cases", marks=pytest.mark.slow),
    ],
)
def test_other_cases_on_the_branch__a_failing_case_is_inconclusive_and_a_green_run_passes(
    world, there, here, words
) -> None:
    tagged(world)
    world.main("PPPP*2", **there)
    pull = world.merged(world.pull())
    seen = world.here("FFFF", pull, **here)
    assert (seen.code, "no baseline yet" in seen.title) == (3, False), seen.text
    assert f"{words}; run the workflow on main with the `case`, `tag`, `tier` and `shard` of this run" in seen.ended.log
    assert world.here("PPPP", pull, **here).code == 0


@pytest.mark.slow
def test_pushes_run_some_and_the_night_all__each_is_compared_with_the_nearest_that_has_its_cases(world) -> None:
    tagged(world)
    night, push = *world.main("PPPP"), *world.main("PPPP", tag="smoke")
    pull = world.merged(world.pull())
    found = [world.here("PPFP", pull, **given).ended.outputs["baseline-sha"] for given in ({}, {"tag": "smoke"})]
    assert found == [night, push]
