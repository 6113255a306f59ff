"""AgentV files: which are recognised, what is read of suite and cases, what is refused and where."""

import json

import pytest

from eval_gate.formats.agentv.detection import is_agentv_suite
from eval_gate.model.case import Aggregation
from eval_gate.model.specs.evaluator import LlmJudge
from eval_gate.struct import replace
from tests.support.agentv import ASKED, Repository, suite

CASE = {"id": "a", "expected_outcome": "x", "input_messages": [{"role": "user", "content": "y"}]}


@pytest.fixture
def repository(tmp_path) -> Repository:
    return Repository(tmp_path / "repository")


KNOWN = (
    "llm_judge, code_judge, tool_trajectory, composite, rubrics, code-grader, contains, contains-any, contains-number, "
    "regex, is-json, skill-trigger, execution-metrics, latency, cost, token-usage, field-accuracy"
)


@pytest.mark.contract("agentv.files.recognised")
@pytest.mark.parametrize(
    ("document", "recognised"),
    [
        ({"evalcases": [CASE]}, True),
        ({"eval_cases": [CASE]}, True),
        ({"cases": [CASE]}, True),
        ({"tests": [{"id": "a", "criteria": "x", "input": "y"}]}, True),
        ({"tests": [5, {"id": "a", "outcome": "x"}]}, True),
        ({"cases": [{"expected_outcome": "the id is missing"}]}, True),
        ({"evalcases": []}, True),
        ({"evalcases": None}, True),
        ({"evalcase": [CASE]}, True),
        ({"records": [CASE]}, False),
        ({"cases": [{"id": "gs-1", "input": {"message": "x"}, "expect": {}}]}, False),
        ({"cases": [{"id": "gs-1", "input": "malformed", "expect": {}}]}, False),
        ({"cases": [{"id": "gs-1", "input": {"message": "x"}}]}, False),
        ({"cases": [{"id": "gs-1", "input": "x", "rubric": []}]}, False),
        ({"agent": {}, "cases": [{"id": "c", "prompt": "x", "assertions": []}]}, False),
        ({"cases": [{"id": "c", "prompt": "x", "assertions": []}]}, False),
        ({"agent": {"name": "a"}, "cases": [{"id": "c", "criteria": "x"}]}, False),
        ({"cases": []}, False),
        ({"targets": [{"name": "a", "provider": "mock"}]}, False),
        ([CASE], False),
        ("text", False),
        (None, False),
    ],
    ids=str,
)
def test_recognises__document__by_its_cases(document, recognised) -> None:
    assert is_agentv_suite(document) is recognised


def test_load__smallest_file__has_every_default(repository) -> None:
    loaded = repository.load("evals/ferry.eval.yaml", suite("id: one\n" + ASKED))
    assert (loaded.format, loaded.tier, loaded.tool_name, loaded.metadata) == ("agentv", None, "ferry.eval", None)
    assert loaded.warnings == ()
    [case] = loaded.cases
    assert (case.id, case.aggregation, case.target, case.conversation_id) == (
        "one",
        Aggregation.WEIGHTED_MEAN,
        None,
        None,
    )
    assert case.evaluators == (LlmJudge(),)
    assert (case.location.file, case.location.line) == ("evals/ferry.eval.yaml", 2)
    assert case.description == "Says so."
    assert len(loaded.file_hash) == 12


@pytest.mark.contract("agentv.files.recognised")
def test_load__same_file_as_json__is_the_same_suite(repository) -> None:
    document = {"dataset": "d", "evalcases": [CASE | {"conversation_id": "c", "tags": ["slow"]}]}
    as_json = repository.load("evals/a.json", json.dumps(document, indent=1))
    as_yaml = repository.load("evals/a.yml", json.dumps(document))
    one, other = as_json.cases[0], as_yaml.cases[0]
    assert replace(one, location=other.location, suite=other.suite) == other
    assert (as_json.cases[0].conversation_id, as_json.cases[0].tags) == ("c", ("slow",))
    assert as_json.cases[0].location.line == 4


@pytest.mark.contract("agentv.files.dataset")
def test_load__dataset__names_the_suite(repository) -> None:
    assert repository.load("evals/x.yaml", suite("id: one\n" + ASKED, head="dataset: harbour\n")).tool_name == "harbour"


