"""The library on the page is the one that its script writes, and nobody's edit."""

from __future__ import annotations

import shutil

import pytest

from tests.support.write_page_library import FOLDER, LIBRARY, library_text


@pytest.mark.skipif(
    shutil.which("node") is None or not (FOLDER / "node_modules").is_dir(),
    reason="the packages are not installed: run `make pages`",
)
def test_library__written_anew__is_the_same() -> None:
    assert LIBRARY.read_text(encoding="utf-8") == library_text()
