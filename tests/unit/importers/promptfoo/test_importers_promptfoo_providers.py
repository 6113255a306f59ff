"""Providers that are targets here, and what is said of those that are not."""

from __future__ import annotations

import pytest
import yaml

from eval_gate.importers.promptfoo.config_files import PromptfooFile, read_document
from eval_gate.importers.promptfoo.providers import convert_providers
from eval_gate.targets.target_list import read_targets


def document(tmp_path, *providers) -> PromptfooFile:
    (tmp_path / "c.yaml").write_text(yaml.safe_dump({"providers": [*providers]}))
    return read_document(tmp_path / "c.yaml", "c.yaml")


def one(tmp_path, provider, variable=None) -> tuple[dict, list[str]]:
    found, left = convert_providers(document(tmp_path, provider), variable)
    return (dict(found[0].settings) if found else {}), [each.reason for each in left]


@pytest.mark.parametrize(
    ("identity", "vendor", "model"),
    [
        ("openai:gpt-4o", "openai", "gpt-4o"),
        ("openai:chat:gpt-4o", "openai", "gpt-4o"),
        ("openai:responses:gpt-5", "openai", "gpt-5"),
        ("anthropic:messages:claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5"),
        ("azure:chat:our-deployment", "azure", "our-deployment"),
        ("google:gemini-2.5-flash", "gemini", "gemini-2.5-flash"),
        ("ollama:chat:llama3.2:1b", "openai-compatible", "llama3.2:1b"),
        ("groq:llama-3.3-70b", "model", "groq:llama-3.3-70b"),
    ],
)
def test_model__by_name__is_a_target(tmp_path, identity, vendor, model) -> None:
    settings, left = one(tmp_path, identity)
    assert (settings["provider"], settings["model"], left) == (vendor, model, [])


@pytest.mark.parametrize(
    ("provider", "why"),
    [
        ("echo", "nothing to evaluate"),
        ("exec: ./run.sh", "provider: cli"),
        ("python:agent.py", "provider: cli"),
        ("file://agent.js", "provider: cli"),
        ("agent.py", "provider: cli"),
        ("openai:assistant:asst_1", "no equivalent target"),
        ("openai:embedding:ada", "no equivalent target"),
        ("openai:realtime:gpt-4o", "no equivalent target"),
        ("bedrock:claude", "no equivalent target"),
        ("openai:{{env.MODEL}}", "is a template"),
        ({"id": "openai:gpt-4o", "transform": "output.x"}, "`transform` changes its responses"),
        (7, "no equivalent target"),
        ({}, "no equivalent target"),
    ],
)
def test_provider__without_a_counterpart__says_why(tmp_path, provider, why) -> None:
    settings, (left,) = one(tmp_path, provider)
    assert settings == {}
    assert why in left


def test_model__settings__are_carried_or_named(tmp_path) -> None:
    config = {"temperature": 0, "max_tokens": 9, "top_p": 1, "apiKey": "{{env.KEY}}", "apiBaseUrl": "${BASE}/v1"}
    settings, left = one(tmp_path, {"id": "openai:gpt-4o", "label": "my bot!", "config": config})
    assert settings == {
        "name": "my-bot",
        "provider": "openai",
        "model": "gpt-4o",
        "temperature": 0,
        "max_output_tokens": 9,
        "api_key": "${{ KEY }}",
        "base_url": "${{ BASE }}/v1",
    }
    assert left == ["its `top_p` is not imported"]


def test_model__a_key_in_clear__is_never_copied(tmp_path) -> None:
    settings, left = one(tmp_path, {"id": "openai:gpt-4o", "config": {"apiKey": "sk-4711"}})
    assert "sk-4711" not in str(settings) + str(left)
    assert left == ["its `apiKey` is not imported"]


HTTP = {"url": "http://x/ask", "method": "POST", "body": {"q": "{{prompt}}"}, "transformResponse": "json.a"}


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("json.a", "a"),
        ("json.a.b[0].c", "a.b[0].c"),
        ("json[0].a", "[0].a"),
        ("json['a'].b", "a.b"),
        ("json.a?.b", "a.b"),
        ("(json) => json.a", "a"),
        ("(json, text) => json.a;", "a"),
    ],
)
def test_agent__where_the_answer_is__is_its_path(tmp_path, written, path) -> None:
    settings, left = one(tmp_path, {"id": "http", "config": {**HTTP, "transformResponse": written}})
    assert (settings["response_path"], left) == (path, [])
    assert read_targets([settings], tmp_path)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"transformResponse": "json.a.toUpperCase()"}, "more than a path"),
        ({"transformResponse": "json.a + json.b"}, "more than a path"),
        ({"transformResponse": None}, "no `transformResponse`"),
        ({"method": "GET"}, "method is not POST"),
        ({"body": "a={{prompt}}"}, "not JSON"),
        ({"body": {"q": "{{question}}"}}, "more than the prompt"),
        ({"body": {"q": "{{prompt | dump}}"}}, "more than the prompt"),
        ({"headers": {"X-Api-Key": "4711"}}, "may be secret"),
        ({"headers": {"X": "{{nobody}}"}}, "is a template"),
        ({"url": "ftp://x"}, "no URL"),
        ({"queryParams": {"a": "b"}}, "`queryParams` has no equivalent"),
        ({"request": "POST / HTTP/1.1"}, "`request` has no equivalent"),
    ],
)
def test_agent__that_is_asked_otherwise__is_not_carried_over(tmp_path, change, why) -> None:
    config = {key: value for key, value in {**HTTP, **change}.items() if value is not None}
    settings, (left,) = one(tmp_path, {"id": "http", "config": config})
    assert settings == {}
    assert why in left


def test_agent__its_body_names_the_only_variable_of_the_prompts__means_the_prompt(tmp_path) -> None:
    provider = {"id": "http", "config": {**HTTP, "body": '{"q": "{{question}}", "n": 1}'}}
    settings, left = one(tmp_path, provider, variable="question")
    assert (settings["request_template"], left) == ({"q": "{{message}}", "n": 1}, [])


def test_providers__of_one_name__are_told_apart(tmp_path) -> None:
    found, _ = convert_providers(document(tmp_path, "openai:gpt-4o", "openai:gpt-4o", "openai:chat:gpt-4o"), None)
    assert [one.name for one in found] == ["openai-gpt-4o", "openai-gpt-4o-2", "openai-chat-gpt-4o"]


@pytest.mark.parametrize(
    "url",
    [
        "http://bob:hunter-seven@agent.test/x",
        "http://agent.test/x?api_key=hunter-seven",
        "http://tok-hunter-seven@agent.test/x?a=1",
    ],
)
@pytest.mark.parametrize("key", ["url", "apiBaseUrl"])
def test_address__with_credentials__becomes_a_reference_and_says_which_variable(tmp_path, url, key) -> None:
    http = {"id": "http", "label": "my agent", "config": {**HTTP, "url": url}}
    model = {"id": "openai:gpt-4o", "label": "my agent", "config": {"apiBaseUrl": url}}
    settings, left = one(tmp_path, http if key == "url" else model)
    ours = "url" if key == "url" else "base_url"
    assert settings[ours] == f"${{{{ MY_AGENT_{ours.upper()} }}}}"
    assert f"set the variable MY_AGENT_{ours.upper()}" in " ".join(left)
    assert "hunter" not in str((settings, left))
