"""The second stage for forks: what is given was made by code that nobody reviewed, and is believed accordingly."""

from __future__ import annotations

import json
import posixpath
from urllib.parse import urlsplit

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.action.relay import confirm_reused_suites, find_pull_request_steps, load_relayed_result, recompute_result
from eval_gate.config.policy import Policy
from eval_gate.errors import ExitCode, GateError
from eval_gate.model.case import Location
from eval_gate.model.execution import Status
from eval_gate.model.result import GitFacts, RunResult
from eval_gate.model.reuse import ReusedResult, ReuseSource, ReuseSummary
from eval_gate.model.usage import Usage
from eval_gate.reports.case_annotations import CaseAnnotations, build_annotations
from eval_gate.reports.check_run import render_check_run
from eval_gate.reports.context import ReportContext
from eval_gate.reports.markdown import render_comment, render_summary
from eval_gate.reports.page.html import render_html
from eval_gate.reports.view.report_view import build_view
from eval_gate.results.baseline import NOT_REQUESTED, Baseline
from tests.support.github import Fault, sha
from tests.support.results import make_baseline_run, make_result, make_run, make_suite_result
from tests.support.verdicts import judge_against

GIT = GitFacts(sha="a" * 40, repository="acme/bot")


def data_of(run: RunResult) -> bytes:
    return msgspec.json.encode(run)


@pytest.fixture
def fork(github):
    """A pull request from a fork's branch called main, and the finished run of it."""
    pull = github.state.add_pull(9, head_repo="mallory/bot", head_ref="main", user="mallory")
    run = github.state.add_run(
        50, event="pull_request", head_branch="main", head_sha=pull.head_sha, head_repo="mallory/bot"
    )
    return pull, run


@pytest.fixture
def relay(desk, fork):
    """The step of the second stage for a run; its event says of the run what GitHub says, unless told otherwise."""

    def relay(run=fork[1], **event):
        head = {"id": run.head_repository_id, "full_name": run.head_repository_full_name}
        facts = {
            "id": run.id,
            "event": run.event,
            "path": run.path,
            "head_sha": run.head_sha,
            "head_branch": run.head_branch,
            "head_repository": head if run.head_repository_full_name else None,
        }
        return desk.step("workflow_run", {"action": "completed", "workflow_run": facts | event})

    return relay


# --- whose pull request


def test_find__pull_request_of_the_fork_s_branch__is_that_one(desk, fork, relay) -> None:
    (found,) = find_pull_request_steps(relay(), desk.log)
    assert (found.plan.pull_number, found.plan.base_branch, found.plan.head_sha) == (9, "main", fork[0].head_sha)


def test_find__same_branch_name_of_others__is_not_taken(desk, github, fork, relay) -> None:
    for number, owner in ((10, "eve/bot"), (11, "acme/bot")):
        github.state.add_pull(number, head_repo=owner, head_ref="main", head_sha=fork[0].head_sha)
    (found,) = find_pull_request_steps(relay(), desk.log)
    assert found.plan.pull_number == 9


@pytest.mark.parametrize("how", ["closed", "moved on", "another branch"])
def test_find__no_open_pull_request_has_this_head__there_is_nothing_to_publish(desk, fork, relay, how) -> None:
    pull, _ = fork
    match how:
        case "closed":
            pull.state = "closed"
        case "moved on":
            pull.head_sha = sha("newer")
        case _:
            pull.head_ref = "other"
    assert find_pull_request_steps(relay(head_sha=fork[1].head_sha), desk.log) == ()
    assert "nothing is published" in desk.said


def test_find__fork_was_deleted__there_is_nothing_to_publish(desk, github, fork, relay) -> None:
    fork[1].head_repository_full_name = fork[1].head_repository_id = None
    assert find_pull_request_steps(relay(), desk.log) == ()
    assert github.requests("GET", "/pulls") == []
    assert "was deleted, so its pull request cannot be found" in desk.said
    assert "no open pull request" not in desk.said


@pytest.mark.parametrize(
    "lie", [{"head_sha": "f" * 40}, {"head_branch": "other"}, {"head_repository": {"id": 1, "full_name": "eve/bot"}}]
)
def test_find__event_says_something_else_than_github__github_is_believed_or_it_is_refused(
    desk, fork, relay, lie
) -> None:
    try:
        (found,) = find_pull_request_steps(relay(**lie), desk.log)
    except GateError as error:
        assert (error.code, error.exit_code) == ("untrusted-workflow-run", ExitCode.INCOMPLETE)
    else:
        assert (found.plan.pull_number, found.plan.head_sha) == (9, fork[0].head_sha)


