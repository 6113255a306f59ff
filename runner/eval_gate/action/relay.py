"""Relay: second stage for pull requests whose own run has no token to publish (docs/action.md#forks).

It runs on the default branch with a token that may write, and never runs code of the pull request. Its input comes from
code without a review: the relay takes provenance from GitHub, counts again, and computes its own verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from eval_gate.action.base_commit import BASE, WorkspaceCommit, find_pull_base
from eval_gate.action.inputs import DEFAULT_ARTIFACT
from eval_gate.action.precedence import is_of_run
from eval_gate.action.publishing.check_run import parse_publication
from eval_gate.action.step import Step
from eval_gate.action.step_log import StepLog
from eval_gate.action.step_plan import BaselineKind
from eval_gate.config.selection import Selection
from eval_gate.errors import ExitCode, GateError, Problem
from eval_gate.github.artifacts.artifact_search import Artifact, list_run_artifacts
from eval_gate.github.artifacts.baseline_finder import UnknownBaseError, open_result_archive
from eval_gate.github.artifacts.download import BadArchiveError
from eval_gate.github.check_runs import list_commit_checks
from eval_gate.github.commits import PullRequest, WorkflowRun, find_parents, get_workflow_run, list_pull_requests
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.model.execution import Status
from eval_gate.model.result import GitFacts, RunResult, SuiteResult
from eval_gate.model.reuse import ReuseSource
from eval_gate.model.run_totals import summarize_cases, summarize_suites
from eval_gate.model.selection import CaseSelection
from eval_gate.results.baseline import Baseline, NoBaseline
from eval_gate.results.run_reader import read_archived_run
from eval_gate.struct import replace

_SEVERAL_HINT: Final = "give each gate of that workflow its own `artifact-name`, and set the same name in this workflow"


class RelayedBaseError(GateError):
    """Error for a run that evaluated a merge into another branch than the pull request's base."""


def build_relayed_base_error(error: UnknownBaseError) -> RelayedBaseError:
    """Build the error of a relay whose run evaluated a merge with an unknown commit."""
    hint = "push a commit, or close the pull request and reopen it"
    return RelayedBaseError("result-not-found", f"the run evaluated {error}", hint, exit_code=ExitCode.INCOMPLETE)


def find_pull_request_steps(step: Step, log: StepLog) -> tuple[Step, ...]:
    """Build a step for each open pull request whose head the run evaluated.

    Returns no steps if no such pull request is open any more, or if the run had a token with write access and
    published by itself. Raises GateError if GitHub does not answer, or does not confirm the event.
    """
    try:
        run = _confirm_run(step)
        owner = run.head_repository.full_name.partition("/")[0] if run.head_repository else ""
        pulls = list_pull_requests(step.client, owner, run.head_branch or "", run.head_sha) if owner else ()
    except GitHubError as error:
        raise _build_unavailable_error(error) from error
    if not owner:  # its pull request may be open, and GitHub finds none by a repository that is gone
        log.record(f"the fork of run {run.id} was deleted, so its pull request cannot be found: nothing is published")
    elif not pulls:
        log.record(f"no open pull request has the head {run.head_sha[:7]}: nothing is published")
    elif _has_published_itself(step, run, log):
        log.record(f"run {run.id} had a token with write access and published its own result")
        return ()
    for pull in pulls:
        log.record(f"the run evaluated pull request #{pull.number}, head {run.head_sha[:7]}, into {pull.base.ref}")
    return tuple(_build_pull_step(step, run, pull) for pull in pulls)


def _build_pull_step(step: Step, run: WorkflowRun, pull: PullRequest) -> Step:
    """Build the step for one of the pull requests, which is evaluated against its own base branch."""
    into, baseline = pull.base.ref, step.plan.baseline
    if step.settings.baseline_branch == BASE:
        baseline = replace(baseline, branch=into)
    changed = replace(step.plan, pull_number=pull.number, base_branch=into, rules_branch=into, baseline=baseline)
    # the event may be of an earlier attempt than the run's newest one
    attempt = min(step.plan.relayed_attempt or run.run_attempt, run.run_attempt)
    began = run.run_started_at if attempt == run.run_attempt > 1 else None
    return replace(step, plan=replace(changed, relayed_attempt=attempt, relayed_since=began))


