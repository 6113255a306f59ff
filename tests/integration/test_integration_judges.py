"""Judges are asked for the form of a verdict where their provider can hold a model to one, else as before."""

import json
from pathlib import Path

import pytest

from tests.integration.test_integration_run import gate, record
from tests.support.model_server import (
    Answer,
    anthropic_answer,
    gemini_answer,
    model_server,
    openai_answer,
)

VERDICT = '{"score": 1, "hits": ["says so"], "misses": [], "reasoning": "It does."}'
FINDINGS = '{"checks": [{"id": "a", "satisfied": true, "reasoning": "yes"}], "overall_reasoning": "good"}'
GRADES = '{"dimensions": [{"dimension": "accuracy", "score": 3, "reasoning": "right"}]}'
CASES = """\
evalcases:
  - id: one
    expected_outcome: Says so.
    input_messages: [{role: user, content: Is it so?}]
  - id: two
    expected_outcome: Says so.
    input_messages: [{role: user, content: Is it so?}]
"""
RUBRICS = """\
evalcases:
  - id: one
    expected_outcome: Says so.
    input_messages: [{role: user, content: Is it so?}]
    execution:
      evaluators: [{name: r, type: llm_judge, rubrics: [{id: a, description: It says so.}]}]
"""
RUBRIC = [
    {
        "id": "rb-1",
        "input": {"message": "how is Lisbon?"},
        "rubric": [{"dimension": "accuracy", "maxScore": 3, "criteria": "3: right"}],
    }
]
REFUSED = {"error": {"message": "Invalid parameter: 'response_format' of type 'json_schema' is not supported."}}


def judged_by(folder: Path, url: str, evals: str = "suite.yaml", **settings: object):
    """A run of these evals, whose answers are canned, graded by a model at this address."""
    judge = {"name": "grader", "provider": "openai", "model": "gpt-4o", "apiKey": "${{ KEY }}", "baseUrl": f"{url}/v1"}
    judge |= settings
    if judge["provider"] == "azure":
        judge["endpoint"] = judge.pop("baseUrl").removesuffix("/v1")
    desk = {"name": "desk", "provider": "mock", "response": "It is so.", "judgeTarget": "grader"}
    (folder / "targets.yaml").write_text(json.dumps({"targets": [desk, judge]}))
    return gate(folder, "run", evals, "--target", "desk", "--concurrency", "1", KEY="key-of-the-test")


def test_judge__of_openai__is_held_to_the_form_that_the_prompt_asks_for(tmp_path) -> None:
    (tmp_path / "suite.yaml").write_text(CASES)
    with model_server(openai_answer(VERDICT)) as server:
        done = judged_by(tmp_path, server.url)
        asked = [one.body for one in server.requests]
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(asked) == 2
    form = asked[0]["response_format"]
    assert form["type"] == "json_schema"
    assert form["json_schema"]["strict"] is True
    schema = form["json_schema"]["schema"]
    assert list(schema["properties"]) == schema["required"] == ["score", "hits", "misses", "reasoning"]
    assert schema["additionalProperties"] is False
    [system, user] = asked[0]["messages"]
    assert system["content"].endswith("- reasoning: why this score, in one to three sentences")
    assert "schema" not in json.dumps([system, user]).lower()
    [result] = record(tmp_path)["suites"][0]["cases"][0]["evaluatorResults"]
    assert (result["score"], result["hits"], result["reasoning"]) == (1, ["says so"], "It does.")


@pytest.mark.slow
def test_judge__is_another_model_than_in_the_baseline__is_said_with_both_names(tmp_path) -> None:
    (tmp_path / "suite.yaml").write_text(CASES)
    for name in ("gpt-4o-2024-08-06", "gpt-4o-2024-11-20"):
        with model_server(openai_answer(VERDICT) | {"model": name}) as server:
            done = judged_by(tmp_path, server.url)
        assert done.returncode == 0, done.stdout + done.stderr
    runs = sorted((tmp_path / "evals" / "results").glob("*/run.json"), key=lambda file: file.stat().st_mtime_ns)
    compared = gate(tmp_path, "compare", *(str(file) for file in runs))
    said = " ".join(compared.stdout.split())
    assert (
        "the model behind the judge changed since the baseline: from gpt-4o-2024-08-06 to "
        "gpt-4o-2024-11-20 (2 of 2 cases)" in said
    ), said


@pytest.mark.parametrize(
    ("evals", "text", "reply", "names"),
    [
        ("suite.yaml", RUBRICS, FINDINGS, ["checks", "overall_reasoning"]),
        ("a.rubric.json", json.dumps(RUBRIC), GRADES, ["dimensions"]),
    ],
    ids=["rubrics of AgentV", "rubric of tool-forge"],
)
def test_rubric__of_either_kind__asks_for_its_own_form(tmp_path, evals, text, reply, names) -> None:
    (tmp_path / evals).write_text(text)
    with model_server(openai_answer(reply)) as server:
        done = judged_by(tmp_path, server.url, evals)
        schema = server.asked.body["response_format"]["json_schema"]["schema"]
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(schema["properties"]) == schema["required"] == names


