"""Tests of the container image. They need an image: `.ci/container` builds one, names it and runs them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.container.runner_shape import PYTHON, Finished, Job, give_to_runner, run

NO_IMAGE = "EVAL_GATE_IMAGE names no image: run .ci/container, which builds one and runs these tests"

InContainer = Callable[..., Finished]


@pytest.fixture(scope="session")
def image() -> str:
    """The name of the image to test."""
    name = os.environ.get("EVAL_GATE_IMAGE")
    if not name:
        # who says that these tests are required must not be told "all green" because they were left out
        (pytest.fail if os.environ.get("EVAL_GATE_REQUIRE_CONTAINER") == "1" else pytest.skip)(NO_IMAGE)
    return name


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A checkout as the runner makes it."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    give_to_runner(folder)
    return folder


@pytest.fixture
def step(image: str, workspace: Path) -> InContainer:
    """`step(inputs={"fail-on": "never"})`: the action as the runner runs it, in `workspace`."""

    def in_container(**job: object) -> Finished:
        return run(Job(image, workspace, **job))

    return in_container


@pytest.fixture
def python(step: InContainer) -> InContainer:
    """`python("-c", "print(1)")`: the image's own isolated Python, in the runner's environment."""

    def in_container(*args: str, **job: object) -> Finished:
        return step(entrypoint=PYTHON, args=("-I", *args), **job)

    return in_container
