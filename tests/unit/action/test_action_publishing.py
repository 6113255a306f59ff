"""What is published, kept back or lost, and that nothing of it ever raises or is said wrongly."""

from __future__ import annotations

import base64
import io
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from eval_gate.action.baseline_lookup import get_baseline
from eval_gate.action.precedence import NameTakenError, NewerResult
from eval_gate.action.publishing import run_publication
from eval_gate.action.publishing.check_run import CheckDraft, publish_check, write_annotations
from eval_gate.action.publishing.comment import (
    MAX_SHORTER_VERSIONS,
    MAX_STORED_REGRESSIONS,
    CommentDraft,
    draft_comment,
)
from eval_gate.action.publishing.result_artifact import store_result
from eval_gate.action.publishing.run_publication import build_outputs, publish_comment_and_check
from eval_gate.action.step import Step
from eval_gate.action.step_log import StepLog
from eval_gate.config.policy import FailOn, Policy
from eval_gate.config.settings import RunConfig
from eval_gate.errors import PAGES, ExitCode, GateError
from eval_gate.github.artifacts.artifact_search import BaselineCriteria
from eval_gate.github.artifacts.baseline_finder import BaselineFinder
from eval_gate.github.check_runs import CheckConclusion, CheckState, list_checks_named
from eval_gate.github.commits import ANY_COMMIT
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import Outcome
from eval_gate.model.result import GitFacts
from eval_gate.reports.case_annotations import MAX_ANNOTATIONS, CaseAnnotation, CaseAnnotations
from eval_gate.reports.context import ReportContext
from eval_gate.reports.links import compute_case_digest
from eval_gate.results.baseline import NOT_REQUESTED, Baseline, NoBaseline
from eval_gate.results.run_writer import write_result
from eval_gate.struct import replace
from tests.support.github import GATE, Fault, sha
from tests.support.github.records import CheckRun
from tests.support.jobs import pull_request_event
from tests.support.results import FILE, make_baseline_run, make_run
from tests.support.verdicts import judge_against, make_waiver, make_waivers

KEY = "gate.yml.gate"
TOO_LONG = "Body is too long (maximum is 65536 characters)"


@pytest.fixture
def pull(github):
    return github.state.add_pull(7)


@pytest.fixture
def step(desk, github, pull) -> Step:
    return desk.step("pull_request", pull_request_event(github, pull))


def judged(**cases: str):
    then = make_baseline_run(dict.fromkeys(cases, "passed"))
    return judge_against(make_run(cases), Baseline(then, "b"), Policy(frozenset({FailOn.REGRESSIONS})))


PASSED, FAILED = judged(a="passed"), judged(a="failed")
UNDECIDED = judge_against(make_run({"a": "error"}), NOT_REQUESTED, Policy())
CONTEXT = ReportContext(comment_key=KEY)
FAILED_CHECK = CheckDraft(CheckConclusion.FAILURE, "title", "words", "page")


def bodies(github) -> list[str]:
    return [one.body for one in github.state.comments.values()]


# --- the comment


def comment(step, draft, context, log) -> str | None:
    """The comment, and the check run that goes before it."""
    return publish_comment_and_check(step, draft, FAILED_CHECK, context, log).comment_url


def written(github, desk, step, *results) -> str:
    """The comment after these results, one run after the other, each on a commit of its own."""
    pull = github.state.pulls[7]
    for number, result in enumerate(results):
        before = pull.head_sha if number else ""
        pull.head_sha = github.state.add_commit(f"commit {number}").sha
        now = replace(
            step,
            plan=replace(step.plan, head_sha=pull.head_sha, previous_head_sha=before),
            environment=replace(step.environment, run_id=100 + number),
        )
        comment(now, draft_comment(result), CONTEXT, desk.log)
    (body,) = bodies(github)
    return body


def state_of(github, client, pull) -> CheckState | None:
    """What the newest check run of the head says to later results."""
    return list_checks_named(client, "eval-gate", pull.head_sha)[0].state


BOTH, ONE, OTHER = judged(a="failed", b="failed"), judged(a="failed", b="passed"), judged(a="passed", b="failed")


