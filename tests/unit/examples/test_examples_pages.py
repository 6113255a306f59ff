"""The pages of the documentation, sorted by who reads them: each is in the index once, and the first ones are short."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"
INDEX = (DOCS / "README.md").read_text(encoding="utf-8")
FIRST_WORDS = 4_000


def linked(text: str) -> list[str]:
    return re.findall(r"\]\(([\w/-]+\.md)\)", text)


def group(title: str) -> str:
    return INDEX.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_index__every_page__is_listed_exactly_once() -> None:
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")} - {"README.md"}
    assert sorted(linked(INDEX)) == sorted(pages)


def test_index__start_here__is_as_short_as_it_says() -> None:
    pages = linked(group("Start here"))
    assert pages
    assert f"under {FIRST_WORDS:,} words" in group("Start here")
    assert sum(len((DOCS / page).read_text(encoding="utf-8").split()) for page in pages) < FIRST_WORDS


def test_readme__first_pages__are_those_of_the_index_in_their_order() -> None:
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"(?m)^\d\. \[.*?\]\(docs/([\w-]+\.md)\)", readme)
    assert listed == linked(group("Start here"))


def headings(page: Path) -> set[str]:
    """Where links into this page may lead."""
    found = re.findall(r"(?m)^#+ (.*)$", without_code(page))
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in found)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in plain}


def without_code(page: Path) -> str:
    return re.sub(r"(?ms)^(~~~|```).*?^\1", "", page.read_text(encoding="utf-8"))


def test_links__each__leads_to_a_page_and_to_a_heading_of_it() -> None:
    root = DOCS.parent
    pages = [*DOCS.rglob("*.md"), *(root / "benchmarks").rglob("*.md"), root / "README.md", root / "CONTRIBUTING.md"]
    broken = []
    for page in pages:
        for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page)):
            file, _, heading = link.partition("#")
            there = (page.parent / file).resolve() if file else page
            if ":" in file:
                continue
            if not there.exists() or (heading and there.suffix == ".md" and heading not in headings(there)):
                broken.append((page.relative_to(root).as_posix(), link))
    assert broken == []