def lower_precedence(step: Step) -> Step:
    """Have any other known result of a pull request take precedence: the run evaluated a merge into another branch."""
    return replace(step, plan=replace(step.plan, relayed_run=0, relayed_attempt=0))


def _has_published_itself(step: Step, run: WorkflowRun, log: StepLog) -> bool:
    """Whether that run's own token wrote a check run: Dependabot's and a private repository's forks' may."""
    run_attempt = (run.id, run.run_attempt)
    try:
        signed = (parse_publication(one) for one in list_commit_checks(step.client, run.head_sha))
        return any(one and is_of_run(one, run.head_sha, run_attempt) for one in signed)
    except GitHubError as error:
        log.record(f"cannot check whether run {run.id} published its own result: {error}")
        return False


def set_result_base(step: Step, result: RunResult, log: StepLog) -> Step:
    """Set the base of the baseline lookup from the commit that the run result names.

    The commit is a claim of the fork's code, like the rest of the result: it must be the head or a merge of it. The
    other parent of the merge is believed only if the base branch had that commit.

    Raises GateError if the commit is neither, and GitHubError.
    """
    head, into, claimed = step.plan.head_sha, step.plan.base_branch, result.git.workspace_sha if result.git else None
    if claimed is None or into is None or step.plan.baseline.kind is not BaselineKind.ARTIFACT:
        log.record("the result does not say which commit was evaluated: assuming the head")
        return step
    parents = None if claimed == head else find_parents(step.client, claimed)
    try:
        base = find_pull_base(WorkspaceCommit("", claimed, parents), head, f"#{step.plan.pull_number}")
    except GateError as error:
        raise _build_no_result_error(
            f"the run evaluated {claimed[:12]}, which is neither {head[:7]} nor a merge of it"
        ) from error
    choice = replace(step.plan.baseline, base=replace(base, forked_from=into))
    log.record(f"the run evaluated {claimed[:7]}, {'the head' if claimed == head else f'a test merge into {into}'}")
    return replace(step, plan=replace(step.plan, baseline=choice, workspace_sha=claimed))


def load_relayed_result(step: Step, log: StepLog) -> RunResult:
    """Load the result that the relayed run stored, without its verdict. Raises GateError if none is usable."""
    name, run_id = step.settings.artifact_name, _get_run_id(step)
    try:
        if name == DEFAULT_ARTIFACT:
            stored = {one.name for one in list_run_artifacts(step.client, run_id)}
            names = sorted(one for one in stored if one == name or one.startswith(f"{name}."))
            if len(names) > 1:
                # which of them took the plain name is chance: it must not decide what is published
                raise _build_no_result_error(f"several gates of run {run_id} stored a result", hint=_SEVERAL_HINT)
            # the gate's own name, where an upload that broke took the plain one
            name = names[0] if names else name
        usable = [one for one in list_run_artifacts(step.client, run_id, name) if not one.expired]
        if not usable:
            raise _build_no_result_error(f"run {run_id} has no artifact {name}")
        with open_result_archive(step.client, usable[0], step.environment.temporary_folder) as file:
            result = read_archived_run(file, f"artifact {usable[0].id}")
        _refuse_earlier_attempt(step, usable[0], result)
    except GitHubError as error:
        raise _build_unavailable_error(error) from error
    except BadArchiveError as error:
        raise _build_no_result_error(f"the artifact {name} of run {run_id} cannot be used: {error}") from error
    except GateError as error:
        raise (
            error if error.code == "result-not-found" else _build_no_result_error(error.message, error.problems)
        ) from error
    log.record(f"read artifact {usable[0].id} of run {run_id}")
    claimed = result.git.workspace_sha if result.git else None
    git = GitFacts(sha=step.plan.head_sha, repository=step.client.repository, workspace_sha=claimed)
    return recompute_result(result, git)


