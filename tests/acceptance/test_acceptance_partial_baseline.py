"""A baseline of which a part is missing: what failed there, and what is new, is known to nobody."""

from __future__ import annotations

import shutil

import pytest

from tests.support.world import World, scripted

NOBODY_KNOWS = "1 failing case is not in the baseline: the baseline is"


@pytest.fixture
def parts(tmp_path):
    """A run of main in two shards, `parts/1` and `parts/2`, of which only one has the first case."""
    with scripted() as script:
        made = World(tmp_path, script)
        for part in ("1", "2"):
            made.run("PPPP", "--shard", f"{part}/2", "--output-dir", f"parts/{part}", "--reruns", "6")
        has = next(
            one for one in (1, 2) if "gs-000" in next((tmp_path / "parts" / str(one)).glob("*/run.json")).read_text()
        )
        yield made, tmp_path / "parts" / str(has), tmp_path / "parts" / str(3 - has)


def shard_itself(_made: World, _missing, there) -> str:
    return str(next(there.glob("*/run.json")).parent)


def folder_of_unjoined(_made: World, missing, there) -> str:
    shutil.rmtree(missing)
    return str(there)


def joined_without_one(made: World, missing, there) -> str:
    shutil.rmtree(missing)
    made.gate("merge", str(there.parent), "--output-dir", "joined")
    return str(next((made.folder / "joined").glob("*/run.json")))


@pytest.mark.parametrize("named", [shard_itself, folder_of_unjoined, joined_without_one])
def test_baseline__lacks_the_failing_case__is_not_decided(parts, named) -> None:
    made, missing, there = parts
    baseline = named(made, missing, there)
    seen = made.here("FPPP", baseline=baseline)
    assert (seen.code, seen.json["verdict"]["outcome"]) == (3, "inconclusive"), seen.text
    assert NOBODY_KNOWS in " ".join(seen.text.split())
