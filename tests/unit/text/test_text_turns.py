"""Several messages as one text."""

from eval_gate.model.conversation import Message
from eval_gate.text.turns import flatten_messages, format_content


def test_flat__exchange__has_a_marker_for_every_turn() -> None:
    messages = [Message(role=role, content=role[0]) for role in ("system", "user", "assistant", "tool")]
    assert flatten_messages(messages) == "@[System]:\ns\n\n@[User]:\nu\n\n@[Assistant]:\na\n\n@[Tool]:\nt"


def test_flat__one_question__stands_for_itself_whatever_is_blank_beside_it() -> None:
    assert flatten_messages([Message(role="user", content="q")]) == "q"
    assert flatten_messages([Message(role="system", content=" "), Message(role="user", content="q")]) == "q"


def test_flat__one_answer__keeps_its_marker() -> None:
    assert flatten_messages([Message(role="assistant", content="a")]) == "@[Assistant]:\na"


def test_content_text__what_is_no_text__is_json_that_people_read() -> None:
    assert [format_content(one) for one in (None, "é", {"é": 1})] == ["", "é", '{\n  "é": 1\n}']
