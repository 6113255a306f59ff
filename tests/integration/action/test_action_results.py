"""Results that an earlier step made."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.agents import agent
from tests.support.answers import fails_on
from tests.support.jobs import push_event
from tests.support.program import gate

FILES = Path(__file__).parents[2] / "unit" / "result_formats" / "files"


def test_results__made_by_an_earlier_step__are_compared_and_published_and_nothing_runs(job, github) -> None:
    with agent() as running:
        job.push(running.url)
    pull = github.state.add_pull(7)
    with agent(fails_on(2)) as running:
        assert gate(job.workspace, "run", "--agent-endpoint", running.url, "--output-dir", "elsewhere").returncode == 1
        asked = len(running.requests)
        ended = job.pull_request(pull, "http://127.0.0.1:9", {"results": "elsewhere"})
        assert len(running.requests) == asked
    assert (ended.code, ended.outputs["regressions"]) == (1, "1")
    assert "## ❌ Agent eval gate — 1 regression" in next(iter(github.state.comments.values())).body


def test_results__that_are_not_there__are_an_error_that_says_so(job, github) -> None:
    ended = job.step("push", push_event(github), {"results": "nowhere"})
    assert ended.code == 2
    assert 'there is no stored result "nowhere"' in ended.log


def promptfoo(folder: Path, name: str, *failing: int) -> str:
    """A results file of promptfoo in the workspace, with these tests failing."""
    document = json.loads((FILES / "promptfoo-output.json").read_text())
    pattern = document["results"]["results"][0]
    document["results"]["results"] = [
        {
            **pattern,
            "metadata": {"testCaseId": f"case-{number}"},
            "vars": {"q": f"question {number}"},
            "success": number not in failing,
            "failureReason": int(number in failing),
            "response": {"output": "I cannot help." if number in failing else "Order 4711 is refunded."},
        }
        for number in range(6)
    ]
    (folder / name).write_text(json.dumps(document))
    return name


def test_results__of_another_tool__make_the_baseline_and_the_comment(job, github) -> None:
    for number in range(3):
        main = promptfoo(job.workspace, "main.json")
        assert job.step("push", push_event(github), {"results": main}).code == 0, number
    pull = github.state.add_pull(7)
    ended = job.pull_request(pull, "http://127.0.0.1:9", {"results": promptfoo(job.workspace, "out.json", 2)})
    assert (ended.code, ended.outputs["regressions"]) == (1, "1")
    assert "6 of 6 cases are in the baseline by metadata.testCaseId" in ended.log
    comment = next(iter(github.state.comments.values())).body
    assert "## ❌ Agent eval gate — 1 regression" in comment
    assert "case-2" in comment
    assert "- Order 4711 is refunded." in comment
    assert "+ I cannot help." in comment


def test_results__with_a_command_for_re_runs__run_nothing_in_the_action(job, github) -> None:
    (job.workspace / "eval-gate.yaml").write_text(f"rerunCommand: touch {job.workspace}/ran\n")
    job.step("push", push_event(github), {"results": promptfoo(job.workspace, "main.json")})
    pull = github.state.add_pull(7)
    ended = job.pull_request(pull, "http://127.0.0.1:9", {"results": promptfoo(job.workspace, "out.json", 2)})
    assert ended.code == 1
    assert "rerunCommand is not run by the action" in ended.log
    assert not (job.workspace / "ran").exists()


def test_results__of_a_tool_that_did_not_finish__are_undecided(job, github) -> None:
    pull = github.state.add_pull(7)
    file = job.workspace / promptfoo(job.workspace, "out.json")
    file.write_bytes(file.read_bytes()[:-2000])
    ended = job.pull_request(pull, "http://127.0.0.1:9", {"results": "out.json"})
    assert ended.code == 3
    assert "ends in the middle" in ended.log
