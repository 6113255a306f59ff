"""Whatever an AgentV file holds, it is a suite or a list of problems with their places."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_gate.errors import GateError
from eval_gate.formats.agentv import dialect as agentv
from eval_gate.formats.agentv import file_model
from eval_gate.formats.agentv.detection import CASE_LIST_NAMES, is_agentv_suite
from eval_gate.formats.base import EvalSource, ReadOptions
from eval_gate.text.sources.json import parse_json
from tests.support.agentv import Repository
from tests.support.sizes import size

WORDS = sorted(
    {
        *(
            *CASE_LIST_NAMES,
            *file_model.OUTCOME,
            *file_model.INPUT,
            *file_model.EXPECTED,
            *file_model.EVALUATORS,
            *file_model.LLM_JUDGE,
            *file_model.CODE_JUDGE,
        ),
        *("id", "type", "value", "text", "file", "role", "user", "system", "content", "execution", "target", "name"),
        *("rubrics", "weight", "prompt", "script", "cwd", "mode", "any_order", "exact", "minimums", "expected", "tool"),
        *("composite", "aggregator", "weighted_average", "weights", "path", "model", "evaluator", "dataset", "tags"),
        *(".", "..", "/", "suite.json", "{{candidate_answer}}", "tool_trajectory", "tool_calls", "\ud800", "\x00"),
    }
)
LEAVES = st.none() | st.booleans() | st.integers(-2, 2) | st.floats() | st.sampled_from(WORDS) | st.text(max_size=3)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=15,
)
CASES = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "id": LEAVES,
            "expected_outcome": LEAVES,
            "input_messages": VALUES | st.lists(st.fixed_dictionaries({"role": LEAVES, "content": VALUES}), max_size=2),
            "expected_messages": VALUES,
            "evaluators": VALUES | st.lists(st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=5), max_size=2),
            "rubrics": VALUES,
            "execution": VALUES,
        },
    )
    | VALUES,
    max_size=3,
)


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> Repository:
    return Repository(tmp_path_factory.mktemp("repository"))


@pytest.mark.slow
@settings(max_examples=size(300))
@given(cases=CASES, rest=st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=3), strict=st.booleans())
def test_load__anything_in_the_place_of_cases__is_a_suite_or_problems_with_lines(
    repository, cases, rest, strict
) -> None:
    data = json.dumps({**rest, "evalcases": cases}, indent=1).encode()
    path = repository.root / "suite.json"
    try:
        document, positions = parse_json(data, "suite.json")
    except GateError:  # NaN and infinity
        return
    assert is_agentv_suite(document)
    try:
        suite = agentv.load_suite(
            document, positions, EvalSource("suite.json", data, path, repository.root), ReadOptions(strict=strict)
        )
    except GateError as error:
        assert error.problems
        assert all(problem.line for problem in error.problems)
    else:
        assert len(suite.cases) == len(cases)
        assert all(case.evaluators and case.messages and case.brief for case in suite.cases)


@pytest.mark.parametrize("depth", [50, 150, 190])
def test_load__deeply_nested_content__is_read(repository, depth) -> None:
    content = '{"a":' * depth + "1" + "}" * depth
    text = '{"evalcases": [{"id": "a", "outcome": "x", "input": [{"role": "user", "content": ' + content + "}]}]}"
    assert repository.load("deep.json", text).cases[0].brief
