"""Folders and files of results as people have them: nothing is passed over, or counted twice, without a word."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.support.program import gate

FILES = Path(__file__).parents[1] / "unit" / "external_results" / "files"
GREEN = '<testsuite name="s"><testcase name="a"/></testsuite>'
RED = '<testsuite name="s"><testcase name="b"><failure message="no"/></testcase></testsuite>'


def write(folder: Path, **files: str) -> None:
    """Files by their paths, with `__` for a slash and `_` for a dot."""
    for name, text in files.items():
        file = folder / name.replace("__", "/").replace("_", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def judge(folder: Path, *arguments: str) -> tuple[int, str]:
    done = gate(folder, "check", *arguments)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def lines(**statuses: str) -> str:
    return "".join(json.dumps({"id": name, "status": status}) + "\n" for name, status in statuses.items())


def test_judge__pattern_with_two_stars_in_a_name__matches_as_one_star_does(tmp_path) -> None:
    write(tmp_path, r__a_xml=GREEN, r__p1__b_xml=RED)
    assert judge(tmp_path, "r/**.xml")[0] == 0
    assert judge(tmp_path, "r/p**/b.xml")[0] == 1


@pytest.mark.parametrize("given", ["r", "r/**/*.xml", "r/*"])
def test_judge__results_in_folders_within__are_all_read(tmp_path, given) -> None:
    write(tmp_path, r__a_xml=GREEN, r__p1__b_xml=RED, r__p2__q__c_xml=GREEN.replace('"a"', '"c"'))
    code, said = judge(tmp_path, *given.split())
    assert code == 1
    assert "2 of 3 pass 1 does not pass" in said


@pytest.mark.parametrize(
    ("first", "other"),
    [("index.jsonl", "other.jsonl"), ("test_run_1.xml", "test_run_2.xml"), ("a.xml", "B.XML")],
)
def test_judge__files_called_like_another_tools__leave_none_beside_them_out(tmp_path, first, other) -> None:
    (tmp_path / "r").mkdir()
    texts = {".jsonl": (lines(b="failed"), lines(a="passed")), ".xml": (RED, GREEN)}[Path(first).suffix]
    (tmp_path / "r" / first).write_text(texts[0])
    (tmp_path / "r" / other).write_text(texts[1])
    code, said = judge(tmp_path, "r")
    assert (code, "1 of 2 pass 1 does not pass" in said) == (1, True), said


def test_judge__a_glob_that_matches_nothing__is_of_a_tool_that_wrote_nothing(tmp_path) -> None:
    code, said = judge(tmp_path, "out/**/*.xml")
    assert code == 3
    assert "out/**/*.xml: matches no file" in said


@pytest.mark.parametrize(
    ("name", "text", "whose"),
    [
        ("failsafe-summary.xml", "<failsafe-summary><completed>4</completed></failsafe-summary>", "Maven"),
        ("testng-results.xml", "<testng-results/>", "TestNG"),
        (".last-run.json", '{"status": "passed", "failedTests": []}', "Playwright"),
    ],
)
def test_judge__file_that_a_tool_puts_beside_its_results__is_named_and_passed_over(tmp_path, name, text, whose) -> None:
    write(tmp_path, r__TEST_xml=GREEN)
    (tmp_path / "r" / name).write_text(text)
    code, said = judge(tmp_path, "r")
    assert (code, f"r/{name} is {whose}'s and has no results: it was not read" in said) == (0, True)
    assert judge(tmp_path, f"r/{name}")[0] == 2, "where it is named it is no results"


def test_judge__folder_of_an_eval_set__is_read_without_the_tools_own_files(tmp_path) -> None:
    (tmp_path / "logs").mkdir()
    shutil.copy(FILES / "inspect-log.json", tmp_path / "logs")
    for name in ("eval-set.json", "logs.json", ".eval-set-id"):
        (tmp_path / "logs" / name).write_text('{"tasks": []}')
    code, said = judge(tmp_path, "logs", "--score", "policy>=0.3")
    assert code == 1
    assert "logs/eval-set.json is Inspect's and has no results" in said


def test_judge__two_runs_in_one_folder__are_not_two_trials(tmp_path) -> None:
    write(tmp_path, r__new_json=(FILES / "promptfoo-output.json").read_text())
    document = json.loads((FILES / "promptfoo-output.json").read_text())
    for row in document["results"]["results"]:
        row |= {"success": True, "failureReason": 0, "gradingResult": None, "response": {"output": "another"}}
    document["results"]["stats"] = {}
    write(tmp_path, r__old_json=json.dumps(document))
    code, said = judge(tmp_path, "r")
    assert code == 2
    assert "r/new.json and r/old.json are two runs of the tool, not two executions in one run" in said


def promptfoo_lines(*tests: tuple[int, str, bool]) -> list[str]:
    """Results by the number of their test, what it asks, and whether it passed."""
    row = json.loads((FILES / "promptfoo-output.jsonl").read_text().splitlines()[0])
    return [
        json.dumps(row | {"testIdx": at, "promptIdx": 0, "vars": {"q": asked}, "metadata": {}, "testCase": {}} | ended)
        for at, asked, passed in tests
        for ended in [{"success": passed, "failureReason": int(not passed), "gradingResult": None, "error": None}]
    ]


@pytest.mark.parametrize("as_lines", [True, False])
@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ([(0, "a", True), (1, "b", True)], [(0, "a", True), (1, "b", False)], 2),
        ([(0, "a", True), (1, "b", True)], [(0, "b", False), (1, "a", True)], 2),
        ([(0, "a", True), (1, "b", True)], [(0, "c", False), (1, "d", True)], 1),
        ([(0, "a", True), (1, "b", True)], [(2, "a", True), (3, "b", False)], 1),
    ],
    ids=["two runs", "in another order", "parts of one", "repeats"],
)
def test_judge__two_runs_of_promptfoo_in_one_file__are_not_two_trials(tmp_path, old, new, code, as_lines) -> None:
    rows = promptfoo_lines(*old, *new)
    text = "\n".join(rows) if as_lines else f'{{"evalId": "e", "results": {{"results": [{",".join(rows)}]}}}}'
    write(tmp_path, **{"r_jsonl" if as_lines else "r_json": text})
    done, said = judge(tmp_path, "r.jsonl" if as_lines else "r.json")
    assert (done, "the file has two runs of promptfoo" in said) == (code, code == 2), said


@pytest.mark.parametrize(("run", "code"), [("one", 1), ("other", 2)])
def test_judge__two_models_of_one_run_of_inspect__are_suites_of_their_own(tmp_path, run, code) -> None:
    for model, of in (("a", "one"), ("b", run)):
        document = json.loads((FILES / "inspect-log.json").read_text())
        document["eval"] |= {"run_id": of, "model": model}
        write(tmp_path, **{f"r__{model}_json": json.dumps(document)})
    done, said = judge(tmp_path, "r", "--score", "policy>=0.3")
    assert (done, "refund, a " in said, "two runs of the tool" in said) == (code, code == 1, code == 2), said


def test_judge__two_runs_of_agentv_in_one_index__are_not_two_trials(tmp_path) -> None:
    row = (FILES / "agentv-index.jsonl").read_text().splitlines()[0]
    again = json.loads(row)
    again["execution_status"] = "quality_failure"
    again["projection_identity"]["dimensions"] |= {"run_id": "another"}
    write(tmp_path, r__index_jsonl=f"{row}\n{json.dumps(again)}\n")
    code, said = judge(tmp_path, "r")
    assert (code, "r/index.jsonl contains two runs of the tool" in said) == (2, True), said


def test_judge__one_run_in_two_forms__counts_once(tmp_path) -> None:
    (tmp_path / "r").mkdir()
    for name in ("promptfoo-output.json", "promptfoo-output.jsonl"):
        shutil.copy(FILES / name, tmp_path / "r")
    code, said = judge(tmp_path, "r")
    assert code == 1
    assert "r/promptfoo-output.jsonl has the same executions as r/promptfoo-output.json: they were read once" in said
    assert "1 of 3 pass 2 do not pass" in said


@pytest.mark.parametrize("id_", ["t[<A at 0x7f2b8c0d1e50>]", "t[2026-01-01T10:00:00]", "t[/tmp/pytest-of-x/1/f]"])
def test_judge__names_that_do_not_last__are_named_and_few_that_match_are_loud(tmp_path, id_) -> None:
    other = id_.replace("0x7f2b", "0x1111").replace("2026", "2027").replace("x/1", "x/2")
    write(tmp_path, a_jsonl=lines(**{"c": "passed", id_: "passed", f"{id_} 2": "passed"}))
    assert "2 cases have no stable name" in judge(tmp_path, "a.jsonl")[1]
    compared = ("--baseline", "latest", "--fail-on", "regressions")
    write(tmp_path, b_jsonl=lines(**{"c": "passed", other: "passed", f"{other} 2": "passed"}))
    code, said = judge(tmp_path, "b.jsonl", *compared, "--output-dir", "green")
    write(tmp_path, b_jsonl=lines(**{"c": "passed", other: "failed", f"{other} 2": "passed"}))
    code, said = judge(tmp_path, "b.jsonl", *compared)
    assert code == 3
    assert "only 1 of 3 cases are in the baseline" in said
    assert "give the case a fixed name" in said
    code, said = judge(tmp_path, "b.jsonl", *compared, "--min-coverage", "0")
    assert code == 0
    assert "only 1 of 3 cases are in the baseline: the others have no baseline and cannot be regressions" in said


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "r.jsonl",
            '{"id": "a", "status": "failed", "status": "passed"}',
            "r.jsonl:1: has `status` twice",
        ),
        ("r.csv", "id,status,status\na,failed,passed\n", "r.csv:1: status: is a column twice"),
        (
            "r.xml",
            "<testsuite><testcase name='a'>\n  \x01</testcase></testsuite>",
            "column 3 contains the control character U+0001",
        ),
    ],
)
def test_judge__file_that_contradicts_itself__is_refused_with_its_place(tmp_path, name, text, said) -> None:
    (tmp_path / name).write_text(text)
    code, words = judge(tmp_path, name)
    assert (code, said in words) == (2, True), words


@pytest.mark.parametrize("at", [0, 2])
def test_judge__verdict_twice_in_a_result_of_promptfoo__is_refused(tmp_path, at) -> None:
    document = json.loads((FILES / "promptfoo-output.json").read_text())
    document["results"]["results"][at]["success"] = "HERE"
    (tmp_path / "r.json").write_text(json.dumps(document).replace('"HERE"', 'false, "success": true'))
    code, said = judge(tmp_path, "r.json")
    assert (code, "r.json: has `success` twice in one object" in said) == (2, True)


@pytest.mark.parametrize(
    ("file", "changes", "said"),
    [
        ("promptfoo-output.json", {"failures": 3}, "counts 3 that did not pass, but has 2"),
        ("promptfoo-output.json", {"successes": 9}, "counts 11 executions, but has 3"),
        ("deepeval-test-run.json", {"testFailed": 4}, "counts 4 that did not pass"),
        ("inspect-log.json", {"total_samples": 9}, "counts 9 executions, but has 4"),
    ],
)
def test_judge__file_counts_more_than_it_holds__is_of_a_tool_that_did_not_finish(tmp_path, file, changes, said) -> None:
    document = json.loads((FILES / file).read_text())
    results = document.get("results", {})
    (results.get("stats") or (results if file.startswith("inspect") else document)).update(changes)
    (tmp_path / file).write_text(json.dumps(document))
    code, words = judge(tmp_path, file, "--score", "policy>=0.3")
    assert (code, said in words) == (3, True), words


def test_judge__agentv_5_was_stopped__is_no_result(tmp_path) -> None:
    (tmp_path / "r").mkdir()
    shutil.copy(FILES / "agentv-index.jsonl", tmp_path / "r/index.jsonl")
    (tmp_path / "r/summary.json").write_text('{"metadata": {"planned_test_count": 50}}')
    code, said = judge(tmp_path, "r")
    assert code == 3
    assert "of 50 results that AgentV planned" in said


@pytest.mark.parametrize("name", ["r.jsonl", "r.csv", "r.xml", "promptfoo-output.json", "deepeval-test-run.json"])
def test_judge__utf_16_as_powershell_writes_it__is_read(tmp_path, name) -> None:
    declared = f'<?xml version="1.0" encoding="utf-8"?>{RED}'
    texts = {"r.jsonl": lines(a="passed", b="failed"), "r.csv": "id,status\na,failed\n", "r.xml": declared}
    text = texts.get(name) or (FILES / name).read_text()
    (tmp_path / name).write_bytes(text.encode("utf-16"))
    assert judge(tmp_path, name)[0] == 1


def test_judge__score_on_another_scale__is_said(tmp_path) -> None:
    write(tmp_path, r_jsonl='{"id": "a", "status": "passed", "score": 20}\n')
    code, said = judge(tmp_path, "r.jsonl", "--pass-score", "0.7")
    assert (code, "1 result has a score outside of 0 to 1" in said) == (0, True)


@pytest.mark.parametrize(
    ("file", "text", "beside"),
    [
        ("r.jsonl", '{"id": "a", "status": "passed", "checks": [{"name": "x", "passed": false}]}', "that x did not"),
        (
            "r.jsonl",
            '{"id": "a", "status": "passed", "score": 0.1, "threshold": 0.5}',
            "a score of 0.1, below the threshold of 0.5",
        ),
        ("r.jsonl", '{"id": "a", "status": "passed", "error": "boom"}', "the error boom"),
        ("r.csv", "id,status,passed\na,passed,false\n", "`passed` false"),
        ("r.jsonl", '{"id": "a", "status": "passed", "score": 0.8, "checks": [{"name": "x", "passed": false}]}', None),
        ("r.csv", "id,status,passed,error\na,passed,true,\n", None),
    ],
)
def test_judge__a_pass_that_its_own_line_contradicts__is_none(tmp_path, file, text, beside) -> None:
    (tmp_path / file).write_text(text)
    code, said = judge(tmp_path, file)
    assert code == (3 if beside else 0), said
    assert f"the tool reports that it passed, but also {beside}" in said or beside is None


@pytest.mark.parametrize(
    ("line", "options", "code", "said"),
    [
        (
            {"score": 1, "threshold": 0.7, "passed": False},
            (),
            3,
            "its score passes, but the tool also reports `passed`",
        ),
        ({"score": 1, "threshold": 0.7, "error": "boom"}, (), 3, "its score passes, but the tool also reports the err"),
        (
            {"score": 1, "success": "no"},
            ("--pass-score", "0.7"),
            3,
            "its score passes, but the tool also reports `succ",
        ),
        ({"score": 0, "threshold": 0.7, "passed": False}, (), 1, "FAILED (1): a"),
        ({"score": 1, "threshold": 0.7, "passed": True, "error": ""}, (), 0, "1 of 1 pass"),
        ({"score": 0, "passed": False, "checks": [{"name": "x", "score": 1}]}, ("--score", "x>=1"), 0, "1 of 1 pass"),
    ],
)
def test_judge__a_score_that_passes_and_its_line_contradicts__is_no_pass(tmp_path, line, options, code, said) -> None:
    (tmp_path / "r.jsonl").write_text(json.dumps({"id": "a", **line}))
    ended, words = judge(tmp_path, "r.jsonl", *options)
    assert (ended, said in words) == (code, True), words


@pytest.mark.parametrize(
    ("checks", "code"),
    [
        ([{"name": "x", "score": None}], 3),
        ([{"name": "x", "score": float("nan")}], 3),
        ([{"name": "x", "score": None}, {"name": "y", "passed": False}], 1),
        ([{"name": "x", "score": None}, {"name": "y", "passed": True}], 3),
        ([{"name": "x", "score": 0}, {"name": "y", "score": None}], 1),
    ],
)
@pytest.mark.parametrize("status", ["passed", "failed"])
def test_judge__scorer_of_a_rule_gave_no_score__is_no_wrong_response(tmp_path, checks, code, status) -> None:
    (tmp_path / "r.jsonl").write_text(json.dumps({"id": "a", "status": status, "score": 0.5, "checks": checks}))
    if status == "passed" and checks[1:2] == [{"name": "y", "passed": False}]:
        code = 3  # nobody knows whether the line or the check is right
    ended, words = judge(tmp_path, "r.jsonl", "--score", "x>=0.7")
    assert (ended, " a: x gave no score" in words) == (code, code == 3), words


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ({"error": "ConnectionRefusedError: [Errno 111] Connection refused"}, "agent unreachable"),
        ({"error": "HTTP 429 Too Many Requests"}, "agent unreachable"),
        ({"error": "ValueError: order 429 is unknown"}, "agent error"),
        ({"error": "HTTP 429 Too Many Requests", "error_kind": "agent_error"}, "agent error"),
        ({}, "agent error"),
    ],
)
def test_judge__own_line_of_an_error_without_its_kind__is_of_the_kind_that_its_words_say(tmp_path, line, kind) -> None:
    (tmp_path / "r.jsonl").write_text(json.dumps({"id": "a", "status": "error", **line}))
    ended, words = judge(tmp_path, "r.jsonl")
    assert (ended, f"1 does not pass (1 {kind})" in words) == (3, True), words


def openai_record(**changes: object) -> list[str]:
    """A real record, of a sample that fails and one that passes; `changes` are made in every line."""
    return [
        text.replace("261122155743NRBS42KS", str(changes.get("run", "261122155743NRBS42KS")))
        for text in (FILES / "openai-record.jsonl").read_text().splitlines()
    ]


@pytest.mark.parametrize(
    "joined",
    [
        lambda old, new: [*(one.replace('"correct": false', '"correct": true') for one in old), *new],
        lambda old, new: [*old, new[0]],
        lambda old, new: [*old, *new[2:]],
    ],
    ids=["both", "one that was ended at once", "without its specification"],
)
def test_judge__two_runs_of_openai_evals_in_one_file__are_refused(tmp_path, joined) -> None:
    (tmp_path / "r.jsonl").write_text("\n".join(joined(openai_record(run="OLD"), openai_record())))
    code, said = judge(tmp_path, "r.jsonl")
    assert (code, "r.jsonl contains two runs of the tool, not two executions in one run" in said) == (2, True), said


@pytest.mark.parametrize(
    ("keep", "accuracy", "why"),
    [
        (slice(2, 4), 0.5, "reports an accuracy of 0.5, and its events make 0"),
        (slice(4, 6), 1.0, "is missing 2 of the events that evals numbered"),
        (slice(4, 4), 1.0, "reports an accuracy of 1, and it has no matches and no measurements"),
    ],
)
def test_judge__part_of_a_record_of_openai_evals__is_no_result(tmp_path, keep, accuracy, why) -> None:
    lines = openai_record()
    head = [lines[0], lines[1].replace("0.5", str(accuracy), 1)]
    (tmp_path / "r.jsonl").write_text("\n".join([*head, *lines[keep]]))
    code, said = judge(tmp_path, "r.jsonl")
    assert (code, why in said) == (3, True), said


@pytest.mark.parametrize(("counts", "code"), [({"counts/Y": 1}, 0), ({"counts/Y": 1, "counts/N": 1}, 3)])
def test_judge__classes_that_openai_evals_counted__are_held_against_its_samples(tmp_path, counts, code) -> None:
    events = [{"spec": {"eval_name": "e"}}, {"final_report": counts}]
    events.append({"sample_id": "e.0", "type": "metrics", "data": {"choice": "Y", "score": 1.0}})
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, events)))
    done, said = judge(tmp_path, "r.jsonl", "--pass-score", "0.7")
    assert done == code, said


def trials(status: str, *numbers: int, **more: object) -> str:
    return "".join(json.dumps({"id": "a", "status": status, "trial": at} | more) + "\n" for at in numbers)


@pytest.mark.parametrize(
    ("files", "place"),
    [
        ({"r__1_jsonl": trials("passed", 1) + trials("failed", 1)}, "r/1.jsonl:2: trial 1"),
        ({"r__1_jsonl": trials("passed", 1), "r__2_jsonl": trials("failed", 1)}, "r/2.jsonl:1: trial 1"),
        ({"r__1_jsonl": trials("passed", 1), "r__2_csv": "id,status,trial\na,failed,1\n"}, "r/2.csv:2: trial 1"),
        ({"r__1_jsonl": trials("passed", 1) + trials("passed", 2, 2, rerun=True)}, "r/1.jsonl:3: re-run 2"),
    ],
)
def test_judge__one_trial_twice__is_an_error_that_names_both_lines(tmp_path, files, place) -> None:
    write(tmp_path, **files)
    code, said = judge(tmp_path, "r", "--fail-on", "regressions")
    assert (code, f'{place} of "a" occurs twice, first at r/1.jsonl:' in said) == (2, True), said


def test_judge__trials_in_several_files__are_executions_of_one_case(tmp_path) -> None:
    write(tmp_path, r__1_jsonl=trials("passed", 1), r__2_jsonl=trials("passed", 2) + trials("failed", 1, rerun=True))
    code, said = judge(tmp_path, "r")
    assert (code, "1 of 1 pass" in said) == (0, True), said


def test_judge__own_results_as_lines_and_as_a_table__count_once(tmp_path) -> None:
    write(tmp_path, r__1_jsonl=trials("failed", 1), r__2_csv="id,status,trial\na,failed,1\n")
    code, said = judge(tmp_path, "r")
    assert (code, "r/2.csv has the same executions as r/1.jsonl: they were read once" in said) == (1, True), said


def test_judge__epoch_of_inspect_twice__is_an_error(tmp_path) -> None:
    document = json.loads((FILES / "inspect-log.json").read_text())
    document["samples"].append(document["samples"][0])
    (tmp_path / "r.json").write_text(json.dumps(document))
    code, said = judge(tmp_path, "r.json", "--score", "policy>=0.3")
    assert (code, "occurs twice, first at r.json" in said) == (2, True), said


def test_judge__coverage_beside_results__is_passed_over_where_it_is_coverage(tmp_path) -> None:
    write(tmp_path, r__TEST_xml=GREEN, r__coverage_xml='<?xml version="1.0" ?><coverage version="7"/>')
    code, said = judge(tmp_path, "r")
    assert (code, "r/coverage.xml is a coverage report and has no results" in said) == (0, True), said
    write(tmp_path, r__coverage_xml=RED)
    assert judge(tmp_path, "r")[0] == 1, "what is called so and holds results is read"


@pytest.mark.parametrize("name", [".shard2/b.xml", "b.XML", "link/b.xml", "b-link.xml"])
def test_judge__hidden_linked_and_loud_names__are_read(tmp_path, name) -> None:
    write(tmp_path, r__a_xml=GREEN, else__b_xml=RED)
    file = tmp_path / "r" / name
    if "link" in name:
        (file if file.parent.name == "r" else file.parent).symlink_to(
            tmp_path / "else" / ("b.xml" if file.parent.name == "r" else "")
        )
    else:
        file.parent.mkdir(exist_ok=True)
        file.write_text(RED)
    code, said = judge(tmp_path, "r")
    assert (code, "1 does not pass" in said) == (1, True), said


@pytest.mark.parametrize(
    ("make", "code", "says"),
    [
        (lambda folder: (folder / "b.xml.gz").write_bytes(b"\x1f\x8b"), 2, "r/b.xml.gz: is an archive"),
        (lambda folder: (folder / "b.xml").symlink_to("gone.xml"), 3, "r/b.xml: is a broken link: its file is missing"),
        (
            lambda folder: (folder / "b.txt").write_text("x"),
            0,
            "r contains 1 file that was not read: r/b.txt (only .jsonl, .ndjson, .csv, .xml, .json, .eval and .trx ",
        ),
        (lambda folder: (folder / "latest").symlink_to("."), 0, "r/latest is a link to ., which is read anyway"),
        (lambda folder: (folder / ".gitignore").write_text("*"), 0, "1 of 1 pass"),
    ],
    ids=["packed", "broken link", "another kind", "a link within", "git's"],
)
def test_judge__what_is_not_read_of_a_folder__is_named_or_refused(tmp_path, make, code, says) -> None:
    write(tmp_path, r__a_xml=GREEN)
    make(tmp_path / "r")
    done, said = judge(tmp_path, "r")
    assert (done, says in said) == (code, True), said


def test_judge__a_run_of_agentv_in_the_folder_of_another__is_read_or_refused(tmp_path) -> None:
    row = json.loads((FILES / "agentv-index.jsonl").read_text().splitlines()[0])
    (tmp_path / "r" / "sub").mkdir(parents=True)
    (tmp_path / "r" / "index.jsonl").write_text(json.dumps(row | {"execution_status": "ok"}))
    (tmp_path / "r" / "sub" / "index.jsonl").write_text(json.dumps(row | {"execution_status": "quality_failure"}))
    code, said = judge(tmp_path, "r")
    assert (code, "are two runs of the tool" in said) == (2, True), said


def test_judge__name_that_holds_a_date_and_is_in_the_baseline__has_lasted(tmp_path) -> None:
    write(tmp_path, a_jsonl=lines(**{"hours on 2024-05-01 10:00": "passed"}))
    assert "1 case has no stable name" in judge(tmp_path, "a.jsonl")[1]
    code, said = judge(tmp_path, "a.jsonl", "--baseline", "latest")
    assert (code, "no stable name" in said) == (0, False), said
    write(tmp_path, a_jsonl=lines(**{"hours on 2024-05-01 10:00": "passed", "at 2024-05-01 11:00": "passed"}))
    assert "1 case has no stable name (at 2024-05-01 11:00)" in judge(tmp_path, "a.jsonl", "--baseline", "latest")[1]


@pytest.mark.parametrize("cut", [3, 40, 0.5])
@pytest.mark.parametrize("name", ["r.jsonl", "r.xml", "promptfoo-output.json", "deepeval-test-run.json"])
def test_judge__file_that_breaks_off__is_of_a_tool_that_did_not_finish(tmp_path, name, cut) -> None:
    texts = {
        "r.jsonl": lines(a="passed", b="passed", c="passed"),
        "r.xml": GREEN.replace("<testcase", "  <testcase", 9),
    }
    text = (texts.get(name) or (FILES / name).read_text()).rstrip()
    (tmp_path / name).write_text(text[: int(len(text) * cut) if cut < 1 else -cut])
    code, said = judge(tmp_path, name)
    assert (code, "ends in the middle" in said) == (3, True), said


def test_judge__number_or_archive_that_breaks_off__is_of_a_tool_that_did_not_finish(tmp_path) -> None:
    (tmp_path / "a.eval").write_bytes(b"PK\x03\x04 and so on")
    (tmp_path / "b.json").write_text('{"testCases": [{"score": 1.')
    (tmp_path / "c.json").write_text('{"evalId": "e", "results": {"results": [{"score": 1.')
    for name in ("a.eval", "b.json", "c.json"):
        assert judge(tmp_path, name)[0] == 3, name


def test_judge__bad_line_with_others_behind_it__is_a_mistake(tmp_path) -> None:
    (tmp_path / "r.jsonl").write_text(
        '{"id": "a", "status": "passed"}\n{"id": "b", "sta\n{"id": "c", "status": "passed"}\n'
    )
    assert judge(tmp_path, "r.jsonl")[0] == 2


@pytest.mark.parametrize("separator", [";", "\t"])
def test_judge__table_by_semicolon_or_tab__is_read(tmp_path, separator) -> None:
    rows = ("suite", "id", "status", "error"), ("s", "a", "passed", ""), ("s", "b", "failed", "no, not this")
    (tmp_path / "r.csv").write_text("".join(f"{separator.join(row)}\n" for row in rows))
    code, said = judge(tmp_path, "r.csv")
    assert (code, "1 of 2 pass 1 does not pass" in said) == (1, True), said


def test_judge__list_where_lines_are_meant__is_named_with_the_way_on(tmp_path) -> None:
    (tmp_path / "r.json").write_text('[{"id": "a", "status": "passed"}]')
    code, said = judge(tmp_path, "r.json", "--results-format", "jsonl")
    assert (code, "r.json: is one JSON list, not one object per line" in said) == (2, True), said


def retried(*ended: str) -> str:
    """A test of gotestsum's with a result for each attempt, beside one that passes."""
    failure = {"P": "", "F": '<failure message="no"/>'}
    attempts = "".join(f'<testcase classname="pkg" name="TestA">{failure[one]}</testcase>' for one in ended)
    return f'<testsuites><testsuite name="pkg"><testcase name="TestB"/>{attempts}</testsuite></testsuites>'


