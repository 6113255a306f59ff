"""The responses that drafts were made of: found again by case and question, gone when they are not needed."""

from __future__ import annotations

import pytest

from eval_gate.drafts import stored_responses
from eval_gate.drafts.observation import Observation
from eval_gate.drafts.stored_responses import ResponseStore, build_stored_responses
from eval_gate.errors import GateError
from eval_gate.files.file_paths import DRAFT_RESPONSES
from eval_gate.model.case import CaseTurn, ConversationSpec
from eval_gate.model.conversation import Message, Response, ToolCall
from eval_gate.struct import replace
from tests.unit.drafts.test_drafts_review import make_file

SAID = Response(text="It is 21 °C.", tool_calls=(ToolCall(name="t", params={"a": [1, None]}, success=False),))


def make(case_id: str, question: str = "hi", *responses: Response):
    return build_stored_responses(case_id, Observation(question, responses or (SAID, SAID), errors=("timeout",)))


def test_store__added_responses__are_found_by_case_and_question_by_another_process(tmp_path) -> None:
    [case] = make_file(tmp_path, "d", reviewed=()).suite.cases
    ResponseStore(tmp_path / "results").add([make("d"), make("other")])
    found = ResponseStore(tmp_path / "results").find(case)
    assert found is not None
    assert (found.responses, found.error_count) == ((SAID, SAID), 1)
    for another in (
        replace(case, id="e"),
        replace(case, messages=(Message(role="user", content="hi!"),)),
        replace(case, messages=(Message(role="user", content=[{"type": "text"}]),)),
        replace(case, messages=()),
    ):
        assert ResponseStore(tmp_path / "results").find(another) is None


def test_store__same_case_again__has_the_newest_responses(tmp_path) -> None:
    [case] = make_file(tmp_path, "d", reviewed=()).suite.cases
    store = ResponseStore(tmp_path)
    store.add([make("d")])
    assert store.find(case) is not None
    store.add([make("d", "hi", Response(text="new"))])
    assert [one.text for one in store.find(case).responses] == ["new"]


def test_store__discarded_cases__leave_the_others_and_at_last_no_file(tmp_path) -> None:
    first, second = make_file(tmp_path, "a", "b", reviewed=()).suite.cases
    store = ResponseStore(tmp_path)
    store.discard([first])
    store.add([make("a"), make("b")])
    store.discard([first])
    assert (store.find(first), store.find(second)) == (None, make("b"))
    store.discard([second])
    assert not (tmp_path / DRAFT_RESPONSES).exists()


def test_store__more_than_there_is_room_for__keeps_the_newest(tmp_path, monkeypatch) -> None:
    first, second = make_file(tmp_path, "a", "b", reviewed=()).suite.cases
    store = ResponseStore(tmp_path)
    store.add([make("a")])
    monkeypatch.setattr(stored_responses, "MAX_BYTES", (tmp_path / DRAFT_RESPONSES).stat().st_size + 1)
    store.add([make("b")])
    assert (store.find(first), store.find(second)) == (None, make("b"))


@pytest.mark.parametrize("data", [b"{", b'{"caseId": 1}\n', b"\xff\n"])
def test_store__file_that_is_not_ours__is_an_error_that_names_it(tmp_path, data) -> None:
    [case] = make_file(tmp_path, "d", reviewed=()).suite.cases
    (tmp_path / DRAFT_RESPONSES).write_bytes(data)
    with pytest.raises(GateError, match=r"draft-responses\.jsonl are not as it was written") as caught:
        ResponseStore(tmp_path).find(case)
    assert caught.value.code == "invalid-recording"


def test_store__conversation_without_its_first_turn__has_no_responses(tmp_path) -> None:
    [case] = make_file(tmp_path, "d", reviewed=()).suite.cases
    turns = ("hi", "bye")
    case = replace(
        case, messages=(), conversation=ConversationSpec(turns=tuple(CaseTurn(message=one) for one in turns))
    )
    asked = Observation("bye", (SAID,), turns=tuple(Observation(one, (SAID,)) for one in turns))
    store = ResponseStore(tmp_path)
    store.add([build_stored_responses("d", asked)])
    assert store.find(case) is not None
    assert store.find(replace(case, conversation=ConversationSpec(turns=(CaseTurn(message="bye"),)))) is None
    assert store.find(replace(case, conversation=None, messages=(Message(role="user", content="bye"),))) is None
