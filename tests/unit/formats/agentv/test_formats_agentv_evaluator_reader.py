"""The evaluators of an AgentV file: which apply, what they are as data, what is refused."""

import pytest

from eval_gate.model.specs.evaluator import (
    CodeAggregator,
    CodeJudge,
    Composite,
    JudgeAggregator,
    LlmJudge,
    RubricCheck,
    RubricJudge,
    ToolTrajectory,
    WeightedAverage,
)
from tests.support.agentv import ASKED, Repository, judged, suite

LOOK = "{type: tool_trajectory, mode: any_order, minimums: {look: 1}}"
FIRST = "execution.evaluators[0]"
SHOWS = "Grade {{ candidate_answer }}."


@pytest.fixture
def repository(tmp_path) -> Repository:
    return Repository(tmp_path / "repository")


def names(repository: Repository, fields: str, head: str = "") -> list[str]:
    return [spec.name for spec in repository.case(suite("id: one\n" + ASKED + fields, head=head)).evaluators]


def named(*labels: str) -> str:
    return "[" + ", ".join(f"{{name: {label}, type: llm_judge}}" for label in labels) + "]"


FILE = f"execution: {{evaluators: {named('file')}}}\n"


@pytest.mark.contract("agentv.evaluators.choice")
@pytest.mark.parametrize(
    ("fields", "head", "found"),
    [
        ("", "", ["llm_judge"]),
        ("", "evaluator: llm-judge\n", ["llm_judge"]),
        ("", FILE, ["file"]),
        (f"evaluators: {named('case')}", FILE, ["case"]),
        (f"assertions: {named('case')}", FILE, ["case"]),
        (f"assert: {named('case')}", FILE, ["case"]),
        (f"execution: {{evaluators: {named('own', 'two')}}}", FILE, ["own", "two"]),
        (f"execution: {{assert: {named('own')}}}", FILE, ["own"]),
        ("execution: {target: t}", FILE, ["file"]),
        ("execution: {evaluators: }", FILE, ["file"]),
        ("execution: {target: t}", "", ["llm_judge"]),
        ("rubrics: [Is polite.]", "", ["rubrics"]),
        ("rubrics: [Is polite.]", FILE, ["rubrics", "file"]),
        (f"rubrics: [Is polite.]\nevaluators: {named('case')}", FILE, ["rubrics", "case"]),
    ],
)
def test_evaluators__case_then_file_then_the_default(repository, fields, head, found) -> None:
    assert names(repository, fields, head) == found


def test_evaluators__in_two_places_of_a_case__the_second_is_warned_about(repository) -> None:
    text = suite(f"id: one\n{ASKED}execution: {{evaluators: {named('a')}}}\nassert: {named('b')}")
    case = repository.case(text)
    assert [spec.name for spec in case.evaluators] == ["a"]
    assert case.warnings == ("assert: is ignored: execution.evaluators is set",)
    assert repository.problems(text, strict=True) == ["6: evalcases[0].assert: is ignored: execution.evaluators is set"]


def one(repository: Repository, evaluator: str):
    [spec] = repository.case(judged(evaluator)).evaluators
    return spec


@pytest.mark.parametrize("kind", ["llm_judge", "llm-judge", "llm-grader", "llm-rubric"])
@pytest.mark.parametrize("target", ["judge_target", "judgeTarget", "target"])
@pytest.mark.parametrize("trace", ["include_trace", "includeTrace"])
def test_llm_judge__every_name__means_the_same(repository, kind, target, trace) -> None:
    spec = one(repository, f"{{name: n, type: {kind}, {target}: strict, {trace}: true, weight: 2, prompt: '{SHOWS}'}}")
    assert spec == LlmJudge(label="n", weight=2, prompt=SHOWS, include_trace=True, judge_target="strict")


def test_llm_judge__model__is_not_used_and_warned_about(repository) -> None:
    text = judged("{type: llm_judge, model: gpt-x}")
    assert repository.case(text).warnings == (
        "execution.evaluators[0].model: is ignored: name a target with this model in `judge_target`",
    )
    assert repository.problems(text, strict=True)[0].startswith(
        "7: evalcases[0].execution.evaluators[0].model: is ignored"
    )


