"""Changes between two states of a folder, written as `git diff` writes them.

Source: AgentV 4.42.4 (`file_changes`), which runs git. Here no repository is made in the folder and no git is run: who
works in the folder could otherwise choose what the changes are, and the image has no git.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from eval_gate.model.limits import WORKSPACE_CHANGES
from eval_gate.sandbox.paths import SandboxError
from eval_gate.sandbox.sandbox import InitialFile
from eval_gate.struct import Struct

CONTEXT: Final = 3
"""Equal lines before and after a change that are shown."""
MAX_STEPS: Final = 5_000_000
"""Steps of comparing lines, in all files together. Lines that are compared no more are shown as replaced."""
_REMEMBERED_STEP: Final = 10
"""Steps that one remembered position counts for, because it takes memory."""
_HASH_DIGITS: Final = 7
_NO_HASH: Final = "0" * _HASH_DIGITS
_BINARY_START: Final = 8_000
"""Bytes at the beginning of a file in which a NUL makes it binary."""
_MAX_HEADING: Final = 80
_HEADING: Final = re.compile(rb"[A-Za-z_$]")
_QUOTED: Final = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}


class _Change(NamedTuple):
    """Lines `old_start` to `old_end` (excluded) of a file that became lines `new_start` to `new_end` of another."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


class _StepBudget(Struct):
    """Steps of comparing lines that are left for all files together."""

    left: int = MAX_STEPS


def format_changes(
    old_files: Iterable[InitialFile], new_files: Iterable[InitialFile], limit: int = WORKSPACE_CHANGES
) -> str:
    """Format the changes from `old_files` to `new_files` as a unified diff; the result is empty without any.

    Folders are of no interest. A file that only moved is a rename. A file that moved and changed is a removed and an
    added one. Raises SandboxError if the changes have more than `limit` characters.
    """
    old = {one.path: one for one in old_files if one.data is not None}
    new = {one.path: one for one in new_files if one.data is not None}
    renames = _find_renames(old, new)
    moved = set(renames.values())
    budget = _StepBudget()
    lines: list[str] = []
    for path in sorted({*old, *new}, key=lambda one: one.encode("utf-8", "surrogateescape")):
        found: Iterable[str] = ()
        if path in renames:
            found = _format_rename(old[renames[path]], new[path])
        elif path not in moved and old.get(path) != new.get(path):
            found = _format_file(path, old.get(path), new.get(path), budget)
        for line in found:
            limit -= len(line) + 1
            if limit < 0:
                raise SandboxError("The changes are too long to be shown.")
            lines.append(line)
    return "".join(f"{line}\n" for line in lines)


def _find_renames(old: Mapping[str, InitialFile], new: Mapping[str, InitialFile]) -> dict[str, str]:
    """Find the files that only moved: the new path of each, and the old one. Of equal files the name decides."""
    removed: dict[bytes, list[str]] = {}
    for path, one in old.items():
        if path not in new and one.data:
            removed.setdefault(one.data, []).append(path)
    found: dict[str, str] = {}
    for path, one in new.items():
        sources = removed.get(one.data or b"")
        if path not in old and sources:
            same = (source for source in sources if _get_name(source) == _get_name(path))
            found[path] = next(same, sources[0])
            sources.remove(found[path])
    return found


def _get_name(path: str) -> str:
    return path.rpartition("/")[2]


def _format_rename(old: InitialFile, new: InitialFile) -> list[str]:
    names = [_quote(one.path) for one in (old, new)]
    return [
        _format_header(old.path, new.path),
        *_format_modes(old, new),
        "similarity index 100%",
        f"rename from {names[0]}",
        f"rename to {names[1]}",
    ]


def _format_header(old: str, new: str) -> str:
    return f"diff --git {_quote(f'a/{old}')} {_quote(f'b/{new}')}"


def _format_modes(old: InitialFile, new: InitialFile) -> list[str]:
    if old.executable == new.executable:
        return []
    return [f"old mode {_get_mode(old)}", f"new mode {_get_mode(new)}"]


def _format_file(path: str, old: InitialFile | None, new: InitialFile | None, budget: _StepBudget) -> Iterator[str]:
    """Format what became of one file: it was added, removed or changed."""
    yield _format_header(path, path)
    given, left = (old and old.data) or b"", (new and new.data) or b""
    index = f"index {_hash(old)}..{_hash(new)}"
    if old is None and new is not None:
        yield f"new file mode {_get_mode(new)}"
    elif new is None and old is not None:
        yield f"deleted file mode {_get_mode(old)}"
    elif old is not None and new is not None:
        yield from _format_modes(old, new)
        if given == left:
            return
        if old.executable == new.executable:
            index = f"{index} {_get_mode(old)}"
    yield index
    names = "/dev/null" if old is None else _quote(f"a/{path}"), "/dev/null" if new is None else _quote(f"b/{path}")
    if _is_binary(given) or _is_binary(left):
        yield f"Binary files {names[0]} and {names[1]} differ"
    elif given or left:
        end = "\t" if " " in path else ""  # of a path with blanks, as git marks it
        yield f"--- {names[0]}{end if old is not None else ''}"
        yield f"+++ {names[1]}{end if new is not None else ''}"
        yield from _format_hunks(_split_lines(given), _split_lines(left), budget)


def _hash(file: InitialFile | None) -> str:
    """Return the beginning of the name that git gives to this content."""
    if file is None:
        return _NO_HASH
    data = file.data or b""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()[:_HASH_DIGITS]


def _get_mode(file: InitialFile) -> str:
    return "100755" if file.executable else "100644"


