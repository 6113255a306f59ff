"""AgentV cases one a line, and the YAML file beside them."""

import json

import pytest

from eval_gate.errors import GateError
from eval_gate.formats.base import ReadOptions
from eval_gate.formats.discovery import find_eval_files, load_suites
from tests.support.agentv import Repository


@pytest.fixture
def repository(tmp_path) -> Repository:
    return Repository(tmp_path / "repository")


def line(case_id: str, **fields) -> str:
    return json.dumps({"id": case_id, "expected_outcome": "x", "input": "y"} | fields) + "\n"


def walk(repository: Repository, *patterns: str):
    files = find_eval_files(patterns, repository.root)
    return load_suites(files, repository.root, ReadOptions())


@pytest.mark.contract("agentv.files.lines")
def test_lines__one_case_each__have_their_line(repository) -> None:
    text = line("a") + "\n  \n" + line("b").replace("\n", "\r\n") + line("c").rstrip()
    loaded = repository.load("evals/harbour.jsonl", text)
    assert (loaded.tool_name, loaded.format, loaded.file) == ("harbour", "agentv", "evals/harbour.jsonl")
    assert [(case.id, case.location.line) for case in loaded.cases] == [("a", 1), ("b", 4), ("c", 5)]


@pytest.mark.contract("agentv.files.lines")
@pytest.mark.parametrize("suffix", [".yaml", ".yml"])
def test_lines__yaml_beside__speaks_for_all(repository, suffix) -> None:
    repository.write(
        f"evals/harbour{suffix}",
        """\
        description: d
        dataset: ports
        execution:
          target: desk
          evaluators: [{type: tool_trajectory, mode: exact, expected: [{tool: t}]}]
        """,
    )
    loaded = repository.load("evals/harbour.jsonl", line("a") + line("b", execution={"target": "own"}))
    assert loaded.tool_name == "ports"
    assert [case.target for case in loaded.cases] == ["desk", "own"]
    assert {case.evaluators[0].type for case in loaded.cases} == {"tool_trajectory"}
    assert loaded.warnings == ()


@pytest.mark.contract("agentv.files.lines")
def test_lines__yaml_beside_found_by_walking_or_named_with_a_glob__is_no_error(repository) -> None:
    repository.write("evals/harbour.jsonl", line("a"))
    repository.write("evals/harbour.yaml", "dataset: ports\n")
    for patterns in (["evals"], ["evals/*"], ["evals/harbour.jsonl", "evals/harbour.yaml"]):
        assert [suite.file for suite in walk(repository, *patterns)] == ["evals/harbour.jsonl"]


def test_lines__yaml_beside_with_cases_of_its_own__is_a_suite_of_its_own(repository) -> None:
    repository.write("evals/harbour.jsonl", line("a"))
    repository.write("evals/harbour.yaml", "dataset: other\nevalcases:\n- {id: b, expected_outcome: x, input: y}\n")
    assert [suite.tool_name for suite in walk(repository, "evals")] == ["harbour", "other"]


def test_lines__empty_yaml_beside_or_a_link__says_nothing(repository, tmp_path) -> None:
    repository.write("evals/harbour.yaml", "# later\n")
    assert repository.load("evals/harbour.jsonl", line("a")).tool_name == "harbour"
    (tmp_path / "far.yaml").write_text("dataset: far\n")
    (repository.root / "evals/harbour.yaml").unlink()
    (repository.root / "evals/harbour.yaml").symlink_to(tmp_path / "far.yaml")
    assert repository.load("evals/harbour.jsonl").tool_name == "harbour"


def test_lines__problems__name_the_line_the_field_and_the_file_they_stand_in(repository) -> None:
    repository.write("evals/harbour.yaml", "dataset: ports\nexecution:\n  target: 5\nunknown: 1\n")
    text = line("a") + line("b", input=[{"role": "usr", "content": "x"}]) + line("a") + '{"id": "c"}\n5\n'
    assert repository.problems(text, "evals/harbour.jsonl") == [
        "2: input[0].role: expected 'system', 'user', 'assistant' or 'tool', got text \"usr\" (did you mean \"user\"?)",
        '3: id: the case in line 1 already has the id "a"',
        '4: expected_outcome: is missing in the case "c"',
        '4: input_messages: is missing in the case "c"',
        "5: expected a mapping, got the number 5",
        'evals/harbour.yaml:3: execution.target: YAML does not read this as text: put it in quotes, "5"',
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "evals/harbour.yaml:1: expected a mapping for the cases of evals/harbour.jsonl, got an empty list"),
        ("dataset: [", "evals/harbour.yaml:2: did not find expected node content"),
        ("dataset: 5", 'evals/harbour.yaml:1: dataset: YAML does not read this as text: put it in quotes, "5"'),
    ],
)
def test_lines__wrong_yaml_beside__is_a_problem_once(repository, text, said) -> None:
    repository.write("evals/harbour.jsonl", line("a"))
    repository.write("evals/harbour.yaml", text + "\n")
    with pytest.raises(GateError) as caught:
        walk(repository, "evals")
    assert [str(problem) for problem in caught.value.problems] == [said]


def test_lines__broken_lines__are_all_named(repository) -> None:
    text = line("a") + '{"id": "b", \n' + line("c") + '{"id": "d", "id": "e"}\n'
    assert [problem.split(":")[0] for problem in repository.problems(text, "evals/x.jsonl")] == ["2", "4"]


def test_lines__thousands_of_broken_lines__are_named_up_to_a_bound(repository) -> None:
    assert len(repository.problems(line("a") + "{\n" * 5_000, "evals/x.jsonl")) == 20


@pytest.mark.parametrize(
    "text",
    [
        '{"id": "a", "text": "HOLD"}\n',
        '{"eval_id": "a", "score": 1}\n{"eval_id": "b"',
        "plain log line\n",
        "",
    ],
)
def test_lines__found_by_walking_and_no_evals__are_passed_over(repository, text) -> None:
    repository.write("evals/other.jsonl", text)
    repository.write("evals/harbour.jsonl", line("a"))
    assert [suite.file for suite in walk(repository, "evals")] == ["evals/harbour.jsonl"]


@pytest.mark.parametrize("text", ['{"id": "a", "text": "HOLD"}\n', "plain log line\n", ""])
def test_lines__named_and_no_evals__are_refused(repository, text) -> None:
    assert repository.problems(text, "evals/other.jsonl")


def test_lines__broken_case_found_by_walking__is_a_problem(repository) -> None:
    repository.write("evals/harbour.jsonl", line("a") + '{"id": "b", "criteria": "x", "input"\n')
    with pytest.raises(GateError):
        walk(repository, "evals")
