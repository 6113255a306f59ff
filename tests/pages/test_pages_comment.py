"""The comments of a phone: GitHub's Markdown with GitHub's measures, in a window of 390 pixels."""

from __future__ import annotations

from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.support.browser import PHONE, opened

GOLDEN = Path(__file__).parents[1] / "golden" / "first-look"
STYLE = """
body { margin: 16px; font: 14px/1.5 -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif;
  overflow-wrap: break-word }
h2 { font-size: 1.5em }
table { display: block; width: max-content; max-width: 100%; overflow: auto; border-collapse: collapse }
th, td { padding: 6px 13px; border: 1px solid }
code { padding: .2em .4em; font: 85% ui-monospace, SFMono-Regular, Menlo, monospace; white-space: break-spaces }
pre { padding: 16px; overflow: auto }
"""
"""What GitHub's style sheet says of a comment, as far as it decides what is wider than its window."""
SHOWN = "tr > :nth-child(-n + 2):not(details *)"
"""The case and what changed, of each open table."""


def draw(folder: Path, name: str) -> Path:
    """The page of this comment."""
    text = (GOLDEN / f"{name}.md").read_text(encoding="utf-8")
    made = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text)
    page = folder / "comment.html"
    page.write_text(f"<!doctype html><meta charset=utf-8><style>{STYLE}</style>{made}", encoding="utf-8")
    return page


@pytest.mark.parametrize("name", sorted(file.stem for file in GOLDEN.glob("*.md")))
def test_comment__on_a_phone__shows_each_case_and_what_changed_without_scrolling_sideways(
    chrome, tmp_path, name
) -> None:
    with opened(chrome, draw(tmp_path, name), size=PHONE) as seen:
        assert seen.overflow() == 0
        cells = [cell.bounding_box() for cell in seen.page.locator(SHOWN).all()]
    assert [cell for cell in cells if cell["x"] + cell["width"] > PHONE[0]] == []


def test_comment__ten_regressions_on_a_phone__show_what_changed_and_the_first_case_at_once(chrome, tmp_path) -> None:
    with opened(chrome, draw(tmp_path, "2-ten-cases"), size=PHONE) as seen:
        for words in ("quote_price.price expected 12, got 0", "order/split"):
            place = seen.page.get_by_text(words).first.bounding_box()
            assert place["x"] + place["width"] <= PHONE[0]
            assert place["y"] + place["height"] <= PHONE[1]
        assert seen.page.locator("table:not(details table)").count() == 0