@pytest.mark.contract("agentv.evaluators.prompt")
def test_prompt__file__is_searched_like_an_attachment(repository) -> None:
    repository.write("judges/facts.md", f"{SHOWS}\r\n")
    for written in ("judges/facts.md", "/judges/facts.md", "../judges/facts.md"):
        assert one(repository, f"{{type: llm_judge, prompt: {written}}}").prompt == f"{SHOWS}\n"


@pytest.mark.contract("agentv.evaluators.prompt")
def test_prompt__several_lines__are_the_prompt_itself(repository) -> None:
    assert one(repository, '{type: llm_judge, prompt: "Look:\\r\\n{{output_messages}}"}').prompt == (
        "Look:\n{{output_messages}}"
    )


@pytest.mark.contract("agentv.evaluators.prompt")
def test_prompt__text_like_a_path__is_taken_with_a_warning(repository) -> None:
    case = repository.case(judged('{type: llm_judge, prompt: "./{{candidate_answer}}.md"}'))
    assert case.evaluators == (LlmJudge(prompt="./{{candidate_answer}}.md"),)
    assert case.warnings == (
        f"{FIRST}.prompt: looks like a path, but the repository has no such file: used as the prompt itself",
    )


@pytest.mark.contract("agentv.evaluators.prompt")
@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        (
            "Is it good?",
            "prompt: the prompt template does not show the response to the judge: add one of {{ candidate_answer }}",
        ),
        ("{{ question }}", "prompt: the prompt template does not show the response to the judge"),
        (
            "./nowhere.txt",
            'prompt: "./nowhere.txt": the repository has no such file; as a text, the prompt template',
        ),
        ("fact.md", '(did you mean "facts.md"?); as a text, the prompt template'),
        ("blind.md", "prompt: the prompt template does not show the response to the judge"),
        ("../../facts.md", 'prompt: "../../facts.md": is outside of the repository'),
        ("binary.md", 'prompt: "binary.md": is not UTF-8 text'),
    ],
)
def test_prompt__that_shows_the_judge_no_answer__is_a_problem(repository, prompt, said) -> None:
    repository.write("evals/facts.md", SHOWS)
    repository.write("evals/blind.md", "Say something.")
    repository.write("evals/binary.md", b"\xff")
    [problem] = repository.problems(judged(f"{{type: llm_judge, prompt: '{prompt}'}}"))
    assert problem.startswith("7: evalcases[0].execution.evaluators[0].prompt: ")
    assert said in problem


@pytest.mark.parametrize("kind", ["code_judge", "code-judge", "script"])
@pytest.mark.parametrize("key", ["script", "command"])
def test_code_judge__every_name__means_the_same(repository, kind, key) -> None:
    folder = repository.write("evals/suite.yaml").parent
    line = one(repository, f"{{type: {kind}, {key}: python3 a.py, timeout_seconds: 5}}")
    assert line == CodeJudge(command="python3 a.py", cwd=str(folder), timeout_seconds=5)
    words = one(repository, f"{{type: {kind}, {key}: [python3, a.py], cwd: .., timeoutSeconds: 0.5}}")
    assert words == CodeJudge(command=("python3", "a.py"), cwd=str(repository.root), timeout_seconds=0.5)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ("", "script: is missing"),
        ("script: ''", "script: must not be empty"),
        ("script: []", "script: must not be empty"),
        ("command: 5", "command: expected a command, as one text or a list of texts, got the number 5"),
        ("script: [python3, 5]", "script: expected a command, as one text or a list of texts, got a list"),
        ("script: x, command: y", "command: says the same as `script`: keep one of them"),
        ("script: x, cwd: nowhere", 'cwd: "nowhere": the repository has no such folder'),
        ("script: x, cwd: ../..", 'cwd: "../..": is outside of the repository: only folders inside can be used'),
        ("script: x, cwd: /etc", 'cwd: "/etc": is outside of the repository'),
        ("script: x, cwd: away", 'cwd: "away": is a link to a file outside of the repository'),
        ("script: x, timeout_seconds: 0", "timeout_seconds: must be > 0.0, got the number 0"),
    ],
)
def test_code_judge__wrong__is_refused(repository, tmp_path, fields, said) -> None:
    (repository.root / "evals").mkdir()
    (repository.root / "evals/away").symlink_to(tmp_path)
    assert said in "\n".join(repository.problems(judged(f"{{type: code_judge, {fields}}}")))


