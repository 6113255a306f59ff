"""Expectations that are taken from what a target does now: only what fails is replaced, in the text of the file."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import yaml

from eval_gate.drafts.case_edit import CaseFile, read_case_file
from eval_gate.drafts.observation import Observation
from eval_gate.drafts.update import CaseUpdate, ObservedCase, render_diff, update_case
from eval_gate.model.conversation import Response, ToolCall
from eval_gate.struct import replace
from eval_gate.text.tokens import TokenData

TEXT = "It is 22 degrees in Oslo, order A-7."
NUMBERS = ["22", "A-7"]


def call(name: str, **params) -> ToolCall:
    return ToolCall(name=name, params=params, success=True)


def answer(text: str = TEXT, *calls: ToolCall, **fields: Any) -> Response:
    return Response(text=text, tool_calls=calls, tool_calls_known=True, **fields)


def read(folder, text: str, name: str = "evals.json") -> CaseFile:
    file = folder / name
    file.write_text(text)
    return read_case_file(file, folder)


def update(file: CaseFile, *responses: Response, errors: tuple[str, ...] = (), masked: bool = True) -> CaseUpdate:
    [case] = file.suite.cases
    seen = Observation(case.messages[-1].content, responses or (() if errors else (answer(),) * 3), errors=errors)
    observed = ObservedCase(seen, seen if masked else None)
    return asyncio.run(update_case(file, case, observed, TokenData(seed={"city": "Rome"})))


def updated_expect(folder, expect: dict, *responses: Response) -> tuple[dict, tuple[str, ...]]:
    document = [{"id": "a", "input": {"message": "How warm is it?"}, "expect": expect}]
    made = update(read(folder, json.dumps(document)), *responses)
    return json.loads(made.file.data)[0]["expect"], made.remarks


CALLED = answer(TEXT, call("get_weather", city="Oslo", days=3), call("log"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"responseContains": ["degrees", "Oslo"]}, None),
        (
            {"responseContains": ["21", "Oslo", "A-7"]},
            {"responseContains": ["Oslo", "A-7"], "responseContainsNumber": ["22"]},
        ),
        (
            {"responseMatches": ["21", "Os.o"]},
            {"responseMatches": ["Os.o"], "responseContains": ["Oslo"], "responseContainsNumber": NUMBERS},
        ),
        (
            {"regexPattern": "21", "maxTokens": 99},
            {"maxTokens": 99, "responseContains": ["Oslo"], "responseContainsNumber": NUMBERS},
        ),
        (
            {"responseContainsAny": [["x", "y"], ["Oslo"]]},
            {"responseContainsAny": [["Oslo"]], "responseContains": ["Oslo"], "responseContainsNumber": NUMBERS},
        ),
        (
            {"responseNonEmpty": True, "responseNotContains": ["x", "order"]},
            {"responseNonEmpty": True, "responseNotContains": ["x"]},
        ),
        ({"responseNonEmpty": True, "responseNotContains": ["order"]}, {"responseNonEmpty": True}),
        ({"toolsCalled": ["get_weather", "log"]}, None),
        ({"toolsCalled": ["get_weather"]}, {"toolsCalled": ["get_weather", "log"]}),
        ({"toolsCalledAnyOrder": ["log"]}, {"toolsCalledAnyOrder": ["get_weather", "log"]}),
        ({"toolsAcceptable": [["log"]]}, {"toolsAcceptable": [["get_weather", "log"]]}),
        ({"toolsNotCalled": ["log", "delete"]}, {"toolsNotCalled": ["delete"]}),
    ],
    ids=str,
)
def test_update__expect__replaces_what_fails_and_keeps_what_passes(tmp_path, old, new) -> None:
    found, remarks = updated_expect(tmp_path, old, CALLED, CALLED, CALLED)
    assert (found, remarks) == (new or old, ())


def param(tool: str, name: str, assertion: str = "equals", **value) -> dict:
    return {"tool": tool, "paramName": name, "assertion": assertion} | value


def test_update__parameters__failing_ones_are_replaced_one_by_one(tmp_path) -> None:
    passing, failing = param("get_weather", "city", "contains", value="Os"), param("get_weather", "days", value=1)
    found, _ = updated_expect(tmp_path, {"toolParams": [passing, failing]}, CALLED, CALLED, CALLED)
    assert found == {"toolParams": [passing, param("get_weather", "days", value=3)]}


def test_update__another_tool__takes_its_parameters_with_it(tmp_path) -> None:
    """A check of a tool that is not called is skipped, so it never fails: with other tools it would check nothing."""
    old = {"toolsCalled": ["forecast"], "toolParams": [param("forecast", "city", value="Oslo")]}
    found, _ = updated_expect(tmp_path, old, CALLED, CALLED, CALLED)
    assert found == {
        "toolsCalled": ["get_weather", "log"],
        "toolParams": [param("get_weather", "city", value="Oslo"), param("get_weather", "days", value=3)],
    }


def test_update__no_tool_any_more__expects_none(tmp_path) -> None:
    old = {"toolsCalled": ["log"], "toolParams": [param("log", "x", "exists")]}
    found, _ = updated_expect(tmp_path, old, answer(), answer(), answer())
    assert found == {"toolsCalled": []}


def test_update__tools_differ_between_executions__stay_and_are_named(tmp_path) -> None:
    old = {"toolsCalled": ["x"]}
    seen = [answer(TEXT, call("a")), answer(TEXT, call("b")), answer(TEXT, call("c"))]
    found, [remark] = updated_expect(tmp_path, old, *seen)
    assert found == old
    assert remark.startswith("still fails: toolsCalled: ")


def test_update__what_responses_do_not_show__stays_and_is_named(tmp_path) -> None:
    document = [
        {
            "id": "a",
            "input": {"message": "How warm is it?"},
            "expect": {"responseContains": ["21"], "maxTokens": 1, "noToolErrors": True},
            "rubric": [{"dimension": "d", "maxScore": 1, "criteria": "c"}],
        }
    ]
    broken = answer(TEXT, ToolCall(name="t", params={}, success=False))
    made = update(read(tmp_path, json.dumps(document)), broken, broken, broken)
    [case] = json.loads(made.file.data)
    assert case["rubric"] == document[0]["rubric"]
    assert (case["expect"]["maxTokens"], case["expect"]["noToolErrors"]) == (1, True)
    kinds = [remark.removeprefix("still fails: ").partition(":")[0] for remark in made.remarks]
    assert kinds == ["noToolErrors", "maxTokens", "rubric"]


def test_update__token_that_somebody_wrote__stays(tmp_path) -> None:
    old = {"responseContains": ["{{seed:city}}", "21"]}
    found, remarks = updated_expect(tmp_path, old)
    assert found["responseContains"] == ["{{seed:city}}", "Oslo"]
    assert remarks == ("still fails: responseContains: expected 'Rome' in response but not found",)


def test_update__fails_in_one_execution_only__counts_as_failing(tmp_path) -> None:
    seen = [answer(), answer(), answer("It is 22 degrees in Oslo.")]
    found, _ = updated_expect(tmp_path, {"responseContains": ["A-7", "Oslo"]}, *seen)
    assert found == {"responseContains": ["Oslo"], "responseContainsNumber": ["22"]}


def test_update__nothing_in_common__leaves_the_case(tmp_path) -> None:
    old = {"responseContains": ["x"]}
    found, remarks = updated_expect(tmp_path, old, answer("hello"), answer("good day"), answer("hi"))
    assert (found, len(remarks)) == (old, 1)


@pytest.mark.parametrize(("errors", "responses"), [(("timeout",), (answer(), answer())), (("gone",) * 3, ())])
def test_update__executions_without_a_response__change_nothing(tmp_path, errors, responses) -> None:
    file = read(tmp_path, json.dumps([{"id": "a", "input": {"message": "q"}, "expect": {"responseContains": ["x"]}}]))
    made = update(file, *responses, errors=errors)
    assert made.file is file
    assert made.remarks == (f"{len(responses)} of 3 executions have a response: {errors[0]}",)


def test_update__responses_that_could_not_be_masked__change_nothing(tmp_path) -> None:
    file = read(tmp_path, json.dumps([{"id": "a", "input": {"message": "q"}, "expect": {"responseContains": ["x"]}}]))
    made = update(file, masked=False)
    assert (made.file is file, made.remarks) == (
        True,
        ("its responses could not be searched for the `redact` patterns",),
    )


HOSTILE = (
    "It is 22 in Oslo {{seed:city}} {{snapshot:x}} \"quoted\" 'single'\n"
    "- id: z\r\n\x1b[31m\u202eA-7\x00 ${{ X }} # no\ufffe"
)


@pytest.mark.parametrize("name", ["evals.json", "evals.yaml"])
def test_update__hostile_response__stays_text_of_one_case(tmp_path, name) -> None:
    document = [{"id": "a", "input": {"message": "q"}, "expect": {"responseContains": ["zzz"], "toolsCalled": ["t"]}}]
    text = json.dumps(document) if name.endswith("json") else yaml.safe_dump({"cases": document}, sort_keys=False)
    seen = answer(HOSTILE, call("t\n- id: y", city="{{seed:city}}"))
    made = update(read(tmp_path, text, name), seen, seen, seen)
    assert made.file.data != text.encode()
    [case] = made.file.suite.cases
    assert case.id == "a"
    written = made.file.data.decode()
    assert "Oslo" in written
    assert "{{" not in written
    assert not {"\x1b", "\u202e", "\x00", "\ufffe"}.intersection(written)


AGENTV = """\
tests:
  - id: a   # first
    input: How warm is it?
    assertions:
      # the city
      - {type: contains, value: Oslo}
      - type: contains-all   # all of it
        required: true
        value: [degrees, "21"]
      - {type: contains, value: order, negate: true}
      - Says how warm it is.
      - type: tool-trajectory
        name: route
        mode: exact
        expected: [{tool: forecast}]   # why
      - {type: latency, threshold: 1}
