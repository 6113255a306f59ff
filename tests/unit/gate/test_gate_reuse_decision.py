"""Which suites are reused, and the reason of every suite that is not."""

from datetime import UTC, datetime

import pytest

from eval_gate.gate.reuse_decision import EarlierRun, collect_reused, decide_reuse
from eval_gate.model.comparison import Outcome, Verdict
from eval_gate.model.result import WAITS_FOR_GATE, Shard, SuiteResult
from eval_gate.model.reuse import (
    EvaluatedState,
    MeasuredSuite,
    ReusedResult,
    ReuseOff,
    ReuseSource,
    ReuseSummary,
    RunReason,
    StatePart,
)
from eval_gate.struct import replace
from tests.support.results import make_result, make_run, make_suite_result

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
PARTS = {part: f"digest of {part}" for part in StatePart}
SUITE, OTHER = "evals/support.yaml", "evals/billing.yaml"
PASSED, FAILED = (Verdict(exit_code=code, outcome=one) for code, one in ((0, Outcome.PASSED), (1, Outcome.FAILED)))
BASELINE, OWN_RUN = ReuseSource


def make_state(*suites: MeasuredSuite, parts: dict[StatePart, str] = PARTS) -> EvaluatedState:
    """A state in which both suites measure files, unless suites are given."""
    return EvaluatedState(parts=parts, suites=suites or (measure(SUITE), measure(OTHER)))


def measure(suite: str, digest: str | None = "same", **fields) -> MeasuredSuite:
    """A suite that measures something."""
    return MeasuredSuite(suite=suite, digest=digest, **({"patterns": ("agents/**",), "files": 1} | fields))


def make_earlier(*suites: SuiteResult, source: ReuseSource = BASELINE, **fields) -> EarlierRun:
    """A run of the same state that passed; its suites pass, unless suites are given."""
    suites = suites or tuple(make_suite_result({"a": "passed"}, eval_file=file) for file in (SUITE, OTHER))
    made = make_run(*suites, **({"evaluated_state": make_state(), "verdict": PASSED, "run_id": source.value} | fields))
    return EarlierRun(made, source)


def decide(
    *sources: EarlierRun, state: EvaluatedState | None = None, off: ReuseOff | None = None, branch: bool = False
) -> ReuseSummary:
    """Decide about these sources as of `NOW`."""
    return decide_reuse(state or make_state(), sources, off=off, is_run_of_branch=branch, decided_at=NOW)


def get_reason(*sources: EarlierRun, **settings) -> RunReason | None:
    """The reason of the first suite; None if it is reused."""
    decision = decide(*sources, **settings).suites[0]
    assert (decision.reused is None) == (decision.reason is not None)
    return decision.reason


def alter(field: str, value: object, source: ReuseSource = BASELINE) -> EarlierRun:
    """The earlier run with another value in one field."""
    return make_earlier(source=source, **{field: value})


def with_case(status: str = "passed", **fields) -> EarlierRun:
    """The earlier run, which says that it is complete, with one case that ended so."""
    cases = [make_result("a"), make_result("b", status, **fields)]
    return make_earlier(make_suite_result(cases, eval_file=SUITE), complete=True)


def make_reused(first: ReuseSource, executed: str = "2026-11-22T10:00:00Z", **fields) -> EarlierRun:
    """An earlier run whose suite is itself reused."""
    origin = ReusedResult(source=first, run_id="first", timestamp=executed, sha="aaaaaaa")
    return make_earlier(make_suite_result({"a": "passed"}, eval_file=SUITE, reused=origin), **fields)


@pytest.mark.parametrize("off", ReuseOff)
def test_reuse_decision__off__names_only_the_cause(off):
    assert decide(make_earlier(), off=off) == ReuseSummary(off=off)


def test_reuse_decision__no_earlier_run__is_off():
    assert decide().off is ReuseOff.NO_BASELINE


@pytest.mark.parametrize("source", ReuseSource)
def test_reuse_decision__same_state__reuses_every_suite_with_its_origin(source):
    earlier = make_earlier(source=source)

    summary = decide(earlier)

    origin = ReusedResult(source=source, run_id=source.value, timestamp="2026-11-21T10:00:00Z", sha="9e8d7c6b5a4f")
    assert [one.reused for one in summary.reused_suites] == [origin, origin]
    assert summary.saved_executions == 2
    assert collect_reused(summary, [earlier]) == {
        suite.eval_file: replace(suite, reused=origin) for suite in earlier.run.suites
    }


