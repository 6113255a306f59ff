"""Conversations of AgentV 4: what is read with which meaning, and what is refused in which words."""

import jsonschema
import pytest

from eval_gate.formats.agentv.dialect import build_json_schema
from eval_gate.model.case import Aggregation, ConversationSpec, EvalCase, TurnAggregation
from eval_gate.model.conversation import Message
from eval_gate.model.limits import TURNS
from eval_gate.model.specs.agentv import FieldAccuracy, TextAssertion
from eval_gate.model.specs.evaluator import LlmJudge, RubricJudge
from eval_gate.text.sources.yaml import parse_yaml
from tests.support.agentv import Repository


@pytest.fixture
def repository(tmp_path) -> Repository:
    return Repository(tmp_path / "repository")


def file(keys: str = "", head: str = "", turns: str = "[{input: a}]", asked: str = "Is it so?") -> str:
    """A file of one conversation, whose turns are in line 5 and whose further keys start in line 6."""
    return f"{head}tests:\n- id: one\n  mode: conversation\n  input: {asked}\n  turns: {turns}\n{keys}"


def read(repository: Repository, text: str) -> tuple[EvalCase, ConversationSpec]:
    case = repository.case(text)
    assert case.conversation is not None
    return case, case.conversation


def test_conversation__turns__are_sent_after_the_input_of_file_and_case(repository) -> None:
    text = file(
        "  assertions: [Never contradicts itself.]\n",
        "input: [{role: system, content: Be kind.}]\n",
        "[{input: 'Left, today?', assertions: [{type: contains, value: x}]}, {input: b, expected_output: '10:00'}]",
        "[{role: user, content: Hi.}, {role: assistant, content: Hello.}]",
    )
    case, conversation = read(repository, text)
    assert case.messages == (
        Message(role="system", content="Be kind."),
        Message(role="user", content="Hi."),
        Message(role="assistant", content="Hello."),
    )
    assert [turn.message for turn in conversation.turns] == ["Left, today?", "b"]
    first, second = conversation.turns
    assert isinstance(first.evaluators[0], TextAssertion)
    assert first.expected_messages is None
    assert isinstance(second.evaluators[0], LlmJudge)
    assert second.expected_messages == [{"role": "assistant", "content": "10:00"}]
    assert [type(one) for one in case.evaluators] == [RubricJudge]
    assert case.all_evaluators is conversation.all_evaluators
    assert conversation.all_evaluators == (*first.evaluators, *second.evaluators, *case.evaluators)
    assert (case.aggregation, case.warnings) == (Aggregation.WEIGHTED_MEAN, ())


def test_conversation__system_message_alone__stays_one(repository) -> None:
    case, _ = read(repository, file(asked="[{role: system, content: S}]"))
    assert case.messages == (Message(role="system", content="S"),)


def test_conversation__by_default__is_a_mean_over_all_turns_and_the_transcript(repository) -> None:
    _, conversation = read(repository, file())
    assert (conversation.aggregation, conversation.stop_score, conversation.window, conversation.scores_transcript) == (
        TurnAggregation.MEAN,
        None,
        None,
        True,
    )
    assert conversation.user is None


@pytest.mark.parametrize(
    ("keys", "head", "aggregation", "stop_score", "window"),
    [
        ("  aggregation: min\n  window_size: 3\n", "", TurnAggregation.MIN, None, 3),
        ("  aggregation: max\n  on_turn_failure: continue\n", "", TurnAggregation.MAX, None, None),
        ("  on_turn_failure: stop\n", "", TurnAggregation.MEAN, 0.8, None),
        ("  on_turn_failure: stop\n", "execution: {threshold: 0.4}\n", TurnAggregation.MEAN, 0.8, None),
        ("  on_turn_failure: stop\n  execution: {threshold: 0.4}\n", "", TurnAggregation.MEAN, 0.4, None),
    ],
)
def test_conversation__settings__are_those_of_agentv(repository, keys, head, aggregation, stop_score, window) -> None:
    _, conversation = read(repository, file(keys, head))
    assert (conversation.aggregation, conversation.stop_score, conversation.window) == (aggregation, stop_score, window)