@pytest.mark.parametrize(
    ("head", "execution", "target"),
    [
        ("", "", None),
        ("target: old\n", "", "old"),
        ("target: old\nexecution: {target: file}\n", "", "file"),
        ("execution: {target: file}\n", "execution: {target: own}\n", "own"),
        ("execution: {target: file}\n", "execution:\n", "file"),
    ],
)
def test_target__case_then_suite_then_the_older_form(repository, head, execution, target) -> None:
    assert repository.case(suite("id: one\n" + ASKED + execution, head=head)).target == target


@pytest.mark.contract("agentv.files.names")
@pytest.mark.parametrize("cases", ["evalcases", "eval_cases", "cases", "tests"])
@pytest.mark.parametrize("outcome", ["expected_outcome", "outcome", "criteria"])
@pytest.mark.parametrize(("asked", "expected"), [("input_messages", "expected_messages"), ("input", "expected_output")])
def test_load__later_names__say_the_same(repository, cases, outcome, asked, expected) -> None:
    text = f"""\
        {cases}:
          - id: one
            {outcome}: Says so.
            {asked}: [{{role: user, content: Is it so?}}]
            {expected}: [{{role: assistant, content: It is.}}]
        """
    case = repository.case(text)
    assert case.brief is not None
    assert (case.brief.question, case.brief.expected_outcome, case.brief.reference_answer) == (
        "Is it so?",
        "Says so.",
        "It is.",
    )


@pytest.mark.contract("agentv.files.recognised")
def test_load__json_with_the_list_of_another_format__is_told_by_its_cases(repository) -> None:
    case = {"id": "one", "criteria": "c", "input": "Is it so?"}
    assert repository.load("evals/a.json", json.dumps({"cases": [case]})).format == "agentv"
    case = {"id": "gs-1", "input": {"message": "x"}, "expect": {"responseNonEmpty": True}}
    assert repository.load("evals/b.json", json.dumps({"cases": [case]})).format == "tool-forge"


@pytest.mark.contract("agentv.files.names")
def test_load__plain_texts__are_one_message_each(repository) -> None:
    case = repository.case("tests:\n- {id: one, criteria: c, input: Is it so?, expected_output: It is.}\n")
    assert case.brief is not None
    assert case.brief.input_messages == [{"role": "user", "content": "Is it so?"}]
    assert case.brief.expected_messages == [{"role": "assistant", "content": "It is."}]
    assert case.brief.reference_answer == "It is."


@pytest.mark.contract("agentv.files.names")
def test_load__both_names_of_a_field__are_refused(repository) -> None:
    text = suite("id: one\n" + ASKED + "criteria: Says so.\ninput: x\n") + "tests: []\n"
    assert repository.problems(text) == [
        "5: evalcases[0].criteria: says the same as `expected_outcome`: keep one of them",
        "6: evalcases[0].input: says the same as `input_messages`: keep one of them",
        "7: tests: says the same as `evalcases`: keep one of them",
    ]


@pytest.mark.contract("agentv.files.problems")
def test_load__everything_that_is_wrong__is_said_at_once_with_its_line(repository) -> None:
    text = """\
        execution: {target: 5}
        evalcases:
          - expected_outcome: no id
            input_messages: [{role: user, content: x}]
          - id: twice
            input_messages: [{role: user, content: x}]
          - id: twice
            expected_outcome: x
          - id: deep
            expected_outcome: x
            input_messages:
              - role: usr
                content: x
              - role: user
                content:
                  - {type: txt, value: x}
                  - {type: file, value: mising.md}
              - role: user
              - 7
            execution:
              evaluators:
                - {name: a, type: llm_juge}
                - {name: b, type: tool_trajectory, mode: inorder, expected: [{tool: t}]}
                - {name: c, type: llm_judge, weight: -1}
          - nothing
        """
    repository.write("evals/missing.md", "x")
    assert repository.problems(text) == [
        '1: execution.target: YAML does not read this as text: put it in quotes, "5"',
        "3: evalcases[0].id: is missing",
        '5: evalcases[1].expected_outcome: is missing in the case "twice"',
        '7: evalcases[2].input_messages: is missing in the case "twice"',
        '7: evalcases[2].id: the case in line 5 already has the id "twice"',
        (
            "12: evalcases[3].input_messages[0].role: expected 'system', 'user', 'assistant' or 'tool', "
            'got text "usr" (did you mean "user"?)'
        ),
        (
            "16: evalcases[3].input_messages[1].content[0].type: expected 'text' or 'file', "
            'got text "txt" (did you mean "text"?)'
        ),
        (
            '17: evalcases[3].input_messages[1].content[1].value: "mising.md": the repository has no such file '
            '(did you mean "missing.md"?)'
        ),
        "18: evalcases[3].input_messages[2].content: is missing",
        "19: evalcases[3].input_messages[3]: expected a mapping, got the number 7",
        (
            '22: evalcases[3].execution.evaluators[0].type: "llm_juge" is not known (did you mean "llm_judge"?); '
            f"known: {KNOWN}"
        ),
        (
            "23: evalcases[3].execution.evaluators[1].mode: expected 'any_order', 'in_order' or 'exact', "
            'got text "inorder" (did you mean "in_order"?)'
        ),
        "24: evalcases[3].execution.evaluators[2].weight: must be >= 0.0, got the number -1",
        '25: evalcases[4]: expected a mapping, got text "nothing"',
    ]


