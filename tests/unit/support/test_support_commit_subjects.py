"""Subjects of commits: the rule, which commits it holds for, and that lint says which one breaks it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.commit_subjects import find_problem, main


@pytest.mark.parametrize(
    "subject",
    [
        "Install every lock as it is",
        "http: use one client for all agents",
        "github, action: read the baseline once",
        "Process results of other tools in order",
        "Need a name for each target",
        "Merge 8f3c6a1d2b4e5f60718293a4b5c6d7e8f9012345 into 0123456789abcdef0123456789abcdef01234567",
        'Revert "A subject that was written before the rule, and that has seventy-two characters or more"',
    ],
)
def test_subject__imperative_and_short__is_fine(subject: str) -> None:
    assert find_problem(subject) is None


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        ("Fix " + "x" * 69, "73 characters"),
        ("Fix the lock.", "full stop"),
        ("Fixed the lock", "'Fixed' is"),
        ("http: uses one client", "'uses' is"),
        ("Adding a test", "'Adding' is"),
        ("A plain address is read without httpx", "'A' is"),
        ("", "verb"),
    ],
)
def test_subject__of_another_form__says_what_is_wrong(subject: str, said: str) -> None:
    assert said in (find_problem(subject) or "")


class Repository:
    """A repository whose commits have nothing but subjects."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "--quiet")

    def git(self, *words: str) -> str:
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        command = ["git", *who, *words]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=True).stdout.strip()

    def commit(self, subject: str) -> str:
        self.git("commit", "--quiet", "--allow-empty", "--message", subject)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_commits__before_the_rule__are_left_alone_and_new_ones_are_named(repository: Repository, capsys) -> None:
    base = repository.commit("The way it was before")
    repository.commit("Add a thing")
    assert main(repository.folder, base) == 0
    wrong = repository.commit("Added a thing")
    repository.commit("Add another thing")
    assert main(repository.folder, base) == 1
    said = capsys.readouterr().err
    assert wrong[:7] in said
    assert "'Added' is not an imperative" in said
    assert "before" not in said


def test_commits__clone_without_history__looks_at_the_newest_only(repository: Repository) -> None:
    repository.commit("Added a thing")
    repository.commit("Add a thing")
    assert main(repository.folder, "0" * 40) == 0
    repository.commit("Added a thing")
    assert main(repository.folder, "0" * 40) == 1


def test_commits__no_repository__passes(tmp_path: Path) -> None:
    assert main(tmp_path) == 0
