"""Files of today's AgentV: what is read with which meaning, and what is refused in which words."""

import pytest

from eval_gate.formats.agentv.v4.unsupported_features import UNSUPPORTED_KEYS
from eval_gate.formats.base import ReadOptions
from eval_gate.formats.discovery import EvalFile, load_suites
from eval_gate.model.case import AttemptRule, AttemptStrategy
from eval_gate.model.specs.agentv import CallSequence, ExpectedCall, FieldAccuracy, TextAssertion
from eval_gate.model.specs.evaluator import CodeGrader, LlmJudge, RubricJudge, ToolTrajectory
from tests.support.agentv import Repository


@pytest.fixture
def repository(tmp_path) -> Repository:
    return Repository(tmp_path / "repository")


def file(case: str = "", head: str = "") -> str:
    """A file of one case, whose further keys start in line 4 when nothing stands above it."""
    return f"{head}tests:\n- id: one\n  input: Is it so?\n{case}"


def asserted(*assertions: str) -> str:
    """The same with these assertions, one a line from line 5 on."""
    return file("  assertions:\n" + "".join(f"  - {one}\n" for one in assertions))


# which files are today's


@pytest.mark.contract("agentv.today.which")
@pytest.mark.parametrize(
    ("text", "today"),
    [
        ("tests: [{id: a, input: x, criteria: y}]\n", True),
        ("tests: [{id: a, input: x, expected_outcome: y}]\n", True),
        ("evalcases: [{id: a, input: x, criteria: y}]\n", True),
        ("evalcases: [{id: a, input: x, expected_outcome: y}]\n", False),
        ("tests: [{id: a, input_messages: x, criteria: y}]\n", False),
        ("tests: [{id: a, input: x, outcome: y}]\n", False),
        ("cases: [{id: a, input: x, expected_outcome: y, expected_messages: z}]\n", False),
    ],
)
def test_load__names_of_a_file__tell_whose_it_is(repository, text, today) -> None:
    """Of today's an attached file is never a guideline, whatever it is called."""
    repository.write("evals/rules.instructions.md", "Be brief.")
    messages = "[{role: user, content: [{type: text, value: Q}, {type: file, value: rules.instructions.md}]}]"
    brief = repository.case(
        text.replace("input: x", f"input: {messages}").replace("input_messages: x", f"input_messages: {messages}")
    ).brief
    assert brief is not None
    assert (brief.guideline_files == ()) is today
    assert ("Be brief." in brief.question) is today


# what stands in a case


@pytest.mark.contract("agentv.today.cases")
def test_case__variables__are_filled_in_where_agentv_does(repository) -> None:
    case = repository.case(
        """\
        tests:
        - id: one
          vars: {who: {name: Ada}, list: [1, 2], whole: {a: 1}}
          criteria: Greets {{ who.name }} and {{ nobody }}.
          input: "{{who.name}}: {{list}}"
          expected_output: "{{whole}}"
          assertions: [{type: contains, value: "{{who.name}}"}]
        """
    )
    assert case.brief is not None
    assert case.brief.expected_outcome == "Greets Ada and {{ nobody }}."
    assert case.brief.question == "Ada: [1,2]"
    assert case.brief.reference_answer == '{\n  "a": 1\n}'
    assert case.evaluators[0].values == ("{{who.name}}",)


@pytest.mark.slow
@pytest.mark.parametrize("many", ['"' + "{{a}}" * 50_000 + '"', "[" + '"{{a}}", ' * 20_000 + "]"], ids=["text", "list"])
def test_case__long_variable_in_many_places__is_refused_and_not_written_out(repository, many) -> None:
    head = f"tests:\n- id: one\n  criteria: x\n  vars: {{a: {'x' * 100_000}}}\n"
    found = repository.problems(f"{head}  input: {{b: {many}}}\n")
    assert any("characters would be filled in" in line for line in found), found[:3]


