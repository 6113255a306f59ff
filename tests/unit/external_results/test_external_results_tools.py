"""What other tools wrote: each file here was made by running that tool with an echo or mock provider."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest
import zstandard

from eval_gate.config.settings import ResultsFormat
from eval_gate.errors import ExitCode, GateError
from eval_gate.external_results.loader import load_external_results
from eval_gate.external_results.score_rules import ScoreRules
from eval_gate.model.execution import ErrorKind
from tests.support.tool_results import ERROR, FAILED, FILES, PASSED, changed, load, refused, statuses


@pytest.mark.parametrize(
    ("file", "format_"),
    [
        ("promptfoo-output.json", ResultsFormat.PROMPTFOO),
        ("promptfoo-output.jsonl", ResultsFormat.PROMPTFOO),
        ("deepeval-test-run.json", ResultsFormat.DEEPEVAL),
        ("deepeval-pytest-junit.xml", ResultsFormat.JUNIT),
        ("inspect-log.eval", ResultsFormat.INSPECT),
        ("inspect-log.json", ResultsFormat.INSPECT),
        ("pydantic-evals-report.json", ResultsFormat.PYDANTIC_EVALS),
        ("agentv-index.jsonl", ResultsFormat.AGENTV),
        ("openai-record.jsonl", ResultsFormat.OPENAI),
    ],
)
def test_recognise__a_real_file__is_known_by_what_is_in_it(file, format_, tmp_path) -> None:
    elsewhere = tmp_path / f"results{Path(file).suffix}"
    elsewhere.write_bytes((FILES / file).read_bytes())
    assert load(elsewhere, scores=("policy>=0.3",)).format is format_


def test_promptfoo__names__are_those_that_last() -> None:
    assert statuses(load("promptfoo-output.json")) == {
        ("bot", "refund-1"): [PASSED],  # metadata.testCaseId
        ("bot", "opening hours"): [FAILED],
        ("bot", "javascript"): [FAILED],
    }


def test_promptfoo__lines__are_the_same_cases() -> None:
    assert statuses(load("promptfoo-output.jsonl")) == statuses(load("promptfoo-output.json"))


def test_promptfoo__checks_question_and_answer__are_kept() -> None:
    [row] = load("promptfoo-output.json").cases["bot", "opening hours"]
    assert row.prompt == "When are you open?"
    assert row.response == "Answer the customer: When are you open?"
    assert [(one.name, one.passed) for one in row.scores] == [("contains", False)]
    assert row.expectation == ('contains "Sunday"',)
    assert row.error == 'Expected output to contain "Sunday"'
    assert row.usage is None
    assert row.cost_usd is None


def test_promptfoo__a_provider_that_broke__is_an_error_and_repeats_are_trials() -> None:
    assert statuses(load("promptfoo-error-repeat.json")) == {("exec: sh -c false", '{"q":"a"}'): [ERROR, ERROR]}


def test_promptfoo__two_tests_share_a_description__are_told_apart_by_their_variables(tmp_path) -> None:
    def change(document) -> None:
        for one in document["results"]["results"][1:]:
            one["testCase"]["description"] = "same"

    assert [key.case_id for key in load(changed(tmp_path, "promptfoo-output.json", change)).cases] == [
        "refund-1",
        'same {"q":"When are you open?"}',
        'same {"q":"x"}',
    ]


def test_promptfoo__two_tests_share_a_test_case_id__is_an_error_with_both_places(tmp_path) -> None:
    def change(document) -> None:
        for one in document["results"]["results"]:
            one["metadata"] = {"testCaseId": "refund-1"}

    error = refused(changed(tmp_path, "promptfoo-output.json", change))
    assert (error.code, error.exit_code) == ("duplicate-results", ExitCode.USAGE)
    assert "results.results[1]" in str(error.problems[0])
    assert "first at" in str(error.problems[0])
    assert "results.results[0]" in str(error.problems[0])


def test_promptfoo__a_test_without_name_and_variables__is_said_to_have_no_stable_name(tmp_path) -> None:
    def change(document) -> None:
        one = document["results"]["results"][1]
        one["vars"], one["testCase"] = {}, {"assert": []}

    brought = load(changed(tmp_path, "promptfoo-output.json", change))
    note = brought.describe_unstable_names(brought.cases) or ""
    assert note.startswith("1 case has no stable name (test 1): "), "also where another one had it before"
    assert "metadata: {testCaseId: …}" in note


def test_promptfoo__type_of_an_assertion_that_is_no_text__is_read_all_the_same(tmp_path) -> None:
    def change(document) -> None:
        for one in document["results"]["results"]:
            one["gradingResult"] = {"pass": True, "componentResults": [{"pass": True, "assertion": {"type": ["bleu"]}}]}

    scores = [row.scores for row in load(changed(tmp_path, "promptfoo-output.json", change)).rows]
    assert {score.name for several in scores for score in several} == {'["bleu"]'}


def test_promptfoo__several_prompts__are_suites_by_their_number(tmp_path) -> None:
    def change(document) -> None:
        document["results"]["results"][2]["promptIdx"] = 1

    suites = {key.suite for key in load(changed(tmp_path, "promptfoo-output.json", change)).cases}
    assert suites == {"bot", "bot, prompt 2"}


@pytest.mark.parametrize("lines", [False, True])
def test_promptfoo__another_provider_before_it__leaves_the_numbers_of_its_prompts(lines, tmp_path) -> None:
    """`promptIdx` counts pairs of provider and prompt, and lines come in any order."""

    def written(*providers: str) -> Path:
        document = json.loads((FILES / "promptfoo-output.json").read_text())
        pattern = document["results"]["results"][0]
        pairs = [{"provider": name, "raw": prompt} for name in providers for prompt in ("one", "two")]
        rows = [
            pattern | {"promptIdx": at, "provider": {"id": "x", "label": pair["provider"]}}
            for at, pair in enumerate(pairs)
        ]
        document["results"] = {"prompts": pairs, "results": rows}
        file = tmp_path / f"{len(providers)}.json{'l' if lines else ''}"
        file.write_text("\n".join(map(json.dumps, reversed(rows))) if lines else json.dumps(document))
        return file

    one = {key.suite for key in load(written("bot")).cases}
    two = {key.suite for key in load(written("new", "bot")).cases}
    assert one == {"bot", "bot, prompt 2"}
    assert two == one | {"new", "new, prompt 2"}


def test_promptfoo__its_junit__is_refused_with_what_to_write_instead() -> None:
    error = refused("promptfoo-junit.xml")
    assert (error.code, error.exit_code) == ("invalid-results", ExitCode.USAGE)
    assert "-o out.json" in (error.hint or "")


def test_promptfoo__a_file_that_was_cut_off__is_no_result(tmp_path) -> None:
    file = tmp_path / "out.json"
    file.write_bytes((FILES / "promptfoo-output.json").read_bytes()[:-2000])
    error = refused(file)
    assert (error.code, error.exit_code) == ("results-incomplete", ExitCode.INCOMPLETE)


def test_deepeval__cases__are_named_by_their_name_and_carry_their_metrics() -> None:
    brought = load("deepeval-test-run.json")
    assert statuses(brought) == {("test_d.py", "bot-Refund 4711"): [PASSED], ("test_d.py", "bot-hours"): [FAILED]}
    [row] = brought.cases["test_d.py", "bot-hours"]
    assert [call.name for call in row.calls] == ["lookup"]
    assert row.calls[0].params == {"order": "4711"}
    assert row.duration_ms == pytest.approx(54.9, abs=0.1)


def test_deepeval__names_that_pytest_made__give_way_to_the_question_and_repeats_are_trials(tmp_path) -> None:
    def change(document) -> None:
        document["metricsScores"] = []
        first, second = document["testCases"]
        again = dict(first, name="test_bot[hours-9 to 18]-1-2", success=False)
        first["name"] = "test_bot[hours-9 to 17]-0-2"
        document["testCases"] = [first, again, second, second]

    file = changed(tmp_path, "deepeval-test-run.json", change)
    cases = load(file).cases
    assert [(key.case_id, len(rows)) for key, rows in cases.items()] == [("Refund 4711", 2), ("bot-hours", 2)]
    document = json.loads(file.read_text())
    document["testCases"].pop()
    document["testFailed"] = document["testPassed"] = 0
    file.write_text(json.dumps(document))
    assert refused(file).code == "duplicate-results"


def test_deepeval__a_metric_that_broke__is_an_error_and_no_failure(tmp_path) -> None:
    def change(document) -> None:
        for metric in document["testCases"][1]["metricsData"]:
            metric.update(error="the judge answered 500", score=None)
        document["metricsScores"] = [{"metric": "Exact Match", "passes": 1, "fails": 0, "errors": 1}]

    brought = load(changed(tmp_path, "deepeval-test-run.json", change))
    [row] = brought.cases["test_d.py", "bot-hours"]
    assert (row.status, row.error) == (
        ERROR,
        "Exact Match: the judge answered 500; Pattern Match: the judge answered 500",
    )


def test_deepeval__fewer_metrics_than_it_counted__is_no_result(tmp_path) -> None:
    def change(document) -> None:
        del document["testCases"][1], document["testPassed"], document["testFailed"]

    error = refused(changed(tmp_path, "deepeval-test-run.json", change))
    assert (error.code, error.exit_code) == ("results-incomplete", ExitCode.INCOMPLETE)
    assert "counts 2 fails of metrics, but has 0" in str(error.problems[0])


@pytest.mark.parametrize("file", ["inspect-log.eval", "inspect-log.json"])
def test_inspect__both_forms_of_a_log__hold_the_same_cases_with_epochs_as_trials(file) -> None:
    brought = load(file, scores=("policy>=0.3",))
    assert statuses(brought) == {("refund", "hours"): [FAILED, FAILED], ("refund", "refund-1"): [PASSED, PASSED]}
    assert brought.tool == "Inspect 0.3.285"
    row = brought.cases["refund", "refund-1"][0]
    assert row.calls[0].name == "lookup"
    assert row.calls[0].success is True
    assert row.usage is not None
    assert row.usage.input_tokens in {240, 480}


def test_inspect__a_number_without_a_rule__is_an_error_that_names_the_scorer() -> None:
    error = refused("inspect-log.json")
    assert (error.code, error.exit_code) == ("missing-score-rule", ExitCode.USAGE)
    assert '"policy"' in error.message
    assert "--score 'policy>=0.7'" in (error.hint or "")


def test_inspect__a_rule_that_does_not_hold__fails_the_case_with_the_rule_in_words() -> None:
    row = load("inspect-log.json", scores=("policy>=0.7",)).cases["refund", "refund-1"][0]
    assert row.status is FAILED
    assert [one.reason for one in row.scores if one.name == "policy"] == [
        "hands over without reason (rule: policy>=0.7)"
    ]


def test_inspect__a_sample_that_broke__is_an_error_although_the_log_says_success(tmp_path) -> None:
    def change(document) -> None:
        document["samples"][0].update(scores={}, error={"message": "boom", "traceback": "…"})

    brought = load(changed(tmp_path, "inspect-log.json", change), scores=("policy>=0.3",))
    assert statuses(brought)["refund", "hours"] == [ERROR, FAILED]


@pytest.mark.parametrize("status", ["error", "cancelled", "started"])
def test_inspect__a_log_that_was_not_finished__is_no_result(status, tmp_path) -> None:
    error = refused(changed(tmp_path, "inspect-log.json", lambda document: document.update(status=status)))
    assert (error.code, error.exit_code) == ("results-incomplete", ExitCode.INCOMPLETE)


@pytest.mark.parametrize("number", ["NaN", "1e400"])
def test_inspect__not_a_number__was_not_scored(tmp_path, number) -> None:
    file = tmp_path / "log.json"
    head, samples, rest = (FILES / "inspect-log.json").read_text().partition('"samples"')
    file.write_text(head + samples + rest.replace('"value": 0.35', f'"value": {number}'))
    found = statuses(load(file, scores=("policy>=0.3",)))
    assert found == {("refund", "hours"): [FAILED, FAILED], ("refund", "refund-1"): [ERROR, ERROR]}


def test_pydantic_evals__assertions_decide__and_repeats_are_trials_by_their_source_name() -> None:
    brought = load("pydantic-evals-report.json")
    assert statuses(brought) == {("refund", "refund-1"): [FAILED, FAILED], ("refund", "boom"): [ERROR, ERROR]}
    row = brought.cases["refund", "refund-1"][0]
    assert row.error == "EqualsExpected: 0.0; grants: hands over"
    assert row.cost_usd == 0.002


def test_pydantic_evals__no_assertion_and_an_evaluator_that_broke__is_an_error(tmp_path) -> None:
    def change(document) -> None:
        for case in document["cases"]:
            case.update(assertions={}, scores={}, evaluator_failures=[{"name": "Policy", "error_message": "500"}])

    brought = load(changed(tmp_path, "pydantic-evals-report.json", change))
    assert statuses(brought)["refund", "refund-1"] == [ERROR, ERROR]
    assert brought.cases["refund", "refund-1"][0].error == "Policy: 500"


def test_pydantic_evals__only_scores__need_a_rule(tmp_path) -> None:
    def change(document) -> None:
        for case in document["cases"]:
            case["assertions"] = {}

    file = changed(tmp_path, "pydantic-evals-report.json", change)
    assert refused(file).code == "missing-score-rule"
    assert statuses(load(file, scores=("policy>0.3",)))["refund", "refund-1"] == [PASSED, PASSED]
    graded = load(file, pass_score=0.3).cases["refund", "refund-1"][0]
    assert (graded.is_graded, graded.score, graded.status) == (True, 0.35, FAILED)  # the gate says what is enough


def test_agentv__rows__are_named_by_suite_target_and_test() -> None:
    brought = load("agentv-index.jsonl")
    assert statuses(brought) == {("a, mockt", "refund-1"): [PASSED], ("a, mockt", "hours"): [FAILED]}
    [row] = brought.cases["a, mockt", "hours"]
    assert row.error == 'contains-Sunday: Output does not contain "Sunday"'


def test_agentv__the_files_beside_the_index__are_read_and_none_elsewhere(tmp_path) -> None:
    index = (FILES / "agentv-index.jsonl").read_text().splitlines()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "index.jsonl").write_text(index[0])
    folder = tmp_path / "run" / "a" / "refund-1"
    (folder / "outputs").mkdir(parents=True)
    (folder / "outputs" / "answer.md").write_text("Order 4711 is refunded.")
    (folder / "timing.json").write_text('{"duration_ms": 12, "token_usage": {"input": 3, "output": 4}}')
    [row] = load(tmp_path / "run").cases["a, mockt", "refund-1"]  # a folder leads to its index
    assert (row.response, row.duration_ms) == ("Order 4711 is refunded.", 12)
    assert row.usage is not None
    assert row.usage.output_tokens == 4
    (tmp_path / "secret.txt").write_text("secret")
    out = index[0].replace('"a/refund-1/outputs/answer.md"', '"../secret.txt"')
    (tmp_path / "run" / "index.jsonl").write_text(out)
    assert "outside of its folder" in str(refused(tmp_path / "run").problems[0])


def test_agentv__fewer_rows_than_it_had_planned__is_no_result(tmp_path) -> None:
    (tmp_path / "index.jsonl").write_text((FILES / "agentv-index.jsonl").read_text())
    summary = tmp_path / "benchmark.json"
    summary.write_text('{"metadata": {"planned_test_count": 2}}')
    assert len(load(tmp_path).cases) == 2
    summary.write_text('{"metadata": {"planned_test_count": 3}}')
    error = refused(tmp_path)
    assert (error.code, error.exit_code) == ("results-incomplete", ExitCode.INCOMPLETE)
    assert "holds 2 of 3 results" in str(error.problems[0])


def test_agentv__row_that_a_rerun_wrote_twice__is_one_execution(tmp_path) -> None:
    rows = (FILES / "agentv-index.jsonl").read_text().splitlines()
    (tmp_path / "index.jsonl").write_text("\n".join([*rows, rows[1]]))
    brought = load(tmp_path)
    assert statuses(brought) == {("a, mockt", "refund-1"): [PASSED], ("a, mockt", "hours"): [FAILED]}
    assert "index.jsonl:3 is the same row as" in brought.notes[0]
    (tmp_path / "benchmark.json").write_text('{"metadata": {"planned_test_count": 3}}')
    assert "holds 2 of 3 results" in str(refused(tmp_path).problems[0]), "it makes up for none that is missing"


@pytest.fixture
def agentv_5(tmp_path) -> Path:
    """A run that AgentV 5.3.1-next.1 wrote: a passed test, a failed one, and one whose agent broke."""
    return shutil.copytree(FILES / "agentv-5", tmp_path / "run")


AGENTV_5 = {("words, scripted", "good"): [PASSED], ("words, scripted", "poor"): [FAILED]} | {
    ("words, scripted", "broken"): [ERROR]
}


@pytest.mark.parametrize("name", ["", "summary.json", ".internal/index.jsonl"])
def test_agentv_5__folder_summary_or_index__is_the_run_with_its_files(agentv_5, name) -> None:
    brought = load(agentv_5 / name)
    assert statuses(brought) == AGENTV_5
    [row] = brought.cases["words, scripted", "good"]
    assert (row.response, row.duration_ms) == ("w0 w1 w2", 77)
    assert row.content is not None
    [row] = brought.cases["words, scripted", "poor"]
    assert row.error == 'contains-w2: Output does not contain "w2"'
    [row] = brought.cases["words, scripted", "broken"]
    assert (row.error, row.error_kind) == ("broken (exit code 1)", ErrorKind.AGENT_ERROR)


def test_agentv_5__test_that_changed__is_another_case(agentv_5) -> None:
    [before] = load(agentv_5).cases["words, scripted", "good"]
    [file] = agentv_5.glob("good--*/test/EVAL.yaml")
    file.write_text(file.read_text().replace("Say it.", "Say it again."))
    [now] = load(agentv_5).cases["words, scripted", "good"]
    assert now.content != before.content


@pytest.mark.parametrize("name", ["", "summary.json", ".internal/index.jsonl"])
def test_agentv_5__run_that_was_stopped__is_no_result(agentv_5, name) -> None:
    index = agentv_5 / ".internal" / "index.jsonl"
    index.write_text(index.read_text().splitlines()[0])
    error = refused(agentv_5 / name)
    assert (error.code, error.exit_code) == ("results-incomplete", ExitCode.INCOMPLETE)
    assert "holds 1 of 3 results" in str(error.problems[0])


@pytest.mark.parametrize("name", ["", "summary.json"])
def test_agentv_5__run_that_was_stopped_before_its_first_result__is_no_result(agentv_5, name) -> None:
    (agentv_5 / ".internal" / "index.jsonl").unlink()
    error = refused(agentv_5 / name)
    assert (error.code, error.exit_code) == ("results-incomplete", ExitCode.INCOMPLETE)


def test_agentv_5__index_outside_of_the_run__is_refused(agentv_5) -> None:
    (agentv_5.parent / "other.jsonl").write_text((agentv_5 / ".internal" / "index.jsonl").read_text())
    summary = agentv_5 / "summary.json"
    summary.write_text(summary.read_text().replace(".internal/index.jsonl", "../other.jsonl"))
    assert "outside of its folder" in str(refused(summary).problems[0])


def test_agentv_5__two_prompts_of_one_test__are_no_two_executions(agentv_5) -> None:
    index = agentv_5 / ".internal" / "index.jsonl"
    first = index.read_text().splitlines()[0]
    index.write_text(f"{index.read_text()}{first.replace('w2', 'w3')}\n")
    assert refused(agentv_5).code == "duplicate-results"


def test_agentv_5__folder_of_a_row_that_is_no_text__is_none(agentv_5) -> None:
    index = agentv_5 / ".internal" / "index.jsonl"
    rows = [json.loads(line) | {"result_dir": ["a"]} for line in index.read_text().splitlines()]
    index.write_text("\n".join(map(json.dumps, rows)))
    assert statuses(load(agentv_5)) == AGENTV_5


def test_agentv_5__another_run_in_its_folder__is_read_too(agentv_5) -> None:
    row = json.loads((FILES / "agentv-index.jsonl").read_text().splitlines()[0])
    (agentv_5 / "older").mkdir()
    (agentv_5 / "older" / "index.jsonl").write_text(json.dumps(row))
    assert statuses(load(agentv_5)) == AGENTV_5 | {("a, mockt", "refund-1"): [PASSED]}


def test_folder__that_is_empty__is_of_a_tool_that_did_not_finish(tmp_path) -> None:
    error = refused(tmp_path)
    assert (error.code, error.exit_code) == ("results-incomplete", ExitCode.INCOMPLETE)


def test_agentv__two_targets_share_a_folder__neither_is_given_the_others_answer(tmp_path) -> None:
    row = json.loads((FILES / "agentv-index.jsonl").read_text().splitlines()[0])
    folder = tmp_path / "a" / "refund-1" / "outputs"
    folder.mkdir(parents=True)
    (folder / "answer.md").write_text("the second target's")
    for targets, answers in ((["one"], ["the second target's"]), (["one", "two"], [None, None])):
        rows = [row | {"target": target} for target in targets]
        (tmp_path / "index.jsonl").write_text("\n".join(map(json.dumps, rows)))
        assert [row.response for row in load(tmp_path).rows] == answers


def test_openai__events__are_samples_with_their_match(tmp_path) -> None:
    events = [
        {"spec": {"eval_name": "refund.dev.v0", "run_id": "1"}},
        {"sample_id": "refund.dev.0", "type": "sampling", "data": {"prompt": "Refund?", "sampled": ["yes"]}},
        {"sample_id": "refund.dev.0", "type": "match", "data": {"correct": True, "expected": "yes"}},
        {"sample_id": "refund.dev.1", "type": "match", "data": {"correct": False, "expected": "no"}},
        {"sample_id": "refund.dev.2", "type": "error", "data": {"type": "Timeout", "message": "no answer"}},
        {"final_report": {"accuracy": 0.5}},
    ]
    file = tmp_path / "record.jsonl"
    file.write_text("\n".join(map(json.dumps, events)))
    brought = load(file)
    assert statuses(brought) == {
        ("refund.dev.v0", "refund.dev.0"): [PASSED],
        ("refund.dev.v0", "refund.dev.1"): [FAILED],
        ("refund.dev.v0", "refund.dev.2"): [ERROR],
    }
    assert brought.cases["refund.dev.v0", "refund.dev.0"][0].response == "yes"
    assert "shifts" in brought.notes[0]
    file.write_text("\n".join(map(json.dumps, events[:-1])))
    assert refused(file).code == "results-incomplete"


def openai_record(folder: Path, *events: dict[str, object]) -> Path:
    file = folder / "record.jsonl"
    known = ({"spec": {"eval_name": "e"}}, *({"sample_id": "e.0"} | event for event in events), {"final_report": {}})
    file.write_text("\n".join(map(json.dumps, known)))
    return file


METRICS = {"type": "metrics", "data": {"accuracy": 0.4, "kind": "x"}}


def test_openai__metrics_only__need_a_rule(tmp_path) -> None:
    file = openai_record(tmp_path, METRICS)
    error = refused(file)
    assert (error.code, error.hint) == (
        "missing-score-rule",
        "--score 'accuracy>=0.7' for this scorer, or --pass-score 0.7 for all",
    )
    for rule, status in (("accuracy>=0.3", PASSED), ("accuracy>=0.5", FAILED)):
        assert [row.status for row in load(file, scores=(rule,)).rows] == [status]


def test_openai__no_verdict_of_any_kind__is_not_the_agents_error(tmp_path) -> None:
    (row,) = load(openai_record(tmp_path, {"type": "sampling", "data": {"prompt": "q", "sampled": ["a"]}})).rows
    assert (row.status, row.error_kind) == (ERROR, ErrorKind.EVALUATION_ERROR)
    assert "the log does not report whether this sample passed" in str(row.error)
    broke = {"type": "error", "data": {"message": "boom"}}
    (row,) = load(openai_record(tmp_path, METRICS, broke)).rows
    assert (row.status, row.error_kind, row.error) == (ERROR, ErrorKind.AGENT_ERROR, "boom")


def test_load__two_tools_at_once__are_refused() -> None:
    assert "the results of one tool at a time" in str(
        refused("promptfoo-output.json", "deepeval-test-run.json").problems[0]
    )


def test_load__another_format_than_was_named__is_an_error_that_names_both() -> None:
    with pytest.raises(GateError) as caught:
        load_external_results([str(FILES / "promptfoo-output.json")], ResultsFormat.DEEPEVAL, ScoreRules())
    assert "is promptfoo, not deepeval" in str(caught.value.problems[0])


def test_load__a_file_that_is_not_there__says_that_the_tool_did_not_write_it(tmp_path) -> None:
    error = refused(tmp_path / "out.json")
    assert (error.code, error.exit_code) == ("results-incomplete", ExitCode.INCOMPLETE)


def zstd_archive(folder: Path, members: dict[str, bytes]) -> Path:
    """An archive whose members are compressed with zstd, as Inspect writes it; Python's zipfile cannot before 3.14."""
    file = folder / "log.eval"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(name, zstandard.ZstdCompressor().compress(data))
    data = bytearray(file.read_bytes())
    for signature, method in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        at = data.find(signature)
        while at >= 0:
            data[at + method : at + method + 2] = (93).to_bytes(2, "little")
            at = data.find(signature, at + 4)
    file.write_bytes(data)
    return file


