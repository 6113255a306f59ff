"""The variables of a judge's own template."""

import pytest

from eval_gate.text.judge_template import find_template_problem, find_unknown_variables, list_variables

KNOWN = [
    "candidate_answer",
    "reference_answer",
    "expected_outcome",
    "question",
    "input_messages",
    "expected_messages",
    "output_messages",
]


@pytest.mark.parametrize("name", KNOWN)
def test_unknown_variables__each_that_there_is__is_none_of_them(name) -> None:
    assert find_unknown_variables(f"{{{{ {name} }}}} {{{{other}}}}") == ("other",)


@pytest.mark.parametrize("name", KNOWN)
def test_template_problem__template_without_an_answer__is_told_which_there_are(name) -> None:
    problem = find_template_problem(f"{{{{ {name} }}}}")
    if name in {"candidate_answer", "output_messages", "expected_messages"}:
        assert problem is None
    else:
        assert problem is not None
        assert "{{ candidate_answer }}, {{ output_messages }}, {{ expected_messages }}" in problem


def test_names_in__the_same_twice__is_one() -> None:
    assert list_variables("{{a}} {{ b }} {{ a }} {c}") == ("a", "b")
