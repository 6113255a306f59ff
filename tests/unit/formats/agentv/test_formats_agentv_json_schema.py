"""The JSON Schema that editors use takes what the loader takes, by every name."""

from functools import cache

import jsonschema
import pytest

from eval_gate.formats.agentv.dialect import build_json_schema
from eval_gate.text.sources.yaml import parse_yaml
from tests.support.agentv import ASKED, suite
from tests.unit.formats.agentv.test_formats_agentv_dialect_examples import SPEC_EVALUATORS
from tests.unit.formats.agentv.test_formats_agentv_dialect_fingerprint import SUITE


@cache
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(build_json_schema())


def errors(text: str) -> list[str]:
    return [error.message for error in validator().iter_errors(parse_yaml(text.encode(), "suite.yaml")[0])]


@pytest.mark.parametrize(
    "text",
    [
        suite("id: one\n" + ASKED),
        SUITE,
        "tests:\n- {id: a, criteria: x, input: y, expected_output: z, rubrics: [r], tags: t, assert: []}\n",
        "tests:\n- {id: a, input: {b: 1}, assertions: [Is kind., {type: contains, value: x, negate: true}]}\n- file://a\n",
        "tests:\n- {id: a, input: x, criteria: y, vars: {a: 1}, input_files: [b], execution: {skip_defaults: true}}\n",
        "assertions: [{type: is-json}]\ninput: x\ntests:\n- {id: a, input: x, criteria: y}\n",
        "tests:\n- {id: a, input_messages: x, outcome: y}\n",
        "tests: cases.yaml\n",
        "cases:\n- {id: a, outcome: x, input: [{role: user, content: {a: 1}}]}\n",
        suite("id: one\n" + ASKED + f"evaluators: [{', '.join(SPEC_EVALUATORS)}]"),
        suite("id: one\n" + ASKED, head="$schema: agentv-eval-v2\nexecution: {target: t}\n"),
        suite("id: one\n" + ASKED, head="execution:\n"),
    ],
)
def test_schema__what_loads__fits(text) -> None:
    assert errors(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "description: no cases\n",
        "evalcases: []\n",
        "tests: [{id: a}]\n",
        "tests: [{id: a, input: x, criteria: 5}]\n",
        "tests: [{id: a, input: x, criteria: y}]\nassertions: {type: is-json}\n",
        "evalcases: [{id: a}]\n",
        suite("id: 5\n" + ASKED),
        suite("id: one\n" + ASKED + "criteria: twice"),
        suite("id: one\n" + ASKED + "evaluators: [{type: nothing}]"),
        suite("id: one\n" + ASKED + "evaluators: [{type: llm_judge, weight: -1}]"),
        suite("id: one\noutcome: x\ninput: [{role: usr, content: x}]"),
    ],
)
def test_schema__what_does_not_load__does_not_fit(text) -> None:
    assert errors(text)


def test_schema__itself__is_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(build_json_schema())
