"""What the specifications give as an example works as it stands, and no name that users rest on has gone.

`specifications/` holds the examples of the three specifications, with every field of their pages, and the
public names.
"""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest
import typer
import yaml

from eval_gate.action.inputs import INPUTS, OUTPUTS, read_inputs
from eval_gate.cli.program import app
from eval_gate.cli.repository.schema import KINDS, build_document_schema
from eval_gate.config.loader import load_config
from eval_gate.config.outputs import FORMATS
from eval_gate.config.policy import FailOn
from eval_gate.config.preset import PresetName
from eval_gate.config.settings import KEYS, SETTINGS, ResultsFormat
from eval_gate.errors import ExitCode, GateError
from eval_gate.model.comparison import CaseClass
from eval_gate.targets.http.settings import HttpSettings
from eval_gate.targets.settings import list_names_at
from eval_gate.targets.target_list import parse_targets
from tests.integration.test_integration_run import record, write_suite
from tests.support.agents import agent
from tests.support.program import gate

ROOT = Path(__file__).parents[2]
EXAMPLES = Path(__file__).with_name("specifications")
RUNNER_CONFIG = json.loads((EXAMPLES / "runner.config.json").read_text())
NAMES = tomllib.loads((EXAMPLES / "public_names.toml").read_text())
EVAL_FILES = [
    "get_weather.golden.json",
    "get_weather.labeled.json",
    "get_weather.regression.json",
    "synthesis.rubric.json",
    "agent-evals-suite.json",
    "agentv.eval.yaml",
]
AGENTV_TARGETS = [one["name"] for one in yaml.safe_load((EXAMPLES / "agentv.targets.yaml").read_text())["targets"]]
KNOWN_WORDS = {
    "schema_kinds": KINDS,
    "report_formats": FORMATS,
    "results_formats": ResultsFormat,
    "agent_protocols": PresetName,
    "fail_on": FailOn,
    "case_classes": CaseClass,
    "exit_codes": ExitCode,
}
JUDGED = ["--targets", "agentv.targets.yaml", "--target", "azure", "--judge", "azure"]
UNKNOWN_AFTER = ["noToolErrors", "difficulty", "createdAt", "referenceData", "caseSensitive", "conversation_id"]
"""A field of each eval file, which the test of unknown ones misspells."""
VARIABLES = {"RESOURCE": "r", "DEPLOYMENT": "d", "KEY": "a-key-of-some-length", "MODEL": "m"}
OTHER_KEYS = NAMES["specification_keys"].items()
COMMANDS = typer.main.get_command(app).commands


@pytest.fixture
def examples(tmp_path) -> Path:
    """A folder with all examples, and the files that they name."""
    folder = tmp_path / "examples"
    shutil.copytree(EXAMPLES, folder)
    (folder / "evals").mkdir()
    (folder / "evals/seed-manifest.json").write_text('{"weather": {"city": "Tokyo"}}')
    (folder / "tools").mkdir()
    (folder / "tools/tools.exports.ts").write_text("export { getWeatherTool } from './get-weather.tool';\n")
    (folder / "tools/get-weather.tool.ts").write_text(
        "export const getWeatherTool = { name: 'get_weather', description: 'Weather of a city.', version: '1.0.0' };\n"
    )
    return folder


def problems_of(file: Path, **environment: str) -> list[str]:
    with pytest.raises(GateError) as caught:
        load_config({}, environment, file)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.contract("config.file")
def test_runner_config__word_for_word__runs_and_compares_with_the_run_that_it_names(examples) -> None:
    write_suite(examples, 2)
    with agent() as running:
        config = RUNNER_CONFIG | {"agentEndpoint": running.url}
        file = examples / "runner.config.json"
        file.write_text(json.dumps(config, indent=2))
        arguments = ["run", "--config", file.name, "evals/weather.golden.json"]
        first = gate(examples, *arguments)
        before = record(examples)
        file.write_text(json.dumps(config | {"baselineRunId": before["runId"]}, indent=2))
        second = gate(examples, *arguments)
    assert (first.returncode, second.returncode) == (0, 0)
    assert "baselineRunId" not in first.stderr + second.stderr
    assert (before["baselineRunId"], record(examples)["baselineRunId"]) == (None, before["runId"])


@pytest.mark.contract("config.file")
@pytest.mark.parametrize("name", ["eval-gate.json", "eval-gate.yaml"])
def test_runner_config__under_the_name_that_is_found__validates_in_strict_mode(examples, name) -> None:
    (examples / name).write_text(json.dumps(RUNNER_CONFIG, indent=2))
    done = gate(examples, "validate", "--strict", "get_weather.golden.json")
    assert (done.returncode, [line for line in done.stderr.splitlines() if "config" in line]) == (0, [])


