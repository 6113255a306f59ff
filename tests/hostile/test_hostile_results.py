"""Results of other tools by somebody who means harm: secrets in them, and names that a shell would read."""

from __future__ import annotations

import base64
import json
import shlex
from pathlib import Path

import pytest

from tests.support.canaries import files_below, leaks
from tests.support.program import gate

KEY = "sk-3vK/9q+Zt==Wm\"7\\xR2'pL8"
NAMES = (
    "it's",
    'say "hi"',
    "$(touch owned)",
    "`touch owned`",
    "'; touch owned; '",
    '"; touch owned; "',
    "a\nb",
    "*",
    "~",
    "{output}",
    "{ids}",
    "$HOME",
    "PATH=x",
    "\\",
    "#",
    "!x",
    "a\\'b",
    "ü🙂",
    "n" * 1_000,
)
RECORDER = """import json, sys
from pathlib import Path
sys.stderr.write("key " + {said!r})
asked = sys.argv[2:-1]
with Path("asked.jsonl").open("a") as file:
    file.write(json.dumps({{"asked": asked, "listed": Path(sys.argv[1]).read_text()}}) + "\\n")
lines = [json.dumps({{"id": name, "status": "passed", "output": {said!r}}}) + "\\n" for name in json.loads({names!r})]
Path(sys.argv[-1]).write_text("".join(lines))
"""


def forms(secret: str) -> list[str]:
    return [secret, json.dumps(secret), base64.b64encode(f"x{secret}".encode()).decode(), repr(secret)]


