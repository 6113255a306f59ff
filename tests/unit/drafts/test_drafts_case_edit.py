"""Cases that are changed in the text of a file: what else is in it stays, and nothing invalid is made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eval_gate.drafts.case_edit import CaseFile, read_case_file
from eval_gate.errors import GateError

TOOL_FORGE = """\
[
  {
    "id": "a",
    "draft": true,
    "input": {"message": "hi"},
    "expect": {"responseContains": ["x"]}
  },
  {"id": "b", "input": {"message": "ho"}, "expect": {"toolsCalled": []}}
]
"""
AGENTV = """\
# ours
tests:
  - id: a
    draft: true   # not yet
    input: hi
    assertions:
      - {type: contains, value: x}   # why

  - id: b
    input: ho
    assertions: [{type: contains, value: y}]
# end
"""
LINES = (
    '{"id":"a","draft":true,"input":"hi","assertions":[{"type":"contains","value":"x"}]}\r\n\n'
    '{"id": "b", "input": "ho", "assertions": [{"type": "contains", "value": "y"}]}'
)
FILES = {"evals.json": TOOL_FORGE, "evals.yaml": AGENTV, "evals.jsonl": LINES}
each_file = pytest.mark.parametrize("name", FILES)


def load(folder: Path, name: str, text: str | None = None) -> CaseFile:
    file = folder / name
    file.write_bytes((FILES[name] if text is None else text).encode())
    return read_case_file(file, folder)


def unmark(file: CaseFile) -> CaseFile:
    case = file.suite.cases[0]
    return file.replace_cases({"a": {key: one for key, one in file.find_raw_case(case).items() if key != "draft"}})


@each_file
def test_replace_cases__mark_is_removed__only_the_mark_goes(tmp_path, name) -> None:
    file = load(tmp_path, name)
    changed = unmark(file)
    assert [case.draft for case in file.suite.cases] == [True, False]
    assert [case.draft for case in changed.suite.cases] == [False, False]
    gone = {
        "evals.json": b'    "draft": true,\n',
        "evals.yaml": b"    draft: true   # not yet\n",
        "evals.jsonl": b'"draft":true,',
    }
    assert changed.data == file.data.replace(gone[name], b"")
    assert (tmp_path / name).read_bytes() == file.data
    file.write(changed)
    assert (tmp_path / name).read_bytes() == changed.data


@each_file
@pytest.mark.parametrize("gone", ["a", "b"])
def test_replace_cases__case_is_removed__the_other_stays_to_the_byte(tmp_path, name, gone) -> None:
    file = load(tmp_path, name)
    [left] = [case for case in file.suite.cases if case.id != gone]
    changed = file.replace_cases({gone: None})
    assert [case.id for case in changed.suite.cases] == [left.id]
    assert file.get_case_text(left).strip().encode() in changed.data
    assert (b"# end" in changed.data) == (name == "evals.yaml")


@each_file
def test_replace_cases__no_case_would_be_left__is_refused(tmp_path, name) -> None:
    with pytest.raises(GateError, match="would have no case left") as caught:
        load(tmp_path, name).replace_cases({"a": None, "b": None})
    assert caught.value.code == "no-cases-left"


def test_replace_cases__result_is_invalid__is_refused_with_its_problems(tmp_path) -> None:
    file = load(tmp_path, "evals.json")
    with pytest.raises(GateError) as caught:
        file.replace_cases({"a": {"id": "a", "input": {"message": ""}, "expect": {}}})
    assert [problem.line for problem in caught.value.problems] == [4]


def test_replace_cases__file_with_warnings__is_changed_as_leniently_as_it_was_read(tmp_path) -> None:
    """A file that never was valid with --strict can still be changed; a strict one stays strict."""
    loose = load(tmp_path, "evals.json", TOOL_FORGE.replace('"toolsCalled": []', '"responseContains": [""]'))
    assert not loose.is_strict
    assert not unmark(loose).suite.cases[0].draft
    strict = load(tmp_path, "evals.json")
    assert strict.is_strict
    with pytest.raises(GateError, match=r"evals\.json has 2 problems"):
        strict.replace_cases({"a": {"id": "a", "input": {"message": "hi"}, "expect": {"responseContains": [""]}}})


@each_file
def test_replace_case_text__edited_text__takes_its_place(tmp_path, name) -> None:
    file = load(tmp_path, name)
    text = file.get_case_text(file.suite.cases[0])
    assert text.count("hi") == 1
    assert "ho" not in text
    changed = file.replace_case_text(file.suite.cases[0], text.replace("hi", "hello") + "\n")
    assert changed.data == file.data.replace(b"hi", b"hello")


@each_file
def test_replace_case_text__more_than_the_case_changes__is_refused(tmp_path, name) -> None:
    file = load(tmp_path, name)
    first, second = (file.get_case_text(case) for case in file.suite.cases)
    joint = {"evals.json": ",", "evals.yaml": "\n", "evals.jsonl": "\n"}[name]
    twice = first.rstrip() + joint + second.replace('"b"', '"c"').replace("id: b", "id: c")
    with pytest.raises(GateError, match="the text is not one case any more"):
        file.replace_case_text(file.suite.cases[0], twice)


@each_file
def test_replace_case_text__not_valid__says_where(tmp_path, name) -> None:
    file = load(tmp_path, name)
    text = file.get_case_text(file.suite.cases[0])
    with pytest.raises(GateError) as caught:
        file.replace_case_text(file.suite.cases[0], text.replace("input", "inptu"))
    assert caught.value.problems
    with pytest.raises(GateError):
        file.replace_case_text(file.suite.cases[0], text + "}")


def test_write__file_changed_meanwhile__is_left_alone(tmp_path) -> None:
    file = load(tmp_path, "evals.json")
    changed = unmark(file)
    file.path.write_text(TOOL_FORGE.replace("hi", "hello"))
    with pytest.raises(GateError) as caught:
        file.write(changed)
    assert caught.value.code == "eval-file-changed"
    assert "hello" in file.path.read_text()


def test_find_raw_case__case_of_another_file__is_refused(tmp_path) -> None:
    (tmp_path / "more.yaml").write_text("- {id: c, draft: true, input: q, assertions: [{type: contains, value: z}]}\n")
    file = load(tmp_path, "evals.yaml", AGENTV.replace("# end", "  - file://more.yaml"))
    assert [case.id for case in file.suite.cases] == ["a", "b", "c"]
    with pytest.raises(GateError, match=r"more\.yaml cannot be changed .*: c is not in evals\.yaml itself"):
        file.replace_cases({"c": None})
    assert not unmark(file).suite.cases[0].draft


def test_replace_cases__mark_from_an_alias__is_refused(tmp_path) -> None:
    text = AGENTV.replace("draft: true   # not yet", "<<: *mark").replace("# ours", "x-mark: &mark {draft: true}", 1)
    file = load(tmp_path, "evals.yaml", text.replace("x-mark", "metadata"))
    assert file.suite.cases[0].draft
    with pytest.raises(GateError, match="it takes keys from another place") as caught:
        unmark(file)
    assert caught.value.code == "eval-file-not-editable"


def test_replace_cases__hostile_text__is_escaped_in_both_notations(tmp_path) -> None:
    hostile = "{{seed:x}} \"'\n- id: z\x1b[31m\u202e\x00\ufffe"
    for name in ("evals.json", "evals.yaml"):
        file = load(tmp_path, name)
        raw = file.find_raw_case(file.suite.cases[0])
        changed = file.replace_cases({"a": {**raw, "description": hostile}})
        assert changed.suite.cases[0].description == hostile
        assert len(changed.suite.cases) == 2
        assert not {"\x1b", "\u202e", "\x00"}.intersection(changed.data.decode())


def test_read_case_file__no_evals__is_said(tmp_path) -> None:
    with pytest.raises(GateError, match="is not an eval file"):
        load(tmp_path, "evals.json", json.dumps({"a": 1}))


@each_file
def test_replace_cases__deeply_nested_data__is_edited_or_refused(tmp_path, name) -> None:
    deep = "[" * 180 + "]" * 180
    text = FILES[name].replace('"draft"', f'"stubs": {{"t": {deep}}}, "draft"', 1)
    text = text.replace("    draft: true   #", f"    metadata: {{t: {deep}}}\n    draft: true   #")
    changed = unmark(load(tmp_path, name, text.replace('"stubs"', '"metadata"') if name == "evals.jsonl" else text))
    assert not changed.suite.cases[0].draft


def test_replace_cases__value_that_another_case_shares__is_refused(tmp_path) -> None:
    """Changing the text at the anchor would change the other case too."""
    text = (
        "cases:\n- {id: a, input: {message: hi}, expect: &both {responseContains: [x]}}\n"
        "- {id: b, input: {message: ho}, expect: *both}\n"
    )
    file = load(tmp_path, "evals.yaml", text)
    raw = file.find_raw_case(file.suite.cases[0])
    with pytest.raises(GateError, match="its layout is not supported") as caught:
        file.replace_cases({"a": {**raw, "expect": {"responseContains": ["y"]}}})
    assert caught.value.code == "eval-file-not-editable"