@pytest.mark.contract("agentv.evaluators.trajectory")
@pytest.mark.parametrize(
    ("fields", "spec"),
    [
        ("mode: any_order, minimums: {a: 0, b: 2}", ToolTrajectory(mode="any_order", minimums={"a": 0, "b": 2})),
        ("mode: in_order, expected: [{tool: a}, {tool: a}]", ToolTrajectory(mode="in_order", expected=("a", "a"))),
        ("mode: exact, expected: [{tool: a}]", ToolTrajectory(mode="exact", expected=("a",))),
    ],
)
def test_trajectory__each_mode__has_what_it_needs(repository, fields, spec) -> None:
    assert one(repository, f"{{type: tool_trajectory, {fields}}}") == spec


@pytest.mark.contract("agentv.evaluators.trajectory")
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ("minimums: {a: 1}", "mode: is missing"),
        ("mode: any_orde, minimums: {a: 1}", '(did you mean "any_order"?)'),
        ("mode: subset, expected: [{tool: a}]", "mode: expected 'any_order', 'in_order' or 'exact', got text"),
        ("mode: any_order", "minimums: is missing: any_order compares the calls with it"),
        ("mode: any_order, minimums: {}", "minimums: must not be empty"),
        ("mode: any_order, minimums: {a: -1}", "minimums.a: must be >= 0, got the number -1"),
        ("mode: any_order, minimums: {a: 1.5}", "minimums.a: expected a whole number, got the number 1.5"),
        ("mode: any_order, minimums: {a: true}", "minimums.a: expected a whole number, got true"),
        ("mode: in_order", "expected: is missing: in_order compares the calls with it"),
        ("mode: exact, expected: []", "expected: must not be empty: exact compares the calls with it"),
        ("mode: exact, expected: {a: b}", "expected: expected a list of calls, got a mapping"),
        ("mode: exact, expected: [a]", 'expected[0]: expected a mapping, got text "a"'),
        ("mode: exact, expected: [{name: a}]", "expected[0].tool: is missing"),
    ],
)
def test_trajectory__wrong__is_refused(repository, fields, said) -> None:
    problems = repository.problems(judged(f"{{type: tool_trajectory, {fields}}}"))
    assert said in "\n".join(problems)
    assert {problem.split(":")[0] for problem in problems} == {"7"}


@pytest.mark.contract("agentv.evaluators.trajectory")
def test_trajectory__what_is_not_compared__is_warned_about(repository) -> None:
    case = repository.case(
        judged("{type: tool_trajectory, mode: exact, expected: [{tool: a, args: {x: 1}}], minimums: {a: 1}}")
    )
    assert case.evaluators == (ToolTrajectory(mode="exact", expected=("a",)),)
    assert case.warnings == (
        "execution.evaluators[0].minimums: is ignored in the mode exact",
        f"{FIRST}.expected[0].args: arguments are not compared, only the tools and their order",
    )


def test_rubrics__texts_and_mappings__become_checks(repository) -> None:
    case = repository.case(
        suite(
            f"id: one\n{ASKED}rubrics:\n  - Is polite.\n"
            "  - {id: names-it, description: Names it., weight: 2, required: false}\n"
            "  - {outcome: By a later name.}\n"
        )
    )
    assert case.evaluators == (
        RubricJudge(
            label="rubrics",
            checks=(
                RubricCheck(id="rubric-1", description="Is polite."),
                RubricCheck(id="names-it", description="Names it.", weight=2, required=False),
                RubricCheck(id="rubric-3", description="By a later name."),
            ),
        ),
    )


def test_rubrics__on_an_evaluator__are_a_judge_with_its_name_and_weight(repository) -> None:
    case = repository.case(
        judged(f"{{name: n, type: llm_judge, weight: 3, judge_target: j, rubrics: [Is polite.], prompt: '{SHOWS}'}}")
    )
    check = RubricCheck(id="rubric-1", description="Is polite.")
    assert case.evaluators == (RubricJudge(label="n", weight=3, judge_target="j", checks=(check,)),)
    assert case.warnings == ("execution.evaluators[0].prompt: is ignored: `rubrics` have their own prompt",)


