"""`eval-gate draft` with a target, in a process of its own: from questions to a suite that a run accepts."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eval_gate.files.file_paths import DRAFT_RESPONSES
from tests.support.agents import Exchange, agent, unused_port
from tests.support.program import CLEAN, PROGRAM, gate

EXAMPLES = Path(__file__).parents[2] / "examples"
QUESTIONS = """\
# what people ask
What is the weather in Lisbon?
How warm is it in Rome?

Will it rain in Oslo tomorrow?
How is the air quality in Rome?
What is the weather in Paris?
Who won the match?
"""


@contextmanager
def weather_agent(*options: str) -> Iterator[str]:
    """The bundled agent on a free port; yields its URL."""
    command = [sys.executable, str(EXAMPLES / "weather/agent.py"), "--port", "0", "--latency-ms", "1"]
    started = subprocess.Popen(
        [*command, "--until-input-ends", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert started.stdin is not None
    assert started.stdout is not None
    try:
        yield f"{started.stdout.readline().strip()}/chat"
    finally:
        started.stdin.close()
        started.wait(10)
        started.stdout.close()


def write_questions(folder: Path, text: str = QUESTIONS) -> None:
    (folder / "questions.txt").write_text(text, encoding="utf-8")


def draft(folder: Path, url: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    arguments = ("draft", "questions.txt", "--agent-endpoint", url, *options)
    return gate(folder, *arguments, **environment)


def read_cases(folder: Path) -> list[dict]:
    return json.loads((folder / "evals/first.golden.json").read_text(encoding="utf-8"))


OUTPUT = ("-o", "evals/first.golden.json")


def test_draft__weather_agent__writes_cases_that_pass_and_that_its_changed_agent_fails(tmp_path: Path) -> None:
    write_questions(tmp_path)
    with weather_agent() as url:
        shutil.copytree(EXAMPLES / "weather/tools", tmp_path / "tools")
        done = draft(tmp_path, url, *OUTPUT, "--tool-registry", "tools/tools.exports.ts")
        assert (done.returncode, done.stdout.splitlines()[0]) == (
            0,
            "evals/first.golden.json: 6 drafts from 18 executions",
        )
        assert "  gs-get-weather-001  What is the weather in Lisbon?" in done.stdout
        assert done.stdout.splitlines()[-6:] == [
            "These drafts have never seen:",
            "  a refusal: ask for something that the agent must not do",
            "  a call of list_alerts: it is defined",
            "  a second turn of a conversation",
            "",
            "Next step: eval-gate draft --review evals/first.golden.json",
        ]
        assert [file.name for file in (tmp_path / "evals/results").iterdir()] == [DRAFT_RESPONSES]
        checked = gate(tmp_path, "validate", "--strict")
        assert checked.returncode == 0, checked.stderr
        _accept_all(tmp_path)
        again = gate(tmp_path, "run", "--agent-endpoint", url)
        assert again.returncode == 0, again.stdout
    with weather_agent("--regress") as url:
        changed = gate(tmp_path, "run", "--agent-endpoint", url)
    assert changed.returncode == 1
    assert "gs-get-forecast-001" in changed.stdout


def _accept_all(folder: Path) -> None:
    """Take the marks of drafts away, as a person does who accepts them."""
    cases = [{key: value for key, value in case.items() if key != "draft"} for case in read_cases(folder)]
    (folder / "evals/first.golden.json").write_text(json.dumps(cases), encoding="utf-8")


def test_draft__agentv__is_a_file_that_a_run_accepts(tmp_path: Path) -> None:
    write_questions(tmp_path)
    with weather_agent() as url:
        done = draft(tmp_path, url, "-o", "evals/first.eval.yaml", "--format", "agentv")
        assert done.returncode == 0, done.stderr
        file = tmp_path / "evals/first.eval.yaml"
        file.write_text(file.read_text().replace("    draft: true\n", ""))
        again = gate(tmp_path, "run", "--strict", "--agent-endpoint", url)
    assert (again.returncode, "6 of 6 pass" in again.stdout) == (0, True), again.stdout


def test_draft__asks_each_question_of_the_file_as_often_as_said_and_nothing_else(tmp_path: Path) -> None:
    write_questions(tmp_path, "# no\nOne?\n\nTwo?\nOne?\n")
    with agent() as running:
        assert draft(tmp_path, running.url, *OUTPUT, "--trials", "2").returncode == 0
        asked = sorted(one.json["message"] for one in running.requests)
    assert asked == ["One?", "One?", "Two?", "Two?"]


def test_draft__what_differs_between_executions__is_left_out_and_said(tmp_path: Path) -> None:
    write_questions(tmp_path, "How is Lisbon?\n")

    async def varies(exchange: Exchange) -> None:
        number = exchange.number
        calls = [{"name": "get_weather", "params": {"city": "Lisbon", "seed": number}, "success": True}]
        exchange.answer({"response": f"It is {20 + number} °C and 60 % humid in Lisbon.", "toolCalls": calls})

    with agent(varies) as running:
        draft(tmp_path, running.url, *OUTPUT)
    [case] = read_cases(tmp_path)
    assert case["description"].endswith(
        "Left out, because it differed between 3 executions: the value of seed of get_weather; "
        "in the response: 20, 21, 22"
    )
    assert [(one["paramName"], one["assertion"]) for one in case["expect"]["toolParams"]] == [
        ("city", "equals"),
        ("seed", "exists"),
    ]
    assert case["expect"]["responseContainsNumber"] == ["60"]


def test_draft__question_without_a_response__gets_no_case_and_its_reason_is_said(tmp_path: Path) -> None:
    write_questions(tmp_path, "How is Lisbon?\nBreak!\n")

    async def breaks(exchange: Exchange) -> None:
        if exchange.json["message"] == "Break!":
            exchange.answer({"error": "no"}, status="400 Bad Request")
        else:
            exchange.answer({"response": "It is 21 °C.", "toolCalls": []})

    with agent(breaks) as running:
        done = draft(tmp_path, running.url, *OUTPUT)
    assert done.returncode == 0
    assert "No case for 1 question:\n  questions.txt:2: Break!: agent error: " in done.stdout
    assert [case["input"]["message"] for case in read_cases(tmp_path)] == ["How is Lisbon?"]


def test_draft__agent_unreachable__exits_3_writes_nothing_and_can_be_continued(tmp_path: Path) -> None:
    write_questions(tmp_path)
    port = unused_port()
    done = draft(tmp_path, f"http://127.0.0.1:{port}/chat", *OUTPUT)
    assert (done.returncode, (tmp_path / "evals/first.golden.json").exists()) == (3, False)
    assert "error[no-drafts]: no question got a case: nothing was written" in done.stderr
    assert "continue with --resume " in done.stderr


@pytest.mark.slow
def test_draft__agentv_example__is_a_suite_that_its_agent_passes(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "agentv", tmp_path, dirs_exist_ok=True)
    write_questions(
        tmp_path, "When are you open on Saturday?\nIs Dune there?\nPlease reserve Emma.\nWhat can you do?\n"
    )
    options = ("draft", "questions.txt", "-o", "first.eval.yaml", "--format", "agentv", "--target", "desk")
    assert gate(tmp_path, *options).returncode == 0
    assert gate(tmp_path, "draft", "first.eval.yaml", "--accept", "all").returncode == 0
    done = gate(tmp_path, "run", "first.eval.yaml", "--strict", "--target", "desk")
    assert (done.returncode, "4 of 4 pass" in done.stdout) == (0, True), done.stdout
    program = tmp_path / "desk.py"
    program.write_text(program.read_text().replace("on loan until Friday", "on the shelf"))
    assert gate(tmp_path, "run", "first.eval.yaml", "--target", "desk").returncode == 1


@pytest.mark.slow
def test_draft__agent_with_nested_json__is_a_suite_that_it_passes(tmp_path: Path) -> None:
    write_questions(tmp_path, "How much is Dune?\n")

    async def assist(exchange: Exchange) -> None:
        assert exchange.json == {"conversation": {"question": "How much is Dune?", "locale": "en"}}
        step = {
            "fn": "find_book",
            "arguments": {"query": {"title": "Dune", "limit": 1}},
            "outcome": {"ok": True, "value": {"price": 9.99}},
        }
        message = {"parts": [{"text": "Dune costs 9.99 euros."}]}
        exchange.answer({"data": {"message": message, "trace": {"steps": [step]}}})

    with agent(assist) as running:
        (tmp_path / "targets.yaml").write_text(
            f"""\
