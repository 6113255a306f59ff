"""The pages of the documentation, sorted by who reads them: each is in the index once, and the first ones are short."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"
INDEX = (DOCS / "README.md").read_text(encoding="utf-8")
FIRST_WORDS = 3_000


def linked(text: str) -> list[str]:
    return re.findall(r"\]\(([\w/-]+\.md)\)", text)


def group(title: str) -> str:
    return INDEX.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_index__every_page__is_listed_exactly_once() -> None:
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")} - {"README.md"}
    assert sorted(linked(INDEX)) == sorted(pages)


def test_index__first_use__is_as_short_as_it_says() -> None:
    pages = linked(group("First use"))
    assert pages
    assert f"under {FIRST_WORDS:,} words" in group("First use")
    assert sum(len((DOCS / page).read_text(encoding="utf-8").split()) for page in pages) < FIRST_WORDS


def test_readme__first_pages__are_those_of_the_index_in_their_order() -> None:
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"(?m)^\d\. \[.*?\]\(docs/([\w-]+\.md)\)", readme)
    assert listed == linked(group("First use"))
    assert f"under {FIRST_WORDS:,} words" in readme
