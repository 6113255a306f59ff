"""Whoever writes an old name is told the new one, in the spelling of that place; nothing takes it for the new one."""

from __future__ import annotations

from datetime import date

import pytest
import typer
from typer.testing import CliRunner

from eval_gate import evaluate
from eval_gate.action.inputs import format_input_name, read_inputs
from eval_gate.cli.program import app
from eval_gate.config.loader import load_config
from eval_gate.config.settings import SETTINGS, ResultsFormat
from eval_gate.errors import GateError
from eval_gate.external_results.loader import load_external_results
from eval_gate.external_results.score_rules import ScoreRules
from eval_gate.gate.waivers.waive_command import parse_commands
from eval_gate.gate.waivers.waiver_file import DEFAULT_PATH, load_waivers, parse_waivers
from eval_gate.targets.target_list import parse_targets
from eval_gate.text.renamed import RENAMED, NameKind
from tests.integration.test_integration_run import gate, write_suite

TODAY = date(2026, 11, 21)
SETTING_ROWS = sorted(RENAMED[NameKind.SETTING].items())
COMMANDS = typer.main.get_command(app).commands


def to_flag(key: str) -> str:
    return "--" + "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in key)


def problems(raising) -> str:
    with pytest.raises(GateError) as caught:
        raising()
    return "\n".join([str(caught.value), *map(str, caught.value.problems)])


def usage_error(*arguments: str) -> str:
    done = CliRunner().invoke(app, arguments)
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    return " ".join(done.stderr.split())


def option_rows():
    """Every command with every old option whose new one it has."""
    for command, one in COMMANDS.items():
        known = {name for parameter in one.params for name in parameter.opts}
        for key, new in SETTING_ROWS:
            if SETTINGS[new].flag in known:
                yield command, to_flag(key), SETTINGS[new].flag
        for old, new in RENAMED[NameKind.OPTION].items():
            if new in known and old.partition(" ")[0] in {old, command}:
                yield command, old.rpartition(" ")[2], new


@pytest.mark.parametrize(("command", "old", "new"), [*option_rows()])
def test_option__old_name__is_a_usage_error_with_the_new_one(tmp_path, monkeypatch, command, old, new) -> None:
    monkeypatch.chdir(tmp_path)
    for given in ([old, "3"], [f"{old}=3"]):
        assert f"{old} is now called {new}" in usage_error(command, *given)
    assert [*tmp_path.iterdir()] == []


def test_option__that_is_switched_off__is_named_as_such() -> None:
    assert "--no-rerun-nonce is now called --no-rerun-cache-busting" in usage_error("run", "--no-rerun-nonce")


def test_option__whose_new_name_the_command_lacks__says_so() -> None:
    assert "--confirm is now called --reruns, and compare has no such option" in usage_error(
        "compare", "a", "b", "--confirm", "3"
    )
    assert "now called" not in usage_error("merge", "--history", "3")


@pytest.mark.parametrize(("old", "new"), RENAMED[NameKind.COMMAND].items())
def test_command__old_name__is_a_usage_error_with_the_new_one(old, new) -> None:
    assert f"{old} is now called {new}" in usage_error(old, "x")


def test_command__old_name_in_a_process__runs_nothing(tmp_path) -> None:
    write_suite(tmp_path, 1)
    done = gate(tmp_path, "judge", "evals")
    assert (done.returncode, done.stdout) == (2, "")
    assert "judge is now called check: eval-gate check" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("old", "new"), SETTING_ROWS)
def test_setting__old_name__is_a_problem_with_the_new_one_wherever_it_is_written(tmp_path, old, new) -> None:
    row, keyword = SETTINGS[new], to_flag(old).removeprefix("--").replace("-", "_")
    file = tmp_path / "eval-gate.yaml"
    file.write_text(f"{old}: 1\n")
    assert f'eval-gate.yaml:1: {old}: unknown key (now called "{new}")' in problems(lambda: load_config({}, {}, file))
    variable = f"EVAL_GATE_{keyword.upper()}"
    said = problems(lambda: load_config({}, {variable: "1"}, None))
    assert f'{variable}: unknown variable (now called "{row.variable}")' in said
    said = problems(lambda: evaluate(tmp_path, "http://127.0.0.1:9/chat", **{keyword: 1}))
    assert f'{keyword}: unknown setting (now called "{row.keyword}")' in said
    said = problems(lambda: read_inputs({f"INPUT_{keyword.replace('_', '-').upper()}": "1"}))
    assert f'(now called "{format_input_name(new)}")' in said
    said = problems(lambda: read_inputs({"INPUT_SET": f"{old}: 1"}))
    assert f'(now called "{format_input_name(new).removeprefix("set: ")}")' in said
    assert [one.name for one in tmp_path.iterdir()] == ["eval-gate.yaml"]


