"""What failed is what is shown, a hint is never the command that was typed, and a pipe is called a pipe."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import CLEAN, PROGRAM, gate

PASSED = {"name": "equals", "passed": True}
COST = {"name": "cost", "passed": False}


def own(folder: Path, name: str, **fields: Any) -> str:
    line = {"id": "a", "status": "passed", "input": "q", "expected": "Nine", "output": "Nine"} | fields
    (folder / name).write_text(json.dumps(line))
    return name


def promptfoo(folder: Path, name: str, *parts: dict[str, Any]) -> str:
    """One test of promptfoo with these parts of its grading."""
    failed = [part for part in parts if not part["pass"]]
    result = {
        "promptIdx": 0, "testIdx": 0, "provider": {"id": "echo"}, "success": not failed, "score": 1,
        "vars": {"q": "hours"}, "latencyMs": 5, "failureReason": int(bool(failed)),
        "testCase": {"description": "hours", "assert": [part["assertion"] for part in parts]},
        "response": {"output": "Nine"}, "error": failed[0]["reason"] if failed else None,
        "gradingResult": {"pass": not failed, "score": 1, "reason": failed[0]["reason"] if failed else "ok",
                          "componentResults": list(parts)},
    }  # fmt: skip
    stats = {"successes": int(not failed), "failures": int(bool(failed)), "errors": 0}
    document = {"evalId": "e", "results": {"version": 3, "prompts": [], "results": [result], "stats": stats}}
    (folder / name).write_text(json.dumps(document | {"config": {}, "shareableUrl": None}))
    return name


def part(kind: str, reason: str, *, passed: bool) -> dict[str, Any]:
    return {"pass": passed, "score": int(passed), "reason": reason, "assertion": {"type": kind, "value": "Nine"}}


def shown(folder: Path, now: str, before: str, *options: str) -> tuple[str, str]:
    """What the console and the comment show."""
    done = gate(folder, "check", now, "--baseline", before, "--reruns", "0", "--report", "md=c.md", *options)
    assert done.returncode == 1, done.stdout + done.stderr
    return " ".join(done.stdout.split()), (folder / "c.md").read_text()


@pytest.mark.parametrize(
    ("checks", "error", "failed"),
    [
        ([COST | {"reason": "0.02 > 0.01"}], None, "cost: 0.02 > 0.01"),
        ([COST | {"score": 0.02}], None, "cost: 0.02"),
        ([COST | {"reason": "0.02 > 0.01"}], "expected Nine", "cost: 0.02 > 0.01; expected Nine"),
        ([COST, {"name": "judge", "passed": False, "reason": "rude"}], None, "cost; judge: rude"),
        ([], "expected Nine", "expected Nine"),
    ],
)
def test_shown__of_own_lines__is_the_check_that_failed(tmp_path, checks, error, failed) -> None:
    before = own(tmp_path, "base.jsonl", checks=[PASSED])
    now = own(tmp_path, "now.jsonl", status="failed", checks=[PASSED, *checks], **({"error": error} if error else {}))
    console, comment = shown(tmp_path, now, before)
    assert f"failed {failed} both" in console
    assert f"**Failed:** `{failed}`" in comment


def test_shown__of_a_rule_for_a_score__is_that_score(tmp_path) -> None:
    cheap, dear = ([PASSED, {"name": "cost", "score": score}] for score in (0.001, 0.02))
    before = own(tmp_path, "base.jsonl", checks=cheap)
    console, comment = shown(tmp_path, own(tmp_path, "now.jsonl", checks=dear), before, "--score", "cost<=0.01")
    assert "failed cost: cost is 0.02 (rule: cost<=0.01) both" in console
    assert "**Failed:** `cost: cost is 0.02 (rule: cost<=0.01)`" in comment


def test_shown__of_promptfoo__is_the_assertion_with_its_reason(tmp_path) -> None:
    fine = part("equals", "Assertion passed", passed=True)
    before = promptfoo(tmp_path, "base.json", fine, part("cost", "ok", passed=True))
    now = promptfoo(tmp_path, "now.json", fine, part("cost", "Cost 0.02 is greater than threshold 0.01", passed=False))
    console, comment = shown(tmp_path, now, before)
    assert "failed cost: Cost 0.02 is greater than threshold 0.01 both" in console
    assert "**Failed:** `cost: Cost 0.02 is greater than threshold 0.01`" in comment


def test_check__results_in_a_form_that_it_cannot_read__does_not_recommend_itself(tmp_path) -> None:
    (tmp_path / "out.yaml").write_text("evalId: x\nresults:\n  - promptIdx: 0\n")
    done = gate(tmp_path, "check", "out.yaml")
    said = "out.yaml: is a result of promptfoo, but not in a form that is read"
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert "eval-gate check out.yaml" not in done.stderr


@pytest.mark.parametrize("given", ["/dev/stdin", "-", "/dev/fd/0", "pipe", "/dev/null"])
def test_check__pipe_or_device__is_called_one(tmp_path, given) -> None:
    os.mkfifo(tmp_path / "pipe")
    now = own(tmp_path, "now.jsonl")
    for arguments, place in (([given], f"{given}: is"), ([now, "--baseline", given], f'"{given}" is')):
        command = [*PROGRAM, "check", *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, env=CLEAN, input='{"id": "a"}', capture_output=True, text=True, check=False
        )
        assert (done.returncode, f"{place} a pipe or a device, not a file" in done.stderr) == (2, True), done.stderr
        assert "write them to a file" in done.stderr
