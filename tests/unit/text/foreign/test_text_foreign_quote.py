"""How foreign bytes begin, on one line."""

from __future__ import annotations

import pytest

from eval_gate.text.foreign.quote import MAX_QUOTE, quote


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"", "«»"),
        (b" \r\n\t", "«»"),
        (b"<html>\r\n <b>no</b>", "«<html> <b>no</b>»"),
        (b"\xff\x1b[31m\xe2\x80\xaered", "«\ufffd [31m red»"),
        (b"a" * MAX_QUOTE, f"«{'a' * MAX_QUOTE}»"),
        (b"a" * (MAX_QUOTE + 1), f"«{'a' * MAX_QUOTE}…»"),
        (b"a" + b" " * MAX_QUOTE * 4, "«a…»"),
    ],
    ids=["nothing", "blanks", "page", "controls", "just as long", "longer", "blanks behind"],
)
def test_quote__bytes__are_one_bounded_line(body, shown) -> None:
    assert quote(body) == shown