@pytest.mark.parametrize(
    ("results", "says"),
    [
        ((BOTH, ONE), "Since your last push: 1 fixed"),
        ((ONE, OTHER), "Since your last push: 1 fixed, 1 new"),
        ((ONE, BOTH), "Since your last push: 1 new"),
        ((PASSED, FAILED), "Since your last push: 1 new"),
        ((FAILED, FAILED, PASSED), "Since your last push: 1 fixed"),
        ((BOTH, ONE, ONE), None),
        ((BOTH,), None),
        ((PASSED, PASSED), None),
        ((FAILED, PASSED, PASSED), None),
        ((UNDECIDED, PASSED), None),
        ((UNDECIDED, BOTH), None),
        ((FAILED, judged(b="passed")), None),  # the case is gone, which is no repair
    ],
)
def test_comment__another_push__says_what_it_fixed_and_broke(github, desk, step, results, says) -> None:
    body = written(github, desk, step, *results)
    assert (says in body) if says else ("Since" not in body)


def test_comment__could_not_decide_between__what_was_broken_is_named_by_its_commit(github, desk, step) -> None:
    body = written(github, desk, step, BOTH, UNDECIDED, UNDECIDED, ONE)
    assert f"Since `{sha('commit 0')[:7]}`: 1 fixed" in body


def test_comment__the_same_commit_again__says_nothing_about_a_push(github, desk, step) -> None:
    for result in (BOTH, ONE):
        comment(step, draft_comment(result), CONTEXT, desk.log)
    assert ["Since" in body for body in bodies(github)] == [False]


@pytest.mark.parametrize(("count", "known"), [(MAX_STORED_REGRESSIONS, True), (MAX_STORED_REGRESSIONS + 1, False)])
def test_comment__very_many_regressions__are_remembered_while_there_is_room(
    github, client, desk, step, pull, count, known
) -> None:
    many = judged(**{f"c{number}": "failed" for number in range(count)})
    comment(step, draft_comment(many), CONTEXT, desk.log)
    state = state_of(github, client, pull)
    assert state is not None
    assert (state.regressed is not None) is known
    (body,) = bodies(github)
    assert len(body) <= 65_536


@pytest.mark.parametrize(
    ("there", "published"), [("newer", False), ("same", True), ("older", True), ("newer, cancelled", True)]
)
def test_comment__the_check_run_of_another_run_is_newer__stays(github, desk, step, pull, there, published) -> None:
    run_id = {"same": 9001, "older": 9000}.get(there, 9002)
    github.state.check_runs[1] = CheckRun(
        1,
        {
            "name": "eval-gate",
            "head_sha": pull.head_sha,
            "status": "completed",
            "conclusion": "cancelled" if "cancelled" in there else "success",
            "external_id": f"{KEY}.{run_id}.1",
            "started_at": "2026-01-01T00:00:00Z",
        },
    )
    body = f"<!-- eval-gate:v1 key={KEY} -->\nthere"
    github.state.add_comment(7, body)
    comment(step, draft_comment(FAILED), CONTEXT, desk.log)
    assert (bodies(github) != [body], len(github.state.check_runs) == 2) == (published, published)


@pytest.mark.parametrize("there", [False, True])
def test_comment__newer_run_publishes_between_check_and_comment__one_comment_tells_of_it(
    github, desk, step, pull, monkeypatch, there
) -> None:
    if there:
        github.state.add_comment(7, f"<!-- eval-gate:v1 key={KEY} -->\nof an earlier commit")
    newer = replace(step, environment=replace(step.environment, run_id=9002))
    write = run_publication.write_comment_in

    def write_late(*given):
        monkeypatch.undo()
        comment(newer, draft_comment(PASSED), CONTEXT, desk.log)
        return write(*given)

    monkeypatch.setattr(run_publication, "write_comment_in", write_late)
    published = publish_comment_and_check(step, draft_comment(FAILED), FAILED_CHECK, CONTEXT, desk.log)
    assert published.newer_result == NewerResult(9002, passed=False)
    (body,) = bodies(github)
    said = "run 9002 is newer and counts" if there else "no regressions"
    assert (said in body, "1 regression" in body) == (True, False)


def test_check__another_leg_wrote_one_at_the_same_time__the_second_says_what_the_first_says(
    github, desk, step, pull, monkeypatch
) -> None:
    other = replace(step, environment=replace(step.environment, step="another"))
    write = run_publication.write_check_at

    def write_late(*given, **more):
        monkeypatch.undo()
        comment(other, draft_comment(FAILED), CONTEXT, desk.log)
        return write(*given, **more)

    monkeypatch.setattr(run_publication, "write_check_at", write_late)
    passed = CheckDraft(CheckConclusion.SUCCESS, "fine", "words", "page")
    with pytest.raises(NameTakenError):
        publish_comment_and_check(step, draft_comment(PASSED), passed, CONTEXT, desk.log)
    assert [one.fields["conclusion"] for one in github.state.check_runs.values()] == ["failure", "failure"]
    assert ["1 regression" in body for body in bodies(github)] == [True]


