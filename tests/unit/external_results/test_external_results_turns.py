"""Turns of conversations in the results of other tools: each tool's own, and what a run result holds of them."""

import json

import pytest

from eval_gate.config.settings import ResponseRetention, RunConfig, RunLimits
from eval_gate.external_results.chat_turns import build_turns
from eval_gate.external_results.records import Fields
from eval_gate.external_results.result_rows import ResultRow
from eval_gate.model.execution import CaseDetails, Status, TurnResult
from eval_gate.model.limits import STORED_TURNS
from eval_gate.process.signals import run_async
from eval_gate.session.external_cases import build_execution, redact_rows
from tests.support.tool_results import FAILED, PASSED, changed, load

ADK = "adk-cli.evalset_result.json"


def texts(row: ResultRow) -> list[tuple[str | None, str | None, int]]:
    return [(turn.message, turn.response, turn.calls) for turn in row.turns]


def test_adk__an_invocation__is_a_turn_with_its_own_metrics() -> None:
    [row] = load(ADK).cases["support", "conversation"]
    assert texts(row) == [
        ("Refund order 4711", "Order 4711 is refunded.", 1),
        ("And when are you open?", "I do not know.", 0),
    ]
    assert [(turn.status, turn.duration_ms) for turn in row.turns] == [(PASSED, 82.0), (FAILED, 7.0)]
    assert row.turns[1].error == "response_match_score: 0, threshold 0.8"
    assert all(row.turns == () for key, [row] in load(ADK).cases.items() if key.case_id != "conversation")


def test_adk__user_that_a_model_plays__is_the_same_case_whatever_the_user_says(tmp_path) -> None:
    def change(document) -> None:
        for case in document["eval_case_results"]:
            for turn in case["eval_metric_result_per_invocation"]:
                turn["expected_invocation"] = None

    [row] = load(changed(tmp_path, ADK, change)).cases["support", "conversation"]
    assert (len(row.turns), row.content, row.digests) == (2, None, None)


def test_deepeval__conversation__has_the_turns_and_calls_of_its_messages() -> None:
    cases = load("deepeval-conversation.json").cases
    rows = {key.case_id: row for key, [row] in cases.items()}
    assert {name: row.status for name, row in rows.items()} == {
        "memory You are Ada.": PASSED,
        "memory Who are you?": FAILED,
    }
    row = rows["memory Who are you?"]
    assert texts(row) == [
        ("I am Ada.", "Hello.", 0),
        ("weather?", "22 degrees.", 1),
        ("who am I?", "Who are you?", 0),
    ]
    assert [(call.name, call.params, call.result) for call in row.calls] == [("get_weather", {"city": "Rome"}, "22")]
    assert (row.prompt, row.expectation) == ("who am I", ("knows the name",))


@pytest.mark.parametrize("scenario", ["who am I", None])
def test_deepeval__conversation_with_another_response__asks_and_expects_the_same(scenario, tmp_path) -> None:
    def change(document) -> None:
        for case in document["conversationalTestCases"]:
            case["scenario"] = scenario

    first, second = (rows[0] for rows in load(changed(tmp_path, "deepeval-conversation.json", change)).cases.values())
    assert first.turns[2].response != second.turns[2].response
    assert (first.content, first.prompt) == (second.content, second.prompt)
    assert "Ada" in first.prompt or scenario


def test_inspect_ai__messages_of_a_sample__are_turns_without_the_examples_of_its_input() -> None:
    [[row]] = load("inspect-conversation.json").cases.values()
    assert texts(row) == [
        ("I am Ada.", "Hello Ada.", 0),
        ("weather?", "tool call for tool get_weather\n\nIt is 22 degrees.", 1),
        ("who am I?", "You are Ada.", 0),
    ]
    [row, *_] = next(iter(load("inspect-log.json", scores=("policy>=0.3",)).cases.values()))
    assert row.turns == ()


def test_promptfoo__simulated_user__is_a_conversation(tmp_path) -> None:
    messages = [
        {"role": "user", "content": "I am Ada."},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "Who am I?"},
        {"role": "assistant", "content": "You are Ada."},
    ]

    def change(document) -> None:
        document["results"]["results"][0]["response"]["metadata"] = {"messages": messages, "sessionId": "s"}

    first, *others = [
        row for rows in load(changed(tmp_path, "promptfoo-output.json", change)).cases.values() for row in rows
    ]
    assert texts(first) == [("I am Ada.", "Hello.", 0), ("Who am I?", "You are Ada.", 0)]
    assert all(row.turns == () for row in others)


def said(role: str, content: object, *calls: str, key: str = "role") -> dict[str, object]:
    return {key: role, "content": content, "tool_calls": [{"name": name} for name in calls]}


