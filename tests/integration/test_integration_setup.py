"""A pull request changes how a response is asked for, read or graded, and nothing else: it is said by name, and blocks.

Each of these can turn a broken agent green. Real processes against real servers.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_integration_init import git
from tests.integration.test_integration_models import completion
from tests.integration.test_integration_run import gate, record
from tests.support.agents import Exchange, agent

CHANGED = ("--fail-on", "regressions,changed")
CASE = {"id": "gs-1", "input": {"message": "hi"}, "expect": {"responseContains": ["ok"], "toolsCalled": ["pay"]}}
SETTINGS: dict[str, tuple[Any, str]] = {
    "requestTemplate": ({"message": "{{message}}", "hint": "say ok"}, 'not set → `{"hint":"say ok"'),
    "requestFields": ({"mode": "demo"}, 'not set → `{"mode":"demo"}`'),
    "query": ({"mode": "demo"}, 'not set → `{"mode":"demo"}`'),
    "headers": ({"x-mode": "demo"}, 'not set → `{"x-mode":"demo"}`'),
    "method": ("PUT", "`POST` → `PUT`"),
    "form": ({"message": "{{message}}"}, "not set → `{"),
    "responsePath": ("extra", "`response` → `extra`"),
    "responseFormat": ("text", "`json` → `text`"),
    "toolCallsPath": ("started", "`toolCalls` → `started`"),
    "noToolCallsPath": ("response", "not set → `response`"),
    "nameField": ("tool", "`name` → `tool`"),
    "argsField": ("hint", "`params` → `hint`"),
    "successField": ("started", "`success` → `started`"),
    "failure": ("error", 'not set → `[{"path":"error"}]`'),
    "agentProtocol": ("openai-chat", "`eval-gate` → `openai-chat`"),
    "poll": ({"idPath": "job"}, 'not set → `{"idPath":"job"}`'),
    "timeoutMs": (4000, "`60000` → `4000`"),
    "passEnv": (["LANG"], "not set → `LANG`"),
}
"""What the pull request sets, and what is said. Of presets and formats the target's other settings follow."""


async def answers(exchange: Exchange) -> None:
    calls = [{"name": "pay", "tool": "pay", "params": {}, "success": True}]
    exchange.answer({"response": "ok paid", "extra": "ok", "toolCalls": calls, "started": calls})


def write(folder: Path, url: str, **settings: Any) -> None:
    (folder / "evals").mkdir(exist_ok=True)
    (folder / "evals" / "a.golden.json").write_text(json.dumps([CASE]))
    of_run = {name: settings.pop(name) for name in ("timeoutMs", "passEnv") if name in settings}
    target = {"name": "a", "provider": "http", "url": url, **settings}
    (folder / "eval-gate.json").write_text(json.dumps({"targets": [target], "target": "a", **of_run}))


def text(done: Any) -> str:
    return " ".join(done.stdout.split())


@pytest.mark.parametrize("name", SETTINGS)
def test_target__one_setting_is_another__is_said_by_name_with_its_cases_and_blocks(tmp_path, name) -> None:
    value, said = SETTINGS[name]
    with agent(answers) as running:
        write(tmp_path, running.url)
        assert gate(tmp_path, "run").returncode == 0
        write(tmp_path, running.url, **{name: value})
        done = gate(tmp_path, "run", "--baseline", "evals/results", *CHANGED)
    whose = "setting" if name in {"timeoutMs", "passEnv"} else "target `a`:"
    assert f"{whose} `{name}` {said}" in text(done), done.stdout
    assert "(1 case): `gs-1`" in text(done)
    assert done.returncode != 0
    comment = gate(tmp_path, "report", "latest", "--format", "md").stdout
    assert f"`{name}`" in re.sub(r"<details>.*?</details>", "", comment, flags=re.DOTALL)


@pytest.mark.parametrize("name", ["workers", "maxRetries", "waitFor", "maxResponseBytes", "judgeTarget"])
def test_target__setting_that_cannot_change_a_result__is_no_change(tmp_path, name) -> None:
    with agent(answers) as running:
        write(tmp_path, running.url)
        assert gate(tmp_path, "run", *CHANGED).returncode == 0
        values = {"judgeTarget": "openai:gpt-4o", "maxResponseBytes": 1_000}
        write(tmp_path, running.url, **{name: values.get(name, 7)})
        done = gate(tmp_path, "run", "--baseline", "evals/results", *CHANGED)
    assert done.returncode == 0, done.stdout
    assert "differently" not in done.stdout


