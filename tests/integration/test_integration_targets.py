"""What is wrong with a targets file, as `eval-gate validate` says it: in the words and at the line of its author."""

import json

import pytest

from tests.integration.test_integration_run import gate, write_suite
from tests.support.agents import Exchange, agent

CLI = "targets:\n- name: desk\n  provider: cli\n  command: echo {PROMPT}\n"


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        (
            CLI + "  timout_seconds: 5\n",
            "targets.yaml:5: targets[desk].timout_seconds",
            'unknown setting (did you mean "timeout_seconds"?)',
        ),
        (
            CLI + "  timoutSeconds: 5\n",
            "targets.yaml:5: targets[desk].timoutSeconds",
            'unknown setting (did you mean "timeoutSeconds"?)',
        ),
        (
            CLI + "  batch_size: 2\n  timeoutseconds: 5\n",
            "targets.yaml:6: targets[desk].timeoutseconds",
            'unknown setting (did you mean "timeout_seconds"?)',
        ),
        (
            CLI + "  timeout_seconds: soon\n",
            "targets.yaml:5: targets[desk].timeout_seconds",
            "expected a number, got",
        ),
        (
            CLI.replace("{PROMPT}", "{PROMT}"),
            "targets.yaml:4: targets[desk].command",
            "contains the unknown placeholder {PROMT}",
        ),
        (
            CLI.replace("{PROMPT}", "; {PROMPT}"),
            "targets.yaml:4: targets[desk].command",
            "contains {PROMPT} in the place of a program",
        ),
        (
            CLI + "  settings:\n    attachments_format: '{file}'\n",
            "targets.yaml:6: targets[desk].attachments_format",
            "contains the unknown placeholder {file}",
        ),
        (
            "targets:\n- {name: desk, provider: cli, timeout_seconds: 5}\n",
            "targets.yaml:2: targets[desk].command_template",
            "is missing",
        ),
        (
            CLI + "  healthcheck:\n    type: http\n    url: http://x/\n    timout_seconds: 5\n",
            "targets.yaml:8: targets[desk].healthcheck.timout_seconds",
            'unknown setting (did you mean "timeout_seconds"?)',
        ),
        (
            "targets:\n- name: desk\n  url: http://x/\n  healthcheck:\n    url: http://x/\n    timeout_seconds: -1\n",
            "targets.yaml:6: targets[desk].healthcheck.timeout_seconds",
            "must be > 0.0, got the number -1",
        ),
        (
            "targets:\n- name: desk\n  provider: mock\n  responses:\n    a: { tool_calls: [{ tool: t, sucess: 1 }] }\n",
            "targets.yaml:5: targets[desk].responses.a.tool_calls[0].sucess",
            'unknown setting (did you mean "success"?)',
        ),
        (
            "targets:\n- name: desk\n  provider: openai\n  model: m\n  api_key: ${{ KEY }}\n  version: v1\n",
            "targets.yaml:6: targets[desk].version",
            "is not a setting of openai",
        ),
        (
            "targets:\n- name: desk\n  provider: openai-compatible\n  deployment_name: m\n",
            "targets.yaml:2: targets[desk].base_url",
            "is missing: openai-compatible is your own server",
        ),
        (
            "targets:\n- name: desk\n  provider: codex\n  response_path: data.reply\n",
            "targets.yaml:4: targets[desk].response_path",
            "is a setting of http, cli and python targets; this one is of the kind codex",
        ),
        (
            "targets:\n- name: desk\n  url: http://x/\n  command: agent {PROMPT}\n",
            "targets.yaml:4: targets[desk].command",
            "is a setting of cli, codex and vscode targets; this one is of the kind http",
        ),
        (
            CLI + "  headers: {}\n",
            "targets.yaml:5: targets[desk].headers",
            "is a setting of http targets; this one is of the kind cli",
        ),
        (
            "targets:\n- name: desk\n  provider: openai\n  model: m\n  settings: { cwd: . }\n",
            "targets.yaml:5: targets[desk].cwd",
            "is a setting of cli and codex targets; this one is of the kind model",
        ),
        (
            "targets:\n- name: desk\n  url: http://x/\n  healthcheck: { url: http://x/, cwd: . }\n",
            "targets.yaml:4: targets[desk].healthcheck.cwd",
            "is a setting of cli targets; this one is of the kind http",
        ),
    ],
    ids=[
        *("snake", "camel", "style of the others", "value", "other name", "program", "below settings", "missing"),
        *("nested", "nested in http", "deeply nested", "of another provider", "its own server"),
        *("of three kinds", "of a command", "of http", "below settings of a model", "nested of another kind"),
    ],
)
def test_validate__mistake_in_a_targets_file__is_named_as_its_author_wrote_it(tmp_path, text, place, said) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / "targets.yaml").write_text(text)
    done = gate(tmp_path, "validate", "--targets", "targets.yaml", KEY="sk-abcdef")
    assert done.returncode == 2
    found = [line for line in done.stderr.splitlines() if "targets.yaml" in line]
    assert len(found) == 1, done.stderr
    assert f"{place}: {said}" in found[0]


def test_run__headers_beyond_ascii__arrive_as_they_are_written(tmp_path) -> None:
    seen = []

    async def answers(exchange: Exchange) -> None:
        seen.append([exchange.header(name) for name in ("x-team", "x-key", "x-case")])
        exchange.answer({"response": "ok", "toolCalls": []})

    write_suite(tmp_path, 1)
    with agent(answers) as running:
        headers = {"x-team": "café", "x-key": "${{ A_KEY }}", "x-case": "é-{{caseId}}"}
        (tmp_path / "targets.yaml").write_text(
            json.dumps({"targets": [{"name": "a", "url": running.url, "headers": headers}]})
        )
        options = ("--targets", "targets.yaml", "--target", "a")
        done = gate(tmp_path, "run", *options, A_KEY="clé-très-secrète")
        assert (done.returncode, seen) == (0, [["café", "clé-très-secrète", "é-gs-000"]]), done.stdout + done.stderr
        seen.clear()
        done = gate(tmp_path, "run", *options, "--trials", "2", A_KEY="clé-très-secrète")
        assert (done.returncode, len(seen)) == (0, 2), done.stdout + done.stderr
