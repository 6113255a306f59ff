"""Programs that are written to while they run."""

import asyncio
import os
from pathlib import Path

import pytest

from eval_gate.process.run import Command, ProcessError, start_interactive
from tests.unit.process.test_process_run import gone

PATH = {"PATH": os.environ["PATH"]}


def command(line: str, root: Path, heard: list[bytes]) -> Command:
    return Command(line, root, PATH, max_output=0, watch=heard.append)


async def until(heard: list[bytes], size: int) -> bytes:
    async with asyncio.timeout(20):
        while len(b"".join(heard)) < size:  # noqa: ASYNC110 (what is heard comes by a plain callback)
            await asyncio.sleep(0.005)
    return b"".join(heard)


def test_talk__what_is_written__is_answered_turn_by_turn(tmp_path) -> None:
    async def main() -> None:
        heard: list[bytes] = []
        async with start_interactive(command('while read line; do echo "<$line>"; done', tmp_path, heard)) as program:
            program.write(b"one\n")
            assert await until(heard, 6) == b"<one>\n"
            program.write(b"two\n")
            program.write(b"three\n")
            assert await until(heard, 20) == b"<one>\n<two>\n<three>\n"
            assert program.ending is None
        assert program.ending == "exited with code 0"  # it read the end of its input

    asyncio.run(main())


def test_talk__more_than_a_pipe_holds__arrives_whole(tmp_path) -> None:
    async def main() -> None:
        heard: list[bytes] = []
        async with start_interactive(command("sleep 0.2; cat", tmp_path, heard)) as program:
            program.write(b"x" * 3_000_000)
            program.write(b"y")
            assert (await until(heard, 3_000_001)).endswith(b"xy")

    asyncio.run(main())


def test_talk__program_that_ended__is_written_to_in_vain(tmp_path) -> None:
    async def main() -> None:
        async with start_interactive(command("echo gone >&2; exit 7", tmp_path, [])) as program:
            async with asyncio.timeout(20):
                await program.ended.wait()
            program.write(b"x" * 100_000)
            await asyncio.sleep(0.05)
            assert (program.ending, program.format_last_line(100)) == ("exited with code 7", "gone")

    asyncio.run(main())


@pytest.mark.slow
def test_talk__that_is_left_by_an_error__ends_the_program_and_its_children(tmp_path) -> None:
    async def main() -> None:
        heard: list[bytes] = []

        async def broken() -> None:
            async with start_interactive(command("trap '' TERM; sleep 100 & echo $!; wait", tmp_path, heard)):
                await until(heard, 2)
                raise KeyError

        with pytest.raises(KeyError):
            await broken()
        assert gone(int(b"".join(heard)))

    asyncio.run(main())


def test_talk__program_that_is_not_there__cannot_be_started(tmp_path) -> None:
    async def main() -> None:
        with pytest.raises(ProcessError):
            async with start_interactive(Command(("no-such-program",), tmp_path, PATH)):
                raise AssertionError

    asyncio.run(main())
