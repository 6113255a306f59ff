"""Flags, environment and file become one configuration, or one list of problems."""

from operator import attrgetter
from pathlib import Path

import pytest

from eval_gate.config.loader import BY_A_PERSON, find_config, load_config
from eval_gate.config.policy import FailOn, Policy
from eval_gate.config.settings import KEYS, RECORDED_RULES, SETTINGS, RunConfig
from eval_gate.errors import GateError
from eval_gate.model.comparison import DEFAULT_SCORE_TOLERANCE
from eval_gate.model.policy import RunPolicy

CONTRACT_EXAMPLE = Path(__file__).parents[2] / "contract/specifications/runner.config.json"


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def problems_of(flags=None, environment=None, file=None) -> list[str]:
    with pytest.raises(GateError) as caught:
        load_config(flags or {}, environment or {}, file, shown_as=file.name if file else None)
    assert caught.value.exit_code == 2
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.contract("config.file")
def test_config__the_contracts_example__is_read_as_it_stands(tmp_path) -> None:
    config = load_config({}, {}, write(tmp_path, "eval-gate.json", CONTRACT_EXAMPLE.read_text()))
    assert config.target.endpoint == "http://localhost:3000/chat"
    assert (config.target.concurrency, config.limits.timeout_ms, config.snapshot_enabled) == (1, 60000, False)
    assert (config.tool_registry_path, config.baseline) == ("tools/tools.exports.ts", None)


@pytest.mark.contract("config.defaults")
def test_config__nothing_given__has_the_contracts_defaults() -> None:
    config = load_config({}, {}, None)
    assert (config.limits.timeout_ms, config.output_dir, config.baseline) == (60_000, "evals/results", None)
    assert (config.target.concurrency, config.limits.trials, config.policy.max_errors) == (None, 1, None)
    assert config.policy == Policy(frozenset({FailOn.FAILURES}), score_tolerance=DEFAULT_SCORE_TOLERANCE)


def test_config__rules__are_typed_where_a_person_gives_them_as_options_or_variables(tmp_path) -> None:
    file = write(tmp_path, "eval-gate.yaml", "maxErrors: 2\n")
    flags, environment = {"failOn": ["never"], "trials": 3, "baseAgentEndpoint": "http://a"}, {"EVAL_GATE_RERUNS": "3"}
    assert load_config(flags, environment, file).policy.typed_settings is None
    made = load_config(flags, environment, file, flag_source=BY_A_PERSON)
    assert made.policy.typed_settings == ("base_agent", "fail_on", "reruns")
    assert set(RECORDED_RULES.values()) <= set(RunPolicy.__struct_fields__) - {"trials", "scores"}


@pytest.mark.contract("config.precedence")
def test_config__all_layers__flag_beats_variable_beats_file_beats_default(tmp_path) -> None:
    file = write(tmp_path, "eval-gate.yaml", "concurrency: 2\ntrials: 2\ntimeoutMs: 2\n")
    environment = {"EVAL_GATE_CONCURRENCY": "3", "EVAL_GATE_TRIALS": "3", "PATH": "/bin", "EVAL_GATE_STRICT": ""}
    config = load_config({"concurrency": 4}, environment, file)
    assert (config.target.concurrency, config.limits.trials, config.limits.timeout_ms) == (4, 3, 2)
    assert config.policy.max_errors is None


@pytest.mark.parametrize(
    ("variable", "text", "name", "value"),
    [
        ("EVAL_GATE_EVALS", "a, b\nc", "evals", ("a", "b", "c")),
        ("EVAL_GATE_EVALS", '["a,b"]', "evals", ("a,b",)),
        ("EVAL_GATE_STRICT", "true", "strict", True),
        ("EVAL_GATE_MIN_PASS_RATE", "0.5", "policy.min_pass_rate", 0.5),
        ("EVAL_GATE_BASELINE", "123", "baseline", "123"),
        ("EVAL_GATE_TARGETS", "targets.yaml", "target.targets", "targets.yaml"),
        ("EVAL_GATE_TARGETS", '[{"name": "a"}]', "target.targets", ({"name": "a"},)),
    ],
)
def test_config__variable__is_read_as_its_kind(variable, text, name, value) -> None:
    assert attrgetter(name)(load_config({}, {variable: text}, None)) == value


def test_config__many_mistakes__are_all_named_with_their_places(tmp_path) -> None:
    file = write(tmp_path, "eval-gate.yaml", "concurency: 3\nevals: x\ntimeoutMs: 0\nfailOn: [1]\n")
    assert problems_of({"concurrency": 0}, {"EVAL_GATE_TRIALS": "many", "EVAL_GATE_TIALS": "1"}, file) == [
        'eval-gate.yaml:1: concurency: unknown key (did you mean "concurrency"?)',
        'EVAL_GATE_TIALS: unknown variable (did you mean "EVAL_GATE_TRIALS"?)',
        'eval-gate.yaml:2: evals: expected a list, got text "x": write ["x"]',
        "--concurrency: must be >= 1, got the number 0",
        "eval-gate.yaml:3: timeoutMs: must be > 0, got the number 0",
        'EVAL_GATE_TRIALS: expected a whole number, got text "many"',
        "eval-gate.yaml:4: failOn[0]: expected text, got the number 1",
    ]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("c.yaml", "- a\n", "c.yaml:1: expected a mapping of keys to values"),
        ("c.yaml", "a: 1\na: 2\n", 'c.yaml:2: the key "a" is already in line 1'),
        ("c.yaml", "a: [1\n", "c.yaml:2: did not find expected ',' or ']'"),
        ("c.yaml", "a: &x [*x]\n", "c.yaml:1: an alias that contains itself"),
    ],
)
def test_config__file_that_is_none__names_file_and_line(tmp_path, name, text, said) -> None:
    assert problems_of(file=write(tmp_path, name, text)) == [said]


def test_config__empty_file__is_the_defaults(tmp_path) -> None:
    assert load_config({}, {}, write(tmp_path, "c.yaml", "# nothing yet\n")) == RunConfig()


def test_config__missing_file__says_how_to_name_one(tmp_path) -> None:
    with pytest.raises(GateError, match="cannot be read"):
        load_config({}, {}, tmp_path / "none.yaml")


def test_find_config__several__nearest_folder_then_first_name(tmp_path) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    write(tmp_path, "eval-gate.yaml", "")
    assert find_config(below) == tmp_path / "eval-gate.yaml"
    write(tmp_path / "a", "eval-gate.json", "{}")
    assert find_config(below) == tmp_path / "a" / "eval-gate.json"
    write(tmp_path / "a", "eval-gate.yml", "")
    assert find_config(below) == tmp_path / "a" / "eval-gate.yml"


def test_settings__each__has_its_own_variable() -> None:
    row = SETTINGS["timeoutMs"]
    assert (row.variable, row.flag, row.input_name) == ("EVAL_GATE_TIMEOUT_MS", "--timeout-ms", "timeout-ms")
    assert len({variable for row in SETTINGS.values() for variable in row.variables}) == len(KEYS)


def test_settings__two_members_of_a_list_are_wrong__both_are_named_in_their_lines(tmp_path) -> None:
    file = write(tmp_path, "eval-gate.yaml", "evals:\n  - a\n  - 1\n  - b\n  - ''\n")
    assert problems_of(file=file) == [
        "eval-gate.yaml:3: evals[1]: expected text, got the number 1",
        "eval-gate.yaml:5: evals[3]: must not be empty",
    ]
