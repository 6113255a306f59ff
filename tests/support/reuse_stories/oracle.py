"""What may be reused, told from what each run really executed; and what a decision got wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from eval_gate.gate.reuse_decision import EarlierRun
from eval_gate.model.execution import Status
from eval_gate.model.result import RunResult, Shard, SuiteResult
from eval_gate.model.reuse import ReuseOff, ReuseSource, ReuseSummary, SuiteDecision
from eval_gate.struct import replace
from tests.support.reuse_stories.repository import describe_setup, measure
from tests.support.reuse_stories.runs import Request, Run, Truth

SETTLED = {Status.PASSED, Status.FAILED, Status.SKIPPED}
WEEK = timedelta(days=7)
Faults = dict[str, list[str]]
"""By kind: `wrong`, `missed`."""

FLAWS: dict[str, Callable[[RunResult], RunResult]] = {
    "incomplete": lambda run: replace(run, complete=False),
    "of some cases": lambda run: replace(run, partial=True),
    "a shard": lambda run: replace(run, shard=Shard(index=1, count=2)),
    "stopped": lambda run: replace(run, stop_reason="the budget was used up"),
    "of another tool": lambda run: replace(
        run, suites=tuple(replace(suite, format=run.target.provider) for suite in run.suites)
    ),
    "without a verdict": lambda run: replace(run, verdict=None),
    "without a state": lambda run: replace(run, evaluated_state=None),
}
"""What a run is of which nothing may be reused, although it passed."""


def without_score(run: RunResult) -> RunResult:
    """The same run, in which the first case of each suite ended without a score."""
    suites = [replace(one, cases=(replace(one.cases[0], status=Status.ERROR), *one.cases[1:])) for one in run.suites]
    return replace(run, suites=tuple(suites))


SPOILS = {**FLAWS, "without scores": without_score}


def build_truth(request: Request, suite: str) -> Truth:
    """What a suite is in a run."""
    setup = describe_setup(request.tree, request.machine)
    return Truth(measure(request.tree, request.machine, suite), setup, request.at)


def find_flaw(run: RunResult) -> str | None:
    """What the result itself says against it."""
    return next((name for name, make in FLAWS.items() if make(run) == run), None)


@dataclass(frozen=True)
class Claim:
    """The result of one suite in one source."""

    executed_by: str
    kind: ReuseSource
    objection: str | None
    """Why it must not be reused; None if it may be."""
    forged: bool = False


@dataclass(frozen=True)
class Oracle:
    """Knows what every run executed. `own` are the numbers of the pull request's own runs."""

    request: Request
    runs: Sequence[Run]
    own: set[int] = field(default_factory=set)
    off: ReuseOff | None = None
    _truths: dict[str, Truth] = field(default_factory=dict)

    def now(self, suite: str) -> Truth:
        """What a suite is in this run."""
        if suite not in self._truths:
            self._truths[suite] = build_truth(self.request, suite)
        return self._truths[suite]

    def check(self, sources: Sequence[EarlierRun], summary: ReuseSummary, *, probe: bool = False) -> Faults:
        """Hold a decision about these sources against the truth. A probe is about one source only."""
        faults: Faults = {"wrong": [], "missed": []}
        off = self.off or (None if probe else self.request.off)
        for suite in self.request.tree.suites:
            decision = next((one for one in summary.suites if one.suite == suite), SuiteDecision(suite=suite))
            claims = [claim for one in sources for claim in self.find_claims(one, suite)]
            if decision.reused is not None:
                wrong = self.find_wrong(decision, claims, off)
                faults["wrong"] += [f"{suite} was reused {wrong}"] if wrong else []
            elif off is None and any(one.objection is None and not one.forged for one in claims):
                faults["missed"].append(f"{suite} could have been reused: {summary.off or decision.reason}")
        extra = {one.suite for one in summary.suites} - set(self.request.tree.suites)
        faults["wrong"] += [f"decided about {one}" for one in sorted(extra)]
        return faults

    def find_wrong(self, decision: SuiteDecision, claims: Sequence[Claim], off: ReuseOff | None) -> str | None:
        reused = decision.reused
        assert reused is not None
        if off is not None:
            return f"although {off}"
        meant = [one for one in claims if (one.executed_by, one.kind) == (reused.run_id, reused.source)]
        if not meant:
            return f"from {reused.source}, which has no such result"
        return None if any(one.objection is None for one in meant) else meant[0].objection

    def find_claims(self, source: EarlierRun, suite: str) -> Iterator[Claim]:
        """The result of the suite in a source, if it has one."""
        run = next(one for one in self.runs if one.result.run_id == source.run.run_id)
        result = next((one for one in source.run.suites if one.eval_file == suite), None)
        if result is None:
            return
        executed_by = result.reused.run_id if result.reused else source.run.run_id
        first = next((one for one in self.runs if one.result.run_id == executed_by), None)
        truth = first.truths.get(suite) if first else None
        reasons = (
            find_flaw(source.run),
            self.object_to_run(run, source.source),
            self.object_to_truth(suite, truth),
            self.object_to_cases(result, source.source),
        )
        forged = truth is not None and truth.forged
        yield Claim(executed_by, source.source, next(filter(None, reasons), None), forged)

    def object_to_run(self, run: Run, kind: ReuseSource) -> str | None:
        own = kind is ReuseSource.OWN_RUN
        if own and run.number not in self.own:
            return "from a run that is no own run of the pull request"
        lingers = own and run.flaw == "forged" and self.request.tree.forges
        return f"from a run that is {run.flaw}" if run.flaw and not lingers else None

    def object_to_truth(self, suite: str, truth: Truth | None) -> str | None:
        now = self.now(suite)
        if truth is None:
            return "and nobody had executed it"
        if truth.forged:
            return None if self.request.tree.forges else "and was forged"
        if differing := self.list_parts(truth):
            return f"and had another setup: {', '.join(differing)}"
        if now.measured is None or now.measured != truth.measured:
            return "and had other files"
        too_old = self.request.is_run_of_branch and self.request.at - truth.at > WEEK
        return "and is older than a week" if too_old else None

    def object_to_cases(self, suite: SuiteResult, kind: ReuseSource) -> str | None:
        if any(case.status not in SETTLED for case in suite.cases):
            return "without a score"
        own = kind is ReuseSource.OWN_RUN
        if own and suite.reused is not None and suite.reused.source is ReuseSource.BASELINE:
            return "from an own run that had reused it from the baseline"
        executions = [one.status for case in suite.cases for one in case.list_executions()]
        if own and any(one not in {Status.PASSED, Status.SKIPPED} for one in executions):
            return "although an execution had failed"
        return None

    def list_parts(self, truth: Truth) -> list[str]:
        now = self.now(next(iter(self.request.tree.suites))).setup
        return [part for part, value in now.items() if truth.setup[part] != value]