def test_find__run_was_no_pull_request_s__is_refused(desk, fork, relay) -> None:
    step = relay()
    fork[1].event = "push"
    with pytest.raises(GateError) as caught:
        find_pull_request_steps(step, desk.log)
    assert caught.value.code == "untrusted-workflow-run"


@pytest.mark.parametrize("route", [r"/actions/runs/50$", r"/pulls\?"])
def test_find__github_does_not_answer__is_an_error_and_never_a_pass(desk, github, relay, route) -> None:
    github.faults.add("GET", route, *[Fault.status(502)] * 5)
    with pytest.raises(GateError) as caught:
        find_pull_request_steps(relay(), desk.log)
    assert (caught.value.code, caught.value.exit_code) == ("github-unreachable", ExitCode.INCOMPLETE)


# --- what the run left


def test_result__several_of_one_name__is_the_newest_and_expired_ones_do_not_count(desk, github, fork, relay) -> None:
    for word in ("older", "newer"):
        github.state.add_artifact(fork[1], {"run.json": data_of(make_run({"a": "passed"}, run_id=word))})
    github.state.add_artifact(fork[1], {"run.json": b"{}"}, expired=True)
    github.state.add_artifact(fork[1], {"run.json": b"{}"}, name="another")
    assert load_relayed_result(relay(), desk.log).run_id == "newer"


@pytest.mark.parametrize("files", [None, b"no zip", {"run.json": b"{}"}, {"../run.json": b"{}"}, {"x": b""}])
def test_result__nothing_that_can_be_read__is_an_error_and_never_a_pass(desk, github, fork, relay, files) -> None:
    if files is not None:
        github.state.add_artifact(fork[1], files)
    with pytest.raises(GateError) as caught:
        load_relayed_result(relay(), desk.log)
    assert (caught.value.code, caught.value.exit_code) == ("result-not-found", ExitCode.INCOMPLETE)


def test_result__what_it_says_of_itself__is_made_anew(desk, github, fork, relay) -> None:
    claimed = json.loads(data_of(make_run({"a": "passed", "b": "failed", "c": "not_run"})))
    claimed |= {"complete": True, "git": {"sha": "f" * 40, "repository": "mallory/bot"}, "baselineRunId": "x"}
    claimed["summary"] |= {"passed": 3, "failed": 0, "notRun": 0, "passRate": 1.0}
    claimed["verdict"] = {"outcome": "passed", "exitCode": 0}
    claimed["suites"][0]["cases"][1] |= {"passed": True}
    claimed["suites"][0] |= {"regressions": ["x"], "summary": {"passed": 3}}
    github.state.add_artifact(fork[1], {"run.json": json.dumps(claimed).encode()})
    found = load_relayed_result(relay(), desk.log)
    assert (found.summary.passed, found.summary.failed, found.summary.not_run, found.complete) == (1, 1, 1, False)
    assert found.git == GitFacts(sha=fork[0].head_sha, repository="acme/bot")
    assert (found.verdict, found.comparison, found.baseline_run_id) == (None, None, None)
    assert (found.suites[0].regressions, found.suites[0].summary.passed) == ((), 1)
    assert [case.passed for case in found.suites[0].cases] == [True, False, False]


STATUSES = st.lists(st.sampled_from(list(Status)), max_size=8)


@given(st.lists(STATUSES, max_size=3), st.booleans())
def test_unjudged__any_statuses__counts_follow_from_them_and_from_nothing_else(suites, complete) -> None:
    made = [
        make_suite_result([make_result(f"{n}-{m}", one.value, passed=m % 2 == 0) for m, one in enumerate(statuses)])
        for n, statuses in enumerate(suites)
    ]
    flat = [one for statuses in suites for one in statuses]
    found = recompute_result(make_run(*made, complete=complete), GIT)
    assert found.summary.total_cases == len(flat)
    assert found.summary.passed == flat.count(Status.PASSED)
    assert found.summary.not_run == flat.count(Status.NOT_RUN)
    assert found.complete == (complete and Status.NOT_RUN not in flat)
    assert all(case.passed == (case.status is Status.PASSED) for suite in found.suites for case in suite.cases)


# --- numbers and places as only an enemy writes them

CASES = [make_result("a", usage=Usage(input_tokens=1), cost_usd=0.1), make_result("b", "failed", cost_usd=0.1)]


def published(**case: object) -> list[str]:
    """Every text that a relay makes of a fork's run with this in its second case."""
    run = json.loads(data_of(make_run(make_suite_result(CASES))))
    run["suites"][0]["cases"][1] |= msgspec.to_builtins(case)
    text = json.dumps(run).replace("Infinity", "1e999")
    relayed = recompute_result(msgspec.json.decode(text, type=RunResult), GIT)
    then = make_baseline_run(make_suite_result([make_result("a", cost_usd=0.1), make_result("b", cost_usd=0.1)]))
    context = ReportContext(repository="acme/bot", head_sha="a" * 40, comment_key="k")
    view = build_view(judge_against(relayed, Baseline(then, "b", 1.0, 1), Policy()), context)
    check = render_check_run(view)
    return [render_comment(view), render_summary(view), check.title, check.summary, check.page, render_html(view)]


