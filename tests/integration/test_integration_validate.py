"""`eval-gate validate` on a machine without secrets, as in a fork or before a commit: what is unset is noted."""

import json
import textwrap
from pathlib import Path

import pytest

from tests.integration.test_integration_run import gate, write_suite
from tests.support.agents import agent

AGENTV = """\
execution: {target: %s}
evalcases:
  - id: one
    expected_outcome: Says so.
    input_messages: [{role: user, content: Is it so?}]
    execution: {evaluators: [{name: judge, type: llm_judge}]}
"""
SUITE = {
    "name": "s",
    "agent": {"name": "A", "model": "gpt-5-mini", "instructions": "be brief"},
    "cases": [{"id": "a", "name": "n", "prompt": "p", "assertions": [{"type": "contains", "value": "x"}]}],
}


def targets(folder: Path, text: str) -> None:
    (folder / "targets.yaml").write_text("targets:\n" + textwrap.indent(textwrap.dedent(text), "  "))


def notes(done) -> list[str]:
    return [line.removeprefix("note: ") for line in done.stderr.splitlines() if line.startswith("note: ")]


def test_validate__nothing_but_variables_is_missing__notes_each_with_its_line_and_exits_0(tmp_path) -> None:
    (tmp_path / "suite.yaml").write_text(AGENTV % "azure")
    targets(
        tmp_path,
        """\
        - name: azure
          provider: azure
          endpoint: ${{ AZURE_ENDPOINT }}
          api_key: ${{ AZURE_KEY }}
          model: ${{ AZURE_MODEL }}
        """,
    )
    done = gate(tmp_path, "validate", "suite.yaml")
    assert done.returncode == 0, done.stderr
    assert notes(done) == [
        "targets.yaml:4: targets[azure].endpoint: the variable AZURE_ENDPOINT is not set",
        "targets.yaml:5: targets[azure].api_key: the variable AZURE_KEY is not set",
        "targets.yaml:6: targets[azure].model: the variable AZURE_MODEL is not set",
    ]
    assert done.stdout.splitlines()[-1] == "1 case in 1 suite: 0 problems, 0 warnings, 3 notes"
    assert gate(tmp_path, "validate", "suite.yaml", "--strict").returncode == 0
    refused = gate(tmp_path, "run", "suite.yaml")
    assert refused.returncode == 2
    assert "targets.yaml:5: targets[azure].api_key: the variable AZURE_KEY is not set" in refused.stderr


def test_validate__all_are_set__says_nothing_of_notes(tmp_path) -> None:
    write_suite(tmp_path)
    targets(tmp_path, "- {name: a, url: '${{ AGENT_URL }}', headers: {Authorization: 'Bearer ${{ TOKEN }}'}}\n")
    done = gate(tmp_path, "validate", AGENT_URL="http://agent.example/chat", TOKEN="t")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "6 cases in 1 suite: 0 problems, 0 warnings"
    assert notes(gate(tmp_path, "validate")) == [
        "targets.yaml:2: targets[a].url: the variable AGENT_URL is not set",
        "targets.yaml:2: targets[a].headers.Authorization: the variable TOKEN is not set",
    ]


@pytest.mark.parametrize(
    ("described", "said"),
    [
        ("provider: http\n  url: ${{ URL }}\n  timout: 5", "targets.yaml:5: targets[a].timout: unknown setting"),
        ("provider: openai\n  api_key: ${{ KEY }}\n  model: m\n  temperature: 9", "targets[a].temperature: must be"),
        ("provider: openai\n  api_key: sk-literal-key\n  model: ${{ MODEL }}", "do not write a key into a file"),
        (
            "provider: openai\n  api_key: ${{ KEY }}\n  model: m\n  system_prompt_path: none.md",
            "the system prompt none.md cannot be read",
        ),
        ("provider: cli\n  command: run {PROMT}\n  env: {TOKEN: '${{ TOKEN }}'}", "unknown placeholder {PROMT}"),
    ],
    ids=["unknown setting", "value", "literal key", "prompt", "placeholder"],
)
def test_validate__a_mistake_beside_what_is_unset__is_still_a_problem(tmp_path, described, said) -> None:
    write_suite(tmp_path)
    targets(tmp_path, f"- name: a\n  {described}\n")
    done = gate(tmp_path, "validate")
    assert done.returncode == 2
    assert said in done.stderr
    assert "is not set" not in "".join(line for line in done.stderr.splitlines() if not line.startswith("note: "))


