"""`eval-gate measures`: what suites measure, what changed, and what a run would reuse, without a request."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.integration.test_integration_conversations_example import typed_commands
from tests.support.git import commit_all, git
from tests.support.program import gate

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "reuse"
CONFIG = """\
evals: [evals]
target: desk
measures:
  "evals/billing.golden.json": [agents/billing/**, "!**/*.log"]
  "evals/support.golden.json": [agents/support/**]
  "**": [lock.json]
"""
TARGETS = """\
targets:
  - {name: desk, provider: cli, command: "echo {PROMPT}"}
"""


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two suites and their agents, committed."""
    cases = {
        f"evals/{name}.golden.json": json.dumps(
            [{"id": f"gs-{name}", "input": {"message": name}, "expect": {"responseContains": [name]}}]
        )
        for name in ("billing", "support")
    }
    agents = {f"agents/{name}/{file}": "" for name in ("billing", "support") for file in ("prompt.txt", "rules.txt")}
    write(
        tmp_path,
        **cases,
        **agents,
        **{"lock.json": "{}", "eval-gate.yaml": CONFIG, "targets.yaml": TARGETS, "README.md": "", "tools.py": ""},
    )
    commit_all(tmp_path)
    return tmp_path


def explain(folder: Path, *options: str) -> list[str]:
    done = gate(folder, "measures", "--explain", *options)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_measures__suites__are_listed_with_files_patterns_and_problems(repository) -> None:
    write(repository, **{"eval-gate.yaml": CONFIG.replace("agents/support/**", "agents/supprt/**")})
    done = gate(repository, "measures")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "suite                      files  measures",
        "evals/billing.golden.json      3  !**/*.log, agents/billing/**, lock.json",
        "evals/support.golden.json      1  agents/supprt/**, lock.json",
        "  it always runs: `agents/supprt/**` matches no file",
        "1 of 2 suites can be reused",
    ]


def test_measures__glob_that_covers_no_eval_file__is_named(repository) -> None:
    write(repository, **{"eval-gate.yaml": CONFIG.replace("evals/support", "evals/suport")})
    warning = '"evals/suport.golden.json" in `measures` covers no eval file'
    assert warning in gate(repository, "measures").stdout
    assert f"⚠ {warning}" in gate(repository, "run").stdout
    for command in ("run", "validate"):
        done = gate(repository, command, "evals/billing.golden.json")
        assert (done.returncode, warning in done.stdout + done.stderr) == (0, False)


def test_measures__no_suite_measures__says_that_all_run(repository) -> None:
    write(repository, **{"eval-gate.yaml": CONFIG.partition("measures:")[0]})
    done = gate(repository, "measures", "--explain")
    assert (done.returncode, done.stdout.startswith("no suite measures files")) == (0, True)


def test_explain__changed_files__those_that_no_suite_measures_come_first(repository) -> None:
    commit = git(repository, "rev-parse", "--short=7", "HEAD")
    changed = ["agents/support/prompt.txt", "agents/support/rules.txt"]
    write(repository, **{changed[0]: "new", "agents/shared.py": "", "README.md": "new"})
    (repository / "docs").mkdir()
    git(repository, "mv", "tools.py", "docs/tools.md")
    git(repository, "rm", "--quiet", changed[1])
    assert explain(repository) == [
        f"changed since {commit}, and no suite measures it:",
        "  agents/shared.py",
        "  tools.py",
        "",
        f"a run, by the changed files, if there is a passed run of {commit}:",
        f"  evals/support.golden.json: runs: measured files changed ({', '.join(changed)})",
        "  evals/billing.golden.json: reused",
        "",
        "measured by evals/billing.golden.json:",
        "  agents/billing/prompt.txt",
        "  agents/billing/rules.txt",
        "  lock.json",
        "",
        "measured by evals/support.golden.json:",
        "  agents/support/prompt.txt",
        "  lock.json",
        "",
        *gate(repository, "measures").stdout.splitlines(),
    ]


def test_explain__file_behind_a_link_and_run_in_a_subfolder__are_known_by_their_places(repository) -> None:
    service = repository / "service"
    service.mkdir()
    for name in ("evals", "agents", "lock.json", "eval-gate.yaml", "targets.yaml"):
        git(repository, "mv", name, f"service/{name}")
    write(service, **{"shared/rules.txt": ""})
    (service / "agents/support/shared.txt").symlink_to("../../shared/rules.txt")
    commit_all(repository)
    write(service, **{"shared/rules.txt": "new"})
    write(repository, **{"tools.py": "new"})
    assert explain(service)[1:5:3] == [
        "  ../tools.py",
        "  evals/support.golden.json: runs: measured files changed (shared/rules.txt)",
    ]


DESK = "targets:\n  - {name: desk, provider: "
CHANGES = {
    "evals/billing.golden.json": "",
    "eval-gate.yaml": "",
    "targets.yaml": "",
    "desk.md": f"{DESK}openai-compatible, base_url: 'http://x/v1', model: m, system_prompt_path: desk.md}}\n",
    "agents/support/prompt.txt": f"{DESK}cli, command: 'echo {{PROMPT}}', env: {{KEY: '${{{{ AGENT_KEY }}}}'}}}}\n",
}
"""Files that change, and the targets there, whose variable is not set; the usual ones without."""


@pytest.mark.parametrize("file", CHANGES)
def test_explain__file_changed__all_suites_run_if_it_is_of_the_setup(repository, file) -> None:
    write(repository, **{"targets.yaml": CHANGES[file] or TARGETS, "desk.md": "Be short."})
    commit_all(repository)
    with (repository / file).open("a") as stream:
        stream.write("\n")
    lines = explain(repository)
    is_measured = file.startswith("agents")
    why = "measured files" if is_measured else "the setup"
    assert f"  evals/support.golden.json: runs: {why} changed ({file})" in lines
    assert ("  evals/billing.golden.json: reused" in lines) is is_measured
    assert not any("no suite measures it" in line for line in lines)


def test_explain__branch__its_changes_count_from_where_it_left_origin(repository) -> None:
    git(repository, "update-ref", "refs/remotes/origin/main", "HEAD")
    write(repository, **{"lock.json": "[]"})
    commit_all(repository)
    assert "  evals/billing.golden.json: runs: measured files changed (lock.json)" in explain(repository)
    assert "  evals/billing.golden.json: reused" in explain(repository, "--since", "HEAD")


def test_explain__unknown_commit__is_a_usage_error(repository) -> None:
    done = gate(repository, "measures", "--explain", "--since", "--output=x")
    assert (done.returncode, "git knows no commit" in done.stderr) == (2, True)
    assert not (repository / "x").exists()


def test_explain__no_checkout__shows_the_rest(repository) -> None:
    shutil.rmtree(repository / ".git")
    assert explain(repository)[0] == "what changed is unknown, because git does not say"


def test_example__as_its_page_says__executes_only_the_suite_whose_desk_changed(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    first, again, explained, changed = typed_commands(EXAMPLE)
    commit_all(tmp_path)
    assert gate(tmp_path, *first).returncode == 0
    done = gate(tmp_path, *again)
    assert (done.returncode, "4 of 4 pass" in done.stdout) == (0, True), done.stderr
    assert "Reused 2 of 2 suites" in done.stdout
    rules = tmp_path / "desks" / "refunds.json"
    rules.write_text(rules.read_text().replace("30 days", "14 days"))
    shown = gate(tmp_path, *explained).stdout.splitlines()
    assert "  evals/refunds.golden.json: runs: measured files changed (desks/refunds.json)" in shown
    done = gate(tmp_path, *changed)
    assert (done.returncode, "Reused 1 of 2 suites" in done.stdout) == (1, True), done.stdout
    assert "gs-refunds-001" in done.stdout