"""


def test_update__agentv__edits_the_failing_assertions_in_place(tmp_path) -> None:
    file = read(tmp_path, AGENTV, "evals.yaml")
    seen = replace(CALLED, duration_ms=9.0)
    made = update(file, seen, seen, seen)
    lines = [line for line in render_diff(file, made.file) if line[:1] in "+-" and line[:3] not in {"+++", "---"}]
    route = "[{tool: get_weather, args: {city: Oslo, days: 3}, args_match: superset}, {tool: log}]"
    assert lines == [
        '-        value: [degrees, "21"]',
        "-      - {type: contains, value: order, negate: true}",
        "+        value: [degrees]",
        '+      - {type: contains-number, value: "22"}',
        "+      - {type: contains-number, value: A-7}",
        "-        expected: [{tool: forecast}]   # why",
        f"+        expected: {route}   # why",
        "+      - {type: execution-metrics, max_tool_calls: 2}",
    ]
    assert [remark.partition(":")[0] for remark in made.remarks] == ["rubrics", "still fails"]


def test_update__agentv_no_tool_any_more__is_limited_to_none(tmp_path) -> None:
    head = "tests:\n  - id: a\n    input: q\n    assertions:\n"
    text = f"{head}      - {{type: tool-trajectory, mode: exact, expected: [{{tool: t}}]}}\n"
    made = update(read(tmp_path, text, "evals.yaml"), answer(), answer(), answer())
    assert made.file.data.decode() == f"{head}      - {{type: execution-metrics, max_tool_calls: 0}}\n"
    again = update(made.file, CALLED, CALLED, CALLED)
    assert "tool: get_weather" in again.file.data.decode()
    assert "max_tool_calls: 0" not in again.file.data.decode()


OURS = "answers with 21, Oslo. 1 of 3 executions had no response"


@pytest.mark.parametrize("name", ["evals.json", "evals.yaml"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (OURS, "calls no tool, answers with 22, Oslo, A-7"),
        (f"{OURS}. Refunds too.", None),
        ("Weather in Oslo", None),
        (None, None),
    ],
)
def test_update__description__is_renewed_only_if_it_repeats_the_old_expectations(tmp_path, name, old, new) -> None:
    case: dict[str, Any] = {"id": "a"} | ({"description": old} if old else {})
    if name.endswith("json"):
        document: Any = [case | {"input": {"message": "q"}, "expect": {"responseContains": ["21", "Oslo"]}}]
    else:
        assertions = [{"type": "contains", "value": "21"}, {"type": "contains", "value": "Oslo"}]
        document = {"tests": [case | {"input": "q", "assertions": assertions}]}
    made = update(read(tmp_path, json.dumps(document), name), answer(), answer(), answer())
    [case] = made.file.list_raw_cases()
    assert case.get("description") == (new or old)
    kept = [one for one in made.remarks if "its description stays" in one]
    assert len(kept) == (1 if old and new is None else 0)


def test_update__nothing_fails__leaves_the_description(tmp_path) -> None:
    case = {
        "id": "a",
        "description": "answers with 22",
        "input": {"message": "q"},
        "expect": {"responseContains": ["22"]},
    }
    made = update(read(tmp_path, json.dumps([case])), answer())
    assert json.loads(made.file.data)[0]["description"] == "answers with 22"
