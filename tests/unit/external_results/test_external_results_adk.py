"""What Google ADK 2.13 wrote of a scripted model, without the keys that are null; and what may stand in such a file."""

import json
from pathlib import Path

import pytest

from eval_gate.config.settings import ResultsFormat
from eval_gate.errors import ExitCode
from eval_gate.model.execution import ErrorKind
from tests.support.tool_results import ERROR, FAILED, FILES, PASSED, changed, load, refused, statuses

CLI = "adk-cli.evalset_result.json"
TWO_RUNS = "adk-two-runs.evalset_result.json"


def change_case(tmp_path: Path, case_id: str, **new) -> Path:
    """The file with one case alone, in which these keys are others; None removes one."""

    def change(document) -> None:
        [case] = [one for one in document["eval_case_results"] if one["eval_id"] == case_id]
        document["eval_case_results"] = [{k: v for k, v in (case | new).items() if v is not None}]

    return changed(tmp_path, CLI, change)


def test_read_adk__a_run_of_adk_eval__has_its_verdicts_and_tells_errors_apart() -> None:
    brought = load(CLI)
    rows = {key.case_id: row for key, [row] in brought.cases.items()}
    assert {name: (row.status, row.error_kind if row.status is ERROR else None) for name, row in rows.items()} == {
        "refund": (PASSED, None),
        "flaky": (PASSED, None),
        "cancel": (FAILED, None),
        "hours": (FAILED, None),
        "conversation": (FAILED, None),
        "crash": (ERROR, ErrorKind.AGENT_ERROR),
        "unreachable": (ERROR, ErrorKind.AGENT_UNREACHABLE),
        "quota": (ERROR, ErrorKind.AGENT_UNREACHABLE),
        "thanks": (ERROR, ErrorKind.EVALUATION_ERROR),
    }
    assert rows["crash"].error == "ValueError: the agent has no plan for this"
    assert rows["quota"].error == "429: RESOURCE_EXHAUSTED: quota exceeded"
    assert rows["thanks"].error == "politeness: its `eval_status` is 3: no score, threshold 0.5"
    assert rows["cancel"].error == "tool_trajectory_avg_score: 0, threshold 1"
    assert {key.suite for key in brought.cases} == {"support"}


def test_read_adk__a_conversation__has_both_turns_their_calls_and_what_they_cost() -> None:
    [row] = load(CLI).cases["support", "conversation"]
    assert row.prompt == "Refund order 4711\nAnd when are you open?"
    assert row.response == "Order 4711 is refunded.\nI do not know."
    assert row.expectation == (
        "Order 4711 is refunded.",
        "We are open from 9 to 17.",
        'tool call lookup {"order":"4711"}',
    )
    [call] = row.calls
    assert (call.name, call.params, call.result) == (
        "lookup",
        {"order": "4711"},
        {"order": "4711", "state": "paid"},
    )
    assert row.duration_ms == pytest.approx(89)
    assert row.usage is not None
    assert (row.usage.input_tokens, row.usage.output_tokens) == (34, 13)
    assert [(one.name, one.value, one.passed) for one in row.scores][:4] == [
        ("tool_trajectory_avg_score", 1.0, True),
        ("response_match_score", 0.5, False),
        ("politeness", 1.0, True),
        ("tool_call_count_v1", 0.5, None),
    ]


def test_read_adk__a_run_that_raised__shows_what_was_asked() -> None:
    [row] = load(CLI).cases["support", "crash"]
    assert (row.prompt, row.response) == ("Please crash", None)


def test_read_adk__several_runs__are_executions_of_one_case() -> None:
    assert statuses(load(TWO_RUNS)) == {
        ("support", "crash"): [ERROR, ERROR],
        ("support", "refund"): [PASSED, PASSED],
        ("support", "flaky"): [PASSED, FAILED],
    }


def test_read_adk__json_within_json__is_the_same(tmp_path) -> None:
    """As ADK wrote it before 1.22."""
    file = tmp_path / "old.evalset_result.json"
    file.write_text(json.dumps((FILES / CLI).read_text()))
    brought = load(file)
    assert brought.format is ResultsFormat.ADK
    assert statuses(brought) == statuses(load(CLI))
    file.write_text(json.dumps(json.dumps((FILES / CLI).read_text())))
    assert refused(file).code == "invalid-results"