@pytest.mark.parametrize("member", ["header.json", "samples/a_epoch_1.json"])
def test_inspect__a_member_that_unpacks_to_gigabytes__is_refused_in_a_sentence(tmp_path, member) -> None:
    header = json.dumps({"status": "success", "eval": {"task": "t"}}).encode()
    file = zstd_archive(tmp_path, {"header.json": header} | {member: b" " * 200_000_000})
    assert file.stat().st_size < 1_000_000
    error = refused(file)
    assert error.code == "invalid-results"
    assert f"{member}: is larger than" in str(error.problems[0])


def test_inspect__a_member_that_is_not_what_it_says__is_refused_in_a_sentence(tmp_path) -> None:
    file = tmp_path / "log.eval"
    data = (FILES / "inspect-log.eval").read_bytes()
    file.write_bytes(data[:2000] + bytes(500) + data[2500:])
    assert refused(file).code == "invalid-results"


@pytest.mark.parametrize("status", ["error", "cancelled", "started"])
def test_inspect__a_status_that_stands_behind_the_samples__is_heard_too(status, tmp_path) -> None:
    document = json.loads((FILES / "inspect-log.json").read_text())
    for sample in document["samples"]:
        sample["scores"] = {"match": {"value": "C"}}
    head = {"version": 2, "eval": document["eval"], "samples": document["samples"]}
    file = tmp_path / "log.json"
    file.write_text(json.dumps(head | {"status": "success"}))
    assert statuses(load(file))["refund", "hours"] == [PASSED, PASSED]
    file.write_text(json.dumps(head | {"status": status, "error": {"message": "killed"}}))
    error = refused(file)
    assert (error.code, error.exit_code) == ("results-incomplete", ExitCode.INCOMPLETE)
    assert f"is {status}: killed" in str(error.problems[0])


