"""Only what we mean as a command is one, whatever is said: read back by the runner's own rules.

`Runner` follows ActionCommand.cs and ActionCommandManager.cs of actions/runner.
"""

from __future__ import annotations

import io
import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.github.workflow_commands import MAX_MESSAGE, WorkflowCommands

KNOWN = {
    *("error", "warning", "notice", "debug", "group", "endgroup", "add-mask", "stop-commands", "echo"),
    *("set-env", "set-output", "save-state", "add-path", "add-matcher", "remove-matcher", "internal-set-repo-path"),
}


@dataclass(frozen=True)
class Command:
    name: str
    properties: dict[str, str] = field(hash=False)
    data: str


class Runner:
    """Reads a step's output line by line, as the runner does."""

    def __init__(self) -> None:
        self.stopped: str | None = None
        self.known = set(KNOWN)

    def read(self, text: str) -> list[Command]:
        """The commands that are carried out; stopping and resuming are not among them."""
        found = []
        for line in re.split(r"\r\n|\r|\n", text):
            command = self._new_form(line) or self._old_form(line)
            if command is None:
                continue
            if self.stopped is not None:
                if command.name.lower() == self.stopped.lower():
                    self.known.discard(self.stopped.lower())
                    self.stopped = None
            elif command.name == "stop-commands":
                assert command.data, "an empty token ends nothing"
                self.stopped = command.data
                self.known.add(command.data.lower())
            else:
                found.append(command)
        return found

    def _new_form(self, line: str) -> Command | None:
        """`::name key=value,key=value::data`"""
        line = line.lstrip()
        end = line.find("::", 2)
        if not line.startswith("::") or end < 0:
            return None
        name, _, properties = line[2:end].partition(" ")
        if name.lower() not in self.known:
            return None
        return Command(name, self._properties(properties.strip(), ",", "%3A", "%2C"), self._plain(line[end + 2 :]))

    def _old_form(self, line: str) -> Command | None:
        """`##[name key=value;key=value]data`, anywhere in a line."""
        start = line.find("##[")
        end = line.find("]", start)
        if start < 0 or end < 0:
            return None
        name, _, properties = line[start + 3 : end].partition(" ")
        if name.lower() not in self.known:
            return None
        return Command(name, self._properties(properties.strip(), ";"), self._plain(line[end + 1 :]))

    def _properties(self, text: str, separator: str, *more: str) -> dict[str, str]:
        pairs = [part.split("=", 1) for part in text.split(separator) if "=" in part]
        return {key: self._plain(value, *more) for key, value in pairs}

    def _plain(self, text: str, *more: str) -> str:
        for code in ("%0D", "%0A", *more):
            text = text.replace(code, chr(int(code[1:], 16)))
        return text.replace("%25", "%")


def commands_in(stream: io.StringIO) -> list[Command]:
    return Runner().read(stream.getvalue())


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def commands(stream) -> WorkflowCommands:
    return WorkflowCommands(stream)


HOSTILE = st.sampled_from(
    [
        *(
            "::error::pwned",
            "::add-mask::e",
            "::stop-commands::t",
            "::t::",
            "::endgroup::",
            "::debug::x",
            "  ::error::x",
        ),
        *(
            "##[error]pwned",
            "x ##[add-mask]e",
            "##[group]",
            "\n",
            "\r",
            "\r\n",
            "%0A",
            "%0D%0A",
            "%25",
            "%",
            ":",
            "::",
            ",",
        ),
        *("=", ";", "]", "\t", " ", "\x0b", "\x0c", "\x85", "\u2028", "\x00", "\x1b[31m", "title=x"),
    ]
)
ANY = st.lists(HOSTILE | st.text(max_size=8), max_size=8).map("".join)


@given(st.lists(ANY, min_size=1, max_size=5))
def test_say__any_text__is_never_a_command(lines) -> None:
    stream = io.StringIO()
    commands = WorkflowCommands(stream)
    for line in lines:
        commands.print_line(line)
    runner = Runner()
    assert runner.read(stream.getvalue()) == []
    assert runner.stopped is None
    assert all(line in stream.getvalue() for line in lines)


class SlowStream(io.StringIO):
    """Another thread has its turn after every write."""

    def write(self, text: str) -> int:
        written = super().write(text)
        time.sleep(0.0005)
        return written