def test_read_adk__a_metric_that_measures_alone__decides_nothing_unless_a_rule_says_so() -> None:
    def ended(*rules: str) -> dict[str, object]:
        return {key.case_id: row.status for key, [row] in load(CLI, scores=rules).cases.items()}

    assert ended("tool_call_count_v1<=0")["refund"] is FAILED
    assert ended("tool_call_count_v1<=1")["refund"] is PASSED
    assert ended("response_match_score>=0.5")["conversation"] is PASSED, "what only measures is not in the way"


@pytest.mark.parametrize(
    ("new", "status", "kind"),
    [
        ({"final_eval_status": 2}, FAILED, None),
        ({"session_details": None, "final_eval_status": 2}, FAILED, None),
        ({"overall_eval_metric_results": []}, PASSED, None),
        ({"overall_eval_metric_results": [], "final_eval_status": 3}, ERROR, ErrorKind.EVALUATION_ERROR),
        (
            {"overall_eval_metric_results": [{"metric_name": "m", "eval_status": 2, "score": 0}]},
            ERROR,
            ErrorKind.EVALUATION_ERROR,
        ),
    ],
)
def test_read_adk__verdict_of_the_case__is_adks_unless_its_metrics_contradict(tmp_path, new, status, kind) -> None:
    [row] = load(change_case(tmp_path, "refund", **new)).rows
    assert (row.status, row.error_kind if status is ERROR else None) == (status, kind)


@pytest.mark.parametrize(("score", "status"), [(0.1, ERROR), (0.8, PASSED), (None, PASSED)])
def test_read_adk__metric_that_passed_below_its_own_threshold__is_an_evaluation_error(tmp_path, score, status) -> None:
    metric = {"metric_name": "a", "threshold": 0.8, "score": score, "eval_status": 1}
    [[row]] = load(change_case(tmp_path, "refund", overall_eval_metric_results=[metric])).cases.values()
    assert row.status is status
    said = "the tool reports that a passed, but also a score of 0.1, below the threshold of 0.8"
    assert row.error == (said if status is ERROR else None)


def test_read_adk__agent_that_raised_in_a_session_nobody_kept__says_so(tmp_path) -> None:
    [row] = load(change_case(tmp_path, "crash", session_details=None)).rows
    assert (row.status, row.error_kind) == (ERROR, ErrorKind.AGENT_ERROR)
    assert "ADK keeps no error of it" in str(row.error)


def test_read_adk__agent_that_recovered_from_an_error__is_judged(tmp_path) -> None:
    def change(document) -> None:
        [case] = document["eval_case_results"] = [
            one for one in document["eval_case_results"] if one["eval_id"] == "refund"
        ]
        case["session_details"]["events"][1]["error_message"] = "429, once more"

    assert [row.status for row in load(changed(tmp_path, CLI, change)).rows] == [PASSED]


def test_read_adk__only_metrics_that_measure__need_a_rule(tmp_path) -> None:
    metrics = [{"metric_name": "tokens", "eval_status": 4, "score": 30}]
    file = change_case(tmp_path, "refund", final_eval_status=3, overall_eval_metric_results=metrics)
    assert refused(file).code == "missing-score-rule"
    assert "tokens" in refused(file).message
    assert [row.status for row in load(file, scores=("tokens<=40",)).rows] == [PASSED]


@pytest.mark.parametrize(
    ("new", "said"),
    [
        ({"eval_id": ["a"]}, "has no eval_id"),
        ({"eval_id": "x" * 5000}, "has no eval_id"),
    ],
)
def test_read_adk__what_no_version_writes__is_refused_with_its_place(tmp_path, new, said) -> None:
    error = refused(change_case(tmp_path, "refund", **new))
    assert error.code == "invalid-results"
    assert said in str(error.problems[0])


