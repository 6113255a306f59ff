"""`eval-gate publish --to`: from a run to the words of a comment on a pull request of another system than GitHub."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from eval_gate.ci import bitbucket
from eval_gate.cli.stored_runs.review_publication import build_text
from eval_gate.results.baseline import Baseline
from tests.integration.test_integration_run import write_suite
from tests.support.agents import agent
from tests.support.answers import fails_on
from tests.support.git import commit_all
from tests.support.program import gate
from tests.support.results import make_baseline_run, make_run
from tests.support.review_servers import QUICK_ACTION, SHA, SYSTEMS, TOKEN, review_server
from tests.support.verdicts import judge_against

PIPELINES = Path(__file__).parents[2] / "examples" / "ci"
MARKER = "<!-- eval-gate:v1 key=default -->"


@pytest.mark.parametrize("system", ["gitlab", "azure"])
def test_publish__failed_run_and_fixed_one__is_one_comment_and_exits_by_the_verdict(tmp_path, system) -> None:
    write_suite(tmp_path, 2)
    commit_all(tmp_path)
    with review_server(system) as server:
        for broken, code in (((1,), 1), ((), 0)):
            with agent(fails_on(*broken)) as running:
                assert gate(tmp_path, "run", "--agent-endpoint", running.url).returncode == code
            done = gate(tmp_path, "publish", "--to", system, **server.variables)
            assert (done.returncode, done.stdout) == (code, ""), done.stderr
            lines = done.stderr.splitlines()
            assert lines[0].startswith(f"comment {'written' if code else 'updated'} on ")
            assert lines[1] == f"status eval-gate of {SHA[:7]}: {'failure' if code else 'success'}"
            assert TOKEN not in done.stderr
            [comment] = server.comments
            assert comment["body"].startswith(f"{MARKER}\n## ")
            assert ("gs-001" in comment["body"]) is bool(code)
            assert "merged with `main` for this test" in comment["body"]  # its head is another commit
    assert len(server.statuses) == 2


def test_publish__response_with_commands_for_gitlab__runs_none_of_them(tmp_path) -> None:
    write_suite(tmp_path, 1)
    hostile = "what\n/merge\n/close\n@all !1 ~bug %v1 $1 ##vso[task.complete]"

    async def handler(exchange) -> None:
        exchange.answer({"response": hostile, "toolCalls": []})

    with agent() as running:
        gate(tmp_path, "run", "--agent-endpoint", running.url)
    with agent(handler) as running, review_server("gitlab") as server:
        gate(tmp_path, "run", "--agent-endpoint", running.url, "--baseline", "latest", "--fail-on", "regressions")
        done = gate(tmp_path, "publish", "--to", "gitlab", **server.variables)
    [comment] = server.comments
    assert "/merge" in comment["body"]
    assert not any(match["command"] for match in QUICK_ACTION.finditer(comment["body"]))
    assert "##vso[" not in done.stderr


def test_publish__no_run_or_one_of_another_commit__is_in_the_comment_and_no_pass(tmp_path) -> None:
    with review_server("gitlab") as server:
        done = gate(tmp_path, "publish", "--to", "gitlab", **server.variables)
        assert done.returncode == 3
        assert "error[result-not-found]: there is no run in evals/results yet" in done.stderr
        assert "Look at the log of the step that runs the evals" in server.comments[0]["body"]
        write_suite(tmp_path, 1)
        earlier = commit_all(tmp_path)
        with agent() as running:
            assert gate(tmp_path, "run", "--agent-endpoint", running.url).returncode == 0
        commit = commit_all(tmp_path)
        done = gate(tmp_path, "publish", "--to", "gitlab", **server.variables)
    assert done.returncode == 3
    words = f"the run to publish is of {earlier[:7]}, but {commit[:7]} is checked out"
    assert f"error[checkout-mismatch]: {words}\n" in done.stderr
    assert earlier[:7] in server.comments[0]["body"]
    assert [one["state"] for one in server.statuses] == ["failed", "failed"]


def test_publish__token_is_missing__is_a_warning_and_the_verdict_stays(tmp_path) -> None:
    write_suite(tmp_path, 1)
    with agent(fails_on(0)) as running:
        gate(tmp_path, "run", "--agent-endpoint", running.url)
    done = gate(tmp_path, "publish", "--to", "gitlab", CI_PROJECT_ID="5", CI_COMMIT_SHA=SHA, CI_API_V4_URL="http://x")
    words = "warning: not published: GITLAB_TOKEN is not set (a project access token with the scope api)\n"
    assert (done.returncode, done.stderr) == (1, words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--to", "gitlba"], 'error[unknown-value]: --to: there is no "gitlba" (did you mean "gitlab"?)'),
        (["--to", "gitlab", "--fail-on", "never"], "--fail-on cannot be combined with --to"),
        (["latest"], "error[conflicting-options]: RUN needs --to"),
    ],
)
def test_publish__wrong_options__are_named(tmp_path, arguments, words) -> None:
    done = gate(tmp_path, "publish", *arguments)
    assert done.returncode == 2
    assert words in done.stderr


def test_publish__bitbucket__gets_an_indented_block_that_nothing_ends_and_a_marker_in_the_last_line() -> None:
    run = judge_against(
        make_run({"a": "failed", "b\n\n# `x` <b> @{all}": "failed"}),
        Baseline(make_baseline_run({"a": "passed"}), "main"),
    )
    review = bitbucket.describe_review(SYSTEMS["bitbucket"])
    text = build_text(review, "main", "k", run)
    *block, blank, marker = text.body.splitlines()
    assert all(line.startswith("    ") for line in block)
    assert (blank, marker, text.key) == ("", "eval-gate:v1 key=k", "eval-gate/k")
    assert re.match(r"    \S.*regression", block[0])


def list_commands() -> dict[tuple[str, ...], str]:
    """List the different commands of ours in all files, without paths and what a shell adds."""
    texts = [file.read_text(encoding="utf-8") for file in sorted(PIPELINES.iterdir())]
    lines = [line for text in texts for line in re.findall(r"(?:\s|/)eval-gate ((?:run|publish|report) [^|\n]*)", text)]
    return {tuple(shlex.split(line)): line for line in lines}


def test_commands__each_of_all_pipelines__works_and_writes_what_the_pipeline_collects(tmp_path) -> None:
    write_suite(tmp_path, 1)
    kinds = set()
    names = {name for file in PIPELINES.iterdir() for name in re.findall(r"EVAL_GATE_\w+", file.read_text())}
    variables = dict.fromkeys(names, "main") | {"EVAL_GATE_STORE": str(tmp_path / "store")}
    job = {"GITLAB_CI": "true", "CI_DEFAULT_BRANCH": "main", "CI_COMMIT_BRANCH": "main"}
    with agent() as running:
        for words, line in list_commands().items():
            kinds.add(words[0])
            used = [running.url if word.startswith("http://localhost") else word for word in words]
            done = gate(tmp_path, *used, **variables, **job)
            assert done.returncode == 0, f"{line}: {done.stderr}"
            assert ("stored: " in done.stderr) is (words[0] == "run")
            for file in re.findall(r"(?:junit|html)=(\S+)", line):
                assert (tmp_path / file).stat().st_size
    assert kinds == {"run", "publish", "report"}
    assert {words[-1] for words in list_commands() if words[0] == "publish"} == SYSTEMS.keys()