def test_turn__without_assertions_and_expected_output__checks_nothing(repository) -> None:
    for turns in ("[{input: a}]", "[{input: a, expected_output: ''}]", "[{input: a, expected_output: null}]"):
        case, conversation = read(repository, file("  criteria: Is kind.\n", turns=turns))
        assert (conversation.turns[0].evaluators, case.evaluators) == ((), ())
        assert conversation.turns[0].expected_messages is None


def test_turn__texts__are_one_judge_that_weighs_like_one_assertion(repository) -> None:
    case, conversation = read(
        repository,
        file("  assertions: [C., D.]\n", turns="[{input: a, assertions: [A., {type: is-json}, B.]}]"),
    )
    judge, _ = conversation.turns[0].evaluators
    assert isinstance(judge, RubricJudge)
    assert (judge.weight, [check.description for check in judge.checks]) == (1.0, ["A.", "B."])
    assert case.evaluators[0].weight == 2.0
    required = [[check.required for check in rubric.checks] for rubric in (judge, case.evaluators[0])]
    assert required == [[False, False], [True, True]]


def test_turn__expected_output__is_what_its_own_assertions_compare_with(repository) -> None:
    fields = "assertions: [{type: field-accuracy, fields: [{path: a, match: exact}]}]"
    _, conversation = read(
        repository, file(turns=f"[{{input: a, expected_output: {{a: 1}}, {fields}}}, {{input: b, expected_output: c}}]")
    )
    (spec,) = conversation.turns[0].evaluators
    assert isinstance(spec, FieldAccuracy)
    assert spec.expected == {"a": 1}
    assert conversation.turns[0].expected_messages == [{"role": "assistant", "content": {"a": 1}}]
    missing = 'compares with the expected output, but the case "one" has none that is JSON'
    assert repository.problems(file(turns=f"[{{input: a, expected_output: {{a: 1}}}}, {{input: b, {fields}}}]")) == [
        f"5: tests[0].turns[1].assertions[0]: {missing}"
    ]


def test_turn__variables__are_filled_in_but_not_into_assertions(repository) -> None:
    turns = "[{input: 'on {{d}}', expected_output: '{{ d }}', assert: [{type: contains, value: '{{d}}'}]}]"
    _, conversation = read(repository, file("  vars: {d: monday}\n", turns=turns))
    (turn,) = conversation.turns
    assert (turn.message, turn.expected_messages) == ("on monday", [{"role": "assistant", "content": "monday"}])
    assert turn.evaluators[0].values == ("{{d}}",)


def test_conversation__skip_defaults__drops_input_and_assertions_of_the_file(repository) -> None:
    head = "input: SUITE\nassertions: [{type: is-json}]\n"
    case, _ = read(repository, file("  execution: {skip_defaults: true}\n", head))
    assert (case.evaluators, [one.content for one in case.messages]) == ((), ["Is it so?"])
    case, _ = read(repository, file("  rubrics: [Is kind.]\n", head))
    assert [one.type for one in case.evaluators] == ["llm_judge", "is-json"]
    assert [one.content for one in case.messages] == ["SUITE", "Is it so?"]


def test_turn__required__has_the_floor_of_the_case(repository) -> None:
    turns = "[{input: a, assertions: [{type: is-json, required: true}]}]"
    for keys, floor in (("", 0.8), ("  execution: {threshold: 0.5}\n", 0.5)):
        _, conversation = read(repository, file(keys, turns=turns))
        assert conversation.turns[0].evaluators[0].floor == floor


@pytest.mark.parametrize("keys", ["", "  criteria: Is kind.\n", "  execution: {skip_defaults: true}\n"])
def test_conversation__that_checks_nothing__is_a_warning_and_a_problem_when_strict(repository, keys) -> None:
    said = "nothing is checked: the case passes with every response"
    assert repository.case(file(keys)).warnings == (said,)
    assert repository.problems(file(keys), strict=True) == [f"2: tests[0]: {said}"]


