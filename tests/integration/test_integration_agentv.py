"""AgentV suites as a person runs them: real processes, from the command line to the records."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.integration.test_integration_run import ROOT, gate
from tests.support.agents import Exchange, agent

JUDGED = """\
evalcases:
  - id: ferry-time
    expected_outcome: Gives the 18:40 ferry and says it runs on weekdays only.
    input_messages:
      - role: user
        content: When does the last ferry to Grey Island leave?
"""


@pytest.fixture
def desk(tmp_path) -> Path:
    """A copy of the example that the documentation shows."""
    folder = tmp_path / "agentv"
    shutil.copytree(ROOT / "examples" / "agentv", folder, ignore=shutil.ignore_patterns("__pycache__", "results"))
    return folder


def cases(folder: Path, results: str = "results") -> dict[str, dict]:
    latest = json.loads((folder / results / "latest.json").read_text())
    run = json.loads((folder / results / latest["path"]).read_text())
    return {case["id"]: case for suite in run["suites"] for case in suite["cases"]}


def run_desk(folder: Path, *arguments: str, **environment: str):
    return gate(folder, "run", ".", "--output-dir", "results", *arguments, **environment)


def test_example__as_it_stands__passes_with_trajectories_and_code_judges(desk) -> None:
    done = run_desk(desk)
    assert done.returncode == 0, done.stderr
    found = cases(desk)
    assert list(found) == ["opening-hours", "find-before-reserve", "reading-list", "follow-up"]
    assert found["opening-hours"]["traceSummary"] == {
        "eventCount": 1,
        "toolNames": ["openingHours"],
        "toolCallsByName": {"openingHours": 1},
        "errorCount": 0,
    }
    assert [(one["name"], one["weight"]) for one in found["opening-hours"]["evaluatorResults"]] == [
        ("asked-the-calendar", 1),
        ("names-the-hours", 2),
    ]
    assert "The library desk" in found["reading-list"]["details"]["response"]
    assert found["follow-up"]["conversationId"] == "visit-7"


def test_example__agent_that_forgets_a_step__regresses_with_its_score(desk) -> None:
    assert run_desk(desk, "--output-dir", "before").returncode == 0
    program = desk / "desk.py"
    program.write_text(program.read_text().replace('"reserve" in words', '"hold" in words'))
    done = run_desk(desk, "--baseline", "before")
    assert done.returncode == 1, done.stderr
    assert "find-before-reserve" in done.stdout
    case = cases(desk)["find-before-reserve"]
    assert (case["status"], case["score"]) == ("failed", 0.0)
    assert [one["score"] for one in case["evaluatorResults"]] == [0.0, 0.0]


def test_example__agent_that_crashes_on_one_case__is_an_error_and_the_others_go_on(desk) -> None:
    program = desk / "desk.py"
    program.write_text(
        program.read_text().replace(
            "    given =", "    import sys; 'Emma' in str(sys.argv) and sys.exit(9)\n    given ="
        )
    )
    done = run_desk(desk)
    assert done.returncode == 1, done.stderr
    found = cases(desk)
    assert {name: case["status"] for name, case in found.items()} == {
        "opening-hours": "passed",
        "find-before-reserve": "error",
        "reading-list": "passed",
        "follow-up": "passed",
    }
    assert "exited with code 9" in found["find-before-reserve"]["error"]


def test_example__failing_health_check__asks_nobody_and_could_not_decide(desk) -> None:
    targets = desk / "targets.yaml"
    targets.write_text(targets.read_text().replace("desk.py --ready", "desk.py --no-such-flag"))
    done = run_desk(desk)
    assert done.returncode == 3
    for case in cases(desk).values():
        assert case["status"] == "error"
        assert case["error"].startswith("CLI healthcheck failed for 'desk'")


def test_default_judge__target_that_is_no_model__is_refused_before_anything_runs(tmp_path) -> None:
    (tmp_path / "ferry.yaml").write_text(JUDGED)
    (tmp_path / "targets.yaml").write_text("targets:\n- {name: desk, provider: mock, response: At noon.}\n")
    done = gate(tmp_path, "run", "ferry.yaml", "--output-dir", "results")
    assert done.returncode == 2
    assert "ferry.yaml:2" in done.stderr
    assert "judge_target" in done.stderr
    assert not (tmp_path / "results").exists()


def test_judge_target__another_target_of_the_list__grades_and_its_prompts_are_kept(tmp_path) -> None:
    verdict = {"score": 0.75, "hits": ["names 18:40"], "misses": ["not the weekdays"], "reasoning": "half of it"}
    (tmp_path / "ferry.yaml").write_text("execution: {target: desk}\n" + JUDGED)
    (tmp_path / "targets.yaml").write_text(
        "targets:\n"
        "- {name: desk, provider: mock, response: At 18:40., judge_target: grader}\n"
        f"- {{name: grader, provider: mock, response: '{json.dumps(verdict)}'}}\n"
    )
    done = gate(tmp_path, "run", "ferry.yaml", "--output-dir", "results")
    assert done.returncode == 1, done.stderr
    case = cases(tmp_path)["ferry-time"]
    assert (case["status"], case["score"]) == ("failed", 0.75)
    [grade] = case["evaluatorResults"]
    assert (grade["type"], grade["hits"], grade["misses"]) == ("llm_judge", ["names 18:40"], ["not the weekdays"])
    assert "Grey Island" in grade["evaluatorProviderRequest"]["userPrompt"]
    assert "single JSON object" in grade["evaluatorProviderRequest"]["systemPrompt"]


def test_agentv_suite__http_agent_of_the_command_line__is_asked_instead_of_the_files_target(desk) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.answer({"response": "10:00 to 16:00, reserved", "toolCalls": [{"name": "openingHours", "params": {}}]})

    with agent(handler) as running:
        done = run_desk(desk, "--agent-endpoint", running.url)
    assert done.returncode == 1, done.stderr
    found = cases(desk)
    assert found["opening-hours"]["status"] == "passed"
    assert found["find-before-reserve"]["score"] == 0.5
    asked = {exchange.json["message"] for exchange in running.requests}
    assert "When are you open on Saturday?" in asked


def test_tool_forge_suite__cli_target__is_judged_by_its_own_assertions(tmp_path) -> None:
    (tmp_path / "agent.sh").write_text(
        """printf '{"text": "It is sunny.", "output_messages": [{"role": "assistant", "content": "It is sunny.",'
        printf ' "tool_calls": [{"tool": "get_weather", "input": {"city": "Lisbon"}}]}]}'
        """
    )
    (tmp_path / "targets.yaml").write_text(
        "targets:\n- {name: script, provider: cli, command_template: 'sh agent.sh {PROMPT}'}\n"
    )
    expect = {
        "toolsCalled": ["get_weather"],
        "toolParams": [{"tool": "get_weather", "paramName": "city", "assertion": "equals", "value": "Lisbon"}],
        "responseContains": ["sunny"],
    }
    (tmp_path / "weather.golden.json").write_text(
        json.dumps([{"id": "gs-1", "input": {"message": "Weather in Lisbon?"}, "expect": expect}])
    )
    done = gate(tmp_path, "run", "weather.golden.json", "--output-dir", "results")
    assert done.returncode == 0, done.stderr + done.stdout


def test_two_suites__each_with_its_target__are_one_run(tmp_path) -> None:
    case = "evalcases:\n- {{id: {0}, expected_outcome: x, input_messages: [{{role: user, content: hello}}]}}\n"
    evaluators = "  evaluators: [{type: tool_trajectory, mode: any_order, minimums: {look: 1}}]\n"
    for name in ("one", "two"):
        (tmp_path / f"{name}.yaml").write_text(f"execution:\n  target: {name}\n{evaluators}{case.format(name)}")
    (tmp_path / "targets.yaml").write_text(
        "targets:\n"
        "- {name: one, provider: mock, tool_calls: [{tool: look}]}\n"
        "- {name: two, provider: mock, tool_calls: [{tool: listen}]}\n"
    )
    done = gate(tmp_path, "run", "one.yaml", "two.yaml", "--output-dir", "results")
    assert done.returncode == 1, done.stderr
    found = cases(tmp_path)
    assert {name: case["status"] for name, case in found.items()} == {"one": "passed", "two": "failed"}
    assert (found["one"]["target"], found["two"]["target"]) == (None, "two")


def test_trajectory__answer_without_calls_or_trace__says_that_there_is_none(tmp_path) -> None:
    (tmp_path / "a.yaml").write_text(
        JUDGED + "    evaluators: [{type: tool_trajectory, mode: any_order, minimums: {timetable: 1}}]\n"
    )
    (tmp_path / "targets.yaml").write_text("targets:\n- {name: desk, provider: mock, response: At noon.}\n")
    assert gate(tmp_path, "run", "a.yaml", "--output-dir", "results").returncode == 1
    case = cases(tmp_path)["ferry-time"]
    assert (case["score"], case["traceSummary"]) == (0.0, None)
    assert case["evaluatorResults"][0]["misses"] == ["No trace available for evaluation"]


TRAJECTORY = "    evaluators: [{type: tool_trajectory, mode: any_order, minimums: {timetable: 1}}]\n"
LISTS = "targets:\n- {name: desk, provider: mock, response: At noon., tool_calls: [{tool: timetable}]}\n"


@pytest.mark.contract("agentv.tool-trajectory-evaluator.baseline-had-calls")
@pytest.mark.parametrize(
    ("target", "code", "status"),
    [
        ("response: At noon.", 3, "error"),
        ("response: At noon., tool_calls: [{tool: other}]", 1, "failed"),
        ("output_messages: [{role: assistant, content: no}]", 1, "failed"),
    ],
    ids=["no calls listed", "another call", "no call"],
)
def test_trajectory__baseline_lists_calls_and_no_answer_here_does__could_not_decide(
    tmp_path, target, code, status
) -> None:
    (tmp_path / "a.yaml").write_text(JUDGED + TRAJECTORY)
    (tmp_path / "targets.yaml").write_text(LISTS)
    options = ("run", "a.yaml", "--output-dir", "results", "--reruns", "6")
    assert gate(tmp_path, *options).returncode == 0
    (tmp_path / "targets.yaml").write_text(f"targets:\n- {{name: desk, provider: mock, {target}}}\n")
    done = gate(tmp_path, *options, "--baseline", "latest", "--fail-on", "regressions")
    assert done.returncode == code, done.stdout + done.stderr
    case = cases(tmp_path)["ferry-time"]
    assert case["status"] == status
    assert ("tool calls are unknown" in done.stdout) is (code == 3)
    if code == 3:
        assert case["evaluatorResults"][0]["score"] == 0.0
        assert case["evaluatorResults"][0]["misses"] == ["No trace available for evaluation"]
        assert "toolCalls" in done.stdout.partition("evaluation setup changed")[2], done.stdout


def test_export__agentv__one_record_a_line_in_the_specs_names(desk) -> None:
    assert run_desk(desk, "--export", "agentv=out/desk.jsonl").returncode == 0
    lines = [json.loads(line) for line in (desk / "out" / "desk.jsonl").read_text().splitlines()]
    assert [line["eval_id"] for line in lines] == ["opening-hours", "find-before-reserve", "reading-list", "follow-up"]
    assert {(line["status"], line["score"], line["target"]) for line in lines} == {("pass", 1.0, "desk")}
    assert lines[0]["evaluator_results"][1]["weight"] == 2
    assert lines[0]["trace_summary"]["toolNames"] == ["openingHours"]
