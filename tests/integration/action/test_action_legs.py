"""Several gates in one workflow run: legs of a matrix, calls of a reusable workflow, steps, jobs, and attempts.

None of them may change what another has published, nor be compared with another's baseline.
"""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from tests.integration.action.test_action_pull_request import comments_of
from tests.support.agents import agent
from tests.support.answers import fails_on
from tests.support.jobs import pull_request_event, push_event

ONE, TWO = {"evals": "evals/one.golden.json"}, {"evals": "evals/two.golden.json"}


@pytest.fixture
def pull(github):
    return github.state.add_pull(7)


@pytest.fixture
def suites(job) -> None:
    job.write_suite(name="one.golden.json")
    job.write_suite(name="two.golden.json")


def again(job, github, pull, url, inputs=None, **variables):
    """Another step of the same run, in whatever job is the present one."""
    merge = {"GITHUB_SHA": pull.merge_sha, "GITHUB_REF": f"refs/pull/{pull.number}/merge"}
    given = {"agent-endpoint": url, **(inputs or {})}
    return job.step("pull_request", pull_request_event(github, pull), given, **(merge | variables))


def push_again(job, github, url, inputs=None, **variables):
    return job.step("push", push_event(github), {"agent-endpoint": url, **(inputs or {})}, **variables)


def published(github) -> tuple:
    """Everything that people and later runs see, as it is now."""
    state = github.state
    return (
        comments_of(github),
        [
            (one.fields["name"], one.fields["conclusion"], one.fields["external_id"])
            for one in state.check_runs.values()
        ],
        [(one.name, one.id, one.digest) for one in state.artifacts.values()],
    )


def stored(github, name: str) -> dict:
    (found,) = [one for one in github.state.artifacts.values() if one.name == name]
    with zipfile.ZipFile(io.BytesIO(found.zip_bytes)) as packed:
        return json.loads(packed.read("run.json"))


def is_refused(ended, remedy: str = "comment-key") -> bool:
    said = f"give each job or step its own `{remedy}`" in ended.log
    return (ended.code, ended.outputs["exit-code"], ended.outputs["verdict"], said) == (2, "2", "inconclusive", True)


# --- where the environment does not tell them apart, the second one stops


def test_matrix__two_legs_with_default_names__the_second_fails_before_its_evals_and_the_first_stays(
    job, github, pull, suites
) -> None:
    with agent(fails_on(1)) as red, agent() as green:
        assert job.pull_request(pull, red.url, ONE | {"fail-on": "failures"}).code == 1
        before = published(github)
        job.begin_job()
        ended = again(job, github, pull, green.url, TWO)
        assert is_refused(ended)
        assert green.requests == []
    assert published(github) == before
    assert "The artifact eval-gate-results already exists" in ended.summary


@pytest.mark.slow
def test_two_steps_in_one_job__default_names__the_second_fails_and_the_first_stays(job, github, pull) -> None:
    with agent(fails_on(1)) as red, agent() as green:
        job.pull_request(pull, red.url, {"fail-on": "failures"})
        before = published(github)
        ended = again(job, github, pull, green.url, GITHUB_ACTION="__acme_eval-gate_2")
    assert is_refused(ended)
    assert published(github) == before


@pytest.mark.slow
def test_two_calls_of_a_reusable_workflow__same_inputs__the_second_fails_and_the_first_stays(job, github, pull) -> None:
    with agent(fails_on(1)) as red, agent() as green:
        job.pull_request(pull, red.url, {"fail-on": "failures"})
        before = published(github)
        job.begin_job("the second call")
        ended = again(job, github, pull, green.url)
    assert is_refused(ended)
    assert published(github) == before


def test_matrix__nothing_stored_so_that_both_run__the_comment_and_the_check_of_the_first_stay(
    job, github, pull, suites
) -> None:
    """As where both legs begin before either has published anything."""
    with agent(fails_on(1)) as red, agent() as green:
        job.pull_request(pull, red.url, ONE | {"fail-on": "failures", "upload": "false"})
        before = published(github)
        job.begin_job()
        ended = again(job, github, pull, green.url, TWO | {"upload": "false"})
        assert is_refused(ended)
        assert len(green.requests) == 4
    assert published(github) == before
    assert "4 of 4 cases pass" in ended.summary or "4/4" in ended.summary


