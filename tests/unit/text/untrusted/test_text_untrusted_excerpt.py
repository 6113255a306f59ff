"""How foreign bytes begin, on one line."""

from __future__ import annotations

import pytest

from eval_gate.text.untrusted.excerpt import MAX_EXCERPT, format_excerpt


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"", "«»"),
        (b" \r\n\t", "«»"),
        (b"<html>\r\n <b>no</b>", "«<html> <b>no</b>»"),
        (b"\xff\x1b[31m\xe2\x80\xaered", "«\ufffd [31m red»"),
        (b"a" * MAX_EXCERPT, f"«{'a' * MAX_EXCERPT}»"),
        (b"a" * (MAX_EXCERPT + 1), f"«{'a' * MAX_EXCERPT}…»"),
        (b"a" + b" " * MAX_EXCERPT * 4, "«a…»"),
    ],
    ids=["nothing", "blanks", "page", "controls", "just as long", "longer", "blanks behind"],
)
def test_quote__bytes__are_one_bounded_line(body, shown) -> None:
    assert format_excerpt(body) == shown