TEXT = "is text in a conversation: AgentV sends the JSON of anything else, and reads no files"
TURN_TEXT = "the input of a turn is text: AgentV sends the JSON of anything else, and reads no files"
REFUSED = [
    (
        file("  aggregation: median\n"),
        "6: tests[0].aggregation: expected 'mean', 'min' or 'max', got text \"median\" (did you mean \"mean\"?)",
    ),
    (
        file("  on_turn_failure: halt\n"),
        "6: tests[0].on_turn_failure: expected 'continue' or 'stop', got text \"halt\"",
    ),
    (file("  window_size: 0\n"), "6: tests[0].window_size: must be >= 1, got the number 0"),
    (file("  window_size: 1.5\n"), "6: tests[0].window_size: expected a whole number, got the number 1.5"),
    (file().replace("conversation", "chat"), "3: tests[0].mode: expected 'conversation', got text \"chat\""),
    (file().replace("  mode: conversation\n", ""), "4: tests[0].turns: `turns` needs `mode: conversation`"),
    (file().replace("  turns: [{input: a}]\n", ""), "3: tests[0].mode: `mode: conversation` needs `turns`"),
    (file("  expected_output: x\n"), "6: tests[0].expected_output: set it in a turn, as AgentV asks"),
    (file("  input_files: [a.md]\n"), f"6: tests[0].input_files: {TEXT}"),
    (file(head="input_files: [a.md]\n"), f"1: input_files: {TEXT}"),
    (file(asked="{a: 1}"), f"4: tests[0].input: {TEXT}"),
    (file(asked="{content: hi}"), f"4: tests[0].input: {TEXT}"),
    (
        file(asked="[{role: user, content: [{type: text, value: x}]}]"),
        f"4: tests[0].input[0].content: {TEXT}",
    ),
    (file(head="input: [{role: user, content: {a: 1}}]\n"), f"1: input[0].content: {TEXT}"),
    (file(turns="[{input: [{type: text, value: hi}]}]"), f"5: tests[0].turns[0].input: {TURN_TEXT}"),
    (file(turns="[{input: {role: user, content: hm}}]"), f"5: tests[0].turns[0].input: {TURN_TEXT}"),
    (
        file("  vars: {d: [1]}\n", turns="[{input: '{{d}}'}]"),
        f"5: tests[0].turns[0].input: {TURN_TEXT}",
    ),
    (
        file(turns="[{input: on}]"),
        '5: tests[0].turns[0].input: YAML does not read this as text: put it in quotes, "on"',
    ),
    (file(turns="[{input: ''}]"), "5: tests[0].turns[0].input: must not be empty"),
    (file(turns="[{input: ' '}]"), "5: tests[0].turns[0].input: must not be blank"),
    (file(turns="[{expected_output: a}]"), "5: tests[0].turns[0].input: is missing"),
    (
        file().replace("  input: Is it so?\n", ""),
        (
            '2: tests[0].input: is missing in the case "one": AgentV requires what comes before the first turn, '
            "such as a system message; the user's messages are `turns`"
        ),
    ),
    (file(turns="[a]"), '5: tests[0].turns[0]: expected a turn, got text "a"'),
    (file(turns="[]"), "5: tests[0].turns: expected a list of 1 to 100 turns, got an empty list"),
    (file(turns="3"), "5: tests[0].turns: expected a list of 1 to 100 turns, got the number 3"),
    (
        file(turns=f"[{', '.join(['{input: a}'] * (TURNS + 1))}]"),
        "5: tests[0].turns: expected a list of 1 to 100 turns, got a list",
    ),
    (
        file(turns="[{input: a, criteria: x}]"),
        "5: tests[0].turns[0].criteria: unknown key: it would be ignored; known: input, expected_output, assertions",
    ),
    (
        file(turns="[{input: a, assert: [{type: is-json}], assertions: [{type: is-json}]}]"),
        "5: tests[0].turns[0].assert: says the same as `assertions`: keep one of them",
    ),
    (
        file(turns="[{input: a}, {input: b, assertions: [{type: contains, value: x}, {type: contains}]}]"),
        "5: tests[0].turns[1].assertions[1].value: is missing",
    ),
    (
        file(turns="[{input: a, expected_output: [1]}]"),
        (
            "5: tests[0].turns[0].expected_output: a list must be a list of messages: "
            "put other lists under a key of an object"
        ),
    ),
    (file("  usr: {goal: x}\n"), "6: tests[0].usr: unknown key: it would be ignored"),
    (file(head="mode: conversation\n"), "1: mode: unknown key: it would be ignored"),
]


