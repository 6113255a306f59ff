"""What the runner tells a step, complete or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval_gate.errors import GateError
from eval_gate.github.workflow_environment import read_workflow_environment

NEEDED = {
    "GITHUB_REPOSITORY": "acme/bot",
    "GITHUB_EVENT_NAME": "push",
    "GITHUB_EVENT_PATH": "/github/workflow/event.json",
    "GITHUB_API_URL": "https://api.github.com",
    "GITHUB_RUN_ID": "42",
}
FULL = NEEDED | {
    "GITHUB_WORKSPACE": "/github/workspace",
    "GITHUB_SERVER_URL": "https://github.com/",
    "GITHUB_RUN_ATTEMPT": "3",
    "GITHUB_WORKFLOW_REF": "acme/bot/.github/workflows/evals.yml@refs/pull/7/merge",
    "GITHUB_JOB": "gate",
    "GITHUB_SHA": "1" * 40,
    "GITHUB_REF": "refs/heads/main",
    "GITHUB_ACTOR": "octocat",
    "GITHUB_OUTPUT": "/github/file_commands/output",
    "GITHUB_STEP_SUMMARY": "/github/file_commands/summary",
    "RUNNER_TEMP": "/github/runner_temp",
    "ACTIONS_RUNTIME_TOKEN": "jwt",
    "ACTIONS_RESULTS_URL": "https://results.test/",
    "GITHUB_RETENTION_DAYS": "30",
}


def test_environment__of_a_container_action__is_read_whole() -> None:
    found = read_workflow_environment(FULL)
    assert (found.workspace, found.event_path) == (Path("/github/workspace"), Path("/github/workflow/event.json"))
    assert (found.run_id, found.run_attempt, found.retention_days) == (42, 3, 30)
    assert found.workflow_path == ".github/workflows/evals.yml"
    assert found.run_url == "https://github.com/acme/bot/actions/runs/42/attempts/3"
    assert (found.output_file, found.temporary_folder) == (
        Path("/github/file_commands/output"),
        Path("/github/runner_temp"),
    )
    assert (found.runtime_token, found.results_url) == ("jwt", "https://results.test/")


@pytest.mark.parametrize("empty", [{}, dict.fromkeys(set(FULL) - set(NEEDED), "")], ids=["missing", "empty"])
def test_environment__only_what_is_needed__the_rest_is_unknown(empty) -> None:
    found = read_workflow_environment(NEEDED | empty)
    assert (found.output_file, found.summary_file, found.temporary_folder) == (None, None, None)
    assert (found.runtime_token, found.results_url, found.retention_days) == (None, None, None)
    assert (found.run_attempt, found.workflow_path, found.sha) == (1, "", "")
    assert found.workspace == Path.cwd()


def test_environment__server_is_not_named__is_github_com() -> None:
    assert read_workflow_environment(NEEDED | {"GITHUB_SERVER_URL": ""}).run_url.startswith(
        "https://github.com/acme/bot/"
    )


@pytest.mark.parametrize("name", NEEDED)
@pytest.mark.parametrize("value", [None, ""])
def test_environment__without_what_is_needed__names_it(name, value) -> None:
    variables = {**FULL, name: value} if value is not None else {key: FULL[key] for key in FULL if key != name}
    with pytest.raises(GateError) as caught:
        read_workflow_environment(variables)
    assert (caught.value.code, int(caught.value.exit_code)) == ("not-in-a-workflow", 2)
    assert f": {name} is not set" in caught.value.message


def test_environment__nothing_at_all__names_everything_at_once() -> None:
    with pytest.raises(GateError) as caught:
        read_workflow_environment({})
    assert all(name in caught.value.message for name in NEEDED)


@pytest.mark.parametrize("text", ["", "x", "-1", "3.5", " 3", "0x10"])
def test_environment__attempt_that_is_no_number__is_the_first(text) -> None:
    assert read_workflow_environment(FULL | {"GITHUB_RUN_ATTEMPT": text}).run_attempt == 1


@pytest.mark.parametrize(
    ("ref", "path"),
    [
        ("acme/bot/.github/workflows/evals.yml@refs/heads/main", ".github/workflows/evals.yml"),
        ("acme/bot/.github/workflows/evals.yml@refs/heads/a@b", ".github/workflows/evals.yml"),
        ("acme/shared/.github/workflows/evals.yml@v1", "acme/shared/.github/workflows/evals.yml"),
        ("", ""),
    ],
)
def test_environment__workflow__is_its_path_in_the_repository(ref, path) -> None:
    assert read_workflow_environment(FULL | {"GITHUB_WORKFLOW_REF": ref}).workflow_path == path


@pytest.mark.parametrize(
    ("server", "has_service"),
    [
        ("https://github.com", True),
        ("https://GitHub.com/", True),
        ("https://acme.ghe.com", True),
        ("http://github.localhost:8080", True),
        ("https://ghe.com", False),
        ("https://github.acme.example", False),
        ("https://github.com.evil.example", False),
        ("https://evilghe.com", False),
        ("https://notgithub.com", False),
        ("http://127.0.0.1:3000", False),
    ],
)
def test_environment__artifact_service__is_on_github_and_not_on_enterprise_server(server, has_service) -> None:
    assert read_workflow_environment(FULL | {"GITHUB_SERVER_URL": server}).is_github_cloud is has_service
