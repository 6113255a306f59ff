"""`eval-gate calibrate`: from answers and labels on disk to counts, words and exit code."""

import json

import pytest

from tests.support.program import gate


def _line(case, status, tone):
    return {"suite": "s", "id": case, "status": status, "checks": [{"name": "tone", "score": tone}]}


JUDGED = [
    *(_line(f"good-{n}", "passed", 0.9) for n in range(6)),
    _line("let-through", "passed", 0.8),
    *(_line(f"bad-{n}", "failed", 0.2) for n in range(3)),
    {"suite": "s", "id": "broke", "status": "error"},
]


@pytest.fixture
def judged(tmp_path):
    (tmp_path / "out.jsonl").write_text("".join(json.dumps(one) + "\n" for one in JUDGED))
    assert gate(tmp_path, "check", "out.jsonl", "--max-errors", "5").returncode in {0, 1}
    return tmp_path


def labels(folder, *lines, name="labels.jsonl"):
    (folder / name).write_text("".join(json.dumps(one) + "\n" for one in lines))
    return name


def people(**failed):
    known = [one["id"] for one in JUDGED if one["id"] != "broke"]
    return [
        {"id": one, "status": "failed" if one.startswith("bad") or one in failed else "passed"}
        | ({"error": failed[one]} if one in failed else {})
        for one in known
    ]


def test_calibrate__people_fail_what_the_judge_passes__is_counted_and_named(judged) -> None:
    file = labels(judged, *people(**{"let-through": "promises money"}), {"id": "nobody", "status": "passed"})
    done = gate(judged, "calibrate", file)
    assert done.returncode == 0
    said = done.stdout
    assert "the results of the cases and people agree on 9 of 10 responses (90 %" in said
    assert "kappa 0.78 (95 %:" in said
    assert "false passes: 1 of 4 that people fail (25 %; 95 %: at most 70 %)" in said
    assert "false failures: 0 of 6 that people pass (0 %" in said
    assert "ignored 1 label without a case in this run: nobody" in said
    assert "passed, but people fail it:\n  s: let-through  score 1.00  people: promises money" in said


def test_calibrate__a_file_of_labels_that_is_not_there__is_a_mistake_of_the_call(judged) -> None:
    done = gate(judged, "calibrate", "lables.csv")
    assert done.returncode == 2
    assert "error[invalid-labels]: the labels cannot be read\n  lables.csv: file not found\n" in done.stderr


def test_calibrate__a_label_of_another_word__is_told_what_a_label_is(judged) -> None:
    done = gate(judged, "calibrate", labels(judged, {"id": "good-1", "status": "good"}))
    assert done.returncode == 2
    assert "error[invalid-labels]: the labels cannot be read\n  labels.jsonl:1: status: expected " in done.stderr
    assert 'hint: write lines such as {"id": "refund-1", "status": "failed"}' in done.stderr
    assert "results" not in done.stderr


def test_calibrate__two_labels__kappa_lies_within_its_interval(judged) -> None:
    file = labels(judged, {"id": "good-1", "status": "failed"}, {"id": "bad-1", "status": "passed"})
    found = json.loads(gate(judged, "calibrate", file, "--json").stdout)
    assert found["kappaBetween"][0] <= found["kappa"] <= found["kappaBetween"][1]


def test_calibrate__as_json__holds_the_same(judged) -> None:
    file = labels(judged, *people(**{"let-through": "x"}), {"id": "broke", "status": "passed"})
    found = json.loads(gate(judged, "calibrate", file, "--json").stdout)
    assert (found["compared"], found["agreed"], found["falsePasses"], found["unscored"]) == (10, 9, 1, 1)
    assert found["differs"] == [{"suite": "s", "id": "let-through", "passed": True, "score": 1.0, "people": "x"}]
    assert found["kappaBetween"][0] < found["kappa"] < found["kappaBetween"][1]


