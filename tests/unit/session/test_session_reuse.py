"""Which runs a session reuses results of, and when it asks for none."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from eval_gate.config.selection import Selection
from eval_gate.config.settings import RecordingMode, RunConfig
from eval_gate.engine.preparation.run_context import RunContext
from eval_gate.engine.run import Run
from eval_gate.engine.run_plan import RunPlan
from eval_gate.gate.verdict_decision import GateInputs
from eval_gate.model.comparison import Outcome, ReasonCode, Verdict
from eval_gate.model.result import CaseFingerprints, RunResult, Shard
from eval_gate.model.reuse import EvaluatedState, MeasuredSuite, ReuseOff, ReuseSource, RunReason, StatePart
from eval_gate.results.baseline import Baseline, NoBaseline
from eval_gate.results.history import EMPTY_HISTORY
from eval_gate.session.reuse import allow_reuse, apply_reuse
from eval_gate.session.session import ReuseSources, Session
from eval_gate.struct import replace
from tests.support.cases import Watching, make_case, make_plan, make_suite

FILES = ("evals/a.yaml", "evals/b.yaml")
NO_BASELINE = NoBaseline(ReasonCode.NO_RUN_YET, "no run yet")


def make_state(*digests: str | None) -> EvaluatedState:
    """A state with these digests of the files of the suites."""
    suites = (
        MeasuredSuite(suite=name, patterns=("agents/**",), digest=digest)
        for name, digest in zip(FILES, digests, strict=True)
    )
    return EvaluatedState(parts=dict.fromkeys(StatePart, "same"), suites=tuple(suites))


def plan_two(*digests: str | None) -> RunPlan:
    """A plan of two suites in this state, by default the same each time."""
    suites = [make_suite(make_case("one"), make_case("two"), file=name) for name in FILES]
    prints = {case.key: CaseFingerprints(prompt=case.id) for suite in suites for case in suite.cases}
    return make_plan(*suites, evaluated_state=make_state(*digests or ("d", "d")), setup_fingerprints=prints)


@pytest.fixture(scope="module")
def earlier(tmp_path_factory) -> RunResult:
    """A run of the same plan that passed."""
    run = asyncio.run(Run(plan_two(), tmp_path_factory.mktemp("runs"), Watching()).execute())
    executed_at = datetime.now(UTC).isoformat()
    return replace(run, run_id="earlier", timestamp=executed_at, verdict=Verdict(exit_code=0, outcome=Outcome.PASSED))


class OwnRuns:
    """Earlier runs of the pull request, and how often they were loaded."""

    def __init__(self, *runs: RunResult) -> None:
        self._runs = runs
        self.states: list[EvaluatedState] = []

    def __call__(self, state: EvaluatedState) -> tuple[RunResult, ...]:
        self.states.append(state)
        return self._runs


def open_with(baseline: Baseline | RunResult | NoBaseline, **fields) -> Session:
    """A session that may reuse results."""
    baseline = Baseline(baseline, "latest") if isinstance(baseline, RunResult) else baseline
    context = fields.pop("context", RunContext(Path(), {}))
    config = fields.pop("config", RunConfig())
    values = {"selection": Selection(), "reuse": ReuseSources()} | fields
    return Session(config=config, context=context, gate_inputs=GateInputs(baseline, config.policy), **values)


def apply(session: Session, plan: RunPlan | None = None) -> RunPlan:
    return asyncio.run(apply_reuse(session, plan or plan_two()))


def get_reasons(plan: RunPlan) -> list[RunReason | None]:
    return [one.reason for one in plan.reuse.suites]


def test_apply_reuse__session_without_sources_or_plan_without_state__changes_nothing(earlier):
    plan = plan_two()
    assert apply(open_with(earlier, reuse=None), plan) is plan
    plan = replace(plan, evaluated_state=None)
    assert apply(open_with(earlier), plan) is plan


def test_allow_reuse__setting_is_off__session_never_reuses(earlier):
    assert allow_reuse(open_with(earlier, reuse=None)).reuse is None
    assert allow_reuse(open_with(earlier, reuse=None, config=RunConfig(reuse=True))).reuse == ReuseSources()


def test_apply_reuse__same_state__the_plan_executes_nothing(earlier):
    plan = apply(open_with(earlier))

    assert (plan.suites, list(plan.reused)) == ((), list(FILES))
    assert [one.reused.run_id for one in plan.reuse.reused_suites] == ["earlier", "earlier"]
    assert plan.reuse.saved_executions == 4


OFF = {
    ReuseOff.SELECTED_CASES: {"selection": Selection(shard=Shard(index=1, count=2))},
    ReuseOff.RESUMED: {"context": RunContext(Path(), {}, resume="earlier")},
    ReuseOff.RECORDING: {"config": RunConfig(recording=RecordingMode.AUTO)},
    ReuseOff.WARM_UP: {"config": RunConfig(warm_up=3), "is_run_of_branch": True},
}


@pytest.mark.parametrize("off", ReuseOff)
def test_apply_reuse__off__executes_everything_and_says_why(off, earlier):
    own_runs = OwnRuns(earlier)
    fields = OFF.get(off, {"reuse": ReuseSources(off, own_runs)})
    baseline = Baseline(earlier, "latest", history=EMPTY_HISTORY.with_run(earlier))

    plan = apply(open_with(baseline, **fields))

    assert (plan.reuse.off, plan.reuse.suites, dict(plan.reused)) == (off, (), {})
    assert len(plan.suites) == 2
    assert own_runs.states == []


@pytest.mark.parametrize("fields", [{"is_run_of_branch": False}, {"config": RunConfig(warm_up=1)}])
def test_apply_reuse__no_warm_up_round_would_follow__reuses(fields, earlier):
    baseline = Baseline(earlier, "latest", history=EMPTY_HISTORY.with_run(earlier))

    plan = apply(open_with(baseline, **({"config": RunConfig(warm_up=3), "is_run_of_branch": True} | fields)))

    assert len(plan.reused) == 2


def test_apply_reuse__executed_eight_days_ago__runs_of_the_branch_execute_it(earlier):
    old = replace(earlier, timestamp=(datetime.now(UTC) - timedelta(days=8)).isoformat())

    assert get_reasons(apply(open_with(old, is_run_of_branch=True))) == [RunReason.RECHECK] * 2
    assert get_reasons(apply(open_with(old))) == [None, None]


def test_apply_reuse__no_baseline_of_this_gate__is_off_unless_an_own_run_fits(earlier):
    own_runs = OwnRuns(earlier)

    for baseline in (NO_BASELINE, Baseline(earlier, "latest", other_gate="other")):
        assert apply(open_with(baseline)).reuse.off is ReuseOff.NO_BASELINE
    plan = apply(open_with(NO_BASELINE, reuse=ReuseSources(load_own_runs=own_runs)))

    assert [one.reused.source for one in plan.reuse.reused_suites] == [ReuseSource.OWN_RUN] * 2
    assert own_runs.states == [plan.evaluated_state]


def test_apply_reuse__baseline_covers_every_measured_suite__loads_no_own_run(earlier):
    own_runs = OwnRuns(earlier)

    plan = apply(open_with(earlier, reuse=ReuseSources(load_own_runs=own_runs)), plan_two("d", None))

    assert (own_runs.states, get_reasons(plan)) == ([], [None, RunReason.UNREADABLE])


def test_apply_reuse__own_run_has_the_rest__fills_it(earlier):
    own_run = replace(earlier, run_id="own", evaluated_state=make_state("d", "new"))

    plan = apply(open_with(earlier, reuse=ReuseSources(load_own_runs=OwnRuns(own_run))), plan_two("d", "new"))

    assert [(name, suite.reused.run_id) for name, suite in plan.reused.items()] == [
        (FILES[0], "earlier"),
        (FILES[1], "own"),
    ]


class Pending:
    """A baseline that is on its way."""

    def __init__(self, inputs: GateInputs | None) -> None:
        self._inputs = inputs
        self.was_waited_for = self.was_stopped = False

    def wait_for_inputs(self) -> GateInputs:
        self.was_waited_for = True
        assert self._inputs is not None, "nobody waits for a baseline that decides nothing"
        return self._inputs

    def stop_waiting(self) -> None:
        self.was_stopped = True


def test_apply_reuse__baseline_is_on_its_way__waits_for_it(earlier):
    pending = Pending(GateInputs(Baseline(earlier, "latest"), RunConfig().policy))

    plan = apply(open_with(NO_BASELINE, pending_gate_inputs=pending))

    assert (pending.was_waited_for, len(plan.reused)) == (True, 2)


@pytest.mark.parametrize(
    ("digests", "reuse"), [((None, None), ReuseSources()), (("d", "d"), ReuseSources(ReuseOff.OTHER_EVENT))]
)
def test_apply_reuse__nothing_can_be_reused__waits_for_no_baseline(digests, reuse):
    pending = Pending(None)

    plan = apply(open_with(NO_BASELINE, pending_gate_inputs=pending, reuse=reuse), plan_two(*digests))

    assert (plan.reused, pending.was_waited_for) == ({}, False)
    assert plan.reuse.off is reuse.off


@pytest.mark.parametrize("waits_for", ["baseline", "own runs"])
def test_apply_reuse__cancelled_while_it_waits__gives_the_wait_up(waits_for, earlier):
    stopped = threading.Event()
    inputs = GateInputs(NO_BASELINE, RunConfig().policy)

    class Slow(Pending):
        def wait_for_inputs(self) -> GateInputs:
            if waits_for == "baseline":
                stopped.wait(60)
            return inputs

        def stop_waiting(self) -> None:
            stopped.set()

    def load(_state: EvaluatedState) -> tuple[RunResult, ...]:
        stopped.wait(60)
        return ()

    session = open_with(NO_BASELINE, pending_gate_inputs=Slow(inputs), reuse=ReuseSources(load_own_runs=load))

    async def cancel() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(apply_reuse(session, plan_two()), 0.05)

    asyncio.run(cancel())
    assert stopped.is_set()
