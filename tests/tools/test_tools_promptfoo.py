"""promptfoo in the other ways in which people run it: each gets the verdict of the plain one.

The commands for re-runs are those that docs/other-tools.md shows.
"""

from __future__ import annotations

import pytest

from tests.support.tools import Repository, Tool, other_recipes, recipes

PROMPTFOO = Tool("promptfoo", "promptfoo.yml")
FAILING, DESCRIBED, NAMED = "the workflow's", "a description", "a `testCaseId`"
WAYS = {
    "prompts-and-providers": ("matrix", "out.json", "", FAILING),
    "repeat": ("described", "out.json", "--repeat 3", FAILING),
    "lines": ("described", "out.jsonl", "", DESCRIBED),
    "described": ("described", "out.json", "", DESCRIBED),
    "test-case-id": ("ids", "out.json", "", NAMED),
}
"""The folder with the configuration, the results file, more options, and whose recipe in the table is taken."""


@pytest.mark.parametrize("repository", [PROMPTFOO], indirect=True, ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_promptfoo__in_another_way__is_red_for_the_broken_and_green_for_the_flaky(
    repository: Repository, way: str
) -> None:
    overlay, results, options, recipe = WAYS[way]
    command = {FAILING: recipes(PROMPTFOO.page)[0], **other_recipes(PROMPTFOO.page)}[recipe]
    run = f"npx promptfoo eval --no-cache {options} -o {results}"
    repository.forget()
    for _ in range(3):
        done = repository.judged(results, command, overlay, run=run)
        assert done.returncode == 0, done.stdout + done.stderr
    done = repository.judged(results, command, overlay, "flaky", run=run)
    assert done.returncode == 0, done.stdout + done.stderr
    asked = (repository.job.workspace / "asked.txt").read_text().splitlines()
    again = asked.count("Refund order 4711") > asked.count("When are you open?")
    assert again is (way != "repeat"), "the two other trials have cleared it, and nothing else does"
    done = repository.judged(results, command, overlay, "broken", run=run)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "REGRESSIONS (" in done.stdout
    assert "opening" not in done.stdout.partition("REGRESSIONS")[2]
