"""The action and the pushes of one pull request: what earlier ones saw counts, whoever may have written it."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from tests.integration.action.test_action_pull_request import baseline_of_today, comments_of
from tests.support.agents import Exchange, agent
from tests.support.github import Fault, sha, zipped

CASES = 20
PUSHES = "pushes.json"
HALF_BROKEN, AND_AGAIN, MENDED = "FFPPPPP", "PFFFFFF", "PPPPPPP"


class Scripted:
    """Answers `ok` or `no` to one question by turns as the script says, and `ok` to all others."""

    def __init__(self, script: str, number: int = 2) -> None:
        self.script, self.number, self.asked = script, number, 0

    async def __call__(self, exchange: Exchange) -> None:
        answer = "ok"
        if int(exchange.json["message"].split()[1]) == self.number:
            answer = "ok" if self.script[self.asked] == "P" else "no"
            self.asked += 1
        exchange.answer({"response": answer, "toolCalls": []})


@pytest.fixture
def branch(job, github):
    """A default branch with three runs behind it."""
    job.write_suite(CASES)
    for _ in range(3):
        with agent() as running:
            assert job.push(running.url).code == 0
    baseline_of_today(github)


@pytest.fixture
def push(job, github, branch):
    """One more push of a pull request, in which the case does what the script says."""

    def push(pull, script: str, inputs: dict[str, str] | None = None, **variables: str):
        said = f"push {len(github.state.commits)}"
        github.state.add_commit(said, pull.head_sha)
        pull.head_sha = sha(said)
        scripted = Scripted(script)
        with agent(scripted) as running:
            ended = job.pull_request(pull, running.url, inputs, **variables)
        return ended, scripted.asked

    return push


def stored(github, ended) -> dict[str, bytes]:
    data = github.state.artifacts[int(ended.outputs["artifact-id"])].zip_bytes
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def replaced(github, ended, files: dict[str, bytes]) -> None:
    """The artifact with other files in it."""
    run = github.state.artifacts.pop(int(ended.outputs["artifact-id"])).run_id
    github.state.add_artifact(run, zipped(files))


@pytest.mark.contract("verdict.pushes")
def test_push__case_that_passes_at_first_after_a_doubtful_push__is_looked_at_again_and_found(job, github, push) -> None:
    pull = github.state.add_pull(7)
    doubtful, _ = push(pull, HALF_BROKEN)
    assert (doubtful.code, doubtful.outputs["regressions"]) == (0, "0"), doubtful.log
    found, asked = push(pull, AND_AGAIN)
    assert (found.code, found.outputs["regressions"]) == (1, "1"), found.log
    assert asked > 1
    assert "1 earlier push of this pull request may count too, by run 104" in found.log
    said = f"failed {asked - 1} of {asked} here, 2 of 5 in 1 earlier push, 0 of 3 on main"
    assert said in comments_of(github)[0]
    assert said in found.summary
    assert said in found.log
    page = (job.workspace / found.outputs["report-path"]).read_text()
    assert said in page


@pytest.mark.slow
def test_push__without_remembering__passes_at_first_and_is_not_looked_at(github, push) -> None:
    pull = github.state.add_pull(7)
    off = {"remember-pushes": "false"}
    first, _ = push(pull, HALF_BROKEN, off)
    assert PUSHES not in stored(github, first)
    ended, asked = push(pull, AND_AGAIN, off)
    assert (ended.code, asked) == (0, 1)
    assert "earlier push" not in ended.log


@pytest.mark.slow
def test_push__case_was_mended__passes_and_what_it_did_before_is_not_held_against_it(github, push) -> None:
    pull = github.state.add_pull(7)
    broken, _ = push(pull, "FFFFFFF")
    assert broken.code == 1
    mended, _ = push(pull, MENDED)
    assert (mended.code, mended.outputs["regressions"]) == (0, "0"), mended.log
    flaked, _ = push(pull, "FPPPPPP")
    assert (flaked.code, flaked.outputs["regressions"]) == (0, "0"), flaked.log
    assert "2 earlier pushes of this pull request may count too" in flaked.log


@pytest.mark.slow
def test_push__judged_again_elsewhere__is_the_same_verdict(job, github, push) -> None:
    pull = github.state.add_pull(7)
    push(pull, HALF_BROKEN)
    found, _ = push(pull, AND_AGAIN)
    baseline = found.outputs["baseline-run-id"]
    main = next(one for one in github.state.archives if json.loads(files_of(one)["run.json"])["runId"] == baseline)
    folder = job.workspace / "evals" / "results" / baseline
    folder.mkdir(exist_ok=True)
    (folder / "run.json").write_bytes(files_of(main)["run.json"])
    record = job.workspace / found.outputs["result-path"]
    judged = job.step("pull_request", {}, command=("compare", str(folder), str(record.parent)))
    assert judged.code == 1, judged.log
    assert "2 of 5 in 1 earlier push" in judged.log


def files_of(artifact) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(artifact.zip_bytes)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.slow
def test_push__three_pushes__one_artifact_is_read_and_carries_all_of_them(github, push) -> None:
    pull = github.state.add_pull(7)
    push(pull, HALF_BROKEN)
    push(pull, MENDED)
    before = len(github.requests("GET", r"/artifacts/\d+/zip$"))
    third, _ = push(pull, HALF_BROKEN)
    assert len(github.requests("GET", r"/artifacts/\d+/zip$")) == before + 2  # the baseline's, and the last push's
    kept = json.loads(stored(github, third)[PUSHES])
    assert (kept["pullRequest"], len(kept["ledger"]["runs"])) == (7, 3)
    (cases,) = kept["ledger"]["suites"].values()
    assert list(cases) == ["gs-002"]


@pytest.mark.contract("verdict.pushes")
def test_push__fork_with_a_branch_of_the_same_name__is_never_believed_and_never_remembers(github, push) -> None:
    fork = github.state.add_pull(7, head_repo="eve/bot", user="eve")
    theirs, _ = push(fork, "FFFFFFF")
    assert PUSHES not in stored(github, theirs)
    ours = github.state.add_pull(8)
    own, _ = push(ours, HALF_BROKEN)
    files = stored(github, own)
    del github.state.artifacts[int(own.outputs["artifact-id"])]
    forged = github.state.add_run(130, event="pull_request", head_branch=ours.head_ref, head_repo="eve/bot")
    github.state.add_artifact(forged, zipped(files))
    ended, asked = push(ours, AND_AGAIN)
    assert (ended.code, asked) == (0, 1)
    assert "may count too" not in ended.log


@pytest.mark.parametrize("other", [{"pullRequest": 6}, {"gate": "another"}])
def test_push__of_another_pull_request_or_gate__does_not_count(github, push, other) -> None:
    pull = github.state.add_pull(7)
    first, _ = push(pull, HALF_BROKEN)
    files = stored(github, first)
    replaced(github, first, files | {PUSHES: json.dumps(json.loads(files[PUSHES]) | other).encode()})
    ended, asked = push(pull, AND_AGAIN)
    assert (ended.code, asked) == (0, 1)


@pytest.mark.parametrize("damaged", [b"{", b'{"ledger": {"runs": 1}}', b"x" * 4_000_001])
@pytest.mark.slow
def test_push__damaged_file__is_passed_over_with_a_note_for_the_push_before(github, push, damaged) -> None:
    pull = github.state.add_pull(7)
    push(pull, HALF_BROKEN)
    second, _ = push(pull, MENDED)
    replaced(github, second, stored(github, second) | {PUSHES: damaged})
    ended, asked = push(pull, AND_AGAIN)
    assert (ended.code, ended.outputs["regressions"]) == (1, "1"), ended.log
    assert asked > 1
    assert "What an earlier push of this pull request saw is not known" in ended.log


@pytest.mark.slow
def test_push__case_asks_something_else_by_now__what_came_before_does_not_count(job, github, push) -> None:
    pull = github.state.add_pull(7)
    push(pull, HALF_BROKEN)
    file = job.workspace / "evals" / "weather.golden.json"
    file.write_text(file.read_text().replace('ask 2"', 'ask 2 and more"'))
    ended, asked = push(pull, AND_AGAIN)
    assert (ended.code, asked) == (0, 3)  # as often as any case that nobody knows yet


@pytest.mark.slow
def test_push__no_permission_to_list_runs__is_a_note_and_the_run_is_judged_by_itself(github, push) -> None:
    pull = github.state.add_pull(7)
    push(pull, HALF_BROKEN)
    github.faults.add("GET", r"/actions/workflows/[^/]+/runs", Fault.permission())
    ended, asked = push(pull, AND_AGAIN)
    assert (ended.code, asked) == (0, 1), ended.log
    assert "What earlier pushes of this pull request saw is not known" in ended.log


@pytest.mark.slow
def test_push__earlier_run_again__knows_nothing_of_the_pushes_after_it(job, github, push) -> None:
    pull = github.state.add_pull(7)
    github.state.add_run(500, event="pull_request", head_branch=pull.head_ref)
    first, _ = push(pull, HALF_BROKEN)
    github.state.add_artifact(500, zipped(stored(github, first)))
    del github.state.artifacts[int(first.outputs["artifact-id"])]
    ended, asked = push(pull, AND_AGAIN)
    assert (ended.code, asked) == (0, 1)
