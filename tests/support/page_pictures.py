"""Takes pictures of the page of a run in every state: `python -m tests.support.page_pictures FOLDER`.

They are for looking at: what is wrong with a page is seen long before a test could say it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from eval_gate.reports.rendering import render
from tests.support.browser import DESK, PHONE, SMALL_PHONE, browser, opened
from tests.support.evidence import PULL_REQUEST, large, sixty

STATES: Final[Mapping[str, Mapping[str, Any]]] = {
    "desk": {},
    "desk-dark": {"color_scheme": "dark"},
    "desk-whole": {"whole": True},
    "arabic": {"case": "refund/arabic"},
    "hindi-dark": {"case": "refund/hindi", "color_scheme": "dark"},
    "phone": {"size": PHONE},
    "phone-case": {"size": PHONE, "case": "refund/partial-order", "whole": True},
    "small-phone-case": {"size": SMALL_PHONE, "case": "refund/partial-order", "whole": True},
    "print": {"media": "print", "whole": True},
    "no-script": {"java_script_enabled": False, "whole": True},
    "thousands": {"page": "large"},
}


def main(folder: Path) -> None:
    """Write one picture for each state."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: folder / f"{name}.html" for name in ("sixty", "large")}
    for name, run in {"sixty": sixty(), "large": large()}.items():
        files[name].write_text(render("html", run, PULL_REQUEST), encoding="utf-8")
    with browser() as started:
        for state, said in STATES.items():
            options = dict(said)
            file, size = files[options.pop("page", "sixty")], options.pop("size", DESK)
            case, media, whole = options.pop("case", None), options.pop("media", None), options.pop("whole", False)
            with opened(started, file, size=size, **options) as seen:
                if case:
                    seen.page.locator("a.row", has_text=case).click()
                if media:
                    seen.page.emulate_media(media=media)
                seen.page.wait_for_timeout(200)
                seen.page.screenshot(path=folder / f"{state}.png", full_page=whole)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
