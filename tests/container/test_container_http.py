"""The image without models: the whole story of an agent over HTTP, and clear words for who asks a model in it."""

from __future__ import annotations

import os

import pytest

from tests.container.conftest import NO_IMAGE
from tests.container.runner_shape import Job, run
from tests.container.test_container_facts import packed_size
from tests.container.test_container_gate import checkout, github, inputs, variables
from tests.support.agents import agent
from tests.support.answers import fails_on
from tests.support.jobs import push_event

__all__ = ["checkout", "github"]

COMPRESSED_LIMIT = 80_000_000


@pytest.fixture(scope="module")
def image() -> str:
    name = os.environ.get("EVAL_GATE_HTTP_IMAGE")
    if not name:
        missing = os.environ.get("EVAL_GATE_REQUIRE_CONTAINER") == "1" and not os.environ.get("EVAL_GATE_IMAGE")
        (pytest.fail if missing else pytest.skip)(NO_IMAGE.replace("EVAL_GATE_IMAGE", "EVAL_GATE_HTTP_IMAGE"))
    return name


def test_http_image__is_smaller_than_what_an_http_user_may_wait_for(image) -> None:
    assert 10_000_000 < packed_size(image) < COMPRESSED_LIMIT


def test_http_image__agent_over_http__is_asked_and_judged_and_the_result_is_stored(image, checkout, github) -> None:
    github.state.add_run(1, event="push")
    with agent(fails_on(2)) as running:
        given = inputs(github, running.url) | {"fail-on": "failures"}
        done = run(Job(image, checkout, given, variables(github, 1), push_event(github), "push"))
    assert (done.exit_code, done.outputs["verdict"], done.outputs["failed"]) == (1, "failed", "1")
    assert len(github.state.archives) == 1


def test_http_image__a_model__is_refused_and_the_extra_is_named(image, checkout, github) -> None:
    github.state.add_run(1, event="push")
    given = {"github-token": github.token, "provider": "openai", "model": "gpt-4o"}
    (checkout / "prompt.md").write_text("You are helpful.\n")
    more = {"system-prompt": "prompt.md"}
    env = variables(github, 1) | {"OPENAI_API_KEY": "none"}
    done = run(Job(image, checkout, given | more, env, push_event(github), "push"))
    assert done.exit_code == 2, done.stdout
    assert "missing-extra" in done.stdout
    assert "agent-eval-gate[models]" in done.stdout