@pytest.mark.parametrize(
    ("now", "code", "said"),
    [
        ("FP", 0, "TestA: inconclusive: failed 1 of 2 here, 0 of 5 in the history"),
        ("FF", 1, "confirmed: failed 2 of 2 here, 0 of 5 in the history"),
        ("PP", 2, '"TestA" occurs twice'),
        ("PF", 2, '"TestA" occurs twice'),
    ],
)
def test_check__test_stands_twice_in_junit__is_re_run_where_the_order_shows_it(tmp_path, now, code, said) -> None:
    for _ in range(5):
        write(tmp_path, r_xml=retried("P"))
        assert judge(tmp_path, "r.xml")[0] == 0
    write(tmp_path, r_xml=retried(*now))
    ended, words = judge(tmp_path, "r.xml", "--baseline", "latest", "--fail-on", "regressions")
    assert (ended, said in words) == (code, True), words
    assert ("r.xml repeats 1 case after a failure" in words) is (code < 2)


@pytest.mark.parametrize(
    ("runs", "now", "code", "said"),
    [
        (1, "FFP", 3, "no command re-runs it"),
        (1, "FFFP", 3, "no command re-runs it"),
        (5, "FFP", 3, "no command re-runs it"),
        (10, "FFP", 1, "confirmed: failed 2 of 3 here"),
        (1, "FP", 0, "TestA: inconclusive: failed 1 of 2 here"),
        (1, "FFFFP", 3, "inconclusive: failed 4 of 5 here"),
    ],
)
def test_check__results_of_one_name_failed_more_often_than_they_passed__is_no_pass(
    tmp_path, runs, now, code, said
) -> None:
    """Only their order shows retries, and the file does not say that the tool counts the test as passed."""
    for _ in range(runs):
        write(tmp_path, r_xml=retried("P"))
        assert judge(tmp_path, "r.xml")[0] == 0
    write(tmp_path, r_xml=retried(*now))
    ended, words = judge(tmp_path, "r.xml", "--baseline", "latest", "--fail-on", "regressions")
    assert (ended, said in words) == (code, True), words