@pytest.mark.slow
def test_matrix_on_main__nothing_stored__the_check_of_the_first_stays(job, github, suites) -> None:
    with agent(fails_on(1)) as red, agent() as green:
        job.push(red.url, ONE | {"fail-on": "failures", "upload": "false"})
        before = published(github)
        job.begin_job()
        ended = push_again(job, github, green.url, TWO | {"upload": "false"})
    assert is_refused(ended)
    assert published(github) == before


@pytest.mark.slow
def test_matrix__second_leg_cannot_even_begin__leaves_the_first_ones_comment_alone(job, github, pull, suites) -> None:
    with agent(fails_on(1)) as red:
        job.pull_request(pull, red.url, ONE | {"fail-on": "failures", "upload": "false"})
        before = published(github)
        job.begin_job()
        ended = again(job, github, pull, red.url, {"evals": "nowhere/*.json", "upload": "false"})
    assert ended.code == 2
    assert published(github) == before


@pytest.mark.slow
def test_matrix__same_names_chosen_by_hand__the_second_fails_and_is_told_which_input(job, github, pull, suites) -> None:
    names = {"artifact-name": "evals", "comment": "never", "check-run": "mine"}
    with agent() as running:
        job.pull_request(pull, running.url, ONE | names)
        before = published(github)
        job.begin_job()
        assert is_refused(again(job, github, pull, running.url, TWO | names), "artifact-name")
        unstored = {**names, "upload": "false", "comment-key": "two"}
        assert is_refused(again(job, github, pull, running.url, TWO | unstored), "check-run")
    assert published(github) == before


def test_two_jobs__same_artifact_name_chosen_by_hand__the_second_is_told_which_input(job, github, pull, suites) -> None:
    names = {"artifact-name": "evals", "comment": "never", "check-run": ""}
    with agent() as running:
        job.pull_request(pull, running.url, ONE | names, GITHUB_JOB="one")
        before = published(github)
        job.begin_job()
        assert is_refused(again(job, github, pull, running.url, TWO | names, GITHUB_JOB="two"), "artifact-name")
    assert published(github) == before


@pytest.mark.slow
def test_rerun_of_all__two_calls_with_the_same_inputs__the_second_of_that_attempt_too_leaves_the_first(
    job, github, pull
) -> None:
    names = {"fail-on": "failures", "upload": "false", "comment": "never"}
    with agent(fails_on(1)) as red, agent() as green:
        job.pull_request(pull, red.url, names)
        job.begin_attempt()
        assert again(job, github, pull, red.url, names).code == 1
        before = published(github)
        job.begin_job("the second call")
        assert is_refused(again(job, github, pull, green.url, names))
    assert published(github) == before


# --- where it does, they are told apart


def test_two_jobs__default_names__each_has_its_own_comment_check_artifact_and_baseline(
    job, github, pull, suites
) -> None:
    with agent(fails_on(1)) as red, agent() as green:
        job.push(green.url, ONE, GITHUB_JOB="one")
        job.begin_job()
        push_again(job, github, red.url, TWO, GITHUB_JOB="two")
        names = [artifact.name for artifact in github.state.artifacts.values()]
        result, page = "eval-gate-results", "-report.html"
        two = f"{result}.gate.yml.two"
        assert sorted(names) == [result, result + page, two, two + page]
        # the other way round here: what came first on main comes second
        two = job.pull_request(pull, red.url, TWO, GITHUB_JOB="two")
        job.begin_job()
        one = again(job, github, pull, red.url, ONE, GITHUB_JOB="one")
    assert (two.code, two.outputs["regressions"]) == (0, "0")
    assert (one.code, one.outputs["regressions"]) == (1, "1")
    assert [body.splitlines()[:2] for body in comments_of(github)] == [
        ["<!-- eval-gate:v1 key=gate.yml.two -->", "## ✅ Agent eval gate — no regressions, baseline is stale"],
        ["<!-- eval-gate:v1 key=gate.yml.one -->", "## ❌ Agent eval gate — 1 regression"],
    ]
    checks = [one.fields for one in github.state.check_runs.values() if one.fields["head_sha"] == pull.head_sha]
    assert [(one["name"], one["conclusion"]) for one in checks] == [
        ("eval-gate", "success"),
        ("eval-gate (gate.yml.one)", "failure"),
    ]


