"""Cases that have another name or file are known again by what they measure, and never mistaken for others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.gate.case_matching import find_earlier_keys
from eval_gate.model.case import CaseKey
from eval_gate.model.result import SuiteResult
from tests.support.results import make_baseline_run, make_result, make_run, make_suite_result


def _suite(file: str, cases: dict[str, str | None], tool: str = "refund") -> SuiteResult:
    """Ids and what they measure."""
    made = [make_result(case_id, fingerprint=measure) for case_id, measure in cases.items()]
    return make_suite_result(made, eval_file=file, tool_name=tool)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param([_suite("a", {"x": "1"})], [_suite("a", {"x": "1"})], {}, id="nothing_changed"),
        pytest.param([_suite("a", {"x": "1"})], [_suite("a", {"x": "2"})], {}, id="the_question_alone_changed"),
        pytest.param([_suite("a", {"x": "1"})], [_suite("a", {"y": "1"})], {"a y": "a x"}, id="another_id"),
        pytest.param([_suite("a", {"x": "1"})], [_suite("b", {"x": "1"})], {"b x": "a x"}, id="another_file"),
        pytest.param([_suite("a", {"x": "1"})], [_suite("b", {"y": "1"})], {"b y": "a x"}, id="another_file_and_id"),
        pytest.param([_suite("a", {"x": "1"})], [_suite("a", {"y": "2"})], {}, id="another_id_and_question"),
        pytest.param(
            [_suite("a", {"x": "1"})],
            [_suite("b", {"x": "2"})],
            {"b x": "a x"},
            id="a_moved_file_with_another_question",
        ),
        pytest.param([_suite("a", {"x": "1"})], [_suite("b", {"x": "2"}, "other")], {}, id="a_file_of_another_kind"),
        pytest.param(
            [_suite("a", {"x": "1"})],
            [_suite("b", {"x": "1"}, "other")],
            {"b x": "a x"},
            id="the_same_case_in_a_file_of_another_kind",
        ),
        pytest.param(
            [_suite("a", {"x": "1", "y": "2"})],
            [_suite("b", {"y": "1", "z": "2"})],
            {"b y": "a x", "b z": "a y"},
            id="ids_that_moved_on_by_one_go_by_what_they_measure",
        ),
        pytest.param(
            [_suite("a", {"x": "1", "z": "3"})],
            [_suite("a", {"z": "3"}), _suite("b", {"x": "1"})],
            {"b x": "a x"},
            id="a_case_in_another_file_while_both_stay",
        ),
        pytest.param(
            [_suite("a", {"x": "1", "y": "1"})], [_suite("a", {"p": "1", "q": "1"})], {}, id="two_that_are_alike"
        ),
        pytest.param([_suite("a", {"x": "1", "y": "1"})], [_suite("a", {"p": "1"})], {}, id="one_that_may_be_either"),
        pytest.param(
            [_suite("a", {"x": "1"}), _suite("b", {"x": "1"}, "other")],
            [_suite("c", {"x": "1"}), _suite("d", {"x": "1"}, "other")],
            {"c x": "a x", "d x": "b x"},
            id="two_that_are_alike_in_files_of_their_own_kind",
        ),
        pytest.param([_suite("a", {"x": "1"})], [_suite("a", {"x": "1", "y": "1"})], {}, id="a_copy_of_one_that_stays"),
        pytest.param([_suite("a", {"x": None})], [_suite("a", {"y": None})], {}, id="a_run_that_did_not_say"),
        pytest.param(
            [_suite("a", {"x": None, "k": "9"})],
            [_suite("a", {"k": "9"}), _suite("b", {"x": None}, "other")],
            {},
            id="one_id_in_two_files_of_runs_that_did_not_say",
        ),
        pytest.param(
            [_suite("a", {"x": "1", "y": "1"}), _suite("c", {"x": "1", "k": "9"})],
            [_suite("b", {"x": "1", "z": "1"}), _suite("c", {"k": "9"})],
            {"b x": "a x", "b z": "a y"},
            id="one_that_kept_its_id_leaves_its_twin_of_the_same_file_to_the_other",
        ),
        pytest.param(
            [_suite("a", {"x": "1", "y": "1"})],
            [_suite("b", {"x": "1", "z": "1"}, "other")],
            {"b x": "a x", "b z": "a y"},
            id="one_that_kept_its_id_in_a_file_of_another_kind_leaves_its_twin_to_the_other",
        ),
    ],
)
def test_earlier_keys__what_has_another_name__is_known_by_what_it_measures(before, after, expected):
    found = find_earlier_keys(make_baseline_run(*before), make_run(*after))

    assert {" ".join(now): " ".join(then) for now, then in found.items()} == expected


_KEYS = st.dictionaries(
    st.builds(CaseKey, st.sampled_from("abc"), st.sampled_from("xyz")),
    st.sampled_from(["1", "2", "3", None]),
    max_size=9,
)


def _run(make, keys: dict[CaseKey, str | None]):
    files = sorted({key.suite for key in keys})
    return make(*(_suite(file, {k.case_id: v for k, v in keys.items() if k.suite == file}) for file in files))


@pytest.mark.slow
@given(before=_KEYS, after=_KEYS)
def test_earlier_keys__any_two_runs__takes_no_case_twice_and_none_that_kept_its_name(before, after):
    found = find_earlier_keys(_run(make_baseline_run, before), _run(make_run, after))

    assert len(set(found.values())) == len(found)
    assert set(found) <= set(after) - set(before)
    assert set(found.values()) <= set(before) - set(after)
