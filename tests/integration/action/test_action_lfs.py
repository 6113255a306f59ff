"""Files that Git LFS keeps, in a checkout that did not fetch them."""

from __future__ import annotations

import pytest

from tests.support.world import ActionWorld, cases_of, scripted

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'ab' * 32}\nsize 12345\n"
"""What such a checkout leaves in the place of a file (Git LFS Specification, "The Pointer")."""
TARGETS = "- name: bot\n  provider: http\n  url: http://127.0.0.1:9/\n"


@pytest.fixture
def world(tmp_path, github):
    with scripted() as script:
        made = ActionWorld(tmp_path, github, script)
        made.cases = cases_of(2)
        made.write()
        yield made


@pytest.mark.parametrize(
    ("file", "inputs"),
    [
        ("evals/more.eval.yaml", {}),
        ("evals/more.yaml", {}),
        ("evals/more.jsonl", {}),
        ("evals/more.golden.json", {}),
        ("evals/seed-manifest.json", {}),
        ("eval-gate.yaml", {}),
        (".eval-gate/waivers.yaml", {}),
        ("targets.yaml", {"targets": "targets.yaml", "target": "bot", "agent-endpoint": ""}),
        ("prompt.md", {"system-prompt": "prompt.md", "model": "gpt-5", "provider": "openai", "agent-endpoint": ""}),
        ("results.jsonl", {"results": "results.jsonl", "agent-endpoint": ""}),
        ("results.jsonl", {"results": "results.jsonl", "results-format": "jsonl", "agent-endpoint": ""}),
        ("evals/results/a/run.json", {"results": "evals/results/a", "agent-endpoint": ""}),
        ("tools.json", {"tool-registry": "tools.json"}),
    ],
)
def test_file_that_git_lfs_did_not_fetch__ends_with_what_to_do(world, file, inputs) -> None:
    place = world.job.workspace / file
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(POINTER)
    pull = world.merged(world.pull())
    world.script.begin("PP")
    ended = world.job.pull_request(pull, world.script.url, world._given(inputs))
    assert (ended.code, ended.outputs["verdict"]) == (2, "inconclusive"), ended.log
    assert "is a Git LFS pointer" in ended.log
    assert "`lfs: true` of actions/checkout, or `git lfs pull`" in ended.log
    assert file.rpartition("/")[2] in ended.summary
    assert "Git LFS pointer" in ended.summary


@pytest.mark.slow
def test_rules_of_the_base_that_git_lfs_keeps__are_not_taken_for_none(world) -> None:
    pull = world.merged(world.pull())
    state = world.github.state
    state.files[state.branches["main"], "eval-gate.yaml"] = POINTER.encode()
    world.script.begin("PP")
    ended = world.job.pull_request(pull, world.script.url, world._given({"policy-from": "base"}))
    assert (ended.code, "keep this file out of Git LFS" in ended.log) == (3, True), ended.log