@pytest.mark.parametrize(
    ("attempts", "code", "said"),
    [
        (
            '<flakyFailure message="no"><stackTrace>at</stackTrace><system-out>ten</system-out></flakyFailure>',
            0,
            "TestA",
        ),
        ('<flakyFailure message="no"/><flakyError message="broke"/>', 0, "1 case failed and passed in a retry"),
        ('<failure message="no"/><rerunFailure message="still no"/>', 1, "failed every time: 2 of 2 here"),
    ],
)
def test_check__retries_that_the_tool_marks__count_as_the_tool_counts_them(tmp_path, attempts, code, said) -> None:
    """As Surefire writes them, and Playwright with `includeRetries`."""
    write(tmp_path, base_xml=retried("P"), now_xml=retried("P").replace('name="TestA">', f'name="TestA">{attempts}'))
    ended, words = judge(tmp_path, "now.xml", "--baseline", "base.xml", "--fail-on", "regressions")
    assert (ended, said in words, "re-runs missing" in words.lower()) == (code, True, False), words


@pytest.mark.parametrize(("flaky", "code", "said"), [("0", 1, "1 regression"), ("1", 3, "counts 1 flaky test")])
def test_check__suite_does_not_say_which_test_was_flaky__is_an_evaluation_error(tmp_path, flaky, code, said) -> None:
    """As gdUnit4 writes the failures of each attempt into the test."""
    suite = '<testsuites name="report_{}"><testsuite name="s" flaky="{}"><testcase name="a">{}</testcase></testsuite>'
    failure = '<failure message="FAILED: a.gd:9" type="FAILURE"/>'
    write(tmp_path, base_xml=f"{suite.format(1, 0, '')}</testsuites>")
    write(tmp_path, now_xml=f"{suite.format(2, flaky, failure)}</testsuites>")
    ended, words = judge(tmp_path, "now.xml", "--baseline", "base.xml", "--fail-on", "regressions")
    assert (ended, said in words, "report_" in words) == (code, True, False), words