def test_check__remembers_the_comment_and_what_was_broken(github, client, desk, step, pull) -> None:
    comment(step, draft_comment(FAILED), CONTEXT, desk.log)
    packed = base64.b64encode(bytes.fromhex(compute_case_digest(CaseKey(FILE, "a")))).decode()
    assert state_of(github, client, pull) == CheckState(regressed=packed)
    (check,), (written,) = github.state.check_runs.values(), github.state.comments.values()
    assert check.fields["external_id"] == f"{KEY}.9001.1.{step.maker.leg}.c{written.id}"


@pytest.mark.parametrize("line", ["", "!!!!", "AAAA", base64.b64encode(b"[" * 2_500).decode()])
def test_check__its_state_cannot_be_read__nothing_is_said_about_the_push(github, desk, step, line) -> None:
    written(github, desk, step, BOTH)
    (check,) = github.state.check_runs.values()
    check.fields["output"]["summary"] = f"words\n<!-- eval-gate:state {line} -->"
    pull = github.state.pulls[7]
    before, pull.head_sha = pull.head_sha, github.state.add_commit("next").sha
    comment(
        replace(step, plan=replace(step.plan, head_sha=pull.head_sha, previous_head_sha=before)),
        draft_comment(ONE),
        CONTEXT,
        desk.log,
    )
    (body,) = bodies(github)
    assert ("1 regression" in body, "Since" in body) == (True, False)


def test_comment__never_short_enough__is_given_up_and_said(github, desk, step) -> None:
    github.faults.add("POST", "/comments$", *[Fault.status(422, message=TOO_LONG)] * (MAX_SHORTER_VERSIONS + 1))
    assert comment(step, draft_comment(FAILED), CONTEXT, desk.log) is None
    assert bodies(github) == []
    assert ["No comment: " in loss for loss in desk.log.losses] == [True]


def test_comment__refused_for_another_reason__is_not_made_shorter(github, desk, step) -> None:
    github.faults.add("POST", "/comments$", Fault.status(422, message="Validation Failed"))
    assert comment(step, draft_comment(FAILED), CONTEXT, desk.log) is None
    assert len(github.requests("POST", "/comments$")) == 1


def test_comment__is_rendered_shorter_each_time(github, desk, step) -> None:
    github.faults.add("POST", "/comments$", *[Fault.status(422, message=TOO_LONG)] * 2)
    starts: list[int] = []

    def render(_: ReportContext, start: int) -> str:
        starts.append(start)
        return f"<!-- eval-gate:v1 key={KEY} -->\n{start}"

    url = comment(step, CommentDraft(Outcome.FAILED, noteworthy=True, render=render), CONTEXT, desk.log)
    assert (starts, url is not None) == ([0, 1, 2], True)


@pytest.mark.parametrize("fault", [Fault.permission(), Fault.status(401), Fault.status(404), Fault.primary_limit(3600)])
def test_comment__github_refuses_to_be_read__is_lost_and_said_and_raises_nothing(github, desk, step, fault) -> None:
    github.faults.add("POST", "/graphql", fault)
    assert comment(step, draft_comment(FAILED), CONTEXT, desk.log) is None
    assert len(desk.log.losses) == 1
    assert "::warning " in desk.said


# --- what is lost


def test_lost__token_was_not_expected_to_write__is_no_warning(desk) -> None:
    log = StepLog(desk.log.commands, "a pull request from a fork gets a read-only token")
    log.record_loss(
        "No comment", GitHubError(FailureKind.FORBIDDEN, "writing", "no", permission="pull-requests: write")
    )
    assert log.losses == [f"No comment: a pull request from a fork gets a read-only token; see {PAGES}/action.md#forks"]
    assert "::warning" not in desk.said