def results(folder: Path, status: str, names: tuple[str, ...]) -> str:
    lines = [{"id": name, "status": status, "input": f"q {at}"} for at, name in enumerate(names)]
    (folder / "out.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return "out.jsonl"


def recorder(folder: Path, names: tuple[str, ...], said: str = "") -> str:
    (folder / "again.py").write_text(RECORDER.format(said=said, names=json.dumps(names)))
    return "/usr/bin/env python3 again.py {ids_file}"


def asked(folder: Path) -> list[dict]:
    file = folder / "asked.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def everything(folder: Path) -> list[tuple[str, str]]:
    """What is left but for what the tool itself wrote."""
    return list(files_below(folder / "evals"))


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "DB_PASSWORD", "GITHUB_TOKEN"])
def test_results_of_another_tool__a_key_that_is_set_here__is_in_nothing_that_is_written(tmp_path, variable) -> None:
    lines = []
    for at, said in enumerate(forms(KEY)):
        text = f"it is {said}, and {said}"
        row = {"id": f"case {at} {said}", "suite": f"s {said}", "status": "failed", "target": f"x {said}"}
        row |= dict.fromkeys(("input", "output", "expected", "error", "description"), text)
        row["checks"] = [{"name": f"c {said}", "passed": False, "reason": text}]
        row["tool_calls"] = [{"name": f"t {said}", "params": {said: [text]}, "output": {"a": text}}]
        lines.append(row | {"tags": [f"t {said}"]})
    (tmp_path / "out.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    reports = [word for form in ("md", "html", "json", "junit", "console") for word in ("--report", form)]
    done = gate(tmp_path, "check", "out.jsonl", *reports, "--export", "agentv=evals/results/a.jsonl", **{variable: KEY})
    assert done.returncode == 1, done.stdout + done.stderr
    found = {"stdout": leaks(done.stdout, KEY), "stderr": leaks(done.stderr, KEY)}
    found |= {name: leaks(text, KEY) for name, text in everything(tmp_path)}
    assert len(found) > 6
    assert {name: pieces for name, pieces in found.items() if pieces} == {}


def test_results_of_another_tool__markup_commands_and_controls__are_text_everywhere(tmp_path) -> None:
    text = (
        "</script><script>alert(1)</script><img src=x onerror=alert(1)> \u202eevil ##[error]x\n::error::y \x00\x1b[31m"
    )
    row = {"id": f"c {text}", "suite": f"s {text}", "status": "failed", "target": f"x {text}", "tags": [f"t {text}"]}
    row |= dict.fromkeys(("input", "output", "expected", "error", "description"), text)
    row["checks"] = [{"name": f"c {text}", "passed": False, "reason": text}]
    row["tool_calls"] = [{"name": f"t {text}", "params": {text: [text]}, "output": text}]
    (tmp_path / "out.jsonl").write_text(json.dumps(row | {"file": f"../../{text}", "line": 3}))
    reports = [word for form in ("md", "html", "console") for word in ("--report", form)]
    done = gate(tmp_path, "check", "out.jsonl", *reports, "--verbose")
    assert done.returncode == 1, done.stdout + done.stderr
    shown = {name: text for name, text in everything(tmp_path) if not name.endswith(".json")}
    assert len(shown) == 3
    for name, said in {**shown, "stdout": done.stdout, "stderr": done.stderr}.items():
        assert not {"\u202e", "\x00", "\x1b"} & set(said), name
    for line in (done.stdout + done.stderr).splitlines():
        assert not line.lstrip().startswith("::")
        assert "##[" not in line
    page = next(said for name, said in shown.items() if name.endswith(".html"))
    assert "<script>alert" not in page
    assert "<img src=x" not in page


def test_results_of_another_tool__variable_that_is_no_secret__masks_nothing(tmp_path) -> None:
    (tmp_path / "out.jsonl").write_text(json.dumps({"id": "a", "status": "failed", "error": "the monkey business"}))
    done = gate(tmp_path, "check", "out.jsonl", MONKEY="monkey business", KEYBOARD="monkey", MODEL_NAME="business")
    assert "the monkey business" in done.stdout


@pytest.mark.parametrize("fails", [False, True])
def test_rerun_command__what_it_says_with_a_key_in_it__is_masked(tmp_path, fails) -> None:
    assert gate(tmp_path, "check", results(tmp_path, "passed", ("a",))).returncode == 0
    command = "echo $MY_KEY >&2; false {output}" if fails else recorder(tmp_path, ("a",), said=KEY) + " {ids} {output}"
    options = ("--rerun-command", command, "--pass-env", "MY_KEY", "--verbose")
    out = results(tmp_path, "failed", ("a",))
    done = gate(tmp_path, "check", out, "--baseline", "latest", *options, MY_KEY=KEY)
    assert "wrote no results: ***" in done.stdout if fails else asked(tmp_path)
    texts = [done.stdout, done.stderr, *(text for _, text in everything(tmp_path))]
    assert [leaks(text, KEY) for text in texts] == [[]] * len(texts)


ALL_AT_ONCE = ("--allowed-regressions", "1000")
"""Nothing is spared where so many do not make the gate red."""


@pytest.mark.parametrize("words", ["{ids}", "'{ids}'", '"{ids}"'])
def test_rerun_command__hostile_names__are_one_word_each_and_run_nothing(tmp_path, words) -> None:
    names = tuple(name for name in NAMES if "\n" not in name)
    assert gate(tmp_path, "check", results(tmp_path, "passed", names)).returncode == 0
    command = f"{recorder(tmp_path, names)} {words} {{output}}"
    out = results(tmp_path, "failed", names)
    gate(tmp_path, "check", out, "--baseline", "latest", "--rerun-command", command, *ALL_AT_ONCE)
    first = asked(tmp_path)[0]
    assert first["asked"] == list(names)
    assert first["listed"].splitlines() == list(names)
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize(("words", "names"), [("{id}", NAMES[:7]), ("{ids_regex}", NAMES[:7])])
@pytest.mark.slow
def test_rerun_command__hostile_names_one_by_one_or_as_a_pattern__run_nothing(tmp_path, words, names) -> None:
    assert gate(tmp_path, "check", results(tmp_path, "passed", names)).returncode == 0
    command = f"{recorder(tmp_path, names).replace('{ids_file}', 'out.jsonl')} {words} {{output}}"
    gate(tmp_path, "check", results(tmp_path, "failed", names), "--baseline", "latest", "--rerun-command", command)
    said = [word for one in asked(tmp_path) for word in one["asked"]]
    assert set(said) == set(names) if words == "{id}" else len(set(said)) >= 1
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize(
    ("words", "odd"), [("{ids}", "--rootdir=/"), ("{id}", "-n"), ("{ids_regex}", "a\0b"), ("{ids_file} x", "b\nreal")]
)
def test_rerun_command__name_that_would_be_an_option_or_another_name__is_not_said(tmp_path, words, odd) -> None:
    names = ("real", odd)
    assert gate(tmp_path, "check", results(tmp_path, "passed", names)).returncode == 0
    listed = "{ids_file}" if "file" in words else "out.jsonl"
    command = f"{recorder(tmp_path, ('real',)).replace('{ids_file}', listed)} {words.split()[-1]} {{output}}"
    out = results(tmp_path, "failed", names)
    done = gate(tmp_path, "check", out, "--baseline", "latest", "--rerun-command", command)
    assert "cannot be re-run: its name cannot be an argument of a command" in done.stdout
    if words != "{ids_file} x":
        assert all("real" in "".join(one["asked"]) for one in asked(tmp_path))
    assert all(odd not in one["asked"] and "b" not in one["listed"].split("\n")[:1] for one in asked(tmp_path))
    assert asked(tmp_path)


def test_rerun_command__more_names_than_a_line_can_hold__names_the_file(tmp_path) -> None:
    names = tuple(f"{at} {'n' * 900}" for at in range(200))
    assert gate(tmp_path, "check", results(tmp_path, "passed", names)).returncode == 0
    out = results(tmp_path, "failed", names)
    done = gate(
        tmp_path,
        "check",
        out,
        "--baseline",
        "latest",
        "--rerun-command",
        "echo {ids} {output}",
        "--allowed-regressions",
        "150",  # so many and one are run again at once
        "--fail-on",
        "regressions",
    )
    assert "an argument is too long for the system: use {ids_file} in it" in done.stdout
    assert done.returncode == 1, "so many at once are a drop of the suite"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            'x "-k {ids_regex}" {output}',
            "contains {ids_regex} inside quotes, where the shell could run parts of its value as code",
        ),
        ("sh -c 'x {ids}' {output}", "write {ids} alone, or use {ids_file}"),
        ("x `y {id}`", "contains {id} inside or behind backquotes"),
        ("{ids} {output}", "contains {ids} in the place of a program"),
        ("x ${ids}", "contains ${ids}, which is a shell variable: write {ids} without the $"),
    ],
)
def test_rerun_command__name_where_the_shell_would_read_it__is_refused_before_anything_is_read(
    tmp_path, command, said
) -> None:
    done = gate(tmp_path, "check", "missing.json", "--rerun-command", command)
    assert done.returncode == 2
    assert said in done.stderr
    (tmp_path / "eval-gate.yaml").write_text(f"failOn: [failures]\nrerunCommand: {json.dumps(command)}\n")
    done = gate(tmp_path, "check", "missing.json")
    assert "eval-gate.yaml:2: rerunCommand" in done.stderr
    assert said in done.stderr