ODD = {
    "backwards": {"durationMs": -1e300},
    "paid for": {"costUsd": -5.0},
    "many tokens": {"usage": {"inputTokens": 10**900, "outputTokens": -5}},
    "many skipped": {"assertionsSkipped": 10**900},
    "far down": {"location": {"file": "evals/a.json", "line": 10**900}},
    "long words": {"description": "x" * 1_000_000, "error": "y" * 1_000_000},
}
INFINITE = float("inf")
REFUSED = {
    "endless": {"durationMs": INFINITE},
    "priceless": {"costUsd": INFINITE},
    "beyond score": {"score": INFINITE},
    "endless trials": {"trials": [{"status": "failed", "score": INFINITE, "durationMs": INFINITE}] * 3},
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_relay__numbers_without_end__are_no_result(case) -> None:
    with pytest.raises(msgspec.ValidationError, match="out of range"):
        published(**case)


@pytest.mark.slow
@pytest.mark.parametrize("case", ODD.values(), ids=ODD)
def test_relay__numbers_that_nobody_measured__are_published_and_nothing_breaks(case) -> None:
    comment, _, title, _, page, _ = published(**case)
    assert "1 regression" in comment
    assert title.startswith("1 regression")
    assert len(comment) <= 60_000
    assert len(page) <= 60_000


@pytest.mark.parametrize(
    "file",
    [
        "../../../../mallory/evil/x.md",
        "a/../../../../../mallory/x",
        "//evil.test/x",
        "/../../x",
        "a\\..\\..\\x",
        "%2e%2e/x",
    ],
)
def test_relay__place_of_a_case_outside_of_the_repository__is_no_link_that_leads_there(file) -> None:
    """A comment by the repository's own bot must not send people to somebody else's page."""
    comment = published(location=Location(file=file, line=1))[0]
    for link in [part.partition(")")[0] for part in comment.split("](")[1:]]:
        found = urlsplit(link)
        assert found.netloc == "github.com"
        assert posixpath.normpath(found.path).startswith(f"/acme/bot/blob/{'a' * 40}/")


def test_relay__place_outside_of_the_repository__is_not_annotated() -> None:
    run = make_run(make_suite_result([make_result("b", "failed", location=Location(file="../x", line=1))]))
    view = build_view(judge_against(run, Baseline(make_baseline_run({"b": "passed"}), "b"), Policy()), ReportContext())
    assert build_annotations(view) == CaseAnnotations()


def reused_suite(cases: dict[str, str], source: ReuseSource = ReuseSource.BASELINE, **fields):
    origin = ReusedResult(source=source, run_id="r", timestamp="2026-11-19T10:00:00Z")
    return make_suite_result(
        [make_result(name, status, cost_usd=1.0) for name, status in cases.items()], reused=origin, **fields
    )


def test_confirm_reused_suites__the_baselines_own_results__stay_reused_and_cost_nothing() -> None:
    baseline = Baseline(make_baseline_run({"a": "passed", "b": "failed"}), "main")
    run = make_run(reused_suite({"a": "passed", "b": "failed"}), reuse=ReuseSummary())
    confirmed = confirm_reused_suites(run, baseline)
    assert confirmed.suites == run.suites
    assert confirmed.reuse == run.reuse
    assert confirmed.summary.estimated_cost_usd is None


@pytest.mark.parametrize(
    ("suite", "baseline"),
    [
        (reused_suite({"a": "failed"}), Baseline(make_baseline_run({"a": "passed"}), "main")),
        (reused_suite({"a": "passed"}), Baseline(make_baseline_run({"a": "failed"}), "main")),
        (reused_suite({"a": "passed"}), Baseline(make_baseline_run({"a": "passed", "b": "failed"}), "main")),
        (reused_suite({"a": "passed"}, eval_file="b.json"), Baseline(make_baseline_run({"a": "passed"}), "main")),
        (reused_suite({"a": "passed"}, ReuseSource.OWN_RUN), Baseline(make_baseline_run({"a": "passed"}), "main")),
        (reused_suite({"a": "passed"}), NOT_REQUESTED),
    ],
)
def test_confirm_reused_suites__claims_of_a_fork__count_as_executions(suite, baseline) -> None:
    confirmed = confirm_reused_suites(make_run(suite, reuse=ReuseSummary()), baseline)
    assert [one.reused for one in confirmed.suites] == [None]
    assert confirmed.reuse is None
    assert confirmed.summary.estimated_cost_usd == 1.0