@pytest.mark.contract("config.names")
@pytest.mark.parametrize(("other", "key"), OTHER_KEYS)
def test_specification_key__beside_ours__counts_alone_equal_and_null_and_never_against_it(tmp_path, other, key) -> None:
    one, two = (3, 4) if key == "concurrency" else ("one.txt", "two.txt")
    file = tmp_path / "eval-gate.yaml"

    def read(text: str, **environment: str) -> object:
        file.write_text(text)
        config = load_config({}, environment, file)
        return {
            "baseline": config.baseline,
            "concurrency": config.target.concurrency,
            "systemPromptPath": config.target.system_prompt,
        }[key]

    assert read(f"{other}: {one}") == one
    assert read(f"{other}: {one}\n{key}: {one}") == one
    assert read(f"{other}: {one}\n{key}: null") == read(f"{key}: {one}\n{other}: null") == one
    assert read(f"{other}: null") is None
    row = SETTINGS[key]
    assert read(f"{other}: {one}", **{row.variables[-1]: str(two)}) == two, "a variable wins over the file"
    both = f"strict: false\n{key}: {one}\n{other}: {two}\n"
    file.write_text(both)
    assert problems_of(file) == [
        f"{file}:3: {other}: differs from {key} in line 2; both name the same setting: remove one"
    ]
    file.write_text("strict: false\n")
    said = problems_of(file, **{row.variables[0]: str(one), row.variables[1]: str(two)})
    assert said == [f"{row.variables[1]}: differs from {row.variables[0]}; both name the same setting: remove one"]


@pytest.mark.contract("config.names")
@pytest.mark.parametrize(("other", "key"), OTHER_KEYS)
def test_specification_key__with_a_wrong_value_or_misspelt__is_named_as_it_is_written(tmp_path, other, key) -> None:
    file = tmp_path / "eval-gate.yaml"
    file.write_text(f"{other}: [1]\n{other}s: 1\n")
    unknown, wrong = problems_of(file)
    assert unknown == f'{file}:2: {other}s: unknown key (did you mean "{other}"?)'
    assert wrong.startswith(f"{file}:1: {other}: expected ")


@pytest.mark.contract("config.names")
@pytest.mark.parametrize(("other", "key"), OTHER_KEYS)
def test_specification_key__is_in_the_schema_the_reference_and_the_input_set(other, key) -> None:
    properties = build_document_schema("config")["properties"]
    assert properties[other] == properties[key]
    assert f"`{other}`" in (ROOT / "docs/cli.md").read_text()
    with pytest.raises(GateError) as caught:
        read_inputs({"INPUT_SET": f"{other}: 1\n{key}: 1"})
    first, *_ = (str(problem) for problem in caught.value.problems)
    assert key in first


def test_specification_keys__of_the_table__are_those_of_the_settings() -> None:
    assert {name: key for name, key in KEYS.items() if name != key} == NAMES["specification_keys"]


@pytest.mark.contract("file.examples")
def test_eval_files__with_every_field_of_their_pages__have_neither_problem_nor_warning(examples) -> None:
    done = gate(examples, "validate", "--strict", *JUDGED, *EVAL_FILES, **VARIABLES)
    assert (done.returncode, "10 cases in 6 suites: 0 problems, 0 warnings" in done.stdout) == (0, True), done
    for name in EVAL_FILES:
        assert f"{name}: " in done.stdout


@pytest.mark.contract("file.examples")
def test_eval_files__with_an_unknown_field__are_noticed_in_each_format(examples) -> None:
    for name, field in zip(EVAL_FILES, UNKNOWN_AFTER, strict=True):
        file = examples / name
        text = file.read_text()
        assert field in text
        file.write_text(text.replace(field, f"{field}X", 1))
    done = gate(examples, "validate", "--strict", *JUDGED, *EVAL_FILES, **VARIABLES)
    assert done.returncode == 2
    for name, field in zip(EVAL_FILES, UNKNOWN_AFTER, strict=True):
        assert re.search(rf"{re.escape(name)}:.*{field}X", done.stderr), done.stderr


@pytest.mark.contract("file.examples")
def test_agentv_targets__with_the_keys_of_the_specification__are_read() -> None:
    found = parse_targets("targets.yaml", (EXAMPLES / "agentv.targets.yaml").read_bytes())
    for name in AGENTV_TARGETS:
        assert found.resolve_target(name, VARIABLES).settings.name == name


def list_flags(command: str) -> set[str]:
    return {flag for parameter in COMMANDS[command].params for flag in (*parameter.opts, *parameter.secondary_opts)}


def test_options__of_run__are_there_and_each_key_means_the_same_setting() -> None:
    for flag, key in NAMES["options"].items():
        assert flag == "PATHS" or flag in list_flags("run")
        assert not key or flag in {SETTINGS[KEYS[key]].flag, *SETTINGS[KEYS[key]].other_flags}


def test_commands__are_there_with_their_options_and_both_verbosities() -> None:
    for command in NAMES["commands"]:
        assert {"--verbose", "-v", "--quiet", "-q", *NAMES["command_options"].get(command, [])} <= list_flags(command)


def test_action__has_every_input_and_output() -> None:
    assert {*NAMES["action"]["inputs"]} <= {one.name for one in INPUTS}
    assert {*NAMES["action"]["outputs"]} <= {one.name for one in OUTPUTS}


def test_words__of_each_list__are_known() -> None:
    for name, known in KNOWN_WORDS.items():
        assert {*NAMES[name]} <= {*known}, name


def test_run_result__has_every_key_and_value() -> None:
    schema = build_document_schema("run")
    objects = {**schema["$defs"], "RunResult": schema}
    for name, keys in NAMES["result"].items():
        assert {*keys} <= objects[name]["properties"].keys(), name
    for name, values in NAMES["values"].items():
        assert {*values} <= {*objects[name]["enum"]}, name


def test_http_target__has_every_key() -> None:
    assert {*NAMES["target"]["http"]} <= {*list_names_at(HttpSettings, ())}