@pytest.mark.parametrize(
    "kind", [FailureKind.RATE_LIMITED, FailureKind.SERVER, FailureKind.NOT_FOUND, FailureKind.UNAUTHORIZED]
)
def test_lost__for_another_reason_than_the_read_only_token__is_a_warning(desk, kind) -> None:
    log = StepLog(desk.log.commands, "a pull request from a fork gets a read-only token")
    log.record_loss("No comment", GitHubError(kind, "writing", "because"))
    assert log.losses == log.trail == ["No comment: writing: because"]
    assert "::warning title=Eval Gate::No comment: writing: because" in desk.said


# --- the check run

REMARKS = CaseAnnotations(
    tuple(CaseAnnotation("evals/a.json", n + 1, f"case {n}", "why", blocking=n < 7) for n in range(MAX_ANNOTATIONS)), 50
)
DRAFT = CheckDraft(CheckConclusion.FAILURE, "1 regression", "words", "page", REMARKS)


def test_check__more_cases_than_are_annotated__says_how_many(github, desk, step) -> None:
    publish_check(step, DRAFT, desk.log)
    (made,) = github.state.check_runs.values()
    assert len(made.annotations) == 10
    assert made.fields["output"]["summary"] == "words\n50 more cases are not annotated.\n"


def test_check__without_annotations__counts_none_that_are_missing(github, desk, pull) -> None:
    step = desk.step("pull_request", pull_request_event(github, pull), {"annotations": "false"})
    publish_check(step, DRAFT, desk.log)
    (made,) = github.state.check_runs.values()
    assert (made.annotations, made.fields["output"]["summary"]) == ([], "words")


def test_check__cannot_be_written__cases_are_annotated_by_the_step_instead(github, desk, step) -> None:
    github.faults.add("POST", "/check-runs$", Fault.permission())
    assert publish_check(step, DRAFT, desk.log).url is None
    assert desk.said.count("\n::error title=case ") == 7
    assert "50 more cases are not annotated; all are in the job summary" in desk.said
    assert "`permissions: checks: write`" in desk.said


@pytest.mark.parametrize("inputs", [{"check-run": ""}, {"check-run": "", "annotations": "false"}])
def test_check__not_wanted__none_is_written(github, desk, pull, inputs) -> None:
    step = desk.step("pull_request", pull_request_event(github, pull), inputs)
    assert publish_check(step, DRAFT, desk.log).url is None
    assert github.state.check_runs == {}
    assert desk.said.count("::error title=case ") == (0 if "annotations" in inputs else 7)


def test_annotate__what_blocks_is_an_error__the_rest_a_warning(desk) -> None:
    write_annotations(desk.log.commands, CaseAnnotations(REMARKS.items))
    assert desk.said.count("::error title=case ") == 7
    assert desk.said.count("::warning title=case ") == 3
    assert "not annotated" not in desk.said


def test_check__mark__tells_this_gate_of_this_attempt_from_others(github, desk, pull) -> None:
    for attempt in ("1", "2"):
        step = desk.step("pull_request", pull_request_event(github, pull), GITHUB_RUN_ATTEMPT=attempt)
        publish_check(step, DRAFT, desk.log)
    marks = [one.fields["external_id"] for one in github.state.check_runs.values()]
    assert marks == [f"{KEY}.9001.{attempt}.{step.maker.leg}" for attempt in (1, 2)]


@pytest.mark.parametrize(
    ("external_id", "name"),
    [
        (f"{KEY}.9001.1", "eval-gate"),  # of an older version
        ("gate.yml.other.9001.1.00000000-00000000-00000000", f"eval-gate ({KEY})"),
        ("gate.yml.other.8000.1.00000000-00000000-00000000", f"eval-gate ({KEY})"),
        ("somebody else's", "eval-gate"),
        (f"{KEY}.8000.1.00000000-00000000-00000000", "eval-gate"),
    ],
)
def test_check__one_of_this_name_is_there__the_name_is_kept_only_for_this_gate(
    github, desk, pull, external_id, name
) -> None:
    there = {"name": "eval-gate", "head_sha": pull.head_sha, "status": "completed", "conclusion": "failure"}
    github.state.check_runs[1] = CheckRun(1, {"external_id": external_id, "started_at": "2026-01-01T00:00:00Z"} | there)
    publish_check(desk.step("pull_request", pull_request_event(github, pull)), DRAFT, desk.log)
    assert [one.fields["name"] for one in github.state.check_runs.values()] == ["eval-gate", name]


# --- the artifact


@pytest.fixture
def record(desk) -> Path:
    return write_result(desk.folder / "workspace" / "results", FAILED).file