@pytest.mark.parametrize(
    ("new", "said"),
    [
        ({"final_eval_status": None}, "it has no `final_eval_status`"),
        ({"final_eval_status": 9}, "its `final_eval_status` is 9, which is not a known status"),
        ({"final_eval_status": True}, "its `final_eval_status` is true, which is not a known status"),
        (
            {"overall_eval_metric_results": [{"metric_name": "m", "eval_status": "PASSED"}]},
            "m: its `eval_status` is PASSED, which is not a known status: no score",
        ),
    ],
)
def test_read_adk__status_that_no_version_writes__is_an_evaluation_error_that_names_it(tmp_path, new, said) -> None:
    [row] = load(change_case(tmp_path, "refund", **new)).rows
    assert (row.status, row.error_kind, row.error) == (ERROR, ErrorKind.EVALUATION_ERROR, said)


@pytest.mark.parametrize(
    "turns",
    [
        "x",
        [1],
        [{"actual_invocation": []}],
        [{"actual_invocation": {"user_content": {"parts": [{"text": {"a": 1}}]}}}],
    ],
)
def test_read_adk__parts_of_other_shapes__are_left_out(tmp_path, turns) -> None:
    new = {"eval_metric_result_per_invocation": turns, "session_details": {"events": [None, 3, {"content": "x"}]}}
    [row] = load(change_case(tmp_path, "refund", **new)).rows
    assert (row.status, row.response, row.calls) == (PASSED, None, ())


@pytest.mark.parametrize(
    ("text", "code", "exit_code"),
    [
        ('{"eval_set_result_id": "a"}', "invalid-results", ExitCode.USAGE),
        ('{"eval_set_result_id": "a", "eval_case_results": []}', "invalid-results", ExitCode.USAGE),
        ('{"eval_set_result_id": "a", "eval_case_results": {}}', "invalid-results", ExitCode.USAGE),
        ('{"eval_set_result_id": "a", "eval_case_results": [', "results-incomplete", ExitCode.INCOMPLETE),
        ('"{\\"eval_set_result_id\\": \\"a\\", \\"eval_', "results-incomplete", ExitCode.INCOMPLETE),
        (
            '{"eval_set_result_id": "a", "eval_case_results": ' + "[" * 100_000,
            "invalid-results",
            ExitCode.USAGE,
        ),
    ],
)
def test_read_adk__no_cases_or_only_a_part__is_no_result(tmp_path, text, code, exit_code) -> None:
    file = tmp_path / "a.json"
    file.write_text(text)
    error = refused(file)
    assert (error.code, error.exit_code) == (code, exit_code)


def test_read_adk__folder_of_adk_1__has_a_file_for_each_case(tmp_path) -> None:
    """As 1.21 really wrote it, in JSON within JSON; nothing in these files tells one run from another."""
    for name in ("adk-1.21-0.evalset_result.json", "adk-1.21-1.evalset_result.json"):
        (tmp_path / name).write_bytes((FILES / name).read_bytes())
    assert statuses(load(tmp_path)) == {("support", "refund"): [PASSED], ("support", "hours"): [FAILED]}
    [row] = load(tmp_path).cases["support", "refund"]
    assert [(call.name, call.params) for call in row.calls] == [("lookup", {"order": "4711"})]
    file = tmp_path / "later.evalset_result.json"
    file.write_text((tmp_path / name).read_text().replace("4711 is refunded", "4711 was refunded"))
    file.write_text(file.read_text().replace("I do not know", "I did not know"))
    error = refused(tmp_path)
    assert error.code == "duplicate-results"
    assert "remove those of earlier runs" in str(error.hint)


def test_read_adk__two_runs_by_name__are_refused_and_two_apps_are_not(tmp_path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    text = (FILES / TWO_RUNS).read_text()
    first.write_text(text)
    second.write_text(text.replace("No idea.", "None."))
    assert refused(first, second).code == "duplicate-results"
    second.write_text(text.replace('"eval_set_result_id":"orders_', '"eval_set_result_id":"shop_'))
    assert {key.suite for key in load(first, second).cases} == {"orders: support", "shop: support"}


def test_read_adk__invocation_whose_id_is_a_list__is_read_all_the_same(tmp_path) -> None:
    turns = [{"actual_invocation": {"invocation_id": ["a"], "final_response": {"parts": [{"text": "Refunded."}]}}}]
    session = {"events": [{"invocation_id": ["a"], "error_message": "429, once more"}]}
    new = {"eval_metric_result_per_invocation": turns, "session_details": session}
    [row] = load(change_case(tmp_path, "refund", **new)).rows
    assert (row.status, row.response) == (PASSED, "Refunded.")
