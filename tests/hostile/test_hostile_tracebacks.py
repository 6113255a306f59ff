"""Finding 8: tracebacks where a sentence belongs, and exit code 1, "the gate failed", for what says nothing about it.

Through the whole program in a process of its own, with the real limit, the real disk, the real signal.
"""

import copy
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import gone

ROOT = Path(__file__).parents[2]
HALF = "\ud800"
GATE = [sys.executable, "-m", "eval_gate"]
RUN = ("run", "--targets", "targets.yaml", "--target", "it")


def world(folder: Path, cases: int = 3, command: str = "echo ok") -> None:
    (folder / "evals").mkdir(exist_ok=True)
    (folder / "evals" / "weather.golden.json").write_text(
        json.dumps(
            [
                {"id": f"gs-{number}", "input": {"message": "ask"}, "expect": {"responseContains": ["ok"]}}
                for number in range(cases)
            ]
        )
    )
    (folder / "targets.yaml").write_text(json.dumps([{"name": "it", "provider": "cli", "command_template": command}]))


def environment(**more: str | bytes) -> dict:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("EVAL_GATE_", "GITHUB_", "CI"))}
    return clean | {"PYTHONPATH": str(ROOT / "runner")} | more


def gate(
    folder: Path, *arguments: str | bytes, before: str = "", after: str = "", **more
) -> subprocess.CompletedProcess:
    """The program as a shell starts it: `before` are limits, `after` is where its streams go."""
    done = subprocess.run(
        ["bash", "-c", f'{before} "$@" {after}', "bash", *GATE, *arguments],
        cwd=folder,
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done


def said(done: subprocess.CompletedProcess) -> str:
    return done.stderr.decode()


def places(value, path=()):
    """Every text in a record, and every place where none is given."""
    if isinstance(value, dict | list):
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(member, (*path, key))
    elif value is None or isinstance(value, str):
        yield path


def record(folder: Path) -> dict:
    results = folder / "evals" / "results"
    return json.loads((results / json.loads((results / "latest.json").read_text())["path"]).read_text())


@pytest.mark.parametrize(
    "config", [{"outputDir": HALF}, {"evals": [HALF]}, {"targets": [{HALF: {"a": [HALF]}}]}, {HALF: 1}]
)
def test_finding_8__half_a_character_in_the_configuration__is_a_mistake_in_it(tmp_path, config) -> None:
    world(tmp_path)
    (tmp_path / "eval-gate.json").write_text(json.dumps(config))
    done = gate(tmp_path, *RUN[:1])
    assert done.returncode == 2
    assert "error[invalid-configuration]" in said(done)
    assert "eval-gate.json:1" in said(done)


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [
        ((b"caf\xe9.json",), {}),
        (("--output-dir", b"r\xff"), {}),
        (("--baseline", b"r\xff"), {}),
        ((), {"EVAL_GATE_EVALS": b"\xff"}),
        ((), {"EVAL_GATE_TIMEOUT_MS": b"\xff"}),
    ],
)
def test_finding_8__bytes_that_are_no_text__are_a_mistake_of_usage(tmp_path, arguments, variables) -> None:
    world(tmp_path)
    done = gate(tmp_path, *RUN, *arguments, **variables)
    assert done.returncode == 2
    assert "contains bytes that are not UTF-8, or half of a surrogate pair" in said(done)


