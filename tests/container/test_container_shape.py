"""What the runner hands to the container arrives, and what the container leaves is read back."""

from __future__ import annotations

import json
import os

import pytest

from tests.container.runner_shape import PYTHON, RUNNER_ID, Job, parse_outputs, start


def test_step__starts_in_the_checkout_with_the_runners_home_and_files(python, workspace) -> None:
    (workspace / "evals.yaml").write_text("mine\n", encoding="utf-8")
    done = python("-c", _LOOK_AROUND, event={"number": 7}, event_name="pull_request")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout) == {
        "cwd": "/github/workspace",
        "home": "/github/home",
        "checkout": ["evals.yaml"],
        "event": ["pull_request", {"number": 7}],
        "user": 0,
    }


def test_step__hands_back_outputs_summary_and_exit_code(python) -> None:
    done = python("-c", _WRITE_FILE_COMMANDS)
    assert done.exit_code == 3
    assert done.outputs == {"verdict": "failed", "text": "two\nlines"}
    assert done.summary == "# Summary ✓\n"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can lay out a checkout that belongs to somebody else")
def test_step__shows_whose_files_are_left_in_the_checkout(python) -> None:
    done = python("-c", "open('report.html', 'w').close()")
    assert done.owners == {".": (RUNNER_ID, RUNNER_ID), "report.html": (0, 0)}


def test_input__with_a_hyphen_arrives(python) -> None:
    done = python(
        "-c",
        "import os; print(os.environ['INPUT_FAIL-ON'], os.environ['INPUT_AGENT_NAME'])",
        inputs={"fail-on": "regressions", "agent name": "weather"},
    )
    assert done.stdout == "regressions weather\n", done.stderr


def test_input__with_a_hyphen_would_not_survive_a_shell(step) -> None:
    """Why the entry point is a list: should this fail one day, the base image's shell has changed, not our program."""
    done = step(entrypoint="/bin/sh", args=("-c", "env"), inputs={"fail-on": "regressions", "plain": "here"})
    assert "INPUT_PLAIN=here" in done.stdout.splitlines()
    assert "INPUT_FAIL-ON" not in done.stdout


def test_text__is_utf8_although_nobody_sets_a_locale(python) -> None:
    done = python("-c", "import sys; print(sys.stdout.encoding, sys.getfilesystemencoding())", env={"LANG": ""})
    assert done.stdout == "utf-8 utf-8\n", done.stderr


def test_agent__started_in_the_checkout_leaves_no_bytecode_there(python, workspace) -> None:
    (workspace / "tools.py").write_text("", encoding="utf-8")
    done = python("-c", "import subprocess; subprocess.run(['python', '-c', 'import tools'], check=True)")
    assert done.exit_code == 0, done.stderr
    assert set(done.owners) == {".", "tools.py"}


def test_step__in_progress_gets_signals(image, workspace) -> None:
    with start(Job(image, workspace, entrypoint=PYTHON, args=("-I", "-c", _WAIT_FOR_A_SIGNAL))) as running:
        assert running.process.stdout.readline() == "waiting\n"
        running.signal("TERM")
        done = running.finish(timeout=30)
    assert (done.exit_code, done.stdout) == (143, "ended in good order\n"), done.stderr


@pytest.mark.parametrize("text", ["no equals sign\n", "a<<END\nvalue\n", "a<<END\nvalue\nEND"])
def test_outputs__are_refused_where_the_runner_refuses_them(text) -> None:
    with pytest.raises(AssertionError, match="the runner"):
        parse_outputs(text)


_LOOK_AROUND = """
import json, os
with open(os.environ["GITHUB_EVENT_PATH"]) as file:
    event = json.load(file)
print(json.dumps({
    "cwd": os.getcwd(),
    "home": os.path.expanduser("~"),
    "checkout": os.listdir(os.environ["GITHUB_WORKSPACE"]),
    "event": [os.environ["GITHUB_EVENT_NAME"], event],
    "user": os.getuid(),
}))
"""

_WRITE_FILE_COMMANDS = """
import os, sys
with open(os.environ["GITHUB_OUTPUT"], "a") as file:
    file.write("verdict=failed\\n" "text<<END_1\\ntwo\\nlines\\nEND_1\\n")
with open(os.environ["GITHUB_STEP_SUMMARY"], "a", encoding="utf-8") as file:
    file.write("# Summary \\u2713\\n")
sys.exit(3)
"""

_WAIT_FOR_A_SIGNAL = """
import signal, sys, time
def end(*_):
    print("ended in good order")
    sys.exit(143)
signal.signal(signal.SIGTERM, end)
print("waiting", flush=True)
time.sleep(60)
"""