@pytest.mark.parametrize(("text", "problem"), REFUSED, ids=lambda value: str(value)[-70:])
def test_conversation_reader__wrong_conversation__is_named_with_line_and_field(repository, text, problem) -> None:
    repository.write("evals/a.md", "A.")
    assert repository.problems(text) == [problem]


def test_conversation_reader__turn_with_the_keys_of_another_format__is_told_its_own(repository) -> None:
    assert repository.problems(file(turns="[{message: a, name: b}]")) == [
        '5: tests[0].turns[0].input: is missing; "message" is not known here',
        "5: tests[0].turns[0].message: unknown key: it would be ignored; known: input, expected_output, assertions",
    ]


@pytest.mark.parametrize("key", ["aggregation: min", "on_turn_failure: stop", "window_size: 2"])
def test_conversation_reader__setting_without_mode__is_named(repository, key) -> None:
    name = key.partition(":")[0]
    text = f"tests:\n- id: one\n  input: x\n  criteria: y\n  {key}\n"
    assert repository.problems(text) == [f"5: tests[0].{name}: `{name}` needs `mode: conversation`"]


TURN = "[{input: a, assertions: [{type: contains, value: x}]}, {input: b}]"
PROMPTS = [
    file(turns=TURN),
    file(turns=TURN.replace("input: b", "input: c")),
    file("  on_turn_failure: stop\n", turns=TURN),
    file("  window_size: 2\n", turns=TURN),
    file(turns=TURN, asked="Was it so?"),
    "tests: [{id: one, input: Is it so?, assertions: [{type: contains, value: x}]}]\n",
]
EXPECTATIONS = [
    file(turns=TURN),
    file("  aggregation: min\n", turns=TURN),
    file(turns=TURN.replace("value: x", "value: y")),
    file(turns="[{input: a}, {input: b, assertions: [{type: contains, value: x}]}]"),
    file(turns=TURN.replace("input: b", "input: b, expected_output: c")),
    file(turns=TURN.replace("input: b", "input: b, expected_output: d")),
    file("  assertions: [{type: contains, value: x}]\n", turns="[{input: a}, {input: b}]"),
]


def test_add_conversation__other_messages_or_rules__are_another_prompt(repository) -> None:
    cases = [repository.case(text) for text in PROMPTS]
    assert len({case.prompt_fingerprint for case in cases}) == len({case.fingerprint for case in cases}) == len(PROMPTS)


def test_add_conversation__other_scoring__is_another_expectation_of_the_same_prompt(repository) -> None:
    cases = [repository.case(text) for text in EXPECTATIONS]
    assert len({case.expectation_fingerprint for case in cases}) == len(EXPECTATIONS)
    assert len({case.fingerprint for case in cases}) == len(EXPECTATIONS)
    assert len({case.prompt_fingerprint for case in cases}) == 1


SCHEMA = jsonschema.Draft202012Validator(build_json_schema())
ONLY_READ = (
    *("{{d}}", "{type: contains}", "criteria: x}", "usr: {goal", "expected_output: [1]", "assert: [{type: is-json}]"),
    *("mode: conversation\ntests", "input_files: [a.md]\ntests", "input: [{role: user, content: {a: 1}}]\ntests"),
)
"""What the schema leaves to the reader: assertions, unknown keys, variables, and keys of the file."""


@pytest.mark.parametrize("text", [*PROMPTS, *EXPECTATIONS, file("  aggregation: max\n")])
def test_build_json_schema__conversation_that_is_read__is_valid(text) -> None:
    SCHEMA.validate(parse_yaml(text.encode(), "a.yaml")[0])


@pytest.mark.parametrize(
    "text", [text for text, _ in REFUSED if not any(one in text for one in ONLY_READ)], ids=lambda text: text[-70:]
)
def test_build_json_schema__conversation_that_is_refused__is_not_valid(text) -> None:
    assert not SCHEMA.is_valid(parse_yaml(text.encode(), "a.yaml")[0])