def inspect_log(tmp_path: Path, scores: dict) -> Path:
    """Inspect's log with these scores, of samples that are named by a number, by a path and by a pattern."""

    def change(document) -> None:
        ids, document["results"] = {}, {"total_samples": 4}
        for sample in document["samples"]:
            sample["scores"] = {name: {"value": value} for name, value in scores.items()}
            sample["id"] = ids.setdefault(sample["id"], [7, "a/b c", "x*"][len(ids)])

    return changed(tmp_path, "inspect-log.json", change)


def test_inspect__ids__may_be_numbers_and_paths(tmp_path) -> None:
    assert set(statuses(load(inspect_log(tmp_path, {"match": "C"})))) == {("refund", "7"), ("refund", "a/b c")}


@pytest.mark.parametrize(
    ("scores", "status"),
    [
        ({"one": "C", "two": "yes", "three": True, "four": "TRUE"}, PASSED),
        ({"one": "C", "two": "no"}, FAILED),
        ({"one": {"tone": "C", "facts": "C"}}, PASSED),
        ({"one": {"tone": "C", "facts": "I"}}, FAILED),
        ({"one": ["C", "I"]}, FAILED),
    ],
)
def test_inspect__scorers_of_all_shapes__have_to_pass_one_and_all(scores, status, tmp_path) -> None:
    assert statuses(load(inspect_log(tmp_path, scores)))["refund", "7"] == [status, status]


