"""Which files git tracks, from its index as real git writes it, whatever somebody put into it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.github.checkout import TrackedFiles
from eval_gate.process.git import read_tracked_names
from tests.support.git import point_head

NAMES = ["a.json", "evals/results/one/run.json", "evals/results/one/run.md", "evals/ü/x y.json", "z" * 200]


def git(folder: Path, *words: str) -> None:
    told = ["-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *told, *words], cwd=folder, check=True, capture_output=True)


def repository(folder: Path, *options: str, names: list[str] = NAMES) -> Path:
    folder.mkdir(exist_ok=True)
    git(folder, "init", *options)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    git(folder, "add", "-A")
    return folder


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("digest", ["sha1", "sha256"])
def test_tracked__index_of_any_version__has_every_name(tmp_path, version, digest) -> None:
    made = repository(tmp_path / "repo", f"--object-format={digest}")
    (made / "new.json").write_text("x")
    git(made, "add", "--intent-to-add", "new.json")  # which needs version 3
    git(made, "update-index", f"--index-version={version}")
    assert read_tracked_names(made / ".git") == {name.encode() for name in [*NAMES, "new.json"]}


def test_tracked__split_index__has_every_name(tmp_path) -> None:
    made = repository(tmp_path / "repo")
    git(made, "update-index", "--split-index")
    assert TrackedFiles(made).is_tracked(made / "a.json") is True


def test_tracked__no_index__cannot_be_told(tmp_path) -> None:
    made = repository(tmp_path / "repo")
    (made / ".git" / "index").unlink()
    assert TrackedFiles(made).is_tracked(made / "a.json") is None


@given(st.binary(max_size=300))
def test_tracked__index_that_is_none__is_told_apart_from_an_empty_one(tmp_path_factory, data) -> None:
    folder = tmp_path_factory.mktemp("any")
    point_head(folder / ".git", "1" * 40)
    for begins in (b"", b"DIRC\0\0\0\2\0\0\0\1", b"DIRC\0\0\0\4\0\0\0\3", b"DIRC\0\0\0\2\xff\xff\xff\xff"):
        (folder / ".git" / "index").write_bytes(begins + data)
        assert read_tracked_names(folder / ".git") != frozenset()


def test_has__file_link_folder_and_submodule__counts_what_leads_there(tmp_path) -> None:
    other = repository(tmp_path / "other", names=["run.json"])
    git(other, "commit", "-m", "x")
    made = repository(tmp_path / "repo")
    (made / "link").symlink_to(tmp_path / "elsewhere")
    (made / "inside").symlink_to("untracked")
    git(made, "add", "link", "inside")
    git(made, "submodule", "add", str(other), "sub")
    files = TrackedFiles(made)
    for path in ("a.json", "link/run.json", "inside/run.json", "sub/run.json", "sub/untracked.json"):
        assert files.is_tracked(made / path) is True, path
    (made / "untracked").mkdir()
    assert files.is_tracked(made / "untracked" / "run.json") is False
    (made / "untracked" / "link").symlink_to("../evals/results")
    assert files.is_tracked(made / "untracked" / "link" / "one" / "run.json") is True


def test_has__no_checkout__cannot_be_told_and_outside_is_nobody_s(tmp_path) -> None:
    (tmp_path / "workspace").mkdir()
    files = TrackedFiles(tmp_path / "workspace")
    assert files.is_tracked(tmp_path / "workspace" / "run.json") is None
    assert files.is_tracked(tmp_path / "temp" / "run.json") is False


def test_has__checkout_below_the_workspace_and_a_worktree__have_indexes_of_their_own(tmp_path) -> None:
    made = repository(tmp_path / "repo")
    git(made, "commit", "-m", "x")
    git(made, "worktree", "add", "../trees/tree")
    files = TrackedFiles(tmp_path / "trees")
    assert files.is_tracked(tmp_path / "trees" / "tree" / "a.json") is True
    assert files.is_tracked(tmp_path / "trees" / "tree" / "b.json") is False
    assert files.is_tracked(tmp_path / "trees" / "b.json") is None
