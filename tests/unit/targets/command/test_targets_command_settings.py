"""How a command line target may be described."""

import pytest
from pydantic import ValidationError

from eval_gate.targets.command.settings import CliSettings
from eval_gate.text.sources.validation_errors import describe_error, format_field_path


def settings(**given) -> CliSettings:
    return CliSettings.model_validate({"name": "desk", "provider": "cli", "commandTemplate": "agent {PROMPT}", **given})


def problems(**given) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        settings(**given)
    return [f"{format_field_path(detail['loc'])}: {describe_error(detail)}" for detail in caught.value.errors()]


@pytest.mark.contract("agentv.cli-template-configuration.required-template-fields")
def test_settings__required_template_fields__optional_ones_are_accepted() -> None:
    found = settings(
        filesFormat="--file {path}",
        cwd="./agent",
        timeoutSeconds=30,
        healthcheck={"type": "http", "url": "http://localhost:8000/health", "timeoutSeconds": 5},
        verbose=True,
        keepTempFiles=True,
        workers=4,
        judgeTarget="judge",
        providerBatching=True,
        batchSize=20,
        env={"AGENT_KEY": "k"},
        maxRetries=1,
    )
    assert (found.files_format, found.cwd, found.timeout_seconds, found.verbose) == (
        "--file {path}",
        "./agent",
        30,
        True,
    )
    assert (found.keep_temp_files, found.workers, found.judge_target) == (True, 4, "judge")
    assert (found.provider_batching, found.batch_size, found.max_retries) == (True, 20, 1)
    assert found.env == {"AGENT_KEY": "k"}


def test_settings__defaults__are_those_of_agentv() -> None:
    found = settings()
    assert (found.files_format, found.cwd, found.timeout_seconds, found.healthcheck) == ("{path}", None, None, None)
    assert (found.verbose, found.keep_temp_files, found.provider_batching) == (False, False, False)


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"files_format": "{basename}"}, "files_format", "{basename}"),
        ({"attachments_format": "{basename}"}, "files_format", "{basename}"),
        ({"attachmentsFormat": "{basename}"}, "files_format", "{basename}"),
        ({"timeout_seconds": 2.5}, "timeout_seconds", 2.5),
        ({"cli_verbose": True}, "verbose", True),
        ({"cliVerbose": True}, "verbose", True),
        ({"keep_temp_files": True}, "keep_temp_files", True),
        ({"keep_output_files": True}, "keep_temp_files", True),
        ({"keepOutputFiles": True}, "keep_temp_files", True),
        ({"provider_batching": True}, "provider_batching", True),
    ],
)
def test_settings__every_spelling__is_read(given, field, value) -> None:
    assert getattr(settings(**given), field) == value


def test_settings__template_in_snake_case_or_as_command__is_read() -> None:
    for key in ("command_template", "commandTemplate", "command"):
        assert CliSettings.model_validate({"name": "a", key: "x {PROMPT}"}).command_template == "x {PROMPT}"


@pytest.mark.contract("agentv.cli-template-configuration.required-template-fields")
@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"commandTemplate": ""}, "commandTemplate: must not be empty"),
        ({"commandTemplate": " \n"}, "commandTemplate: must not be empty"),
        ({"commandTemplate": ["agent"]}, "commandTemplate: expected text, got a list"),
        ({"commandTemplate": None}, "commandTemplate: expected text, got null"),
        ({"timeout": 3}, "timeout: unknown key"),
        ({"apiKey": "k"}, "apiKey: unknown key"),
        ({"timeoutSeconds": 0}, "timeoutSeconds: must be > 0.0, got the number 0"),
        ({"timeoutSeconds": "soon"}, "timeoutSeconds: "),
        ({"workers": 0}, "workers: must be >= 1, got the number 0"),
        ({"batchSize": 0}, "batchSize: must be >= 1, got the number 0"),
        ({"verbose": "loud"}, "verbose: "),
        ({"cwd": ""}, "cwd: must not be empty"),
        ({"cwd": "a\0b"}, "cwd: contains a NUL character"),
        ({"env": {"A": "b\0"}}, "env.A: contains a NUL character"),
        ({"filesFormat": "{file}"}, "filesFormat: contains the unknown placeholder {file}; known: {path}, {basename}"),
    ],
)
def test_settings__required_template_fields__what_is_wrong_is_said(given, problem) -> None:
    assert problems(**given)[0].startswith(problem)


@pytest.mark.contract("agentv.cli-template-configuration.required-template-fields")
def test_settings__required_template_fields__template_must_be_there() -> None:
    with pytest.raises(ValidationError) as caught:
        CliSettings.model_validate({"name": "desk", "provider": "cli"})
    assert [(detail["loc"], describe_error(detail)) for detail in caught.value.errors()] == [
        (("commandTemplate",), "is missing")
    ]


def test_settings__name_of_a_variable_that_is_none__is_refused() -> None:
    for name in ("", "A=B", "1A", "A B"):
        [problem] = problems(env={name: "x"})
        assert problem.endswith("must match ^[A-Za-z_][A-Za-z0-9_]*$")


def test_settings__unknown_placeholder__is_refused_before_anything_runs() -> None:
    [problem] = problems(commandTemplate="agent {PROMT}")
    assert problem.startswith("commandTemplate: contains the unknown placeholder {PROMT} (did you mean {PROMPT}?)")


@pytest.mark.contract("agentv.cli-template-configuration.health-check-schema")
@pytest.mark.parametrize(
    "check",
    [
        {"type": "http", "url": "https://agent/health"},
        {"type": "http", "url": "http://agent/health", "timeout_seconds": 3},
        {"type": "command", "commandTemplate": "agent --version"},
        {"type": "command", "command_template": "agent {EVAL_ID}", "cwd": "x", "timeoutSeconds": 1},
    ],
)
def test_settings__health_check_schema__both_kinds_are_accepted(check) -> None:
    assert settings(healthcheck=check).healthcheck.type == check["type"]


