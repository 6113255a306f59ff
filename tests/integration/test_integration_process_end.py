"""Programs that run when the gate itself is ended: none of them is left, at whatever moment the signals come."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.integration.test_integration_run import write_suite
from tests.support.processes import eventually
from tests.support.program import CLEAN, PROGRAM

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc"),
    pytest.mark.slow,
]
SIGNALS = pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
AT_CALLS = """
import os, signal, sys
moments = {moments}
def heard(frame, event, what):
    for one in moments:
        name = getattr(what, "__name__", frame.f_code.co_name)
        if one[3] and (event, name) == one[:2] and one[2] in repr(frame.f_locals):
            os.kill(os.getpid(), one[3].pop())
sys.setprofile(heard)
sys.argv[0] = "eval-gate"
from eval_gate.cli.main import main
main()
"""
"""The program, which gets signals when it calls a function, or comes back from one of Python's, amid a word."""
STAYS = "trap '' INT TERM; : {what}; while :; do sleep 1; done"
"""A program that only force ends."""


def ended_at(
    folder: Path, *moments: tuple[str, str, str, list[int]], arguments: Sequence[str] = (), command: str = "run"
):
    """What became of a run that gets these signals at these moments, one each time."""
    return subprocess.run(
        [sys.executable, "-c", AT_CALLS.format(moments=moments), command, *arguments],
        cwd=folder,
        env=CLEAN,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@SIGNALS
def test_ended__while_a_program_is_being_started__does_not_leave_it_behind(tmp_path, number, code) -> None:
    """The program runs before Python has its number."""
    write_suite(tmp_path, 1)
    (tmp_path / "eval-gate.json").write_text(json.dumps({"snapshotCommand": STAYS.format(what=tmp_path)}))
    moment = ("c_return", "fork_exec", "trap", [int(number)])
    done = ended_at(tmp_path, moment, arguments=["--agent-endpoint", "http://localhost:9"])
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert left(str(tmp_path)) == []


@SIGNALS
@pytest.mark.parametrize("event", ["c_call", "c_return"])
@pytest.mark.parametrize("times", [1, 2])
def test_ended__again_while_programs_are_being_ended__leaves_none(tmp_path, number, code, event, times) -> None:
    """Its programs do not listen, and are ended by force in two seconds, in the middle of which the others come."""
    write_suite(tmp_path, 4)
    agent = {"name": "desk", "provider": "cli", "command_template": STAYS.format(what=f"{tmp_path} {{EVAL_ID}}")}
    (tmp_path / "eval-gate.json").write_text(json.dumps({"targets": [agent], "target": "desk", "concurrency": 4}))
    first, then = ("c_return", "fork_exec", "trap", [2]), (event, "killpg", "SIGKILL", [int(number)] * times)
    done = ended_at(tmp_path, first, then)
    assert (done.returncode in {130, code}, "Traceback" in done.stderr) == (True, False), done.stderr
    assert left(str(tmp_path)) == []


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [(signal.SIGINT, 130, "interrupted\n"), (signal.SIGTERM, 143, "terminated (SIGTERM)\n")],
)
@pytest.mark.parametrize("stderr", ["pipe", "closed"])
def test_ended__while_the_program_is_loaded__says_so_as_later_on(tmp_path, number, code, word, stderr) -> None:
    moments = [("c_call", "exec", "eval_gate.cli.program", [int(number)])]
    closing = "import os; os.close(2)\n" if stderr == "closed" else ""
    done = subprocess.run(
        [sys.executable, "-c", closing + AT_CALLS.format(moments=moments), "--version"],
        cwd=tmp_path,
        env=CLEAN,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", word if stderr == "pipe" else "")


def write_agents(folder: Path, line: str) -> None:
    """Four cases, all of which are asked at once: each a program of its own."""
    write_suite(folder, 4)
    agent = {"name": "desk", "provider": "cli", "command_template": line}
    (folder / "eval-gate.json").write_text(json.dumps({"targets": [agent], "target": "desk", "concurrency": 4}))


def test_ended__a_second_time_before_anything_has_ended__leaves_none(tmp_path) -> None:
    """When whoever listened for the first signal stops to listen, the system's own action is not asked for."""
    write_agents(tmp_path, STAYS.format(what=f"{tmp_path} {{EVAL_ID}}"))
    first = ("c_return", "fork_exec", "trap", [15])
    done = ended_at(tmp_path, first, ("c_return", "signal", "SIG_DFL", [15]))
    assert (done.returncode, "Traceback" in done.stderr) == (143, False), done.stderr
    assert left(str(tmp_path)) == []


@SIGNALS
def test_ended__by_a_burst_of_signals__leaves_none_and_is_no_verdict(tmp_path, number, code) -> None:
    write_agents(tmp_path, STAYS.format(what=f"{tmp_path} {{EVAL_ID}}"))
    for _ in range(4):
        process = subprocess.Popen(
            [*PROGRAM, "run"], cwd=tmp_path, env=CLEAN, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert eventually(lambda: bool(shells(str(tmp_path))))
        for _ in range(200):  # far fewer than Python nests handlers, should each come amid the one before
            process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, "Traceback" in errors) == (code, False), errors
        assert left(str(tmp_path)) == []


FLOOD = "import os, sys\nwhile True: os.kill(int(sys.argv[1]), int(sys.argv[2]))"


@SIGNALS
@pytest.mark.parametrize("begun", [True, False], ids=["amid its cases", "from the beginning"])
def test_ended__by_a_flood_of_signals__leaves_none_and_breaks_nothing(tmp_path, number, code, begun) -> None:
    """As many a second as two processes can send, and no end of them before its own."""
    write_agents(tmp_path, STAYS.format(what=f"{tmp_path} {{EVAL_ID}}"))
    for turn in range(4):
        process = subprocess.Popen(
            [*PROGRAM, "run"], cwd=tmp_path, env=CLEAN, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        if begun:
            assert eventually(lambda: bool(shells(str(tmp_path))))
        else:
            time.sleep(0.1 + 0.1 * turn)  # Python itself has no answer to SIGTERM before it runs us
        flood = [sys.executable, "-c", FLOOD, str(process.pid), str(int(number))]
        senders = [subprocess.Popen(flood, stderr=subprocess.DEVNULL) for _ in range(2)]
        _, errors = process.communicate(timeout=60)
        for sender in senders:
            sender.kill()
            sender.wait()
        assert (process.returncode in {code, -number}, "Traceback" in errors) == (True, False), errors
        assert left(str(tmp_path)) == []


def test_ended__a_third_time_on_a_terminal__gives_it_its_cursor_back(tmp_path) -> None:
    """The first signal has the programs end, the second gives the summary up, and the third waits for nobody."""
    write_agents(tmp_path, STAYS.format(what=f"{tmp_path} {{EVAL_ID}}"))
    terminal, theirs = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, "run"],
        cwd=tmp_path,
        env=CLEAN | {"TERM": "xterm-256color"},
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    assert eventually(lambda: bool(shells(str(tmp_path))))
    shown = b""
    with suppress(OSError):  # nobody writes to it any more
        while chunk := os.read(terminal, 65_536):
            shown += chunk
            if b"\x1b[?25l" in shown:
                process.send_signal(signal.SIGINT)
    os.close(terminal)
    # one more signal can come when Python has put its handlers away; a shell calls either end 130
    assert process.wait(60) in {130, -signal.SIGINT}
    assert shown.rindex(b"\x1b[?25h") > shown.rindex(b"\x1b[?25l")
    assert left(str(tmp_path)) == []


@SIGNALS
def test_ended__while_its_results_are_made__is_not_taken_for_a_verdict(tmp_path, number, code) -> None:
    """They are made in one go, after the last case: the run is over, and complete."""
    write_agents(tmp_path, "echo ok > {OUTPUT_FILE}")
    moment = ("call", "_build_result", "'is_final': True", [int(number)])
    done = ended_at(tmp_path, moment)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert "4 of 4 pass" in done.stdout
    (record,) = (tmp_path / "evals/results").glob("*/run.json")
    assert json.loads(record.read_text())["complete"] is True


@SIGNALS
def test_ended__while_what_is_wrong_is_being_found__is_no_usage_error(tmp_path, number, code) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "broken.golden.json").write_text("[{}]")
    moment = ("call", "load_suites", "", [int(number)])
    done = ended_at(tmp_path, moment, arguments=["--agent-endpoint", "http://localhost:9"])
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr


@SIGNALS
@pytest.mark.parametrize("times", [1, 2, 3])
def test_ended__when_it_had_come_to_its_end__is_the_code_of_the_signal(tmp_path, number, code, times) -> None:
    moments = [("call", "end_programs", "", [int(number)]), ("call", "_report_signal", "", [int(number)] * (times - 1))]
    done = ended_at(tmp_path, *moments, command="schema", arguments=["run"])
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr


def left(word: str) -> list[str]:
    """The commands of shells that have this word in them and do not end; they are ended then."""
    if eventually(lambda: not shells(word)):
        return []
    found = shells(word)
    for number in found:
        os.kill(number, signal.SIGKILL)
    return list(found.values())


def shells(word: str) -> dict[int, str]:
    """The shells that run and have this word in their command, by their numbers."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            said = (process / "cmdline").read_bytes().decode("utf-8", "replace")
            if "trap" in said and word in said:
                found[int(process.name)] = said
    return found
