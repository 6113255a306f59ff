"""A model, target or judge that cannot be had is said where it is written, by the name that its author knows."""

from __future__ import annotations

import json

import pytest

from tests.integration.test_integration_run import gate, write_suite

JUDGED = """\
evalcases:
  - id: one
    expected_outcome: Says so.
    input_messages: [{role: user, content: Is it so?}]
    execution: {evaluators: [{name: judge, type: llm_judge%s}]}
"""
OWN_SERVER = "is missing: openai-compatible is your own server"
TARGETS = """\
- name: w4
  url: http://localhost:9
  judge_target: judgye
- name: judgey
  provider: openai
  model: m
- name: far
  provider: model
  temperature: 0
  model: opneai:gpt-4
- name: near
  provider: openai
  model: gpt-4
  base_url: localhost
"""
JUDGE_HINT = "hint: name a judge: one of w4, judgey, far, near, or a model as provider:model"


def said(done) -> list[str]:
    assert done.returncode == 2, done.stdout
    return [line.strip() for line in done.stderr.splitlines()]


@pytest.mark.parametrize(
    ("flags", "variables", "file", "place"),
    [
        (["--provider", "openai-compatible", "--model", "x"], {}, None, f"--base-url: {OWN_SERVER}"),
        (["--model", "openai-compatible:x"], {}, None, f"--base-url: {OWN_SERVER}"),
        ([], {"EVAL_GATE_MODEL": "openai-compatible:x"}, None, f"EVAL_GATE_BASE_URL: {OWN_SERVER}"),
        ([], {}, "provider: openai-compatible\nmodel: x\n", f"eval-gate.yaml:3: baseUrl: {OWN_SERVER}"),
        (["--provider", "openai"], {}, None, "--model: is missing"),
        ([], {}, "provider: openai\n", "eval-gate.yaml:2: model: is missing"),
    ],
    ids=["flags", "one flag", "variable", "file", "no model by flag", "no model in a file"],
)
@pytest.mark.parametrize("command", ["run", "validate"])
def test_model__part_of_it_is_missing__is_said_by_its_own_key(tmp_path, command, flags, variables, file, place) -> None:
    write_suite(tmp_path, 1)
    if file is not None:
        (tmp_path / "eval-gate.yaml").write_text(f"trials: 1\n{file}")
    assert place in said(gate(tmp_path, command, *flags, **variables))


@pytest.mark.parametrize("command", ["run", "validate"])
def test_model__address_is_none__is_said_at_its_own_line_and_flag(tmp_path, command) -> None:
    write_suite(tmp_path, 1)
    why = "the URL does not begin with http:// or https://"
    key = {"OPENAI_API_KEY": "k" * 20}
    assert f"--base-url: {why}" in said(gate(tmp_path, command, "--model", "openai:x", "--base-url", "foo", **key))
    (tmp_path / "eval-gate.yaml").write_text("trials: 1\nmodel: openai:x\n\nbaseUrl: foo\n")
    assert f"eval-gate.yaml:4: baseUrl: {why}" in said(gate(tmp_path, command, **key))
    (tmp_path / "eval-gate.yaml").unlink()
    (tmp_path / "targets.yaml").write_text(TARGETS)
    found = said(gate(tmp_path, command, "--target", "near", "--targets", "targets.yaml", **key))
    assert f"targets.yaml:14: targets[near].base_url: {why}" in found


@pytest.mark.slow
def test_model__provider_is_misspelt_in_a_list__is_said_at_the_line_of_the_model(tmp_path) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / "targets.yaml").write_text(TARGETS)
    done = gate(tmp_path, "run", "--target", "far", "--targets", "targets.yaml")
    assert "targets.yaml:10: targets[far].model" in said(done)


@pytest.mark.slow
def test_validate__address_of_a_model__is_an_option(tmp_path) -> None:
    write_suite(tmp_path, 1)
    given = ("--provider", "openai-compatible", "--model", "x", "--base-url", "http://localhost:9/v1")
    assert gate(tmp_path, "validate", *given).returncode == 0
    lacking = gate(tmp_path, "validate", "--model", "openai:x", "--system-prompt", "none.md", OPENAI_API_KEY="k" * 20)
    assert "the system prompt none.md cannot be read" in lacking.stderr


@pytest.mark.parametrize("command", ["run", "validate"])
def test_judge__of_a_target_is_misspelt__is_said_at_its_line_with_who_could_grade(tmp_path, command) -> None:
    (tmp_path / "suite.yaml").write_text(JUDGED % "")
    (tmp_path / "targets.yaml").write_text(TARGETS)
    done = gate(tmp_path, command, "suite.yaml", "--target", "w4")
    assert any(line.startswith("targets.yaml:3: targets[w4].judge_target") for line in said(done))
    assert 'unknown target "judgye" in targets.yaml (did you mean "judgey"?)' in done.stderr
    assert JUDGE_HINT in said(done)
    assert "--target with" not in done.stderr