MOCKS = """\
targets:
  - {name: desk, provider: mock, response: "ok"}
  - {name: kind, provider: mock, response: "ok indeed"}
"""


def suites(folder: Path, moved: str | None) -> None:
    cases = [
        f"  - id: c{number}\n    expected_outcome: ok\n    input_messages: [{{role: user, content: hi {number}}}]\n"
        f"    execution: {{target: {'kind' if moved == f'c{number}' else 'desk'}}}\n"
        for number in range(3)
    ]
    (folder.parent / "score.sh").write_text("#!/bin/sh\necho '{\"score\": 1}'\n")
    (folder.parent / "score.sh").chmod(0o755)
    graded = "execution: {evaluators: [{name: w, type: code_judge, script: ../score.sh}]}\n"
    (folder / "a.eval.yaml").write_text(f"{graded}evalcases:\n{''.join(cases)}")


@pytest.mark.parametrize("moved", ["c0", "c2"])
def test_case__asked_of_a_mock_of_the_same_list__is_the_one_that_is_named(tmp_path, moved) -> None:
    (tmp_path / "targets.yaml").write_text(MOCKS)
    suites(tmp_path, None)
    run = ("run", ".", "--output-dir", "results", *CHANGED)
    first = gate(tmp_path, *run)
    assert first.returncode == 0, first.stdout + first.stderr
    suites(tmp_path, moved)
    done = gate(tmp_path, *run, "--baseline", "results")
    assert done.returncode == 1, done.stdout
    assert f"target of 1 case: `desk` → `kind`: `{moved}`" in text(done)


async def chats(exchange: Exchange) -> None:
    exchange.answer(completion("ok"))


async def lies(exchange: Exchange) -> None:
    exchange.answer(completion("no idea"))


def model(folder: Path) -> None:
    (folder / "evals").mkdir(exist_ok=True)
    case = {"id": "gs-1", "input": {"message": "hi"}, "expect": {"responseContains": ["ok"]}}
    (folder / "evals" / "a.golden.json").write_text(json.dumps([case]))


KEY = {"OPENAI_API_KEY": "sk-test-abcdef"}
AS_MODEL = ("run", "--model", "openai:gpt-4o", *CHANGED)


@pytest.mark.parametrize("given", ["option", "variable", "list", "list-variable"])
def test_model__another_address__is_said_and_blocks(tmp_path, given) -> None:
    model(tmp_path)
    with agent(chats) as one, agent(chats) as other:
        for url, baseline in ((one.url, ()), (other.url, ("--baseline", "evals/results"))):
            base, command, variables = f"{url.removesuffix('/chat')}/v1", AS_MODEL, dict(KEY)
            match given:
                case "option":
                    command = (*command, "--base-url", base)
                case "variable":
                    variables["OPENAI_BASE_URL"] = base
                case _:
                    written = base if given == "list" else "${{ BASE }}"
                    entry = {"name": "m", "provider": "openai", "model": "gpt-4o", "baseUrl": written}
                    (tmp_path / "targets.yaml").write_text(json.dumps({"targets": [entry]}))
                    command, variables["BASE"] = ("run", "--targets", "targets.yaml", *CHANGED), base
            done = gate(tmp_path, *command, *baseline, **variables)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "`baseUrl` `" in text(done)


def test_model__another_prompt__is_what_is_tested_and_said(tmp_path) -> None:
    model(tmp_path)
    with agent(chats) as one:
        base = ("--base-url", f"{one.url.removesuffix('/chat')}/v1", "--system-prompt", "prompt.md")
        (tmp_path / "prompt.md").write_text("Be good.")
        gate(tmp_path, *AS_MODEL, *base, **KEY)
        (tmp_path / "prompt.md").write_text("Be bad.")
        done = gate(tmp_path, *AS_MODEL, *base, "--baseline", "evals/results", **KEY)
    assert done.returncode == 0, done.stdout
    assert "target `openai:gpt-4o`: `systemPrompt` `#" in text(done)


def test_recording__model_moves_to_another_address__is_asked_there(tmp_path) -> None:
    model(tmp_path)
    with agent(chats) as one, agent(lies) as other:
        urls = [f"{running.url.removesuffix('/chat')}/v1" for running in (one, other)]
        options = ("run", "--model", "openai:gpt-4o", "--recording", "auto", "--base-url")
        assert gate(tmp_path, *options, urls[0], **KEY).returncode == 0
        moved = gate(tmp_path, *options, urls[1], "--baseline", "evals/results", "--reruns", "0", **KEY)
        assert (moved.returncode, len(other.requests)) == (1, 1), moved.stdout
        assert gate(tmp_path, *options, urls[0], **KEY).returncode == 0
        assert len(one.requests) == 1