def test_inspect__rules__find_numbers_in_texts_and_in_scorers_of_several_values(tmp_path) -> None:
    file = inspect_log(tmp_path, {"nums": "0.8", "policy": {"tone": 0.5, "facts": "C"}, "list": [1, 0.2]})
    rules = ["nums>=0.8", "policy.tone>=0.5", "list.0>=1", "list.1>=0.2"]
    assert statuses(load(file, scores=tuple(rules)))["refund", "7"] == [PASSED, PASSED]
    assert statuses(load(file, scores=(*rules[:3], "list.1>=0.3")))["refund", "7"] == [FAILED, FAILED]
    assert "policy.tone" in refused(file, scores=("nums>=0.8",)).message


def deepeval_names(tmp_path: Path, *named: str) -> list[tuple[str, int]]:
    def change(document) -> None:
        case = document["testCases"][0]
        document["testCases"] = [dict(case, name=name, input=name[-1]) for name in named]
        document |= {"testPassed": len(named), "testFailed": 0, "metricsScores": []}

    cases = load(changed(tmp_path, "deepeval-test-run.json", change)).cases
    return [(key.case_id, len(rows)) for key, rows in cases.items()]


@pytest.mark.parametrize(
    ("names", "cases"),
    [
        (["test_case_0", "test_case_1"], [("0", 1), ("1", 1)]),  # evaluate() counts what has no name
        (["conversational_test_case_4"], [("4", 1)]),
        (["test_bot[a-1-2]", "test_bot[a-2-2]"], [("]", 2)]),  # --repeat
        (["hours", "hours"], [("hours", 2)]),  # --repeat, named
    ],
)
def test_deepeval__names_that_nobody_gave__give_way_to_the_question(names, cases, tmp_path) -> None:
    assert deepeval_names(tmp_path, *names) == cases


