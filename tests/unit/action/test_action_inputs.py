"""The one table of inputs: both action.yml and the page are held to it, and every mistake in a workflow is named."""

from __future__ import annotations

import pytest
import yaml

from eval_gate.action.inputs import INPUTS, OUTPUTS, CommentMode, read_inputs
from eval_gate.action.publishing.run_publication import build_outputs
from eval_gate.action.step_config import load_step_config
from eval_gate.config.policy import FailOn
from eval_gate.config.settings import SETTINGS
from eval_gate.errors import ExitCode, GateError
from eval_gate.model.comparison import Outcome
from tests.support.write_action import ACTION, HOST, PAGE, action_yml, host_action_yml, page

TOKEN = {"INPUT_GITHUB-TOKEN": "ghs_x"}


def given(**inputs: str) -> dict[str, str]:
    """The variables of these inputs; an underscore stands for a hyphen."""
    return TOKEN | {f"INPUT_{name.replace('_', '-').upper()}": value for name, value in inputs.items()}


def all_empty() -> dict[str, str]:
    """What the runner sets for a step without `with:`: every declared input with its default."""
    return {f"INPUT_{one.name.upper()}": one.default for one in INPUTS} | TOKEN


def test_action_yml__is_what_the_table_makes() -> None:
    assert ACTION.read_text(encoding="utf-8") == action_yml(), "run `make action`"
    assert HOST.read_text(encoding="utf-8") == host_action_yml(), "run `make action`"


def test_page__holds_the_tables() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(text), "run `make action`"


def test_action_yml__as_the_runner_reads_it() -> None:
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    assert action["runs"] == {"using": "docker", "image": "Dockerfile"}
    assert list(action["inputs"]) == [one.name for one in INPUTS if not one.host_only]
    assert list(action["outputs"]) == [one.name for one in OUTPUTS]
    assert not {"entrypoint", "args"} & action["inputs"].keys(), "names that belong to the runner"
    assert all(isinstance(one["default"], str) for one in action["inputs"].values())


@pytest.mark.slow
def test_host_action_yml__as_the_runner_reads_it__has_what_the_container_has_and_more() -> None:
    host, action = (yaml.safe_load(file.read_text(encoding="utf-8")) for file in (HOST, ACTION))
    assert (HOST.parent / host["runs"]["main"]).is_file()
    assert host["outputs"] == action["outputs"]
    assert host["inputs"].items() >= action["inputs"].items()
    assert host["inputs"].keys() - action["inputs"].keys() == {"rerun-command"}


def test_inputs__that_need_the_users_tools__are_refused_in_the_container_with_the_way_out() -> None:
    with pytest.raises(GateError) as caught:
        read_inputs(given(rerun_command="npx promptfoo eval"))
    [problem] = caught.value.problems
    assert problem.field == "rerun-command"
    assert "use the action eval-gate/eval-gate/host" in problem.message
    assert read_inputs(given(rerun_command="npx x"), on_host=True).flags == {"rerunCommand": "npx x"}


def test_outputs__every_declared_one_is_written_and_no_other() -> None:
    written = build_outputs(None, Outcome.INCONCLUSIVE, ExitCode.USAGE)
    assert list(written) == [one.name for one in OUTPUTS]


def test_inputs__that_are_settings__are_keys_of_the_configuration() -> None:
    assert {one.key for one in INPUTS if one.key} <= SETTINGS.keys()


def test_inputs__none_given__defaults() -> None:
    settings = read_inputs(all_empty())
    assert (settings.flags, settings.comment, settings.check_run) == ({}, CommentMode.ALWAYS, "eval-gate")
    assert (settings.upload, settings.annotations, settings.baseline) == (True, True, "auto")
    assert (settings.max_baseline_age_days, settings.max_baseline_commits) == (14, 50)
    assert read_inputs(TOKEN) == settings


def test_inputs__empty_name_of_the_check_run__is_none() -> None:
    assert read_inputs(given(check_run="")).check_run is None


@pytest.mark.parametrize(
    ("word", "meant"),
    [("true", True), ("True", True), ("TRUE", True), ("false", False), ("False", False), ("FALSE", False)],
)
def test_inputs__truth__in_every_spelling_of_yaml(word, meant) -> None:
    assert read_inputs(given(upload=word)).upload is meant


def test_inputs__lists__by_comma_and_line() -> None:
    settings = read_inputs(given(case="a/*, b\nc", baseline_workflow="nightly.yml"))
    assert (settings.selection.cases, settings.baseline_workflows) == (("a/*", "b", "c"), ("nightly.yml",))