@pytest.mark.contract("agentv.today.cases")
def test_case__input_of_the_file_and_files__stand_before_its_own(repository) -> None:
    repository.write("evals/a.md", "A.")
    repository.write("evals/b.md", "B.")
    suite = repository.load(
        "evals/suite.yaml",
        """\
        input: [{role: system, content: Be kind.}]
        input_files: [a.md]
        tests:
        - {id: shared, criteria: x, input: Q}
        - {id: own, criteria: x, input: Q, input_files: [b.md]}
        - {id: alone, criteria: x, input: Q, execution: {skip_defaults: true}}
        - {id: object, criteria: x, input: {a: 1}, execution: {skip_defaults: true}}
        """,
    )
    questions = {case.id: case.brief.question for case in suite.cases if case.brief}
    assert questions["shared"] == '@[System]:\nBe kind.\n\n@[User]:\n<file path="a.md">\nA.\n</file>\n\nQ'
    assert '<file path="b.md">' in questions["own"]
    assert "a.md" not in questions["own"]
    assert questions["alone"] == "Q"
    assert questions["object"] == '{\n  "a": 1\n}'


@pytest.mark.contract("agentv.today.cases")
def test_case__assertions_of_the_file__come_behind_its_own_unless_it_stands_alone(repository) -> None:
    suite = repository.load(
        "evals/suite.yaml",
        """\
        assertions: [{type: is-json}]
        tests:
        - {id: own, input: Q, assertions: [{type: contains, value: a}]}
        - {id: none, criteria: x, input: Q}
        - {id: alone, criteria: x, input: Q, execution: {skip_defaults: true}}
        - {id: rubrics, input: Q, criteria: x, rubrics: [Is kind.]}
        """,
    )
    assert {case.id: [one.type for one in case.evaluators] for case in suite.cases} == {
        "own": ["contains", "is-json"],
        "none": ["is-json"],
        "alone": ["llm_judge"],
        "rubrics": ["llm_judge", "is-json"],
    }


@pytest.mark.contract("agentv.today.cases")
def test_case__metadata__is_the_files_with_its_own(repository) -> None:
    head = "metadata: {a: 1, list: [x, y], deep: {b: 2}}\n"
    case = repository.case(file("  criteria: x\n  metadata: {a: 9, list: [y, z], deep: {c: 3}}\n", head))
    assert case.brief is not None
    assert case.brief.metadata == {"a": 9, "list": ["x", "y", "z"], "deep": {"b": 2, "c": 3}}


@pytest.mark.contract("agentv.today.cases")
def test_case__without_anything_that_is_expected__is_named_by_its_id_and_place(repository) -> None:
    [problem] = repository.problems(file())
    assert problem.startswith('2: tests[0]: the case "one" is not complete: nothing is expected of the response: ')
    assert repository.problems("tests:\n- id: two\n  criteria: x\n") == [
        '2: tests[0].input: is missing in the case "two"'
    ]


def test_case__marked_as_draft__is_one_with_the_same_fingerprint(repository) -> None:
    marked, plain = repository.case(file("  criteria: x\n  draft: true\n")), repository.case(file("  criteria: x\n"))
    assert (marked.draft, plain.draft) == (True, False)
    assert marked.fingerprint == plain.fingerprint


@pytest.mark.contract("agentv.today.cases")
def test_case__fingerprint__changes_with_everything_that_is_asked(repository) -> None:
    texts = [
        asserted("{type: contains, value: a}"),
        asserted("{type: contains, value: b}"),
        asserted("{type: contains, value: a, negate: true}"),
        asserted("{type: contains, value: a, required: true}"),
        asserted("{type: contains, value: a, required: true, min_score: 0.5}"),
        asserted("{type: tool-trajectory, mode: exact, expected: [{tool: a}]}"),
        asserted("{type: tool-trajectory, mode: exact, expected: [{tool: a, args: {b: 1}}]}"),
        asserted("{type: tool-trajectory, mode: exact, args_match: ignore, expected: [{tool: a, args: {b: 1}}]}"),
        asserted("{type: tool-trajectory, mode: exact, expected: [{tool: a, max_duration_ms: 5}]}"),
        asserted("{type: code-grader, command: [x]}"),
        asserted("{type: code-grader, command: [x], level: 2}"),
        file("  criteria: x\n"),
        file("  criteria: x\n  metadata: {a: 1}\n"),
        file("  criteria: x\n", "input: y\n"),
    ]
    assert len({repository.case(text).fingerprint for text in texts}) == len(texts)