def test_store__result__holds_what_people_read_and_nothing_that_a_link_leads_to(github, desk, step, record) -> None:
    folder = record.parent
    (folder / "report.html").write_text("<!doctype html>")
    (folder / "workspace-s-c-1234abcd.md").write_text("# `c` of `s`")
    (folder / "cases.jsonl").write_text("{}")
    (folder / "secret.json").symlink_to("/etc/passwd")
    (folder / "deep.json").mkdir()
    stored = store_result(step, record, desk.log)
    assert stored is not None
    with zipfile.ZipFile(io.BytesIO(github.state.artifacts[stored.id].zip_bytes)) as packed:
        assert packed.namelist() == ["run.json", "report.html", "weather.golden.json", "workspace-s-c-1234abcd.md"]
        assert packed.read("run.json") == record.read_bytes()


@pytest.mark.parametrize(
    "missing",
    [
        {"ACTIONS_RESULTS_URL": ""},
        {"ACTIONS_RUNTIME_TOKEN": ""},
        {"ACTIONS_RUNTIME_TOKEN": "opaque"},
        {"GITHUB_SERVER_URL": "https://github.acme.example"},
        {"RUNNER_TEMP": "/nowhere/at/all"},
        {"ACTIONS_RESULTS_URL": "http://[x"},
    ],
)
def test_store__something_is_missing__is_a_warning_with_the_other_way_and_raises_nothing(
    github, desk, pull, record, missing
) -> None:
    """Everything else is still to be published: the comment, the check, the verdict."""
    step = desk.step("pull_request", pull_request_event(github, pull), **missing)
    assert store_result(step, record, desk.log) is None
    assert "::warning title=Eval Gate::The result was not stored: " in desk.said
    assert "actions/upload-artifact" in desk.said
    assert [one.partition(":")[0] for one in desk.log.trail] == ["the result was not stored"]
    assert github.state.artifacts == {}


def test_store__not_wanted__is_silent(github, desk, pull, record) -> None:
    step = desk.step("pull_request", pull_request_event(github, pull), {"upload": "false"})
    assert store_result(step, record, desk.log) is None
    assert (desk.said, github.log) == ("", [])


def test_store__by_hand_for_a_pull_request__leaves_no_baseline_behind(github, desk, client, pull) -> None:
    """Its run is one of the default branch to GitHub: what it kept would be everybody's baseline."""
    github.state.add_run(9001, event="workflow_dispatch", status="in_progress")
    known = {"pull": _as_now(pull), "checkout": pull.head_sha}
    step = desk.step("workflow_dispatch", {"inputs": {"pr-number": "7"}}, known=known)
    result = replace(FAILED, git=GitFacts(sha=step.plan.head_sha))
    store_result(step, write_result(desk.folder / "workspace" / "results", result).file, desk.log)
    found = BaselineFinder(
        client, BaselineCriteria(("eval-gate-results",), "main", (GATE,), ANY_COMMIT, 1)
    ).find_nearest(datetime.now(UTC))
    assert isinstance(found, NoBaseline)


def _as_now(pull):
    from eval_gate.github.commits import PullRequest

    side = {"sha": pull.head_sha, "ref": pull.head_ref}
    return PullRequest.model_validate({"number": 7, "state": "open", "head": side, "base": side})


# --- the baseline


def keep(github, run_id: str = "kept"):
    run = github.state.add_run()
    data = msgspec.json.encode(make_run({"a": "passed"}, run_id=run_id, git=None))
    return github.state.add_artifact(run, {"run.json": data})


def test_baseline__found__is_said_with_its_run_and_the_address_of_it(github, desk, step) -> None:
    artifact = keep(github)
    origin = get_baseline(step, RunConfig(output_dir="results"), desk.log)
    assert isinstance(origin.baseline, Baseline)
    assert origin.run_url == f"https://github.com/acme/bot/actions/runs/{artifact.run_id}"
    assert (
        f"baseline: artifact {artifact.id} of run {artifact.run_id}, commit {origin.baseline.result.sha[:7]} on main"
        in desk.said
    )


@pytest.mark.parametrize("fault", [Fault.permission(), Fault.status(401), Fault.primary_limit(3600)])
def test_baseline__github_refuses__is_no_absence_and_is_a_warning(github, desk, step, fault) -> None:
    github.faults.add("GET", "/actions/artifacts", fault)
    origin = get_baseline(step, RunConfig(output_dir="results"), desk.log)
    assert isinstance(origin.baseline, NoBaseline)
    assert origin.baseline.unavailable
    assert "::warning title=Eval Gate::The baseline could not be read: " in desk.said


