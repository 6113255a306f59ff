"""`eval-gate check` of lines and tables of one's own: what is wrong in them is not passed over, and said at once."""

import json

import pytest

from eval_gate.errors import PAGES
from eval_gate.model.limits import EXTERNAL_NEAR_KEYS
from tests.support.program import gate


def lines(folder, name, *values):
    (folder / name).write_text("".join(json.dumps(one) + "\n" for one in values))


def test_judge__misspelt_key_after_very_many_keys_of_ones_own__is_refused(tmp_path) -> None:
    own = [{"id": f"c{n}", "status": "passed", f"column_{n}": n} for n in range(1_500)]
    lines(tmp_path, "r.jsonl", *own, {"id": "x", "status": "passed", "scor": 0.3})
    done = gate(tmp_path, "check", "r.jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    assert '  r.jsonl:1501: scor: is not known (did you mean "score"?)\n' in done.stderr


@pytest.mark.slow
def test_judge__more_unknown_keys_than_can_be_compared__is_refused_because_one_may_be_misspelt(tmp_path) -> None:
    unknown = {f"snekot_tupni{n:04x}": n for n in range(EXTERNAL_NEAR_KEYS + 1)}
    lines(tmp_path, "r.jsonl", {"id": "c", "status": "passed", **unknown, "scroe": 0.1})
    done = gate(tmp_path, "check", "r.jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    assert "r.jsonl:1: more than 20,000 different keys are not known: misspelt" in done.stderr


def test_judge__true_where_a_number_belongs__is_no_1(tmp_path) -> None:
    a_number, whole = (
        ("score", "threshold", "duration_ms", "cost_usd"),
        ("input_tokens", "output_tokens", "trial", "line"),
    )
    lines(tmp_path, "r.jsonl", {"id": "a", "status": "passed"} | dict.fromkeys(a_number + whole, True))
    done = gate(tmp_path, "check", "r.jsonl")
    assert done.returncode == 2
    assert [line.strip() for line in done.stderr.splitlines()[1:-1]] == [
        *(f"r.jsonl:1: {key}: expected a number, got true" for key in a_number),
        *(f"r.jsonl:1: {key}: expected a whole number, got true" for key in whole),
    ]


def test_judge__mistakes_in_several_files__are_all_said_at_once(tmp_path) -> None:
    lines(tmp_path, "r.jsonl", {"id": "a", "status": "ok"}, {"id": "b"}, {"id": "c", "status": "passed"})
    (tmp_path / "r.csv").write_text("id,status\nd,yes\ne,passed\n")
    (tmp_path / "r.xml").write_text("<testsuites><testcase name='f'/></testsuites>")
    done = gate(tmp_path, "check", "r.jsonl", "r.csv", "r.xml", "gone.jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    assert [line.strip().split(", got ")[0] for line in done.stderr.splitlines()] == [
        "error[invalid-results]: the results cannot be read",
        "r.jsonl:1: status: expected 'passed', 'failed', 'error' or 'skipped'",
        "r.jsonl:2: has no status, score or checks: add one of them",
        "r.csv:2: status: expected 'passed', 'failed', 'error' or 'skipped'",
        "r.xml: is junit, and r.jsonl is jsonl: check the results of one tool at a time",
        "gone.jsonl: does not exist: the tool did not write it, or wrote it elsewhere",
        f"hint: {PAGES}/other-tools.md shows what each format needs",
    ]


def test_judge__first_file_was_broken_off__is_still_incomplete_and_the_others_mistakes_are_said(tmp_path) -> None:
    (tmp_path / "a.json").write_text('{"evalId": "e", "results": {"results": [{"success": true')
    (tmp_path / "b.json").write_text('{"evalId": "e", "results": {"results": [3]}}')
    done = gate(tmp_path, "check", "a.json", "b.json")
    assert done.returncode == 3, done.stderr
    assert "error[results-incomplete]" in done.stderr
    assert "  a.json: ends in the middle" in done.stderr
    assert "  b.json: " in done.stderr


def test_judge__very_many_wrong_files__are_not_named_for_ever(tmp_path) -> None:
    (tmp_path / "out").mkdir()
    for number in range(700):
        lines(tmp_path / "out", f"{number:03}.jsonl", {"id": "a", "status": "ok"})
    done = gate(tmp_path, "check", "out")
    assert (done.returncode, len(done.stderr.splitlines()) < 600) == (2, True)
    assert "out/000.jsonl:1: status" in done.stderr


def test_check__long_names_of_suites__are_shortened_in_file_names_and_kept_apart(tmp_path) -> None:
    suites = [f"{'é' * 300}{number}" for number in range(2)]
    lines = (json.dumps({"suite": suite, "id": "a", "status": "passed"}) for suite in suites)
    (tmp_path / "long.jsonl").write_text("\n".join(lines))
    done = gate(tmp_path, "check", "long.jsonl")
    assert done.returncode == 0, done.stderr
    folder = next(one for one in (tmp_path / "evals/results").iterdir() if one.is_dir())
    assert len([*folder.glob("é*.json")]) == 2