@pytest.mark.contract("agentv.cli-template-configuration.health-check-schema")
@pytest.mark.parametrize(
    ("check", "problem"),
    [
        ({"type": "tcp", "port": 80}, "healthcheck.type: expected 'http' or 'command', got text \"tcp\""),
        ({"url": "http://agent"}, "healthcheck.type: is missing"),
        ({"type": "http"}, "healthcheck: a healthcheck of type http needs url"),
        ({"type": "command"}, "healthcheck: a healthcheck of type command needs commandTemplate"),
        ({"type": "http", "url": "http://a", "cwd": "x"}, "healthcheck: a healthcheck of type http has no cwd"),
        (
            {"type": "command", "commandTemplate": "x", "url": "http://a"},
            "healthcheck: a healthcheck of type command has no url",
        ),
        ({"type": "http", "url": "http://a", "retries": 3}, "healthcheck.retries: unknown key"),
        ({"type": "http", "url": "ftp://a"}, "healthcheck.url: the URL is not of the form http(s)://host[:port]/path"),
        (
            {"type": "command", "commandTemplate": "x {NAME}"},
            "healthcheck.commandTemplate: contains the unknown placeholder",
        ),
        ({"type": "command", "commandTemplate": ""}, "healthcheck.commandTemplate: must not be empty"),
        ("http://agent/health", "healthcheck: expected a mapping"),
    ],
)
def test_settings__health_check_schema__anything_else_is_refused(check, problem) -> None:
    assert problems(healthcheck=check)[0].startswith(problem)


def test_settings__json_schema__knows_every_spelling() -> None:
    properties = CliSettings.model_json_schema()["properties"]
    assert {"commandTemplate", "attachmentsFormat", "cliVerbose", "keepOutputFiles"} <= set(properties)


# conversations

LINES = {"commandTemplate": "agent", "conversation": "lines"}
RESUME = {"commandTemplate": "agent {SESSION} {PROMPT}", "resumeCommand": "agent --resume {SESSION} {PROMPT}"}


def test_settings__of_conversations__are_read_in_every_spelling() -> None:
    found = settings(**LINES, conversation_timeout_seconds=300, timeoutSeconds=30)
    assert (found.conversation, found.conversation_timeout_seconds) == ("lines", 300)
    assert settings(**RESUME).resume_command == RESUME["resumeCommand"]
    assert settings(resume_command="a --resume {SESSION} < {PROMPT_FILE}", agentProtocol="claude-code").remembers_turns
    assert (settings().conversation, settings().resume_command) == (None, None)


NO_EFFECT = "lines has one process for all turns, so {} has no effect: remove either"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"conversation": "line"}, "conversation: expected 'lines', got text"),
        (
            LINES | {"commandTemplate": "agent {PROMPT}"},
            "conversation: lines exchanges lines of JSON, so a command must not contain",
        ),
        (
            LINES | {"commandTemplate": "agent < {PROMPT_FILE}"},
            "conversation: lines exchanges lines of JSON, so a command must not contain",
        ),
        (
            LINES | {"commandTemplate": "agent {CONVERSATION_FILE}"},
            "conversation: lines exchanges lines of JSON, so a command must not contain",
        ),
        (
            LINES | {"commandTemplate": "agent > {OUTPUT_FILE}"},
            "conversation: lines exchanges lines of JSON, so a command must not contain",
        ),
        (LINES | {"agentProtocol": "codex"}, f"conversation: {NO_EFFECT.format('agentProtocol')}"),
        (LINES | {"providerBatching": True}, f"conversation: {NO_EFFECT.format('providerBatching')}"),
        (RESUME | {"conversation": "lines"}, f"conversation: {NO_EFFECT.format('resumeCommand')}"),
        (LINES | {"responseFormat": "ndjson"}, "conversation: lines reads one line of JSON for each turn, so"),
        (LINES | {"responseFormat": "text"}, "conversation: lines reads one line of JSON for each turn, so"),
        ({"conversationTimeoutSeconds": 5}, "conversationTimeoutSeconds: has no effect without `conversation: lines`"),
        (LINES | {"conversationTimeoutSeconds": 0}, "conversationTimeoutSeconds: must be > 0.0"),
        (RESUME | {"resumeCommand": "agent --continue {PROMPT}"}, "resumeCommand: needs {SESSION}: without it, a turn"),
        (
            RESUME | {"resumeCommand": "agent {SESSION}"},
            "resumeCommand: needs the new message: {PROMPT}, {PROMPT_FILE} or",
        ),
        (RESUME | {"resumeCommand": "agent {SESION}"}, "resumeCommand: contains the unknown placeholder {SESION} (did"),
        (RESUME | {"resumeCommand": " "}, "resumeCommand: must not be empty"),
        (
            RESUME | {"commandTemplate": "agent {PROMPT}"},
            "resumeCommand: needs a commandTemplate with {SESSION} too, or",
        ),
        (RESUME | {"providerBatching": True}, "resumeCommand: has no effect with providerBatching"),
    ],
)
def test_settings__of_conversations__what_excludes_each_other_is_said_at_the_setting(given, problem) -> None:
    assert problems(**given)[0].startswith(problem)


def test_remarks__program_that_reads_lines__gets_its_case_there() -> None:
    assert settings(**LINES).remarks == ()
    assert settings(commandTemplate="agent {CONVERSATION_FILE}").remarks == ()
    assert settings(commandTemplate="agent").remarks != ()
