"""`eval-gate drift` on a machine: the record beside a run that lies among red ones, or is forged."""

import json

from tests.support.program import gate


def check_results(folder, *failing):
    lines = [{"suite": "s", "id": one, "status": "failed" if one in failing else "passed"} for one in "abcd"]
    (folder / "out.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    return gate(folder, "check", "out.jsonl", "--baseline", "latest", "--fail-on", "regressions").returncode


def test_drift__a_red_run_lies_between_two_that_passed__both_are_on_record(tmp_path) -> None:
    assert [check_results(tmp_path), check_results(tmp_path, "a"), check_results(tmp_path)] == [0, 1, 0]
    done = gate(tmp_path, "drift")
    assert (done.returncode, done.stdout) == (3, "not known: 2 runs in the history, 12 are needed\n")


def test_drift__forged_times_beyond_all_numbers__are_no_record(tmp_path) -> None:
    assert check_results(tmp_path) == 0
    (file,) = tmp_path.glob("**/history.json")
    levels = [
        {"runId": f"r{at}", "timestamp": "2026-11-20T10:00:00Z", "cases": 4, "levels": {"time": 800 if at < 10 else 1}}
        for at in range(20)
    ]
    file.write_text(json.dumps(json.loads(file.read_text()) | {"levels": levels}))
    done = gate(tmp_path, "drift")
    assert (done.returncode, done.stdout) == (3, "not known: 0 runs in the history, 12 are needed\n"), done.stderr