@pytest.mark.parametrize("part", ["script", "env", "template", "response"])
def test_judge__is_set_up_otherwise__is_said_and_blocks(tmp_path, part) -> None:
    """A judge is a target: whatever can change what it says is part of it."""
    (tmp_path / "judge.py").write_text("print('{\"score\": 1}')\n")
    (tmp_path / "a.eval.yaml").write_text(
        "evalcases:\n  - id: c1\n    expected_outcome: polite\n    input_messages: [{role: user, content: hi}]\n"
    )

    def targets(**judge: Any) -> None:
        program = {"provider": "cli", "commandTemplate": "python3 judge.py {PROMPT}"}
        mock = {"provider": "mock", "response": '{"score": 1}'}
        listed = [
            {"name": "a", "provider": "mock", "response": "hello", "judgeTarget": "j"},
            {"name": "j", **(mock if part == "response" else program), **judge},
        ]
        (tmp_path / "targets.yaml").write_text(json.dumps({"targets": listed}))

    targets()
    run = ("run", ".", "--target", "a", "--output-dir", "results", *CHANGED)
    first = gate(tmp_path, *run)
    assert first.returncode == 0, first.stdout + first.stderr
    match part:
        case "script":
            (tmp_path / "judge.py").write_text("print('{\"score\": 1.0}')\n")
        case "env":
            targets(env={"KIND": "1"})
        case "template":
            targets(commandTemplate="python3 judge.py --kind {PROMPT}")
        case "response":
            targets(response='{"score": 1, "reasoning": "kind"}')
    done = gate(tmp_path, *run, "--baseline", "results")
    said = "grader of 1 case changed: `judge.py`" if part == "script" else "judge `j`: "
    assert said in text(done), done.stdout
    assert done.returncode == 1


COMMANDS = {
    "in a folder": "cd sub && python3 g.py",
    "in a shell": "sh -c 'python3 sub/g.py'",
    "by a variable": 'python3 "$(pwd)/sub/g.py"',
    "as a module": "python3 -m sub.g",
    "imported": "python3 first.py",
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_grader__file_behind_any_command__is_said_when_it_changes(tmp_path, command) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "g.py").write_text("print('{\"score\": 1}')\n")
    (tmp_path / "first.py").write_text("from sub import g\n")
    (tmp_path / "targets.yaml").write_text(MOCKS)
    (tmp_path / "a.eval.yaml").write_text(
        "execution: {target: desk}\nevalcases:\n  - id: c1\n    expected_outcome: ok\n"
        "    input_messages: [{role: user, content: hi}]\n    execution:\n      evaluators:\n"
        f"        - {{name: g, type: code_judge, script: {json.dumps(command)}}}\n"
    )
    run = ("run", ".", "--output-dir", "results", *CHANGED)
    first = gate(tmp_path, *run)
    assert first.returncode == 0, first.stdout + first.stderr
    (tmp_path / "sub" / "g.py").write_text("print('{\"score\": 1.0}')\n")
    done = gate(tmp_path, *run, "--baseline", "results")
    assert "grader of 1 case changed: `sub/g.py" in text(done), done.stdout
    assert done.returncode == 1


def test_grader__command_without_a_file_of_ours__is_said_not_to_be_compared(tmp_path) -> None:
    (tmp_path / "targets.yaml").write_text(MOCKS)
    suites(tmp_path, None)
    done = gate(tmp_path, "run", ".", "--output-dir", "results")
    assert "only the files at the top of the root are compared for `../score.sh`" in text(done)


@pytest.mark.parametrize("order", [1, -1])
def test_merge__parts_that_asked_other_addresses__says_so_whatever_their_order(tmp_path, order) -> None:
    runs, urls = [], []
    for name in ("one", "two"):
        with agent(answers) as running:
            write(tmp_path, running.url)
            (tmp_path / "evals" / "a.golden.json").write_text(json.dumps([CASE | {"id": f"gs-{name}"}]))
            assert gate(tmp_path, "run").returncode == 0
            runs.append(f"evals/results/{record(tmp_path)['runId']}")
            urls.append(running.url)
    done = gate(tmp_path, "merge", *runs[::order])
    then, now = urls[::order]
    assert f"target a: url {then} → {now}" in done.stderr, done.stdout + done.stderr
    assert f"target a: url {then} → {now}" in str(record(tmp_path)["warnings"])


