"""The README, done as it says: its example, its commands, its code and its workflow, from an empty folder."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from typer.main import get_group

from eval_gate.action.inputs import INPUTS
from eval_gate.cli.program import app
from tests.integration.test_integration_run import ROOT, gate
from tests.support.agents import Exchange, agent
from tests.support.newcomer import blocks, commands
from tests.support.program import CLEAN
from tests.unit.examples.test_examples_workflows import lint

README = (ROOT / "README.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
BLOCKS = blocks(README)
URL = "http://localhost:8000/chat"


async def weather(exchange: Exchange) -> None:
    call = {"name": "get_weather", "success": True, "params": {"city": "Lisbon"}}
    exchange.answer({"response": "It is 22 °C in Lisbon.", "toolCalls": [call]})


def written(folder: Path) -> Path:
    """The example, in the file that the README names before it."""
    (name,) = re.findall(r"`(evals/[\w.]+)`:\n\n```json", README)
    (text,) = (text for language, text in BLOCKS if language == "json")
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def typed() -> list[list[str]]:
    """What the README says to type of ours."""
    lines = [line for language, text in BLOCKS if language == "console" for line in commands(text)]
    return [line.split()[1:] for line in lines if line.startswith("eval-gate ")]


def test_example__as_printed__is_valid_without_a_warning(tmp_path) -> None:
    written(tmp_path)
    done = gate(tmp_path, "validate", "--strict")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "1 case in 1 suite: 0 problems, 0 warnings"), (
        done.stderr
    )


def test_commands__as_printed__pass_and_then_find_what_got_worse(tmp_path) -> None:
    written(tmp_path)
    assert len(typed()) >= 2
    with agent(weather) as running:
        for line in typed():
            done = gate(tmp_path, *(word.replace(URL, running.url) for word in line))
            assert (done.returncode, "GATE PASSED" in done.stdout) == (0, True), done.stdout + done.stderr
            assert "evaluation setup changed" not in done.stdout, "who types what is here has changed nothing"
    with agent() as worse:
        done = gate(tmp_path, *(word.replace(URL, worse.url) for word in typed()[-1]))
    assert (done.returncode, "REGRESSIONS (1): gs-get-weather-001" in done.stdout) == (1, True), done.stdout


class Flake:
    """The README's agent, which calls no tool when it is asked for the second time: in the second run."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, exchange: Exchange) -> None:
        self.asked += 1
        if self.asked == 2:
            exchange.answer({"response": "I do not know.", "toolCalls": []})
        else:
            await weather(exchange)


def two_runs(folder: Path, **environment: str) -> tuple[subprocess.CompletedProcess[str], Flake]:
    """A first run, and one that is compared with it by rules that are typed for the first time, of a flaky agent."""
    written(folder)
    flake = Flake()
    with agent(flake) as running:
        words = ["run", "evals/", "--agent-endpoint", running.url]
        assert gate(folder, *words, **environment).returncode == 0
        words += [
            "--baseline",
            "latest",
            "--fail-on",
            "regressions",
            "--allowed-regressions",
            "1",
            "--report",
            "md=r.md",
        ]
        return gate(folder, *words, **environment), flake


def test_commands__second_run_types_other_rules__no_rule_changed_and_one_flake_is_no_regression(tmp_path) -> None:
    done, flake = two_runs(tmp_path)
    report = (tmp_path / "r.md").read_text()
    assert (done.returncode, "no regressions" in report) == (0, True), done.stdout + done.stderr
    assert flake.asked > 2, "run again without being told to"
    for said in (done.stdout, report):
        assert "easured differently" not in said, said
        assert "loosened" not in said, said


def test_commands__second_run_types_other_rules_in_ci__rules_are_compared(tmp_path) -> None:
    done, flake = two_runs(tmp_path, CI="true")
    assert (done.returncode, flake.asked > 2) == (0, True), done.stdout + done.stderr
    assert "`allowed-regressions` loosened: 0 → 1" in (tmp_path / "r.md").read_text()


def test_python__as_printed__passes(tmp_path) -> None:
    written(tmp_path)
    (code,) = (text for language, text in BLOCKS if language == "python")
    with agent(weather) as running:
        for _ in range(2):  # the first makes the baseline of the second
            gate(tmp_path, "run", "evals", "--agent-endpoint", running.url)
            script = code.replace(URL, running.url)
            done = subprocess.run(
                [sys.executable, "-c", script], cwd=tmp_path, env=CLEAN, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr


def test_workflow__as_printed__passes_the_linters_and_names_inputs_that_exist(tmp_path) -> None:
    shown, text = (text for language, text in BLOCKS if language == "yaml")
    (tmp_path / "evals.yml").write_text(text, encoding="utf-8")
    for linter in ("actionlint", "schema"):
        done = lint(linter, tmp_path / "evals.yml")
        assert done.returncode == 0, done.stdout + done.stderr
    steps = yaml.safe_load(text)["jobs"]["gate"]["steps"]
    assert yaml.safe_load(shown) == {"steps": steps}, "the first look is the same workflow"
    assert len(shown.splitlines()) <= 6
    assert set(steps[-1]["with"]) <= {one.name for one in INPUTS}


@pytest.mark.slow
def test_demo__as_printed__is_what_it_shows(tmp_path) -> None:
    (shown,) = (text for language, text in BLOCKS if language == "text")
    done = gate(tmp_path, "demo")
    said = re.sub(r"[ \t]+", " ", done.stdout + done.stderr)
    assert (done.returncode, "this gate would exit with 1" in said) == (0, True), said
    for line in shown.splitlines():
        assert re.sub(r"\s+", " ", line) in said, said


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`eval-gate (?!action)([a-z-]+)", README))))
def test_command__named_in_the_readme__is_one(tmp_path, name) -> None:
    assert gate(tmp_path, name, "--help").returncode == 0


def test_commands__of_the_program__are_all_in_the_readme_or_the_reference() -> None:
    assert set(get_group(app).commands) <= set(re.findall(r"\beval-gate ([a-z-]+)", README + REFERENCE))


def test_extras__table__is_what_the_package_has() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    table = README.partition("| extra | adds")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` ", table, flags=re.MULTILINE)) == set(declared)
