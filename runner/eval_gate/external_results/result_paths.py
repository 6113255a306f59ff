"""Paths of results as they are given: a file, a folder or a glob, with a prefix of its suites where it has one."""

from __future__ import annotations

import os
import re
from glob import has_magic
from itertools import islice
from pathlib import Path
from typing import Final

from eval_gate.model.limits import EXTERNAL_FILES
from eval_gate.struct import FrozenStruct

_PREFIXED: Final = re.compile(r"(?P<prefix>[^/\\=*?\[\]\x00-\x1f\x7f]{1,100})=(?P<path>.+)", re.DOTALL)
_STARS: Final = re.compile(r"\*{2,}")


class ResultsPath(FrozenStruct):
    """A path of results, and the prefix of the suites in them: `linux=out/junit.xml`."""

    path: str
    prefix: str = ""
    """Empty where none is given."""

    @property
    def exists(self) -> bool:
        """Whether a file or folder of this name is there; a link to nothing is one too."""
        return os.path.lexists(self.path)

    @property
    def is_glob(self) -> bool:
        """Whether the path is a pattern, and not what a file or folder of this name is called."""
        return has_magic(self.path) and not self.exists

    @property
    def root(self) -> Path:
        """The folder that is named without a pattern; for a file or a folder the path itself."""
        if not self.is_glob:
            return Path(self.path)
        parts = Path(self.path).parts
        return Path(*parts[: next(at for at, part in enumerate(parts) if has_magic(part))])

    def find_leg(self, folder: Path) -> str | None:
        """Find the part of a folder that the patterns for folders in a glob match: its leg of a matrix.

        For `results/*/x.xml` that is the folder in `results`. Return None for a glob without such a pattern: `**`,
        which matches any number of folders, is none.
        """
        if not self.is_glob:
            return None
        parts, depth = Path(self.path).parts, 0
        for at, part in enumerate(parts[: len(folder.parts)]):
            if part == "**":
                break
            depth = at + 1 if has_magic(part) else depth
        return Path(*folder.parts[len(self.root.parts) : depth]).as_posix() if depth else None

    def list_matches(self, folder: Path | None = None) -> list[str]:
        """List what a glob matches below a folder or here, sorted, or the path itself if it is no glob.

        What is inside another match is left out. `**` within a name matches what `*` does.
        """
        if not self.is_glob:
            return [str(folder / self.path) if folder else self.path]
        parts = Path(self.path).parts
        own = Path(*(part if part == "**" else _STARS.sub("*", part) for part in parts))
        pattern = folder / own if folder else own
        found = Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor)))
        matched = sorted(str(path) for path in islice(found, EXTERNAL_FILES + 1))
        below = {path for path in matched if any(parent in matched for parent in map(str, Path(path).parents))}
        return [path for path in matched if path not in below]

    def __str__(self) -> str:
        return f"{self.prefix}={self.path}" if self.prefix else self.path


def parse_results_path(path_text: str | ResultsPath) -> ResultsPath:
    """Parse a path of results, unless it is one. A file that is called `name=path` is that file."""
    if isinstance(path_text, ResultsPath):
        return path_text
    match = None if os.path.lexists(path_text) else _PREFIXED.fullmatch(path_text)
    if match is None or not match["prefix"].strip() or not match["path"].strip():
        return ResultsPath(path_text)
    return ResultsPath(match["path"].strip(), match["prefix"].strip())
