"""Files of today's AgentV in which anything stands anywhere: a suite, or problems with lines, and never a traceback."""

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_gate.errors import GateError
from eval_gate.formats.agentv import dialect as agentv
from eval_gate.formats.agentv.detection import is_agentv_suite
from eval_gate.formats.base import EvalSource, ReadOptions
from eval_gate.text.sources.json import parse_json
from tests.support.agentv import Repository
from tests.support.sizes import size

SUITE = {
    "name": "n",
    "input": [{"role": "system", "content": ["a", {"type": "text", "value": "b"}]}],
    "input_files": ["a.md"],
    "metadata": {"a": [1]},
    "execution": {
        "target": "t",
        "targets": ["t"],
        "skip_defaults": False,
        "workers": 3,
        "threshold": 0.5,
        "trials": {"count": 2, "strategy": "mean", "cost_limit_usd": 1},
    },
    "assertions": ["A text.", {"type": "contains", "value": "a", "negate": True, "required": True, "min_score": 0.5}],
    "tests": [
        {
            "id": "one",
            "criteria": "x {{ a.b }}",
            "vars": {"a": {"b": 1}},
            "input": "Q",
            "expected_output": {"a": 1},
            "metadata": {"a": [2]},
            "rubrics": ["r", {"id": "i", "outcome": "o", "weight": 2}],
            "assertions": [
                {"type": "icontains-any", "value": ["a", "b"]},
                {"type": "regex", "value": "a", "flags": "i"},
                {"type": "rubrics", "criteria": [{"outcome": "o"}], "target": "j"},
                {"type": "code-grader", "command": ["x"], "cwd": ".", "config": {"cwd": "/x"}, "level": 1},
                {"type": "llm-grader", "prompt": "{{ output }}"},
                {"type": "llm-grader", "prompt": "file://a.md"},
                {
                    "type": "tool-trajectory",
                    "mode": "exact",
                    "args_match": ["a"],
                    "expected": [{"tool": "t", "args": {"cwd": "/x"}, "max_duration_ms": 5, "args_match": "superset"}],
                },
                {"type": "execution-metrics", "max_tokens": 5},
                {"type": "field-accuracy", "fields": [{"path": "a", "match": "date", "formats": ["DD/MM/YYYY"]}]},
                {"type": "skill-trigger", "skill": "s", "should_trigger": False},
                {
                    "type": "composite",
                    "assertions": [{"type": "is-json"}],
                    "aggregator": {"type": "threshold", "threshold": 1},
                },
            ],
        },
        {"id": "two", "input": {"a": 1}, "criteria": "x", "execution": {"skip_defaults": True}},
        {
            "id": "four",
            "mode": "conversation",
            "aggregation": "min",
            "on_turn_failure": "stop",
            "window_size": 2,
            "vars": {"a": "b"},
            "input": [{"role": "system", "content": "S"}],
            "execution": {"skip_defaults": True, "threshold": 0.5},
            "turns": [
                {"input": "{{ a }}", "expected_output": [{"role": "assistant", "content": {"a": 1}}]},
                {"input": "b", "assertions": ["A text.", {"type": "is-json"}]},
            ],
            "assertions": [{"type": "contains", "value": "user: b"}],
        },
        "file://cases.yaml",
    ],
}
WEIRD = (
    *(None, True, 0, -1, 5.5, 1e308, "", " ", "x" * 300, f"file://{'x' * 300}", "\x00", "\ud800", "any", "file://"),
    *([], [[]], ["a"], ["file://x"], {}, {"": None}, {"type": "text"}, {"role": "user"}, {"a": {"b": [1]}}),
    *("file://*", "file:///etc/passwd", "${{ A }}", "{{ a }}", "{{a.b.c}}", "../.."),
)


def places(value, path=()):
    """Every place below a value."""
    yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in parts:
        yield from places(one, (*path, key))


PLACES = [path for path in places(SUITE) if path]


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> Repository:
    made = Repository(tmp_path_factory.mktemp("repository"))
    made.write("a.md", "A {{ output }}")
    made.write("cases.yaml", "- {id: three, input: x, criteria: y}\n")
    return made


def load(repository: Repository, document) -> list[str]:
    """What is wrong with a document, if anything is."""
    data = json.dumps(document, indent=1).encode()
    value, positions = parse_json(data, "suite.json")
    if not is_agentv_suite(value):
        return ["of another format"]
    source = EvalSource("suite.json", data, repository.root / "suite.json", repository.root)
    try:
        suite = agentv.load_suite(value, positions, source, ReadOptions())
    except GateError as error:
        assert error.problems
        assert all(problem.line for problem in error.problems)
        return [str(problem) for problem in error.problems]
    assert all((case.evaluators or case.conversation) and case.messages and case.brief for case in suite.cases)
    return []


def test_load__suite_as_it_is__has_no_problem(repository) -> None:
    assert load(repository, SUITE) == []


@pytest.mark.slow
@pytest.mark.parametrize("path", PLACES, ids=str)
def test_load__anything_in_one_place__is_a_suite_or_problems_with_lines(repository, path) -> None:
    for value in WEIRD:
        document = copy.deepcopy(SUITE)
        inside = document
        for step in path[:-1]:
            inside = inside[step]
        inside[path[-1]] = value
        load(repository, document)


@pytest.mark.slow
@settings(max_examples=size(200))
@given(changes=st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(WEIRD)), min_size=2, max_size=4))
def test_load__anything_anywhere__is_a_suite_or_problems_with_lines(repository, changes) -> None:
    document = copy.deepcopy(SUITE)
    for path, value in changes:
        inside = document
        try:
            for step in path[:-1]:
                inside = inside[step]
            inside[path[-1]] = copy.deepcopy(value)  # a later change may go into it
        except (KeyError, IndexError, TypeError):  # an earlier change has taken the place away
            continue
    load(repository, document)