@pytest.mark.contract("agentv.today.cases")
@pytest.mark.parametrize("key", ["cwd", "prompt", "command", "judge_target", "negate"])
def test_case__data_with_the_keys_of_an_evaluator__is_part_of_what_is_expected(repository, key) -> None:
    """What only says who grades is none, and folders are written as they lie: in data both are data."""
    expected = []
    for value in ("/far", "/away", "false"):
        step = f"{{tool: t, args: {{{key}: {value}}}}}"
        call = repository.case(asserted(f"{{type: tool-trajectory, mode: exact, expected: [{step}]}}"))
        given = repository.case(asserted(f"{{type: code-grader, command: [x], config: {{{key}: {value}}}}}"))
        fields = f"{{type: field-accuracy, fields: [{{path: {key}, match: exact}}]}}"
        field = repository.case(file(f"  expected_output: {{{key}: {value}}}\n  assertions:\n  - {fields}\n"))
        expected.append((call.expectation_fingerprint, given.expectation_fingerprint, field.expectation_fingerprint))
        assert None not in expected[-1]
    assert [len(set(each)) for each in zip(*expected, strict=True)] == [3, 3, 3]


# assertions


@pytest.mark.contract("agentv.today.assertions")
def test_assertions__plain_texts__are_one_judge_that_counts_for_each(repository) -> None:
    judge, text = repository.case(asserted("Is kind.", "{type: contains, value: a}", "Is brief.")).evaluators
    assert isinstance(judge, RubricJudge)
    assert (judge.weight, [check.description for check in judge.checks]) == (2.0, ["Is kind.", "Is brief."])
    assert isinstance(text, TextAssertion)


@pytest.mark.contract("agentv.today.assertions")
@pytest.mark.parametrize(
    ("written", "floor"),
    [
        ("", None),
        (", min_score: 0.5", None),
        (", required: true", 0.8),
        (", required: true, min_score: 0.5", 0.5),
        (", required: 0.6", 0.6),
        (", required: 0.6, min_score: 0.5", 0.5),
        (", required: false, min_score: 0.5", None),
    ],
)
def test_assertions__required__has_the_floor_that_agentv_takes(repository, written, floor) -> None:
    [spec] = repository.case(asserted(f"{{type: is-json{written}}}")).evaluators
    assert spec.floor == floor


@pytest.mark.contract("agentv.today.assertions")
def test_assertions__calls__have_arguments_and_the_way_in_which_they_are_compared(repository) -> None:
    sequence, counts = repository.case(
        asserted(
            "{type: tool_trajectory, mode: superset, args_match: [a.b], expected: [{tool: x, args: {a: 1}}, "
            "{tool: y, args: any, argsMatch: ignore}]}",
            "{type: tool-trajectory, mode: any_order, minimums: {x: 2}}",
        )
    ).evaluators
    assert isinstance(sequence, CallSequence)
    assert sequence.expected == (
        ExpectedCall(tool="x", args={"a": 1}, match=("a.b",)),
        ExpectedCall(tool="y", match="ignore"),
    )
    assert isinstance(counts, ToolTrajectory)


@pytest.mark.contract("agentv.today.assertions")
def test_assertions__code_grader__is_given_what_stands_beside_what_is_known(repository) -> None:
    [spec] = repository.case(
        asserted("{type: code-grader, command: python3 a.py, level: 2, config: {level: 3}}")
    ).evaluators
    assert isinstance(spec, CodeGrader)
    assert (spec.command, spec.config) == ("python3 a.py", {"level": 3})


@pytest.mark.contract("agentv.today.assertions")
@pytest.mark.parametrize(
    "written",
    [
        "{type: llm_grader}",
        "{type: code_grader, command: x}",
        "{type: starts_with, value: x}",
        "{type: is_json}",
        "{type: rubric, rubrics: [x]}",
        "{type: tool_trajectory, mode: exact, expected: [{tool: x}]}",
    ],
)
def test_assertions__name_with_underscores_or_of_before__is_read(repository, written) -> None:
    assert len(repository.case(asserted(written)).evaluators) == 1


@pytest.mark.contract("agentv.today.prompts")
def test_prompt__names_of_today__are_filled_with_what_they_stand_for(repository) -> None:
    repository.write("evals/own.md", "{{ output }} {{input}} {{criteria}} {{expected_output}} {{ nobody }}")
    for prompt in ("own.md", "file://own.md", '"{{ output }} {{input}} {{criteria}} {{expected_output}} {{ nobody }}"'):
        [spec] = repository.case(asserted(f"{{type: llm-grader, prompt: {prompt}}}")).evaluators
        assert isinstance(spec, LlmJudge)
        assert spec.prompt is not None
        assert spec.prompt.split(" {{ nobody")[0] == (
            "{{ candidate_answer }} {{ question }} {{ expected_outcome }} {{ reference_answer }}"
        )


