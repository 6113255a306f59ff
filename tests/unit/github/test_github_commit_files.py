"""Which files are a commit's, from what real git leaves, in every way that it keeps objects."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from eval_gate.files.git_folder import find_git_dir
from eval_gate.github.commit_files import CommitFiles, GitObjects
from tests.support.git import commit_all, git


@pytest.fixture
def checkout(tmp_path) -> Path:
    folder = tmp_path / "checkout"
    (folder / "evals" / "deep").mkdir(parents=True)
    (folder / "evals" / "a.json").write_text("[1]\n")
    (folder / "evals" / "deep" / "größer.json").write_text("[2]\n")
    (folder / "link").symlink_to("evals/deep")
    return folder


def has(folder: Path, name: str, commit: str, data: bytes | None = None) -> bool:
    return CommitFiles(folder, commit).has_content(
        folder / name, (folder / name).read_bytes() if data is None else data
    )


def grow(folder: Path) -> str:
    """Many commits of a large folder, which git keeps as differences; the newest."""
    for number in range(60):
        (folder / f"file-{number:03}.txt").write_text(f"{number}\n" * 50)
    for number in range(3):
        (folder / "file-000.txt").write_text(f"change {number}\n")
        commit = commit_all(folder)
    return commit


@pytest.mark.parametrize("kept", ["loose", "packed", "names", "borrowed", "worktree", "shallow", "sha256"])
def test_commit_files__however_git_keeps_objects__every_file_of_the_commit_is_found(checkout, tmp_path, kept) -> None:
    if kept == "sha256":
        git(checkout, "init", "--quiet", "--object-format", "sha256")
    commit = grow(checkout)
    if kept in {"packed", "names"}:
        more = () if kept == "packed" else ("-c", "repack.useDeltaBaseOffset=false")
        git(checkout, *more, "repack", "-adfq", "--depth=50")
    elif kept in {"borrowed", "shallow"}:
        git(checkout, "repack", "-adfq")
        words = ["--shared"] if kept == "borrowed" else ["--depth", "1"]
        source = str(checkout) if kept == "borrowed" else checkout.as_uri()
        git(tmp_path, "clone", "--quiet", *words, source, "other")
        checkout = tmp_path / "other"
    elif kept == "worktree":
        git(checkout, "worktree", "add", "--quiet", str(tmp_path / "other"), commit)
        checkout = tmp_path / "other"
    listed = git(checkout, "ls-files", "-z").strip("\0").split("\0")
    files = CommitFiles(checkout, commit)
    assert len(listed) == 63
    assert [
        one for one in listed if one != "link" and not files.has_content(Path(one), (checkout / one).read_bytes())
    ] == []


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("evals/a.json", b"[3]\n"),
        ("evals/b.json", b"[1]\n"),
        ("a.json", b"[1]\n"),
        ("evals", b""),
        ("link", b"evals/deep"),
        ("evals/a.json/b", b"[1]\n"),
        ("../evals/a.json", b"[1]\n"),
        ("/etc/passwd", b""),
    ],
)
def test_commit_files__another_content_or_path__is_not_the_commits(checkout, name, data) -> None:
    assert not has(checkout, name, commit_all(checkout), data)


def test_commit_files__older_commit__has_what_it_had(checkout) -> None:
    old = commit_all(checkout)
    (checkout / "evals" / "a.json").write_text("[9]\n")
    new = commit_all(checkout)
    assert (has(checkout, "evals/a.json", old), has(checkout, "evals/a.json", new)) == (False, True)
    assert has(checkout, "evals/a.json", old, b"[1]\n")


def test_commit_files__over_links__each_is_held_against_the_commit(checkout) -> None:
    commit = commit_all(checkout)
    assert has(checkout, "link/größer.json", commit)
    (checkout / "other").symlink_to("evals")
    assert not has(checkout, "other/a.json", commit)
    (checkout / "link").unlink()
    (checkout / "link").symlink_to(checkout / "evals" / "deep")
    assert not has(checkout, "link/größer.json", commit), "a link to the same place, which the commit does not have"
    (checkout / "round").symlink_to("round")
    assert not has(checkout, "round", commit, b"")


def test_commit_files__checkout_below_the_workspace__has_its_own_paths(checkout) -> None:
    commit = commit_all(checkout)
    files = CommitFiles(checkout.parent, commit)
    assert files.has_content(checkout / "evals" / "a.json", b"[1]\n")
    shutil.copytree(checkout / "evals", checkout.parent / "evals")
    assert not files.has_content(checkout.parent / "evals" / "a.json", b"[1]\n")
    assert not files.can_read(checkout.parent / "evals" / "a.json")


def test_commit_files__line_ends_of_windows__are_the_same_file(checkout) -> None:
    commit = commit_all(checkout)
    assert has(checkout, "evals/a.json", commit, b"[1]\r\n")
    assert not has(checkout, "evals/a.json", commit, b"[1]\r")


def test_commit_files__kept_by_git_lfs__its_content_is_known_by_the_pointer(checkout) -> None:
    large = b"many cases\n" * 1_000
    oid = hashlib.sha256(large).hexdigest()
    file = checkout / "evals" / "large.jsonl"
    file.write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(large)}\n")
    commit = commit_all(checkout)
    file.write_bytes(large)
    assert has(checkout, "evals/large.jsonl", commit)
    assert not has(checkout, "evals/large.jsonl", commit, large + b"x")


@pytest.mark.parametrize("how", ["cut", "changed", "another", "none", "no name"])
def test_commit_files__objects_that_are_not_what_they_are_called__are_none(checkout, how) -> None:
    """Whoever can write there can take away, and put nothing in place of what a commit holds."""
    commit = commit_all(checkout)
    objects = GitObjects(checkout / ".git")
    tree = objects.find_tree(commit)
    assert tree is not None
    file = checkout / ".git" / "objects" / tree[:2] / tree[2:]
    data = file.read_bytes()
    file.chmod(0o644)
    if how == "another":
        (checkout / "evals" / "a.json").write_text("[9]\n")
        other = GitObjects(checkout / ".git").find_tree(commit_all(checkout))
        assert other is not None
        data = (checkout / ".git" / "objects" / other[:2] / other[2:]).read_bytes()
    file.write_bytes({"cut": data[:-12], "changed": data[:-1] + b"x", "none": b""}.get(how, data))
    known = "x" * 40 if how == "no name" else commit
    assert not has(checkout, "evals/a.json", known)


def test_commit_files__broken_packs__are_passed_over(checkout) -> None:
    commit = grow(checkout)
    git(checkout, "repack", "-adfq")
    (pack,) = (checkout / ".git" / "objects" / "pack").glob("*.pack")
    pack.chmod(0o644)
    data = pack.read_bytes()
    for broken in (b"", data[:40], data[: len(data) // 2], b"\xff" * len(data)):
        pack.write_bytes(broken)
        assert not has(checkout, "evals/a.json", commit)
    pack.write_bytes(data)
    assert has(checkout, "evals/a.json", commit)


def test_git_dir__of_what_is_no_checkout__is_none(tmp_path) -> None:
    assert find_git_dir(tmp_path) is None
    (tmp_path / ".git").write_text("elsewhere\n")
    assert find_git_dir(tmp_path) is None
