"""Some of the histories of the simulation through the whole action: `unit/action/test_action_simulation.py` has all."""

from __future__ import annotations

import pytest

from tests.support.simulation.story import Story
from tests.support.simulation.whole import WholeRunner
from tests.support.world import scripted


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 4, 10, 18, 20, 30])
def test_simulation__through_the_whole_action__each_run_has_its_own_base(job, github, seed) -> None:
    with scripted() as script:
        story = Story(WholeRunner(job, script), seed)
        story.tell()
    assert [str(one) for one in story.wrong] == []
    assert story.judged