@pytest.mark.slow
def test_finding_8__half_a_character_in_a_stored_result__is_shown_as_a_replacement(tmp_path) -> None:
    world(tmp_path)
    assert gate(tmp_path, *RUN).returncode == 0
    whole = record(tmp_path)
    bad = copy.deepcopy(whole)
    case = bad["suites"][0]["cases"][0]
    case |= {"difficulty": HALF, "tags": [HALF], "description": HALF, "error": HALF}
    case["details"] |= {"response": HALF, "toolsCalled": [HALF]}
    bad["target"]["name"] = bad["suites"][0]["evalFile"] = HALF
    (tmp_path / "bad.json").write_text(json.dumps(bad))
    for form in ("md", "html", "junit", "console", "json"):
        done = gate(tmp_path, "report", "bad.json", "--format", form)
        assert (done.returncode, done.stdout.decode() != "") == (0, True), said(done)
    assert gate(tmp_path, *RUN, "--baseline", "bad.json").returncode == 0
    for number, path in enumerate(places(whole)):
        (tmp_path / f"{number}.json").write_text(json.dumps(_with_half(whole, path)))
    every = [f"{number}.json" for number in range(len(list(places(whole))))]
    program = f"""
import sys
import msgspec
from eval_gate.errors import GateError
from eval_gate.results.run_reader import read_run
from eval_gate.reports.rendering import render
from eval_gate.reports.context import ReportContext
from pathlib import Path
for name in {every!r}:
    try:
        run = read_run(name, Path("."))
    except GateError:
        continue
    msgspec.json.encode(run)
    for form in ("md", "html", "junit"):
        render(form, run, ReportContext()).encode()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()[-2_000:]


def _with_half(whole: dict, path: tuple) -> dict:
    changed = copy.deepcopy(whole)
    at = changed
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = (at[path[-1]] or "") + HALF
    return changed


def test_finding_8__half_a_character_in_an_eval_file__is_evaluated_as_a_replacement(tmp_path) -> None:
    world(tmp_path)
    case = {
        "id": f"gs-{HALF}",
        "description": HALF,
        "difficulty": HALF,
        "bugRef": HALF,
        "tags": [HALF],
        HALF: 1,
        "input": {"message": f"ask {HALF}"},
        "expect": {"responseContains": ["ok"], "responseNotContains": [HALF]},
    }
    file = tmp_path / "evals" / "weather.golden.json"
    file.write_text(json.dumps({"metadata": {"toolName": HALF, "toolVersion": HALF, HALF: HALF}, "cases": [case]}))
    done = gate(tmp_path, *RUN, "--report", "md", "--report", "html", "--report", "junit", "--export", "agentv=a.jsonl")
    assert done.returncode == 0, said(done)
    assert record(tmp_path)["suites"][0]["cases"][0]["id"] == "gs-\ufffd"


def test_finding_8__an_eval_file_whose_name_is_no_text__is_named(tmp_path) -> None:
    world(tmp_path)
    strange = os.fsencode(tmp_path) + b"/evals/caf\xe9.golden.json"
    Path(os.fsdecode(strange)).write_bytes((tmp_path / "evals" / "weather.golden.json").read_bytes())
    done = gate(tmp_path, *RUN)
    assert done.returncode == 2
    assert "its name is not UTF-8: rename it" in said(done)


def test_finding_8__a_commit_whose_branch_is_no_text__is_recorded(tmp_path) -> None:
    world(tmp_path)
    done = gate(tmp_path, *RUN, GITHUB_SHA="a" * 40, GITHUB_REF=b"refs/heads/caf\xe9")
    assert done.returncode == 0, said(done)
    assert record(tmp_path)["git"]["ref"] == "refs/heads/caf\ufffd"


@pytest.mark.parametrize("files", [5, 6, 12, 24])
def test_finding_8__too_few_files_may_be_open__is_said(tmp_path, files) -> None:
    world(tmp_path)
    done = gate(tmp_path, *RUN, before=f"ulimit -n {files};")
    assert done.returncode in {0, 2, 3}  # 1 would say that the gate failed
    if done.returncode:
        assert "Too many open files" in (said(done) + done.stdout.decode()) or "too many files are open" in said(done)


def test_finding_8__a_disk_that_is_full_before_anything_is_asked__is_said(tmp_path) -> None:
    world(tmp_path)
    done = gate(tmp_path, *RUN, before="ulimit -f 0;")
    assert done.returncode == 3
    assert "error[resource-exhausted]" in said(done)


@pytest.mark.parametrize("kilobytes", [3, 20])
@pytest.mark.slow
def test_finding_8__a_disk_that_becomes_full_during_the_run__is_said(tmp_path, kilobytes) -> None:
    world(tmp_path, cases=100)
    done = gate(tmp_path, *RUN, "--concurrency", "8", before=f"ulimit -f {kilobytes};")
    assert done.returncode == 3
    assert "a file would exceed the allowed size" in said(done)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
@pytest.mark.slow
def test_finding_8__a_real_full_disk__is_said(tmp_path) -> None:
    world(tmp_path, cases=100)
    disk = tmp_path / "evals" / "results"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", disk], check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        done = gate(tmp_path, *RUN, "--concurrency", "8")
    finally:
        subprocess.run(["umount", disk], check=True)
    assert done.returncode == 3
    assert "the disk is full" in said(done)


@pytest.mark.parametrize("arguments", [RUN, (*RUN, "--json"), ("--help",), ("schema", "run")])
def test_finding_8__standard_output_on_a_full_disk__is_said(tmp_path, arguments) -> None:
    world(tmp_path)
    done = gate(tmp_path, *arguments, after="> /dev/full")
    assert done.returncode == 3
    assert "error[resource-exhausted]" in said(done)


@pytest.mark.parametrize("command", ["echo ok", "echo no"])
@pytest.mark.parametrize(
    "after",
    [
        "| head -c 0; exit ${PIPESTATUS[0]}",
        ">&-",
        "2>&-",
        "2> /dev/full",
        ">&- 2>&-",
        ">&- 2>&- <&-",
        "2>&1 | head -c 0; exit ${PIPESTATUS[0]}",
    ],
)
def test_finding_8__nobody_reads_what_is_said__the_exit_code_is_the_gates(tmp_path, after, command) -> None:
    world(tmp_path, command=command)
    for more in ((), ("--json",)):
        done = gate(tmp_path, *RUN, *more, after=after)
        assert done.returncode == (command != "echo ok"), said(done)
    assert record(tmp_path)["verdict"]["outcome"] == ("passed" if command == "echo ok" else "failed")


@pytest.mark.parametrize("arguments", [("--help",), ("schema", "run"), ("validate",)])
def test_finding_8__nobody_reads_what_was_asked_for__is_no_failed_gate(tmp_path, arguments) -> None:
    world(tmp_path)
    for after in ("| head -c 0; exit ${PIPESTATUS[0]}", ">&-"):
        assert gate(tmp_path, *arguments, after=after).returncode == 0


SIGNALS = pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
AT_IMPORT = """
import os, signal, sys
class At:
    def find_spec(self, name, path=None, target=None):
        if name == "{name}":
            os.kill(os.getpid(), {number})
