"""What is wrong with settings is said at once, each mistake where its author wrote it and in their spelling."""

import json

import pytest

from tests.integration.test_integration_run import gate, write_suite
from tests.support.agents import agent, ok

THREE_MISTAKES = """\
evals: [evals]
failOn: [regressions, sometimes]
minPassRate: 90
reports:
  - html
  - mdd=report.md
"""
FAIL_ON = (
    'eval-gate.yaml:2: failOn[1]: "sometimes" is not known; allowed: failures, regressions, never, stale, flaky,'
    " removed, changed, new-failures"
)
OTHERS = [
    "eval-gate.yaml:3: minPassRate: must be <= 1.0, got the number 90",
    (
        'eval-gate.yaml:6: reports[1]: "mdd=report.md" is not known (did you mean "md"?); write FORMAT or FORMAT=FILE,'
        " where FORMAT is one of md, html, junit, console, json"
    ),
]


def problems(stderr: str) -> list[str]:
    """The lines of the one error's problems."""
    assert stderr.count("error[") == 1, stderr
    head, *lines = stderr.splitlines()
    assert head == "error[invalid-configuration]: the configuration is not valid"
    return [line.strip().removeprefix("- ") for line in lines if not line.strip().startswith("hint:")]


@pytest.mark.parametrize("command", ["run", "validate"])
def test_settings__three_mistakes_in_a_file__are_one_error_that_names_all(tmp_path, command) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / "eval-gate.yaml").write_text(THREE_MISTAKES)
    done = gate(tmp_path, command)
    assert (done.returncode, done.stdout) == (2, "")
    assert sorted(problems(done.stderr)) == [FAIL_ON, *OTHERS]


def test_settings__mistakes_in_file_flags_and_variables__each_in_its_authors_spelling(tmp_path) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / "eval-gate.yaml").write_text("exports: [agentv]\n")
    done = gate(tmp_path, "run", "--fail-on", "regresion", "--trials", "0", EVAL_GATE_REPORTS="md,pdf")
    assert done.returncode == 2
    said = problems(done.stderr)
    assert [line.split(" is ")[0].split(" must ")[0].split(" has ")[0] for line in sorted(said)] == [
        '--fail-on[0]: "regresion"',
        "--trials:",
        'EVAL_GATE_REPORTS[1]: "pdf"',
        'eval-gate.yaml:1: exports[0]: "agentv"',
    ]


def test_settings__outputs_without_their_file__are_told_that_it_is_missing(tmp_path) -> None:
    write_suite(tmp_path, 1)
    done = gate(
        tmp_path, "run", "--export", "agentv", "--export", "agentv=", "--report", "junit=", "--report", "agentv"
    )
    assert done.returncode == 2
    assert sorted(problems(done.stderr)) == [
        '--export[0]: "agentv" has no file: write agentv=FILE',
        '--export[1]: "agentv=" has no file: write agentv=FILE',
        '--report[0]: "junit=" has no file: write junit=FILE, or junit for a file in the run\'s folder',
        '--report[1]: "agentv" is an export, not a report: use `exports` (--export)',
    ]


def test_settings__never_with_another_word__is_said_of_the_key(tmp_path) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / "eval-gate.yaml").write_text("failOn: [never, stale]\n")
    done = gate(tmp_path, "validate")
    assert done.returncode == 2
    assert "eval-gate.yaml:1: failOn: never cannot be combined with other conditions" in done.stderr


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (
            "agentProtocol: lang-graph",
            'agentProtocol: expected \'eval-gate\', … got text "lang-graph" (did you mean "langgraph"?)',
        ),
        ("rubric: alwys", 'rubric: expected \'always\', … got text "alwys" (did you mean "always"?)'),
        (
            "keepResponses: no",
            "keepResponses: expected 'all', … got false; YAML reads an unquoted `no` this way: put it in quotes",
        ),
        ("failOn: [No]", "failOn[0]: expected text, got false; YAML reads an unquoted `No` this way: put it in quotes"),
        ("strict: nope", 'strict: expected true or false, got text "nope"'),
        ("rerunBudget: 3.5", "rerunBudget: expected text or a whole number, got the number 3.5"),
        ("targets: [weather]", 'targets[0]: expected a mapping, got text "weather"'),
        ("evals: [3]", "evals[0]: expected text, got the number 3"),
    ],
    ids=lambda text: text.split(":")[0],
)
def test_settings__wrong_choice_or_kind__is_said_once_as_its_author_wrote_it(tmp_path, written, said) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / "eval-gate.yaml").write_text(f"trials: 1\n{written}\n")
    done = gate(tmp_path, "run", "--agent-endpoint", "http://localhost:9")
    (found,) = problems(done.stderr)
    begin, end = f"eval-gate.yaml:2: {said}".split(" … ") if " … " in said else (f"eval-gate.yaml:2: {said}", "")
    assert (done.returncode, found.startswith(begin), found.endswith(end or begin)) == (2, True, True), found