@pytest.mark.slow
def test_two_jobs__only_the_others_baseline_is_there__it_is_not_taken(job, github, pull, suites) -> None:
    with agent() as running:
        job.push(running.url, ONE, GITHUB_JOB="one")
        ended = job.pull_request(pull, running.url, TWO, GITHUB_JOB="two")
    assert ended.outputs["baseline-run-id"] == ""
    assert "seen 1: 1 of another gate (gate.yml.one)" in ended.log


@pytest.mark.slow
def test_matrix__comment_key_alone__keeps_everything_apart(job, github, pull, suites) -> None:
    with agent(fails_on(1)) as red, agent() as green:
        job.push(green.url, ONE | {"comment-key": "one"})
        job.begin_job()
        push_again(job, github, red.url, TWO | {"comment-key": "two"})
        one = job.pull_request(pull, red.url, ONE | {"comment-key": "one"})
        job.begin_job()
        two = again(job, github, pull, red.url, TWO | {"comment-key": "two"})
    assert (one.code, one.outputs["regressions"]) == (1, "1")
    assert (two.code, two.outputs["regressions"]) == (0, "0")
    assert len(comments_of(github)) == 2


def test_baseline__stored_by_an_older_version__is_taken_as_before(job, github, pull) -> None:
    with agent() as running:
        job.push(running.url)
        (artifact,) = github.state.archives
        record = stored(github, artifact.name)
        assert record.pop("producer")["gate"] == "gate.yml.gate"
        github.state.artifacts.clear()
        github.state.add_artifact(artifact.run_id, {"run.json": json.dumps(record).encode()})
        ended = job.pull_request(pull, running.url)
    assert ended.outputs["baseline-run-id"] == record["runId"]


# --- the same leg again


def test_rerun_of_all__red_main__the_later_attempt_is_the_baseline(job, github, pull) -> None:
    with agent(fails_on(0, 1, 2, 3)) as broken, agent() as mended, agent(fails_on(2)) as changed:
        assert job.push(broken.url, {"fail-on": "failures"}).code == 1
        job.begin_attempt()
        ended = push_again(job, github, mended.url, {"fail-on": "failures"})
        assert ended.code == 0
        (artifact,) = github.state.archives
        assert stored(github, artifact.name)["runId"] == ended.outputs["run-id"]
        assert not [line for line in ended.commands if "artifact-name" in line or "not stored" in line]
        assert job.pull_request(pull, changed.url).outputs["regressions"] == "1"


@pytest.mark.slow
def test_rerun__two_attempts_left_an_artifact_each__readers_take_the_newest(job, github, pull) -> None:
    """The service may keep a room of names for every attempt."""
    with agent(fails_on(0, 1, 2, 3)) as broken, agent() as mended, agent(fails_on(2)) as changed:
        job.push(broken.url, {"fail-on": "failures"})
        job.begin_attempt()
        github.results.uploads.clear()
        push_again(job, github, mended.url, {"fail-on": "failures"})
        assert len(github.state.archives) == 2
        assert job.pull_request(pull, changed.url).outputs["regressions"] == "1"


def test_rerun_of_all__artifact_name_chosen_by_hand__replaces_what_the_first_attempt_stored(job, github, pull) -> None:
    chosen = {"artifact-name": "evals"}
    with agent(fails_on(1)) as red, agent() as green:
        job.pull_request(pull, red.url, chosen | {"fail-on": "failures"})
        job.begin_attempt()
        assert again(job, github, pull, green.url, chosen | {"fail-on": "failures"}).code == 0
    assert stored(github, "evals")["summary"]["passed"] == 4