def asked(content: object = "a") -> dict[str, object]:
    return said("user", content)


def answered(content: object = "b", *calls: str) -> dict[str, object]:
    return said("assistant", content, *calls)


PARTS = ["a", {"text": "b"}, {"image": 1}]
LANGCHAIN = [said("human", "a", key="type"), said("ai", "b", key="type"), said("human", "c", key="type")]


@pytest.mark.parametrize(
    ("messages", "turns"),
    [
        ([], []),
        ([asked(), answered()], []),
        ([said("system", "s"), *LANGCHAIN], [("a", "b", 0), ("c", None, 0)]),
        ([answered("Hi!"), asked(), answered()], [(None, "Hi!", 0), ("a", "b", 0)]),
        ([asked(), asked("b"), answered("c"), asked("d")], [("a\n\nb", "c", 0), ("d", None, 0)]),
        ([asked(), answered("", "x", "y"), said("tool", "1"), answered(), asked("c")], [("a", "b", 2), ("c", None, 0)]),
        ([asked(), answered(None, "x"), asked("b")], [("a", None, 1), ("b", None, 0)]),
        ([asked(PARTS), asked({"x": 1}), answered("c"), asked("d")], [('ab\n\n{"x":1}', "c", 0), ("d", None, 0)]),
        ([None, 3, {}, asked(), said("narrator", "x"), answered(), asked("c")], [("a", "b", 0), ("c", None, 0)]),
    ],
)
def test_build_turns__lists_of_messages__begin_a_turn_with_each_message_of_the_user(messages, turns) -> None:
    built = build_turns(map(Fields, messages), "tool_calls")
    assert [(turn.message, turn.response, turn.calls) for turn in built] == turns


def details_of(row: ResultRow, config: RunConfig) -> CaseDetails:
    [[redacted]] = run_async(redact_rows(config, {row.key: [row]})).values()
    return build_execution(redacted, 0).details


def test_build_execution__row_with_turns__shows_them_and_the_last_response() -> None:
    [row] = load(ADK).cases["support", "conversation"]
    execution = build_execution(row, 0)
    assert (execution.failed_turn, execution.details.response) == (2, "I do not know.")
    assert execution.details.tools_called == ("lookup",)
    first, second = execution.details.turns
    assert (first.status, first.calls, first.duration_ms) == (Status.PASSED, 1, 82.0)
    assert (second.status, second.error) == (Status.FAILED, "response_match_score: 0, threshold 0.8")
    passed = build_execution(row._replace(status=PASSED), 0)
    assert passed.failed_turn is None


def test_build_execution__many_long_turns__are_stored_within_the_limits() -> None:
    [row] = load(ADK).cases["support", "conversation"]
    many = row._replace(
        turns=tuple(TurnResult(message="m" * 9_000, response="r" * 9_000) for _ in range(STORED_TURNS + 7))
    )
    details = build_execution(many, 0).details
    assert (len(details.turns), details.dropped_counts["turns"]) == (STORED_TURNS, 7)
    assert len(json.dumps([turn.response for turn in details.turns])) < 100_000
    assert details.turns[0].response_truncated


def test_redact_rows__texts_of_turns__are_masked_and_dropped_like_responses() -> None:
    [row] = load(ADK).cases["support", "conversation"]
    masked = details_of(row, RunConfig(redact=("4711",)))
    assert "4711" not in repr(masked.turns)
    assert (masked.turns[0].message, masked.turns[1].response) == ("Refund order ***", "I do not know.")
    dropped = details_of(row, RunConfig(limits=RunLimits(keep_responses=ResponseRetention.NONE)))
    assert [(turn.message, turn.response, turn.error, turn.calls) for turn in dropped.turns] == [
        (None, None, None, 1),
        (None, None, None, 0),
    ]
    assert dropped.turns[1].status is Status.FAILED


def test_langsmith__output_that_is_a_list_of_messages__is_a_conversation(tmp_path) -> None:
    messages = [said("user", "I am Ada."), said("assistant", "Hello."), said("user", "Who?"), said("assistant", "Ada.")]
    row = {
        "run": {"outputs": {"score": 1, "trajectory": messages}},
        "example": {"inputs": {"scenario": "memory"}},
        "evaluation_results": {"results": [{"key": "ok", "score": True}]},
    }
    file = tmp_path / "langsmith.json"
    file.write_text(
        json.dumps([row, row | {"run": {"outputs": {"answer": ["a", "b"]}}, "example": {"inputs": {"q": 1}}}])
    )
    first, second = [rows[0] for rows in load(file).cases.values()]
    assert texts(first) == [("I am Ada.", "Hello.", 0), ("Who?", "Ada.", 0)]
    assert second.turns == ()