def test_validate__a_judge_behind_a_target_that_is_unset__is_checked_too(tmp_path) -> None:
    (tmp_path / "suite.yaml").write_text(AGENTV % "desk")
    targets(
        tmp_path,
        """\
        - {name: desk, provider: http, url: '${{ URL }}', judge_target: grader}
        - {name: grader, provider: openai, api_key: '${{ KEY }}', model: m, temprature: 0}
        """,
    )
    done = gate(tmp_path, "validate", "suite.yaml")
    assert done.returncode == 2
    assert 'targets[grader].temprature: unknown setting (did you mean "temperature"?)' in done.stderr
    assert notes(done) == [
        "targets.yaml:2: targets[desk].url: the variable URL is not set",
        "targets.yaml:3: targets[grader].api_key: the variable KEY is not set",
    ]


def test_validate__the_judge_is_a_variable__nobody_is_missed(tmp_path) -> None:
    (tmp_path / "suite.yaml").write_text(AGENTV % "desk")
    targets(tmp_path, "- {name: desk, provider: http, url: 'http://x/', judge_target: '${{ JUDGE }}'}\n")
    done = gate(tmp_path, "validate", "suite.yaml")
    assert done.returncode == 0, done.stderr
    assert notes(done) == ["targets.yaml:2: targets[desk].judge_target: the variable JUDGE is not set"]
    assert "no judge" in gate(tmp_path, "run", "suite.yaml").stderr


def test_validate__no_key_of_a_vendor__is_a_note_at_the_target(tmp_path) -> None:
    write_suite(tmp_path)
    targets(tmp_path, "- {name: a, provider: anthropic, model: m}\n")
    done = gate(tmp_path, "validate")
    assert done.returncode == 0, done.stderr
    [note] = notes(done)
    assert note.startswith("targets.yaml:2: targets[a]: no key for anthropic: neither ANTHROPIC_API_KEY nor")
    (tmp_path / "eval-gate.yaml").write_text("provider: openai\nmodel: m\n")
    chosen = gate(tmp_path, "validate")
    assert chosen.returncode == 0
    assert "OPENAI_API_KEY" in notes(chosen)[0]


def test_validate__suite_of_agent_evals__notes_the_key_at_the_suite(tmp_path) -> None:
    (tmp_path / "suite.json").write_text(json.dumps(SUITE))
    done = gate(tmp_path, "validate", "suite.json")
    assert done.returncode == 0, done.stderr
    [note] = notes(done)
    assert note.startswith("suite.json: ")
    assert "OPENAI_API_KEY" in note


@pytest.mark.slow
def test_validate__eval_files_wrong_and_target_unset__says_both(tmp_path) -> None:
    write_suite(tmp_path).write_text('[{"id": "gs-1", "input": {}, "expect": {}}]')
    targets(tmp_path, "- {name: a, provider: openai, model: m, api_key: '${{ KEY }}'}\n")
    done = gate(tmp_path, "validate", "--target", "a")
    assert done.returncode == 2
    assert "input.message" in done.stderr
    assert notes(done) == ["targets.yaml:2: targets[a].api_key: the variable KEY is not set"]


@pytest.mark.slow
def test_validate__one_target_of_many_files__is_noted_once_and_quietly_not_at_all(tmp_path) -> None:
    for number in range(4):
        write_suite(tmp_path, 1, name=f"s{number}.golden.json")
    targets(tmp_path, "- {name: a, provider: openai, model: m, api_key: '${{ KEY }}'}\n")
    assert len(notes(gate(tmp_path, "validate"))) == 1
    assert gate(tmp_path, "--quiet", "validate").stderr == ""


def test_validate__hundreds_of_variables__names_the_first_and_counts_the_rest(tmp_path) -> None:
    write_suite(tmp_path)
    headers = "\n".join(f"    X-{number}: ${{{{ V{number} }}}}" for number in range(300))
    targets(tmp_path, f"- name: a\n  url: http://x/\n  headers:\n{headers}\n")
    done = gate(tmp_path, "validate")
    assert done.returncode == 0, done.stderr
    assert len(notes(done)) == 51
    assert notes(done)[-1] == "… and 250 more"
    assert done.stdout.splitlines()[-1].endswith("0 warnings, 300 notes")


@pytest.mark.slow
def test_validate__case_id_where_a_conversation_is_named__is_a_warning_as_in_a_run(tmp_path) -> None:
    write_suite(tmp_path)
    listed = {"name": "default", "provider": "http", "url": "http://127.0.0.1:9/threads/{{caseId}}/chat"}
    targets(tmp_path, f"- {json.dumps(listed | {'requestTemplate': {'message': '{{message}}'}})}")
    said = "target default: {{caseId}} in threads is the same in every trial, re-run and run"
    checked = gate(tmp_path, "validate")
    assert (checked.returncode, checked.stderr.count(said)) == (0, 1)
    gate(tmp_path, "run")
    (kept,) = tmp_path.glob("**/run.json")
    assert said in kept.read_text()