targets:
  - name: shop
    provider: http
    url: {running.url}
    requestTemplate: {{ conversation: {{ question: "{{{{message}}}}", locale: en }} }}
    responsePath: data.message.parts[0].text
    toolCallsPath: data.trace.steps
    nameField: fn
    argsField: arguments
    resultField: outcome.value
    successField: outcome.ok
"""
        )
        done = gate(tmp_path, "draft", "questions.txt", *OUTPUT, "--target", "shop")
        assert done.returncode == 0, done.stderr
        [case] = read_cases(tmp_path)
        [check] = case["expect"]["toolParams"]
        assert (check["paramName"], check["value"]) == ("query", {"title": "Dune", "limit": 1})
        assert case["expect"]["responseContainsNumber"] == ["9.99"]
        _accept_all(tmp_path)
        assert gate(tmp_path, "run", "--target", "shop").returncode == 0


@pytest.mark.slow
def test_draft__interrupted__continues_without_asking_finished_executions_again(tmp_path: Path) -> None:
    write_questions(tmp_path, "One?\nTwo?\nThree?\n")
    started: list[subprocess.Popen[str]] = []

    async def interrupts(exchange: Exchange) -> None:
        exchange.answer({"response": "It is 21 °C.", "toolCalls": []})
        if exchange.number == 3:
            started[0].send_signal(signal.SIGINT)

    with agent(interrupts) as running:
        options = ["draft", "questions.txt", "--agent-endpoint", running.url, *OUTPUT]
        process = subprocess.Popen(
            [*PROGRAM, *options], cwd=tmp_path, env=CLEAN, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 130, said
        run_id = said.split("--resume ")[1].split()[0]
        before = len(running.requests)
        assert before < 9
        done = gate(tmp_path, *options, "--resume", run_id)
        assert (done.returncode, len(read_cases(tmp_path))) == (0, 3), done.stderr
        assert len(running.requests) <= 10
    assert [file.name for file in (tmp_path / "evals/results").iterdir()] == [DRAFT_RESPONSES]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ((), "missing-output"),
        (("-o", "evals/a.yaml"), "invalid-output-path"),
        (("-o", "questions.json"), "draft-file-exists"),
        (("-o", "a.json", "--format", "agentw"), "unknown-value"),
        (("-o", "a.json", "--keep-responses", "none"), "conflicting-settings"),
        (("-o", "a.json", "--from-log", "log.jsonl"), "conflicting-options"),
        (("--update", "a", "--judge", "openai:m"), "conflicting-options"),
        (("--review", "--accept", "all"), "conflicting-options"),
        (("--review", "-o", "a.json"), "conflicting-options"),
        (("-o", "a.json", "--yes"), "conflicting-options"),
    ],
)
def test_draft__arguments_that_contradict_each_other__exit_2_before_anything_is_asked(
    tmp_path: Path, options: tuple[str, ...], code: str
) -> None:
    write_questions(tmp_path)
    (tmp_path / "questions.json").write_text("[]")
    with agent() as running:
        done = draft(tmp_path, running.url, *options)
        assert running.requests == []
    assert done.returncode == 2
    assert f"error[{code}]" in done.stderr


def test_draft__no_questions__exits_2(tmp_path: Path) -> None:
    assert "error[missing-questions]" in gate(tmp_path, "draft", *OUTPUT).stderr
    write_questions(tmp_path, "# nothing\n")
    assert "error[invalid-questions]" in gate(tmp_path, "draft", "questions.txt", *OUTPUT).stderr


def test_draft__secrets_and_personal_data__are_in_no_draft_and_in_no_output(tmp_path: Path) -> None:
    key = "sk-live-8f3ba1c2d4e5f60718293a4b"
    write_questions(tmp_path, "How is Lisbon?\nWrite to kim@example.org\n")
    (tmp_path / "eval-gate.yaml").write_text("redact: ['[a-z]+@example[.]org']\n")

    async def tells(exchange: Exchange) -> None:
        calls = [{"name": "send", "params": {"to": "kim@example.org", "key": key, "n": 2}, "success": True}]
        exchange.answer({"response": f"I use {key} for kim@example.org in Lisbon, 21 times.", "toolCalls": calls})

    with agent(tells) as running:
        done = draft(tmp_path, running.url, *OUTPUT, "-v", MY_API_KEY=key)
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "evals/first.golden.json").read_text()
    for secret in (key, "kim@example.org", "***"):
        assert secret not in written
    assert key not in done.stdout + done.stderr
    assert "kim@example.org" not in done.stdout
    assert "it holds a secret or personal data, which was masked" in done.stdout
    [case] = read_cases(tmp_path)
    assert [(one["paramName"], one["assertion"]) for one in case["expect"]["toolParams"]] == [
        ("to", "exists"),
        ("key", "exists"),
        ("n", "equals"),
    ]


def test_draft__hostile_response__is_no_live_token_and_no_control(tmp_path: Path) -> None:
    write_questions(tmp_path, "How is {{seed:cities[0].name}} on Friday?\n")

    async def attacks(exchange: Exchange) -> None:
        params = {"city": "{{seed:cities[0].name}}", "{{snapshot:x}}": 1, "note": "a\u202eb\x1b[31m"}
        tokens = "{{seed:x}} {{snapshot:y}}"
        text = f"::error::x {tokens} Lis\u202ebon ![x](y) 'a': [&b *c !!d] <script>, 21 on Friday ##[error]"
        exchange.answer({"response": text, "toolCalls": [{"name": "get", "params": params, "success": True}]})

    with agent(attacks) as running:
        done = draft(tmp_path, running.url, *OUTPUT, "-v", CI="1")
        assert done.returncode == 0, done.stderr
        [case] = read_cases(tmp_path)
        assert "{{" not in json.dumps(case["expect"])
        assert not any(
            sign in done.stdout + (tmp_path / OUTPUT[1]).read_text() for sign in ("\u202e", "\x1b", "\n::", "##[")
        )
        _accept_all(tmp_path)
        again = gate(tmp_path, "run", "--agent-endpoint", running.url)
    assert (again.returncode, "skipped assertion" in again.stdout) == (0, False), again.stdout


def test_draft__program_as_target__works_in_the_folder_of_the_new_file_as_a_run_of_it_does(tmp_path: Path) -> None:
    write_questions(tmp_path, "Where are you?\n")
    (tmp_path / "targets.yaml").write_text(
        "targets:\n"
        "  - {name: pwd, provider: cli, command_template: 'test -d ../new && pwd > {OUTPUT_FILE} && : {PROMPT}'}\n"
    )
    done = gate(tmp_path, "draft", "questions.txt", "-o", "new/first.golden.json", "--target", "pwd", "-v")
    assert done.returncode == 0, done.stderr
    file = tmp_path / "new/first.golden.json"
    cases = json.loads(file.read_text())
    file.write_text(json.dumps([{**cases[0], "draft": False, "expect": {"responseMatches": ["/new$"]}}]))
    again = gate(tmp_path, "run", "new", "--target", "pwd")
    assert again.returncode == 0, again.stdout + again.stderr


COMMAND = """\
import json, sys
where, question = sys.argv[1:]
call = {"tool": "get_weather", "input": {"city": "Lisbon"}}
said = {"role": "assistant", "content": "It is 21 degrees in Lisbon.", "tool_calls": [call]}
text = json.dumps({"output_messages": [said]}) if "weather" in question else "Lisbon is the capital of Portugal."
open(where, "w").write(text)
"""


def test_draft__command_that_prints_plain_text_for_some_questions__expects_no_tools_there(tmp_path: Path) -> None:
    write_questions(tmp_path, "What is the weather in Lisbon?\nWhat is its country?\n")
    (tmp_path / "agent.py").write_text(COMMAND)
    command = f"{sys.executable} {tmp_path}/agent.py {{OUTPUT_FILE}} {{PROMPT}}"
    (tmp_path / "targets.yaml").write_text(
        json.dumps({"targets": [{"name": "a", "provider": "cli", "command_template": command}]})
    )
    done = gate(tmp_path, "draft", "questions.txt", *OUTPUT, "--target", "a")
    assert done.returncode == 0, done.stderr
    listed, plain = read_cases(tmp_path)
    assert listed["expect"]["toolsCalled"] == ["get_weather"]
    assert "toolsCalled" not in plain["expect"]
    _accept_all(tmp_path)
    again = gate(tmp_path, "run", "--target", "a")
    assert again.returncode == 0, again.stdout + again.stderr


def test_draft__run__leaves_drafts_out_by_name(tmp_path: Path) -> None:
    write_questions(tmp_path, "How is Lisbon?\nHow is Rome?\n")
    with agent() as running:
        draft(tmp_path, running.url, *OUTPUT)
        done = gate(tmp_path, "run", "--agent-endpoint", running.url)
    assert done.returncode == 2
    assert "evals/first.golden.json: 2 drafts were not run: gs-no-tool-001, gs-no-tool-002" in done.stderr
