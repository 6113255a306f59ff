"""A document is read piece by piece, and nothing of it is another than all at once."""

import gc
import json
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.errors import GateError
from eval_gate.external_results import json_streaming
from eval_gate.external_results.json_streaming import open_document
from eval_gate.external_results.promptfoo import read_promptfoo
from eval_gate.external_results.result_rows import FileFacts

TEXTS = st.text(max_size=8) | st.sampled_from(['},{"a"', '"', "\\", "\ud800", "é", "\x00"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=True) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["success", "vars", "testCase", "response", "gradingResult", "tokenUsage", "metadata", "score", "failureReason"]
)
PARTS = st.sampled_from(["output", "reason", "componentResults", "total", "prompt", "testCaseId", "assert", "other"])
RESULTS = st.dictionaries(NAMES, st.dictionaries(PARTS, VALUES, max_size=3) | VALUES, max_size=6)


def told(file):
    """Every row, or what is said in its place."""
    try:
        return list(read_promptfoo(file, "out.json", FileFacts()))
    except GateError as error:
        return str(error), error.problems


@given(st.lists(RESULTS | VALUES, max_size=12), st.sampled_from([None, 2]), st.integers(20, 400))
def test_read_promptfoo__in_pieces__is_the_same_as_all_at_once(tmp_path_factory, results, indent, chunk) -> None:
    file = tmp_path_factory.mktemp("big") / "out.json"
    text = json.dumps({"results": {"version": 3, "prompts": [], "results": results}}, indent=indent)
    file.write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_streaming, "_CHUNK", chunk)
        in_pieces = told(file)
    assert repr(in_pieces) == repr(told(file))


def test_members__more_than_one_piece__are_all_there(tmp_path) -> None:
    members = [{"a": n, "b": "x" * 100} for n in range(30_000)]
    members[20_000]["a"] = float("nan")
    members.append("no mapping")
    (tmp_path / "x.json").write_text(json.dumps(members))
    with open_document(tmp_path / "x.json", "x.json") as walked:
        found = list(walked.iter_members())
    assert found[20_000] == {"a": None, "b": "x" * 100}
    assert found[-1] == "no mapping"
    assert len(found) == len(members)


def test_document__a_mark_of_its_byte_order__is_no_part_of_it(tmp_path) -> None:
    (tmp_path / "x.json").write_bytes(b'\xef\xbb\xbf[{"a": "\xef\xbb\xbf"}, 1]')
    with open_document(tmp_path / "x.json", "x.json") as walked:
        assert list(walked.iter_members()) == [{"a": "\ufeff"}, 1]
        walked.require_end()


def test_document__cut_within_a_value__is_let_go_before_python_looks_for_rings(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(json_streaming, "_CHUNK", 7)
    (tmp_path / "x.json").write_text(json.dumps([{"a": None}] * 100))
    there = gc.isenabled()
    gc.disable()
    try:
        with open_document(tmp_path / "x.json", "x.json") as walked:
            assert list(walked.iter_members()) == [{"a": None}] * 100
            gone = weakref.ref(walked)
        del walked
        assert gone() is None
    finally:
        if there:
            gc.enable()