SAID = "`targets` is ignored: `agentEndpoint` names the target. Remove `agentEndpoint` to use a target of the list"


def test_targets__an_agent_endpoint_stands_beside_them__validate_and_run_say_that_they_are_unread(tmp_path) -> None:
    """What `init` wrote says an endpoint; whose agent is a program adds a list, as its page shows, and is not asked."""
    write_suite(tmp_path, 1)
    targets(tmp_path, "- {name: coder, provider: cli, command_template: 'echo ok'}")
    with agent() as there:
        (tmp_path / "eval-gate.yaml").write_text(f"agentEndpoint: {there.url}\ntargets: targets.yaml\n")
        checked, ran = gate(tmp_path, "validate"), gate(tmp_path, "run", "-v")
    assert checked.returncode == ran.returncode == 0, ran.stderr
    assert f"warning: {SAID}" in checked.stderr
    assert SAID in " ".join((ran.stdout + ran.stderr).split())
    (tmp_path / "eval-gate.yaml").write_text("agentEndpoint: http://localhost:1/x\n")
    assert (
        f"hint: {SAID.replace('`targets` is ignored', 'targets.yaml is not used')}" in gate(tmp_path, "validate").stderr
    )
    (tmp_path / "eval-gate.yaml").write_text("targets: targets.yaml\n")
    checked, ran = gate(tmp_path, "validate"), gate(tmp_path, "run")
    assert "is ignored: `" not in checked.stderr + ran.stdout
    assert ran.returncode == 0, ran.stdout


def test_targets__a_judge_of_the_list_grades_what_an_endpoint_answers__nothing_is_said(tmp_path) -> None:
    (tmp_path / "suite.yaml").write_text(AGENTV % "any")
    targets(tmp_path, "- {name: grader, provider: mock, response: '{\"score\": 1}'}")
    (tmp_path / "eval-gate.yaml").write_text(
        "agentEndpoint: http://localhost:1/x\ntargets: targets.yaml\njudge: grader\n"
    )
    done = gate(tmp_path, "validate", "suite.yaml")
    assert "is ignored: `" not in done.stderr


def test_validate__several_targets_and_none_is_chosen__says_how_to_choose(tmp_path) -> None:
    write_suite(tmp_path, 1)
    targets(
        tmp_path,
        """\
        - {name: desk, provider: http, url: http://localhost:1/chat}
        - {name: lab, provider: http, url: http://localhost:2/chat}
        """,
    )
    done = gate(tmp_path, "validate")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "several targets are described: choose one",
        "hint: use --target with one of desk, lab",
    ]


def test_validate__a_misspelt_assertion__is_a_warning_with_the_line_of_its_case(tmp_path) -> None:
    cases = '[\n{"id": "gs-1", "input": {"message": "x"}, "expect": {"toolCalled": [], "toolsCalled": []}}]'
    write_suite(tmp_path).write_text(cases)
    done = gate(tmp_path, "validate")
    assert done.returncode == 0
    assert 'warning: evals/weather.golden.json:2: gs-1: unknown assertion "toolCalled"' in done.stderr


def test_validate__a_file_that_is_wrong__is_not_told_to_be_validated(tmp_path) -> None:
    write_suite(tmp_path).write_text('[{"id": 3, "input": {}, "expect": {}}]')
    assert "eval-gate validate" not in gate(tmp_path, "validate").stderr
    refused = gate(tmp_path, "run", "--agent-endpoint", "http://localhost:1/chat")
    assert "hint: correct them; `eval-gate validate` checks" in refused.stderr


@pytest.mark.parametrize(
    ("described", "said", "hint"),
    [
        (
            "url: 'http://x/'",
            "suite.yaml:3: one: no judge",
            "hint: set `judge_target` in the target, or `judge`",
        ),
        (
            "url: 'http://x/', timout: 5",
            "targets[desk].timout: unknown setting",
            "hint: correct each place; `eval-gate schema targets` lists",
        ),
        (
            "url: 'http://x/', judge_target: gradr",
            "targets[desk].judge_target: unknown",
            "hint: name a judge: one of desk, or a model as provider:model",
        ),
    ],
    ids=["nobody", "setting", "no such judge"],
)
def test_validate__a_problem_of_a_target__gives_the_hint_that_a_run_gives(tmp_path, described, said, hint) -> None:
    (tmp_path / "suite.yaml").write_text(AGENTV % "desk")
    targets(tmp_path, f"- {{name: desk, provider: http, {described}}}\n")
    checked, refused = (gate(tmp_path, command, "suite.yaml") for command in ("validate", "run"))
    assert (checked.returncode, refused.returncode) == (2, 2)
    hints = [[line.strip() for line in done.stderr.splitlines() if "hint:" in line] for done in (checked, refused)]
    assert hints[0] == hints[1]
    assert said in checked.stderr
    assert hints[0][0].startswith(hint)


