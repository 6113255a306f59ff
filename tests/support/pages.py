"""Pages of HTML as golden files hold them: without the style sheet that all of them repeat."""

from importlib import resources

SHEET = resources.files("eval_gate.reports").joinpath("templates/report.css").read_text(encoding="utf-8").rstrip()


def without_sheet(page: str) -> str:
    """The page, with a remark where its style sheet stands. A page without the whole of it is refused."""
    assert page.count(SHEET) == 1, "the page does not hold templates/report.css once"
    return page.replace(SHEET, "/* html/report.css */")
