"""Commands and requests before and after suites and cases in tool-forge files: their forms, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from eval_gate.formats.base import EvalFileError, EvalSource, ReadOptions
from eval_gate.formats.tool_forge import dialect as tool_forge
from eval_gate.model.case import WorkspaceHook, WorkspaceHooks
from eval_gate.struct import replace
from eval_gate.text.sources.json import parse_json

FILE = "evals/shop.golden.json"
COMMAND = WorkspaceHook(command=("python3", "a.py"), cwd="/repo/evals", place="`before`")
REQUEST = WorkspaceHook(command=(), cwd="/repo/evals", place="`before`", request="POST /reset")


def build_document(**case_hooks) -> dict:
    case = {"id": "a", "input": {"message": "a"}, "expect": {"responseNonEmpty": True}, **case_hooks}
    return {"before": None, "cases": [case]}


def read_hooks(document: dict) -> WorkspaceHooks:
    data = json.dumps(document).encode()
    parsed, positions = parse_json(data, FILE)
    source = EvalSource(FILE, data, Path("/repo") / FILE, Path("/repo"))
    return tool_forge.load_suite(parsed, positions, source, ReadOptions()).cases[0].hooks


@pytest.mark.parametrize(
    ("written", "hooks"),
    [
        ("python3  a.py", (COMMAND,)),
        (["python3", "a.py"], (COMMAND,)),
        (
            [{"command": ["python3", "a.py"]}, {"request": "POST /reset", "headers": {"A": "b"}, "body": [1]}],
            (
                replace(COMMAND, place="`before[0]`"),
                replace(REQUEST, place="`before[1]`", headers={"A": "b"}, body=[1]),
            ),
        ),
        ({"request": "POST http://host:8080"}, (replace(REQUEST, request="POST http://host:8080"),)),
    ],
)
def test_load__each_form_of_a_hook__is_read_for_case_and_suite(written, hooks) -> None:
    jsonschema.validate(build_document(before=written), tool_forge.build_json_schema())
    of_suite = tuple(replace(one, place=f"{one.place} of the suite") for one in hooks)
    expected = WorkspaceHooks(before_all=of_suite, before_each=hooks)
    assert read_hooks(build_document(before=written) | {"before": written}) == expected


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ({"request": "FETCH /x"}, "after.request: is not a method and a path or URL, such as POST /test/reset"),
        ({"request": "POST http://host:99999/x"}, "after: the URL is not of the form http(s)://host[:port]/path"),
        ({"request": "POST http://user@host/x"}, "after.request: is not a method and a path or URL"),
        ({"request": "POST /x", "command": "x"}, "after: needs either `command` or `request`"),
        ({"command": "x", "body": 1}, "after: `headers` and `body` are those of a `request`"),
        ("POST /x", 'after: is a request: write {"request": "POST /x"}'),
        ({"request": "POST /x", "header": {}}, "after.header: unknown key"),
        ({"request": "POST /x", "headers": {"A": "b\nC: d"}}, "after.headers.A: contains control characters"),
        (
            {"request": "POST /x", "headers": {"A\r\nB": "c"}},
            'after: the header "A\r\nB" is none that a request can set',
        ),
        ({"request": "POST /x", "headers": {"HOST": "b"}}, 'after: the header "HOST" is none that a request can set'),
        (["make seed", {"request": "POST /x"}], 'after[0]: expected a mapping, got text "make seed"'),
        ([], "after: needs at least 1, got an empty list"),
    ],
)
def test_load__wrong_hook__is_refused_with_its_field_as_written(written, problem) -> None:
    with pytest.raises(EvalFileError) as caught:
        read_hooks(build_document(after=written))
    [one] = caught.value.problems
    assert str(one).partition(": ")[2].startswith(f"cases[0].{problem}")
