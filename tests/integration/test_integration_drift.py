"""`eval-gate drift` on a machine: the record beside a run that lies among red ones."""

import json

from tests.support.program import gate


def judged(folder, *failing):
    lines = [{"suite": "s", "id": one, "status": "failed" if one in failing else "passed"} for one in "abcd"]
    (folder / "out.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    return gate(folder, "judge", "out.jsonl", "--baseline", "latest", "--fail-on", "regressions").returncode


def test_drift__a_red_run_lies_between_two_that_passed__both_are_on_record(tmp_path) -> None:
    assert [judged(tmp_path), judged(tmp_path, "a"), judged(tmp_path)] == [0, 1, 0]
    done = gate(tmp_path, "drift")
    assert (done.returncode, done.stdout) == (3, "not known: 2 runs on record, 12 are needed\n")
