"""A checkout that tries to be our program: a pull request decides what lies in it, and the step's token is at stake."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.container.runner_shape import PYTHON, give_to_runner

TRAPS = (
    "eval_gate/__init__.py",
    "eval_gate/__main__.py",
    "eval_gate/cli/main.py",
    "sitecustomize.py",
    "usercustomize.py",
    "github.py",
    "typer.py",
    "json.py",
    "pydantic/__init__.py",
    # whichever Python the image has: a trap for another one would catch nothing
    *(
        f".local/lib/python3.{minor}/site-packages/{name}"
        for minor in range(11, 30)
        for name in ("usercustomize.py", "trap.pth")
    ),
)
HOSTILE_ENVIRONMENT = {
    "PYTHONPATH": "/github/workspace",
    "PYTHONUSERBASE": "/github/workspace/.local",
    "PYTHONSTARTUP": "/github/workspace/sitecustomize.py",
    "PYTHONINSPECT": "",
}


@pytest.fixture
def hostile(workspace: Path) -> Path:
    """A checkout full of traps. A trap that runs leaves a mark."""
    for name in TRAPS:
        trap = workspace / name
        trap.parent.mkdir(parents=True, exist_ok=True)
        trap.write_text("import os; os.close(os.open('/github/workspace/SPRUNG', os.O_CREAT))\n", encoding="utf-8")
    give_to_runner(workspace)
    return workspace


def test_traps__do_spring_in_a_python_that_is_not_isolated(step, hostile) -> None:
    """Without this the tests below would prove nothing."""
    step(entrypoint=PYTHON, args=("-m", "eval_gate", "--version"), env=HOSTILE_ENVIRONMENT)
    assert (hostile / "SPRUNG").exists()


@pytest.mark.parametrize("env", [{}, HOSTILE_ENVIRONMENT], ids=["plain", "with PYTHONPATH"])
@pytest.mark.parametrize(
    ("entrypoint", "args"),
    [(PYTHON, ("-I", "-m", "eval_gate", "--version")), ("eval-gate", ("--version",))],
    ids=["module", "program"],
)
def test_program__is_ours_in_a_hostile_checkout(step, hostile, entrypoint, args, env) -> None:
    done = step(entrypoint=entrypoint, args=args, env=env)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("eval-gate ")
    assert not (hostile / "SPRUNG").exists()


def test_demo__is_ours_in_a_hostile_checkout(python, hostile) -> None:
    """It starts further processes: they are not to be had either."""
    done = python("-m", "eval_gate", "demo", env=HOSTILE_ENVIRONMENT)
    assert done.exit_code == 0, done.stderr
    assert not (hostile / "SPRUNG").exists()


def test_action__is_ours_in_a_hostile_checkout(step, hostile) -> None:
    """The entry point as it is, whatever it makes of this checkout."""
    done = step(env=HOSTILE_ENVIRONMENT)
    assert done.stdout + done.stderr
    assert not (hostile / "SPRUNG").exists()
