"""What the author of an HTTP target may not have meant."""

import pytest

from eval_gate.targets.http.settings import HttpSettings

ASKED = {"message": "{{message}}"}


def remarks(**others) -> tuple[str, ...]:
    known = {"name": "agent", "url": "http://localhost/chat", "requestTemplate": ASKED}
    return HttpSettings.model_validate(HttpSettings.complete_values(known | others)).remarks


@pytest.mark.parametrize(
    ("others", "place"),
    [
        ({"requestTemplate": ASKED | {"threadId": "{{caseId}}"}}, "threadId"),
        ({"requestTemplate": ASKED | {"config": {"configurable": {"thread_id": "case-{{ caseId }}"}}}}, "thread_id"),
        ({"requestTemplate": ASKED | {"meta": [{"session": "{{caseId}}"}]}}, "session"),
        ({"requestFields": {"conversation_id": "{{caseId}}"}}, "conversation_id"),
        ({"headers": {"X-Session-Id": "{{caseId}}"}}, "X-Session-Id"),
        ({"query": {"chatId": "{{caseId}}"}}, "chatId"),
        ({"url": "http://localhost/threads/{{caseId}}/runs"}, "threads"),
        ({"url": "http://localhost/chat?session_id={{caseId}}"}, "session_id"),
        ({"requestTemplate": None, "form": ASKED | {"sessionId": "{{caseId}}"}}, "sessionId"),
    ],
)
def test_remarks__case_id_as_a_conversation__names_the_field_and_what_to_write(others, place) -> None:
    (said,) = remarks(**others)
    assert said.startswith(f"{{{{caseId}}}} in {place} is the same in every trial")
    assert said.endswith("{{session}} is new each time")


@pytest.mark.parametrize(
    "others",
    [
        {},
        {"requestTemplate": ASKED | {"case": "{{caseId}}", "threadId": "{{session}}"}},
        {"headers": {"X-Case-Id": "{{caseId}}"}},
        {"url": "http://localhost/cases/{{caseId}}"},
        {"requestTemplate": ASKED | {"context": {"case": "{{caseId}}"}}},
        {"requestTemplate": ASKED | {"obsession": "{{session}}"}},
    ],
)
def test_remarks__case_id_elsewhere__is_nobodys_mistake(others) -> None:
    assert remarks(**others) == ()
