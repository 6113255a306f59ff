"""A second `eval-gate init`: the diff, who confirms it, and which files are never touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.test_integration_draft_review import on_terminal
from tests.integration.test_integration_init import WORKFLOW, config, files_in, git, init
from tests.support.agents import unused_port

FIRST, SECOND = (f"http://127.0.0.1:{unused_port()}/{name}" for name in ("first", "second"))
NAMED = ("--agent-protocol", "ag-ui", "--agent-endpoint")
"""How a person names an agent that describes nothing, so that nothing is left to decide."""


@pytest.fixture
def begun(tmp_path) -> Path:
    assert init(tmp_path, *NAMED, FIRST).returncode == 0
    return tmp_path


def test_again__another_agent_without_a_terminal__shows_the_diff_and_needs_yes(begun) -> None:
    before = files_in(begun)
    done = init(begun, *NAMED, SECOND)
    assert (done.returncode, files_in(begun)) == (2, before)
    assert f"\n-agentEndpoint: {FIRST}\n+agentEndpoint: {SECOND}\n" in done.stdout
    assert "error[not-confirmed]: 2 files would change, and nothing was written" in done.stderr
    done = init(begun, *NAMED, SECOND, "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert config(begun)["agentEndpoint"] == SECOND
    assert SECOND.rpartition("/")[2] in (begun / WORKFLOW).read_text()
    assert "rewritten   eval-gate.yaml\n" in done.stdout
    assert (begun / "evals/hello.golden.json").read_bytes() == before["evals/hello.golden.json"]


@pytest.mark.parametrize(
    ("answer", "expected"), [("y", SECOND), ("n", FIRST), ("", FIRST)], ids=["yes", "no", "nothing"]
)
def test_again__another_agent_on_a_terminal__asks(begun, answer, expected) -> None:
    code = 0 if answer == "y" else 2
    shown = on_terminal(begun, f"{answer}\n", "init", *NAMED, SECOND, code=code)
    assert "Rewrite 2 files [y/N]? " in shown
    assert config(begun)["agentEndpoint"] == expected


def test_again__same_agent__changes_nothing(begun) -> None:
    before = files_in(begun)
    done = init(begun, *NAMED, FIRST)
    assert (done.returncode, files_in(begun)) == (0, before)
    assert "kept        eval-gate.yaml: is up to date" in done.stdout


@pytest.mark.parametrize("name", ["eval-gate.yaml", WORKFLOW])
def test_again__file_that_somebody_edited__is_kept_and_named_with_the_diff(begun, name) -> None:
    text = (begun / name).read_text() + "# mine\n"
    (begun / name).write_text(text)
    done = init(begun, *NAMED, SECOND, "--yes")
    assert (done.returncode, (begun / name).read_text()) == (0, text)
    assert f"kept        {name}: you edited it; the diff shows what `init` would write" in done.stdout
    assert "-# mine" in done.stdout


def test_again__file_without_a_digest__is_kept_without_a_diff(begun) -> None:
    (begun / "eval-gate.yaml").write_text("evals: [evals]\n")
    done = init(begun, *NAMED, SECOND, "--yes")
    assert (begun / "eval-gate.yaml").read_text() == "evals: [evals]\n"
    assert "kept        eval-gate.yaml: exists already" in done.stdout


def test_again__line_ends_and_checkout__do_not_count_as_an_edit(begun) -> None:
    for name in ("eval-gate.yaml", WORKFLOW):
        (begun / name).write_bytes((begun / name).read_bytes().replace(b"\n", b"  \r\n"))
    git(begun, "init")
    git(begun, "add", "--all")
    git(begun, "commit", "--message", "one")
    git(begun, "rm", "-r", "--quiet", "--cached", ".")
    git(begun, "reset", "--hard")
    assert init(begun, *NAMED, SECOND, "--yes").returncode == 0
    assert config(begun)["agentEndpoint"] == SECOND


def test_again__dry_run__shows_the_diff_and_writes_nothing(begun) -> None:
    before = files_in(begun)
    done = init(begun, *NAMED, SECOND, "--dry-run")
    assert (done.returncode, files_in(begun)) == (0, before)
    assert f"+agentEndpoint: {SECOND}" in done.stdout


def test_again__no_target_is_named__every_file_is_kept(begun) -> None:
    before = files_in(begun)
    assert init(begun, "--yes").returncode == 0
    assert files_in(begun) == before


def test_again__how_the_agent_starts__changes_only_the_workflow(begun) -> None:
    before = files_in(begun)
    assert init(begun, "--start-command", "serve", "--yes").returncode == 0
    after = files_in(begun)
    assert {name for name in after if after[name] != before[name]} == {WORKFLOW}
    assert b"serve > agent.log 2>&1 &" in after[WORKFLOW]


def test_again__link_in_place_of_a_file__is_never_written_through(begun) -> None:
    (begun / "elsewhere.yaml").write_bytes((begun / "eval-gate.yaml").read_bytes())
    (begun / "eval-gate.yaml").unlink()
    (begun / "eval-gate.yaml").symlink_to("elsewhere.yaml")
    before = (begun / "elsewhere.yaml").read_bytes()
    assert init(begun, *NAMED, SECOND, "--yes").returncode == 0
    assert (begun / "elsewhere.yaml").read_bytes() == before