@pytest.mark.slow
@pytest.mark.parametrize(
    "within", [WorkflowCommands.stop_commands, lambda _: nullcontext()], ids=["stopped", "not stopped"]
)
def test_commands__of_several_threads__are_exactly_those_that_were_meant(within) -> None:
    """What stops and resumes commands is on lines of its own: another thread's between them would be one, or none."""
    stream = SlowStream()
    commands = WorkflowCommands(stream)

    def speak(thread: int) -> None:
        for number in range(10):
            commands.print_line(f"::error::pwned {thread} {number}")
            commands.write_warning(f"meant {thread} {number}")

    with within(commands), ThreadPoolExecutor(4) as threads:
        list(threads.map(speak, range(4)))
    runner = Runner()
    found = runner.read(stream.getvalue())
    assert sorted(one.data for one in found) == [
        f"meant {thread} {number}" for thread in range(4) for number in range(10)
    ]
    assert {one.name for one in found} == {"warning"}
    assert runner.stopped is None
    lines = stream.getvalue().splitlines()
    assert sum("pwned" in line for line in lines) == 40
    assert all(line.startswith("::") for line in lines)


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(["say", "error", "warning", "mask", "group", "print"]), ANY, ANY)))
def test_commands__among_any_text_while_stopped__are_exactly_those_that_were_meant(steps) -> None:
    """As the action does it: stopped from begin to end, and our own commands let through one by one."""
    stream, meant = io.StringIO(), []
    commands = WorkflowCommands(stream)
    with commands.stop_commands():
        for what, text, other in steps:
            match what:
                case "say":
                    commands.print_line(text)
                case "print":
                    print(text, file=stream)
                case "error" | "warning":
                    getattr(commands, f"write_{what}")(text, title=other, file=other, line=3)
                    meant.append((what, text))
                case "mask":
                    commands.mask_secret(text)
                    meant += [("add-mask", part) for part in text.splitlines() if part.strip()]
                case "group":
                    with commands.open_group(text):
                        print(other, file=stream)
                    meant += [("group", None), ("endgroup", "")]
    runner = Runner()
    found = runner.read(stream.getvalue())
    assert [one.name for one in found] == [name for name, _ in meant]
    assert [one.data for one, (_, data) in zip(found, meant, strict=True) if data is not None] == [
        data[:MAX_MESSAGE] for _, data in meant if data is not None
    ]
    assert runner.stopped is None


@given(message=ANY, title=ANY, file=ANY, line=st.integers(0, 10**6))
def test_error__any_properties__arrive_as_they_were(message, title, file, line) -> None:
    stream = io.StringIO()
    WorkflowCommands(stream).write_error(message, title=title, file=file, line=line)
    (command,) = commands_in(stream)
    assert (command.name, command.data) == ("error", message)
    expected = {"title": title, "file": file} | ({"line": str(line)} if line else {})
    assert {key: value.strip() for key, value in command.properties.items()} == {
        key: value.strip() for key, value in expected.items()
    }


def test_warning__signs_that_mean_something__are_escaped_percent_first(commands, stream) -> None:
    commands.write_warning("100%\r\n%0A::error::x", title="a:b,c%", file="evals/a,b:c.json", line=7)
    assert stream.getvalue() == (
        "::warning title=a%3Ab%2Cc%25,file=evals/a%2Cb%3Ac.json,line=7::100%25%0D%0A%250A::error::x\n"
    )


def test_warning__no_place__says_no_file_and_no_line(commands, stream) -> None:
    commands.write_warning("w")
    assert stream.getvalue() == "::warning title=Eval Gate::w\n"


def test_error__very_long__keeps_what_the_runner_keeps(commands, stream) -> None:
    commands.write_error("é" * 10_000)
    (command,) = commands_in(stream)
    assert command.data == "é" * MAX_MESSAGE
    assert MAX_MESSAGE <= 4_096


@pytest.mark.parametrize(
    ("secret", "masked"),
    [
        ("ghs_one", ["ghs_one"]),
        ("-----BEGIN\r\nabc%\n\n  \nEND-----\n", ["-----BEGIN", "abc%", "END-----"]),
        ("", []),
        ("\n\r\n ", []),
    ],
)
def test_mask__secret_of_several_lines__is_masked_line_by_line(commands, stream, secret, masked) -> None:
    commands.mask_secret(secret)
    found = commands_in(stream)
    assert [(one.name, one.data) for one in found] == [("add-mask", part) for part in masked]


def test_stopped__inside_itself__is_one_stop_and_one_end(commands, stream) -> None:
    with commands.stop_commands(), commands.stop_commands():
        commands.print_line("::error::x")
    lines = stream.getvalue().splitlines()
    token = lines[0].removeprefix("::stop-commands::")
    assert lines == [f"::stop-commands::{token}", "::error::x", f"::{token}::"]
    assert re.fullmatch(r"[0-9a-f]{32}", token)


def test_stopped__twice__by_another_word_each_time(commands, stream) -> None:
    for _ in range(3):
        commands.print_line("x")
    tokens = re.findall(r"::stop-commands::(\w+)", stream.getvalue())
    assert len(set(tokens)) == 3


def test_stopped__something_breaks_inside__commands_work_again(commands, stream) -> None:
    with pytest.raises(ZeroDivisionError), commands.stop_commands(), commands.open_group("work"):
        raise ZeroDivisionError
    commands.write_error("afterwards")
    runner = Runner()
    assert [one.name for one in runner.read(stream.getvalue())] == ["group", "endgroup", "error"]
    assert runner.stopped is None


def test_group__title_with_a_line_break__is_one_line_and_the_inside_is_not_protected_by_it(commands, stream) -> None:
    with commands.open_group("cases\n::error::x"):
        commands.print_line("::warning::y")
    assert [(one.name, one.data) for one in commands_in(stream)] == [("group", "cases ⏎ ::error::x"), ("endgroup", "")]


def test_commands__one_stream__keeps_the_order(commands, stream) -> None:
    commands.print_line("first")
    commands.write_error("second")
    commands.print_line("third")
    text = stream.getvalue()
    assert text.index("first") < text.index("second") < text.index("third")