@pytest.mark.slow
def test_rerun_of_all__pull_request__updates_the_comment_and_the_check(job, github, pull) -> None:
    with agent(fails_on(1)) as red, agent() as green:
        job.push(green.url)
        assert job.pull_request(pull, red.url).code == 1
        job.begin_attempt()
        assert again(job, github, pull, green.url).code == 0
    (comment,) = comments_of(github)
    assert comment.splitlines()[1] == "## ✅ Agent eval gate — no regressions, baseline is stale"
    checks = [one.fields for one in github.state.check_runs.values() if one.fields["head_sha"] == pull.head_sha]
    assert [(one["name"], one["conclusion"]) for one in checks] == [("eval-gate", "failure"), ("eval-gate", "success")]


def test_rerun_of_the_failed_leg__finds_its_own_and_leaves_the_others_alone(job, github, pull, suites) -> None:
    keys = ({"comment-key": "one"}, {"comment-key": "two"})
    with agent(fails_on(1)) as red, agent() as green:
        job.pull_request(pull, green.url, ONE | keys[0])
        job.begin_job("two")
        assert again(job, github, pull, red.url, TWO | keys[1] | {"fail-on": "failures"}).code == 1
        first, _ = comments_of(github)
        kept = stored(github, "eval-gate-results")
        job.begin_attempt("two")
        ended = again(job, github, pull, green.url, TWO | keys[1] | {"fail-on": "failures"})
    assert ended.code == 0
    one, two = comments_of(github)
    assert one == first
    assert two.splitlines()[:2] == [
        "<!-- eval-gate:v1 key=gate.yml.two -->",
        "## ✅ Agent eval gate · `two` — passed, no baseline yet",
    ]
    assert stored(github, "eval-gate-results") == kept
    assert stored(github, "eval-gate-results.two")["runId"] == ended.outputs["run-id"]


@pytest.mark.slow
def test_rerun_of_a_refused_leg__is_refused_again(job, github, pull, suites) -> None:
    with agent(fails_on(1)) as red, agent() as green:
        job.pull_request(pull, red.url, ONE | {"fail-on": "failures"})
        before = published(github)
        job.begin_job("two")
        assert is_refused(again(job, github, pull, green.url, TWO))
        job.begin_attempt("two")
        assert is_refused(again(job, github, pull, green.url, TWO))
    assert published(github) == before


@pytest.mark.slow
def test_second_run_on_the_same_commit__updates_what_is_there(job, github, pull) -> None:
    with agent(fails_on(1)) as red, agent() as green:
        job.push(green.url)
        assert job.pull_request(pull, red.url).code == 1
        assert job.pull_request(pull, green.url).code == 0
    (comment,) = comments_of(github)
    assert comment.splitlines()[1] == "## ✅ Agent eval gate — no regressions, baseline is stale"


@pytest.mark.slow
def test_next_run__another_leg_was_red__does_not_say_that_its_regressions_are_fixed(job, github, pull, suites) -> None:
    with agent(fails_on(1)) as red, agent() as green:
        job.push(green.url, ONE)
        job.pull_request(pull, red.url, ONE)
        assert job.pull_request(pull, green.url, TWO).code == 0
    (comment,) = comments_of(github)
    assert "fixed" not in comment


# --- an outage on main


async def breaks(exchange) -> None:
    exchange.answer({"error": "AttributeError"}, status="500 Internal Server Error")


def test_outage_on_main__is_not_the_baseline_and_is_named(job, github) -> None:
    quick = {"max-retries": "0"}
    with agent() as good, agent(breaks) as down, agent(fails_on(0, 1, 2, 3)) as dead:
        job.push(good.url)
        measured = github.state.branches["main"]
        outage = github.state.add_commit("outage", branch="main").sha
        assert job.push(down.url, quick).code != 0
        pull = github.state.add_pull(7)
        ended = job.pull_request(pull, dead.url)
    assert (ended.code, ended.outputs["baseline-sha"]) == (1, measured)
    (comment,) = comments_of(github)
    sentence = (
        f"`main`'s newest run before this change, `{outage[:7]}`, cannot be the baseline:"
        f" 0 of 4 cases have a score. Compared with `{measured[:7]}` instead."
    )
    for text in (comment.partition("<details>")[0], ended.summary):
        assert f"> [!NOTE]\n> {sentence}\n" in text
    assert sentence.replace("`", "") in " ".join(ended.log.split())
