"""Source files of a tool registry, resolved like module imports within the repository."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from eval_gate.errors import GateError
from eval_gate.files.reading import read_limited
from eval_gate.model import limits
from eval_gate.staleness.typescript import SUFFIXES
from eval_gate.staleness.typescript.module_exports import ParsedModule, parse_module

MAX_FILE_BYTES: Final = limits.SOURCE_BYTES
MAX_FILES: Final = limits.SOURCE_FILES

_COMPILED: Final = {".js": (".ts", ".tsx"), ".mjs": (".mts",), ".cjs": (".cts",), ".jsx": (".tsx",)}
_SKIPPED_FOLDERS: Final = frozenset({"node_modules", "dist", "build", "coverage"})


class SourceError(Exception):
    """A source file cannot be read or parsed; the message names the file and the reason."""


class SourceFiles:
    """Cache of parsed source files. Paths are displayed relative to `root`, the working directory.

    Files outside `root` are not read, neither through `../..` nor through a link. A registry that the configuration
    names outside `root` is confined to its own folder.
    """

    def __init__(self, start: Path, root: Path) -> None:
        folder = start if start.is_dir() else start.parent
        self._root = root.resolve()
        self._boundary = self._root if folder.resolve().is_relative_to(self._root) else folder.resolve()
        self._modules: dict[Path, ParsedModule] = {}

    def format_location(self, file: Path, line: int | None = None) -> str:
        """Format a file, and the line in it, as a path relative to the root.

        A file outside the root is shown with its full path.
        """
        name = (file.relative_to(self._root) if file.is_relative_to(self._root) else file).as_posix()
        return name if line is None else f"{name}:{line}"

    def find_tool_files(self, folder: Path) -> list[Path]:
        """Every `*.tool.ts` (or .js, .mjs, …) below a folder, in order of their names; links to folders are left."""
        found: list[Path] = []
        for parent, folders, files in os.walk(folder):
            folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS and not name.startswith("."))
            found += [
                Path(parent, name) for name in sorted(files) if name.endswith(tuple(f".tool{end}" for end in SUFFIXES))
            ]
            if len(found) > MAX_FILES:
                raise _build_too_many_error(self.format_location(folder.resolve()))
        return found

    def resolve_import(self, specifier: str, importer: Path) -> Path:
        """Return the file that `from 'specifier'` refers to in `importer`. Raises SourceError."""
        if not specifier.startswith("."):
            raise SourceError(f'"{specifier[:80]}" is not a relative path')
        outside = False
        for candidate in _list_candidates(importer.parent / specifier, importer.suffix):
            try:
                real = candidate.resolve()
                outside = outside or not real.is_relative_to(self._boundary)
                if real.is_relative_to(self._boundary) and real.is_file():
                    return real
            except (OSError, ValueError, RuntimeError):  # a name too long, a null byte, a loop of links
                continue
        if outside:
            raise SourceError(f'"{specifier[:80]}" is outside of the repository')
        raise SourceError(f'"{specifier[:80]}" does not exist')

    def load_module(self, file: Path) -> ParsedModule:
        """Parse a file and reject syntax errors.

        Raises SourceError if the file cannot be read, and for a syntax error: nothing in such a file is reliable.
        """
        module = self.parse_file(file)
        if module.error_line is not None:
            raise SourceError(f"syntax error in {self.format_location(file.resolve(), module.error_line)}")
        return module

    def parse_file(self, file: Path) -> ParsedModule:
        """Parse a file, even if it has syntax errors. Raises SourceError if the source cannot be read."""
        file = file.resolve()
        if file not in self._modules:
            if len(self._modules) >= MAX_FILES:
                raise _build_too_many_error(self.format_location(file.parent))
            self._modules[file] = parse_module(self._read_source(file), file.suffix)
        return self._modules[file]

    def _read_source(self, file: Path) -> bytes:
        name = self.format_location(file)
        if not file.is_relative_to(self._boundary):
            raise SourceError(f"{name} is outside of the repository")
        try:
            if not file.is_file():
                raise SourceError(f"{name} is not a file")
            source = read_limited(file, MAX_FILE_BYTES, made=True)
            source.decode("utf-8")
        except OSError as error:
            raise SourceError(f"{name}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise SourceError(f"{name} is not UTF-8 text") from error
        if len(source) > MAX_FILE_BYTES:
            raise SourceError(f"{name} is larger than {MAX_FILE_BYTES:,} bytes")
        return source.removeprefix(b"\xef\xbb\xbf")


def _list_candidates(target: Path, importer_suffix: str) -> list[Path]:
    """List the files a specifier may mean, likeliest first: TypeScript writes `./x.js` for `x.ts`."""
    if not target.name:
        return [target / f"index{suffix}" for suffix in SUFFIXES]
    exact = [target] if target.suffix in SUFFIXES else []
    sources = [target.with_suffix(suffix) for suffix in _COMPILED.get(target.suffix, ())]
    named = [*sources, *exact] if importer_suffix in {".ts", ".tsx", ".mts", ".cts"} else [*exact, *sources]
    appended = [target.with_name(target.name + suffix) for suffix in SUFFIXES]
    return [*named, *appended, *(target / f"index{suffix}" for suffix in SUFFIXES)]


def _build_too_many_error(place: str) -> GateError:
    return GateError(
        "registry-too-large",
        f"the tool registry at {place} has more than {MAX_FILES:,} files",
        "name the barrel file, or a folder with only the tool definitions",
    )
