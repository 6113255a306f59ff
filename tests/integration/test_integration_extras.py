"""An installation without extras: it asks agents over HTTP, and names the extra of what it was made without."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from eval_gate.errors import ACTION_REF

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
START = "import sys; sys.path[:0] = sys.argv.pop(1).split(':'); from eval_gate.cli.main import main; main()"
ENDPOINT = ("--agent-endpoint", "http://127.0.0.1:9")
EXTRAS = PROJECT["optional-dependencies"]
WORKFLOW = {
    "INPUT_GITHUB-TOKEN": "t",
    "GITHUB_API_URL": "http://127.0.0.1:9",
    "GITHUB_EVENT_NAME": "push",
    "GITHUB_EVENT_PATH": "event.json",
    "GITHUB_REPOSITORY": "a/b",
    "GITHUB_RUN_ID": "1",
    "GITHUB_SHA": "a" * 40,
    "GITHUB_WORKSPACE": ".",
}
ASKED: dict[str, tuple[list[str], dict[str, str]]] = {
    "calling a model": (["run", "--model", "openai:gpt-4o"], {"OPENAI_API_KEY": "sk-1"}),
    "listing the tools of an MCP server": (["run", *ENDPOINT, "--tool-registry", "http://127.0.0.1:9/mcp"], {}),
    "calling GitHub": (["action"], WORKFLOW),
    "the store s3://bucket/gate": (["run", *ENDPOINT, "--store", "s3://bucket/gate"], {}),
}
SUITE = [{"id": "gs-1", "input": {"message": "x"}, "expect": {"responseNonEmpty": True}}]


def needed(requirements: list[str]) -> set[str]:
    """The packages that these requirements bring, all told, by the names they are installed under."""
    found: set[str] = set()
    asked = [(Requirement(one), "") for one in requirements]
    while asked:
        requirement, extra = asked.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = requirement.name.lower().replace("_", "-")
        below = [Requirement(one) for one in distribution(name).requires or ()]
        extras = requirement.extras if name in found else {"", *requirement.extras}
        found.add(name)
        asked += [(one, extra) for extra in extras for one in below]
    return found


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> str:
    """A path for modules with what `pip install .` brings, and nothing else that is installed here."""
    folder = tmp_path_factory.mktemp("site-packages")
    for name in needed(PROJECT["dependencies"]):
        installed = distribution(name)
        for top in {file.parts[0] for file in installed.files or () if file.parts[0] != ".."} - {"__pycache__"}:
            there = folder / top
            if not there.exists():
                there.symlink_to(Path(str(installed.locate_file(top))))
    return f"{ROOT / 'runner'}:{folder}"


def gate(bare: str, folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    (folder / "evals").mkdir(exist_ok=True)
    (folder / "evals/a.golden.json").write_text(json.dumps(SUITE))
    (folder / "event.json").write_text('{"repository": {"default_branch": "main", "full_name": "a/b"}}')
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", START, bare, *arguments],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )


def test_installation__without_extras__runs_evals_against_an_agent(bare, tmp_path) -> None:
    done = gate(bare, tmp_path, "demo")
    assert "In a pull request, this gate would exit with 1" in done.stderr


def test_installation__without_extras__is_half_of_the_packages() -> None:
    extras = [one for name, extra in EXTRAS.items() if name != "all" for one in extra]
    assert 2 * len(needed(PROJECT["dependencies"])) < len(needed([*PROJECT["dependencies"], *extras]))


@pytest.mark.parametrize(("extra", "doing"), list(zip(("models", "mcp", "github", "store"), ASKED, strict=True)))
@pytest.mark.slow
def test_extra__that_is_not_installed__is_named(bare, tmp_path, extra, doing) -> None:
    arguments, variables = ASKED[doing]
    done = gate(bare, tmp_path, *arguments, **variables)
    said = done.stdout + done.stderr
    assert done.returncode == 2, said
    assert "missing-extra" in said
    assert f"{doing} needs a library that is not installed: No module named" in said
    (source,) = re.findall(rf"pip install 'agent-eval-gate\[{extra}\] @ ([^']+)'", said)
    assert source == f"git+https://github.com/eval-gate/eval-gate@{ACTION_REF}"


def test_extras__all__is_every_other() -> None:
    (said,) = EXTRAS["all"]
    assert Requirement(said).extras == set(EXTRAS) - {"all"}


@pytest.mark.slow
def test_validate__a_model_and_no_extras__checks_what_is_written_and_notes_the_rest(bare, tmp_path) -> None:
    """As a hook before a commit installs it."""
    described = "targets:\n- {name: a, provider: openai, model: m, api_key: '${{ KEY }}', system_prompt_path: p.md}\n"
    (tmp_path / "targets.yaml").write_text(described)
    refused = gate(bare, tmp_path, "validate")
    assert refused.returncode == 2
    assert "the system prompt p.md cannot be read" in refused.stderr
    (tmp_path / "p.md").write_text("Be brief.")
    done = gate(bare, tmp_path, "validate")
    assert done.returncode == 0, done.stderr
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["note", "note"]
    assert "calling a model needs a library that is not installed" in done.stderr
