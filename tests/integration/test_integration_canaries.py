"""Secrets that agents, models, commands and judges say back: none is found in anything that is written or printed."""

from __future__ import annotations

import html
import json
import shlex
import sys
import textwrap
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from tests.support.agents import Exchange, agent
from tests.support.canaries import files_below, leaks
from tests.support.model_server import Answer, model_server, openai_answer
from tests.support.program import gate

CANARY = 'CaNaRy/7+kL"q\\w=zT&3~xyz'
"""Holds what JSON, URLs, HTML and base64 write in another way."""
REPORTS = ("md=out/r.md", "html=out/r.html", "junit=out/r.xml", "json=out/r.json", "console=out/r.txt")
EVERYTHING = [*(f"--report={one}" for one in REPORTS), "--export=agentv=out/r.jsonl", "--verbose"]


def b64(before: int) -> str:
    return b64encode(b"x" * before + CANARY.encode() + b"yy").decode()


def everywhere(done, project: Path) -> dict[str, list[str]]:
    """Where something of the canary is found, outside of what the test itself wrote."""
    texts = [("stdout", done.stdout), ("stderr", done.stderr)]
    texts += files_below(project / "evals/results")
    texts += files_below(project / "out") if (project / "out").exists() else []
    return {name: found for name, text in texts if (found := leaks(text, CANARY))}


def write_cases(project: Path, count: int, **expect) -> None:
    (project / "evals").mkdir(exist_ok=True)
    cases = [
        {
            "id": f"gs-{number:03}",
            "input": {"message": f"ask {number}"},
            "expect": expect or {"responseContains": ["ok"]},
        }
        for number in range(count)
    ]
    (project / "evals/x.golden.json").write_text(json.dumps(cases))


def says(text: str, **more) -> Callable[[Exchange], None]:
    return lambda exchange: exchange.answer({"response": text, "toolCalls": [], **more})


def fails(status: str, body: bytes, **headers: str) -> Callable[[Exchange], None]:
    return lambda exchange: exchange.answer(body, status, **headers)


def escaped_whole() -> str:
    return "".join(f"\\u{ord(char):04x}" for char in CANARY)


def streams(*parts: str) -> Callable[[Exchange], None]:
    """A body in a form that is not the one of the configuration, as the error about it quotes it."""
    return lambda exchange: exchange.answer("".join(parts).encode())


PIECES = textwrap.wrap(CANARY, 9)
STREAMS = {
    "numbered lines": [f"0:{json.dumps(piece)}\n" for piece in PIECES],
    "array of texts": [json.dumps(PIECES)],
    "array over lines": [json.dumps(PIECES, indent=1)],
    "array that is not finished": [json.dumps(PIECES)[:-1]],
    "objects without a line between": [json.dumps({"t": piece}) for piece in PIECES],
    "objects behind record separators": [f"\x1e{json.dumps({'t': piece})}\n" for piece in PIECES],
    "member with an array": [json.dumps({"chunks": PIECES})],
    "lines behind their lengths": [f"{len(piece):x}\r\n{piece}\r\n" for piece in PIECES],
    "texts of several members": [json.dumps({f"part-{at}": piece for at, piece in enumerate(PIECES)})],
    "keys of events": [f"data: {json.dumps({piece: 1})}\n\n" for piece in PIECES],
    "ids of events": [f"id: {piece}\n" for piece in PIECES],
    "times of events": [f"retry: {piece}\n" for piece in PIECES],
    "elements": [f"<s>{piece}</s>" for piece in PIECES],
    "pieces up to the cut": ["x " * 80, *(f"0:{json.dumps(piece)} " for piece in PIECES), "y" * 900],
}
BREAKS = {"a line": "\n", "NUL": "\0", "nothing to see": "\u200b", "a colour": "\x1b[1m", "blanks": "  "}


def broken_by(signs: str) -> str:
    return f"it is {CANARY[:9]}{signs}{CANARY[9:20]}{signs}{CANARY[20:]} I say"