@pytest.mark.contract("agentv.files.problems")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("evalcases: []\n", "1: evalcases: expected a list of cases, got an empty list"),
        ("evalcases:\n", "1: evalcases: expected a list of cases, got null"),
        ("evalcases: {}\n", "1: evalcases: expected a list of cases, got a mapping"),
        (suite("id: ''\n" + ASKED), "2: evalcases[0].id: must not be empty"),
        (suite(f"id: {'x' * 201}\n" + ASKED), "2: evalcases[0].id: is longer than 200 characters"),
        (suite('id: "a\\nb"\n' + ASKED), "2: evalcases[0].id: contains control characters"),
        (suite("id: a\nexpected_outcome: ''\ninput: x"), "3: evalcases[0].expected_outcome: must not be empty"),
        (suite("id: a\noutcome: x\ninput: []"), "4: evalcases[0].input: is empty"),
        (suite("id: a\noutcome: x\ninput: '  '"), "4: evalcases[0].input: is empty"),
        (suite("id: a\noutcome: x\ninput: 5"), "4: evalcases[0].input: expected a list of messages, or one text, got"),
        (suite("id: a\noutcome: x\ninput:"), "4: evalcases[0].input: expected a list of messages, or one text, got"),
        (
            suite("id: a\noutcome: x\ninput: [{role: user, content: 5}]"),
            "4: evalcases[0].input[0].content: expected text, a list of parts or an object, got the number 5",
        ),
        (
            suite("id: a\noutcome: x\ninput: [{role: user, content: {limit: .inf}}]"),
            "4: evalcases[0].input[0].content.limit: a number that JSON does not have",
        ),
        (suite("id: a\n" + ASKED + "execution: []"), "5: evalcases[0].execution: expected a mapping, got an empty"),
        (suite("id: a\n" + ASKED + "evaluators: {}"), "5: evalcases[0].evaluators: expected a list of evaluators"),
        (suite("id: a\n" + ASKED + "evaluators: []"), "5: evalcases[0].evaluators: an empty list: nothing would be"),
        (suite("id: a\n" + ASKED, head="evaluator: llm_jude\n"), '1: evaluator: "llm_jude" is not known (did you mean'),
        (suite("id: a\n" + ASKED, head="evaluator: code_judge\n"), '1: evaluator: "code_judge" needs settings'),
    ],
    ids=str,
)
def test_load__wrong_value__is_refused_with_its_place(repository, text, said) -> None:
    assert repository.problems(text)[0].startswith(said)


def test_load__misspelt_field_that_is_needed__is_named_where_it_is_missing(repository) -> None:
    assert repository.problems(suite("id: one\nexpected_outcom: x\ninput: y")) == [
        (
            '2: evalcases[0].expected_outcome: is missing in the case "one"; '
            '"expected_outcom" is not known here (did you mean "expected_outcome"?)'
        )
    ]
    assert repository.problems(suite("id: one\nexpected_messages: []\ninput: y")) == [
        '2: evalcases[0].expected_outcome: is missing in the case "one"'
    ]


def test_load__misspelt_list_of_cases__is_a_problem_with_the_nearest_name(repository) -> None:
    assert repository.problems("evalcase:\n- {id: a, outcome: x, input: y}\n") == [
        '1: evalcase: unknown key: did you mean "evalcases"?'
    ]


