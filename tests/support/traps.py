"""Folders that anybody can commit, made so that who asks git in the wrong place starts a program."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def bare_repository(folder: Path, program: str) -> None:
    """Make `folder` a repository without `.git`, whose index is not complete: to complete it git runs `program`."""
    source = folder.with_name(f"{folder.name}-source")
    for name in ("a", "b"):
        (source / name).mkdir(parents=True)
        (source / name / "file").write_text(name)
    _git(source, "init", "-q")
    _git(source, "add", ".")
    _git(source, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "x")
    _git(source, "sparse-checkout", "init", "--cone", "--sparse-index")
    _git(source, "sparse-checkout", "set", "a")
    tree = _git(source, "rev-parse", "HEAD:b")
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("HEAD", "index"):
        shutil.copy(source / ".git" / name, folder)
    for name in ("objects", "refs", "info"):
        shutil.copytree(source / ".git" / name, folder / name)
    (folder / "objects" / tree[:2] / tree[2:]).unlink()
    shutil.rmtree(source)
    (folder / "config").write_text(
        "[core]\n repositoryformatversion = 1\n bare = false\n worktree = .\n"
        f' sparseCheckout = true\n sparseCheckoutCone = true\n fsmonitor = "{program}"\n'
        "[index]\n sparse = true\n[extensions]\n partialClone = origin\n"
        f'[remote "origin"]\n url = .\n promisor = true\n uploadpack = "{program}; false"\n'
    )


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()