FORMS: dict[str, Callable[[Exchange], None]] = {
    "answer": says(f"your key is {CANARY}"),
    "answer, then cut": says("x" * 19_990 + CANARY),
    "name of a tool": says("", toolCalls=[{"name": f"call {CANARY}", "params": {}}]),
    "argument": says("", toolCalls=[{"name": "t", "params": {"a": {"b": [CANARY]}}}]),
    "name of an argument": says("", toolCalls=[{"name": "t", "params": {CANARY: 1}}]),
    "id of a call": says("", toolCalls=[{"name": "t", "params": {}, "id": CANARY}]),
    "base64": says(b64(0)),
    "base64, one later": says(b64(1)),
    "base64, two later": says(b64(2)),
    "base64 in lines": says("\n".join(textwrap.wrap(b64encode(b"x" * 50 + CANARY.encode() + b"y" * 9).decode(), 76))),
    "base64 for addresses": says(b64(1).replace("+", "-").replace("/", "_")),
    "percent-encoded": says(quote(CANARY, safe="")),
    "percent-encoded small": says(quote(CANARY, safe="").replace("%2F", "%2f").replace("%2B", "%2b")),
    "form-encoded": says(quote_plus(CANARY)),
    "HTML": says(html.escape(CANARY)),
    "JSON within": says(json.dumps({"key": CANARY})),
    "JSON within JSON within": says(json.dumps(json.dumps({"key": CANARY}))),
    "every letter escaped": lambda exchange: exchange.answer(
        b'{"response": "' + escaped_whole().encode() + b'", "toolCalls": []}'
    ),
    "error 401": fails("401 Unauthorized", f"the key {CANARY} is wrong".encode()),
    "error 401 as JSON": fails("401 Unauthorized", json.dumps({"error": {"message": f"no key {CANARY}"}}).encode()),
    "error 400, slashes escaped": fails("400 Bad", json.dumps({"k": CANARY}).replace("/", "\\/").encode()),
    "error 400, at the cut": fails("400 Bad", b"x" * 190 + CANARY.encode()),
    "error 422 percent-encoded": fails("422 No", f"/x?key={quote(CANARY, safe='')}".encode()),
    "error 404 base64": fails("404 No", f"Basic {b64(1)}".encode()),
    "no HTTP, at the cut": lambda exchange: exchange.write(b"SSH-2.0 " + b"x" * 60 + CANARY.encode() + b"\r\n\r\n"),
    "stream in pieces": lambda exchange: exchange.answer(
        b"".join(f"data: {json.dumps({'d': piece})}\n\n".encode() for piece in (CANARY[:12], CANARY[12:]))
    ),
    **{name: streams(*lines) for name, lines in STREAMS.items()},
    **{f"broken by {name}": says(broken_by(signs)) for name, signs in BREAKS.items()},
    "reason phrase": fails(f"418 no {CANARY}", b"{}"),
    "location": fails("302 Found", b"", Location=f"http://x/?key={quote(CANARY, safe='')}"),
    "no JSON": lambda exchange: exchange.answer(f"<html>{CANARY}".encode()),
    "wrong shape": lambda exchange: exchange.answer({"answer": CANARY}),
    "calls of a wrong shape": says("ok", toolCalls={"echo": CANARY}),
    "usage": says("ok", usage={"input_tokens": CANARY, "model": CANARY}),
}


NOT_KEPT = {
    "stream in pieces",
    "keys of events",
    "ids of events",
    "answer, then cut",
    "argument",
    "name of an argument",
    "id of a call",
    "usage",
    "calls of a wrong shape",
}
"""What is in no result, masked or not."""


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """One run in which the agent says the key back in every form, with everything that can be written."""
    project = tmp_path_factory.mktemp("canaries")
    write_cases(project, len(FORMS), responseContains=["ok"], toolsCalled=["none"])
    target = {"name": "a", "url": "", "headers": {"Authorization": "Bearer ${{ AGENT_KEY }}"}, "maxRetries": 0}

    async def handler(exchange: Exchange) -> None:
        number = int(exchange.json["message"].split()[1])
        [*FORMS.values()][number](exchange)

    with agent(handler) as running:
        (project / "eval-gate.json").write_text(json.dumps({"targets": [target | {"url": running.url}]}))
        done = gate(project, "run", *EVERYTHING, AGENT_KEY=CANARY)
        assert running.requests[0].header("Authorization") == f"Bearer {CANARY}"
        again = gate(project, "report", "latest", "--format", "agentv")
    return project, done, again


