"""A key in every form at every place from which text is kept or shown: nothing of it is anywhere, whatever is cut.

Masking comes before any cut, quotation and decoration: each form is moved through the place where the text is cut.
"""

from __future__ import annotations

import json
import shlex
import sys
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.support.agents import Exchange, agent
from tests.support.canaries import files_below, leaks
from tests.support.program import gate

KEY = "sk-live-A9b8C7d6E5f4G3h2I1j0K9l8M7n6O5p4Q3r2S1t0U9v8W7x6Y5z4A3b2C1d"
REPORTS = ("md=out/r.md", "html=out/r.html", "junit=out/r.xml", "json=out/r.json", "console=out/r.txt")
EVERYTHING = [*(f"--report={one}" for one in REPORTS), "--export=agentv=out/r.jsonl", "--verbose"]
HALF = len(KEY) // 2


def percent_encode(text: str) -> str:
    return "".join(f"%{ord(sign):02X}" for sign in text)


FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "upper": str.upper,
    "percent, every sign": percent_encode,
    "percent, twice": lambda text: percent_encode(text).replace("%", "%25"),
    "percent, half": lambda text: text[:HALF] + percent_encode(text[HALF:]),
    "unicode escapes": lambda text: "".join(f"\\u{ord(sign):04x}" for sign in text),
    "entities": lambda text: "".join(f"&#{ord(sign)};" for sign in text),
    "base64": lambda text: b64encode(f"user:{text}".encode()).decode(),
    "over lines": lambda text: f"{text[:20]}\n{text[20:45]}\n{text[45:]}",
    "with blanks": lambda text: " ".join(text[at : at + 8] for at in range(0, len(text), 8)),
    "first 40": lambda text: text[:40],
    "last 30": lambda text: text[-30:],
    "from the middle, percent": lambda text: percent_encode(text[14:44]),
    "cut by the server": lambda text: f"{text[:30]}...",
    "hidden by the server": lambda text: f"{text[:9]}{'*' * 20}{text[-6:]}",
}
PADS = (0, 30, 120, 160, 185, 250, 1_900)
"""Characters before the key: excerpts have 80 to 300 characters, errors 2,000."""


def says(text: str) -> Callable[[Exchange], None]:
    return lambda exchange: exchange.answer({"response": text, "toolCalls": []})


def fails(status: str, text: str) -> Callable[[Exchange], None]:
    return lambda exchange: exchange.answer(json.dumps({"error": {"message": text}}).encode(), status)


PLACES: dict[str, Callable[[str], Callable[[Exchange], None]]] = {
    "response": says,
    "argument": lambda text: (
        lambda exchange: exchange.answer({"response": "x", "toolCalls": [{"name": "t", "params": {"a": [text]}}]})
    ),
    "error 401": lambda text: fails("401 No", text),
    "error 500, no JSON": lambda text: lambda exchange: exchange.answer(text.encode(), "500 No"),
    "error in 200": lambda text: fails("200 OK", text),
    "wrong shape": lambda text: lambda exchange: exchange.answer({"answer": text}),
    "no JSON": lambda text: lambda exchange: exchange.answer(f"<html>{text}".encode()),
    "content type": lambda text: (
        lambda exchange: exchange.answer(
            b"{}", **{"Content-Type": f"application/json; x={text.strip().replace(' ', '-').replace(chr(10), '-')}"}
        )
    ),
    "location": lambda text: (
        lambda exchange: exchange.answer(b"", "302 Found", Location=f"/x?k={quote(text, safe=chr(42))}")
    ),
}


def write_suite(project: Path, prompts: list[str]) -> None:
    (project / "evals").mkdir(exist_ok=True)
    cases = [
        {"id": f"c-{at:04}", "input": {"message": prompt}, "expect": {"responseContains": ["ok"]}}
        for at, prompt in enumerate(prompts)
    ]
    (project / "evals/x.golden.json").write_text(json.dumps(cases))


def count_masked(project: Path) -> int:
    """In how many cases something was masked: what never arrived proves nothing."""
    (suite,) = json.loads(next((project / "evals/results").glob("*/run.json")).read_text())["suites"]
    return sum("***" in json.dumps(case).replace("*" * 20, "") for case in suite["cases"])


def find_leaks(done, project: Path) -> dict[str, list[str]]:
    """Where 8 signs of the key stand, in any reading."""
    texts = [("stdout", done.stdout), ("stderr", done.stderr)]
    for folder in ("evals/results", "out"):
        texts += files_below(project / folder) if (project / folder).exists() else []
    return {name: found for name, text in texts if (found := [*leaks(text, KEY), *leaks(text, KEY.upper())])}


@pytest.mark.parametrize("place", PLACES)
def test_key__in_every_form_at_a_place_of_an_agent__is_nowhere(tmp_path, place) -> None:
    made = [(form, pad) for form in FORMS for pad in PADS]
    write_suite(tmp_path, [f"ask {at}" for at in range(len(made))])

    async def handler(exchange: Exchange) -> None:
        form, pad = made[int(exchange.json["message"].split()[1])]
        PLACES[place](f"{'bad word ' * (pad // 9)}{'z' * (pad % 9)} {FORMS[form](KEY)} is what I got")(exchange)

    target = {"name": "a", "headers": {"Authorization": "Bearer ${{ BIG_KEY }}"}, "maxRetries": 0, "workers": 8}
    target |= {"responseFormat": "sse"} if place == "content type" else {}
    with agent(handler) as running:
        (tmp_path / "eval-gate.json").write_text(json.dumps({"targets": [target | {"url": running.url}]}))
        done = gate(tmp_path, "run", *EVERYTHING, BIG_KEY=KEY)
    (suite,) = json.loads(next((tmp_path / "evals/results").glob("*/run.json")).read_text())["suites"]
    left = {
        f"{form} after {pad}": found
        for (form, pad), case in zip(made, suite["cases"], strict=True)
        if (found := leaks(json.dumps(case), KEY) or leaks(json.dumps(case).upper(), KEY.upper()))
    }
    assert left == {}
    assert find_leaks(done, tmp_path) == {}
    assert count_masked(tmp_path) > len(made) // 5


