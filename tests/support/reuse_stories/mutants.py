"""The decision with one of its clauses left out: the simulation has to find each of these.

A named mutant does not see what the clause is about, so it does not depend on how the decision is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from eval_gate.gate.reuse_decision import EarlierRun, decide_reuse
from eval_gate.model.comparison import Outcome, Verdict
from eval_gate.model.execution import Status
from eval_gate.model.result import RunResult, SuiteResult
from eval_gate.model.reuse import EvaluatedState, ReuseSource, ReuseSummary, StatePart
from eval_gate.struct import replace
from tests.support.reuse_stories.github import find_own
from tests.support.reuse_stories.repository import WORKFLOW
from tests.support.reuse_stories.rules import Rules
from tests.support.reuse_stories.runs import GATE, FoundRun, Pull, Request

Change = Callable[[EarlierRun, EvaluatedState], EarlierRun]
PASSED = Verdict(outcome=Outcome.PASSED, exit_code=0)


def blind(change: Change) -> Rules:
    """The decision, shown earlier runs that this changes: what it does not see it cannot mind."""

    def decide(state: EvaluatedState, sources: Sequence[EarlierRun], **given: object) -> ReuseSummary:
        return decide_reuse(state, [change(one, state) for one in sources], **given)

    return Rules(decide=decide)


def of_run(**fields: object) -> Rules:
    """Blind to a field of the earlier run."""
    return blind(lambda source, _: replace(source, run=replace(source.run, **fields)))


def of_cases(change: Callable[[SuiteResult], SuiteResult]) -> Rules:
    """Blind to something of the cases."""
    return blind(
        lambda source, _: replace(source, run=replace(source.run, suites=tuple(map(change, source.run.suites))))
    )


def of_state(change: Callable[[EvaluatedState, EvaluatedState], EvaluatedState]) -> Rules:
    """Blind to something of the state: `change` gets the earlier and the current one."""

    def blinded(source: EarlierRun, state: EvaluatedState) -> EarlierRun:
        earlier = source.run.evaluated_state
        seen = change(earlier, state) if earlier else None
        return replace(source, run=replace(source.run, evaluated_state=seen))

    return blind(blinded)


def of_part(part: StatePart) -> Rules:
    """Blind to one part of the setup."""
    return of_state(lambda earlier, state: replace(earlier, parts={**earlier.parts, part: state.parts[part]}))


def with_digests(earlier: EvaluatedState, state: EvaluatedState) -> EvaluatedState:
    """The earlier state, with the digests of now."""
    now = {one.suite: one.digest for one in state.suites}
    suites = [replace(one, digest=now.get(one.suite, one.digest)) for one in earlier.suites]
    return replace(earlier, suites=tuple(suites))


def without_off(state: EvaluatedState, sources: Sequence[EarlierRun], **given: object) -> ReuseSummary:
    return decide_reuse(state, sources, **(given | {"off": None}))


def without_recheck(state: EvaluatedState, sources: Sequence[EarlierRun], **given: object) -> ReuseSummary:
    return decide_reuse(state, sources, **(given | {"is_run_of_branch": False}))


def any_digest(state: EvaluatedState, sources: Sequence[EarlierRun], **given: object) -> ReuseSummary:
    """A suite whose files cannot be read is as it was."""
    earlier = {one.suite: one for source in sources for one in getattr(source.run.evaluated_state, "suites", ())}
    suites = tuple(earlier.get(one.suite, one) if one.digest is None else one for one in state.suites)
    return decide_reuse(replace(state, suites=suites), sources, **given)


def scored(suite: SuiteResult) -> SuiteResult:
    cases = [replace(one, status=Status.PASSED) if not one.status.is_scored else one for one in suite.cases]
    return replace(suite, cases=tuple(cases))


def always_passing(suite: SuiteResult) -> SuiteResult:
    return replace(suite, cases=tuple(replace(one, status=Status.PASSED, trials=()) for one in suite.cases))


def forget_origins(source: EarlierRun, state: EvaluatedState) -> EarlierRun:
    """A chain of reuses ends with the newest run."""
    del state
    suites = [replace(one, reused=None) for one in source.run.suites]
    return replace(source, run=replace(source.run, suites=tuple(suites)))


def own(keep: Callable[[FoundRun, Request], FoundRun]) -> Rules:
    """The rule of own runs, shown earlier runs that this changes."""

    def find(
        found: Sequence[FoundRun], request: Request, state: EvaluatedState, pulls: Sequence[Pull]
    ) -> list[RunResult]:
        return find_own([keep(one, request) for one in found], request, state, pulls)

    return Rules(find_own=find)


def seen_as(**fields: object) -> Rules:
    """The rule of own runs, blind to facts of the workflow run."""
    return own(lambda found, _: replace(found, run=replace(found.run, **fields)))


def of_this_gate(found: FoundRun, request: Request) -> FoundRun:
    del request
    result = found.run.result
    producer = replace(result.producer, gate=GATE) if result.producer else None
    return replace(found, run=replace(found.run, result=replace(result, producer=producer)))


def without_other_pulls(
    found: Sequence[FoundRun], request: Request, state: EvaluatedState, pulls: Sequence[Pull]
) -> list[RunResult]:
    """A branch has one pull request."""
    del pulls
    return find_own(found, request, state, [request.pull] if request.pull else [])


def without_force_pushes(
    found: Sequence[FoundRun], request: Request, state: EvaluatedState, pulls: Sequence[Pull]
) -> list[RunResult]:
    """Every earlier head is the parent of this one."""
    pull = replace(request.pull, moves=()) if request.pull else None
    parents = [replace(one, merge_base=one.run.sha, ahead_by=min(one.ahead_by, 1)) for one in found]
    return find_own(parents, replace(request, pull=pull), state, pulls)


MUTANTS: Mapping[str, Rules] = {
    "failed runs count": of_run(verdict=PASSED),
    "incomplete runs count": of_run(complete=True),
    "runs of some cases count": of_run(partial=False),
    "shards count": of_run(shard=None),
    "stopped runs count": of_run(stop_reason=None),
    "results of other tools count": of_cases(lambda suite: replace(suite, format="tool-forge")),
    "cases without a score count": of_cases(scored),
    "lucky passes of own runs count": blind(
        lambda source, state: (
            source
            if source.source is ReuseSource.BASELINE
            else replace(source, run=replace(source.run, suites=tuple(map(always_passing, source.run.suites))))
        )
    ),
    "the files do not count": of_state(with_digests),
    "unreadable files are as before": Rules(decide=any_digest),
    "a reuse is an execution": blind(forget_origins),
    "reuse is never off": Rules(decide=without_off),
    "nothing is checked again": Rules(decide=without_recheck),
    **{f"{part.value} does not count": of_part(part) for part in StatePart if part is not StatePart.MEASURES},
    "own runs of forks count": own(lambda found, request: replace(found, run=replace(found.run, pull=request.pull))),
    "own runs of second pull requests count": Rules(find_own=without_other_pulls),
    "own runs of other events count": seen_as(event="pull_request"),
    "own runs that failed count": seen_as(conclusion="success"),
    "own runs of other workflows count": seen_as(workflow=WORKFLOW),
    "own runs of other gates count": own(of_this_gate),
    "expired own runs count": seen_as(expired=False),
    "own runs count across any file": own(lambda found, _: replace(found, files=(("docs/a.md", None),))),
    "renames are not seen": own(lambda found, _: replace(found, files=tuple((name, None) for name, _ in found.files))),
    "a cut comparison is whole": own(lambda found, _: replace(found, files=found.files[:299])),
    "force pushes are not seen": Rules(find_own=without_force_pushes),
}