@pytest.mark.contract("agentv.files.yaml-traps")
@pytest.mark.parametrize("written", ["1", "on", "No", "2026-01-02", "1.50", "0x1F", "~", "2026-01-02 10:00:00"])
def test_load__id_without_quotes_that_yaml_reads_as_something_else__says_to_quote_it(repository, written) -> None:
    text = suite("id: fine\n" + ASKED, f"id: {written}\n" + ASKED)
    [problem] = repository.problems(text)
    assert problem == f'5: evalcases[1].id: YAML does not read this as text: put it in quotes, "{written}"'
    quoted = repository.load("evals/q.yaml", suite(f"id: '{written}'\n" + ASKED, f'id: "x{written}"\n' + ASKED))
    assert [case.id for case in quoted.cases] == [written, f"x{written}"]


@pytest.mark.contract("agentv.files.yaml-traps")
def test_load__id_that_is_a_date_in_json__is_text(repository) -> None:
    assert repository.load("evals/a.json", json.dumps({"evalcases": [CASE | {"id": "2026-01-02"}]})).cases


@pytest.mark.contract("agentv.files.yaml-traps")
def test_load__other_text_that_yaml_reads_as_something_else__says_so_too(repository) -> None:
    assert repository.problems(suite("id: a\nexpected_outcome: yes\ninput: x")) == [
        '3: evalcases[0].expected_outcome: YAML does not read this as text: put it in quotes, "yes"'
    ]


@pytest.mark.contract("agentv.files.yaml-traps")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (suite("id: a\nid: b\n" + ASKED), '3: the key "id" is already in line 2'),
        ("evalcases: &x [*x]\n", "1: an alias that contains itself"),
        ("x: &a [1,2,3,4,5,6,7,8,9]\ny: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n", None),
    ],
    ids=["duplicate", "cycle", "harmless"],
)
def test_load__keys_twice_and_aliases__are_refused_or_bounded(repository, text, said) -> None:
    if said is None:
        assert repository.load("evals/x.yaml", text + suite("id: a\n" + ASKED)).cases
    else:
        assert repository.problems(text) == [said]


def test_load__unknown_keys__are_warned_about_with_the_nearest_name(repository) -> None:
    text = suite(
        """\
        id: one
        expected_outcome: x
        input_messages: [{role: user, content: x, contents: y}]
        converstion_id: c
        note: {anything: goes}
        execution: {targets: t}
        """,
        head="descripton: d\nassert: [{type: llm_judge}]\nversion: 2\n",
    )
    loaded = repository.load("evals/x.yaml", text)
    assert loaded.warnings == (
        'descripton: unknown key (did you mean "description"?): it is ignored',
        "assert: unknown key (it belongs in `execution`): it is ignored",
        'one: converstion_id: unknown key (did you mean "conversation_id"?): it is ignored',
        'one: input_messages[0].contents: unknown key (did you mean "content"?): it is ignored',
        'one: execution.targets: unknown key (did you mean "target"?): it is ignored',
    )
    assert loaded.cases[0].warnings == tuple(
        warning.removeprefix("one: ") for warning in loaded.warnings if warning.startswith("one: ")
    )
    assert [problem.split(": unknown")[0] for problem in repository.problems(text, strict=True)] == [
        "1: descripton",
        "2: assert",
        "7: evalcases[0].input_messages[0].contents",
        "8: evalcases[0].converstion_id",
        "10: evalcases[0].execution.targets",
    ]


def test_description__own_or_the_beginning_of_the_outcome(repository) -> None:
    text = suite(
        "id: a\noutcome: |\n\n  First line.\n  Second.\ninput: x", "id: b\noutcome: x\ninput: x\ndescription: d"
    )
    assert [case.description for case in repository.load("e.yaml", text).cases] == ["First line.", "d"]


@pytest.mark.slow
def test_load__thousands_of_cases__take_seconds_at_most(repository) -> None:
    case = '{"id": "c%d", "expected_outcome": "x", "input_messages": [{"role": "user", "content": "y"}]}'
    text = '{"evalcases": [' + ",\n".join(case % number for number in range(5_000)) + "]}"
    loaded = repository.load("evals/many.json", text)
    assert (len(loaded.cases), loaded.cases[-1].location.line) == (5_000, 5_000)
