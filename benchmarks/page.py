"""What the page of a run costs to open and to use: bytes, elements and milliseconds, in Chromium.

    python -m benchmarks.page        # 60 cases, and 10,000 with 500 regressions

Milliseconds are the best of five, from the input to the next frame that is drawn; `open` and `deep link` are from the
beginning of the navigation to both sides of a regression on the screen: of the first one, and of the last one.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from eval_gate.model.comparison import CaseClass
from eval_gate.model.result import RunResult
from eval_gate.reports.links import build_anchor
from eval_gate.reports.rendering import render
from tests.support.browser import browser, opened
from tests.support.evidence import PULL_REQUEST, large, sixty

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TIMES = 5
READY = "() => performance.now()"
SEARCH = """(text) => new Promise((done) => {
  const box = document.getElementById("search");
  const began = performance.now();
  box.value = text;
  box.dispatchEvent(new Event("input"));
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
})"""
CHIP = """() => new Promise((done) => {
  const began = performance.now();
  document.querySelector("#chips button").click();
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
})"""


def opening(started: Browser, file: Path, anchor: str = "") -> float:
    """Milliseconds until a case is on the screen, with what it says."""
    with opened(started, file, anchor) as seen:
        seen.page.wait_for_selector("#case .sides")
        return float(seen.page.evaluate(READY))


def measured(started: Browser, file: Path, last: str) -> dict[str, float]:
    """All figures of one page."""
    with opened(started, file) as seen:
        seen.page.wait_for_selector("#case .sides")
        found: dict[str, float] = {"bytes": file.stat().st_size, "elements": seen.nodes()}
        found["search"] = min(seen.page.evaluate(SEARCH, f"case {number}") for number in range(TIMES))
        seen.page.evaluate(SEARCH, "")
        found["filter"] = min(seen.page.evaluate(CHIP) for _ in range(TIMES))
    found["open"] = min(opening(started, file) for _ in range(TIMES))
    found["deep link"] = min(opening(started, file, f"#{last}") for _ in range(TIMES))
    return found


def main() -> None:
    """Print a line for each page."""
    runs: dict[str, RunResult] = {"60 cases, 6 regressions": sixty(), "10,000 cases, 500 regressions": large()}
    with tempfile.TemporaryDirectory() as folder, browser() as started:
        for name, run in runs.items():
            file = Path(folder) / "page.html"
            file.write_text(render("html", run, PULL_REQUEST), encoding="utf-8")
            assert run.comparison is not None
            last = [
                one
                for one in run.comparison.select_changes(CaseClass.REGRESSION)
                if one.baseline_result and one.current
            ][-1]
            figures = measured(started, file, build_anchor(last.key))
            words = ", ".join(f"{what} {number:,.0f}" for what, number in figures.items())
            print(f"{name}: {words}")


if __name__ == "__main__":
    main()