def test_calibrate__one_evaluator__is_held_to_the_score_that_is_named(judged) -> None:
    file = labels(judged, *people(**{"let-through": "x"}))
    done = gate(judged, "calibrate", file, "--evaluator", "tone", "--pass-score", "0.85", "--min-kappa", "0.9")
    assert "evaluator tone and people agree on 10 of 10 responses" in done.stdout
    assert done.returncode == 0
    done = gate(judged, "calibrate", file, "--evaluator", "tone", "--pass-score", "0.5", "--min-kappa", "0.9")
    assert "agree on 9 of 10" in done.stdout
    assert done.returncode == 1


def test_calibrate__people_who_pass_all__no_kappa_and_no_silent_success(judged) -> None:
    file = labels(judged, *({"id": f"good-{n}", "status": "passed"} for n in range(6)))
    done = gate(judged, "calibrate", file, "--min-kappa", "0")
    assert "kappa is unknown, because people pass all of them: also label some that they fail" in done.stdout
    assert done.returncode == 1


def test_calibrate__several_people__most_of_them_decide(judged) -> None:
    three = [{"id": "good-0", "status": said, "trial": n} for n, said in enumerate(["passed", "failed", "passed"])]
    tie = [{"id": "good-1", "status": said, "trial": n} for n, said in enumerate(["passed", "failed"])]
    done = gate(judged, "calibrate", labels(judged, *three, *tie))
    assert "agree on 1 of 1 response " in done.stdout
    assert "ignored 1 label: people disagree evenly, or gave no verdict" in done.stdout


def test_calibrate__a_table__is_read_too(judged) -> None:
    (judged / "labels.csv").write_text("id,status\ngood-0,passed\nbad-0,failed\n")
    assert "agree on 2 of 2" in gate(judged, "calibrate", "labels.csv").stdout


def test_calibrate__nothing_to_compare__says_what_labels_are_made_of(judged) -> None:
    done = gate(judged, "calibrate", labels(judged, {"id": "x", "status": "passed"}))
    assert done.returncode == 2
    assert "unmatched-labels" in done.stderr
    assert "use the ids of cases as ids of labels: good-0, good-1, good-2" in done.stderr
    done = gate(judged, "calibrate", labels(judged, *people()), "--evaluator", "tonne")
    assert done.returncode == 2
    assert 'has an evaluator "tonne" (did you mean "tone"?)' in done.stderr


def test_calibrate__several_wrong_lines_in_several_files__are_all_said_at_once(judged) -> None:
    wrong = ['{"id": "good-0", "status": "pass"}', '{"id": "good-1"}', '{"id": "good-2", "status": "passed"', "[]"]
    wrong += ['{"id": "good-3", "status": "passed"}', '{"ids": "good-4", "status": 1, "score": "high"}']
    (judged / "labels.jsonl").write_text("\n".join(wrong))
    (judged / "more.csv").write_text("id,status\ngood-5,yes\n,passed\nbad-0,failed\nbad-1,failed,too,many\n")
    done = gate(judged, "calibrate", "labels.jsonl", "more.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert [line.strip().split(", got ")[0] for line in done.stderr.splitlines()[1:-1]] == [
        "labels.jsonl:1: status: expected 'passed', 'failed', 'error' or 'skipped'",
        "labels.jsonl:2: has no status, score or checks: add one of them",
        "labels.jsonl:3: is not JSON: Expecting ',' delimiter: line 1 column 36 (char 35)",
        "labels.jsonl:4: is not a mapping",
        "labels.jsonl:6: id: is missing",
        "labels.jsonl:6: status: expected 'passed', 'failed', 'error' or 'skipped'",
        "labels.jsonl:6: score: expected a number",
        'labels.jsonl:6: ids: is not known (did you mean "id"?)',
        "more.csv:2: status: expected 'passed', 'failed', 'error' or 'skipped'",
        "more.csv:3: id: is missing",
        "more.csv:5: has more cells than columns",
    ]


def test_calibrate__a_file_that_is_wrong_throughout__is_not_named_line_by_line_for_ever(judged) -> None:
    (judged / "labels.jsonl").write_text('{"id": 3}\n' * 100_000)
    done = gate(judged, "calibrate", "labels.jsonl")
    lines = done.stderr.splitlines()
    assert (done.returncode, len(lines) < 1_000) == (2, True)
    assert "labels.jsonl:1: id: expected text, got the number 3" in done.stderr
