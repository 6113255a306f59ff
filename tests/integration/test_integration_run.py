"""The program as a person runs it: real processes, real agents, exit codes, files, signals."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eval_gate.text.javascript.strings import dump_compact_json
from tests.support.agents import Exchange, agent, ok, unused_port, vanishing_agent
from tests.support.answers import fails_on
from tests.support.offered import offered
from tests.support.program import gate

PROGRAM = [sys.executable, "-m", "eval_gate"]
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith(("EVAL_GATE_", "GITHUB_", "CI"))}
ROOT = Path(__file__).parents[2]


def write_suite(folder: Path, count: int = 6, name: str = "weather.golden.json", **expect) -> Path:
    cases = [
        {
            "id": f"gs-{number:03}",
            "input": {"message": f"ask {number}"},
            "expect": expect or {"responseContains": ["ok"]},
        }
        for number in range(count)
    ]
    file = folder / "evals" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(cases))
    return file


def record(folder: Path) -> dict:
    results = folder / "evals" / "results"
    return json.loads((results / json.loads((results / "latest.json").read_text())["path"]).read_text())


@pytest.mark.contract("run.exit-codes")
def test_run__everything_passes__exits_0_with_summary_and_files(tmp_path) -> None:
    write_suite(tmp_path)
    with agent() as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url, "--verbose")
    title = done.stdout.splitlines()[0]
    assert (done.returncode, len(title), title.rstrip("═")) == (0, 67, "═══ weather — golden evals ")
    assert "  6/6 passed | 0 failed | 0 skipped assertions | " in done.stdout
    assert done.stdout.splitlines()[-2].startswith("GATE PASSED: all rules hold for 6 cases   exit 0")
    assert "running 6 cases of 1 suite against" in done.stderr
    found = record(tmp_path)
    assert (found["complete"], found["verdict"]["outcome"], found["summary"]["passed"]) == (True, "passed", 6)
    assert len((tmp_path / "evals/results" / found["runId"] / "cases.jsonl").read_text().splitlines()) == 6


@pytest.mark.contract("run.exit-codes")
def test_run__a_case_fails__exits_1_and_says_how_to_run_it_again(tmp_path) -> None:
    write_suite(tmp_path)
    with agent(fails_on(2)) as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url, "--concurrency", "4")
        assert done.returncode == 1
        assert "    failed    responseContains: expected 'ok' in response but not found" in done.stdout
        rerun = offered("rerun:", done.stdout)
        assert rerun == ["run", "--agent-endpoint", running.url, "--concurrency", "4", "--case", "gs-002"]
        again = gate(tmp_path, *rerun)
    assert (again.returncode, "0 of 1 pass   1 does not pass" in again.stdout) == (1, True)


def test_run__baseline__tells_regressions_from_known_failures(tmp_path) -> None:
    write_suite(tmp_path)
    with agent(fails_on(1, 2)) as running:
        gate(tmp_path, "run", "--agent-endpoint", running.url)
    first = record(tmp_path)["runId"]
    with agent(fails_on(2, 3)) as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url, "--baseline", first, "--fail-on", "regressions")
    assert done.returncode == 1
    assert "REGRESSIONS (1): gs-003" in done.stdout
    assert "NEW PASSES (1): gs-001" in done.stdout
    found = record(tmp_path)
    assert (found["suites"][0]["regressions"], found["suites"][0]["newPasses"]) == (["gs-003"], ["gs-001"])
    assert (found["baselineRunId"], found["suites"][0]["baselineRunId"]) == (first, first)
    compared = gate(tmp_path, "compare", first, found["runId"], "--fail-on", "regressions")
    assert compared.returncode == 1
    assert "REGRESSIONS (1): gs-003" in compared.stdout
    report = gate(tmp_path, "report", "latest", "--format", "md")
    assert report.returncode == 0
    assert "## ❌ Agent eval gate — 1 regression" in report.stdout


def test_run__json__is_the_record_alone_on_standard_output(tmp_path) -> None:
    write_suite(tmp_path)
    with agent() as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url, "--json")
    assert json.loads(done.stdout) == record(tmp_path)


def test_run__reports__are_written_where_asked(tmp_path) -> None:
    write_suite(tmp_path)
    with agent() as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url, "--report", "html", "--report", "junit=out/j.xml")
    assert done.returncode == 0
    assert (tmp_path / "out/j.xml").read_text().startswith("<?xml")
    assert (tmp_path / "evals/results" / record(tmp_path)["runId"] / "report.html").is_file()


def test_run__report_that_cannot_be_written__is_said_before_anything_is_asked(tmp_path) -> None:
    write_suite(tmp_path)
    (tmp_path / "taken").mkdir()
    with agent() as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url, "--report", "html=taken")
        assert running.requests == []
    assert done.returncode == 2
    assert '"taken" is not a regular file' in done.stderr


def test_run__results_that_cannot_be_written__asks_nothing(tmp_path) -> None:
    write_suite(tmp_path)
    (tmp_path / "taken").write_text("")
    with agent() as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url, "--output-dir", "taken/results")
        assert running.requests == []
    assert (done.returncode, "error[output-not-writable]" in done.stderr) == (2, True)


def test_run__trials__are_shown_as_k_of_n(tmp_path) -> None:
    write_suite(tmp_path, 1)

    async def sometimes(exchange: Exchange) -> None:
        exchange.answer({"response": "no" if exchange.number == 1 else "ok"})

    with agent(sometimes) as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url, "--trials", "3")
        assert (done.returncode, "FLAKY (1)\n  gs-000: 2 of 3 pass; responseContains: " in done.stdout) == (0, True)
        assert len(running.requests) == 3
        assert gate(tmp_path, "run", "--agent-endpoint", running.url, "--fail-on", "regressons").returncode == 2


@pytest.mark.contract("run.exit-codes", "file.all-problems")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"id": "a",]', "evals/weather.golden.json:1: "),
        ('[{"id": "a", "input": {"message": 1}, "expect": {}}]', "[0].input.message: expected text, got the number 1"),
        ("[]", "needs at least 1, got an empty list"),
    ],
)
def test_run__bad_eval_file__exits_2_asks_nothing_and_writes_nothing(tmp_path, text, said) -> None:
    write_suite(tmp_path).write_text(text)
    with agent() as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url)
        assert running.requests == []
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "evals/results").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--baseline", "nope"], "error[baseline-not-found]"),
        (["--seed-manifest", "none.json"], "error[seed-manifest-not-found]"),
        (["--fail-on", "regresion"], 'did you mean "regressions"?'),
        (["--case", "zzz*"], "error[no-selected-cases]"),
        (["--case", ""], '--case "" names no case'),
        (["--tier", "goldn"], 'did you mean "golden"?'),
        (["--report", "pdf"], '--report[0]: "pdf" is not known'),
        (["--resume", "nope"], "error[run-not-found]"),
        (["nowhere.json"], 'there is no "nowhere.json"'),
        (["--concurrency", "0"], "--concurrency: must be >= 1"),
        (["--reruns", "six"], '--reruns: expected a whole number, got text "six"'),
        (["--min-pass-rate", "90%"], '--min-pass-rate: expected a number, got text "90%"'),
        (["--timeout-ms", "0"], "--timeout-ms: must be > 0"),
        (["--config", "none.yaml"], "error[configuration-unreadable]"),
        (["--tool-registry", "none"], "error[registry-not-found]"),
        (["--target", "x"], "error[conflicting-targets]"),
        (["--nonsense"], "No such option"),
    ],
    ids=str,
)
def test_run__wrong_usage__exits_2_with_one_clear_message(tmp_path, arguments, said) -> None:
    write_suite(tmp_path)
    with agent() as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url, *arguments)
        assert running.requests == []
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr


def test_run__a_target_beside_the_agent_of_the_file__replaces_it_and_in_one_file_is_a_conflict(tmp_path) -> None:
    write_suite(tmp_path)
    (tmp_path / "eval-gate.yaml").write_text("agentEndpoint: http://localhost:8000/chat\n")
    done = gate(tmp_path, "run", "--target", "desk")
    assert done.returncode == 2
    assert 'the target "desk" is not described: no targets are set, and no targets.yaml exists' in done.stderr
    (tmp_path / "eval-gate.yaml").write_text("agentEndpoint: http://localhost:8000/chat\ntarget: desk\n")
    done = gate(tmp_path, "run")
    assert done.returncode == 2
    assert "are both given, but a run evaluates one target" in done.stderr
    assert "eval-gate.yaml:1: agentEndpoint: is given here" in done.stderr
    assert "eval-gate.yaml:2: target: is given here" in done.stderr
    assert "hint: keep one of agentEndpoint, agentFunction, target and model" in done.stderr


def test_run__no_target__says_how_to_name_one(tmp_path) -> None:
    write_suite(tmp_path)
    done = gate(tmp_path, "run")
    assert done.returncode == 2
    assert "--agent-endpoint http://localhost:8000/chat" in done.stderr


@pytest.mark.contract("run.stubs-need-a-model")
def test_run__case_with_stubs__is_refused_with_its_place(tmp_path) -> None:
    write_suite(tmp_path).write_text(
        '[\n{"id": "a", "input": {"message": "x"}, "expect": {"toolsCalled": []}, "stubs": {}}]'
    )
    with agent() as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url)
        assert running.requests == []
    assert done.returncode == 2
    assert "evals/weather.golden.json:2: stubs: case a has stubs" in done.stderr


def test_run__agent_goes_away_during_the_run__exits_3_after_five_cases(tmp_path) -> None:
    write_suite(tmp_path, 40)
    with vanishing_agent() as url:
        done = gate(tmp_path, "run", "--agent-endpoint", url, "--max-retries", "0")
    assert done.returncode == 3
    assert (
        "GATE INCONCLUSIVE: no connection to the target, 5 cases in a row: agent error: no connection to" in done.stdout
    )
    assert record(tmp_path)["summary"]["notRun"] == 35


@pytest.mark.parametrize("kind", ["html", "streams", "hangs"])
def test_run__agent_that_answers_nonsense__ends_with_a_clear_message_and_keeps_the_rest(tmp_path, kind) -> None:
    write_suite(tmp_path, 5)

    async def handler(exchange: Exchange) -> None:
        if exchange.json["message"] != "ask 2":
            exchange.answer({"response": "ok"})
        elif kind == "html":
            exchange.answer(b"<html>Bad gateway</html>")
        elif kind == "streams":
            exchange.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while True:
                exchange.write(b"1000\r\n" + b"x" * 4096 + b"\r\n")
                await exchange.writer.drain()
        else:
            await asyncio.sleep(60)

    with agent(handler) as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url, "--timeout-ms", "1500")
    assert done.returncode == 1
    cases = record(tmp_path)["suites"][0]["cases"]
    assert [case["status"] for case in cases if case["id"] != "gs-002"] == ["passed"] * 4
    said = {
        "html": "agent error: the response is not JSON; it begins «<html>Bad gateway</html>»",
        "streams": "agent error: the response is larger than 10,000,000 bytes",
        "hangs": "timeout: no response within 1500 ms",
    }[kind]
    assert cases[2]["error"].startswith(said)
    assert (cases[2]["status"], cases[2]["errorKind"]) == ("error", "agent_error")


def test_run__health_check_fails__exits_3_and_asks_nothing(tmp_path) -> None:
    write_suite(tmp_path)
    with agent() as running:
        target = {
            "name": "a",
            "provider": "http",
            "url": running.url,
            "healthcheck": f"http://127.0.0.1:{unused_port()}/health",
        }
        (tmp_path / "eval-gate.json").write_text(json.dumps({"targets": [target]}))
        done = gate(tmp_path, "run")
        assert running.requests == []
    assert done.returncode == 3
    assert "the health check got no connection" in done.stdout


def test_run__seed_and_snapshot__reach_the_assertions(tmp_path) -> None:
    write_suite(tmp_path, 1, responseContains=["{{seed:word}}", "{{snapshot:now.n}}"])
    (tmp_path / "evals/seed-manifest.json").write_text('{"word": "ok"}')
    command = f"{sys.executable} -c 'print({dump_compact_json({'now': {'n': 4.0}})!r})'".replace("'", '"')
    (tmp_path / "print.py").write_text('print(\'{"now": {"n": 4.0}}\')')
    command = f"{sys.executable} print.py"

    async def handler(exchange: Exchange) -> None:
        exchange.answer({"response": "ok 4"})

    with agent(handler) as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url, "--snapshot-command", command)
        assert (done.returncode, "skipped assertion" in done.stdout) == (0, False)
        without = gate(tmp_path, "run", "--agent-endpoint", running.url)
    assert "1 skipped assertion" in without.stdout
    assert "responseContains: {{snapshot:now.n}} not found, so it is not compared" in without.stdout
    assert "no snapshot source is set (snapshotPath or snapshotCommand)" in " ".join(without.stdout.split())


def test_run__cases_in_yaml__are_those_of_json(tmp_path) -> None:
    (tmp_path / "evals").mkdir()
    text = "- id: a\n  input: {message: hi}\n  expect: {responseContains: [ok]}\n"
    (tmp_path / "evals" / "a.golden.yaml").write_text(text)
    (tmp_path / "evals" / "b.yml").write_text("cases:\n" + text.replace("id: a", "id: gs-b"))
    agentv = "- id: c\n  input: hi\n  assertions: [{type: contains, value: ok}]\n"
    (tmp_path / "evals" / "c.cases.yaml").write_text(agentv)
    (tmp_path / "evals" / "d.eval.yaml").write_text("tests: c.cases.yaml\n")
    with agent() as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {suite["evalFile"]: suite["cases"][0]["id"] for suite in record(tmp_path)["suites"]}
    assert found == {"evals/a.golden.yaml": "a", "evals/b.yml": "gs-b", "evals/d.eval.yaml": "c"}
    (tmp_path / "evals" / "a.golden.yaml").write_text(text.replace("responseContains: [ok]", "maxLatencyMs: 0"))
    said = gate(tmp_path, "validate").stderr
    assert "evals/a.golden.yaml:3: [0].expect.maxLatencyMs: must be > 0.0, got the number 0" in said


def test_run__tokens_without_a_seed_manifest__the_file_that_is_missing_is_named_once(tmp_path) -> None:
    write_suite(tmp_path, 2, responseContains=["{{seed:word}}", "ok"])
    with agent() as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url)
        (tmp_path / "evals/seed-manifest.json").write_text('{"word": "ok"}')
        there = gate(tmp_path, "run", "--agent-endpoint", running.url)
    missing = "no seed manifest found (evals/seed-manifest.json or seedManifestPath), and 2 cases have"
    assert " ".join(done.stdout.split()).count(missing) == 1
    assert "seed manifest" not in there.stdout


def test_run__secret_in_a_header__is_nowhere_in_output_or_files(tmp_path) -> None:
    write_suite(tmp_path, 2)

    async def echoes(exchange: Exchange) -> None:
        exchange.answer(exchange.header("x-key").encode(), "500 Internal Server Error")

    with agent(echoes) as running:
        target = {"name": "a", "url": running.url, "headers": {"X-Key": "${{ AGENT_KEY }}"}}
        (tmp_path / "eval-gate.json").write_text(json.dumps({"targets": [target]}))
        done = gate(tmp_path, "run", "-v", AGENT_KEY="hunter2-hunter2")
        assert running.requests[0].header("x-key") == "hunter2-hunter2"
    written = "".join(file.read_text() for file in (tmp_path / "evals").rglob("*") if file.is_file())
    assert "hunter2" not in done.stdout + done.stderr + written
    assert "***" in written


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*PROGRAM, "run", *arguments],
        cwd=folder,
        env=ENVIRONMENT | {"PYTHONPATH": str(ROOT / "runner")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until(condition, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


async def slowly(exchange: Exchange) -> None:
    await asyncio.sleep(0.03)
    await ok(exchange)


def test_run__kill_9_then_resume__nothing_finished_is_lost_or_asked_again(tmp_path) -> None:
    write_suite(tmp_path, 60)
    with agent(slowly) as running:
        arguments = ["--agent-endpoint", running.url, "--concurrency", "3"]
        process = started(tmp_path, *arguments)
        wait_until(lambda: len(running.requests) >= 15)
        process.kill()
        process.communicate()
        killed = record(tmp_path)
        journal = tmp_path / "evals/results" / killed["runId"] / "cases.jsonl"
        finished = {json.loads(line)["caseId"] for line in journal.read_text().splitlines()}
        asked_before = len(running.requests)
        assert killed["complete"] is False
        assert 10 <= len(finished) < 60

        done = gate(tmp_path, "run", *arguments, "--resume", killed["runId"])
        asked_again = {exchange.json["message"] for exchange in running.requests[asked_before:]}
    assert done.returncode == 0
    assert f"resuming, {len(finished)} of 60 done" in done.stderr
    assert asked_again == {f"ask {number}" for number in range(60) if f"gs-{number:03}" not in finished}
    resumed = record(tmp_path)
    assert (resumed["runId"], resumed["complete"], resumed["summary"]["passed"]) == (killed["runId"], True, 60)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"])
def test_run__signal__writes_what_is_done_and_exits_by_the_signal(tmp_path, number, code) -> None:
    write_suite(tmp_path, 200)
    with agent(slowly) as running:
        process = started(tmp_path, "--agent-endpoint", running.url, "--report", "junit")
        wait_until(lambda: len(running.requests) >= 5)
        process.send_signal(number)
        output, errors = process.communicate(timeout=20)
    assert process.returncode == code, errors
    found = record(tmp_path)
    assert found["complete"] is False
    assert 3 <= found["summary"]["passed"] < 200
    assert found["summary"]["passed"] + found["summary"]["notRun"] == 200
    assert "GATE INCONCLUSIVE" in output
    assert f"eval-gate run --resume {found['runId']}" in errors
    assert (tmp_path / "evals/results" / found["runId"] / "junit.xml").is_file()


def test_run__on_a_terminal__shows_a_bar_that_is_gone_afterwards(tmp_path) -> None:
    import pty

    write_suite(tmp_path, 30)

    async def once_wrong(exchange: Exchange) -> None:
        await asyncio.sleep(0.03)
        await fails_on(3)(exchange)

    terminal, theirs = pty.openpty()
    with agent(once_wrong) as running:
        process = subprocess.Popen(
            [*PROGRAM, "run", "--agent-endpoint", running.url, "--concurrency", "2"],
            cwd=tmp_path,
            env=ENVIRONMENT | {"PYTHONPATH": str(ROOT / "runner"), "TERM": "xterm-256color", "COLUMNS": "100"},
            stdout=subprocess.PIPE,
            stderr=theirs,
        )
        os.close(theirs)
        shown = b""
        while chunk := _read(terminal):
            shown += chunk
        process.communicate()
    os.close(terminal)
    text = shown.decode()
    assert process.returncode == 1
    assert re.search(r"\d+/30 .{0,40}1 failed · last: gs-003", " ".join(text.split()))
    assert "━" in text
    assert text.rstrip().endswith(("\x1b[2K", "\x1b[?25h", "\x1b[1A\x1b[2K"))


def _read(terminal: int) -> bytes:
    """What the terminal shows next; nothing when the program has let go of it."""
    try:
        return os.read(terminal, 65_536)
    except OSError:
        return b""


def test_run__hostile_package_in_the_workspace__is_not_run(tmp_path) -> None:
    (tmp_path / "eval_gate").mkdir()
    (tmp_path / "eval_gate/__init__.py").write_text("print('HOSTILE')")
    (tmp_path / "eval_gate/__main__.py").write_text("print('HOSTILE')")
    done = subprocess.run(
        [sys.executable, "-I", "-m", "eval_gate", "--version"],
        cwd=tmp_path,
        env=ENVIRONMENT | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "HOSTILE" in done.stdout) == (0, False)


def test_program__repository_with_a_folder_called_runner__starts(tmp_path) -> None:
    (tmp_path / "runner").mkdir()
    (tmp_path / "runner/__init__.py").write_text("raise SystemExit('theirs')")
    done = subprocess.run(
        [str(Path(sys.executable).with_name("eval-gate")), "--version"],
        cwd=tmp_path,
        env=ENVIRONMENT | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_module_runner__in_a_checkout__is_the_program() -> None:
    for words in (["-m", "runner"], ["-I", "-m", "runner"]):
        done = subprocess.run(
            [sys.executable, *words, "--version"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout[:10]) == (0, "eval-gate "), done.stderr


def test_run__first_one_by_the_readme__speaks_of_known_failures_only_where_something_fails(tmp_path) -> None:
    write_suite(tmp_path, 2)
    with agent(fails_on()) as running:
        green = gate(tmp_path, "run", "--agent-endpoint", running.url, "--fail-on", "regressions")
    with agent(fails_on(1)) as running:
        red = gate(tmp_path, "run", "--agent-endpoint", running.url, "--fail-on", "regressions")
    assert (green.returncode, red.returncode) == (0, 0)
    assert "GATE PASSED: every case passed; no baseline to compare with" in " ".join(green.stdout.split())
    said = "no baseline to compare with: regressions cannot be distinguished from known failures"
    assert said in " ".join(red.stdout.split())