def test_recorder__is_a_command_as_people_write_them(tmp_path) -> None:
    assert shlex.split(recorder(tmp_path, ()))[:2] == ["/usr/bin/env", "python3"]


def claiming(name: str, again: list[str]) -> str:
    """Results of six cases, of which the second failed and is said to have been run again, with these ends."""
    rows = [{"id": f"c{at}", "status": "passed", "input": f"q {at}"} for at in range(6)]
    failed = rows[1] | {"status": "failed", "trial": 0}
    more = [rows[1] | {"status": end, "trial": at, "rerun": True} for at, end in enumerate(again, 1)]
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in (rows[0], failed, *more, *rows[2:])))
    return name


def main_passed(folder: Path, runs: int = 3) -> tuple[str, ...]:
    """Runs of main in which six cases passed; what the change is judged by."""
    lines = [json.dumps({"id": f"c{at}", "status": "passed", "input": f"q {at}"}) + "\n" for at in range(6)]
    (folder / "main.jsonl").write_text("".join(lines))
    for _ in range(runs):
        assert gate(folder, "check", "main.jsonl", "--output-dir", "main").returncode == 0
    return "--baseline", "main", "--fail-on", "regressions"


@pytest.mark.parametrize(("reruns", "counted", "code"), [("0", 0, 1), ("2", 2, 0), ("6", 6, 0)])
def test_results_of_another_tool__more_re_runs_than_the_gate_would_make__do_not_count(
    tmp_path, reruns, counted, code
) -> None:
    against = main_passed(tmp_path)
    file = claiming(f"{tmp_path}/out.jsonl", ["passed"] * 500)
    done = gate(tmp_path, "check", file, *against, "--reruns", reruns, "--output-dir", "out")
    (record,) = (tmp_path / "out").glob("*/run.json")
    cases = {case["id"]: case for suite in json.loads(record.read_text())["suites"] for case in suite["cases"]}
    assert (done.returncode, cases["c1"]["reruns"]) == (code, counted), done.stdout


def test_results_of_another_tool__re_runs_that_failed_too__are_what_the_file_says(tmp_path) -> None:
    against = main_passed(tmp_path)
    file = claiming(f"{tmp_path}/out.jsonl", ["failed"] * 3)
    done = gate(tmp_path, "check", file, *against, "--report", "md=c.md")
    assert done.returncode == 1
    assert "failed 4 of 4 here, 0 of 3 in the history" in (tmp_path / "c.md").read_text()