@pytest.mark.parametrize(
    ("rubrics", "said"),
    [
        ("5", "5: evalcases[0].rubrics: expected a list of checks, got the number 5"),
        ("[]", "5: evalcases[0].rubrics: an empty list: nothing would be evaluated"),
        ("[5]", "5: evalcases[0].rubrics[0]: expected a mapping, got the number 5"),
        ("['']", "5: evalcases[0].rubrics[0].description: must not be empty"),
        ("[{id: a}]", "5: evalcases[0].rubrics[0].description: is missing"),
        ("[{id: a, description: x, weight: -1}]", "5: evalcases[0].rubrics[0].weight: must be >= 0"),
        (
            "[{id: a, description: x}, {id: a, description: y}]",
            '5: evalcases[0].rubrics[1].id: the check in line 5 already has the id "a"',
        ),
    ],
)
def test_rubrics__wrong__are_refused(repository, rubrics, said) -> None:
    assert repository.problems(suite(f"id: one\n{ASKED}rubrics: {rubrics}"))[0].startswith(said)


@pytest.mark.contract("agentv.evaluators.weight")
@pytest.mark.parametrize("weight", ["-0.1", ".inf", ".nan", "'2'", "true"])
def test_weight__that_is_no_weight__is_refused(repository, weight) -> None:
    [problem] = repository.problems(judged(f"{{type: llm_judge, weight: {weight}}}"))
    assert problem.startswith("7: evalcases[0].execution.evaluators[0].weight: ")


@pytest.mark.contract("agentv.evaluators.weight")
def test_weight__all_zero__is_warned_about(repository) -> None:
    case = repository.case(judged("{name: a, type: llm_judge, weight: 0}", "{name: b, type: llm_judge, weight: 0.0}"))
    assert case.warnings == ("every evaluator has weight 0: the score is always 0",)
    loaded = repository.load(
        "file.yaml", suite("id: one\n" + ASKED, head="execution: {evaluators: [{type: llm_judge, weight: 0}]}\n")
    )
    assert loaded.warnings == ("execution.evaluators: every evaluator has weight 0: the score is always 0",)


@pytest.mark.contract("agentv.evaluators.composite")
def test_composite__members_and_each_aggregator(repository) -> None:
    folder = str(repository.write("evals/checks/x.py").parent)
    repository.write("evals/join.md", "Join {{EVALUATOR_RESULTS_JSON}}.")
    members = "evaluators: [{name: a, type: llm_judge}, {name: b, type: llm_judge}]"
    both = (LlmJudge(label="a"), LlmJudge(label="b"))
    made = repository.case(
        judged(
            f"{{name: plain, type: composite, weight: 2, {members}}}",
            f"{{type: composite, {members}, aggregator: {{type: weighted_average, weights: {{a: 2, b: 0}}}}}}",
            f"{{type: composite, {members}, aggregator: {{type: code_judge, path: python3 x.py, cwd: checks}}}}",
            f"{{type: composite, {members}, aggregator: {{type: llm_judge, prompt: join.md, judge_target: j}}}}",
            f"{{type: composite, {members}, aggregator: {{type: llm_judge}}}}",
            f"{{type: composite, assertions: [{{type: composite, {members}}}]}}",
        )
    )
    assert made.evaluators == (
        Composite(label="plain", weight=2, members=both),
        Composite(members=both, aggregator=WeightedAverage(weights={"a": 2, "b": 0})),
        Composite(members=both, aggregator=CodeAggregator(command="python3 x.py", cwd=folder)),
        Composite(
            members=both, aggregator=JudgeAggregator(prompt="Join {{EVALUATOR_RESULTS_JSON}}.", judge_target="j")
        ),
        Composite(members=both, aggregator=JudgeAggregator()),
        Composite(members=(Composite(members=both),)),
    )
    assert made.warnings == ()


def nested(depth: int) -> str:
    inner = "{type: llm_judge}"
    for _ in range(depth):
        inner = f"{{type: composite, evaluators: [{inner}]}}"
    return inner