NOT_WHOLE = {
    "another tool": make_earlier(make_suite_result({"a": "passed"}, eval_file=SUITE, format="http")),
    "gate failed": alter("verdict", FAILED),
    "inconclusive": alter("verdict", Verdict(exit_code=4, outcome=Outcome.INCONCLUSIVE)),
    "no verdict": alter("verdict", None),
    "incomplete": alter("complete", False),
    "selected cases": alter("partial", True),
    "shard": alter("shard", Shard(index=1, count=2)),
    "interrupted": alter("stop_reason", "interrupted (SIGINT)"),
}
CHANGED = {
    "files": (measure(SUITE, "other"), RunReason.FILES_CHANGED),
    "patterns": (measure(SUITE, patterns=("agents/*",)), RunReason.FILES_CHANGED),
    "no measures": (MeasuredSuite(suite=SUITE), RunReason.NO_MEASURES),
    "unreadable": (measure(SUITE, None, problem="`x` matches no file"), RunReason.UNREADABLE),
    "new suite": (measure("evals/new.yaml"), RunReason.NO_EARLIER_RESULT),
}


@pytest.mark.parametrize("source", ReuseSource)
@pytest.mark.parametrize("earlier", NOT_WHOLE.values(), ids=NOT_WHOLE)
def test_reuse_decision__earlier_run_did_not_pass_as_a_whole__runs(earlier, source):
    assert get_reason(replace(earlier, source=source)) is RunReason.NOT_PASSED


@pytest.mark.parametrize("source", ReuseSource)
@pytest.mark.parametrize(("suite", "reason"), CHANGED.values(), ids=CHANGED)
def test_reuse_decision__suite_is_not_the_same__runs_alone(suite, reason, source):
    summary = decide(make_earlier(source=source), state=make_state(suite, measure(OTHER)))

    assert [one.reason for one in summary.suites] == [reason, None]


def test_reuse_decision__earlier_result_is_of_no_sure_files__runs_without_naming_a_change():
    state = make_state(measure(SUITE, None, problem="`x` was changed during the run"), measure(OTHER))
    assert get_reason(make_earlier(evaluated_state=state)) is RunReason.NO_EARLIER_RESULT


@pytest.mark.parametrize("part", StatePart)
def test_reuse_decision__setup_changed__runs_everything_and_names_the_part(part):
    missing = {one: digest for one, digest in PARTS.items() if one is not part}
    for parts in (PARTS | {part: "other"}, missing):
        for state, stored in ((make_state(parts=parts), make_state()), (make_state(), make_state(parts=parts))):
            summary = decide(alter("evaluated_state", stored), state=state)
            assert [(one.reason, one.parts) for one in summary.suites] == [(RunReason.SETUP_CHANGED, (part,))] * 2


def test_reuse_decision__part_unknown_in_both__is_no_equality():
    state = make_state(parts={part: "x" for part in StatePart if part is not StatePart.EVALS})

    assert decide(alter("evaluated_state", state), state=state).suites[0].parts == (StatePart.EVALS,)
    nothing = make_state(parts={})
    assert decide(alter("evaluated_state", nothing), state=nothing).suites[0].parts == tuple(StatePart)


UNKNOWN = RunReason.NO_EARLIER_RESULT, RunReason.NO_EARLIER_RESULT
TIMES = ["2026-11-28T12:11:00Z", "2030-01-01T00:00:00Z", "", "yesterday"]
RESULTS = {
    "no state": (alter("evaluated_state", None), *UNKNOWN),
    "no result": (make_earlier(make_suite_result({"a": "passed"}, eval_file=OTHER)), *UNKNOWN),
    "no case": (make_earlier(make_suite_result({}, eval_file=SUITE)), RunReason.NOT_SCORED, RunReason.NOT_SCORED),
    "not run": (with_case("not_run"), RunReason.NOT_SCORED, RunReason.NOT_SCORED),
    "from a baseline": (make_reused(BASELINE), None, RunReason.NO_EARLIER_RESULT),
    **{f"executed at {time}": (alter("timestamp", time), *UNKNOWN) for time in TIMES},
    **{f"first executed at {time}": (make_reused(OWN_RUN, time), *UNKNOWN) for time in TIMES},
    "passed": (with_case(), None, None),
    "skipped": (with_case("skipped", error="no seed"), None, None),
    "failed": (with_case("failed"), None, RunReason.NOT_PASSED),
    "agent error": (with_case("error"), RunReason.NOT_SCORED, RunReason.NOT_SCORED),
    "passed in a re-run": (with_case(trials="FPP", reruns=2), None, RunReason.NOT_PASSED),
    "error, then passed": (with_case(trials="EP", reruns=1), None, RunReason.NOT_PASSED),
    "waits for the gate": (with_case("skipped", error=WAITS_FOR_GATE), RunReason.NOT_SCORED, RunReason.NOT_SCORED),
}


