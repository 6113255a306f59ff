"""Real programs: what comes back, what is bounded, and that nothing is left behind."""

import asyncio
import fcntl
import os
import shlex
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from eval_gate.process import run as run_module
from eval_gate.process.run import Command, FinishedProgram, ProcessError, StartRefusal, run
from tests.support.processes import gone, pid_in

ROOT = os.geteuid() == 0


def finished(line: str | tuple[str, ...], cwd: Path, **settings) -> FinishedProgram:
    return asyncio.run(run(Command(line, cwd, **{"environment": os.environ, **settings})))


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def descriptors() -> Counter[str]:
    """What is open, each pipe and socket by its own number."""
    found = Counter[str]()
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the descriptor that lists the folder
            found[str(entry.readlink())] += 1
    return found


# what comes back


def test_run__shell_line__gives_code_and_both_outputs(tmp_path) -> None:
    done = finished("echo out; echo err >&2; exit 3", tmp_path)
    assert (done.code, done.timed_out) == (3, False)
    assert (done.stdout.to_text(), done.stderr.to_text()) == ("out\n", "err\n")
    assert 0 < done.seconds < 30


def test_run__program_with_arguments__is_started_without_a_shell(tmp_path) -> None:
    words = ("$(date)", "a'b\"c", "", "new\nline", "`id`", "*", "ü")
    done = finished((*python("import sys; print(sys.argv[1:])"), *words), tmp_path)
    assert done.stdout.to_text() == f"{list(words)}\n"


def test_run__ended_by_a_signal__code_is_negative(tmp_path) -> None:
    assert finished("kill -9 $$", tmp_path).code == -signal.SIGKILL


def test_run__relative_names__are_looked_up_in_the_folder(tmp_path) -> None:
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\npwd\n")
    program.chmod(0o755)
    assert finished(("./tool",), tmp_path).stdout.to_text().strip() == str(tmp_path.resolve())


def test_run__environment__is_all_there_is(tmp_path) -> None:
    done = finished(("/usr/bin/env",), tmp_path, environment={"ONLY": "this"})
    assert done.stdout.to_text() == "ONLY=this\n"


def test_run__path__is_that_of_the_given_environment(tmp_path) -> None:
    program = tmp_path / "evalgate-own-tool"
    program.write_text("#!/bin/sh\necho mine\n")
    program.chmod(0o755)
    assert finished(("evalgate-own-tool",), tmp_path, environment={"PATH": str(tmp_path)}).stdout.to_text() == "mine\n"


# stdin


def test_run__no_stdin__reads_as_empty(tmp_path) -> None:
    assert finished("cat", tmp_path).stdout.data == b""


@pytest.mark.parametrize("line", ["cat", "cat /dev/stdin", "cat < /dev/stdin"])
def test_run__stdin__arrives_and_can_be_opened_by_name(tmp_path, line) -> None:
    assert finished(line, tmp_path, stdin=b"\x00in\xff").stdout.data == b"\x00in\xff"


def test_run__empty_stdin__ends_at_once(tmp_path) -> None:
    assert finished("cat; echo done", tmp_path, stdin=b"").stdout.data == b"done\n"


def test_run__much_stdin_and_much_output__do_not_wait_for_each_other(tmp_path) -> None:
    data = os.urandom(3_000_000)
    assert finished("cat", tmp_path, stdin=data).stdout.data == data


@pytest.mark.parametrize("line", ["true", "exec 0<&-; echo done", "head -c 1 > /dev/null"])
def test_run__stdin_that_nobody_reads__is_no_trouble(tmp_path, line, caplog) -> None:
    assert finished(line, tmp_path, stdin=b"x" * 5_000_000).code == 0
    assert caplog.records == []


# bounds


