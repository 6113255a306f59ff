"""Results of another tool that would fail the gate: its own command asks the base branch's agent, only then."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import pytest

from tests.support.program import gate

CASES = 12
BASE = "the base agent"


def results(folder: Path, name: str, *failing: int, scores: float | None = None) -> str:
    """Results of our own form, as any tool can write them."""
    rows = [
        {
            "suite": "refunds",
            "id": f"case {number}",
            "input": f"question {number}",
            "status": "failed" if number in failing else "passed",
        }
        for number in range(CASES)
    ]
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return name


def tool(folder: Path, name: str, *failing: int) -> str:
    """A command that stands in for the tool with an agent that fails these; it notes what it was asked."""
    results(folder, f"{name}.jsonl", *failing)
    script = folder / f"{name}.sh"
    script.write_text(
        f"#!/bin/sh\nsed 's/.*/&/' \"$1\" >> {folder}/{name}.asked\n"
        f'while read -r id; do grep "\\"$id\\"" {folder}/{name}.jsonl; done < "$1" > "$2"\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return f"{script} {{ids_file}} {{output}}"


def asked(folder: Path, name: str) -> list[str]:
    file = folder / f"{name}.asked"
    return file.read_text().splitlines() if file.exists() else []


@pytest.fixture(scope="module")
def branch(tmp_path_factory):
    """Six runs of the main branch, all of them green."""
    folder = tmp_path_factory.mktemp("main")
    for number in range(6):
        done = gate(folder, "check", results(folder, f"main-{number}.jsonl"))
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def history(branch, tmp_path):
    shutil.copytree(branch, tmp_path, dirs_exist_ok=True)
    return tmp_path


def judged(folder: Path, *arguments: str):
    return gate(folder, "check", *arguments, "--baseline", "latest", "--fail-on", "regressions")


def words(done) -> str:
    return " ".join((done.stdout + done.stderr).split())


def test_judge__it_fails_with_the_base_branchs_agent_too__is_not_of_the_change(history) -> None:
    out, here, base = results(history, "out.jsonl", 3), tool(history, "here", 3), tool(history, "base", 3)
    done = judged(history, out, "--rerun-command", here, "--base-agent-command", base)
    assert done.returncode == 0, words(done)
    assert f"{BASE} passed 0 of 2 in the same minutes, so this change is not the cause" in words(done)
    assert asked(history, "base").count("case 3") == 2
    assert len(asked(history, "base")) == 5  # three that pass have shown that it works


def test_judge__it_passes_with_the_base_branchs_agent__stays_red_and_says_so(history) -> None:
    out, here, base = results(history, "out.jsonl", 3), tool(history, "here", 3), tool(history, "base")
    done = judged(history, out, "--rerun-command", here, "--base-agent-command", base)
    assert done.returncode == 1, words(done)
    assert f"{BASE} passed 2 of 2 in the same minutes" in words(done)


def test_judge__nothing_would_fail__never_asks_the_base_branchs_agent(history) -> None:
    out, here, base = results(history, "out.jsonl", 3), tool(history, "here"), tool(history, "base", 3)
    done = judged(history, out, "--rerun-command", here, "--base-agent-command", base)
    assert (done.returncode, asked(history, "base")) == (0, []), words(done)


def test_judge__without_a_command_for_re_runs__the_base_branchs_agent_is_asked_all_the_same(history) -> None:
    out, base = results(history, "out.jsonl", 3, 4), tool(history, "base", 3, 4)
    done = judged(history, out, "--base-agent-command", base)
    assert done.returncode == 0, words(done)
    assert "2 still failing" in words(done)


@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("exit 3; echo {output}", "its command returned no results: it exited with code 3 and wrote no results"),
        ("cp base.jsonl {output}", "it fails 3 of 3 cases that pass in this run and in the history"),
    ],
)
def test_judge__the_command_says_nothing_of_use__clears_nothing_and_says_why(history, does, says) -> None:
    out = results(history, "out.jsonl", 3)
    results(history, "base.jsonl", *range(CASES))
    done = judged(history, out, "--rerun-command", tool(history, "here", 3), "--base-agent-command", does)
    assert done.returncode == 1, words(done)
    assert f"{BASE} cleared no failing case: {says}" in words(done)


def test_judge__spared_suspects__are_run_again_once_the_cause_is_cleared(history) -> None:
    """Six died: three are confirmed and name the cause. These die there too, the others only here."""
    out, here = results(history, "out.jsonl", *range(6)), tool(history, "here", *range(6))
    done = judged(history, out, "--rerun-command", here, "--base-agent-command", tool(history, "base", 0, 1, 2))
    assert done.returncode == 1, words(done)
    assert "the base agent passed 2 of 2 in the same minutes" in words(done)


def test_judge__budget_does_not_reach__stays_red(history) -> None:
    out, here, base = results(history, "out.jsonl", 3), tool(history, "here", 3), tool(history, "base", 3)
    done = judged(history, out, "--rerun-command", here, "--base-agent-command", base, "--rerun-budget", "3")
    assert done.returncode == 1, words(done)
    assert "the rerun-budget of 3 re-runs is too small for" in words(done)


def test_judge__command_without_a_file_of_its_own__is_refused(history) -> None:
    done = judged(history, results(history, "out.jsonl", 3), "--base-agent-command", "run-it {ids}")
    assert done.returncode == 2
    assert "--base-agent-command: must contain {output}" in words(done)


def test_judge__agent_named_by_an_address__says_that_nobody_asks_it(history) -> None:
    (history / "eval-gate.yaml").write_text("baseAgentEndpoint: http://127.0.0.1:9/chat\n")
    done = judged(history, results(history, "out.jsonl", 3), "--rerun-command", tool(history, "here", 3))
    assert done.returncode == 1
    assert "baseAgentEndpoint and baseAgentTarget: they do not work with results of another tool" in words(done)


def test_run__command_for_other_tools__says_that_nobody_asks_it(empty) -> None:
    (empty.folder / "eval-gate.yaml").write_text("baseAgentCommand: 'run-it {ids} {output}'\n")
    assert "ignoring baseAgentCommand: it works only with results of another tool" in " ".join(
        empty.run("PPPP").stdout.split()
    )