def test_validate__case_with_several_evaluators_and_no_judge__is_one_problem(tmp_path) -> None:
    evaluators = [{"name": name, "type": "llm_judge"} for name in ("tone", "style", "facts")]
    case = {"id": "one", "expected_outcome": "kind", "input_messages": [{"role": "user", "content": "hi"}]}
    case["execution"] = {"target": "desk", "evaluators": evaluators}
    (tmp_path / "suite.yaml").write_text(json.dumps({"evalcases": [case]}, indent=1))
    targets(tmp_path, "- {name: desk, provider: http, url: 'http://x/'}\n")
    done = gate(tmp_path, "validate", "suite.yaml")
    assert done.returncode == 2
    assert done.stderr.count("one: no judge") == 1
    refused = gate(tmp_path, "run", "suite.yaml")
    assert "1 case needs a judge" in refused.stderr


def test_validate__a_rubric_that_nobody_would_grade__is_a_warning_unless_no_target_is_known(tmp_path) -> None:
    rubric = [{"dimension": "tone", "maxScore": 3, "criteria": "kind"}]
    case = {"id": "one", "description": "kind", "input": {"message": "hi"}, "rubric": rubric}
    (tmp_path / "a.rubric.json").write_text(json.dumps([case]))
    assert gate(tmp_path, "validate", ".").stderr == ""
    (tmp_path / "eval-gate.yaml").write_text("agentEndpoint: http://127.0.0.1:9\n")
    done = gate(tmp_path, "validate", ".")
    assert done.returncode == 0
    assert "warning: a.rubric.json: a run skips 1 case: rubric dimensions need a judge" in done.stderr
    assert "(`judge`, --judge)" in gate(tmp_path, "run", ".").stdout
    (tmp_path / "eval-gate.yaml").write_text("agentEndpoint: http://127.0.0.1:9\njudge: openai:gpt-5-mini\n")
    assert "a run skips" not in gate(tmp_path, "validate", ".", OPENAI_API_KEY="k").stderr


@pytest.mark.slow
def test_validate__who_is_asked_by_flags__is_checked_as_the_run_that_takes_them_would(tmp_path) -> None:
    (tmp_path / "suite.yaml").write_text(AGENTV.partition("\n")[2])
    agent_only = gate(tmp_path, "validate", "suite.yaml", "--agent-endpoint", "http://agent.example/chat")
    assert agent_only.returncode == 2
    assert "suite.yaml:2: one: no judge" in agent_only.stderr
    judged = ("--agent-endpoint", "http://agent.example/chat", "--judge", "openai:m")
    done = gate(tmp_path, "validate", "suite.yaml", *judged)
    assert done.returncode == 0, done.stderr
    assert [note for note in notes(done) if "OPENAI_API_KEY" in note]
    misspelt = gate(tmp_path, "validate", "suite.yaml", "--model", "opneai:gpt-4")
    assert misspelt.returncode == 2
    assert 'unknown model provider "opneai" (did you mean "openai:gpt-4"?)' in misspelt.stderr
    assert "docs/models.md" in misspelt.stderr


@pytest.mark.contract("file.strict-json")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("evals/a.golden.json", '[{"id": "gs-1", "input": {"message": "x"}, "expect": {"maxLatencyMs": 1e400}}]'),
        ("evals/b.eval.yaml", "tests: [{id: b, input: x, criteria: y, metadata: {most: .inf}}]\n"),
        ("evals/c.eval.jsonl", '{"id": "c", "input": "x", "criteria": "y", "metadata": {"most": 1e400}}\n'),
        ("targets.yaml", "targets: [{name: a, provider: http, url: 'http://a.test', requestFields: {most: .inf}}]\n"),
        ("eval-gate.json", '{"minPassRate": 1e400}'),
        ("eval-gate.yaml", "minPassRate: 1.0e+400\n"),
    ],
)
def test_number_beyond_all_range__in_any_file__is_refused_as_not_a_number_is(tmp_path, name, text) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "d.golden.json").write_text(
        '[{"id": "gs-2", "input": {"message": "x"}, "expect": {"responseNonEmpty": true}}]'
    )
    (tmp_path / name).write_text(text)
    done = (
        gate(tmp_path, "validate", "evals", "--target", "a") if name == "targets.yaml" else gate(tmp_path, "validate")
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert name in done.stdout + done.stderr
    assert any(word in done.stdout + done.stderr for word in ("out of range", "that JSON does not have"))
