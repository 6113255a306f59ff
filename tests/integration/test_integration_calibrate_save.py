"""What a comparison with people's labels leaves behind, and what reports of later runs say of the judge by it."""

import json
import re

import pytest

from tests.support.program import gate

VERDICT = '{"score": 1, "hits": ["says so"], "misses": [], "reasoning": "It does."}'
FILE = ".eval-gate/judges.json"
TODAY = r"\d{4}-\d\d-\d\d"


def suite(expected="Says so.", prompt=""):
    own = f"execution:\n  evaluators: [{{name: own, type: llm_judge, prompt: {prompt}}}]\n" if prompt else ""
    cases = [
        f"  - id: case-{number}\n    expected_outcome: {expected}\n"
        "    input_messages: [{role: user, content: Is it so?}]\n"
        for number in range(5)
    ]
    return f"{own}evalcases:\n{''.join(cases)}"


def judged(folder, *options, judge="grader", **suite_text):
    """A run of five cases, all of which the judge passes. Its console."""
    (folder / "suite.yaml").write_text(suite(**suite_text))
    desk = {"name": "desk", "provider": "mock", "response": "It is so.", "judgeTarget": judge}
    grader = {"name": judge, "provider": "mock", "response": VERDICT}
    (folder / "targets.yaml").write_text(json.dumps({"targets": [desk, grader]}))
    done = gate(
        folder, "run", "suite.yaml", "--target", "desk", "--report", "html=page.html", "--report", "md=c.md", *options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def calibrated(folder, *options):
    lines = [{"id": f"case-{n}", "status": "failed" if n == 3 else "passed"} for n in range(5)]
    (folder / "labels.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    return gate(folder, "calibrate", "labels.jsonl", *options)


@pytest.fixture
def known(tmp_path):
    judged(tmp_path)
    done = calibrated(tmp_path, "--save")
    assert done.returncode == 0, done.stderr
    assert f"{FILE}: 1 judge written; commit the file" in done.stderr
    return tmp_path


def test_save__name_of_a_judge_that_no_run_would_read__is_refused_by_its_place(tmp_path) -> None:
    judged(tmp_path, judge="grader" * 200)
    done = calibrated(tmp_path, "--save")
    assert (done.returncode, "error[invalid-configuration]" in done.stderr) == (2, True), done.stderr
    assert f"{FILE}: judge: " in done.stderr
    assert not (tmp_path / FILE).exists()


def test_run__nobody_has_compared_the_judge__says_so_and_how__but_not_in_a_comment_without_its_cases(tmp_path) -> None:
    assert "the LLM judge grader" not in judged(tmp_path)
    said = judged(tmp_path, "--verbose")
    assert "the LLM judge grader (mock" in said
    assert (
        "has not been compared with people's labels yet; to compare it, run `eval-gate calibrate LABELS --save`" in said
    )
    assert "has not been compared with people" in (tmp_path / "page.html").read_text()
    assert "been compared with people" not in (tmp_path / "c.md").read_text()


def test_run__judge_was_compared__says_how_often_it_agreed_and_what_it_wrongly_passed(known) -> None:
    said = judged(known)
    words = r"he LLM judge grader \(mock.*\) agreed with people on 4 of 5 labels on " + TODAY
    words += r" \(at least 38 %\); it passed 1 of 1 responses that people failed"
    assert re.search(f"t{words}", said)
    assert re.search(f"T{words}", (known / "page.html").read_text())
    shown = (known / "c.md").read_text().replace("&#45;", "-").replace("&#40;", "(").replace("&#41;", ")")
    assert re.search(f"T{words}", shown), shown


def test_run__prompt_is_another_one__says_that_this_was_not_compared(known) -> None:
    said = judged(known, "-v", prompt="'Grade {{ candidate_answer }} kindly.'")
    assert "agreed with people on 4 of 5 labels" in said
    assert "but its prompt or rubric has changed since" in said


def test_run__rubric_is_another_one__says_that_this_was_not_compared(known) -> None:
    assert "but its prompt or rubric has changed since" in judged(known, "-v", expected="Says it twice.")


def test_run__judge_is_another_one__names_the_one_that_was_compared(known) -> None:
    said = judged(known, "-v", judge="newcomer")
    assert "the LLM judge newcomer (mock" in said
    assert "has not been compared with people's labels, but grader (mock" in said


def test_report__of_the_stored_run__says_it_too(known) -> None:
    judged(known)
    (known / FILE).unlink()
    run = next((known / "evals/results").glob("*/run.json"))
    newest = max((known / "evals/results").glob("*/run.json"), key=lambda file: file.stat().st_mtime_ns) or run
    done = gate(known, "report", str(newest), "--format", "console")
    assert "agreed with people on 4 of 5 labels" in done.stdout


def test_save__again__takes_the_place_of_the_older_one(known) -> None:
    calibrated(known, "--save", "--evaluator", "llm_judge")
    assert calibrated(known, "--save").returncode == 0
    entries = json.loads((known / FILE).read_text())["judges"]
    assert len({(one["judge"], one.get("evaluator")) for one in entries}) == len(entries)
    assert {one["responses"] for one in entries} == {5}


def test_save__no_judge_graded__writes_nothing_and_says_why(tmp_path) -> None:
    (tmp_path / "out.jsonl").write_text('{"id": "case-0", "status": "passed"}\n')
    gate(tmp_path, "check", "out.jsonl")
    done = calibrated(tmp_path, "--save")
    assert done.returncode == 2
    assert "no judge scored a labeled response" in done.stderr
    assert not (tmp_path / FILE).exists()


def test_file__mistakes__stop_the_run_before_anybody_is_asked_with_line_and_field(known) -> None:
    file = known / FILE
    (entry,) = json.loads(file.read_text())["judges"]
    file.write_text(json.dumps({"judges": [entry | {"responses": 0}, entry | {"sure": True}]}, indent=2))
    done = gate(known, "run", "suite.yaml", "--target", "desk")
    assert done.returncode == 2
    assert re.search(rf"{re.escape(FILE)}:\d+: judges\[0\]\.responses: must be >= 1", done.stderr), done.stderr
    assert re.search(rf"{re.escape(FILE)}:\d+: judges\[1\]\.sure: unknown key", done.stderr), done.stderr
    checked = gate(known, "validate", "suite.yaml")
    assert checked.returncode == 2
    assert "judges[1].sure: unknown key" in checked.stderr


@pytest.mark.parametrize("text", ["[]", '{"judges": 3}', "{", '{"judges": [], "judges": []}', "x" * 500_001])
def test_file__is_none__is_refused_by_name(known, text) -> None:
    (known / FILE).write_text(text)
    done = gate(known, "run", "suite.yaml", "--target", "desk")
    assert done.returncode == 2
    assert FILE in done.stderr


def test_file__more_agreed_than_answers__is_refused(known) -> None:
    file = known / FILE
    file.write_text(file.read_text().replace('"agreed": 4', '"agreed": 50'))
    done = gate(known, "run", "suite.yaml", "--target", "desk")
    assert done.returncode == 2
    assert "agreed is 50, which is more than the 5 answers" in done.stderr