def test_finding_2__agent_says_its_key_back__it_is_nowhere(asked) -> None:
    project, done, again = asked
    assert f"{len(FORMS)}/{len(FORMS)}" in done.stderr
    assert len(FORMS) >= 40
    assert everywhere(done, project) == {}
    assert leaks(again.stdout, CANARY) == []


@pytest.mark.parametrize("name", FORMS)
def test_finding_2__each_form__is_masked_and_not_lost(asked, name) -> None:
    project, _, _ = asked
    record = next((project / "evals/results").glob("*/run.json"))
    (suite,) = json.loads(record.read_text())["suites"]
    case = suite["cases"][[*FORMS].index(name)]
    if name not in NOT_KEPT:
        assert "***" in json.dumps(case)


def command(code: str) -> str:
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"


IN_LINES = "k = os.environ['KEY']\nfor p in (k[:12], k[12:]):"
PRINTS = {
    "stdout": "print('ok', os.environ['KEY'])",
    "JSON": "print(json.dumps({'text': 'x', 'messages': [{'role': 'assistant', 'content': os.environ['KEY']}]}))",
    "stderr": "sys.stderr.write('no: ' + os.environ['KEY']); sys.exit(3)",
    "events in pieces": "k = os.environ['KEY']; [print(json.dumps({'d': p})) for p in (k[:12], k[12:])]; sys.exit(3)",
    "stderr in lines": f"{IN_LINES} print(p, file=sys.stderr)\nsys.exit(3)",
    "stderr in lines, cut": f"{IN_LINES} print('z' * 99, p, file=sys.stderr)\nsys.exit(3)",
    "stderr at the cut": "sys.stderr.write(os.environ['KEY'] + ' ' + 'y' * 290); sys.exit(3)",
    "stderr where it was cut": "sys.stderr.write('z' * (32_000 - 10) + os.environ['KEY'] + 'y' * 90_000); sys.exit(3)",
    "end that was cut": "sys.stderr.write('y ' * 50_000 + os.environ['KEY'] + 'z ' * 15_990 ); sys.exit(3)",
    "base64 on stderr": "sys.stderr.write(base64.b64encode(('u:' + os.environ['KEY']).encode()).decode()); sys.exit(1)",
}


@pytest.mark.parametrize("name", PRINTS)
def test_finding_2__command_prints_its_variable__it_is_nowhere(tmp_path, name) -> None:
    write_cases(tmp_path, 1)
    code = f"import base64, json, os, sys; {PRINTS[name]}"
    target = {"name": "c", "provider": "cli", "command_template": command(code), "verbose": True}
    target["env"] = {"KEY": "${{ AGENT_KEY }}"}
    target["healthcheck"] = {"type": "command", "command_template": command(code + " or 1")} if "end" in name else None
    target = {key: value for key, value in target.items() if value}
    (tmp_path / "eval-gate.json").write_text(json.dumps({"targets": [target]}))
    done = gate(tmp_path, "run", *EVERYTHING, AGENT_KEY=CANARY)
    assert done.returncode in {0, 1, 3}
    assert "summary" in (next((tmp_path / "evals/results").glob("*/run.json"))).read_text(), done.stderr
    assert everywhere(done, tmp_path) == {}


@pytest.mark.parametrize(
    "other", ["2f8c0b1e-7d53-4a96-b1c4-9e6a5d3f7081", "sk-proj-Qz7Xk2Lm9PwTb4RvNcY8sJdH3", "9f" * 20, "hunter-seven"]
)
def test_finding_2__agent_says_the_key_of_another_target__it_is_nowhere(tmp_path, other) -> None:
    write_cases(tmp_path, 1)
    with agent(says(f"theirs is {other}")) as running:
        targets = [
            {"name": name, "url": running.url, "headers": {"x": key}} for name, key in (("a", "1"), ("b", "${{ B }}"))
        ]
        (tmp_path / "eval-gate.json").write_text(json.dumps({"targets": targets, "target": "a"}))
        done = gate(tmp_path, "run", *EVERYTHING, B=other)
    assert "***" in (next((tmp_path / "evals/results").glob("*/run.json"))).read_text(), done.stderr
    assert other not in done.stdout + done.stderr
    assert not [name for name, text in files_below(tmp_path / "evals/results") if other in text]


