"""Results of other tools as a source: which executions are examples, and what is left out."""

import json
from pathlib import Path

import pytest

from eval_gate.drafts.observation import ObservationSet
from eval_gate.drafts.sources.results import read_results
from eval_gate.errors import GateError
from eval_gate.model.conversation import Message

FILES = Path(__file__).parents[2] / "external_results" / "files"


def read(tmp_path: Path, *lines: dict) -> ObservationSet:
    file = tmp_path / "out.jsonl"
    file.write_text("".join(json.dumps({"status": "passed", **line}) + "\n" for line in lines))
    return read_results([file])


def test_read_results__executions_of_a_case__belong_to_its_prompt(tmp_path) -> None:
    call = {"name": "f", "params": {"x": 1}, "output": "r", "success": True}
    found = read(
        tmp_path,
        {"id": "a", "trial": 1, "input": "q", "output": "one", "tool_calls": [call]},
        {"id": "a", "trial": 2, "input": "q", "output": "two"},
    )
    [one] = found.observations
    assert (one.question, [said.text for said in one.responses]) == ("q", ["one", "two"])
    assert [call.name for call in one.responses[0].tool_calls] == ["f"]
    assert [said.tool_calls_known for said in one.responses] == [True, None]
    assert one.location is not None
    assert one.location.line == 1


def test_read_results__what_did_not_pass__is_no_example(tmp_path) -> None:
    found = read(
        tmp_path,
        {"id": "a", "input": "q", "output": "r"},
        {"id": "b", "input": "q", "output": "wrong", "status": "failed"},
        {"id": "c", "input": "q", "status": "error", "error": "x"},
        {"id": "d", "input": "q", "status": "skipped"},
        {"id": "e", "output": "r"},
        {"id": "f", "input": "q"},
    )
    assert [said.text for one in found.observations for said in one.responses] == ["r"]
    assert [note.replace(f"{tmp_path}/", "") for note in found.notes] == [
        "Left out 1 execution (out.jsonl:2): the tool says that it failed, so its response is no example.",
        "Left out 1 execution (out.jsonl:3): the tool says that it ended with an error.",
        "Left out 1 execution (out.jsonl:4): it was skipped.",
        "Left out 1 execution (out.jsonl:5): the results do not have its prompt.",
        "Left out 1 execution (out.jsonl:6): the results do not have its response.",
    ]


def test_read_results__score_without_a_verdict__is_taken(tmp_path) -> None:
    file = tmp_path / "out.jsonl"
    file.write_text('{"id": "a", "score": 0.5, "input": "q", "output": "r"}\n')
    assert len(read_results([file]).observations) == 1


def test_read_results__messages_as_prompt__last_of_a_user_is_the_question(tmp_path) -> None:
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
    ]
    found = read(
        tmp_path,
        {"id": "a", "input": json.dumps(messages), "output": "r"},
        {"id": "b", "input": "[1] is a list", "output": "r"},
        {"id": "c", "input": json.dumps([{"role": "system", "content": "x"}]), "output": "r"},
    )
    first, second = found.observations
    assert (first.question, first.earlier_messages[0]) == ("c", Message(role="user", content="a"))
    assert second.question == "[1] is a list"
    assert found.notes[0].endswith(": no message of a user.")


@pytest.mark.parametrize(
    "name",
    [
        "deepeval-test-run.json",
        "inspect-log.eval",
        "inspect-log.json",
        "openai-record.jsonl",
        "promptfoo-output.json",
        "promptfoo-output.jsonl",
    ],
)
def test_read_results__files_of_other_tools__have_prompts_and_responses(name) -> None:
    found = read_results([FILES / name])
    assert found.observations
    assert all(one.question and one.responses for one in found.observations)


def test_read_results__nothing_left__says_why(tmp_path) -> None:
    with pytest.raises(GateError) as caught:
        read(tmp_path, {"id": "a", "input": "q", "output": "r", "status": "failed"}, {"id": "b"})
    assert caught.value.code == "invalid-draft-source"
    assert [one.message for one in caught.value.problems] == [
        "the tool says that it failed, so its response is no example",
        "the results do not have its prompt",
    ]


def test_read_results__file_of_no_tool__is_refused_as_check_does(tmp_path) -> None:
    file = tmp_path / "out.json"
    file.write_text("{}")
    with pytest.raises(GateError) as caught:
        read_results([file])
    assert caught.value.code == "invalid-results"