@pytest.mark.contract("agentv.today.prompts")
def test_prompt__that_shows_nothing__is_what_the_judge_looks_for(repository) -> None:
    [spec] = repository.case(asserted('{type: llm-grader, prompt: "Is it {{kind}}?"}')).evaluators
    assert isinstance(spec, LlmJudge)
    assert spec.prompt is not None
    assert "Is it { {kind}}?" in spec.prompt
    assert "{{ candidate_answer }}" in spec.prompt


def test_field_accuracy__expected_output__is_that_of_the_case(repository) -> None:
    fields = "{type: field-accuracy, fields: [{path: a, match: exact}]}"
    for written in ("{a: 1}", "'Here: {\"a\": 1}'", "[{role: assistant, content: {a: 1}}]"):
        [spec] = repository.case(file(f"  expected_output: {written}\n  assertions: [{fields}]\n")).evaluators
        assert isinstance(spec, FieldAccuracy)
        assert spec.expected == {"a": 1}


# what is refused


@pytest.mark.contract("agentv.today.refused")
@pytest.mark.parametrize("key", sorted(UNSUPPORTED_KEYS))
def test_refused__key_that_agentv_has_and_we_have_not__is_named_with_its_line(repository, key) -> None:
    said = f"`{key}` is not supported: {UNSUPPORTED_KEYS[key]}"
    assert f"4: tests[0].{key}: {said}" in repository.problems(file(f"  {key}: 1\n  criteria: x\n"))
    assert f"1: {key}: {said}" in repository.problems(file("  criteria: x\n", f"{key}: 1\n"))
    assert f"5: tests[0].assertions[0].{key}: {said}" in repository.problems(asserted(f"{{type: is-json, {key}: 1}}"))


