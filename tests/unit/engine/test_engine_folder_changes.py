"""Changes of a folder: what git itself would say of them, and bounds on the work."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.engine.case_workspaces import format_changes
from eval_gate.sandbox.paths import SandboxError
from eval_gate.sandbox.sandbox import InitialFile
from tests.support.bounds import within_cpu

LINES = "".join(f"line {number}\n" for number in range(30)).encode()
CALM = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
}


def files(content: Mapping[str, bytes]) -> list[InitialFile]:
    return [InitialFile(path, data) for path, data in content.items()]


def run_git(folder: Path, *arguments: str, given: bytes | None = None) -> bytes:
    done = subprocess.run(["git", *arguments], cwd=folder, input=given, env=CALM, capture_output=True, check=True)
    return done.stdout


def put(folder: Path, content: Mapping[str, bytes]) -> None:
    for path, data in content.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


def ask_git(folder: Path, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> str:
    """What git says of the same change."""
    put(folder, before)
    run_git(folder, "init", "--quiet")
    run_git(folder, "add", "--all")
    run_git(folder, "commit", "--quiet", "--allow-empty", "--message", "before")
    for path in before.keys() - after.keys():
        (folder / path).unlink()
    put(folder, after)
    run_git(folder, "add", "--all")
    return run_git(folder, "diff", "HEAD").decode("utf-8", "replace")


@pytest.mark.contract("agentv.today.workspace")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"a.txt": b"one\ntwo\n"}),
        ({}, {"a.txt": b"no end", "b/c.txt": b"", "d e": b"x\n"}),
        ({"a.txt": b"one\n"}, {}),
        ({"a.txt": b"one\n"}, {"b/a.txt": b"one\n"}),
        ({"a.txt": b"one\n", "c": b"one\n"}, {"b/c": b"one\n"}),
        ({"a.txt": b"one"}, {"a.txt": b"one\n"}),
        ({"a.txt": LINES}, {"a.txt": LINES.replace(b"line 5\n", b"five\n").replace(b"line 25\n", b"")}),
        ({"a.txt": LINES}, {"a.txt": LINES.replace(b"line 5\n", b"five\n").replace(b"line 12\n", b"more\n")}),
        ({"a.txt": LINES}, {"a.txt": LINES.replace(b"line 5\n", b"five\n").replace(b"line 13\n", b"more\n")}),
        ({"a.txt": b"  x\n" * 9 + LINES}, {"a.txt": b"  x\n" * 9 + LINES + b"\x00"}),
        ({"a.bin": b"\x00\x01"}, {"a.bin": b"\x00\x02"}),
        ({}, {'caf\u00e9 "q".txt': b"\xff\xfe\n"}),
    ],
    ids=[
        *("added", "added without end, empty, with a blank", "removed", "moved", "moved, to the same name"),
        *("end of line", "two places", "two near places", "two places apart", "made binary", "binary", "quoted"),
    ],
)
def test_format_changes__change__is_told_as_git_tells_it(tmp_path, before, after) -> None:
    assert format_changes(files(before), files(after)) == ask_git(tmp_path, before, after)


def test_format_changes__executable_bit__is_told_as_git_tells_it() -> None:
    plain, marked = InitialFile("a.sh", b"x\n"), InitialFile("a.sh", b"x\n", executable=True)
    assert format_changes([plain], [marked]) == "diff --git a/a.sh b/a.sh\nold mode 100644\nnew mode 100755\n"
    assert "new file mode 100755\n" in format_changes([], [marked])


def test_format_changes__names_that_git_may_not_store__are_told_or_left_out() -> None:
    names = ["git~1/config", ".git\u200c", "a\\b", ' "\n', "-x", "new\nline"]
    found = format_changes([], files(dict.fromkeys([*names, ".git/config", "sub/.GIT/config"], b"x\n")))
    assert found.count("new file mode") == len(names)


def test_format_changes__no_git__is_an_error(monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SandboxError, match="git is missing"):
        format_changes([], files({"a": b"x"}))


def test_format_changes__nothing_changed__is_empty() -> None:
    assert format_changes(files({"a": b"x"}), [*files({"a": b"x"}), InitialFile("folder", None)]) == ""


@given(st.lists(st.sampled_from("abc}"), max_size=25), st.lists(st.sampled_from("abc}"), max_size=25))
def test_format_changes__any_lines__can_be_applied(tmp_path_factory, before: list[str], after: list[str]) -> None:
    """Which of several equal lines is shown as new may differ from git; what comes out of it may not."""
    old, new = ("".join(f"{line}\n" for line in lines).encode() for lines in (before, after))
    folder = tmp_path_factory.mktemp("applied")
    put(folder, {"a.txt": old})
    changes = format_changes(files({"a.txt": old}), files({"a.txt": new}))
    if changes:
        run_git(folder, "apply", "-", given=changes.encode())
    assert (folder / "a.txt").read_bytes() == new


def test_format_changes__two_long_files_of_two_words__are_compared_within_bounds() -> None:
    old, new = (b"".join(b"ab\n"[(k * step) % 7 % 2 :: 2] for k in range(30_000)) for step in (3, 5))
    with within_cpu(20):
        changes = format_changes(files({"a": old}), files({"a": new}))
    assert changes.startswith("diff --git a/a b/a\n")


def test_format_changes__more_than_graders_get__is_an_error() -> None:
    with pytest.raises(SandboxError, match="too long"):
        format_changes([], files({"a": b"x\n" * 60}), limit=150)