def test_run__twelve_megabytes__head_and_tail_are_kept(tmp_path) -> None:
    code = "import sys; w = sys.stdout.write; w('HEAD'); [w('x' * 1_000_000) for _ in range(12)]; w('TAIL')"
    done = finished(python(code), tmp_path)
    assert (done.code, done.stdout.total, len(done.stdout.data)) == (0, 12_000_008, 8_000_000)
    assert done.stdout.is_truncated
    assert done.stdout.data.startswith(b"HEADxxx")
    assert done.stdout.data.endswith(b"xxxTAIL")


def test_run__flood_on_both_outputs__ends_with_the_time_and_stays_small(tmp_path) -> None:
    done = finished("yes out & yes err >&2", tmp_path, timeout_s=0.5, max_output=1000, max_errors=100)
    assert done.timed_out
    assert done.code < 0
    assert (len(done.stdout.data), len(done.stderr.data)) == (1000, 100)
    assert done.stdout.total > 100_000


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="only Linux has pipes of any size")
def test_run__pipe_that_the_program_made_larger__is_read_to_its_end(tmp_path) -> None:
    async def busy_meanwhile() -> FinishedProgram:
        code = "import fcntl, os; fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 1 << 20); os.write(1, b'x' * (1 << 20))"
        running = asyncio.create_task(run(Command(python(code), tmp_path, os.environ)))
        await asyncio.sleep(0)
        time.sleep(1)  # noqa: ASYNC251 (all is in the pipe and the program gone before we look)
        return await running

    assert asyncio.run(busy_meanwhile()).stdout.total == 1 << 20


def test_run__nul_bytes__are_bytes_like_others(tmp_path) -> None:
    done = finished("head -c 3000000 /dev/zero", tmp_path, max_output=1000)
    assert (done.stdout.data, done.stdout.total) == (bytes(1000), 3_000_000)


def test_run__more_than_asked_for__ends_the_program_where_wanted(tmp_path) -> None:
    done = finished("exec yes", tmp_path, max_output=1000, end_when_cut=True)
    assert (done.stdout.is_truncated, done.timed_out, done.code) == (True, False, -signal.SIGTERM)


# the end of everything


@pytest.mark.slow
def test_run__time_is_over__the_whole_tree_is_gone(tmp_path) -> None:
    line = (
        "sh -c 'echo $$ > child; sh -c \"echo \\$\\$ > grandchild; sleep 60; true\"; true' & echo $$ > leader; sleep 60"
    )
    began = time.monotonic()
    done = finished(line, tmp_path, timeout_s=1)
    assert (done.timed_out, done.code) == (True, -signal.SIGTERM)
    assert time.monotonic() - began < 20
    assert all(gone(pid_in(tmp_path / name)) for name in ("leader", "child", "grandchild"))


