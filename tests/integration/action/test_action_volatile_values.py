"""Results of another tool in the action whose prompts have values that are new in every run."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

from tests.support.jobs import push_event

COST = {"name": "cost", "passed": False, "reason": "0.02 > 0.01"}


def results(folder: Path, *, broken: bool = False, **values: object) -> str:
    """Own lines of four cases; `refund` may fail, and each `input` has these values besides the question."""
    lines = [
        {
            "id": case,
            "status": "failed" if broken and case == "refund" else "passed",
            "input": {"q": case, "thread": str(uuid4())} | values,
            "checks": [COST] if broken and case == "refund" else [],
        }
        for case in ("hours", "refund", "parcel", "cancel")
    ]
    (folder / "out.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return "out.jsonl"


def compare(job, github, **values: object) -> tuple[int, str]:
    """Two runs of main, then a pull request with these values that breaks a case: exit code and comment."""
    for seq in (1, 2):
        job.begin_run(event="push")
        assert job.step("push", push_event(github), {"results": results(job.workspace, seq=seq)}).code == 0
    pull = github.state.add_pull(7)
    given = {"results": results(job.workspace, broken=True, **values), "fail-on": "regressions"}
    ended = job.pull_request(pull, "http://127.0.0.1:9", given)
    (comment,) = github.state.comments.values()
    return ended.code, comment.body


def test_comment__of_values_that_differ_between_runs_of_main__compares_and_names_them_once(job, github) -> None:
    code, comment = compare(job, github, seq=3)
    assert (code, "## ❌ Agent eval gate — 1 regression" in comment) == (1, True), comment
    assert comment.count("Left out of the comparison: input&#46;seq (4 cases), input&#46;thread (4 cases)") == 1
    assert "`cost: 0.02 > 0.01`" in comment


def test_comment__of_a_failing_case_with_another_prompt__is_inconclusive_and_names_the_field(job, github) -> None:
    code, comment = compare(job, github, seq=3, q="easy")
    assert code == 3, comment
    assert "refund (input&#46;q differs)" in comment
    assert "`cost: 0.02 > 0.01`" in comment
    assert "If this change edited the cases, waive the failures" in comment
