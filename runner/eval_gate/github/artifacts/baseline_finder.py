"""Baselines in GitHub artifacts: find the nearest usable run result of the baseline branch."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from typing import Final, NamedTuple

from eval_gate.errors import GateError
from eval_gate.github.artifacts.artifact_search import (
    OTHER_EVENTS,
    TRUSTED_EVENTS,
    Artifact,
    BaselineCriteria,
    PendingLists,
    SearchTrail,
    find_distrust_reason,
    is_queue_branch,
    iter_candidates,
    iter_newest_run_artifacts,
    iter_other_artifacts,
    list_run_artifacts,
    list_usable,
    start_listing,
)
from eval_gate.github.artifacts.download import MAX_ARCHIVE_BYTES, BadArchiveError, fetch_artifact
from eval_gate.github.background_calls import start_in_background
from eval_gate.github.client import GitHubClient
from eval_gate.github.commits import (
    FIRST_LISTED_COMMITS,
    BranchCommits,
    CommitDistance,
    WorkflowRun,
    compare_commits,
    find_branch_tip,
    find_parents,
    get_workflow_run,
    iter_commits,
    iter_first_parents,
)
from eval_gate.github.failure import FailureKind, GitHubError, find_or_none
from eval_gate.model.comparison import ReasonCode, UnscoredRun
from eval_gate.model.result import GitFacts, RunResult
from eval_gate.results.archive import extract_top_entry, find_entry_in_same_folder
from eval_gate.results.baseline import (
    Baseline,
    NoBaseline,
    build_unscored_run,
    describe_branch_rerun,
    has_enough_scores,
)
from eval_gate.results.history import EMPTY_HISTORY, HISTORY_NAME, MAX_HISTORY_BYTES, MAX_RUNS, History, parse_history
from eval_gate.results.result_names import RUN_NAME
from eval_gate.results.run_history import join_histories, trim_to_run, trim_to_run_id
from eval_gate.results.run_reader import read_archived_head, read_archived_run
from eval_gate.struct import FrozenStruct, replace

MAX_READ_RESULTS: Final = 10
"""Results that are read as a whole: of the commit, the gate and the cases that are sought."""
MAX_FETCHED_ARTIFACTS: Final = 25
"""Artifacts that are fetched. Most are rejected by their head."""
MAX_MERGED_HISTORIES: Final = 8
"""Other results whose histories are fetched, because runs of the branch may overlap."""
MAX_USELESS_HISTORIES: Final = 2
"""Maximum of these that add nothing, such as results of some cases only."""
MAX_INELIGIBLE_RESULTS: Final = 5
"""Gates whose results do not count and are read all the same, to tell whether they are of the cases here."""
MAX_OTHER_ARTIFACTS: Final = 10
"""Artifacts that are fetched to find these results."""
MAX_OF_NAME: Final = 2
"""Maximum of these for one workflow and name: two gates of a run may take turns in storing under it."""
MAX_NAMES: Final = 3
"""Names that are checked as earlier names of the branch."""
MAX_CHECKED_ARTIFACTS: Final = 50
"""Artifacts whose runs are asked about, usable or not."""


OF_ANOTHER_GATE: Final = "of another gate"


class FoundBaseline(FrozenStruct):
    """Baseline from an artifact, with its origin."""

    baseline: Baseline
    run_id: int
    sha: str
    trail: str
    """What was seen and not taken; empty when nothing was."""
    history_error: str = ""
    """Why the history that came with it cannot be read; empty if it can."""
    companion_digest: str | None = None
    """The sha256 of the file that travelled with it, in hexadecimal, where that was put where it was wanted."""


class UnknownBaseError(Exception):
    """Error for a merge with a commit that is not known to be of the branch, so it is no base."""

    def __init__(self, commit: str, branch: str) -> None:
        super().__init__(f"a merge with {commit[:12]}, which is not a known commit of {branch}")


class IneligibleResult(FrozenStruct):
    """Result of the branch that cannot be a baseline: of another workflow, gate or event."""

    result: RunResult
    gate: str
    artifact_name: str
    workflow: str
    event: str
    """The event that made it, if no setting makes its results baselines; else empty."""


class CompanionFile(FrozenStruct):
    """File to extract with the baseline: its name in the archive, target path and size limit."""

    name: str
    target_path: Path
    max_bytes: int


class _UsableRun(NamedTuple):
    """A run that can be the baseline, with what came with it."""

    run: RunResult
    history: History
    history_error: str


@contextmanager
def open_result_archive(client: GitHubClient, artifact: Artifact, temporary: Path | None) -> Iterator[Path]:
    """Download an archive, and delete it afterwards. Raises GitHubError, also for a full disk, and BadArchiveError."""
    try:
        with tempfile.TemporaryDirectory(dir=temporary, prefix="eval-gate-") as folder:
            file = Path(folder) / "artifact.zip"
            fetch_artifact(client, artifact.id, artifact.digest, file)
            yield file
    except OSError as error:
        doing, why = f"keeping artifact {artifact.id}", f"it cannot be written ({error.strerror})"
        raise GitHubError(FailureKind.REFUSED, doing, why) from error


class BaselineFinder:
    """Finder of a baseline among artifacts. An unavailable GitHub raises GitHubError."""

    def __init__(
        self,
        client: GitHubClient,
        criteria: BaselineCriteria,
        *,
        temporary: Path | None = None,
        companion: CompanionFile | None = None,
        due: Callable[[], object] = lambda: None,
    ) -> None:
        """`due` is waited for before a fetched archive is read: a large one takes the processor for seconds."""
        self._due = due
        self._companion = companion
        self._companion_digest: str | None = None
        self._unscored_runs: list[UnscoredRun] = []
        self._client = client
        self._criteria = criteria
        self._temporary = temporary
        self.notes: list[str] = []
        """What could not be learnt and does not matter for the verdict."""
        self._usable_runs: dict[int, _UsableRun] = {}
        self._to_read, self._to_fetch = MAX_READ_RESULTS, MAX_FETCHED_ARTIFACTS
        self._to_join = MAX_MERGED_HISTORIES
        self._branch_commits: dict[str, BranchCommits] = {}
        self._runs: dict[int, WorkflowRun] = {}
        self._commits_since: dict[str, int | None] = {}
        """Commits between each commit and the base; None for a commit that is not at or before the base."""
        self._find_tip: Callable[[], str | None] = lambda: find_branch_tip(client, criteria.branch)
        """The commit that the branch points at: a tag may be called like it."""
        self._has_unreadable_result = False
        """Whether a possible baseline could not be read: then the baseline is unavailable, not absent."""
        self._ineligible_artifacts: list[tuple[Artifact, WorkflowRun]] = []
        """Artifacts of the branch that cannot be a baseline, nearest first."""
        self._has_unconfirmed_commit = False
        """Whether a result is of a commit that the branch may or may not have pointed at."""
        self._has_partial_result = False
        """Whether a usable result has other cases only: it is unknown whether the cases here passed before."""
        self._has_failed_result = False
        """Whether the evaluated commit has a result that did not pass: then it had a baseline."""

    def find_nearest(self, moment: datetime) -> FoundBaseline | NoBaseline:
        """Find the nearest trusted and complete run, or why there is none. Raises UnknownBaseError and GitHubError."""
        trail, lists = SearchTrail(), start_listing(self._client, self._criteria)
        commits = self._get_branch_commits(self._criteria.branch)
        self._find_tip = lambda: commits.tip
        base = self._find_base_commit()
        if isinstance(base, NoBaseline):
            return base
        self._criteria = replace(self._criteria, base=replace(self._criteria.base, commit=base))
        best = self._find_first_usable(iter_candidates(self._client, self._criteria, trail, lists), trail, moment)
        if best is None and trail.has_more and not trail.has_searched_runs and self._to_read and self._to_fetch:
            trail.has_more = False
            best = self._find_first_usable(
                iter_newest_run_artifacts(self._client, self._criteria, trail), trail, moment
            )
        if best is not None:
            return self._merge_histories(best, list_usable(self._criteria, lists), trail)
        criteria = self._criteria
        if self._find_tip() is None:
            why = f"branch {criteria.branch} not found; set another one with `baseline-branch`"
            return NoBaseline(ReasonCode.BASELINE_BRANCH_NOT_FOUND, why, unavailable=True)
        if not trail.seen_ids and (alias := self._find_former_name(lists)) is not None:
            why = (
                f"{criteria.branch} was renamed from {alias}; run the workflow on {criteria.branch} to store a baseline"
            )
            message = f"no artifact {criteria.name} of {criteria.branch}: {why}"
            return NoBaseline(ReasonCode.BRANCH_RENAMED, message, refreshable=True)
        among = " among the nearest" if trail.has_more else ""
        reason = f"no usable artifact {criteria.name} of {criteria.branch}{among}"
        if criteria.exact_commit_branch:
            reason += (
                f" for commit {(criteria.near_commit or 'unknown')[:7]}, the base of {criteria.exact_commit_branch}"
            )
        rejections = f"; {trail}" if trail.rejection_reasons else ""
        # then it is unknown which cases passed in the base, and the gate must not pass
        unknown = self._is_hidden_by_outage or self._has_unreadable_result or trail.has_more or self._has_later_results
        unknown = unknown or self._has_failed_result or self._has_partial_result or self._has_unconfirmed_commit
        # one that has expired may have passed
        unknown = unknown or trail.has_expired or criteria.exact_commit_branch is not None
        hint = self._describe_remedy(trail)
        return NoBaseline(
            ReasonCode.BASELINE_ARTIFACT_NOT_FOUND,
            f"{reason}{rejections}; {hint}",
            hint=hint,
            unavailable=unknown,
            expired=trail.has_expired,
            refreshable=self._can_refresh(trail),
        )

    def find_ineligible_results(self) -> tuple[IneligibleResult, ...]:
        """Find the nearest result of each other gate of the branch, at or before the base.

        They are those that `find_nearest` has seen and did not count, and those under other names. Raises GitHubError.
        """
        results: dict[str, IneligibleResult] = {}
        for artifact, run in islice(self._iter_ineligible_artifacts(), MAX_OTHER_ARTIFACTS):
            if len(results) == MAX_INELIGIBLE_RESULTS:
                break
            shown_as = f"artifact {artifact.id}"
            try:
                with open_result_archive(self._client, artifact, self._temporary) as archive:
                    head = read_archived_head(archive, shown_as)
                    gate = head.producer.gate if head.producer is not None else ""
                    place = f"{run.workflow}: {gate}"
                    if gate and place not in results and head.complete and head.sha in {None, run.head_sha}:
                        event = run.event if run.event in OTHER_EVENTS else ""
                        result = read_archived_run(archive, shown_as, compared=False)
                        results[place] = IneligibleResult(result, gate, artifact.name, run.workflow, event)
            except (BadArchiveError, GateError):
                continue
            except GitHubError as error:
                if error.kind not in {FailureKind.GONE, FailureKind.NOT_FOUND}:
                    raise
        return tuple(results.values())

    def _iter_ineligible_artifacts(self) -> Iterator[tuple[Artifact, WorkflowRun]]:
        """Yield the artifacts of the base that do not count and can be read: the nearest of each workflow and name."""
        uses = Counter[tuple[str, str]]()
        for artifact, run in chain(self._ineligible_artifacts, iter_other_artifacts(self._client, self._criteria)):
            place = run.workflow, artifact.name
            fits = artifact.size_in_bytes <= MAX_ARCHIVE_BYTES and uses[place] < MAX_OF_NAME and not self._is_later(run)
            if fits and self._get_branch_commits(run.head_branch or "").has_pointed_at(run.head_sha):
                uses[place] += 1
                yield artifact, run

    def iter_base_commits(self, limit: int) -> Iterator[str]:
        """Yield the base, once `find_nearest` has found it, and first parents, at most `limit`. Raises GitHubError."""
        if near := self._criteria.near_commit:
            listed = islice(iter_commits(self._client, near), FIRST_LISTED_COMMITS)
            yield from islice(iter_first_parents(near, {one.sha: one.first_parent for one in listed}), limit)

    def _find_former_name(self, lists: PendingLists) -> str | None:
        """Find the former name of a branch: its commits have results under this name, and no branch has it now."""
        commits = self._get_branch_commits(self._criteria.branch)
        runs = [one.workflow_run for coming in lists for one in coming.result() if one.workflow_run is not None]
        run_ids = {
            run.head_branch: run.id
            for run in reversed(runs)
            if run.head_branch and run.head_repository_id == run.repository_id and commits.has_listed(run.head_sha)
        }
        for name, run_id in islice(run_ids.items(), MAX_NAMES):
            run = get_workflow_run(self._client, run_id)
            if not find_distrust_reason(run, self._criteria) and find_branch_tip(self._client, name) is None:
                return name
        return None

    @property
    def _is_hidden_by_outage(self) -> bool:
        """Whether an outage lasted longer than the search reaches: an older baseline may exist."""
        return bool(self._unscored_runs) and not self._to_read

    @property
    def _has_later_results(self) -> bool:
        """Whether there are results of commits that the base has not, and perhaps none of others."""
        return any(since is None for since in self._commits_since.values())

    def _describe_remedy(self, trail: SearchTrail) -> str:
        """Describe what to do if no baseline is available."""
        reasons = set(trail.rejection_reasons.values())
        if self._has_failed_result:
            return "name an earlier run with `baseline`"
        if self._is_hidden_by_outage or self._has_unreadable_result or self._has_unconfirmed_commit:
            return f"run {self._criteria.branch} again, or name an earlier run with `baseline`"
        if self._has_partial_result:
            same = "with the `case`, `tag`, `tier` and `shard` of this run, or without any"
            return f"run the workflow on {self._criteria.branch} {same}"
        if self._has_later_results:
            return self._describe_update_remedy()
        if any("another workflow" in why for why in reasons):
            return "name its file with `baseline-workflow`"
        if trail.has_more and any("another gate" in why for why in reasons):
            return "give each gate its own `artifact-name`"
        if trail.has_expired:
            return describe_branch_rerun(self._criteria.branch)
        if any(run.event in OTHER_EVENTS for _, run in self._ineligible_artifacts):
            own = f"run the workflow on pushes to {self._criteria.branch}, or by schedule"
        else:
            own = f"the next run on {self._criteria.branch} stores one"
        return own

    def _can_refresh(self, trail: SearchTrail) -> bool:
        """Whether the next run of the branch makes a baseline, and nothing else has to change for it."""
        other = any("another workflow" in why or "another gate" in why for why in trail.rejection_reasons.values())
        kept_out = self._has_failed_result or self._has_partial_result or self._has_later_results or other
        return not kept_out and self._criteria.exact_commit_branch is None

    def _describe_update_remedy(self) -> str:
        """Describe what to do if the base has no result, but commits outside of it have one."""
        criteria = self._criteria
        branch = criteria.base.forked_from or criteria.branch
        if criteria.near_commit != self._get_branch_commits(branch).tip:
            return f"update this change with {branch}"
        if branch == criteria.branch:
            return f"run the workflow on {branch}, or name an earlier run with `baseline`"
        return f"run the workflow on {branch} too and set `baseline-branch: base`, or name a run with `baseline`"

    def _get_branch_commits(self, branch: str) -> BranchCommits:
        """Return the commits of a branch, requested once per branch."""
        if branch not in self._branch_commits:
            self._branch_commits[branch] = BranchCommits(self._client, branch)
        return self._branch_commits[branch]

    def _find_first_usable(
        self, artifacts: Iterable[Artifact], trail: SearchTrail, moment: datetime
    ) -> FoundBaseline | None:
        """Find the first artifact that can be the baseline; one of another gate serves only if no other is found."""
        other: FoundBaseline | None = None
        for looked_at, artifact in enumerate(artifacts):
            if looked_at == MAX_CHECKED_ARTIFACTS or not self._to_read or not self._to_fetch:
                trail.has_more = True
                return other
            run = self._find_trusted_run(artifact, trail)
            if run is None:
                continue
            if self._criteria.exact_commit_branch and run.head_sha != self._criteria.near_commit:
                trail.reject_artifact(artifact, "of another commit than the base")
                continue
            if self._is_later(run):
                trail.reject_artifact(artifact, "of a commit that is not in the base")
                continue
            behind = self._start_distance(run)
            usable = self._load_usable_run(artifact, run, trail)
            if usable is None:
                why = trail.rejection_reasons[artifact.id]
                self._ineligible_artifacts += [(artifact, run)] if why.startswith(OF_ANOTHER_GATE) else []
                continue
            candidate = self._build_found_baseline(artifact, run, usable, moment, str(trail), behind)
            if candidate.baseline.other_gate is None:
                return candidate
            other = other or candidate
        return other

    def _merge_histories(
        self, found_baseline: FoundBaseline, listed: list[Artifact], trail: SearchTrail
    ) -> FoundBaseline:
        """Add runs that overlapped with the baseline's run, from the histories of other results."""
        history = own = found_baseline.baseline.own_history
        in_vain = 0
        try:
            for artifact in self._iter_unknown_artifacts(history, found_baseline, listed, trail):
                if not self._to_join or in_vain == MAX_USELESS_HISTORIES:
                    break
                if _is_in_history(artifact, history):
                    continue
                other = self._load_history(artifact, found_baseline, trail)
                joined = join_histories(history, [other]) if other is not None else history
                in_vain += joined is history
                history = joined
        except GitHubError as error:  # less of the past says less, and nothing wrong
            self.notes.append(f"the histories of runs parallel to the baseline could not be read: {error}")
        if history is own:
            return found_baseline
        return replace(found_baseline, baseline=replace(found_baseline.baseline, history=history))

    def _iter_unknown_artifacts(
        self, history: History, found_baseline: FoundBaseline, listed: list[Artifact], trail: SearchTrail
    ) -> Iterator[Artifact]:
        """Yield artifacts of commits before the baseline that its history does not include, nearest first."""
        unread = [one for one in listed if one.id not in trail.rejection_reasons and not _is_in_history(one, history)]
        by_commit = defaultdict(list)
        for one in unread:
            if one.workflow_run is not None and one.workflow_run.id != found_baseline.run_id:
                by_commit[one.workflow_run.head_sha].append(one)
        if by_commit and history.runs:
            for sha in islice(
                self._get_branch_commits(self._criteria.branch).iter_before(found_baseline.sha), MAX_RUNS
            ):
                yield from by_commit.pop(sha, ())

    def _load_history(self, artifact: Artifact, found_baseline: FoundBaseline, trail: SearchTrail) -> History | None:
        """Load the history that ends with the run in an artifact, if that is a run of this gate on this branch."""
        run = self._find_trusted_run(artifact, trail)
        if run is None:
            return None
        self._to_join -= 1
        shown_as = f"the history of {_format_source(artifact, run)}"
        try:
            with open_result_archive(self._client, artifact, self._temporary) as archive:
                head = read_archived_head(archive, shown_as)
                if self._find_objection(head, run) or self._find_other_gate(head) != found_baseline.baseline.other_gate:
                    return None
                data = find_entry_in_same_folder(archive, RUN_NAME, HISTORY_NAME, MAX_HISTORY_BYTES)
                return trim_to_run_id(parse_history(data, shown_as), head.run_id) if data is not None else None
        except (BadArchiveError, GateError):
            return None

    def _find_trusted_run(self, artifact: Artifact, trail: SearchTrail) -> WorkflowRun | None:
        """Return the artifact's run if it belongs to the branch that makes baselines, without a download."""
        assert artifact.workflow_run is not None
        run_id = artifact.workflow_run.id
        if run_id not in self._runs:
            self._runs[run_id] = get_workflow_run(self._client, run_id)
        run = self._runs[run_id]
        why = find_distrust_reason(run, self._criteria)
        # a merge group's counts as the branch's that it was merged into
        head_branch, target = run.head_branch, self._criteria.branch
        branch = target if head_branch is None or is_queue_branch(head_branch, self._criteria) else head_branch
        if not why and not (had := self._get_branch_commits(branch).has_pointed_at(run.head_sha)):
            why = f"of a commit that is not a known commit of {branch}"
            self._has_unconfirmed_commit = self._has_unconfirmed_commit or (had is None and not self._is_later(run))
        elif run.is_from_own_repository and run.head_branch == target and run.event in TRUSTED_EVENTS | OTHER_EVENTS:
            self._ineligible_artifacts += [(artifact, run)] if why else []
        if why:
            trail.reject_artifact(artifact, why)
        return None if why else run

    def find_in_run(self, run_id: int, moment: datetime) -> FoundBaseline:
        """Find the baseline in a run that the settings name. Raises GateError if the run has no usable artifact."""
        run = find_or_none(lambda: get_workflow_run(self._client, run_id))
        if run is None:
            raise GateError("baseline-not-found", f"run {run_id} not found", "name another run")
        trail = SearchTrail()
        if run.is_from_own_repository:
            for artifact in list_run_artifacts(self._client, run_id, *reversed(self._criteria.names)):
                if artifact.expired:
                    continue
                behind = self._start_distance(run)
                usable = self._load_usable_run(artifact, run, trail)
                if usable is not None:
                    return self._build_found_baseline(artifact, run, usable, moment, "", behind)
        absence = "the artifact no longer exists" if run.is_from_own_repository else "the run is from a fork"
        raise GateError(
            "baseline-not-found",
            f"run {run_id} has no usable artifact {self._criteria.name}: {str(trail) or absence}",
            "name another run, or use baseline: auto",
        )

    def _load_usable_run(self, artifact: Artifact, run: WorkflowRun, trail: SearchTrail) -> _UsableRun | None:
        """Load the complete run with enough scores in an artifact, or record on the trail why it cannot be used."""
        if artifact.id in self._usable_runs:
            return self._usable_runs[artifact.id]
        self._to_fetch -= 1
        shown_as = f"artifact {artifact.id}"
        try:
            with open_result_archive(self._client, artifact, self._temporary) as archive:
                self._due()
                head = read_archived_head(archive, shown_as)
                refused = self._find_objection(head, run)
                if not refused:
                    self._to_read -= self._find_other_gate(head) is None
                    result = read_archived_run(archive, shown_as, compared=False)
                    refused = self._find_objection(result, run) or self._check_scores(result, run)
                if not refused:
                    if (file := self._companion) is not None:
                        self._companion_digest = extract_top_entry(archive, file.name, file.target_path, file.max_bytes)
                    history = _read_history(archive, f"the history of {_format_source(artifact, run)}", result)
                    self._usable_runs[artifact.id] = _UsableRun(result, *history)
        except BadArchiveError as error:
            self._has_unreadable_result, refused = True, f"not usable ({error})"
        except GateError as error:
            is_newer = error.code == "unsupported-run-result-version"
            self._has_unreadable_result, refused = True, "written by a newer version" if is_newer else "corrupt"
        except GitHubError as error:
            if error.kind not in {FailureKind.GONE, FailureKind.NOT_FOUND}:
                raise
            # it may be the nearest: no older one, nor none at all, stands for it
            detail = f"GitHub lists it as not expired, but {error.detail}"
            remedy = "run the job again, or the workflow on the branch"
            raise GitHubError(error.kind, error.doing, detail, remedy=remedy) from error
        if refused:
            trail.reject_artifact(artifact, refused)
        return self._usable_runs.get(artifact.id)

    def _find_objection(self, result: RunResult, run: WorkflowRun) -> str:
        """Return the reason why a run cannot be the baseline, as worded in the trail, or an empty string."""
        evaluated = result.sha
        if evaluated and evaluated != run.head_sha:
            return "of another commit than its run's"
        if not result.complete:
            return "of an incomplete run"
        if self._criteria.gate and result.producer and result.producer.gate != self._criteria.gate:
            return f"{OF_ANOTHER_GATE} ({result.producer.gate})"
        covers = result.eval_paths is not None or result.covers(self._criteria.chosen_cases)
        if not covers or result.shard != self._criteria.shard:
            self._has_partial_result = True
            return "of another part of the cases" if covers else "of some cases only"
        if run.head_sha == self._criteria.evaluated_commit and not result.has_passed:
            # what this commit broke is not broken before it, however often it is run
            self._has_failed_result = True
            return "of this commit, where the gate did not pass"
        return ""

    def _check_scores(self, result: RunResult, run: WorkflowRun) -> str:
        """Return why a run without enough scores is no baseline, and remember it: the baseline names such runs."""
        if not has_enough_scores(result):
            self._unscored_runs.append(replace(build_unscored_run(result), sha=run.head_sha))
            return "without enough scores"
        return ""

    def _build_found_baseline(
        self,
        artifact: Artifact,
        run: WorkflowRun,
        usable: _UsableRun,
        moment: datetime,
        trail: str,
        behind: Future[CommitDistance | None],
    ) -> FoundBaseline:
        # what the artifact says of its commit is a claim; GitHub knows
        git = GitFacts(sha=run.head_sha, ref=f"refs/heads/{self._criteria.branch}", repository=run.repository.full_name)
        created_at = artifact.created_at
        baseline = Baseline(
            result=replace(usable.run, git=git),
            source=_format_source(artifact, run),
            age_days=max((moment - created_at.astimezone(UTC)).total_seconds() / 86_400, 0.0) if created_at else None,
            commits_behind=self._count_commits_behind(behind),
            base_sha=self._criteria.near_commit,
            commits_since=self._commits_since.get(run.head_sha, 0) if self._criteria.near_commit else None,
            history=usable.history,
            unscored_runs=tuple(self._unscored_runs),
            other_gate=self._find_other_gate(usable.run),
        )
        return FoundBaseline(baseline, run.id, run.head_sha, trail, usable.history_error, self._companion_digest)

    def _find_other_gate(self, run: RunResult) -> str | None:
        """Return the key of the gate that made a run if it is another gate, or None."""
        gate = run.producer.gate if run.producer else None
        return gate if gate and self._criteria.gates and gate not in self._criteria.gates else None

    def _find_base_commit(self) -> str | NoBaseline | None:
        """Find the commit for which to search the nearest baseline, or None if any commit will do."""
        base = self._criteria.base
        branch, head = base.forked_from or self._criteria.branch, base.fork_point_of
        if base.commit and base.merged_head:
            if not self._get_branch_commits(branch).has_pointed_at(base.commit):
                raise UnknownBaseError(base.commit, branch)
            between = compare_commits(self._client, base.commit, base.merged_head)
            if between is None or between.merge_base_commit.sha != base.commit:
                return base.commit
            # the head has that commit, and perhaps later ones of the branch
            head = base.merged_head
        elif base.commit or not (base.first_parent_of or base.fork_point_of):
            return base.commit
        if base.first_parent_of:
            if parents := find_parents(self._client, base.first_parent_of):
                return parents[0]
            return build_unknown_base(f"GitHub does not know {base.first_parent_of[:7]}, which this run evaluates")
        assert head is not None
        between, tip = compare_commits(self._client, branch, head), self._get_branch_commits(branch).tip
        if between is not None and tip is not None and between.base_commit.sha != tip:
            # the short name stands for something else, such as a tag, or the branch has gone on in between
            between = compare_commits(self._client, tip, head)
        if between is None:
            return build_unknown_base(f"GitHub knows no common commit of {branch} and this change")
        return between.merge_base_commit.sha

    def _is_later(self, run: WorkflowRun) -> bool:
        """Whether a run is of a commit that the base has not: what was done there is not in what is evaluated here."""
        near, sha = self._criteria.near_commit, run.head_sha
        if near is None or near == sha:
            return False
        if sha not in self._commits_since:
            between = compare_commits(self._client, sha, near)
            is_in = between is not None and between.merge_base_commit.sha == sha
            self._commits_since[sha] = between.ahead_by if between and is_in else None
        return self._commits_since[sha] is None

    def _start_distance(self, run: WorkflowRun) -> Future[CommitDistance | None]:
        """Ask how far the branch has gone on since, while the artifact is fetched."""

        def fetch_distance() -> CommitDistance | None:
            tip = self._find_tip()
            return compare_commits(self._client, run.head_sha, tip) if tip else None

        return start_in_background(fetch_distance, f"run {run.id} and its branch")

    def _count_commits_behind(self, distance: Future[CommitDistance | None]) -> int | None:
        """Count the commits that the branch has and the baseline has not; None if that is unknown."""
        try:
            between = distance.result()
        except GitHubError as error:  # only for show: the baseline itself is there
            self.notes.append(f"cannot check how far the baseline is behind: {error}")
            return None
        return between.ahead_by if between else None


def build_unknown_base(why: str) -> NoBaseline:
    """Build the reason for an unknown base commit: the baseline is unavailable, not absent."""
    hint = "update the change with its base branch, or name a run with `baseline`"
    reason = f"the commit to compare with is unknown: {why}; {hint}"
    return NoBaseline(ReasonCode.BASELINE_UNAVAILABLE, reason, unavailable=True, hint=hint)


def _is_in_history(artifact: Artifact, history: History) -> bool:
    run = artifact.workflow_run
    return run is not None and any(one.sha == run.head_sha for one in history.runs)


def _format_source(artifact: Artifact, run: WorkflowRun) -> str:
    return f"artifact {artifact.id} of run {run.id}"


def _read_history(archive: Path, shown_as: str, result: RunResult) -> tuple[History, str]:
    """Read the history with the baseline, as untrusted as the run; an unreadable one is empty, with a message."""
    data = find_entry_in_same_folder(archive, RUN_NAME, HISTORY_NAME, MAX_HISTORY_BYTES)
    try:
        return (EMPTY_HISTORY if data is None else trim_to_run(parse_history(data, shown_as), result)), ""
    except GateError as error:
        return EMPTY_HISTORY, error.message
