"""Decisions about drafts: who is meant, what changes, and what a person is shown."""

from __future__ import annotations

import asyncio
import json

import pytest

from eval_gate.drafts.case_edit import CaseFile, read_case_file
from eval_gate.drafts.review import (
    decide_drafts,
    describe_stored_check,
    list_drafts,
    render_draft,
    select_drafts,
)
from eval_gate.drafts.stored_responses import StoredResponses
from eval_gate.errors import GateError
from eval_gate.model.conversation import Response, ToolCall
from eval_gate.text.tokens import TokenData


def make_file(folder, *drafts: str, name: str = "a.json", reviewed: tuple[str, ...] = ("done",), **fields) -> CaseFile:
    case = {"input": {"message": "hi"}, "expect": {"toolsCalled": ["t"], "responseContains": ["x"]}} | fields
    cases = [{"id": one} | case for one in reviewed] + [{"id": one, "draft": True} | case for one in drafts]
    file = folder / name
    file.write_text(json.dumps(cases, indent=1))
    return read_case_file(file, folder)


def names(keys) -> list[str]:
    return sorted(key.case_id for key in keys)


def test_select_drafts__ids_globs_and_all__are_found_in_every_file(tmp_path) -> None:
    files = [make_file(tmp_path, "w/a", "w/b", "c"), make_file(tmp_path, "c", name="b.json")]
    assert names(select_drafts(files, ["w/*"])) == ["w/a", "w/b"]
    assert names(select_drafts(files, ["c", "w/a"])) == ["c", "c", "w/a"]
    assert names(select_drafts(files, ["all"])) == ["c", "c", "w/a", "w/b"]
    assert select_drafts(files, []) == frozenset()


def test_select_drafts__case_with_the_id_all__is_meant_alone(tmp_path) -> None:
    assert names(select_drafts([make_file(tmp_path, "all", "b")], ["all"])) == ["all"]


def test_select_drafts__names_of_no_draft__are_all_said(tmp_path) -> None:
    with pytest.raises(GateError) as caught:
        select_drafts([make_file(tmp_path, "weather")], ["weathr", "done", "d*", "weather"])
    assert [str(problem) for problem in caught.value.problems] == [
        'weathr: there is no such draft (did you mean "weather"?)',
        "done: is not a draft",
        "d*: there is no such draft",
    ]


def test_decide_drafts__accepted_and_dropped__are_changed_and_others_stay(tmp_path) -> None:
    file = make_file(tmp_path, "a", "b", "c")
    changed = decide_drafts(file, accepted=["a"], dropped=["b"])
    assert [(case.id, case.draft) for case in changed.suite.cases] == [("done", False), ("a", False), ("c", True)]
    assert decide_drafts(file, accepted=["done", "zzz"]) is file
    assert list_drafts(changed) == (changed.suite.cases[2],)


def test_render_draft__hostile_texts__stay_on_their_lines(tmp_path) -> None:
    hostile = "a\x1b[31m\n\u202eb"
    file = make_file(tmp_path, "d", description=hostile, notes=hostile, input={"message": hostile})
    lines = list(render_draft(file, list_drafts(file)[0]))
    assert lines[0] == "d  (a.json:18)"
    assert lines[-2:] == ["  → calls only t", '  → response contains "x"']
    assert len(lines) == 6
    assert all(line.isprintable() for line in lines)


def respond(text: str, *calls: ToolCall) -> Response:
    return Response(text=text, tool_calls=calls)


def render(tmp_path, *responses: Response, errors: int = 0) -> list[str]:
    file = make_file(tmp_path, "d")
    stored = StoredResponses(case_id="d", question="hi", responses=responses, error_count=errors)
    return list(render_draft(file, list_drafts(file)[0], stored))


def test_render_draft__responses__are_shown_once_each_with_how_many_executions_gave_them(tmp_path) -> None:
    called = ToolCall(name="t", params={"city": "Oslo"}, success=False)
    lines = render(tmp_path, respond("x\n\nyes"), respond("", called), respond("x\n\nyes"), errors=1)
    assert lines[1:] == [
        "  user: hi",
        "  response, 2 of 4 executions:",
        "    x",
        "    yes",
        "  response, 1 of 4 executions:",
        '    calls t {"city":"Oslo"} (failed)',
        "    (an empty response)",
        "  no response, 1 of 4 executions",
        "  → calls only t",
        '  → response contains "x"',
    ]


def test_render_draft__long_and_hostile_responses__stay_within_a_screen_and_on_their_lines(tmp_path) -> None:
    hostile = "::error::\x1b[31mx\r\u202e\x00"
    calls = [ToolCall(name=hostile, params={hostile: hostile * 1_000}) for _ in range(30)]
    lines = render(tmp_path, *(respond(f"{number}\n" + f"{hostile}\n" * 5_000, *calls) for number in range(9)))
    assert all(line.isprintable() and not line.lstrip().startswith("::") for line in lines)
    assert "  and 5 more different responses" in lines
    assert sum(line == "    and 25 more calls" for line in lines) == 4
    assert len(lines) < 80
    assert max(map(len, lines)) < 2_100


def check(folder, expect: dict, *texts: str, **fields) -> str:
    [case] = make_file(folder, "d", reviewed=(), expect=expect, **fields).suite.cases
    stored = StoredResponses(case_id="d", question="hi", responses=tuple(map(respond, texts)))
    return asyncio.run(describe_stored_check(case, stored, TokenData(seed={"city": "Rome"})))


def test_stored_check__edited_case__says_how_many_responses_pass_and_why_not(tmp_path) -> None:
    assert check(tmp_path, {"responseContains": ["Oslo"]}, "Oslo", "in Oslo") == "2 of 2 stored responses pass"
    said = check(tmp_path, {"responseContains": ["Oslo"]}, "Oslo", "Rome")
    assert said == "1 of 2 stored responses pass: responseContains: expected 'Oslo' in response but not found"
    assert check(tmp_path, {"responseContains": ["{{seed:city}}"]}, "Oslo").startswith("0 of 1 ")


def test_stored_check__llm_judge__is_not_asked_and_said(tmp_path) -> None:
    rubric = [{"dimension": "tone", "maxScore": 3, "criteria": "polite"}]
    said = check(tmp_path, {"responseContains": ["Oslo"]}, "Oslo", rubric=rubric)
    assert said == "1 of 1 stored responses pass (1 not checked: an LLM judge or a program decides)"