@pytest.mark.parametrize("command", ["run", "validate"])
def test_judge__of_an_evaluator_is_misspelt__is_said_at_its_case(tmp_path, command) -> None:
    (tmp_path / "suite.yaml").write_text(JUDGED % ", target: judgye")
    (tmp_path / "targets.yaml").write_text(TARGETS)
    done = gate(tmp_path, command, "suite.yaml", "--target", "judgey", OPENAI_API_KEY="k" * 20)
    assert any(line.startswith("suite.yaml:2") for line in said(done))
    assert 'unknown target "judgye" in targets.yaml (did you mean "judgey"?)' in done.stderr
    assert JUDGE_HINT in said(done)


def test_judge__by_flag_is_misspelt__blames_no_file(tmp_path) -> None:
    (tmp_path / "suite.yaml").write_text(JUDGED % "")
    (tmp_path / "targets.yaml").write_text(TARGETS)
    done = gate(tmp_path, "run", "suite.yaml", "--target", "w4", "--judge", "judgye")
    assert said(done)[1:] == [JUDGE_HINT]


def test_agent_evals__model_of_a_flag_is_misspelt__blames_no_suite(tmp_path) -> None:
    (tmp_path / "suites").mkdir()
    suite = {
        "name": "answers",
        "agent": {"name": "A", "model": "gpt-4o", "instructions": "Answer."},
        "cases": [{"id": "a", "name": "n", "prompt": "p", "assertions": [{"type": "contains", "value": "x"}]}],
    }
    (tmp_path / "suites/answers.json").write_text(json.dumps(suite, indent=1))
    done = gate(tmp_path, "agent-evals", "--all", "--model", "opneai:x")
    assert 'unknown model provider "opneai" (did you mean "openai:x"?)' in said(done)[0]
    assert "answers.json" not in done.stderr


def test_target__chosen_by_a_flag_is_none__blames_no_case(tmp_path) -> None:
    (tmp_path / "suite.yaml").write_text("execution: {target: judgey}\n" + JUDGED % "")
    (tmp_path / "targets.yaml").write_text(TARGETS)
    done = gate(tmp_path, "run", "suite.yaml", "--target", "w5")
    assert 'unknown target "w5" in targets.yaml' in said(done)[0]
    assert "suite.yaml" not in done.stderr


@pytest.mark.parametrize(
    ("written", "place", "hint"),
    [
        (
            "baseAgentTarget: jugdey",
            "baseAgentTarget: unknown target",
            "hint: use --base-agent-target with one of w4, judgey",
        ),
        (
            "baseAgentTarget: w4",
            "the base agent is the evaluated agent itself",
            "hint: set baseAgent",
        ),
        (
            "baseAgentEndpoint: localhost:1",
            "baseAgentEndpoint: the URL does not begin with http://",
            "hint: write a URL such as",
        ),
    ],
    ids=["no such target", "the same", "no address"],
)
def test_validate__agent_of_the_base_branch_is_none__is_a_problem_as_in_a_run(tmp_path, written, place, hint) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / "targets.yaml").write_text(TARGETS)
    (tmp_path / "eval-gate.yaml").write_text(f"target: w4\ntargets: targets.yaml\n{written}\n")
    checked, refused = (gate(tmp_path, command) for command in ("validate", "run"))
    for done in (checked, refused):
        assert place.partition(": ")[2] in done.stderr, done.stderr
        assert any(line.startswith(hint) for line in said(done)), done.stderr
    begin = "" if place.startswith("the base") else "eval-gate.yaml:3: "
    assert any(line.startswith(begin + place) for line in said(checked)), checked.stderr


def test_validate__agent_of_the_base_branch_is_described_nowhere__is_a_problem(tmp_path) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / "eval-gate.yaml").write_text("agentEndpoint: http://localhost:9/\nbaseAgentTarget: base\n")
    assert any('the target "base" is not described' in line for line in said(gate(tmp_path, "validate")))


def test_validate__agent_of_the_base_branch_needs_a_key__is_a_note(tmp_path) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / "targets.yaml").write_text(TARGETS)
    done = gate(tmp_path, "validate", "--target", "w4", "--targets", "targets.yaml", "--base-agent-target", "judgey")
    assert (done.returncode, "note: targets.yaml:4: targets[judgey]: no key for" in done.stderr) == (0, True)


@pytest.mark.parametrize("where", ["flag", "configuration"])
def test_init__provider_of_a_model_is_misspelt__writes_nothing_and_says_which_is_near(tmp_path, where) -> None:
    flags = ["--model", "opneai:gpt-4"] if where == "flag" else []
    if not flags:
        (tmp_path / "eval-gate.yaml").write_text("trials: 1\nmodel: opneai:gpt-4\n")
    before = {path.name for path in tmp_path.iterdir()}
    done = gate(tmp_path, "init", ".", *flags)
    assert 'unknown model provider "opneai" (did you mean "openai:gpt-4"?)' in said(done)[0]
    assert ("eval-gate.yaml:2: model" in said(done)) is (where == "configuration")
    assert {path.name for path in tmp_path.iterdir()} == before


def test_run__base_agent_that_only_its_path_tells_apart__is_named(tmp_path) -> None:
    write_suite(tmp_path, 1)
    address = "http://agent.invalid/base/chat"
    done = gate(tmp_path, "run", "--agent-endpoint", "http://agent.invalid/chat", "--base-agent-endpoint", address)
    said = f"the base agent has the same host and port as the evaluated agent: {address}"
    assert (done.returncode, said in " ".join((done.stdout + done.stderr).split())) == (3, True), done.stdout
