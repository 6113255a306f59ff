"""Tool definitions in TypeScript and JavaScript, parsed but never run."""

from typing import Final

SUFFIXES: Final = (".ts", ".tsx", ".mts", ".cts", ".js", ".mjs", ".cjs", ".jsx")
