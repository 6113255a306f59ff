"""Run git without letting a checkout choose programs that git starts.

A folder with `HEAD`, `config` and `objects` is a repository for git, which runs programs that its `config` names, and a
pull request can commit such a folder. So git runs with the path of the real `.git`, or in an empty repository with a
configuration of this module.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from eval_gate.process.environment import filter_environment

_LIMIT_S: Final = 5
_COMPARE_LIMIT_S: Final = 60
# older versions know the second one not, and pass over it
_SAFE_OPTIONS: Final = ("-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit")
_NO_SETTINGS: Final = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
_NO_NETWORK: Final = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
# names that other systems take for `.git` are only names here
_CONFIG: Final = "[core]\nrepositoryFormatVersion = 1\nprotectNTFS = false\nprotectHFS = false\n"
_SHA256_CONFIG: Final = f"{_CONFIG}[extensions]\nobjectFormat = sha256\n"
_SHA256_DIGITS: Final = 64


def find_checkout(folder: Path) -> Path | None:
    """Find the nearest folder with a `.git` entry, from `folder` upward; None outside of a checkout."""
    folder = folder.resolve()
    return next((place for place in (folder, *folder.parents) if os.path.lexists(place / ".git")), None)


def run_git(folder: Path, *arguments: str) -> bytes | None:
    """Run git at the root of the checkout and return its output; None if it is missing, fails or times out."""
    names = {name for name in os.environ if name.startswith("GIT_")}
    environment = filter_environment(os.environ, {"GIT_NO_LAZY_FETCH": "1"}, names)
    return _run(find_checkout(folder) or folder, environment, arguments)


def read_git_line(folder: Path, *arguments: str) -> str | None:
    """Run git like `run_git` and return its output as stripped text. Return None if git fails or prints nothing."""
    output = run_git(folder, *arguments) or b""
    return output.decode("utf-8", "replace").strip() or None  # a branch may be called anything


def read_head_commit(git_dir: Path) -> str | None:
    """Read the object name that HEAD of a repository leads to, of any owner; None if git does not know it."""
    output = _read_git_dir(git_dir, "rev-parse", "--verify", "--quiet", "HEAD")
    return None if output is None else output.decode("ascii", "replace").strip()


def read_tracked_names(git_dir: Path) -> frozenset[bytes] | None:
    """Read the paths in a repository's index, including links and submodules; None if the index cannot be read."""
    output = _read_git_dir(git_dir, "ls-files", "-z") if (git_dir / "index").is_file() else None
    return None if output is None else frozenset(output.split(b"\0")[:-1])


def _read_git_dir(git_dir: Path, *arguments: str) -> bytes | None:
    """Run a git command that starts no program, because the repository's own configuration applies."""
    return _run(git_dir, _build_environment({"GIT_DIR": str(git_dir), "GIT_WORK_TREE": str(git_dir)}), arguments)


def read_stored_object(store: Path, name: str, kind: str, limit: int) -> bytes | None:
    """Read an object from a folder of objects and those that it borrows from, without its repository's configuration.

    Git does not hold what it reads to its name. Return None for a missing, damaged or other object, or one of more
    than `limit` bytes.
    """
    with _open_repository(len(name)) as environment:
        environment["GIT_OBJECT_DIRECTORY"] = str(store)
        size = _run(store, environment, ("cat-file", "-s", name))
        return _run(store, environment, ("cat-file", kind, name)) if size and int(size) <= limit else None


def compare_commits(stream: bytes) -> bytes | None:
    """Import the branches `old` and `new` from a stream of `git fast-import`, and return their differences.

    Only files that moved without a change are renames. Return None if git is missing or fails.
    """
    with _open_repository() as environment:
        git_dir = Path(environment["GIT_DIR"])
        if _run(git_dir, environment, ("fast-import", "--quiet"), stream, _COMPARE_LIMIT_S) is None:
            return None
        command = ("diff", "--no-color", "--no-textconv", "--find-renames=100%", "old", "new")
        return _run(git_dir, environment, command, limit_s=_COMPARE_LIMIT_S)


@contextmanager
def _open_repository(digits: int = 40) -> Iterator[dict[str, str]]:
    """Create an empty repository for object names of this length, and yield the environment of git for it."""
    with tempfile.TemporaryDirectory(prefix="eval-gate-git-") as folder:
        repository = Path(folder)
        (repository / "HEAD").write_text("ref: refs/heads/none\n", encoding="ascii")
        (repository / "config").write_text(_SHA256_CONFIG if digits == _SHA256_DIGITS else _CONFIG, encoding="ascii")
        for name in ("objects", "refs"):
            (repository / name).mkdir()
        yield _build_environment({"GIT_DIR": folder})


def _build_environment(variables: dict[str, str]) -> dict[str, str]:
    return filter_environment(os.environ, {**_NO_SETTINGS, **_NO_NETWORK, **variables})


def _run(
    folder: Path, environment: dict[str, str], arguments: tuple[str, ...], stdin: bytes = b"", limit_s: float = _LIMIT_S
) -> bytes | None:
    command = ["git", *_SAFE_OPTIONS, *arguments]
    try:
        process = subprocess.run(  # noqa: S603 (no shell; untrusted arguments come after a --)
            command, cwd=folder, input=stdin, capture_output=True, timeout=limit_s, check=False, env=environment
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return process.stdout if process.returncode == 0 else None