@pytest.mark.contract("agentv.today.refused")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (file("  criteria: x\n", "unknown: 1\n"), "1: unknown: unknown key: it would be ignored"),
        (file("  criteria: x\n  critera: y\n"), '5: tests[0].critera: unknown key (did you mean "criteria"?)'),
        (
            asserted("{type: is-json, execution: 1}"),
            "5: tests[0].assertions[0].execution: unknown key: it would be ignored",
        ),
        (
            asserted("{type: word-count}"),
            '5: tests[0].assertions[0].type: "word-count" is not a known evaluator',
        ),
        (asserted("{include: x}"), "5: tests[0].assertions[0].include: assertions of another file"),
        (asserted("{type: contains}"), "5: tests[0].assertions[0].value: is missing"),
        (
            asserted("{type: contains-number, value: many}"),
            "5: tests[0].assertions[0].value: expected one number, date or code, such as 1,250.40",
        ),
        (asserted("{type: contains-any, value: []}"), "5: tests[0].assertions[0].value: "),
        (asserted("{type: regex, value: a, flags: gg}"), '5: tests[0].assertions[0].flags: "gg" are not flags'),
        (asserted("{type: execution-metrics}"), "5: tests[0].assertions[0]: sets no limit"),
        (
            asserted("{type: tool-trajectory, mode: exact}"),
            "5: tests[0].assertions[0].expected: is missing: exact compares the calls with it",
        ),
        (
            asserted("{type: tool-trajectory, mode: subset, expected: [{tool: a, max_duration_ms: 1}]}"),
            "5: tests[0].assertions[0].expected[0].max_duration_ms: is ignored in the mode subset",
        ),
        (
            asserted("{type: tool-trajectory, mode: exact, expected: [{tool: a, input: {b: 1}}]}"),
            "5: tests[0].assertions[0].expected[0].input: `input` is not supported: the arguments of a call are in",
        ),
        (
            asserted("{type: composite, assertions: [{type: is-json, negate: true}]}"),
            "5: tests[0].assertions[0].assertions[0].negate: is not supported at a member of a composite",
        ),
        (
            asserted("{type: rubrics, criteria: [{outcome: x, min_score: 0.5}]}"),
            "5: tests[0].assertions[0].criteria[0].min_score: `min_score` is not supported: a criterion is met or not",
        ),
        (
            asserted("{type: llm-grader, prompt: {command: [x]}}"),
            "5: tests[0].assertions[0].prompt: a prompt from a command is not supported",
        ),
        (
            asserted("{type: llm-grader, prompt: file://none.md}"),
            '5: tests[0].assertions[0].prompt: "none.md": the repository has no such file',
        ),
        (
            asserted('{type: llm-grader, prompt: "{{ criteria }}"}'),
            "5: tests[0].assertions[0].prompt: the prompt does not show the response to the judge: add {{ output }}",
        ),
        (
            asserted('{type: llm-grader, prompt: "{{ output }} {{ file_changes }}"}'),
            "5: tests[0].assertions[0].prompt: `{{ file_changes }}` is not supported",
        ),
        (
            asserted("{type: code-grader, command: [x], target: true}"),
            "5: tests[0].assertions[0].target: a grading command cannot call a model",
        ),
        (
            asserted("{type: field-accuracy, fields: [{path: a, match: exact}]}"),
            '5: tests[0].assertions[0]: compares with the expected output, but the case "one" has none',
        ),
        (
            file(
                "  expected_output: {b: 1}\n  assertions: [{type: field-accuracy, fields: [{path: a, match: exact}]}]\n"
            ),
            '5: tests[0].assertions[0]: none of these fields is in the expected output of the case "one"',
        ),
        (
            file("  criteria: x ${{ HOME }}\n"),
            "4: tests[0].criteria: `${{ HOME }}` is not supported: eval files do not use environment variables",
        ),
        (file("  criteria: x\n", "execution: {threshold: 0}\n"), "1: execution.threshold: "),
        (file("  criteria: x\n", "execution: {trials: {count: 0}}\n"), "1: execution.trials.count: "),
        (
            file("  criteria: x\n", "execution: {trials: {count: 2, strategy: worst}}\n"),
            "1: execution.trials.strategy: ",
        ),
        (
            file("  criteria: x\n", "execution: {trials: {count: 2, passes: 3}}\n"),
            "1: execution.trials.passes: needs `count` of at least 3",
        ),
        (
            file("  criteria: x\n", "execution: {trials: {count: 2, passes: 2, strategy: mean}}\n"),
            "1: execution.trials.strategy: excludes `passes`: keep one of them",
        ),
        (
            file("  criteria: x\n", "threshold: 0.5\n"),
            "1: threshold: `threshold` is not supported: set it in `execution`",
        ),
        (
            file("  criteria: x\n  execution: {trials: {count: 2}}\n"),
            "5: tests[0].execution.trials: `trials` is not supported: set it in the `execution` of the file",
        ),
        (
            file("  criteria: x\n  execution: {targets: [a, b]}\n"),
            "5: tests[0].execution.targets: several targets of a case are not supported",
        ),
        (
            file("  criteria: x\n  execution: {targets: [a]}\n", "execution: {targets: [a, b]}\n"),
            "6: tests[0].execution.targets: targets of a case are not supported",
        ),
        (
            file("  criteria: x\n  execution: {target: a}\n", "execution: {targets: [a, b]}\n"),
            "6: tests[0].execution.target: targets of a case are not supported",
        ),
        (
            file("  criteria: x\n", "execution: {targets: [{name: a, use_target: b}]}\n"),
            "1: execution.targets: targets with hooks",
        ),
        (
            "tests:\n- id: a\n  criteria: x\n  input: [{role: user, content: [{type: image, value: a.png}]}]\n",
            "4: tests[0].input[0].content[0]: images are not supported",
        ),
        (
            "tests:\n- id: a\n  criteria: x\n  input: [{role: user, content: x}]\n  input_files: [a.md]\n",
            "5: tests[0].input_files: needs an `input` that is one text",
        ),
        (file("  expected_output: [1]\n"), "4: tests[0].expected_output: a list must be a list of messages"),
        (
            file("  criteria: x\n  assertions: []\n"),
            "5: tests[0].assertions: an empty list: nothing would be evaluated",
        ),
    ],
)
def test_refused__what_has_no_meaning_here__is_said_with_line_and_key(repository, text, said) -> None:
    assert [line for line in repository.problems(text) if line.startswith(said)], repository.problems(text)


