"""The baseline of a run, or the reason why there is none."""

from __future__ import annotations

from pathlib import Path

from eval_gate.errors import GateError
from eval_gate.model.comparison import ReasonCode, UnscoredRun
from eval_gate.model.result import RunResult
from eval_gate.model.run_totals import count_scored_cases
from eval_gate.results.history import EMPTY_HISTORY, History
from eval_gate.struct import FrozenStruct


class Baseline(FrozenStruct):
    """A baseline run. `source` is the reference given by the user; ages are None where unknown."""

    result: RunResult
    source: str
    age_days: float | None = None
    commits_behind: int | None = None
    base_sha: str | None = None
    """Commit that the change is compared with, if known: the baseline is of this commit or an earlier one."""
    commits_since: int | None = None
    """Commits between the baseline and the base."""
    history: History = EMPTY_HISTORY
    """History of the branch up to the baseline; later runs do not count."""
    unscored_runs: tuple[UnscoredRun, ...] = ()
    """Closer runs that could not be the baseline because too few cases have a score, closest first."""

    notes: tuple[str, ...] = ()
    """How the baseline was found, in sentences."""
    other_gate: str | None = None
    """Key of another gate that claims to have made it; None for this gate, or if unknown."""
    exact_reference: str | None = None
    """Reference to exactly this run, if `source` may later mean another one: `latest`, or a folder of runs."""

    folder: Path | None = None
    """The run's own folder; None if it has none on this machine."""

    @property
    def own_history(self) -> History:
        """History that ends with this run."""
        return self.history.trim_to(self.result)


class UnlinkedResult(FrozenStruct):
    """Stored result that may be of the cases here, and that one name in the setup keeps from being the baseline."""

    result: RunResult
    subject: str
    """What has another name, such as `gate`."""
    name: str
    """Name under which the result is stored."""
    current: str
    """Name in this run."""
    hint: str
    """What brings the baseline back, as half a sentence."""


class NoBaseline(FrozenStruct):
    """No baseline: an expected condition with a stable code and a sentence."""

    code: ReasonCode
    reason: str
    unavailable: bool = False
    """A baseline may exist, but could not be fetched. A gate that requires one must not pass in this case."""
    expired: bool = False
    """A baseline existed but has expired."""
    heading: str = ""
    """Heading to show instead of the usual one."""
    refreshable: bool = False
    """A run of the branch makes one."""
    hint: str | None = None
    """What to do, as half a sentence."""
    unlinked: tuple[UnlinkedResult, ...] = ()
    """Results that could be the baseline under another name, nearest first."""

    @property
    def is_requested(self) -> bool:
        """Whether a baseline was requested."""
        return self.code is not ReasonCode.BASELINE_NOT_REQUESTED


NOT_REQUESTED = NoBaseline(ReasonCode.BASELINE_NOT_REQUESTED, "no baseline was given")


def describe_branch_rerun(branch: str) -> str:
    """Describe the remedy for a lost result of a branch, as half a sentence."""
    return f"run the workflow on {branch} again"


def refuse_own_baseline(baseline: Baseline | NoBaseline, run_id: str | None) -> None:
    """Raise GateError if the baseline is the run under evaluation, because no run regresses from itself."""
    if isinstance(baseline, Baseline) and baseline.result.run_id == run_id:
        raise GateError(
            "baseline-not-found",
            f"run {run_id} cannot be its own baseline",
            "name another run, a folder with other runs, or `latest`",
        )


def has_enough_scores(run: RunResult) -> bool:
    """Whether at least half of the cases of a run have a score, so that it can be the baseline.

    After an outage, a run has no scores: a gate that compares with it would find no regressions, and pass. Skipped
    cases do not count.
    """
    scored, cases = count_scored_cases(run)
    return scored * 2 >= cases


def build_unscored_run(run: RunResult) -> UnscoredRun:
    """Describe a run without enough scores by its id, its commit and its numbers of cases."""
    scored, cases = count_scored_cases(run)
    return UnscoredRun(run_id=run.run_id, sha=run.sha, scored=scored, cases=cases)
