"""Changes between two states of a folder, as git tells them.

Source: AgentV 4.42.4 (`file_changes`), which makes a repository in the folder. Here git compares copies in a repository
of our own: who works in the folder could otherwise choose what the changes are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eval_gate.model.limits import WORKSPACE_CHANGES
from eval_gate.process.git import compare_commits
from eval_gate.sandbox.paths import SandboxError
from eval_gate.sandbox.sandbox import InitialFile


def format_changes(
    old_files: Iterable[InitialFile], new_files: Iterable[InitialFile], limit: int = WORKSPACE_CHANGES
) -> str:
    """Format the changes from `old_files` to `new_files` as a unified diff; the result is empty without any.

    Folders, and a repository in the folder, are of no interest. A file that only moved is a rename. A file that moved
    and changed is a removed and an added one. Raises SandboxError if the changes have more than `limit` characters, or
    if git is missing.
    """
    stream = b"".join((*_iter_commit("old", old_files), *_iter_commit("new", new_files)))
    changes = compare_commits(stream)
    if changes is None:
        raise SandboxError("The changes cannot be shown: git is missing or failed.")
    shown = changes.decode("utf-8", "replace")
    if len(shown) > limit:
        raise SandboxError("The changes are too long to be shown.")
    return shown


def _iter_commit(branch: str, files: Iterable[InitialFile]) -> Iterator[bytes]:
    """Yield the commands of `git fast-import` for a branch with these files."""
    yield f"commit refs/heads/{branch}\ncommitter <> 0 +0000\ndata 0\n".encode()
    for file in files:
        if file.data is not None and ".git" not in file.path.lower().split("/"):
            mode = "100755" if file.executable else "100644"
            yield f"M {mode} inline ".encode() + _quote_path(file.path) + b"\ndata %d\n" % len(file.data)
            yield file.data + b"\n"


def _quote_path(path: str) -> bytes:
    data = path.encode("utf-8", "surrogateescape")
    return b'"' + data.replace(b"\\", rb"\\").replace(b'"', rb"\"").replace(b"\n", rb"\n") + b'"'