def test_inputs__many_mistakes__are_all_named_at_once() -> None:
    wrong = given(comment="sometimes", upload="yes", max_baseline_commits="-1", artifact_name="a/b", faill_on="x")
    with pytest.raises(GateError) as caught:
        read_inputs(wrong)
    assert {problem.field for problem in caught.value.problems} == {
        "comment",
        "upload",
        "max-baseline-commits",
        "artifact-name",
        "faill-on",
    }
    assert "fail-on" in str(next(one for one in caught.value.problems if one.field == "faill-on"))


def test_set__other_keys_of_the_configuration__win_over_the_file(tmp_path) -> None:
    (tmp_path / "eval-gate.yaml").write_text("mustPass: [a]\nallowedRegressions: 2\n")
    said = given(set="  mustPass: refund-*, tag:money\n\nmaxErrors: 2 ")
    policy = load_step_config(read_inputs(said), {}, tmp_path).policy
    assert [str(one) for one in policy.must_pass] == ["refund-*", "tag:money"]
    assert (policy.max_errors, policy.allowed_regressions) == (2, 2)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("mustPas: a", '"mustPas" is not a key that a workflow can set (did you mean "mustPass"?)'),
        ("mustPass", '"mustPass" is not a line such as `key: value`'),
        (": a", '"a" is not a line such as `key: value`'),
        ("mustPass:", "mustPass has no value"),
        ("mustPass: a\nmustPass: b", "mustPass is set twice"),
        ("failOn: never", "failOn has its own input: use `fail-on`"),
        ("history: x", '"history" is not a key that a workflow can set'),
    ],
)
def test_set__line_that_sets_nothing__is_an_error_with_its_number(line, said) -> None:
    with pytest.raises(GateError) as caught:
        read_inputs(given(set=f"maxErrors: 1\n{line}"))
    [problem] = caught.value.problems
    assert problem.field == "set"
    assert problem.message.partition(": ")[2].startswith(said)
    assert problem.message.startswith(f"line {1 + len(line.splitlines())}: ")


def test_set__wrong_value__is_named_as_it_is_written(tmp_path) -> None:
    with pytest.raises(GateError) as caught:
        load_step_config(read_inputs(given(set="maxErrors: many")), {}, tmp_path)
    assert [problem.field for problem in caught.value.problems] == ["set: maxErrors"]


def test_inputs__setting_without_an_input_of_its_own__is_told_where_it_stands() -> None:
    with pytest.raises(GateError) as caught:
        read_inputs(given(must_pass="a"))
    [problem] = caught.value.problems
    assert problem.message == ("unknown input: set `mustPass: …` in the input `set` or in the configuration file")


@pytest.mark.parametrize("name", ["entrypoint", "args"])
def test_inputs__of_the_runner_itself__are_left_alone(name) -> None:
    read_inputs(given(**{name: "x"}))


@pytest.mark.parametrize("name", ["config", "results", "max_baseline_age_days", "max_baseline_commits"])
def test_inputs__path_or_number_that_no_system_takes__is_named(name) -> None:
    bad = "1e300" if name.startswith("max") else f"a.json\nb/{'x' * 256}"
    with pytest.raises(GateError) as caught:
        read_inputs(given(**{name: bad}))
    assert [one.field for one in caught.value.problems] == [name.replace("_", "-")]


def test_config__nothing_said__fails_on_regressions_and_the_file_wins_over_that(tmp_path) -> None:
    assert load_step_config(read_inputs(TOKEN), {}, tmp_path).policy.fail_on == {FailOn.REGRESSIONS}
    (tmp_path / "eval-gate.yaml").write_text("failOn: [failures, stale]\ntimeoutMs: 5\n")
    assert load_step_config(read_inputs(TOKEN), {}, tmp_path).policy.fail_on == {FailOn.FAILURES, FailOn.STALE}
    config = load_step_config(read_inputs(given(fail_on="never", evals="a\nb")), {}, tmp_path)
    assert (config.policy.fail_on, config.limits.timeout_ms) == ({FailOn.NEVER}, 5)
    assert config.evals == ("a", "b")


def test_config__wrong_value__is_named_as_the_input_is(tmp_path) -> None:
    with pytest.raises(GateError) as caught:
        load_step_config(read_inputs(given(timeout_ms="soon", min_pass_rate="90")), {}, tmp_path)
    assert {problem.field for problem in caught.value.problems} == {"timeout-ms", "min-pass-rate"}
