"""What stands in place of a secret."""

from typing import Final

MASK: Final = "***"