def test_refused__what_the_file_says_for_all__is_said_once(repository) -> None:
    cases = "".join(f"- {{id: c{number}, input: Q, criteria: x}}\n" for number in range(3))
    found = repository.problems(f"input: [{{role: usr, content: x}}]\nassertions: [{{type: none}}]\ntests:\n{cases}")
    assert [line.partition(": ")[0] for line in found] == ["1", "2"]


def test_targets__several__are_no_question_where_the_person_running_chose_one(repository) -> None:
    repository.write("evals/suite.yaml", file("  criteria: x\n", "execution: {targets: [a, b]}\n"))
    files = [EvalFile(repository.root / "evals/suite.yaml", explicit=True)]
    [suite] = load_suites(files, repository.root, ReadOptions(target_override="c"))
    assert suite.cases[0].target == "a"


@pytest.mark.contract("agentv.today.targets")
@pytest.mark.parametrize(
    ("execution", "targets", "of_case"),
    [
        ("{targets: [a, {name: b}]}", ("a", "b"), "a"),
        ("{target: c, targets: [a, b]}", ("a", "b"), "a"),
        ("{target: c, targets: [a]}", (), "a"),
        ("{target: c}", (), "c"),
    ],
)
def test_targets__of_a_file__are_asked_for_if_there_are_several(repository, execution, targets, of_case) -> None:
    suite = repository.load("evals/suite.yaml", file("  criteria: x\n", f"execution: {execution}\n"))
    assert (suite.targets, suite.cases[0].target) == (targets, of_case)


# how a case passes


@pytest.mark.contract("agentv.today.threshold")
def test_threshold__of_the_case__comes_before_that_of_the_file(repository) -> None:
    head, own = "execution: {threshold: 0.6}\n", "  execution: {threshold: 0.9}\n"
    assert repository.case(file("  criteria: x\n", head)).pass_score == 0.6
    assert repository.case(file(f"  criteria: x\n{own}", head)).pass_score == 0.9
    assert repository.case(file("  criteria: x\n")).pass_score is None


@pytest.mark.contract("agentv.today.threshold")
def test_threshold__required_assertion__has_to_reach_that_of_its_case(repository) -> None:
    required = "  assertions: [{type: contains, value: x, required: true}]\n"
    own = "  execution: {threshold: 0.5}\n"
    assert repository.case(file(f"{own}{required}")).evaluators[0].floor == 0.5
    assert repository.case(file(required, "execution: {threshold: 0.5}\n")).evaluators[0].floor == 0.8
    said = required.replace("true", "0.3")
    assert repository.case(file(f"{own}{said}")).evaluators[0].floor == 0.3


@pytest.mark.contract("agentv.today.attempts")
def test_trials__of_the_file__are_the_attempts_of_every_case(repository) -> None:
    case = repository.case(file("  criteria: x\n", "execution: {trials: {count: 3, costLimitUsd: 2}}\n"))
    assert case.attempt_rule == AttemptRule(count=3, strategy=AttemptStrategy.PASS_AT_K, max_cost_usd=2.0)
    assert repository.case(file("  criteria: x\n", "execution: {trials: {count: 1}}\n")).attempt_rule is None


def test_trials__with_passes__are_executions_and_no_attempts(repository) -> None:
    case = repository.case(file("  criteria: x\n", "execution: {trials: {count: 10, passes: 8}}\n"))
    assert (case.trials, case.passes, case.attempt_rule) == (10, 8, None)


def test_rules__that_a_case_passes_by__are_part_of_its_fingerprints(repository) -> None:
    heads = ("", "{threshold: 0.5}", "{threshold: 0.6}", "{trials: {count: 2}}", "{trials: {count: 3}}")
    cases = [repository.case(file("  criteria: x\n", f"execution: {head}\n" if head else "")) for head in heads]
    assert len({case.fingerprint for case in cases}) == len(heads)
    assert len({case.expectation_fingerprint for case in cases}) == len(heads)
    assert len({case.prompt_fingerprint for case in cases}) == 1


# cases in other files