@pytest.mark.parametrize(("earlier", "of_baseline", "of_own_run"), RESULTS.values(), ids=RESULTS)
def test_reuse_decision__result_of_the_suite__needs_a_score_and_an_own_run_only_passes(
    earlier, of_baseline, of_own_run
):
    assert get_reason(earlier) is of_baseline
    assert get_reason(replace(earlier, source=OWN_RUN)) is of_own_run


def test_reuse_decision__both_fit__takes_the_baseline_and_fills_the_rest_from_own_runs():
    baseline = alter("evaluated_state", make_state(measure(SUITE), measure(OTHER, "other")))
    newer, older = (make_earlier(source=OWN_RUN, run_id=name) for name in ("newer", "older"))
    sources = (baseline, newer, older)

    summary = decide(*sources)

    assert [(one.reused.source, one.reused.run_id) for one in summary.reused_suites] == [
        (BASELINE, "baseline"),
        (OWN_RUN, "newer"),
    ]
    assert [one.reused.run_id for one in collect_reused(summary, sources).values()] == ["baseline", "newer"]


def test_reuse_decision__no_source_fits__gives_the_reason_of_the_baseline():
    own = alter("evaluated_state", None, OWN_RUN)
    assert get_reason(alter("verdict", FAILED), own) is RunReason.NOT_PASSED
    assert get_reason(own) is RunReason.NO_EARLIER_RESULT


def test_reuse_decision__reused_from_a_run_that_reused__keeps_the_first_origin():
    for first, source in ((BASELINE, BASELINE), (OWN_RUN, OWN_RUN), (OWN_RUN, BASELINE)):
        earlier = make_reused(first, source=source)
        summary = decide(earlier, state=make_state(measure(SUITE)))
        (decision,) = summary.reused_suites
        assert decision.reused == ReusedResult(
            source=source, run_id="first", timestamp="2026-11-22T10:00:00Z", sha="aaaaaaa"
        )
        assert collect_reused(summary, [earlier])[SUITE].reused == decision.reused


def test_reuse_decision__clocks_differ_by_minutes__reuses():
    assert get_reason(alter("timestamp", "2026-11-28T12:09:00Z"), branch=True) is None


def test_reuse_decision__executed_more_than_a_week_ago__rechecks_on_the_branch_only():
    week, longer = alter("timestamp", "2026-11-21T12:00:00"), alter("timestamp", "2026-11-21T11:59:59+00:00")
    chained = make_reused(BASELINE, "2026-11-21T11:00:00Z", timestamp="2026-11-28T11:00:00Z")

    assert get_reason(week, branch=True) is None
    for earlier in (longer, chained):
        assert get_reason(earlier) is None
        summary = decide(earlier, branch=True)
        assert summary.suites[0].reason is RunReason.RECHECK
        assert summary.suites[0].last_executed == decide(earlier).suites[0].reused
        assert summary.saved_executions == 0
        assert summary.suites[0] in summary.rechecked_suites


def test_reuse_decision__saved__counts_executions_and_known_costs_of_reused_suites():
    cases = [
        make_result("a", trials="PFP", reruns=2, cost_usd=0.25, preparatory_executions=3),
        make_result("b", judge_cost_usd=0.5),
        make_result("c", "skipped", error="no seed"),
    ]
    other = make_suite_result([make_result("d", cost_usd=9.0)], eval_file=OTHER)
    earlier = make_earlier(make_suite_result(cases, eval_file=SUITE), other)

    summary = decide(earlier, state=make_state(measure(SUITE), measure(OTHER, "other")))

    assert (summary.saved_executions, summary.saved_usd) == (7, 0.75)
    assert decide(make_earlier()).saved_usd is None
