"""What goes to a CI's log: no case id, description or answer becomes a command of the runner."""

from __future__ import annotations

import ast
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from eval_gate.config.outputs import FORMATS
from tests.support.agents import agent
from tests.support.offered import offered
from tests.support.program import gate

LIVE = re.compile(r"^\s*::|\r\s*::|##\[", re.MULTILINE)
NASTY = "##[warning]mine ##[[x]"
LINES = "::error::mine\n::add-mask::x\n  ::stop-commands::y\n##[error]z"
CI = {"CI": "true", "GITHUB_ACTIONS": "true"}


@pytest.fixture
def project(tmp_path) -> Path:
    (tmp_path / "evals").mkdir()
    case = {"id": NASTY, "description": LINES, "input": {"message": LINES}, "expect": {"responseContains": [LINES]}}
    (tmp_path / "evals/x.golden.json").write_text(json.dumps([case, case | {"id": "::error::two"}]))
    return tmp_path


async def echoes(exchange) -> None:
    exchange.answer({"response": LINES + NASTY + "no", "toolCalls": [{"name": NASTY, "params": {}}]})


async def fails(exchange) -> None:
    exchange.answer({"response": NASTY + " \n::error::no", "toolCalls": [{"name": NASTY, "params": {}}]})


@pytest.mark.parametrize("handler", [echoes, fails])
def test_finding_7__summary_and_rerun_line__hold_no_command(project, handler) -> None:
    with agent(handler) as running:
        done = gate(project, "run", "--agent-endpoint", running.url, "--verbose", **CI)
    assert LIVE.findall(done.stdout + done.stderr) == []
    if handler is fails:
        assert "rerun:" in done.stdout
        assert any("warning" in word for word in offered("rerun:", done.stdout))


def test_finding_7__record_on_standard_output__means_the_same_and_holds_no_command(project) -> None:
    with agent(fails) as running:
        done = gate(project, "run", "--agent-endpoint", running.url, "--json", **CI)
    assert LIVE.findall(done.stdout) == []
    found = json.loads(done.stdout)
    assert found["suites"][0]["cases"][0]["id"] == NASTY
    kept = project / "evals/results" / found["runId"] / "run.json"
    assert found == json.loads(kept.read_text())


@pytest.mark.parametrize("form", FORMATS)
def test_finding_7_and_10__report_on_standard_output__holds_no_command(project, form) -> None:
    with agent(fails) as running:
        assert gate(project, "run", "--agent-endpoint", running.url).returncode == 1
    done = gate(project, "report", "latest", "--format", form, GITHUB_ACTIONS="true")
    assert (done.returncode, LIVE.findall(done.stdout)) == (0, [])
    if form == "junit":
        names = [case.get("name") for case in ET.fromstring(done.stdout).iter("testcase")]
        assert names == [NASTY, "::error::two"]
    if form == "agentv":
        assert NASTY in [value for line in done.stdout.splitlines() for value in json.loads(line).values()]
    if form == "json":
        assert json.loads(done.stdout)["suites"][0]["cases"][0]["id"] == NASTY


UNSEEN = "\u202e\u2066\u200b\x85\u2028\u2029\ufeff\U000e0041"


@pytest.fixture(scope="module")
def unseen(tmp_path_factory) -> Path:
    """A failing run whose names and texts hold signs that hide, turn or end what stands beside them."""
    folder = tmp_path_factory.mktemp("unseen")
    (folder / "evals").mkdir()
    said = "".join(f"a{sign}z" for sign in UNSEEN)
    case = {"id": said, "description": said, "input": {"message": said}, "expect": {"responseContains": [said]}}
    (folder / "evals/x.golden.json").write_text(json.dumps([case, case | {"id": "other"}]))
    called = [{"tool": said, "input": {said: said}}]
    targets = [{"name": "default", "provider": "mock", "response": said[::-1], "toolCalls": called}]
    (folder / "eval-gate.json").write_text(json.dumps({"targets": targets}))
    assert gate(folder, "run").returncode == 1
    return folder


@pytest.mark.rows_each("form")
@pytest.mark.parametrize("form", FORMATS)
def test_report__signs_that_hide_or_turn__are_in_no_form_as_they_are(unseen, form) -> None:
    done = gate(unseen, "report", "latest", "--format", form, "--output", f"made.{form}")
    assert done.returncode == 0, done.stderr
    text = (unseen / f"made.{form}").read_text(encoding="utf-8")
    assert [f"U+{ord(sign):04X}" for sign in UNSEEN if sign in text] == []
    if form == "junit":
        assert "[U+202E]" in text
        assert len(ET.fromstring(text).findall(".//testcase")) == 2
    if form in {"json", "agentv"}:
        assert "\\u202e" in text
        assert all(json.loads(part) for part in ([text] if form == "json" else text.splitlines()))


@pytest.mark.parametrize("form", ["md", "junit", "json"])
def test_report__into_a_file_of_the_shell__is_as_it_is(project, form) -> None:
    import subprocess
    import sys

    from tests.integration.test_integration_run import ENVIRONMENT, ROOT

    with agent(fails) as running:
        gate(project, "run", "--agent-endpoint", running.url)
    with (project / "r.txt").open("w") as file:
        words = [sys.executable, "-m", "eval_gate", "report", "latest", "--format", form]
        subprocess.run(
            words, cwd=project, env=ENVIRONMENT | CI | {"PYTHONPATH": str(ROOT / "runner")}, stdout=file, check=True
        )
    done = gate(project, "report", "latest", "--format", form, "-o", "o.txt")
    assert done.returncode == 0
    assert (project / "r.txt").read_text() == (project / "o.txt").read_text()


def test_finding_7__validate_init_and_accept__hold_no_command(project) -> None:
    for words in (("validate", "--verbose"), ("waive", NASTY, "--reason", "x", "--until", "3d")):
        done = gate(project, *words, **CI)
        assert LIVE.findall(done.stdout + done.stderr) == [], words


def test_finding_10__page__shows_controls_and_what_turns_text_as_marks(project) -> None:
    turned = "a\u202eb\u2066c\u200fd\x00e"

    async def says(exchange) -> None:
        exchange.answer({"response": turned, "toolCalls": []})

    with agent(says) as running:
        gate(project, "run", "--agent-endpoint", running.url, "--report", "html=r.html")
    page = (project / "r.html").read_text()
    assert "a[U+202E]b[U+2066]c[U+200F]d\u2400e" in page
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069\u200e\u200f]", page)


def test_standard_output__is_written_by_one_function_only() -> None:
    """Who prints past it prints past the door."""
    folder = Path(__file__).parents[2] / "runner" / "eval_gate" / "cli"
    found = [
        f"{file.name}:{node.lineno}"
        for file in folder.rglob("*.py")
        if file.name != "console.py" and "starter/files" not in file.as_posix()
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"print", "typer.echo", "sys.stdout.write"}
    ]
    assert found == [next(one for one in found if one.startswith("program.py"))]  # --version
