"""Files that the programs of a run can load, for the setup fingerprint and while the run is under way.

The folder is the unit: a program is compared by all files below the folder of each file that its command names, by what
its kind of program reads in the folders above (`program_kinds.py`), and by the files that `graderFiles` names. In the
root, which holds the agent too, only the files count that the command and the programs in it name.

No program of the same user can be kept from writing to these files. But none can set back the time at which a file
was changed, so a change is noticed after it was undone, too.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from glob import iglob
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from eval_gate.engine.preparation.program_kinds import list_read_files
from eval_gate.engine.preparation.repository_files import RepositoryFiles
from eval_gate.files.reading import read_limited_or_pointer, read_limited_raw
from eval_gate.model import limits
from eval_gate.model.base import JsonValue
from eval_gate.model.policy import ComparedFile, ComparedProgram, ComparedPrograms
from eval_gate.process.misplaced_files import split_command
from eval_gate.text.digest import DIGEST_DIGITS, compute_digest, digest_file_content
from eval_gate.text.escape import format_first_few, to_one_line
from eval_gate.text.globs import covers_file, is_glob

MAX_COMMAND: Final = 300
"""Characters of a command that are kept."""
_MAX_TEXT: Final = 1_000_000
"""Bytes of a file that is read as text: line endings do not count, and names are searched."""
_MAX_WORDS: Final = 20_000
"""Characters of a command in which names are found."""
_WORD: Final = re.compile(r"[\w.@+~/-]+")
_QUOTED: Final = re.compile(r"""(["'])([^"'\n\0]+)\1""")
_MODULE: Final = re.compile(r"\w+(?:\.\w+)*")
_MODULE_FILES: Final = (".py", "/__init__.py", "/__main__.py")
_RELATIVE_MODULE_FILES: Final = (".js", ".mjs", ".cjs", ".ts", ".tsx", "/index.js", "/index.ts")
"""Suffixes that JavaScript adds to a path that begins with a dot."""
_KEY_DIGITS: Final = 12
_MAX_WORD: Final = 1_000
_MAX_GLOBBED: Final = 1_000
"""Files that one glob in a command stands for."""
_NAME_OTHERS: Final = "Name others with `graderFiles`"
_MAX_SHOWN: Final = 3
"""Commands that one sentence names."""
_State: TypeAlias = tuple[int, ...]


class _Unit(NamedTuple):
    """A file, or files of a folder: those whose names match a glob, or with None all files below it."""

    place: str
    names: tuple[str, ...] | None = None


class ProgramFiles:
    """Files that the commands of one run can load, each read once. `root` is the folder of the run."""

    def __init__(self, root: Path, patterns: Sequence[str] = (), *, repository: RepositoryFiles | None = None) -> None:
        """`patterns` are globs of further files, relative to `root` (`graderFiles`)."""
        self.root = root.absolute()
        self.repository = repository or RepositoryFiles(self.root)
        self._roots = {str(self.root), str(self.repository.root)}
        self._patterns = tuple(patterns)
        self._left_out: set[str] = set()
        self._evals: frozenset[str] = frozenset()
        self._units: dict[str, tuple[_Unit, ...]] = {}
        self._files: dict[str, tuple[str, ...]] = {}
        self._digests: dict[str, str] = {}
        self._states: dict[str, _State] = {}
        self._bytes = 0
        self._notices: dict[str, None] = {}
        self._in_root: dict[str, None] = {}
        self._nameless: dict[str, dict[str, None]] = {}

    def leave_out(self, places: Iterable[str | Path]) -> None:
        """Leave out files and folders that are compared elsewhere, unless a command names them."""
        self._left_out |= {os.path.normpath(self.root / place) for place in places}

    def set_evals(self, evals: Iterable[str]) -> None:
        """Set the eval files, relative to `root`: fingerprints leave them out, because cases have their own."""
        self._evals = frozenset(evals)

    def leave_out_agent(self, command: str, folders: Sequence[Path]) -> None:
        """Leave out the files that the command of the agent names: they are what is evaluated."""
        self.leave_out(self.find_named_files(command, tuple(folders)))

    def find_named_files(self, command: str, folders: tuple[Path, ...]) -> tuple[str, ...]:
        """Find the files of the repository that a command names, as absolute paths."""
        return tuple(_Names(self.repository, _iter_command_words(command, folders), folders, self.root).files)

    def find_read_files(self, command: str, folders: tuple[Path, ...]) -> tuple[str, ...]:
        """Find what the programs of a command read by themselves, such as a Makefile, as paths relative to `root`."""
        names = _Names(self.repository, _iter_command_words(command, folders), folders, self.root)
        places = [*_list_loaded_folders(names), *map(os.path.normpath, folders)]
        return tuple(map(self.format_relative_path, self._iter_files(self._iter_read_units(names, places))))

    def measure(self, command: str | Sequence[str], *folders: Path, by_name: bool = False) -> str:
        """Read all that a command can load, as in the root with `by_name`, and return its key."""
        text = command if isinstance(command, str) else shlex.join(command)
        folders = tuple(Path(os.path.normpath(folder)) for folder in folders or (self.root,))
        places = (self.format_relative_path(str(folder)) for folder in folders)
        key = compute_digest([text, *places, *(["by name"] if by_name else [])])[:_KEY_DIGITS]
        if key not in self._units:
            self._units[key] = tuple(dict.fromkeys(self._iter_units(text[:_MAX_WORDS], folders, by_name=by_name)))
            self._files[key] = tuple(dict.fromkeys(self._iter_files(self._units[key])))
            for file in self._files[key]:
                self._read(file)
        return key

    def digest_content(self, keys: Collection[str]) -> JsonValue:
        """Describe these programs and the content of what they can load, for a fingerprint."""
        files = {self.format_relative_path(file): self._digests.get(file) for key in keys for file in self._files[key]}
        return [*keys, compute_digest({name: one for name, one in files.items() if name not in self._evals})]

    def build_record(self) -> ComparedPrograms:
        """Build what the run result keeps: each file once, and of too many only their folders."""
        entries = {self.format_relative_path(file): digest for file, digest in self._digests.items()}
        programs = [
            ComparedProgram(key=key, places=tuple(sorted(self._iter_places(key)))) for key in sorted(self._units)
        ]
        files = tuple(ComparedFile(path=path, digest=one) for path, one in sorted(_join_entries(entries).items()))
        return ComparedPrograms(files=files, programs=tuple(programs))

    def find_change(self, keys: Iterable[str]) -> str | None:
        """Find a file of these programs that was added, removed or changed since it was read; None if none was."""
        units = tuple(dict.fromkeys(unit for key in keys for unit in self._units[key]))
        files = {file for key in keys for file in self._files[key]}
        self.repository.keep_rules()
        current = set(self._iter_files(units))
        changed = (files ^ current) | {
            file for file in current & files if self._states.get(file) != read_file_state(file)
        }
        return min(map(self.format_relative_path, changed), default=None)

    @property
    def has_read_everything(self) -> bool:
        """Whether every file that was found is compared by its content."""
        return not self._notices

    @property
    def notices(self) -> tuple[str, ...]:
        """Describe what is not compared, in sentences."""
        notices = list(self._notices)
        if self._in_root:
            notices.append(
                f"the root of the repository is not compared as a whole: for {_format_commands(self._in_root)}, only "
                f"files are compared that are named in the command or in its files. {_NAME_OTHERS}"
            )
        for folder, commands in self._nameless.items():
            place = "the root" if folder == "." else f"`{folder}`"
            notices.append(
                f"only the files at the top of {place} are compared for {_format_commands(commands)}, because no file "
                f"of the repository is named. {_NAME_OTHERS}"
            )
        return tuple(notices)

    def format_relative_path(self, path: str) -> str:
        """Format a path relative to the folder of the run, so that it is the same in every checkout."""
        return Path(os.path.relpath(path, self.root)).as_posix()

    def _iter_units(self, text: str, folders: Sequence[Path], *, by_name: bool) -> Iterator[_Unit]:
        names = _Names(self.repository, _iter_command_words(text, folders), folders, self.root)
        loaded = _list_loaded_folders(names)
        yield from (_Unit(file, ()) for file in names.files)
        for folder in dict.fromkeys(loaded):
            if by_name or self._is_root(folder):
                if not by_name:
                    self._in_root[to_one_line(text, MAX_COMMAND)] = None
                yield from self._iter_units_by_name(names, folder)
            elif self.repository.is_inside(folder):
                yield _Unit(folder)
        if not loaded and not by_name:
            folder = self.format_relative_path(str(folders[0]))
            self._nameless.setdefault(folder, {})[to_one_line(text, MAX_COMMAND)] = None
            yield _Unit(str(folders[0]), ("*",))
        yield from self._iter_read_units(names, [*loaded, *map(str, folders)])
        yield from self._named_units

    def _iter_read_units(self, names: _Names, folders: Iterable[str]) -> Iterator[_Unit]:
        """Yield what programs read by themselves in these folders and those above."""
        if read := list_read_files((*names.words, *names.files, *names.iter_first_words())):
            yield from (_Unit(place, read) for place in self._iter_places_above(folders))

    @cached_property
    def _named_units(self) -> tuple[_Unit, ...]:
        files = self.repository.iter_files(str(self.root)) if self._patterns else ()
        names = ((file, self.format_relative_path(file)) for file in files)
        return tuple(_Unit(file, ()) for file, name in names if any(covers_file(one, name) for one in self._patterns))

    def _iter_units_by_name(self, names: _Names, root: str) -> Iterator[_Unit]:
        """Yield the files of the root that the programs in it name or import, and those that these name."""
        waiting = [file for file in names.files if os.path.dirname(file) == root]  # noqa: PTH120
        visited = set(waiting)
        while waiting:
            file = Path(waiting.pop())
            text = read_limited_raw(file, _MAX_TEXT).decode("utf-8", "replace") if file.is_file() else ""
            for target in _Names(self.repository, _iter_words(text), (file.parent,), self.root).files:
                if target not in visited and not self._is_left_out(target):
                    visited.add(target)
                    waiting.append(target)
                    yield _Unit(target, ())

    def _iter_places_above(self, folders: Iterable[str]) -> Iterator[str]:
        """Yield these folders and those above them, up to the root, each once."""
        root = Path(self.repository.root)
        inside = (Path(folder) for folder in folders if Path(folder).is_relative_to(root))
        yield from dict.fromkeys(
            str(place) for folder in inside for place in (folder, *folder.parents) if place.is_relative_to(root)
        )

    def _is_root(self, folder: str) -> bool:
        """Whether the folder is the root of the run or of the repository, or holds one of them."""
        return any(root == folder or root.startswith(f"{folder}/") for root in self._roots)

    def _iter_files(self, units: Iterable[_Unit]) -> Iterator[str]:
        for place, names in units:
            if names == ():
                files: Iterable[str] = filter(self.repository.has_file, (place,))
            else:
                listed = self.repository.iter_files(place, deep=names is None)
                files = (file for file in listed if not self._is_left_out(file))
            for file in files:
                if not names or any(fnmatchcase(os.path.basename(file), name) for name in names):  # noqa: PTH119
                    yield file

    def _is_left_out(self, file: str) -> bool:
        return any(file == place or file.startswith(f"{place}/") for place in self._left_out)

    def _iter_places(self, key: str) -> Iterator[str]:
        for unit in self._units[key]:
            if unit.names is None:
                yield f"{self.format_relative_path(unit.place)}/"
            else:
                yield from map(self.format_relative_path, self._iter_files([unit]))

    def _read(self, file: str) -> None:
        """Read a file once; the state is that of before, so that no change is missed."""
        if file in self._states:
            return
        state = read_file_state(file)
        self._states[file] = state
        if len(self._states) > limits.PROGRAM_FILES or self._bytes > limits.PROGRAM_BYTES:
            limit = f"{limits.PROGRAM_FILES:,} files or {limits.PROGRAM_BYTES:,} bytes"
            self._notices[f"not all files of graders and hooks are compared: they are more than {limit}"] = None
            return
        try:
            self._digests[file] = self._digest(Path(file))
            self._bytes += Path(file).stat().st_size
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            self._notices[f"{to_one_line(self.format_relative_path(file), MAX_COMMAND)} is not compared: {why}"] = None

    def _digest(self, file: Path) -> str:
        if file.is_symlink() and (file.is_dir() or not self.repository.is_inside(str(file))):
            if not file.is_dir():
                name = to_one_line(self.format_relative_path(str(file)), MAX_COMMAND)
                self._notices[f"{name} is not compared: it leads out of the repository"] = None
            return compute_digest(["link", str(file.readlink())])
        if not file.is_file():
            raise ValueError("it is not a regular file")
        data = read_limited_or_pointer(file, _MAX_TEXT, is_generated=True)
        if len(data) <= _MAX_TEXT:
            return digest_file_content(data)[:DIGEST_DIGITS]
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()[:DIGEST_DIGITS]


class _Names:
    """Files and folders of the repository that words name, for a command that runs in one of `folders`."""

    def __init__(self, repository: RepositoryFiles, words: Iterable[str], folders: Sequence[Path], root: Path) -> None:
        self.words = tuple(dict.fromkeys(word for word in words if len(word) <= _MAX_WORD))
        self.files: dict[str, None] = {}
        self.folders: dict[str, None] = {}
        self._repository = repository
        self._listed: dict[str, frozenset[str]] = {}
        running = [os.path.normpath(folder) for folder in folders]
        visited = dict.fromkeys(
            place for word in self.words for base in running if (place := self._find_place(base, word, folder=True))
        )
        for place in visited:
            # a folder above the one it runs in is gone to, not loaded
            is_above = any(one.startswith(f"{place}/") for one in running)
            if not is_above and not repository.is_ignored(place, is_folder=True):
                self.folders[place] = None
        for word in self.words:
            near = dict.fromkeys(file for base in (*running, *visited) for file in self._iter_files(base, word))
            self.files |= near or dict.fromkeys(self._iter_files(str(root), word))

    def iter_first_words(self) -> Iterator[str]:
        """Yield the words of the first line of each file, if it says what runs it."""
        for file in self.files:
            data = read_limited_raw(Path(file), MAX_COMMAND) if Path(file).is_file() else b""
            if data.startswith(b"#!"):
                yield from _WORD.findall(data.partition(b"\n")[0].decode("utf-8", "replace"))

    def _iter_files(self, base: str, word: str) -> Iterator[str]:
        """Yield the files that a word names in a folder, as a path or as a module."""
        if file := self._find_place(base, word, folder=False):
            yield file
        module = word.strip(".")
        paths: list[str] = []
        if _MODULE.fullmatch(module):
            paths = [module.replace(".", "/") + suffix for suffix in _MODULE_FILES]
        elif word.startswith(("./", "../")):
            paths = [word + suffix for suffix in _RELATIVE_MODULE_FILES]
        places = (self._find(base, name) for name in paths)
        yield from (file for file in places if file and self._repository.has_file(file))

    def _find_place(self, base: str, word: str, *, folder: bool) -> str | None:
        """Find the file or folder that a word names, or its end after a slash: of `$ROOT/g.py` only that is known."""
        if folder and "." in word and _MODULE.fullmatch(word):
            word = word.replace(".", "/")  # a package
        parts = word.strip("/").split("/")
        begin = 0 if word.startswith("/") else 1
        endings = ("/".join(parts[count:]) for count in range(begin, len(parts)) if parts[count] not in {"", ".", ".."})
        for name in (word, *endings):
            place = self._find(base, name)
            if place is None or Path(place).is_dir() is not folder:
                continue
            if self._repository.is_inside(place) if folder else self._repository.has_file(place):
                return place
        return None

    def _find(self, base: str, name: str) -> str | None:
        """Find the path of a name; None if it does not exist, or if it is outside the repository."""
        first = name.split("/", 1)[0]
        if first not in {"", ".", ".."} and first not in self._list_names(base):
            return None
        place = os.path.normpath(os.path.join(base, name))  # noqa: PTH118 (an absolute name stays what it is)
        is_inside = Path(place).is_relative_to(self._repository.root)
        return place if is_inside and os.path.lexists(place) else None

    def _list_names(self, folder: str) -> frozenset[str]:
        if folder not in self._listed:
            try:
                self._listed[folder] = frozenset(os.listdir(folder))  # noqa: PTH208 (names are all that is needed)
            except OSError:
                self._listed[folder] = frozenset()
        return self._listed[folder]


def _list_loaded_folders(names: _Names) -> list[str]:
    """List the folders that a command names, and those of the files that it names, links followed."""
    places = [*names.files, *(os.path.realpath(file) for file in names.files if Path(file).is_symlink())]
    return [*names.folders, *map(os.path.dirname, places)]


def _iter_words(text: str) -> Iterator[str]:
    """Yield possible names in a text: words without blanks, and texts in quotes."""
    yield from _WORD.findall(text)
    yield from (quoted for _, quoted in _QUOTED.findall(text))


def _iter_command_words(command: str, folders: Iterable[Path]) -> Iterator[str]:
    """Yield possible names in a command, in arguments that are commands, and the matches of globs."""
    yield from _iter_words(command)
    for argument in split_command(command.replace("\0", " ")):
        for word in dict.fromkeys((argument, *_iter_words(argument), *split_command(argument))):
            yield word
            if is_glob(word) and "/" in word:
                for folder in folders:
                    yield from islice(iglob(word, root_dir=folder), _MAX_GLOBBED)  # noqa: PTH207 (of any root)


def read_file_state(file: str) -> _State:
    """Read what no program can set back: which file it is, its size, and when it was changed."""
    state: list[int] = []
    for follow in (False, True):
        try:
            one = os.stat(file, follow_symlinks=follow)  # noqa: PTH116
        except OSError:
            state.append(-1)
        else:
            state += (one.st_dev, one.st_ino, one.st_mode, one.st_size, one.st_mtime_ns, one.st_ctime_ns)
    return tuple(state)


def _join_entries(entries: dict[str, str]) -> dict[str, str]:
    """Join the deepest files of a folder into one entry until no more entries are left than a result keeps."""
    depth = max((path.count("/") for path in entries), default=0)
    while len(entries) > limits.PROGRAM_ENTRIES and depth:
        joined: dict[str, list[str]] = {}
        for path, digest in sorted(entries.items()):
            parts = path.removesuffix("/…").split("/")
            name = path if len(parts) <= depth else "/".join((*parts[:depth], "…"))
            joined.setdefault(name, []).append(f"{path}={digest}")
        entries = {
            name: entries[name] if name in entries else compute_digest([*digests]) for name, digests in joined.items()
        }
        depth -= 1
    return entries


def _format_commands(commands: Iterable[str]) -> str:
    return format_first_few([f"`{command}`" for command in commands], _MAX_SHOWN)