@pytest.mark.contract("agentv.evaluators.composite")
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ("", "evaluators[0].evaluators: is missing"),
        ("evaluators: []", "evaluators[0].evaluators: an empty list: nothing would be evaluated"),
        ("evaluators: [{type: nothing}]", 'evaluators[0].evaluators[0].type: "nothing" is not known'),
        (
            "evaluators: [{type: llm_judge}, {type: llm_judge}]",
            'several members have the name "llm_judge": give each its',
        ),
        (
            "evaluators: [{name: facts, type: llm_judge}], aggregator: {type: weighted_average, weights: {fact: 1}}",
            'aggregator.weights.fact: no member has the name "fact" (did you mean "facts"?)',
        ),
        (
            "evaluators: [{name: a, type: llm_judge}], aggregator: {type: weighted_average, weights: {a: .inf}}",
            "aggregator.weights.a: ",
        ),
        (
            "evaluators: [{type: llm_judge}], aggregator: {type: average}",
            '"average" is not known; known: weighted_average, threshold, code_judge, llm_judge',
        ),
        ("evaluators: [{type: llm_judge}], aggregator: {type: code_judge}", "aggregator.path: is missing"),
        (
            "evaluators: [{type: llm_judge}], aggregator: {type: llm_judge, prompt: 'Sum {{candidate_answer}}'}",
            "aggregator.prompt: the aggregator's prompt does not show the results to the judge",
        ),
        ("evaluators: [{type: llm_judge}], aggregator: 5", "aggregator: expected a mapping with a `type`, got the num"),
    ],
)
def test_composite__wrong__is_refused(repository, fields, said) -> None:
    assert said in "\n".join(repository.problems(judged(f"{{type: composite, {fields}}}")))


@pytest.mark.contract("agentv.evaluators.composite")
def test_composite__nesting__is_bounded(repository) -> None:
    assert repository.case(judged(nested(10)))
    [problem] = repository.problems(judged(nested(11)))
    assert problem.endswith("composites are nested deeper than 10 levels")


def test_composite__what_does_not_count__is_warned_about(repository) -> None:
    case = repository.case(
        judged(
            "{type: composite, evaluators: [{name: a, type: llm_judge, weight: 2}], "
            "aggregator: {type: weighted_average, weights: {a: 0}}}"
        )
    )
    assert case.warnings == (
        f'{FIRST}.evaluators: the weight of the member "a" is ignored: put it into the aggregator\'s weights',
        "execution.evaluators[0].aggregator: every evaluator has weight 0: the score is always 0",
    )


@pytest.mark.contract("agentv.files.problems")
@pytest.mark.parametrize(
    ("evaluator", "said"),
    [
        ("5", "expected a mapping with a `type`, got the number 5"),
        ("{name: a}", "type: is missing; known: llm_judge, code_judge, tool_trajectory, composite"),
        ("{type: 5}", "type: expected text, got the number 5"),
        ("{type: tool_trajctory}", 'type: "tool_trajctory" is not known (did you mean "tool_trajectory"?); known: '),
        ("{type: contians}", 'type: "contians" is not known (did you mean "contains"?); known: '),
        ("{type: levenshtein}", 'type: "levenshtein" is not known; known: '),
        ("{type: llm_judge, name: ''}", "name: must not be empty"),
        ("{type: llm_judge, includeTrace: 'yes'}", 'includeTrace: expected true or false, got text "yes"'),
        ("{type: llm_judge, include_trace: 'yes'}", 'include_trace: expected true or false, got text "yes"'),
    ],
)
def test_evaluator__wrong__is_refused_with_what_is_known(repository, evaluator, said) -> None:
    [problem] = repository.problems(judged(evaluator))
    place, _, message = problem.partition("evaluators[0]")
    assert place == "7: evalcases[0].execution."
    assert message.lstrip(".: ").startswith(said)


def test_evaluator__unknown_setting__is_warned_about(repository) -> None:
    case = repository.case(judged("{type: llm_judge, promt: x}"))
    assert case.warnings == ('execution.evaluators[0].promt: unknown key (did you mean "prompt"?): it is ignored',)