def test_results_of_another_tool__other_command_to_run_cases_again__is_said_and_blocks(tmp_path) -> None:
    """What it prints can clear a case that fails."""
    (tmp_path / "results.jsonl").write_text(json.dumps({"id": "a", "status": "passed"}) + "\n")
    for command, options in (("cat {output}", ()), ("cp kind.jsonl {output}", ("--baseline", "out"))):
        done = gate(
            tmp_path, "check", "results.jsonl", "--output-dir", "out", "--rerun-command", command, *CHANGED, *options
        )
    assert "setting `rerunCommand` `cat {output}` → `cp kind.jsonl {output}` (1 case): `a`" in text(done), done.stdout
    assert done.returncode == 1


LONG_KEY = "Qz7Xk2Lm9Pw4Rt6Yv8Bn3Hj5Gd1Fc0As" * 9


def is_shown(folder: Path, done: Any) -> bool:
    """Whether a part of the key stands in what was said or stored, in whatever case."""
    stored = [file.read_text(errors="replace") for file in (folder / "evals" / "results").rglob("*") if file.is_file()]
    said = "\n".join((done.stdout, done.stderr, *stored)).lower()
    return LONG_KEY[:10].lower() in said


def test_key__agent_returns_it_as_a_content_encoding__is_nowhere(tmp_path) -> None:
    async def packed(exchange: Exchange) -> None:
        exchange.write(f"HTTP/1.1 200 OK\r\ncontent-encoding: {LONG_KEY}\r\ncontent-length: 2\r\n\r\n{{}}".encode())

    with agent(packed) as running:
        write(tmp_path, running.url, headers={"x-key": "${{ KEY }}"}, maxRetries=0)
        done = gate(tmp_path, "run", KEY=LONG_KEY)
    assert "which was not requested" in text(done)
    assert not is_shown(tmp_path, done)


def test_key__is_given_as_the_path_of_tool_calls__is_nowhere(tmp_path) -> None:
    with agent(answers) as running:
        write(tmp_path, running.url, toolCallsPath="${{ KEY }}")
        done = gate(tmp_path, "run", KEY=LONG_KEY)
    assert "`${{ KEY }}`" in text(done)
    assert not is_shown(tmp_path, done)


def test_key__server_of_tools_returns_it__is_nowhere(tmp_path) -> None:
    async def echoes(exchange: Exchange) -> None:
        exchange.answer({"echo": LONG_KEY})

    with agent(echoes) as running:
        write(tmp_path, running.url)
        done = gate(tmp_path, "run", "--tool-registry", f"{running.url}?key={LONG_KEY}")
    assert "its response is not an MCP message" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not is_shown(tmp_path, done)


def write_program(folder: Path) -> None:
    """Two cases for an agent that is a program of the repository; it crashes at `c2` while there is a file `crash`."""
    (folder / "evals").mkdir()
    cases = [{"id": name, "input": {"message": "hi"}, "expect": {"responseContains": ["ok"]}} for name in ("c1", "c2")]
    (folder / "evals/a.golden.json").write_text(json.dumps(cases))
    (folder / "evals/agent.py").write_text(
        "import os, sys, words\nprint(words.SAID)\nif sys.argv[1] == 'c2':\n    sys.exit(os.path.exists('../crash'))\n"
    )
    (folder / "evals/words.py").write_text("SAID = 'ok'\n")
    target = {"name": "t", "provider": "cli", "commandTemplate": "python3 agent.py {EVAL_ID}"}
    (folder / "eval-gate.json").write_text(json.dumps({"targets": [target]}))
    (folder / ".gitignore").write_text("evals/results\ncrash\n__pycache__\n")


def change_imported(folder: Path) -> None:
    (folder / "evals/words.py").write_text("SAID = 'never'\n")


def commit_another(folder: Path) -> None:
    git(folder, "commit", "-q", "--allow-empty", "-m", "two")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (change_imported, "cases, graders, the agent, or their files"),
        (commit_another, "commit "),
    ],
)
def test_resume__another_agent__takes_nothing_over(tmp_path, change, said) -> None:
    write_program(tmp_path)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "one")
    (tmp_path / "crash").write_text("")
    assert gate(tmp_path, "run").returncode == 1
    (tmp_path / "crash").unlink()
    change(tmp_path)
    done = gate(tmp_path, "run", "--resume", record(tmp_path)["runId"])
    assert f"repeating 2 finished executions, because the setup changed: {said}" in text(done)
    assert done.returncode == (1 if change is change_imported else 0)