def test_deepeval__two_questions_in_one_test__are_two_cases(tmp_path) -> None:
    def change(document) -> None:
        for case, question in zip(document["testCases"], ("a", "b"), strict=True):
            case.update(name="test_two", input=question)

    cases = load(changed(tmp_path, "deepeval-test-run.json", change)).cases
    assert [key.case_id for key in cases] == ["test_two: a", "test_two: b"]


def test_pydantic_evals__names_that_end_like_a_repeat__are_cases_of_their_own(tmp_path) -> None:
    def change(document) -> None:
        case = document["cases"][0]
        names = [("x [1/2]", None), ("x [2/2]", None)]
        document["cases"] = [dict(case, name=name, source_case_name=of) for name, of in names]
        again = [("y [1/2] [1/2]", "y [1/2]"), ("y [1/2] [2/2]", "y [1/2]")]
        document["cases"] += [dict(case, name=name, source_case_name=of) for name, of in again]
        document["failures"] = []

    cases = load(changed(tmp_path, "pydantic-evals-report.json", change)).cases
    found = [(key.case_id, len(rows)) for key, rows in cases.items()]
    assert found == [("x [1/2]", 1), ("x [2/2]", 1), ("y [1/2]", 2)]


def test_pydantic_evals__a_case_without_a_name__is_said_to_have_no_stable_one(tmp_path) -> None:
    def change(document) -> None:
        document["cases"] = [dict(document["cases"][0], name="Case 4", source_case_name=None)]

    note = load(changed(tmp_path, "pydantic-evals-report.json", change)).describe_unstable_names(()) or ""
    assert note.startswith("1 case has no stable name (Case 4): ")
    assert "give each Case a name" in note


@pytest.mark.parametrize(
    ("members", "code", "exit_code"),
    [
        (["_journal/start.json"], "results-incomplete", ExitCode.INCOMPLETE),  # as a process that was killed leaves it
        (["readme.txt"], "invalid-results", ExitCode.USAGE),
    ],
)
def test_inspect__an_archive_without_header__was_not_finished_or_is_none(members, code, exit_code, tmp_path) -> None:
    error = refused(zstd_archive(tmp_path, dict.fromkeys(members, b"{}")))
    assert (error.code, error.exit_code) == (code, exit_code)


def test_openai__a_real_record__has_its_report_before_its_events() -> None:
    brought = load("openai-record.jsonl")
    suite = "refund.dev.v0"
    assert statuses(brought) == {(suite, "refund.dev.0"): [PASSED], (suite, "refund.dev.1"): [FAILED]}
    [row] = brought.cases[suite, "refund.dev.1"]
    assert (row.prompt, row.response, row.error) == ("Refund 4711", "I cannot", "expected 4711")