@pytest.mark.slow
def test_run__request_to_end_is_ignored__is_ended_by_force(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(run_module, "GRACE_S", 0.3)
    done = finished("trap '' TERM; echo $$ > leader; while true; do sleep 0.05; done", tmp_path, timeout_s=0.5)
    assert (done.timed_out, done.code) == (True, -signal.SIGKILL)
    assert gone(pid_in(tmp_path / "leader"))


def test_run__last_words_after_the_request_to_end__are_kept(tmp_path) -> None:
    line = "trap 'echo cleaned up; exit 0' TERM; while true; do sleep 0.02; done"
    done = finished(line, tmp_path, timeout_s=0.5)
    assert (done.timed_out, done.code, done.stdout.to_text()) == (True, 0, "cleaned up\n")


def test_run__child_in_the_background_holds_stdout__is_ended_with_its_leader(tmp_path) -> None:
    began = time.monotonic()
    line = "sh -c 'echo $$ > child; sleep 60; true' & while ! [ -s child ]; do sleep 0.01; done; echo done"
    done = finished(line, tmp_path, timeout_s=30)
    assert (done.code, done.timed_out, done.stdout.to_text()) == (0, False, "done\n")
    assert time.monotonic() - began < 20
    assert gone(pid_in(tmp_path / "child"))


@pytest.mark.slow
def test_run__process_that_left_the_group_holds_stdout__is_not_waited_for(tmp_path) -> None:
    code = "import os, time; os.setsid(); open('child', 'w').write(f'{os.getpid()}\\n'); time.sleep(60)"
    line = f"{shlex.join(python(code))} & while ! [ -s child ]; do sleep 0.01; done; echo done"
    began = time.monotonic()
    try:
        done = finished(line, tmp_path, timeout_s=30)
        assert (done.code, done.stdout.to_text()) == (0, "done\n")
        assert done.seconds <= time.monotonic() - began < 20
    finally:
        os.kill(pid_in(tmp_path / "child"), signal.SIGKILL)


def test_run__cancelled__leaves_no_process(tmp_path) -> None:
    async def cancel() -> None:
        line = "echo $$ > leader; sh -c 'echo $$ > child; sleep 60; true' & sleep 60"
        task = asyncio.create_task(run(Command(line, tmp_path, os.environ)))
        for name in ("leader", "child"):
            await asyncio.to_thread(pid_in, tmp_path / name)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert all(gone(pid_in(tmp_path / name)) for name in ("leader", "child"))


def test_run__cancelled_at_once__leaves_no_process(tmp_path) -> None:
    async def cancel() -> None:
        for turns in range(12):
            task = asyncio.create_task(run(Command(f"echo $$ > pid{turns}; exec sleep 60", tmp_path, os.environ)))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(cancel())
    assert all(gone(int(file.read_text())) for file in tmp_path.glob("pid*") if file.read_text())


def test_run__cancelled_twice__is_still_ended_by_force(tmp_path) -> None:
    async def cancel() -> None:
        line = "trap '' TERM; echo $$ > leader; while true; do sleep 0.05; done"
        task = asyncio.create_task(run(Command(line, tmp_path, os.environ)))
        pid = await asyncio.to_thread(pid_in, tmp_path / "leader")
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0.1)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(gone, pid)

    asyncio.run(cancel())


def test_run__system_without_process_descriptors__a_thread_waits(tmp_path, monkeypatch) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    done = finished("sh -c 'echo $$ > child; sleep 60; true' & echo out; sleep 0.1; exit 4", tmp_path)
    assert (done.code, done.stdout.to_text()) == (4, "out\n")
    assert gone(pid_in(tmp_path / "child"))
    assert finished("sleep 60", tmp_path, timeout_s=0.3).timed_out


def test_run__many_at_once__leave_no_descriptor_open(tmp_path) -> None:
    async def many() -> list[FinishedProgram]:
        return await asyncio.gather(
            *(run(Command(f"echo {number}", tmp_path, os.environ, stdin=b"x")) for number in range(60))
        )

    before = descriptors()
    assert [done.stdout.to_text() for done in asyncio.run(many())] == [f"{number}\n" for number in range(60)]
    # what earlier tests left open may be closed meanwhile
    assert descriptors() - before == Counter()


# what cannot be started


@pytest.mark.parametrize(
    ("line", "refusal", "words"),
    [
        pytest.param(("no-such-program-here",), StartRefusal.PROGRAM, "No such file", id="missing program"),
        pytest.param(("/etc/passwd",), StartRefusal.PROGRAM, "Permission denied", id="no program"),
        pytest.param(("./no-program",), StartRefusal.PROGRAM, "Exec format error", id="text without interpreter"),
        pytest.param(f"echo {'x' * 200_000}", StartRefusal.TOO_LONG, "too long", id="long line"),
        pytest.param(("echo", "x" * 200_000), StartRefusal.TOO_LONG, "too long", id="long argument"),
        pytest.param("echo a\x00b", StartRefusal.TEXT, "NUL", id="NUL"),
        pytest.param(("echo", "\ud83d"), StartRefusal.TEXT, "cannot be passed on", id="half a pair"),
    ],
)
def test_run__cannot_be_started__says_why(tmp_path, line, refusal, words) -> None:
    (tmp_path / "no-program").write_text("nothing")
    (tmp_path / "no-program").chmod(0o755)
    before = descriptors()
    with pytest.raises(ProcessError) as caught:
        finished(line, tmp_path)
    assert caught.value.refusal is refusal
    assert words in caught.value.message
    assert len(caught.value.message) < 500
    assert descriptors() - before == Counter()


