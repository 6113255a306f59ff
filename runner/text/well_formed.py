"""Text that UTF-8 can hold: JSON may carry half a surrogate pair, files and hashes cannot."""

from __future__ import annotations


def well_formed(text: str) -> str:
    """The text with every lone surrogate as U+FFFD, as Node does it too."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