def test_settings__unknown_preset_by_flag_and_variable__is_said_with_the_one_that_is_near(tmp_path) -> None:
    write_suite(tmp_path, 1)
    done = gate(tmp_path, "run", "--agent-endpoint", "http://localhost:9", "--agent-protocol", "openaichat")
    assert (done.returncode, len(problems(done.stderr))) == (2, 1)
    assert problems(done.stderr)[0].startswith("--agent-protocol: expected 'eval-gate', ")
    assert problems(done.stderr)[0].endswith('got text "openaichat" (did you mean "openai-chat"?)')
    done = gate(tmp_path, "validate", EVAL_GATE_AGENT_PROTOCOL="a2a-0.4")
    assert problems(done.stderr)[0].startswith("EVAL_GATE_AGENT_PROTOCOL: expected ")


def test_settings__off_without_quotes__is_the_word_although_yaml_takes_it_for_false(tmp_path) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / "eval-gate.yaml").write_text("recording: off\n")
    with agent(ok) as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url)
    assert (done.returncode, done.stderr.count("error[")) == (0, 0), done.stderr


TARGETS = """\
targets:
  - name: weather
    provider: http
    url: http://localhost:9
    wait_for: soon
    method: PSOT
    retryable_status_codes: [teapot]
    max_response_bytes: 1.5
"""


def test_settings__wrong_kinds_in_a_targets_file__are_said_in_our_words(tmp_path) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / "evals" / "targets.yaml").write_text(TARGETS)
    done = gate(tmp_path, "run", "--targets", "evals/targets.yaml")
    assert done.returncode == 2
    lines = [line.strip() for line in done.stderr.splitlines()[1:-1]]
    assert lines == [
        (
            "evals/targets.yaml:6: targets[weather].method: expected 'POST', 'GET', 'PUT', 'PATCH' or 'DELETE',"
            ' got text "PSOT" (did you mean "POST"?)'
        ),
        'evals/targets.yaml:5: targets[weather].wait_for: expected a number, got text "soon"',
        (
            "evals/targets.yaml:7: targets[weather].retryable_status_codes[0]: expected a whole number,"
            ' got text "teapot"'
        ),
        "evals/targets.yaml:8: targets[weather].max_response_bytes: expected a whole number, got the number 1.5",
    ]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("url: http://x/, method: psot", 'method: expected \'POST\', … got text "psot" (did you mean "POST"?)'),
        ("provider: HTTTP", 'provider: the provider "HTTTP" is not known (did you mean "http"?)'),
        ("url: http://x/, workers: true", "workers: expected a whole number, got true"),
        ("url: http://x/, wait_for: yes", "wait_for: expected a number, got true"),
        ("url: http://x/, poll: {intervalMs: true}", "poll.intervalMs: expected a number, got true"),
        ("provider: codex, max_workers: 1, workers: false", "workers: expected a whole number, got false"),
    ],
    ids=lambda text: text.split(": ")[0],
)
def test_settings__wrong_value_of_a_target__is_said_as_it_was_written(tmp_path, written, said) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / "targets.yaml").write_text(f"targets:\n- {{name: a, {written}}}\n")
    done = gate(tmp_path, "validate", "--targets", "targets.yaml")
    begin, _, end = said.partition(" … ")
    (found,) = (line for line in done.stderr.splitlines() if f"targets.yaml:2: targets[a].{begin}" in line)
    assert (done.returncode, found.endswith(end or begin)) == (2, True), found


@pytest.mark.parametrize(
    ("given", "said"),
    [("2", "must be <= 1.0, got the number 2"), ("1.50", "must be <= 1.0, got the number 1.5")],
)
def test_settings__number_of_a_flag_that_is_too_large__is_said_as_it_was_given(tmp_path, given, said) -> None:
    write_suite(tmp_path, 1)
    done = gate(tmp_path, "run", "--agent-endpoint", "http://localhost:9", "--min-pass-rate", given)
    assert problems(done.stderr) == [f"--min-pass-rate: {said}"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["init", "--format", "agntv"], "'--format': 'agntv' is not one of 'tool-forge', 'agentv', 'agent-evals'"),
        (["agent-evals", "--all", "--report", "bth"], "'--report': 'bth' is not one of 'json', 'md', 'both'"),
        (["calibrate", "x.csv", "--min-kappa", "abc"], "'--min-kappa': expected a number, got text \"abc\""),
        (["calibrate", "x.csv", "--min-kappa", "3"], "'--min-kappa': must be <= 1.0, got the number 3"),
        (["power", "--cases", "many"], "'--cases': expected a whole number, got text \"many\""),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_settings__option_of_one_command_is_wrong__is_said_in_the_words_of_the_configuration(
    tmp_path, arguments, said
) -> None:
    done = gate(tmp_path, *arguments)
    assert (done.returncode, done.stderr.splitlines()[-1].rstrip(".")) == (2, f"Error: Invalid value for {said}")