@pytest.mark.parametrize("route", ["/compare/main", r"/commits\?"])
def test_baseline__the_nearest_cannot_be_told__a_regression_is_not_let_through(github, desk, route) -> None:
    """On the branch the case broke later, by something else: held against the newest, this change's own break hides."""
    state = github.state
    for name, status in (("c1", "passed"), ("c2", None), ("c3", "failed")):
        commit = state.add_commit(name, branch="main").sha
        if status:
            data = msgspec.json.encode(make_run({"a": status}, git=None))
            state.add_artifact(state.add_run(head_sha=commit), {"run.json": data})
    state.add_commit("topic", sha("c2"))
    event = pull_request_event(github, state.add_pull(8, head_sha="topic", head_ref="topic"))
    step = desk.step("pull_request", event, known={"checkout": sha("topic")})
    policy = Policy(frozenset({FailOn.REGRESSIONS}))

    def outcome() -> Outcome:
        found = get_baseline(step, RunConfig(output_dir="results"), desk.log).baseline
        return judge_against(make_run({"a": "failed"}), found, policy).verdict.outcome

    assert outcome() is Outcome.FAILED
    github.faults.add("GET", route, *[Fault.status(502)] * 5)
    assert outcome() is not Outcome.PASSED


def test_baseline__no_room_for_the_download__is_no_crash(github, desk, pull) -> None:
    keep(github)
    step = desk.step("pull_request", pull_request_event(github, pull), RUNNER_TEMP="/nowhere/at/all")
    try:
        origin = get_baseline(step, RunConfig(output_dir="results"), desk.log)
    except GateError:
        return
    assert isinstance(origin.baseline, Baseline) or origin.baseline.unavailable


@pytest.mark.parametrize("number", ["0", "99999999999", "9" * 5_000])
def test_baseline__run_that_was_named_and_is_not_there__is_an_error_for_a_person(github, desk, pull, number) -> None:
    step = desk.step("pull_request", pull_request_event(github, pull), {"baseline": number})
    with pytest.raises(GateError) as caught:
        get_baseline(step, RunConfig(output_dir="results"), desk.log)
    assert caught.value.exit_code is ExitCode.USAGE
    assert len(caught.value.message) < 500


def test_baseline__run_that_was_named__is_held_against_the_branch(github, desk, pull) -> None:
    artifact = keep(github)
    github.state.add_commit("later", branch="main")
    step = desk.step("pull_request", pull_request_event(github, pull), {"baseline": str(artifact.run_id)})
    origin = get_baseline(step, RunConfig(output_dir="results"), desk.log)
    assert isinstance(origin.baseline, Baseline)
    assert origin.baseline.commits_behind == 1


# --- outputs


def test_outputs__nothing_known__are_there_and_empty() -> None:
    found = build_outputs(None, Outcome.INCONCLUSIVE, ExitCode.INCOMPLETE)
    assert {name for name, value in found.items() if value} == {"verdict", "exit-code"}
    assert (found["verdict"], found["exit-code"]) == ("inconclusive", "3")


@pytest.mark.parametrize("kind", ["waiver", "quarantine"])
def test_outputs__regression_that_somebody_accepted__is_not_counted(kind) -> None:
    baseline = Baseline(make_baseline_run({"a": "passed", "b": "passed"}), "b")
    run = make_run({"a": "failed", "b": "failed"})
    waivers = make_waivers(make_waiver("a", kind))
    result = judge_against(run, baseline, Policy(frozenset({FailOn.REGRESSIONS})), waivers=waivers)
    assert build_outputs(result, Outcome.FAILED, ExitCode.FAILED)["regressions"] == "1"
    unwaived = judge_against(run, baseline, Policy(frozenset({FailOn.REGRESSIONS})))
    assert build_outputs(unwaived, Outcome.FAILED, ExitCode.FAILED)["regressions"] == "2"


def test_outputs__no_baseline__regressions_are_unknown_and_not_none() -> None:
    result = judge_against(make_run({"a": "failed"}), NOT_REQUESTED, Policy())
    found = build_outputs(result, Outcome.FAILED, ExitCode.FAILED)
    assert (found["regressions"], found["new-passes"], found["failed"], found["cost-usd"]) == ("", "", "1", "")
