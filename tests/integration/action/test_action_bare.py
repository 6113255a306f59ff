"""The action on a system that has as little as Windows: what needs no commands works, and commands are a sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.action.test_action_results import promptfoo
from tests.support import bare
from tests.support.agents import agent
from tests.support.answers import fails_on
from tests.support.jobs import Ended, Job, push_event


class BareJob(Job):
    """A job whose steps have little to stand on."""

    def step(
        self, event_name, event, inputs=None, *, command=("action", "--on-host"), timeout=60, **variables
    ) -> Ended:
        environment = self._environment(event_name, event, inputs or {}) | variables
        words = [sys.executable, "-I", str(Path(bare.__file__)), *command]
        done = subprocess.run(
            words, cwd=self.workspace, env=environment, stdout=-1, stderr=-2, text=True, timeout=timeout, check=False
        )
        return self.ended(done.returncode, done.stdout)


@pytest.fixture
def job(tmp_path, github) -> Job:
    made = BareJob(tmp_path, github)
    made.write_suite()
    return made


@pytest.mark.slow
def test_bare__agent_behind_an_address__baseline_comment_and_verdict_as_everywhere(job, github) -> None:
    with agent() as running:
        assert job.push(running.url).code == 0
    pull = github.state.add_pull(7)
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url)
    assert (ended.code, ended.outputs["regressions"]) == (1, "1"), ended.log
    assert "1 regression" in next(iter(github.state.comments.values())).body
    assert (job.workspace / ended.outputs["report-path"]).is_file()


@pytest.mark.slow
def test_bare__results_of_another_tool__are_judged_and_the_command_for_re_runs_is_a_sentence(job, github) -> None:
    job.step("push", push_event(github), {"results": promptfoo(job.workspace, "main.json")})
    pull = github.state.add_pull(7)
    given = {"results": promptfoo(job.workspace, "out.json", 2), "rerun-command": "touch ran > {output}"}
    ended = job.pull_request(pull, "", given)
    assert "commands run on Linux and macOS only" in ended.summary + ended.log
    assert not (job.workspace / "ran").exists()
    assert ended.code == 3


@pytest.mark.slow
def test_bare__target_that_is_a_command__is_refused_before_anything_runs(job, github) -> None:
    (job.workspace / "targets.yaml").write_text(
        "targets:\n  - name: t\n    provider: cli\n    command_template: echo ok\n"
    )
    ended = job.step("push", push_event(github), {"targets": "targets.yaml", "target": "t"})
    assert ended.code == 2, ended.log
    assert "commands run on Linux and macOS only" in ended.log


def test_bare__link_in_place_of_the_output_folder__is_refused(job, github, tmp_path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (job.workspace / "out").symlink_to(tmp_path / "elsewhere")
    with agent() as running:
        ended = job.push(running.url, {"output-dir": "out"})
    assert ended.code == 2
    assert list((tmp_path / "elsewhere").iterdir()) == []
