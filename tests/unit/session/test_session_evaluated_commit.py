"""Which commit a result belongs to."""

import subprocess

from eval_gate.model.result import GitFacts
from eval_gate.session.evaluated_commit import find_git_facts


def test_git_facts__in_a_workflow__are_the_workflows(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    environment = {"GITHUB_SHA": "abc", "GITHUB_REF": "refs/pull/1/merge", "GITHUB_REPOSITORY": "acme/bot"}
    assert find_git_facts(environment, tmp_path) == GitFacts(sha="abc", ref="refs/pull/1/merge", repository="acme/bot")


def test_git_facts__in_a_checkout__are_gits(tmp_path) -> None:
    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", *identity, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init", "--initial-branch", "topic")
    assert find_git_facts({}, tmp_path) is None
    git("commit", "--allow-empty", "--message", "first")
    head = git("rev-parse", "HEAD")
    assert find_git_facts({}, tmp_path) == GitFacts(sha=head, ref="refs/heads/topic")
    assert find_git_facts({"GITHUB_SHA": "abc"}, tmp_path) == GitFacts(sha="abc", workspace_sha=head)


def test_git_facts__nowhere__are_unknown(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert find_git_facts({}, tmp_path) is None
    monkeypatch.setenv("PATH", "")
    assert find_git_facts({}, tmp_path) is None


def test_git_facts__in_a_job__name_run_attempt_and_job(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = {"GITHUB_SHA": "abc", "GITHUB_RUN_ID": "7", "GITHUB_RUN_ATTEMPT": "2", "GITHUB_JOB": "evals"}
    assert find_git_facts(told, tmp_path) == GitFacts(sha="abc", run_id=7, attempt=2, job="evals")
    odd = told | {"GITHUB_RUN_ID": "9" * 40, "GITHUB_RUN_ATTEMPT": "two", "GITHUB_JOB": "x" * 500}
    assert find_git_facts(odd, tmp_path) == GitFacts(sha="abc", job="x" * 200)
