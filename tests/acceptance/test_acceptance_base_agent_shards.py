"""A drop of all cases shows only where shards are joined: there the base branch's agent can still be asked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.program import gate
from tests.support.world import ActionWorld, Script, plain, scripted

DROP = "F(P)F(P)F(P)F(P)PPPP"
"""Half of the cases fail at first: of each one that is chance."""


@pytest.fixture
def base() -> Iterator[Script]:
    """The base branch's agent."""
    with scripted() as script:
        yield script


@pytest.fixture
def pushed(action):
    """A change in two shards, each judged by itself against main, with all of what they left in `parts`."""
    action.main("PPPPPPPP*4")
    (action.job.workspace / "main.zip").write_bytes(action.artifact())
    for part in (1, 2):
        action.script.begin(DROP)
        given = ("--baseline", "main.zip", "--shard", f"{part}/2", "--output-dir", f"parts/{part}")
        rules = ("--fail-on", "regressions", "--reruns", "6", "--max-retries", "0")
        done = gate(action.job.workspace, "run", "--agent-endpoint", action.script.url, *given, *rules)
        assert done.returncode == 0, done.stdout + done.stderr
    return action


def joined(world: ActionWorld, **inputs: str):
    world.script.begin(DROP)
    return world.here(DROP, results="parts", **inputs)


def test_shards__drop_that_shows_in_the_whole__is_red(pushed) -> None:
    seen = joined(pushed)
    assert seen.code == 1, seen.text
    assert "the whole suite fails more than usual" in seen.title


@pytest.mark.parametrize(
    ("does", "code", "says"),
    [
        (DROP, 0, "compared with it, this is not a drop"),
        ("PPPPPPPP", 1, "the whole suite fails more than usual"),
    ],
)
def test_shards__whole_with_the_base_branchs_agent__asks_it_about_all_of_them(pushed, base, does, code, says) -> None:
    base.begin(does.replace("F(P)", "F"))
    seen = joined(pushed, base_agent_endpoint=base.url)
    assert seen.code == code, seen.text
    assert says in plain(seen.report)
    assert set(base.asked) == set(range(8))
    assert pushed.script.asked == []  # nothing of the run is asked again


def test_shards__nothing_is_red__the_base_branchs_agent_is_not_asked(action, base) -> None:
    action.main("PPPPPPPP*4")
    action.script.begin("PPPPPPPP")
    for part in (1, 2):
        given = ("--shard", f"{part}/2", "--output-dir", f"parts/{part}")
        gate(action.job.workspace, "run", "--agent-endpoint", action.script.url, *given)
    base.begin("FFFFFFFF")
    seen = action.here("PPPPPPPP", results="parts", base_agent_endpoint=base.url)
    assert (seen.code, base.asked) == (0, [])


def test_shards__left_to_a_second_step__asks_for_it_and_publishes_once(pushed, base) -> None:
    pull = pushed.pull()
    pushed.script.begin(DROP)
    first = pushed.job.pull_request(
        pull, pushed.script.url, {"results": "parts", "base-agent": "later", "fail-on": "regressions"}
    )
    assert (first.code, first.outputs["needs-base-agent"]) == (1, "true"), first.log
    assert not [one for one in pushed.github.state.comments.values() if one.issue == pull.number]
    base.begin("FFFFPPPP")
    seen = pushed.seen_step(pull, results="latest", base_agent_endpoint=base.url)
    assert seen.code == 0, seen.text
    assert "compared with it, this is not a drop" in plain(seen.report)