@pytest.mark.parametrize("name", ["gone", "file"])
def test_run__working_directory_is_none__says_so(tmp_path, name) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ProcessError) as caught:
        finished("true", tmp_path / name)
    assert caught.value.refusal is StartRefusal.FOLDER
    assert caught.value.message.startswith(f"the working directory {tmp_path / name} cannot be used: ")


def test_run__nul_in_a_variable__says_so(tmp_path) -> None:
    with pytest.raises(ProcessError) as caught:
        finished("true", tmp_path, environment={"A": "b\x00c"})
    assert caught.value.refusal is StartRefusal.TEXT


FIRST_OF_A_CONTAINER = """
import asyncio, ctypes, pathlib, subprocess, sys
from eval_gate.process.orphans import mark_own_process
from eval_gate.process.run import Command, run

mark_own_process()
ctypes.CDLL(None).prctl(36, 1)  # what nobody waits for any more becomes our child (PR_SET_CHILD_SUBREAPER)

def ended():
    ours = pathlib.Path("/proc/thread-self/children").read_text().split()
    return sum(") Z " in pathlib.Path("/proc", one, "stat").read_text() for one in ours)

async def all_of_them():
    helper = await asyncio.create_subprocess_exec("sh", "-c", "sleep 0.1; exit 5")
    git = subprocess.Popen(["sh", "-c", "exit 6"])
    leaving = [run(Command(f"{sys.argv[1]} exit 7", pathlib.Path(), {})) for _ in range(20)]
    for one in leaving[:10]:
        assert (await one).code == 7
    assert {one.code for one in await asyncio.gather(*leaving[10:])} == {7}
    assert (git.wait(), await helper.wait()) == (6, 5)
    for _ in range(500):
        if ended() < 2:
            break
        await asyncio.sleep(0.01)
        await run(Command("true", pathlib.Path(), {}))
    print(ended())

asyncio.run(all_of_them())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such processes, and containers")
@pytest.mark.parametrize("left", ["sleep 100 &", "(setsid sleep 0.1 &);", "setsid true & setsid sh -c 'sleep 0.1 &';"])
@pytest.mark.slow
def test_run__first_process_of_a_container__what_programs_left_is_no_row_of_dead_processes(tmp_path, left) -> None:
    """Nor has anybody else here lost the exit code of whom they wait for."""
    done = finished((*python(FIRST_OF_A_CONTAINER), left), tmp_path)
    assert done.stderr.to_text() == ""
    assert int(done.stdout.to_text()) < 2


# as root


@pytest.mark.skipif(not ROOT, reason="only root can become somebody else")
def test_run__root_in_a_folder_of_somebody__is_that_user_without_other_groups(tmp_path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    os.chown(folder, 1234, 4321)
    ours = os.getgroups()
    os.setgroups([0, 27])
    try:
        line = "id -u; id -g; id -G; echo written > file; echo said > /dev/stderr; cat /dev/stdin"
        done = finished(line, folder, stdin=b"in")
    finally:
        os.setgroups(ours)
    assert done.stdout.to_text() == "1234\n4321\n4321\nin"
    assert done.stderr.to_text() == "said\n"
    assert (folder / "file").stat().st_uid == 1234


@pytest.mark.skipif(not ROOT, reason="only root can become somebody else")
def test_run__folder_of_roots_group__does_not_give_that_group(tmp_path) -> None:
    os.chown(tmp_path, 1234, 0)
    done = finished("id -u; id -G", tmp_path)
    assert done.stdout.to_text() == "1234\n1234\n"


def test_run__own_folder__stays_who_we_are(tmp_path) -> None:
    assert finished("id -u", tmp_path).stdout.to_text() == f"{os.geteuid()}\n"
