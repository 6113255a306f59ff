"""What a newcomer types on a bare Debian or Ubuntu, to the letter: *Getting started*, and the demo of the README."""

from __future__ import annotations

import re
import time
from pathlib import Path

from tests.support.newcomer import Newcomer, blocks, commands, follow_page

ROOT = Path(__file__).parents[2]


def for_root(page: str) -> str:
    """The page as somebody reads it who is root, as in a container: both pages say to leave out `sudo` then."""
    return page.replace("$ sudo ", "$ ")


def test_getting_started__on_a_bare_system__ends_with_the_red_comment_that_it_shows(system, tmp_path, github) -> None:
    page = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
    began = time.monotonic()
    with Newcomer(tmp_path, github, system=system) as person:
        (system.home / "weather").mkdir()
        person.home = system.home / "weather"
        person.type("cd weather")  # the empty folder
        follow_page(person, for_root(page.partition("\n## Evaluate your own agent\n")[0]))
    print(f"{system.path.name}: {time.monotonic() - began:.0f} s")


def test_readme__demo_on_a_bare_system__is_what_it_shows(system, tmp_path, github) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    section = page.partition("\n## See it\n")[2].partition("\n## Use it\n")[0]
    (needed,) = re.findall(r"`(apt-get install .+?)`", section.replace("\n", " "))
    (console,) = (commands(text) for language, text in blocks(section) if language == "console")
    (shown,) = (text for language, text in blocks(section) if language == "text")
    with Newcomer(tmp_path, github, system=system) as person:
        person.type("apt-get update")
        person.type(needed.replace("install", "install --yes", 1))  # nobody is there to say yes
        said = "".join(person.type(command) for command in console)
    assert [line for line in shown.splitlines() if line.split() not in [one.split() for one in said.splitlines()]] == []
