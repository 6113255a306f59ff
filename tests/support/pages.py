"""Pages of HTML as golden files hold them, and what the page of a run says as data."""

from __future__ import annotations

import base64
import gzip
import json
import re
from importlib import resources
from typing import Any

from eval_gate.reports.page.html import read_asset

SHEET = resources.files("eval_gate.reports").joinpath("templates/report.css").read_text(encoding="utf-8").rstrip()
OWN = ("page.css", "diff.js", "page.js")
"""The files of ours that every page of a run holds."""


def without_sheet(page: str) -> str:
    """The page of a matrix, with a remark where its style sheet stands. A page without the whole of it is refused."""
    assert page.count(SHEET) == 1, "the page does not hold templates/report.css once"
    return page.replace(SHEET, "/* templates/report.css */")


def without_assets(page: str) -> str:
    """The page of a run, with a remark where a file of ours stands, and its data a line for each value."""
    for name in OWN:
        assert page.count(read_asset(name)) == 1, f"the page does not hold {name} once"
        page = page.replace(read_asset(name), f"/* {name} */")
    page = re.sub(r"'sha256-[^']*'", "'sha256-…'", page)
    return re.sub(r'(<script type="application/json"[^>]*>)(.*?)(</script>)', _spread, page)


def _spread(match: re.Match[str]) -> str:
    text = json.dumps(json.loads(match[2]), ensure_ascii=False, indent=1)
    return f"{match[1]}\n{text}\n{match[3]}"


def page_data(page: str) -> dict[str, Any]:
    """What the script of a page reads: `rows`, `groups` and so on, and `details` by the place of a case."""
    parts = dict(re.findall(r'<script type="[^"]*" id="(\w+)">(.*?)</script>', page))
    data: dict[str, Any] = json.loads(parts["data"])
    details = parts.get("details") or gzip.decompress(base64.b64decode(parts["packed"])).decode()
    return data | {"details": json.loads(details)}


def case_on(page: str, case_id: str) -> dict[str, Any]:
    """What the page says of one case."""
    data = page_data(page)
    return data["details"][str(data["rows"]["id"].index(case_id))]


def markup_of(page: str) -> str:
    """The page without its scripts, style sheet and data: what a browser reads as HTML."""
    for name in OWN:
        page = page.replace(read_asset(name), "")
    return re.sub(r'(<script type="[^"]*" id="\w+">).*?(</script>)', r"\1\2", page)
