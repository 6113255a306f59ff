"""pre-commit with our hook, by the lines of its page: it installs this checkout as its users get it, with no extras."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from eval_gate.errors import ACTION_REF
from tests.support.program import CLEAN
from tests.support.tools import ROOT, Tool
from tests.tools.conftest import installed_or_skip

NEEDED = ("runner", "pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml")
"""What of the checkout makes the package and the hook."""
SUITE = '[{"id": "gs-1", "input": {"message": "Hi"}, "expect": {"responseContains": ["ok"]}}]'
TARGETS = "targets:\n- {name: a, provider: openai, model: m, api_key: '${{ KEY }}'}\n"


@dataclass(frozen=True)
class Team:
    """A repository that uses the hook, and the program."""

    folder: Path
    program: Path
    kept: Path

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command in the repository."""
        named = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        env = CLEAN | named | {"PRE_COMMIT_HOME": str(self.kept), "PIP_NO_INPUT": "1"}
        return subprocess.run(words, cwd=self.folder, env=env, capture_output=True, text=True, timeout=300, check=False)

    def write(self, name: str, text: str) -> None:
        """A file that the next commit holds."""
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text)
        assert self.run("git", "add", name).returncode == 0


@pytest.fixture(scope="module")
def ours(tmp_path_factory) -> Team:
    """A copy of this checkout as a repository, and where pre-commit keeps what it has installed of it."""
    program = installed_or_skip(Tool("pre-commit", "")) / "venv" / "bin" / "pre-commit"
    ours = Team(tmp_path_factory.mktemp("ours"), program, tmp_path_factory.mktemp("kept"))
    for name in NEEDED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, ours.folder / name)
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"], ["tag", ACTION_REF]):
        assert ours.run("git", *words).returncode == 0
    return ours


@pytest.fixture
def team(ours, tmp_path) -> Team:
    """A repository with the lines of docs/cli.md, but for the address."""
    page = (ROOT / "docs" / "cli.md").read_text()
    lines = re.search(r"```yaml\n(repos:\n.*?)```", page, re.DOTALL)
    assert lines
    made = Team(tmp_path, ours.program, ours.kept)
    assert made.run("git", "init", "-q").returncode == 0
    config, times = re.subn("repo: https.*", f"repo: {ours.folder}", lines[1])
    assert times == 1
    made.write(".pre-commit-config.yaml", config)
    made.write("evals/a.golden.json", SUITE)
    made.write("targets.yaml", TARGETS)
    return made


def test_pre_commit__no_secrets_and_no_extras__passes_and_says_what_a_run_needs(team) -> None:
    done = team.run(str(team.program), "run", "--all-files", "--verbose")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "note: targets.yaml:2: targets[a].api_key: the variable KEY is not set" in done.stdout
    assert "1 case in 1 suite: 0 problems, 0 warnings, 2 notes" in done.stdout


def test_pre_commit__commit_with_a_misspelt_assertion__is_refused_with_its_place(team) -> None:
    assert team.run(str(team.program), "install").returncode == 0
    assert team.run("git", "commit", "-qm", "good").returncode == 0
    team.write("evals/b.golden.json", SUITE.replace("responseContains", "responseContain"))
    refused = team.run("git", "commit", "-qm", "bad")
    assert refused.returncode == 1
    assert 'unknown assertion "responseContain" (did you mean "responseContains"?)' in refused.stderr + refused.stdout
    assert team.run("git", "log", "--oneline").stdout.count("\n") == 1