@pytest.mark.contract("agentv.today.external")
def test_external__file_folder_and_pattern__are_read_with_their_places(repository) -> None:
    repository.write("evals/cases/a.yaml", "# first\n- {id: a, input: x, criteria: y}\n")
    repository.write("evals/cases/b.jsonl", '\n{"id": "b", "input": "x", "criteria": "y"}\n')
    repository.write("evals/folder/c/case.yaml", "input: x\ncriteria: y\n")
    suite = repository.load(
        "evals/suite.yaml",
        "tests: [file://cases/a.yaml, {id: own, input: x, criteria: y}, file://cases/*.jsonl, file://folder]\n",
    )
    assert [(case.id, case.location.file, case.location.line) for case in suite.cases] == [
        ("a", "evals/cases/a.yaml", 2),
        ("own", "evals/suite.yaml", 1),
        ("b", "evals/cases/b.jsonl", 2),
        ("c", "evals/folder/c/case.yaml", 1),
    ]
    assert repository.load("evals/other.yaml", "tests: cases/a.yaml\n").cases[0].id == "a"


@pytest.mark.contract("agentv.today.external")
@pytest.mark.parametrize(
    ("tests", "said"),
    [
        ("gone.yaml", '1: tests: "gone.yaml": the repository has no such file'),
        ("../../out.yaml", '1: tests: "../../out.yaml": the repository has no such file'),
        ("link.yaml", '1: tests: "link.yaml": is a link to a file outside of the repository'),
        ("[file://../**/*.yaml]", '1: tests: "file://../**/*.yaml": a pattern must stay'),
        ("[file://none/*.yaml]", '1: tests: "file://none/*.yaml": '),
        ("[file://map.yaml]", '1: tests: "file://map.yaml": expected a list of cases, got a mapping'),
        ("[file://a.txt]", '1: tests: "file://a.txt": cases must be in .yaml, .yml or .jsonl files'),
        ("[file://empty/]", '1: tests: "file://empty/": one has no case.yaml'),
    ],
)
def test_external__file_that_cannot_be_read__is_a_problem_of_the_file_that_names_it(
    repository, tmp_path, tests, said
) -> None:
    (tmp_path / "out.yaml").write_text("- {id: a, input: x, criteria: y}\n")
    repository.write("evals/map.yaml", "a: 1\n")
    repository.write("evals/empty/one/other.yaml", "a: 1\n")
    (repository.root / "evals/link.yaml").symlink_to(tmp_path / "out.yaml")
    [problem] = repository.problems(f"tests: {tests}\n")
    assert problem.startswith(said)


def test_external__problem_in_a_case__names_its_own_file(repository) -> None:
    repository.write("evals/cases.yaml", "- id: a\n  input: x\n  criteria: 5\n")
    assert repository.problems("tests: cases.yaml\n") == [
        'evals/cases.yaml:3: [0].criteria: YAML does not read this as text: put it in quotes, "5"'
    ]


def test_external__workspace_beside_a_case__is_the_template_of_its_workspace(repository) -> None:
    repository.write("evals/folder/c/case.yaml", "input: x\ncriteria: y\n")
    repository.write("evals/folder/c/workspace/a.txt", "a")
    workspace = repository.case("tests: folder/\n").workspace
    assert workspace is not None
    assert workspace.template == str(repository.root / "evals/folder/c/workspace")


@pytest.mark.contract("case.checks-nothing")
@pytest.mark.parametrize(
    "written",
    [
        "{type: regex, value: '.*'}",
        "{type: starts-with, value: '  '}",
        "{type: tool-trajectory, mode: any_order, minimums: {search: 0}}",
        "{type: composite, assertions: [{type: regex, value: a*}, {type: ends-with, value: ' '}]}",
    ],
)
def test_assertions__that_hold_for_every_answer__are_warned_about_and_refused_when_strict(repository, written) -> None:
    case = repository.case(asserted(written))
    (spec,) = case.evaluators
    assert spec.checks_nothing
    assert f"{spec.name} checks nothing: it always passes" in case.warnings
    (problem,) = repository.problems(asserted(written), strict=True)
    assert "checks nothing: it always passes" in problem


@pytest.mark.contract("case.checks-nothing")
@pytest.mark.parametrize(
    "written",
    [
        "{type: regex, value: '.*', negate: true}",
        "{type: equals, value: '  '}",
        "{type: contains, value: ' '}",
        "{type: tool-trajectory, mode: any_order, minimums: {search: 0, find: 1}}",
        "{type: composite, assertions: [{type: regex, value: a*}, {type: contains, value: a}]}",
    ],
)
def test_assertions__that_may_fail__are_checks(repository, written) -> None:
    case = repository.case(asserted(written))
    assert not case.evaluators[0].checks_nothing
    assert not any("checks nothing" in warning for warning in case.warnings)
