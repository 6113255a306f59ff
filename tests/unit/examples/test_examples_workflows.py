"""Workflows that people copy, and our own: linted, with inputs that exist, and pages that lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml

from eval_gate.action.inputs import INPUTS
from eval_gate.errors import ACTION_REF
from tests.support.newcomer import blocks

ROOT = Path(__file__).parents[3]
BIN = Path(sys.executable).parent
EXAMPLES = sorted((ROOT / "examples" / "workflows").glob("*.yml"))
OWN = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WORKFLOWS = [*EXAMPLES, *OWN]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
HOST = (f"eval-gate/eval-gate/host@{ACTION_REF}", "./host")
OURS = (f"eval-gate/eval-gate@{ACTION_REF}", "./", *HOST)
LINTERS = {
    "actionlint": ("actionlint", "-no-color"),
    # a finding of any severity is an exit code; what is ignored is ignored in the file, with its reason
    "zizmor": ("zizmor", "--offline", "--no-progress", "--format=plain"),
    "schema": ("check-jsonschema", "--builtin-schema", "vendor.github-workflows"),
}


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def lint(linter: str, *files: Path) -> subprocess.CompletedProcess[str]:
    program, *options = LINTERS[linter]
    # shellcheck would have a say where it happens to be installed, and nowhere else
    alone = ["-shellcheck="] if linter == "actionlint" else []
    return subprocess.run(
        [BIN / program, *options, *alone, *files],
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def jobs_of(file: Path) -> Iterator[dict]:
    yield from yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"].values()


def steps_of(file: Path) -> Iterator[dict]:
    for job in jobs_of(file):
        yield from job.get("steps", ())


def prose(page: Path) -> str:
    """The page without its blocks of code."""
    return re.sub(r"^(```|~~~).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("linter", LINTERS)
def test_workflows__all_of_them__pass_the_linter(linter) -> None:
    done = lint(linter, *WORKFLOWS)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("linter", "good", "bad"),
    [
        ("actionlint", "runs-on: ubuntu-24.04", "runs-on: ubuntu-5.10"),
        ("zizmor", "pull_request:", "pull_request_target:"),
        ("schema", "runs-on: ubuntu-24.04", "runs-on: 24.04"),
    ],
)
def test_workflows__with_a_mistake__are_found_by_the_linter(tmp_path, linter, good, bad) -> None:
    text = (ROOT / "examples" / "workflows" / "agent-in-a-step.yml").read_text(encoding="utf-8")
    assert good in text
    broken = tmp_path / "broken.yml"
    broken.write_text(text.replace(good, bad), encoding="utf-8")
    assert lint(linter, broken).returncode != 0


@pytest.mark.parametrize("file", WORKFLOWS, ids=shown)
def test_workflow__uses_our_action__with_inputs_that_exist(file) -> None:
    ours = [step for step in steps_of(file) if step.get("uses") in OURS]
    assert ours or file in OWN
    for step in ours:
        known = {one.name for one in INPUTS if step["uses"] in HOST or not one.host_only}
        assert step.get("with", {}).keys() <= known


@pytest.mark.parametrize("file", WORKFLOWS, ids=shown)
def test_workflow__uses_actions_of_others__pinned_to_a_commit_with_the_version_beside_it(file) -> None:
    text = file.read_text(encoding="utf-8")
    for uses in (step["uses"] for step in steps_of(file) if "uses" in step):
        if uses not in OURS:
            assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", uses)
            assert re.search(rf"{re.escape(uses)} # v\d+\.\d+\.\d+", text)


def test_workflows__one_action_in_several__are_pinned_to_one_commit() -> None:
    pins: dict[str, set[str]] = {}
    enterprise = {"upload-artifact.yml"}  # only an old version works there
    files = [file for file in EXAMPLES if file.name not in enterprise]
    for uses in (step["uses"] for file in files for step in steps_of(file) if "uses" in step):
        name, _, commit = uses.partition("@")
        pins.setdefault(name, set()).add(commit)
    assert {name: commits for name, commits in pins.items() if len(commits) > 1} == {}


@pytest.mark.parametrize("file", EXAMPLES, ids=shown)
def test_example__as_it_is_copied__says_what_for_and_is_bounded(file) -> None:
    text = file.read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert text.startswith("# ")
    assert workflow["permissions"] == {}
    assert "concurrency" in workflow
    for job in jobs_of(file):
        assert job["timeout-minutes"] <= 120
        assert "permissions" in job
    checkouts = [step for step in steps_of(file) if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def steps_of_block(block: str) -> list[dict]:
    """The steps that a block of YAML on a page shows, in a list or in its jobs; none where it shows something else."""
    shown = yaml.safe_load(block)
    jobs = shown.get("jobs", {"": shown}) if isinstance(shown, dict) else {"": {"steps": shown}}
    return [step for job in jobs.values() for step in job.get("steps", ()) if isinstance(step, dict)]


STEPS = {shown(file): list(steps_of(file)) for file in EXAMPLES} | {
    f"{shown(page)}:{at}": steps_of_block(text)
    for page in PAGES
    for at, (language, text) in enumerate(blocks(page.read_text(encoding="utf-8")))
    if language == "yaml" and "pip install" in text
}


@pytest.mark.parametrize("place", STEPS)
def test_workflow__installs_packages_of_python__into_a_python_that_allows_it(place) -> None:
    """The one of the system refuses `pip install` on Ubuntu 24.04 and Debian 12 (PEP 668)."""
    own = False
    for step in STEPS[place]:
        own |= step.get("uses", "").startswith("actions/setup-python@")
        assert own or not re.search(r"^\s*pip install", step.get("run", ""), flags=re.MULTILINE)


def test_fork_publish__which_has_a_token_that_may_write__checks_out_nothing_but_the_default_branch() -> None:
    file = ROOT / "examples" / "workflows" / "fork-publish.yml"
    assert [step.get("uses", "").partition("@")[0] for step in steps_of(file)] == [
        "actions/checkout",
        "eval-gate/eval-gate",
    ]
    assert not any({"ref", "repository"} & set(step.get("with", {})) for step in steps_of(file))
    first = yaml.safe_load((file.parent / "fork-evals.yml").read_text(encoding="utf-8"))
    # YAML 1.1 reads the key `on` as true
    assert yaml.safe_load(file.read_text(encoding="utf-8"))[True]["workflow_run"]["workflows"] == [first["name"]]


@pytest.mark.parametrize("file", EXAMPLES, ids=shown)
def test_example__for_users__is_linked_from_a_page(file) -> None:
    assert any(f"../{shown(file)})" in page.read_text(encoding="utf-8") for page in PAGES)


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_page__relative_links__lead_to_files_and_headings_that_exist(page) -> None:
    missing = []
    for link in re.findall(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)", prose(page)):
        if re.match(r"[a-z][a-z0-9+.-]*:|//", link, re.IGNORECASE):
            continue
        path, _, fragment = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (fragment and target.suffix == ".md" and fragment not in headings(target)):
            missing.append(link)
    assert missing == []


def headings(page: Path) -> set[str]:
    """The fragments that GitHub gives the headings of a page."""
    found = re.findall(r"^#{1,6}\s+(.*?)\s*$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}
