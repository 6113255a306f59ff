"""Writes the library of the page of a run: differences by word, of the npm package `diff`, with its licence.

The version is the one of `tests/pages/library/package-lock.json`; `npm ci` in that folder installs it and its bundler.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "pages" / "library"
LIBRARY = ROOT / "runner" / "eval_gate" / "reports" / "page" / "diff.js"
_ENTRY = 'export { diffArrays } from "diff";'
_OPTIONS = ("--bundle", "--minify", "--format=iife", "--global-name=Diff", "--target=es2021", "--charset=utf8")


def library_text() -> str:
    """The script as it stands on the page. Raises CalledProcessError where the packages are not installed."""
    made = subprocess.run(
        ["node_modules/.bin/esbuild", *_OPTIONS, "--legal-comments=none", "--log-level=error"],
        cwd=FOLDER,
        input=_ENTRY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    package = FOLDER / "node_modules" / "diff"
    version = json.loads((package / "package.json").read_text(encoding="utf-8"))["version"]
    licence = (package / "LICENSE").read_text(encoding="utf-8").strip()
    head = f"/*! diff {version} (https://github.com/kpdecker/jsdiff), written by tests/support/write_page_library.py"
    return f"{head}\n\n{licence}\n*/\n{made.strip()}\n"


if __name__ == "__main__":
    LIBRARY.write_text(library_text(), encoding="utf-8")