sys.meta_path.insert(0, At())
sys.argv[0] = "eval-gate"
from eval_gate.cli.main import main
main()
"""


@pytest.mark.parametrize(
    "name",
    [
        *(
            "eval_gate.cli.terminal.standard_streams",
            "eval_gate.errors",
            "typer",
            "eval_gate.cli.program",
            "eval_gate.cli.runs.run",
        ),
        *("pydantic", "pydantic_core", "eval_gate.cli.runs.single_run", "eval_gate.config.loader", "asyncio", "yaml"),
        *(
            "eval_gate.engine.preparation.plan_builder",
            "eval_gate.engine.run",
            "eval_gate.formats.tool_forge.dialect",
            "eval_gate.targets.command.target",
        ),
        *(
            "eval_gate.reports.console.summary",
            "eval_gate.reports.page.html",
            "jinja2",
            "eval_gate.reports.exports.junit",
        ),
    ],
)
@SIGNALS
def test_finding_8__a_signal_in_the_middle_of_an_import__is_130_or_143(tmp_path, name, number, code) -> None:
    world(tmp_path)
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            AT_IMPORT.format(name=name, number=int(number)),
            *RUN,
            "--report",
            "html",
            "--report",
            "junit",
        ],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, said(done)
    assert b"Traceback" not in done.stderr
    left = [path for path in (tmp_path / "evals").rglob(".*") if path.is_file()]
    assert left == []  # what is written is whole or not there


AT_START = """
import os, signal, subprocess, sys
begin = subprocess.Popen.__init__
def begun(self, line, **options):
    begin(self, line, **options)
    if "sleep" in str(line):
        os.kill(os.getpid(), {number})
