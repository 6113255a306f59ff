"""Tool definitions in TypeScript and JavaScript, parsed and never run."""

from typing import Final

SUFFIXES: Final = (".ts", ".tsx", ".mts", ".cts", ".js", ".mjs", ".cjs", ".jsx")
