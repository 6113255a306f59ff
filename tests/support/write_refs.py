"""Writes ACTION_REF wherever a page, an example or the package names Eval Gate's repository by a branch or tag."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from eval_gate.errors import ACTION_REF

ROOT = Path(__file__).parents[2]
PLACES = ("README.md", "docs", "examples", "runner", ".pre-commit-hooks.yaml")
KINDS = {".md", ".py", ".yml", ".yaml", ".j2", ".txt"}
RELEASES = ROOT / "docs" / "releasing.md"
"""The one page about the branch and all tags side by side."""
_OURS = r"\beval-gate/eval-gate"
NAMED = re.compile(
    rf"(?P<before>{_OURS}(?:/host|\.git)?@|{_OURS}/(?:blob|tree|raw)/|{_OURS}\n +rev: )(?P<ref>[\w.-]*\w)"
    rf"|(?P<source>git\+https://github\.com/eval-gate/eval-gate(?:\.git)?)(?!\.git|[@\w])"
)
"""A ref that somebody may copy: of the action, of a page, of a hook, or of the package; or a package without one."""


def find_refs(text: str) -> list[str]:
    """Return the refs that a text names; "" is the package without a ref, so whatever is newest."""
    return [found["ref"] or "" for found in NAMED.finditer(text)]


def write_refs(text: str, ref: str = ACTION_REF) -> str:
    """Return the text with `ref` in each of these places."""
    return NAMED.sub(lambda found: f"{found['before'] or found['source'] + '@'}{ref}", text)


def list_files() -> Iterator[Path]:
    """List the files that are read by people or copied by them, and those of the package."""
    for place in PLACES:
        path = ROOT / place
        files = [path] if path.is_file() else sorted(path.rglob("*"))
        yield from (file for file in files if file.suffix in KINDS and file.is_file() and file != RELEASES)


if __name__ == "__main__":
    for file in list_files():
        before = file.read_text(encoding="utf-8")
        if (after := write_refs(before)) != before:
            file.write_text(after, encoding="utf-8")
