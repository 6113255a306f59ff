"""The one constant ACTION_REF: everything that people copy names the branch or tag that there is."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from eval_gate import __version__
from eval_gate.errors import ACTION_REF
from tests.integration.test_integration_run import ROOT, gate
from tests.support.write_refs import find_refs, list_files, write_refs

ALONE = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
PACKAGE = Path("runner", "eval_gate")
STARTED = {
    "agent": (),
    "elsewhere": ("--agent-endpoint", "https://agent.example.com/chat"),
    "model": ("--provider", "openai", "--model", "gpt-5"),
    "host": ("--agent-command", "node agent.js {PROMPT}"),
}


@pytest.mark.parametrize("kind", STARTED)
def test_init__whatever_it_writes_and_says__names_the_one_ref(tmp_path, kind) -> None:
    done = gate(tmp_path, "init", *STARTED[kind], **ALONE)
    assert done.returncode == 0, done.stderr
    texts = [file.read_text() for file in tmp_path.rglob("*") if file.is_file()]
    refs = [ref for text in [*texts, done.stdout, done.stderr] for ref in find_refs(text)]
    assert refs
    assert set(refs) == {ACTION_REF}


def test_pages_examples_and_package__name_the_one_ref() -> None:
    texts = {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in list_files()}
    assert {"README.md", "docs/getting-started.md", "examples/workflows/agent-in-a-step.yml"} <= texts.keys()
    others = {name: set(find_refs(text)) - {ACTION_REF} for name, text in texts.items()}
    assert {name: refs for name, refs in others.items() if refs} == {}, "run `make action`"


@pytest.mark.parametrize("ref", ["v1", "v1.2.3", "master", "main"])
@pytest.mark.parametrize(
    "text",
    [
        "- uses: eval-gate/eval-gate@{} # why",
        "- uses: eval-gate/eval-gate/host@{}",
        'pip install "git+https://github.com/eval-gate/eval-gate@{}"',
        'pip install "git+https://github.com/eval-gate/eval-gate.git@{}"',
        "See https://github.com/eval-gate/eval-gate/blob/{}/docs/cli.md.",
        "repo: https://github.com/eval-gate/eval-gate\n    rev: {}\n",
    ],
)
def test_text__any_spelling_of_a_ref__is_found_and_written_anew(text, ref) -> None:
    assert find_refs(text.format(ref)) == [ref]
    assert write_refs(text.format(ref), "v7") == text.format("v7")


def test_text__package_without_a_ref__gets_one() -> None:
    text = "pip install 'agent-eval-gate[models] @ git+https://github.com/eval-gate/eval-gate'"
    assert find_refs(text) == [""]
    assert write_refs(text, "v7") == f"{text[:-1]}@v7'"


@pytest.mark.parametrize("text", ["https://github.com/eval-gate/eval-gate", "uses: acme/eval-gate@v1", "a@v1"])
def test_text__without_a_ref_of_ours__stays(text) -> None:
    assert write_refs(text, "v7") == text


@pytest.mark.parametrize(("ref", "code"), [("v3", 0), ("main", 1), ("v2", 1)])
def test_release__ref_is_not_the_major_tag__is_refused_before_anything_is_built(tmp_path, ref, code) -> None:
    changes = {
        "__init__.py": (f'__version__ = "{__version__}"', '__version__ = "3.4.5"'),
        "errors.py": (f'ACTION_REF: Final = "{ACTION_REF}"', f'ACTION_REF: Final = "{ref}"'),
    }
    (tmp_path / PACKAGE).mkdir(parents=True)
    for name, (now, then) in changes.items():
        text = (ROOT / PACKAGE / name).read_text(encoding="utf-8")
        assert f"{now}\n" in text
        (tmp_path / PACKAGE / name).write_text(text.replace(now, then), encoding="utf-8")
    (tmp_path / "git").write_text("#!/bin/sh\n")  # the tag is on main, and so are its workflows
    (tmp_path / "git").chmod(0o755)
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
    (script,) = (one["run"] for one in workflow["jobs"]["check"]["steps"] if one.get("name", "").startswith("Version"))
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    bash = shutil.which("bash")
    assert bash
    done = subprocess.run(
        [bash, "-eo", "pipefail", "-c", script],
        cwd=tmp_path, env={"PATH": path, "TAG": "v3.4.5"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    assert ("::error::ACTION_REF is" in done.stdout) == bool(code)