def test_check__test_that_comes_and_goes_fails_most_retries__is_explained_by_its_history(tmp_path) -> None:
    for before in "PFPFPFPP":
        write(tmp_path, r_xml=retried(before))
        assert judge(tmp_path, "r.xml", "--fail-on", "never")[0] == 0
    write(tmp_path, r_xml=retried(*"FFP"))
    ended, words = judge(tmp_path, "r.xml", "--baseline", "latest", "--fail-on", "regressions")
    assert ended == 0, words


def test_check__another_test_of_the_same_name_passes__is_no_retry(tmp_path) -> None:
    tests = '<testcase name="a" line="3"><failure message="no"/></testcase><testcase name="a" line="9"/>'
    write(tmp_path, r_xml=f'<testsuite name="s">{tests}</testsuite>')
    code, said = judge(tmp_path, "r.xml")
    assert (code, '"a" occurs twice' in said) == (2, True), said


@pytest.mark.parametrize("name", ["b.xml", "summary.json", "index.jsonl", "coverage.xml"])
def test_judge__pipe_in_a_folder_of_results__is_refused_and_not_waited_for(tmp_path, name) -> None:
    write(tmp_path, r__a_xml=GREEN)
    os.mkfifo(tmp_path / "r" / name)
    code, said = judge(tmp_path, "r")
    assert (code, f"r/{name}: is not a regular file" in said) == (2, True), said
    assert judge(tmp_path, "r/a.xml", "--baseline", f"r/{name}")[0] == 2


def test_judge__file_without_a_case_among_others__is_named(tmp_path) -> None:
    write(
        tmp_path,
        r__a_xml=GREEN,
        r__p1__b_xml="<testsuites/>",
        r__p2__c_xml='<testsuites><testsuite name="s"/></testsuites>',
    )
    code, said = judge(tmp_path, "r")
    assert (code, "2 results files have no cases: r/p1/b.xml, r/p2/c.xml" in said) == (0, True), said
