"""*Your first red comment* of `docs/getting-started.md`, followed to the letter: real git, the real action."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.agents import unused_port
from tests.support.newcomer import Newcomer, blocks, commands, follow_page

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "getting-started.md"


def read_section() -> str:
    """Read the steps from an empty folder to a red comment."""
    page = PAGE.read_text(encoding="utf-8")
    section = page.partition("\n## Your first red comment\n")[2].partition("\n## Evaluate your own agent\n")[0]
    assert section
    return section


@pytest.mark.slow
def test_page__followed_in_an_empty_folder__ends_with_the_red_comment_that_it_shows(tmp_path, github) -> None:
    port = str(unused_port())
    page = read_section().replace("8080", port)
    # the one thing that is not to the letter: where many tests run at once, 8080 may be taken
    page = page.replace("$ eval-gate init\n", f"$ eval-gate init --agent-endpoint http://localhost:{port}/chat\n")
    with Newcomer(tmp_path, github) as person:
        follow_page(person, page)


def test_page__is_short_enough_for_ten_minutes() -> None:
    prose = re.sub(r"(?ms)^```.*?^```", "", read_section())
    assert len(prose.split()) < 350
    assert sum(len(commands(text)) for language, text in blocks(read_section()) if language == "console") < 20
