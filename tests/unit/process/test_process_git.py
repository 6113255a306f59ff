"""git is asked about a checkout, and starts nothing that a folder of it names."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from eval_gate.process.git import find_checkout, run_git
from tests.support.traps import bare_repository


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    place = tmp_path / "checkout"
    place.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=place, check=True)
    return place


@pytest.mark.parametrize("arguments", [("ls-files", "--cached"), ("check-ignore", "--", "b/file")])
def test_ask__folder_that_git_takes_for_a_repository__its_programs_are_not_run(checkout, tmp_path, arguments) -> None:
    bare_repository(checkout / "tmp", f"touch {tmp_path}/ran")
    run_git(checkout / "tmp", *arguments)
    assert not (tmp_path / "ran").exists()
    subprocess.run(["git", *arguments], cwd=checkout / "tmp", check=False, capture_output=True)
    assert (tmp_path / "ran").exists(), "the trap works where git is asked in it"


def test_ask__outside_of_a_checkout__nothing_is_run_either(tmp_path) -> None:
    bare_repository(tmp_path / "tmp", f"touch {tmp_path}/ran")
    assert run_git(tmp_path / "tmp", "ls-files") is None
    assert not (tmp_path / "ran").exists()


def test_ask__below_the_top__is_asked_at_the_top(checkout) -> None:
    (checkout / "a" / "b").mkdir(parents=True)
    (checkout / "a" / "b" / "x").touch()
    assert run_git(checkout / "a" / "b", "ls-files", "-z", "--others", "--", "a") == b"a/b/x\0"
    assert find_checkout(checkout / "a" / "b") == checkout.resolve()


def test_ask__keys_of_ours__are_not_gits(checkout, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    said = run_git(checkout, "-c", "alias.say=!env", "say")
    assert said is not None
    assert b"PATH=" in said
    assert b"sk-secret" not in said


def test_ask__git_ends_with_an_error__is_none(checkout) -> None:
    assert run_git(checkout, "rev-parse", "--verify", "--quiet", "refs/heads/none") is None
