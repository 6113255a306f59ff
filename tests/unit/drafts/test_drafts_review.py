"""Decisions about drafts: who is meant, what changes, and what a person is shown."""

from __future__ import annotations

import json

import pytest

from eval_gate.drafts.case_edit import CaseFile, read_case_file
from eval_gate.drafts.review import decide_drafts, list_drafts, render_draft, select_drafts
from eval_gate.errors import GateError


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