def test_setting__that_a_command_does_not_read__is_a_warning_with_the_new_one(tmp_path) -> None:
    (tmp_path / "eval-gate.yaml").write_text("confirm: 3\n")
    assert 'warning: eval-gate.yaml:1: confirm: unknown key (now called "reruns")' in gate(tmp_path, "power").stderr


@pytest.mark.parametrize(("old", "new"), RENAMED[NameKind.INPUT].items())
def test_input__old_name__is_a_problem_with_the_new_one(old, new) -> None:
    assert f'{old}: unknown input (now called "{new}")' in problems(lambda: read_inputs({f"INPUT_{old.upper()}": "x"}))


TARGET_SETTINGS = [
    ("preset: eval-gate", "agentProtocol"),
    ("calledNoneAt: a", "noToolCallsPath"),
    ("called_none_at: a\n    response_path: b", "no_tool_calls_path"),
    ("events: {whole: a}", "fullResponse"),
]


@pytest.mark.parametrize(("line", "new"), TARGET_SETTINGS)
def test_target__old_setting__is_a_problem_with_the_new_one(line, new) -> None:
    text = f"targets:\n  - name: a\n    provider: http\n    url: http://localhost:1\n    {line}\n"
    found = problems(lambda: parse_targets("targets.yaml", text.encode()).resolve_target("a", {}))
    assert f'unknown setting (now called "{new}")' in found


def test_waiver_file__old_keys__are_problems_with_the_new_ones() -> None:
    old = "accepted:\n  - {case: a, reason: r, until: 2026-12-01, by: Kim}\n"
    assert 'accepted: unknown key (now called "waivers")' in problems(
        lambda: parse_waivers(old.encode(), TODAY, shown_as="w.yaml")
    )
    new = old.replace("accepted", "waivers")
    assert 'waivers[0].by: unknown key (now called "owner")' in problems(
        lambda: parse_waivers(new.encode(), TODAY, shown_as="w.yaml")
    )


@pytest.mark.parametrize("command", ["run", "waive"])
def test_waiver_file__under_its_old_name__is_an_error_and_no_waiver_ends_in_silence(tmp_path, command) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / ".eval-gate").mkdir()
    (tmp_path / ".eval-gate" / "accepted.yaml").write_text("accepted: []\n")
    options = {"run": "--agent-endpoint http://127.0.0.1:9", "waive": "a --reason r --until 2026-12-01"}
    done = gate(tmp_path, command, *options[command].split())
    assert done.returncode == 2
    assert f".eval-gate/accepted.yaml is now called {DEFAULT_PATH}" in done.stderr
    assert not (tmp_path / DEFAULT_PATH).exists()


def test_waiver_file__both_names__reads_the_new_one(tmp_path) -> None:
    (tmp_path / ".eval-gate").mkdir()
    for name in ("accepted", "waivers"):
        (tmp_path / f".eval-gate/{name}.yaml").write_text(f"{name}: []\n")
    assert load_waivers(load_config({}, {}, None), tmp_path, TODAY).waivers == ()


def test_comment__old_verb__gets_a_sentence_with_the_new_one() -> None:
    (found,) = parse_commands("/eval-gate accept a -- known")
    assert '"accept" (now called "waive")' in found.message


@pytest.mark.parametrize("name", ["r.jsonl", "r.csv"])
def test_results__old_key__is_a_problem_with_the_new_one(tmp_path, name) -> None:
    lines = {"r.jsonl": '{"id": "a", "status": "error", "blame": "agent_error"}', "r.csv": "id,status,blame\na,error,x"}
    (tmp_path / name).write_text(lines[name])
    said = problems(lambda: load_external_results([str(tmp_path / name)], ResultsFormat.AUTO, ScoreRules()))
    assert 'blame: is not known (now called "error_kind")' in said
