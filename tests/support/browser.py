"""A browser for the page of a run: Chromium without a network, which says what it was refused."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    *("--no-sandbox", "--disable-quic", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--disable-dev-shm-usage"),
)
AXE = Path(__file__).parents[1] / "pages" / "library" / "node_modules" / "axe-core" / "axe.min.js"
PHONE = (390, 844)
SMALL_PHONE = (320, 700)
DESK = (1360, 900)


def chromium() -> str | None:
    """Where Chromium is; None where there is none. EVAL_GATE_CHROMIUM names another one."""
    return os.environ.get("EVAL_GATE_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def browser() -> Iterator[Browser]:
    """Chromium, ended afterwards."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        try:
            yield started
        finally:
            started.close()


@dataclass
class Opened:
    """A page that is open, and what it asked for, complained about or popped up since."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def overflow(self) -> int:
        """How many pixels it is wider than its window."""
        return self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def nodes(self) -> int:
        """How many elements it has."""
        return self.page.evaluate("document.querySelectorAll('*').length")

    def violations(self) -> list[str]:
        """What axe-core finds, as `rule: elements`."""
        # not as an element of the page, whose policy would not run it
        self.page.evaluate(AXE.read_text(encoding="utf-8") + "; 0")
        found = self.page.evaluate("axe.run(document, { resultTypes: ['violations'] }).then((all) => all.violations)")
        return [f"{one['id']}: {[node['html'][:160] for node in one['nodes'][:3]]}" for one in found]


@contextmanager
def opened(
    started: Browser, file: Path, anchor: str = "", size: tuple[int, int] = DESK, **options: Any
) -> Iterator[Opened]:
    """The file in a window of its own."""
    context = started.new_context(viewport={"width": size[0], "height": size[1]}, offline=True, **options)
    try:
        page = context.new_page()
        made = Opened(page)
        page.on("console", lambda said: made.complaints.append(said.text))
        page.on("pageerror", lambda error: made.complaints.append(str(error)))
        page.on("dialog", lambda dialog: (made.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: made.requests.append(request.url))
        page.goto(file.as_uri() + anchor)
        yield made
    finally:
        context.close()