@pytest.mark.parametrize("place", ["given", "targets.yaml", "broken"])
def test_finding_2__endpoint_says_the_key_of_a_target_of_the_list__it_is_nowhere(tmp_path, place) -> None:
    """The list is read for its keys alone, and one that cannot be read stops nothing."""
    write_cases(tmp_path, 1)
    other = "2f8c0b1e-7d53-4a96-b1c4-9e6a5d3f7081"
    grader = {
        "name": "j",
        "provider": "openai-compatible",
        "model": "m",
        "baseUrl": "http://x.test",
        "apiKey": "${{ Z }}",
    }
    written = {"targets": [grader]} if place != "broken" else {"targets": [{"provider": 7}, 3]}
    if place == "given":
        (tmp_path / "eval-gate.json").write_text(json.dumps(written | {"judge": "j"}))
    else:
        (tmp_path / "targets.yaml").write_text(json.dumps(written))
    with agent(says(f"theirs is {other}")) as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url, *EVERYTHING, Z=other)
    kept = next((tmp_path / "evals/results").glob("*/run.json")).read_text()
    assert ("***" in kept) is (place != "broken"), done.stdout + done.stderr
    leaking = [name for name, text in files_below(tmp_path / "evals/results") if other in text]
    assert bool(leaking or other in done.stdout + done.stderr) is (place == "broken")


MODEL_SAYS = {
    "answer": openai_answer(f"it is {CANARY}"),
    "arguments": openai_answer(None, [("1", "t", {"key": CANARY})]),
    "arguments as text": openai_answer(None, [("1", "t", json.dumps({"k": json.dumps(CANARY)}))]),
    "tool": openai_answer(None, [("1", f"t{CANARY}", {})]),
    "error 401": Answer({"error": {"message": f"Incorrect API key provided: {CANARY}."}}, 401),
    "error 500": Answer(f"oops {CANARY}".encode(), 500),
    "error in 200": Answer({"error": {"message": quote(CANARY, safe=""), "code": CANARY}}, 200),
    "no JSON": Answer(b"x" * 280 + CANARY.encode(), 200),
}


@pytest.mark.parametrize("name", MODEL_SAYS)
def test_finding_2__model_says_its_key_back__it_is_nowhere(tmp_path, name) -> None:
    write_cases(tmp_path, 1)
    with model_server(MODEL_SAYS[name]) as server:
        target = {"name": "m", "provider": "openai-compatible", "model": "m", "baseUrl": f"{server.url}/v1"}
        target |= {"apiKey": "${{ MODEL_KEY }}"}
        (tmp_path / "eval-gate.json").write_text(
            json.dumps({"targets": [target], "maxRetries": 0, "recording": "record"})
        )
        done = gate(tmp_path, "run", *EVERYTHING, MODEL_KEY=CANARY)
        assert server.requests, done.stderr
    assert everywhere(done, tmp_path) == {}


def test_finding_2__judge_says_its_key_back__it_is_nowhere(tmp_path) -> None:
    (tmp_path / "evals").mkdir()
    cases = [{"id": "r1", "input": {"message": "ask"}, "rubric": {"criteria": ["is it right?"]}}]
    (tmp_path / "evals/x.rubric.json").write_text(json.dumps(cases))
    (tmp_path / "evals/y.eval.yaml").write_text(
        "evalcases:\n- id: j1\n  expected_outcome: fine\n  input_messages:\n  - {role: user, content: hi}\n"
        "  execution:\n    evaluators:\n    - {name: g, type: llm_judge}\n"
    )
    for said in (f"I cannot: {CANARY}", json.dumps({"score": 0.2, "misses": [f"no {CANARY}"], "reasoning": CANARY})):
        with agent() as running, model_server(openai_answer(said)) as server:
            judge = {"name": "j", "provider": "openai-compatible", "model": "m", "baseUrl": f"{server.url}/v1"}
            targets = [{"name": "a", "url": running.url}, judge | {"apiKey": "${{ MODEL_KEY }}"}]
            (tmp_path / "eval-gate.json").write_text(
                json.dumps({"targets": targets, "target": "a", "judge": "j", "evals": ["evals/y.eval.yaml"]})
            )
            done = gate(tmp_path, "run", *EVERYTHING, MODEL_KEY=CANARY)
            assert server.requests, done.stderr
        assert everywhere(done, tmp_path) == {}


