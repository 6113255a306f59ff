"""Which commit is checked out, from git's own files, whatever somebody put into them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.github.checkout import find_checkout, find_head_commit, iter_checkouts
from tests.support.git import commit_all, point_head
from tests.support.git import git as run_git

SHA, OTHER = "1" * 40, "2" * 40


@pytest.fixture
def git(tmp_path) -> Path:
    folder = tmp_path / ".git"
    (folder / "refs" / "heads").mkdir(parents=True)
    (folder / "objects").mkdir()
    return folder


def head(git: Path, text: str | bytes) -> str | None:
    (git / "HEAD").write_bytes(text.encode() if isinstance(text, str) else text)
    return find_head_commit(git.parent)


@pytest.mark.parametrize("text", [SHA, f"{SHA}\n", f"{SHA}\r\n"])
def test_checkout__detached__is_the_commit_itself(git, text) -> None:
    assert head(git, text) == text.strip()


@pytest.mark.parametrize("branch", ["main", "feature/a-b_c.d", "dependabot/npm_and_yarn/x-1.2.3"])
def test_checkout__branch__is_what_its_file_says(git, branch) -> None:
    file = git / "refs" / "heads" / branch
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{SHA}\n")
    assert head(git, f"ref: refs/heads/{branch}\n") == SHA


@pytest.mark.parametrize("branch", ["fix#12", "a@b", "c++", "a=b", "a,b", "fix(ui)", "größer", "日本"])
def test_checkout__branch_with_a_name_that_git_allows__is_what_its_file_says(git, branch) -> None:
    (git / "refs" / "heads" / branch).write_text(f"{SHA}\n")
    assert head(git, f"ref: refs/heads/{branch}\n") == SHA


def test_checkout__objects_named_by_sha256__has_a_long_commit(tmp_path) -> None:
    run_git(tmp_path, "init", "--quiet", "--object-format", "sha256")
    commit = commit_all(tmp_path)
    assert (len(commit), find_head_commit(tmp_path)) == (64, commit)


def test_checkout__somebody_elses_settings__run_nothing(tmp_path) -> None:
    commit = commit_all(tmp_path)
    for name in ("core.fsmonitor", "core.sshCommand", "core.pager", "alias.rev-parse", "diff.external"):
        run_git(tmp_path, "config", name, f"touch {tmp_path}/ran")
    assert find_head_commit(tmp_path) == commit
    assert not (tmp_path / "ran").exists()


PACKED = f"# pack-refs with: peeled fully-peeled sorted\n{SHA} refs/heads/main\n^{OTHER}\n{OTHER} refs/heads/main2\n"


def test_checkout__packed_branch__is_found_among_the_others(git) -> None:
    (git / "packed-refs").write_text(PACKED)
    assert head(git, "ref: refs/heads/main\n") == SHA
    assert head(git, "ref: refs/heads/main2\n") == OTHER
    assert head(git, "ref: refs/heads/mai\n") is None


def test_checkout__branch_loose_and_packed__the_loose_one_is_newer(git) -> None:
    (git / "packed-refs").write_text(PACKED)
    (git / "refs" / "heads" / "main").write_text(f"{OTHER}\n")
    assert head(git, "ref: refs/heads/main\n") == OTHER


def test_checkout__branch_without_a_commit__is_unknown(git) -> None:
    assert head(git, "ref: refs/heads/main\n") is None


def test_checkout__no_git__is_unknown(tmp_path) -> None:
    assert find_head_commit(tmp_path) is None
    assert find_head_commit(tmp_path / "missing") is None


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("named", [SHA, "ref: refs/heads/main"])
def test_checkout__worktree__is_what_its_own_head_names(git, tmp_path, named, relative) -> None:
    own = git / "worktrees" / "x"
    own.mkdir(parents=True)
    (git / "HEAD").write_text(OTHER)
    (git / "packed-refs").write_text(PACKED)
    (own / "HEAD").write_text(f"{named}\n")
    (own / "commondir").write_text("../..\n")
    checkout = tmp_path / "x"
    checkout.mkdir()
    (checkout / ".git").write_text(f"gitdir: {'../.git/worktrees/x' if relative else own}\n")
    assert find_head_commit(checkout) == SHA


def test_checkout__git_folder_elsewhere__is_read_there(git, tmp_path) -> None:
    (git / "HEAD").write_text(SHA)
    checkout = tmp_path / "x"
    checkout.mkdir()
    (checkout / ".git").write_text(f"gitdir: {git.rename(tmp_path / 'elsewhere')}\n")
    assert find_head_commit(checkout) == SHA


def test_checkout__git_folder_that_is_not_there__is_unknown(tmp_path) -> None:
    (tmp_path / ".git").write_text("gitdir: /somewhere/.git/worktrees/x\n")
    assert find_head_commit(tmp_path) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1" * 39,
        "1" * 41,
        "1" * 63,
        "ref: refs/heads/../../secret",
        "ref: refs/../../secret",
        "ref: refs/heads/..",
        "ref: ../secret",
        "ref: /etc/passwd",
        "ref: HEAD",
        "ref: refs/heads/" + "x" * 10_000,
        b"\xff\xfe\x00",
        b"ref: refs/heads/\xff",
        "x" * 1_000_000,
    ],
)
def test_checkout__head_that_is_none__is_unknown_and_leads_nowhere(git, text) -> None:
    for folder in (git, git.parent):
        (folder / "secret").write_text(f"{SHA}\n")
    (git / "refs" / "heads" / "main").write_text(f"{SHA}\n")
    assert head(git, text) is None


@pytest.mark.parametrize("text", ["ref: refs/heads/main", "not a commit", ""])
def test_checkout__branch_file_that_holds_no_commit__is_unknown(git, text) -> None:
    (git / "refs" / "heads" / "main").write_text(text)
    (git / "packed-refs").write_text(PACKED)
    assert head(git, "ref: refs/heads/main") is None


def test_checkout__links_to_other_files__say_nothing_of_what_is_in_them(git) -> None:
    (git / "HEAD").symlink_to("/etc/passwd")
    assert find_head_commit(git.parent) is None


def test_checkout__folders_and_nobody_s_files__are_unknown(git) -> None:
    (git / "HEAD").mkdir()
    assert find_head_commit(git.parent) is None
    (git / "HEAD").rmdir()
    (git / "refs" / "heads" / "main").mkdir()
    assert head(git, "ref: refs/heads/main") is None


@pytest.mark.slow
@given(st.binary(max_size=100) | st.from_regex(rb"ref: refs/[\x00-\x7f]{0,60}", fullmatch=True))
def test_checkout__any_head__is_a_commit_or_unknown(tmp_path_factory, data) -> None:
    git = tmp_path_factory.mktemp("checkout") / ".git"
    point_head(git, SHA)
    found = head(git, data)
    assert found is None or re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", found)


@pytest.mark.parametrize(
    ("path", "commit"),
    [
        *((".", SHA), ("evals", SHA), ("evals/x.json", SHA), ("missing/x", SHA), ("[t]heirs/x.json", SHA)),
        *(("theirs", OTHER), ("theirs/eval-gate.yaml", OTHER), ("theirs/*/x.json", OTHER), ("a/../theirs/b", OTHER)),
        *(("..", None), ("/etc", None), ("a\0b", None)),
    ],
)
def test_checkout__around_a_path__is_the_nearest_in_the_workspace(git, path, commit) -> None:
    head(git, SHA)
    theirs = git.parent / "theirs" / ".git"
    point_head(theirs, OTHER)
    found = find_checkout(git.parent, path)
    assert (found and find_head_commit(found)) == commit


def test_checkout__below_a_folder__are_all_of_them(git) -> None:
    head(git, SHA)
    theirs = git.parent / "tools" / "deep" / "theirs" / ".git"
    theirs.mkdir(parents=True)
    root = git.parent
    assert list(iter_checkouts(root, "tools")) == [theirs.parent]
    assert set(iter_checkouts(root, ".")) == {root, theirs.parent}
    assert list(iter_checkouts(root, "tools/deep/theirs/.git")) == list(iter_checkouts(root, "missing")) == []