def _quote(path: str) -> str:
    """Quote a path as git does if it contains other than printable ASCII characters."""
    data = path.encode("utf-8", "surrogateescape")
    if all(31 < byte < 127 and byte not in _QUOTED for byte in data):
        return path
    signs = (
        f"\\{_QUOTED[byte]}" if byte in _QUOTED else chr(byte) if 31 < byte < 127 else f"\\{byte:03o}" for byte in data
    )
    return f'"{"".join(signs)}"'


def _is_binary(data: bytes) -> bool:
    return b"\0" in data[:_BINARY_START]


def _split_lines(data: bytes) -> list[bytes]:
    return re.findall(rb"[^\n]*\n|[^\n]+", data)


def _format_hunks(old: Sequence[bytes], new: Sequence[bytes], budget: _StepBudget) -> Iterator[str]:
    heading = ""
    searched = 0
    for group in _group_changes(_compare_lines(old, new, budget)):
        start = max(group[0].old_start - CONTEXT, 0)
        end = min(group[-1].old_end + CONTEXT, len(old))
        shift = group[0].new_start - group[0].old_start
        new_end = group[-1].new_end + (end - group[-1].old_end)
        for line in reversed(old[searched:start]):
            if _HEADING.match(line):
                heading = f" {line[:_MAX_HEADING].decode('utf-8', 'replace').rstrip()}"
                break
        searched = start
        yield f"@@ -{_format_range(start, end)} +{_format_range(start + shift, new_end)} @@{heading}"
        at = start
        for change in group:
            yield from _format_lines(" ", old[at : change.old_start])
            yield from _format_lines("-", old[change.old_start : change.old_end])
            yield from _format_lines("+", new[change.new_start : change.new_end])
            at = change.old_end
        yield from _format_lines(" ", old[at:end])


def _format_range(start: int, end: int) -> str:
    count = end - start
    first = start + 1 if count else start
    return str(first) if count == 1 else f"{first},{count}"


def _format_lines(sign: str, lines: Iterable[bytes]) -> Iterator[str]:
    for line in lines:
        yield f"{sign}{_decode_line(line)}"
        if not line.endswith(b"\n"):
            yield "\\ No newline at end of file"


def _decode_line(line: bytes) -> str:
    return line.removesuffix(b"\n").decode("utf-8", "replace")


def _group_changes(changes: Sequence[_Change]) -> Iterator[list[_Change]]:
    """Yield the changes that are so near to each other that they are shown together."""
    group: list[_Change] = []
    for change in changes:
        if group and change.old_start - group[-1].old_end > 2 * CONTEXT:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _compare_lines(old: Sequence[bytes], new: Sequence[bytes], budget: _StepBudget) -> list[_Change]:
    """Find the fewest lines to remove and to add, as far as the budget lasts."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    inner_old, inner_new = old[start : len(old) - end], new[start : len(new) - end]
    pairs = _find_equal_lines(inner_old, inner_new, budget)
    changes: list[_Change] = []
    at_old = at_new = 0
    for one, other in (*pairs, (len(inner_old), len(inner_new))):
        if one > at_old or other > at_new:
            changes.append(_Change(start + at_old, start + one, start + at_new, start + other))
        at_old, at_new = one + 1, other + 1
    return [_slide_down(change, old, new, next_start) for change, next_start in _pair_with_next(changes, len(old))]


def _pair_with_next(changes: Sequence[_Change], end: int) -> Iterator[tuple[_Change, int]]:
    """Yield each change with the line of the old file at which the next one begins."""
    for index, change in enumerate(changes):
        yield change, changes[index + 1].old_start if index + 1 < len(changes) else end


def _slide_down(change: _Change, old: Sequence[bytes], new: Sequence[bytes], next_start: int) -> _Change:
    """Move a pure addition or removal as far down as equal lines allow."""
    one, other, here, there = change
    if one < other and here < there:
        return change
    while other < next_start and (old[one] == old[other] if one < other else new[here] == new[there]):
        one, other, here, there = one + 1, other + 1, here + 1, there + 1
    return _Change(one, other, here, there)


def _find_equal_lines(old: Sequence[bytes], new: Sequence[bytes], budget: _StepBudget) -> list[tuple[int, int]]:
    """Find the lines that both have, in order (Myers' algorithm), or none if the budget does not last."""
    furthest = {1: 0}
    history: list[dict[int, int]] = []
    for edits in range(len(old) + len(new) + 1):
        history.append(dict(furthest))
        budget.left -= _REMEMBERED_STEP * len(furthest)
        for diagonal in range(-edits, edits + 1, 2):
            down = diagonal == -edits or (
                diagonal != edits and furthest.get(diagonal - 1, -1) < furthest.get(diagonal + 1, -1)
            )
            x = furthest[diagonal + 1] if down else furthest[diagonal - 1] + 1
            y = x - diagonal
            began = x
            while x < len(old) and y < len(new) and old[x] == new[y]:
                x, y = x + 1, y + 1
            budget.left -= 1 + x - began
            furthest[diagonal] = x
            if x >= len(old) and y >= len(new):
                return _trace_back(history, len(old), len(new))
        if budget.left < 0:
            return []
    return []


def _trace_back(history: Sequence[Mapping[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for edits in range(len(history) - 1, -1, -1):
        furthest = history[edits]
        diagonal = x - y
        down = diagonal == -edits or (
            diagonal != edits and furthest.get(diagonal - 1, -1) < furthest.get(diagonal + 1, -1)
        )
        before = diagonal + 1 if down else diagonal - 1
        from_x = furthest[before] if edits else 0
        from_y = from_x - before if edits else 0
        start_x = from_x if down else from_x + 1
        while x > (start_x if edits else 0) and y > 0:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = from_x, from_y
    return pairs[::-1]