@pytest.mark.parametrize(
    ("settings", "answer", "place"),
    [
        ({"provider": "azure"}, openai_answer(VERDICT), ("response_format", "json_schema", "schema")),
        ({"provider": "openai-compatible"}, openai_answer(VERDICT), ("response_format", "json_schema", "schema")),
        (
            {"provider": "anthropic", "model": "claude-sonnet-5"},
            anthropic_answer(VERDICT),
            ("output_config", "format", "schema"),
        ),
        (
            {"provider": "gemini", "model": "gemini-2.5-flash"},
            gemini_answer(VERDICT),
            ("generationConfig", "responseJsonSchema"),
        ),
        (
            {"provider": "model", "model": "ollama:llama3", "apiKey": None},
            openai_answer(VERDICT),
            ("response_format", "json_schema", "schema"),
        ),
    ],
    ids=["azure", "openai-compatible", "anthropic", "gemini", "ollama"],
)
@pytest.mark.slow
def test_judge__of_each_provider__is_sent_the_schema_where_that_provider_reads_it(
    tmp_path, settings, answer, place
) -> None:
    (tmp_path / "suite.yaml").write_text(CASES)
    with model_server(answer) as server:
        done = judged_by(tmp_path, server.url, **settings)
        found = server.requests[0].body
    assert done.returncode == 0, done.stdout + done.stderr
    for step in place:
        found = found[step]
    assert set(found["properties"]) == {"score", "hits", "misses", "reasoning"}


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, REFUSED),
        (400, {"error": {"message": "This response_format type is unavailable now", "type": "invalid_request_error"}}),
        (422, {"detail": [{"loc": ["body", "response_format"], "msg": "Extra inputs are not permitted"}]}),
        (400, {"error": {"message": "failed to parse grammar"}}),
    ],
)
def test_judge__whose_provider_refuses_the_form__is_asked_as_before_for_the_rest_of_the_run(
    tmp_path, status, body
) -> None:
    (tmp_path / "suite.yaml").write_text(CASES)
    with model_server(Answer(body, status), openai_answer(VERDICT)) as server:
        done = judged_by(tmp_path, server.url)
        asked = [one.body for one in server.requests]
    assert done.returncode == 0, done.stdout + done.stderr
    assert ["response_format" in one for one in asked] == [True, False, False]
    assert asked[0]["messages"] == asked[1]["messages"]
    assert "judge grader: its provider refuses a JSON schema, so it is called without one" in done.stdout


@pytest.mark.slow
def test_judge__that_is_too_old_for_forms__is_asked_as_before(tmp_path) -> None:
    (tmp_path / "suite.yaml").write_text(CASES)
    with model_server(anthropic_answer(VERDICT)) as server:
        done = judged_by(tmp_path, server.url, provider="anthropic", model="claude-3-5-haiku-latest")
        assert not any({"output_config", "output_format"} & set(one.body) for one in server.requests)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "JSON schema" not in done.stdout


@pytest.mark.slow
def test_judge__refused_for_another_reason__is_not_asked_again(tmp_path) -> None:
    (tmp_path / "suite.yaml").write_text(CASES)
    with model_server(Answer({"error": {"message": "The model does not exist"}}, 400)) as server:
        done = judged_by(tmp_path, server.url)
        assert len(server.requests) == 2
    assert "The model does not exist" in done.stdout
    assert "JSON schema" not in done.stdout + done.stderr


@pytest.mark.slow
def test_judge__refused_with_and_without_the_form__is_an_error_and_says_nothing_of_the_form(tmp_path) -> None:
    (tmp_path / "suite.yaml").write_text(CASES)
    with model_server(Answer(REFUSED, 400)) as server:
        done = judged_by(tmp_path, server.url)
        assert ["response_format" in one.body for one in server.requests] == [True, False, True, False]
    assert done.returncode == 3
    assert "asked without one" not in done.stdout + done.stderr


@pytest.mark.slow
def test_judge__switched_off__is_never_held_to_a_form(tmp_path) -> None:
    (tmp_path / "suite.yaml").write_text(CASES)
    with model_server(openai_answer(VERDICT)) as server:
        done = judged_by(tmp_path, server.url, structured_output=False)
        assert not any("response_format" in one.body for one in server.requests)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_judge__whose_replies_cannot_be_read__is_asked_the_last_time_without_the_form(tmp_path) -> None:
    """A reply is read as strictly as before, whatever was asked for."""
    (tmp_path / "suite.yaml").write_text(CASES.split("  - id: two", maxsplit=1)[0])
    with model_server(openai_answer('{"score": "high"}'), openai_answer(""), openai_answer(VERDICT)) as server:
        done = judged_by(tmp_path, server.url)
        assert ["response_format" in one.body for one in server.requests] == [True, True, False]
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_target__that_answers_a_case__is_not_held_to_a_form(tmp_path) -> None:
    (tmp_path / "suite.yaml").write_text(CASES)
    with model_server(openai_answer(VERDICT)) as server:
        model = {"name": "m", "provider": "openai", "model": "gpt-4o", "apiKey": "${{ KEY }}"}
        (tmp_path / "targets.yaml").write_text(json.dumps({"targets": [model | {"baseUrl": f"{server.url}/v1"}]}))
        gate(tmp_path, "run", "suite.yaml", "--concurrency", "1", KEY="key-of-the-test")
        asked = [one.body for one in server.requests]
    assert [("response_format" in one) for one in asked] == ["You grade" in str(one["messages"][0]) for one in asked]
    assert len(asked) == 4


@pytest.mark.slow
def test_recording__of_a_judge_that_is_set_up_the_same__answers_for_it(tmp_path) -> None:
    """A judge with another setting is asked anew."""
    (tmp_path / "suite.yaml").write_text(CASES)
    (tmp_path / "eval-gate.yaml").write_text("recording: record\n")
    with model_server(openai_answer(VERDICT)) as server:
        judged_by(tmp_path, server.url, structured_output=False)
        (tmp_path / "eval-gate.yaml").write_text("recording: replay\n")
        done = judged_by(tmp_path, server.url, structured_output=False)
        other = judged_by(tmp_path, server.url)
        assert len(server.requests) == 2  # both from recording, none from replaying
    assert (done.returncode, other.returncode) == (0, 3), done.stdout + done.stderr