PROGRAMS = {
    "stdout": "sys.stdout.write(text)",
    "stderr": "sys.stderr.write(text); sys.exit(3)",
    "stdout of a failure": "sys.stdout.write(text); sys.exit(3)",
    "events of a failure": "print(json.dumps({'error': {'message': text}})); sys.exit(3)",
}


@pytest.mark.parametrize("place", PROGRAMS)
def test_key__that_a_command_prints_in_every_form__is_nowhere(tmp_path, place) -> None:
    made = [(form, pad) for form in FORMS for pad in (0, 160)]
    texts = [f"{'z ' * (pad // 2)} {FORMS[form](KEY)} {'y ' * pad}" for form, pad in made]
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    write_suite(tmp_path, [str(at) for at in range(len(made))])
    file = str(tmp_path / "texts.json")
    code = f"import json, sys; text = json.load(open({file!r}))[int(sys.argv[1])]; {PROGRAMS[place]}"
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)} {{PROMPT}}"
    target = {"name": "c", "provider": "cli", "command_template": command, "env": {"K": "${{ BIG_KEY }}"}}
    (tmp_path / "eval-gate.json").write_text(json.dumps({"targets": [target]}))
    done = gate(tmp_path, "run", *EVERYTHING, BIG_KEY=KEY)
    assert find_leaks(done, tmp_path) == {}
    assert count_masked(tmp_path) > len(made) // 5


def test_key__that_a_function_raises_in_every_form__is_nowhere(tmp_path) -> None:
    made = [(form, pad) for form in FORMS for pad in PADS]
    (tmp_path / "texts.json").write_text(json.dumps([f"{'z ' * (pad // 2)}{FORMS[form](KEY)}" for form, pad in made]))
    (tmp_path / "agent.py").write_text(
        "import json\n\ndef respond(request):\n"
        "    raise ValueError(json.load(open('texts.json'))[int(request.messages[-1].content)])\n"
    )
    write_suite(tmp_path, [str(at) for at in range(len(made))])
    (tmp_path / "eval-gate.json").write_text(
        json.dumps({"targets": [{"name": "f", "provider": "python", "function": "agent:respond"}]})
    )
    done = gate(tmp_path, "run", *EVERYTHING, BIG_API_KEY=KEY)
    assert find_leaks(done, tmp_path) == {}
    assert count_masked(tmp_path) > len(made) // 5


def test_key__in_every_form_in_the_results_of_another_tool__is_nowhere(tmp_path) -> None:
    made = [(form, pad) for form in FORMS for pad in PADS]
    lines = []
    for at, (form, pad) in enumerate(made):
        text = f"{'z ' * (pad // 2)}{FORMS[form](KEY)} was it"
        line = {"suite": text[-100:], "id": f"{at} {text}"[:900], "status": "failed", "input": text, "expected": text}
        lines.append(line | {"output": text, "error": text})
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = gate(tmp_path, "check", "r.jsonl", *EVERYTHING, BIG_API_KEY=KEY)
    assert done.returncode in {0, 1}, done.stderr
    assert find_leaks(done, tmp_path) == {}


WRONG_LINES = {
    "status": {"id": "a", "status": "{}"},
    "field": {"id": "a", "status": "passed", "{}": 1},
    "no JSON": "{}",
}


@pytest.mark.parametrize("place", WRONG_LINES)
@pytest.mark.parametrize("form", ["plain", "percent, every sign", "first 40"])
def test_key__that_a_reader_quotes__is_nowhere(tmp_path, place, form) -> None:
    for pad in ("", "word " * 6, "z" * 70):
        wrong = json.dumps(WRONG_LINES[place]).replace("{}", json.dumps(pad + FORMS[form](KEY))[1:-1])
        (tmp_path / "r.jsonl").write_text(wrong + "\n")
        done = gate(tmp_path, "check", "r.jsonl", BIG_API_KEY=KEY)
        assert [*leaks(done.stdout + done.stderr, KEY), *leaks(done.stderr, KEY.upper())] == []


OPTIONS = [
    ("run", "--target", "{}"),
    ("run", "--case", "{}"),
    ("run", "--agent-endpoint", "{}"),
    ("run", "--fail-on", "{}"),
    ("run", "--max-errors", "{}"),
    ("run", "--waivers", "{}"),
    ("run", "--baseline", "{}"),
    ("run", "{}"),
    ("report", "{}"),
    ("draft", "--from-log", "{}", "-o", "a.golden.json"),
    ("draft", "--from-log", "x", "--field", "{}", "-o", "a.golden.json"),
    ("waive", "{}", "--reason", "{}", "--until", "{}"),
]


@pytest.mark.parametrize("words", OPTIONS, ids=" ".join)
@pytest.mark.parametrize("form", ["plain", "first 40"])
def test_key__as_the_value_of_an_option__is_not_repeated(tmp_path, words, form) -> None:
    (tmp_path / "x").write_text('{"message": "a"}\n')
    write_suite(tmp_path, ["hi"])
    for pad in ("", "z/" * 40):
        done = gate(tmp_path, *(word.replace("{}", pad + FORMS[form](KEY)) for word in words), BIG_API_KEY=KEY)
        said = done.stdout + done.stderr
        assert done.returncode != 0, said
        assert [*leaks(said, KEY), *leaks(said, KEY.upper())] == []