def test_finding_2__code_judge_and_snapshot__say_no_key_of_the_run(tmp_path) -> None:
    write_cases(tmp_path, 1)
    (tmp_path / "said").write_text(CANARY)
    (tmp_path / "evals/y.eval.yaml").write_text(
        "evalcases:\n- id: j1\n  expected_outcome: fine\n  input_messages:\n  - {role: user, content: hi}\n"
        "  execution:\n    evaluators:\n    - {name: g, type: code_judge, script: [sh, -c, cat ../said >&2; exit 1]}\n"
    )
    with agent() as running:
        target = {"name": "a", "url": running.url, "headers": {"x-key": "${{ AGENT_KEY }}"}}
        config = {"targets": [target]}
        (tmp_path / "eval-gate.json").write_text(json.dumps(config))
        done = gate(tmp_path, "run", *EVERYTHING, AGENT_KEY=CANARY)
        assert "code evaluator" in done.stdout + done.stderr or "Code evaluator" in done.stdout + done.stderr
        assert everywhere(done, tmp_path) == {}
        (tmp_path / "eval-gate.json").write_text(json.dumps(config | {"snapshotCommand": "cat said >&2; exit 2"}))
        done = gate(tmp_path, "run", *EVERYTHING, AGENT_KEY=CANARY)
    assert "snapshot-failed" in done.stderr
    assert everywhere(done, tmp_path) == {}


KEY_ELSEWHERE = f"sk-live[{{{{SkLiveOfOurs}}}}{CANARY * 4}"
"""A key that is no path, no number, no word and no placeholder, and is longer than what a message has of a value."""


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"workers": "${{ AGENT_KEY }}"}, "workers: expected a whole number, got the value of ${{ AGENT_KEY }}"),
        ({"agentProtocol": "${{ AGENT_KEY }}"}, "agentProtocol: "),
        ({"modelPath": "${{ AGENT_KEY }}"}, "modelPath"),
        (
            {"method": "${{ AGENT_KEY }}"},
            "method: expected 'POST', 'GET', 'PUT', 'PATCH' or 'DELETE', got the value of ${{ AGENT_KEY }}",
        ),
        ({"failure": ["error", "${{ AGENT_KEY }}"]}, "failure[1].path: unexpected value, got the value of"),
        ({"headers": {"x-key": "Bearer ${{ AGENT_KEY }}"}}, "headers: unexpected value, got a mapping"),
        ({"requestTemplate": ["${{ AGENT_KEY }}"]}, "requestTemplate: unexpected value, got a list"),
        ({"url": "${{ AGENT_KEY }}"}, "url: unexpected value, got the value of ${{ AGENT_KEY }}"),
        ({"provider": "mock", "delayMs": "${{ AGENT_KEY }}"}, "delayMs: expected a number, got the value of"),
        ({"provider": "model", "model": "${{ AGENT_KEY }}"}, "model: is not of the form provider:name, such as groq:"),
    ],
    ids=str,
)
@pytest.mark.parametrize("changed", [str, str.upper, str.lower], ids=["as it is", "in capitals", "in small letters"])
def test_finding_2__key_in_a_setting_that_takes_none__is_not_said(tmp_path, setting, said, changed) -> None:
    """What is wrong is said with the beginning of the value: one of a key is no key, and nobody masks it any more."""
    write_cases(tmp_path, 1)
    target = {"name": "a"} | ({} if "provider" in setting else {"url": "http://localhost:9"}) | setting
    (tmp_path / "eval-gate.json").write_text(json.dumps({"targets": [target]}))
    done = gate(tmp_path, "run", AGENT_KEY=changed(KEY_ELSEWHERE))
    assert (done.returncode, f"targets[a].{said}" in done.stderr) == (2, True), done.stderr
    assert "sk-live" not in done.stderr.lower()
    assert "skliveofours" not in done.stderr.lower()
    assert leaks(done.stderr.lower(), CANARY.lower()) == []


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"url": "localhost:9"}, "url: the URL does not begin with http:// or https://"),
        ({"url": "${{ HERE }}"}, "url: the URL does not begin with http:// or https://"),
        (
            {"requestTemplate": {"key": "${{ AGENT_KEY }}", "q": "{{mesage}}"}},
            'requestTemplate: unknown placeholder "mesage"',
        ),
        (
            {"form": {"key": "${{ AGENT_KEY }}"}, "requestTemplate": {"q": "{{message}}"}},
            "form: set form or requestTemplate, not both",
        ),
        ({"method": "psot"}, 'got text "psot" (did you mean "POST"?)'),
    ],
    ids=str,
)
def test_finding_2__mistake_beside_a_key__is_said_in_its_own_words(tmp_path, setting, said) -> None:
    """Words that would be the same whatever the variables hold say nothing of them."""
    write_cases(tmp_path, 1)
    target = {"name": "a", "url": "http://localhost:9", "headers": {"x-key": "${{ AGENT_KEY }}"}} | setting
    (tmp_path / "eval-gate.json").write_text(json.dumps({"targets": [target]}))
    done = gate(tmp_path, "run", AGENT_KEY=CANARY, HERE="localhost:9")
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