INLINE = """\
targets:
  - name: weather
    provider: htp
  - name: desk
    url: localhost:9
    timout: 5
    headers: {Authorization: "${{ NOT_SET }}"}
"""


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ("weather", ['eval-gate.yaml:3: targets[weather].provider: the provider "htp" is not known']),
        (
            "desk",
            [
                "eval-gate.yaml:5: targets[desk].url: the URL does not begin with http:// or https://",
                "eval-gate.yaml:6: targets[desk].timout: unknown setting",
                "eval-gate.yaml:7: targets[desk].headers.Authorization: the variable NOT_SET is not set",
            ],
        ),
    ],
)
@pytest.mark.parametrize("command", ["run", "validate"])
def test_settings__targets_in_the_configuration__are_said_by_its_lines(tmp_path, command, chosen, said) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / "eval-gate.yaml").write_text(INLINE)
    done = gate(tmp_path, command, "--target", chosen)
    assert done.returncode == 2
    lines = done.stderr.replace(f"{tmp_path}/", "").splitlines()
    places = sorted(line[line.index("eval-gate.yaml") :] for line in lines if "eval-gate.yaml" in line)
    assert [place.startswith(begin) for place, begin in zip(places, said, strict=True)] == [True] * len(said), places


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("agentEndpoint: localhost/chat", "agentEndpoint: the URL does not begin with http:// or https://"),
        ("agentEndpoint: ftp://me:pw@x/", "agentEndpoint: the URL is not of the form http(s)://host[:port]/path"),
        ("agentEndpoint: http://x/{{cas}}", 'agentEndpoint: unknown placeholder "cas"'),
        ("model: 'openai:'", "model: must not be empty"),
        ("provider: opnai", "provider: expected 'azure', 'anthropic', "),
        ("targets: none.yaml", "targets: none.yaml cannot be read: No such file or directory"),
        ("targets: [{name: a, url: 'http://x/'}]\ntarget: b", 'target: unknown target "b"'),
    ],
)
@pytest.mark.parametrize("command", ["run", "validate"])
def test_settings__who_is_asked_is_none__is_said_with_file_line_and_key(tmp_path, command, written, said) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / "eval-gate.yaml").write_text(f"trials: 1\n{written}\n")
    done = gate(tmp_path, command)
    assert done.returncode == 2
    key, message = said.split(": ", 1)
    line = 2 + written[: written.index(f"{key}:")].count("\n")
    # below an error stands its place; `validate` begins a problem with it, as editors read it
    assert any(one.strip().startswith(f"eval-gate.yaml:{line}: {key}") for one in done.stderr.splitlines())
    assert message in done.stderr
    assert "pw@" not in done.stderr


def test_settings__address_by_flag_or_variable__is_said_as_it_was_given(tmp_path) -> None:
    write_suite(tmp_path, 1)
    said = ": the URL does not begin with http:// or https://\n"
    assert f"  --agent-endpoint{said}" in gate(tmp_path, "run", "--agent-endpoint", "x").stderr
    assert f"  EVAL_GATE_AGENT_ENDPOINT{said}" in gate(tmp_path, "run", EVAL_GATE_AGENT_ENDPOINT="x").stderr
    control = gate(tmp_path, "run", "--agent-endpoint", "http://x/", "--base-agent-endpoint", "x")
    assert f"  --base-agent-endpoint{said}" in control.stderr


def test_settings__file_names_two_targets__is_an_error_with_both_places(tmp_path) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / "eval-gate.yaml").write_text("trials: 1\nagentEndpoint: http://x/\nmodel: openai:m\n")
    done = gate(tmp_path, "run")
    assert done.returncode == 2
    first, endpoint, model, _ = done.stderr.splitlines()
    assert first == "error[conflicting-targets]: agentEndpoint and model are both given, but a run evaluates one target"
    assert endpoint == "  eval-gate.yaml:2: agentEndpoint: is given here"
    assert model == "  eval-gate.yaml:3: model: is given here"