subprocess.Popen.__init__ = begun
sys.argv[0] = "eval-gate"
from eval_gate.cli.main import main
main()
"""


@SIGNALS
@pytest.mark.parametrize("where", ["snapshot", "agent"])
def test_finding_8__a_signal_just_behind_the_start_of_a_program__ends_that_too(tmp_path, where, number, code) -> None:
    command = f"echo $$ > {tmp_path}/started; exec sleep 60"
    world(tmp_path, command=command if where == "agent" else "echo ok")
    given = (*RUN, *(("--snapshot-command", command) if where == "snapshot" else ()))
    done = subprocess.run(
        [sys.executable, "-c", AT_START.format(number=int(number)), *given],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, said(done)
    assert b"Traceback" not in done.stderr
    started = tmp_path / "started"
    if started.exists() and started.read_text():  # else it was ended before it could say its number
        assert gone(started)


@SIGNALS
@pytest.mark.parametrize("where", ["snapshot", "agent"])
def test_finding_8__a_signal_while_something_is_awaited__is_130_or_143(tmp_path, where, number, code) -> None:
    command = f"echo $$ > {tmp_path}/started; kill -{int(number)} $PPID; exec sleep 20"
    world(tmp_path, command=command if where == "agent" else "echo ok")
    done = gate(tmp_path, *RUN, *(("--snapshot-command", command) if where == "snapshot" else ()))
    assert done.returncode == code, said(done)
    assert b"Traceback" not in done.stderr
    if where == "snapshot":
        assert done.stderr.splitlines()[-1] == (b"interrupted" if code == 130 else b"terminated (SIGTERM)")
    assert gone(tmp_path / "started")


TOO_LONG = "x" * 256


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", TOO_LONG),
        ("run", "--tool-registry", f"tools/{TOO_LONG}.json"),
        ("run", "--targets", TOO_LONG),
        ("calibrate", TOO_LONG),
        ("merge", TOO_LONG),
        ("check", TOO_LONG),
        ("report", "latest", "--output-dir", TOO_LONG),
        ("compare", TOO_LONG, "latest"),
        ("run", "--config", TOO_LONG),
    ],
)
def test_name_longer_than_a_name_may_be__is_a_mistake_of_usage(tmp_path, arguments) -> None:
    world(tmp_path)
    done = gate(tmp_path, *arguments)
    assert done.returncode == 2
    longest = max(len(part) for argument in arguments for part in argument.split("/"))
    assert f"contains a file name of {longest} bytes (limit 255)" in " ".join(said(done).split())


@pytest.mark.parametrize(
    ("written", "what"),
    [
        ("maxCostIncrease: .inf", "maxCostIncrease: a number that JSON does not have"),
        ("maxLatencyIncrease: 1.0e+400", "maxLatencyIncrease: a number that JSON does not have"),
        ("maxTokenIncrease: .nan", "maxTokenIncrease: a number that JSON does not have"),
        ('systemPromptPath: "a\\0b"', "systemPromptPath: contains a NUL character"),
        ('outputDir: "a\\0b"', "outputDir: contains a NUL character"),
        ('reports: ["md=a\\0b"]', "contains a NUL character"),
        (
            "targets: [{name: it, url: 'http://localhost:9', agentProtocol: []}]",
            "agentProtocol: expected 'eval-gate', ",
        ),
        ('targets: [{name: it, provider: cli, commandTemplate: touch asked, cwd: "a\\0"}]', "contains a NUL character"),
    ],
    ids=lambda text: text[:20],
)
def test_setting_that_no_system_takes__is_a_mistake_before_anything_is_asked(tmp_path, written, what) -> None:
    world(tmp_path, command="touch asked; echo ok")
    (tmp_path / "eval-gate.yaml").write_text(written + "\n")
    done = gate(tmp_path, "run", *(() if "targets" in written else RUN[1:]))
    assert done.returncode == 2
    assert what in said(done)
    assert not (tmp_path / "evals" / "asked").exists()
    assert not (tmp_path / "asked").exists()