NAMES_NOBODY = {
    "judge": {"url": "http://localhost:9", "judge_target": "${{ AGENT_KEY }}"},
    "model": {"provider": "model", "model": "${{ AGENT_KEY }}"},
    "prompt": {"provider": "openai", "model": "m", "system_prompt_path": "${{ AGENT_KEY }}"},
    "prompt outside": {"provider": "openai", "model": "m", "system_prompt_path": "../${{ AGENT_KEY }}"},
}


@pytest.mark.parametrize("listed", ["in the list", "alone"])
@pytest.mark.parametrize("what", NAMES_NOBODY)
def test_finding_2__key_as_the_name_of_something__is_not_said(tmp_path, what, listed) -> None:
    (tmp_path / "y.eval.yaml").write_text(
        "evalcases:\n- id: j1\n  expected_outcome: fine\n  input_messages:\n  - {role: user, content: hi}\n"
        "  execution:\n    evaluators:\n    - {name: g, type: llm_judge}\n"
    )
    others = [{"name": "sk-live-desk", "url": "http://localhost:9"}] if listed == "in the list" else []
    (tmp_path / "targets.yaml").write_text(json.dumps([{"name": "a"} | NAMES_NOBODY[what], *others]))
    for key in ("Sk-LiVe:" + CANARY * 20, "opneai:Sk-LiVe-key-of-ours", "Sk-LiVe-desc"):
        done = gate(tmp_path, "run", "--target", "a", "y.eval.yaml", AGENT_KEY=key, OPENAI_API_KEY="x" * 20)
        assert done.returncode == 2, done.stdout
        assert "${{ AGENT_KEY }}" in done.stderr or "***" in done.stderr or ":name" in done.stderr, done.stderr
        said = done.stderr.lower().replace('"sk-live-desk"', "").replace("a, sk-live-desk", "")
        assert "sk-live" not in said, done.stderr
        assert leaks(done.stderr, CANARY) == []
        assert "did you mean" not in done.stderr


def test_finding_2__tokens_of_github_and_a_password_in_an_address__are_nowhere(tmp_path) -> None:
    write_cases(tmp_path, 1)

    async def handler(exchange: Exchange) -> None:
        exchange.answer({"response": f"{CANARY} {exchange.header('authorization')}", "toolCalls": []})

    with agent(handler) as running:
        url = running.url.replace("//", f"//me:{quote('pass-word-of-mine', safe='')}@")
        target = {"name": "a", "url": url}
        (tmp_path / "eval-gate.json").write_text(json.dumps({"targets": [target]}))
        done = gate(tmp_path, "run", *EVERYTHING, GITHUB_TOKEN=CANARY)
    assert done.returncode == 1
    assert everywhere(done, tmp_path) == {}
    for name, text in files_below(tmp_path / "evals/results"):
        assert leaks(text, "pass-word-of-mine") == [], name


def test_short_values__are_words_and_no_secrets(tmp_path) -> None:
    write_cases(tmp_path, 1)
    with agent() as running:
        target = {"name": "a", "url": running.url, "headers": {"x-place": "${{ PLACE }}"}}
        (tmp_path / "eval-gate.json").write_text(json.dumps({"targets": [target]}))
        assert gate(tmp_path, "run", PLACE="ok").returncode == 0