@pytest.mark.parametrize(
    ("flags", "variables"),
    [
        (("--target", "desk"), {}),
        ((), {"EVAL_GATE_TARGET": "desk"}),
        (("--target", "desk"), {"EVAL_GATE_MODEL": "x:y"}),
    ],
)
def test_settings__target_on_the_command_line__replaces_the_endpoint_of_the_file(tmp_path, flags, variables) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / "eval-gate.yaml").write_text("agentEndpoint: http://x/\nagentProtocol: langgraph\n")
    targets = "- {name: desk, provider: mock, response: hello}\n- {name: lab, provider: mock, response: hello}\n"
    (tmp_path / "targets.yaml").write_text(targets)
    done = gate(tmp_path, "run", *flags, **variables)
    assert "error[" not in done.stderr
    (result,) = tmp_path.glob("evals/results/*/run.json")
    assert "desk" in json.dumps(json.loads(result.read_text())["suites"][0])


MISSPELT = {
    "flag": (["--model", "opneai:gpt-4"], {}, "unknown model provider"),
    "other": (["--model", "grok:llama-3"], {}, "unknown model provider"),
    "configuration": ([], {"eval-gate.yaml": "trials: 1\nmodel: opneai:gpt-4\n"}, "eval-gate.yaml:2: model"),
    "targets file": (
        [],
        {"targets.yaml": "targets:\n- {name: a, provider: model, model: 'opneai:gpt-4'}\n"},
        "targets.yaml:2: targets[a]",
    ),
    "judge": (["--agent-endpoint", "http://x/", "--judge", "opneai:gpt-4"], {}, "unknown judge"),
    "judge of a file": (
        ["--agent-endpoint", "http://x/"],
        {"eval-gate.yaml": "judge: opneai:gpt-4\n"},
        "eval-gate.yaml:1: judge",
    ),
    "judge of a target": (
        [],
        {"targets.yaml": "targets: [{name: a, url: 'http://x/', judge_target: 'opneai:gpt-4'}]\n"},
        "unknown target",
    ),
    "case": ([], {"suite.yaml": "execution: {target: 'opneai:gpt-4'}\n"}, "suite.yaml:3: execution.target"),
}
JUDGED = """\
evalcases:
  - id: one
    expected_outcome: Says so.
    input_messages: [{role: user, content: Is it so?}]
    execution: {evaluators: [{name: judge, type: llm_judge}]}
"""


@pytest.mark.parametrize("where", MISSPELT)
def test_settings__provider_of_a_model_is_misspelt__is_told_the_one_that_is_near(tmp_path, where) -> None:
    arguments, files, said = MISSPELT[where]
    for name, text in ({"suite.yaml": ""} | files).items():
        (tmp_path / name).write_text(text + (JUDGED if name == "suite.yaml" else ""))
    done = gate(tmp_path, "run", "suite.yaml", *arguments)
    assert done.returncode == 2
    meant = '(did you mean "groq:llama-3"?)' if where == "other" else '(did you mean "openai:gpt-4"?)'
    assert meant in done.stderr
    assert said in done.stderr
    assert "API_KEY" not in done.stderr


@pytest.mark.slow
def test_settings__provider_in_the_configuration_is_misspelt__is_a_problem_of_validate_and_no_note(tmp_path) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / "eval-gate.yaml").write_text("trials: 1\nmodel: opneai:gpt-4\n")
    done = gate(tmp_path, "validate")
    assert done.returncode == 2
    problem = 'eval-gate.yaml:2: model: unknown model provider "opneai" (did you mean "openai:gpt-4"?)'
    assert problem in done.stderr
    assert "note:" not in done.stderr


@pytest.mark.parametrize("command", ["run", "validate"])
def test_settings__file_lies_above_the_working_directory__is_said_from_there(tmp_path, command) -> None:
    deep = tmp_path / "sub" / "deep"
    deep.mkdir(parents=True)
    (tmp_path / "sub" / "eval-gate.yaml").write_text("evals: [evals]\nfailOn: [never]\nbogus: 1\n")
    done = gate(deep, command)
    assert (done.returncode, str(tmp_path) in done.stderr) == (2, False), done.stderr
    assert "\n  ../eval-gate.yaml:3: bogus: unknown key\n" in done.stderr


def test_settings__list_of_targets_above_the_working_directory__is_said_from_there(tmp_path) -> None:
    """AgentV's look-up goes up to the root of the repository."""
    deep = tmp_path / "sub" / "deep"
    (tmp_path / ".git").mkdir()
    (deep / "evals").mkdir(parents=True)
    case = {"id": "a", "input": {"message": "x"}, "expect": {"responseContains": ["a"]}}
    (deep / "evals" / "a.golden.json").write_text(json.dumps({"cases": [case]}))
    (tmp_path / "sub" / "targets.yaml").write_text("targets:\n  - name: default\n    provider: htp\n")
    done = gate(deep, "run")
    assert (done.returncode, str(tmp_path) in done.stderr) == (2, False), done.stderr
    assert "../targets.yaml:3: " in done.stderr
