"""The baseline of a run, or the reason why there is none."""

from __future__ import annotations

from pathlib import Path

from eval_gate.model.comparison import UnscoredRun
from eval_gate.model.result import RunResult
from eval_gate.model.run_totals import count_scored_cases
from eval_gate.results.history import EMPTY_HISTORY, History
from eval_gate.struct import FrozenStruct, replace


class Baseline(FrozenStruct):
    """A baseline run. `source` is the reference given by the user; ages are None where unknown."""

    result: RunResult
    source: str
    age_days: float | None = None
    commits_behind: int | None = None
    base_sha: str | None = None
    """The commit that the change is held against, where that is known: the baseline is of it, or of one before it."""
    commits_since: int | None = None
    """How many commits the base has that the baseline has not."""
    history: History = EMPTY_HISTORY
    """What is known of the branch up to this run; runs after it do not count."""
    unmeasured_runs: tuple[UnscoredRun, ...] = ()
    """Runs that would have been the baseline, had they been measured; the nearest first."""

    notes: tuple[str, ...] = ()
    """Sentences about how it was found."""
    other_gate: str | None = None
    """The key of another gate that made it, as it says; None where it is this gate's own, or does not say."""
    exact_reference: str | None = None
    """What leads to exactly this run, where `source` may lead to another one later: `latest`, a folder of runs."""

    folder: Path | None = None
    """The run's own folder; None where it has none here."""

    @property
    def own_history(self) -> History:
        """The ledger that ends with this run."""
        return self.history.trim_to(self.result)

    def with_result(self, run: RunResult) -> Baseline:
        """Return the baseline with its run result as the gate counts it."""
        return replace(self, result=run)


class NoBaseline(FrozenStruct):
    """No baseline: an expected condition with a stable code and a sentence."""

    code: str
    reason: str
    unavailable: bool = False
    """There may well be one, but it could not be had. A gate that needs it must not pass as if there were none."""
    expired: bool = False
    """There was one, and it was kept no longer."""
    heading: str = ""
    """What the heading says instead of what it usually does."""


NOT_REQUESTED = NoBaseline("baseline-not-requested", "no baseline was named")


def is_measured(run: RunResult) -> bool:
    """Whether a run says enough about the agent to be compared with: at least half of its cases were judged.

    An outage leaves runs in which every case broke; a gate that compared with one of them would find nothing to
    compare, and pass. Skipped cases are not cases here.
    """
    judged, cases = count_scored_cases(run)
    return judged * 2 >= cases


def build_unmeasured(run: RunResult) -> UnscoredRun:
    """Describe a run that was not measured by its id, its commit and its numbers of cases."""
    judged, cases = count_scored_cases(run)
    return UnscoredRun(run_id=run.run_id, sha=run.sha, scored=judged, cases=cases)