def _refuse_earlier_attempt(step: Step, artifact: Artifact, result: RunResult) -> None:
    """Refuse the result of an earlier attempt, by the attempt that it names or the time GitHub stored it."""
    attempt, since, maker = step.plan.relayed_attempt or 1, step.plan.relayed_since, result.producer
    older = since is not None and artifact.created_at is not None and artifact.created_at < since
    if older or (maker is not None and maker.attempt < attempt):
        what = (
            f"attempt {attempt} of run {_get_run_id(step)} stored no result: artifact {artifact.id} is from an earlier "
            "attempt"
        )
        raise _build_no_result_error(what, hint="re-run all jobs of that run; its log says how this attempt ended")


def check_selection(result: RunResult, selection: Selection) -> RunResult:
    """Mark a result of other cases than this step asks for as incomplete: an untrusted workflow chose them."""
    required = {_normalize_selection(one) for one in selection.chosen_cases}
    if not result.partial or {_normalize_selection(one) for one in result.selections} == required:
        return result
    scope = "the cases that `case`, `tag` and `tier` select" if required else "all cases"
    why = f"the run evaluated other cases than this workflow requires: {scope}"
    return replace(
        result,
        complete=False,
        selections=(),
        stop_reason=why,
    )


def _normalize_selection(one: CaseSelection) -> tuple[frozenset[object], ...]:
    return tuple(map(frozenset, (one.cases, one.tags, one.tiers, one.paths, (key.key for key in one.keys))))


def recompute_result(result: RunResult, git: GitFacts) -> RunResult:
    """Recompute all that derives from the claimed cases, without comparison, gate verdict and baseline run id."""
    suites = tuple(_recount_suite(suite) for suite in result.suites)
    cases = [case for suite in suites for case in suite.cases]
    return replace(
        result,
        suites=suites,
        summary=summarize_suites(suites, result.summary.wall_ms),
        complete=result.complete and all(case.status is not Status.NOT_RUN for case in cases),
        git=git,
        baseline_run_id=None,
        comparison=None,
        verdict=None,
    )


def _recount_suite(suite: SuiteResult) -> SuiteResult:
    cases = tuple(replace(case, passed=case.status is Status.PASSED) for case in suite.cases)
    return replace(
        suite, cases=cases, summary=summarize_cases(cases), baseline_run_id=None, regressions=(), new_passes=()
    )


def confirm_reused_suites(result: RunResult, baseline: Baseline | NoBaseline) -> RunResult:
    """Count suites as executed that claim to be reused, but do not have the results of the trusted baseline."""
    trusted = [_list_scores(suite) for suite in baseline.result.suites] if isinstance(baseline, Baseline) else []

    def is_confirmed(suite: SuiteResult) -> bool:
        from_baseline = suite.reused is not None and suite.reused.source is ReuseSource.BASELINE
        return from_baseline and _list_scores(suite) in trusted

    suites = tuple(suite if is_confirmed(suite) else replace(suite, reused=None) for suite in result.suites)
    reuse = result.reuse if any(suite.reused for suite in suites) else None
    return replace(result, suites=suites, summary=summarize_suites(suites, result.summary.wall_ms), reuse=reuse)


def _list_scores(suite: SuiteResult) -> list[object]:
    return [suite.eval_file, *((case.id, case.fingerprint, case.status, case.score) for case in suite.cases)]


def _confirm_run(step: Step) -> WorkflowRun:
    """Fetch the workflow run, and confirm that it is a pull request's run on the event's commit."""
    run = get_workflow_run(step.client, _get_run_id(step))
    if run.event != "pull_request" or run.head_sha != step.plan.head_sha:
        raise GateError(
            "untrusted-workflow-run",
            f"run {run.id} is a run of {run.event} for {run.head_sha[:7]}, which does not match the event",
            "start this workflow by workflow_run only",
            exit_code=ExitCode.INCOMPLETE,
        )
    return run


def _get_run_id(step: Step) -> int:
    assert step.plan.relayed_run is not None
    return step.plan.relayed_run


def _build_no_result_error(
    message: str, problems: Sequence[Problem] = (), hint: str = "see the log of that run"
) -> GateError:
    return GateError("result-not-found", message, hint, problems=problems, exit_code=ExitCode.INCOMPLETE)


def _build_unavailable_error(error: GitHubError) -> GateError:
    hint = "re-run the failed job" if error.kind is not FailureKind.FORBIDDEN else None
    return GateError("github-unreachable", str(error), hint, exit_code=ExitCode.INCOMPLETE)
