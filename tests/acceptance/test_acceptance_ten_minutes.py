"""*Your first red comment* of `docs/getting-started.md`, followed to the letter: real git, the real action."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.agents import unused_port
from tests.support.newcomer import Newcomer, blocks, commands

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
    wanted, said = "", ""
    with Newcomer(tmp_path, github) as person:
        for language, text in blocks(page):
            match language:
                case "python":
                    (person.home / "agent.py").write_text(text, encoding="utf-8")
                case "text":
                    wanted = text.strip()
                case "console":
                    for command in commands(text):
                        code, words = person.shell(command, person.home)
                        assert code == 0, f"{command}\n{words}"
                        said += words
                        if command.startswith("gh repo create"):
                            ended = person.main()
                            assert (ended.code, ended.outputs["verdict"]) == (0, "passed"), ended.log
        assert "GATE PASSED" in said
        ended, comment = person.pull_request("faster")
        assert (ended.code, ended.outputs["regressions"]) == (1, "1"), ended.log
        assert wanted
        assert wanted in comment
        assert "12 °C" in comment

        mended = "git switch main && git switch --create mended && git push --set-upstream origin mended"
        assert person.shell(mended, person.home)[0] == 0
        ended, comment = person.pull_request("mended")
        assert ended.code == 0, ended.log
        assert "✅" in comment


def test_page__is_short_enough_for_ten_minutes() -> None:
    prose = re.sub(r"(?ms)^```.*?^```", "", read_section())
    assert len(prose.split()) < 350
    assert sum(len(commands(text)) for language, text in blocks(read_section()) if language == "console") < 20
