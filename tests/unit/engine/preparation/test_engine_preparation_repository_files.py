"""Which files count, held against git itself."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from eval_gate.engine.preparation.repository_files import RepositoryFiles
from tests.support.git import commit_all, git

NAMES = (
    "a.log a.txt build/x build/keep/y sub/build/z sub/a.log sub/deep/b.log sub/deep/c.txt doc/a.pdf doc/in/b.pdf"
    " keep.log !odd #odd trail node_modules/p/i.js sub/__pycache__/m.pyc"
)
RULES = {
    "a name": "*.log",
    "a folder": "build/",
    "a path": "/build\nsub/deep/*.log",
    "an exception": "*.log\n!keep.log",
    "an exception in a folder": "build/*\n!build/keep/",
    "no exception below an ignored folder": "build/\n!build/keep/y",
    "any folder": "**/deep/**",
    "folders between": "doc/**/*.pdf",
    "signs and blanks": "\\!odd\n\\#odd\n# comment\n\ntrail   ",
    "a class": "a.[lp]*",
    "everything but": "*\n!*/\n!*.txt",
}


def list_files(root: Path) -> list[str]:
    return sorted(Path(file).relative_to(root).as_posix() for file in RepositoryFiles(root).iter_files(str(root)))


@pytest.mark.parametrize("what", RULES)
def test_repository_files__rules__leave_out_what_git_leaves_out(tmp_path, what) -> None:
    commit_all(tmp_path)
    for name in NAMES.split():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    (tmp_path / ".gitignore").write_text(RULES[what])
    listed = git(tmp_path, "ls-files", "--others", "--exclude-standard").splitlines()
    generated = ("node_modules/", "sub/__pycache__/")
    assert list_files(tmp_path) == sorted(name for name in listed if not name.startswith(generated))


def test_repository_files__rules_of_folders_and_of_the_checkout__hold_from_the_nearest(tmp_path) -> None:
    commit_all(tmp_path)
    for name, text in {
        ".gitignore": "*.a\n*.b\n",
        "x/.gitignore": "!*.a\n",
        "x/1.a": "",
        "x/1.b": "",
        "1.c": "",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / ".git/info/exclude").write_text("*.c\n")
    assert list_files(tmp_path) == [".gitignore", "x/.gitignore", "x/1.a"]


def test_repository_files__what_git_tracks__counts_whatever_rules_and_caches_say(tmp_path) -> None:
    for name in ("x/__pycache__/m.pyc", "node_modules/p/i.js", "deep/a.log"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("1")
    (tmp_path / ".gitignore").write_text("*.log\ndeep/\n")
    commit_all(tmp_path)
    (tmp_path / "deep/b.txt").write_text("1")
    assert list_files(tmp_path) == [".gitignore", "deep/a.log", "node_modules/p/i.js", "x/__pycache__/m.pyc"]


def test_repository_files__folder_of_results__is_left_out_unless_git_tracks_it(tmp_path) -> None:
    for name in ("results/latest.json", "results/a/run.json", "a.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    assert list_files(tmp_path) == ["a.txt"]
    commit_all(tmp_path)
    assert list_files(tmp_path) == ["a.txt", "results/a/run.json", "results/latest.json"]


def test_repository_files__virtual_environment_of_any_name__is_left_out_unless_git_tracks_it(tmp_path) -> None:
    for name in ("env/pyvenv.cfg", "env/lib/x.py", "a.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    assert list_files(tmp_path) == ["a.txt"]
    assert not RepositoryFiles(tmp_path).has_file(f"{tmp_path}/env/lib/x.py")
    commit_all(tmp_path)
    assert list_files(tmp_path) == ["a.txt", "env/lib/x.py", "env/pyvenv.cfg"]


def test_repository_files__fifty_thousand_tracked_files__take_part_of_a_second(tmp_path) -> None:
    commit_all(tmp_path)
    names = [f"{number % 10}/{number % 500}/x/y/{number}.txt" for number in range(50_000)]
    lines = "".join(f"100644 {'1' * 40}\t{name}\n" for name in names)
    git(tmp_path, "update-index", "--add", "--index-info", lines=lines)
    start = time.process_time()
    RepositoryFiles(tmp_path)
    assert time.process_time() - start < 0.3
