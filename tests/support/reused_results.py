"""Judged runs that reused suites, or say why they did not: a suite is its file and what became of it."""

from __future__ import annotations

from collections.abc import Mapping

from eval_gate.model.policy import EvaluationSetup
from eval_gate.model.result import CaseFingerprints, CaseResult, GitFacts, RunResult, SuiteResult
from eval_gate.model.reuse import (
    EvaluatedState,
    MeasuredSuite,
    ReusedResult,
    ReuseOff,
    ReuseSource,
    ReuseSummary,
    RunReason,
    StatePart,
    SuiteDecision,
)
from eval_gate.model.run_totals import summarize_suites
from eval_gate.model.setup import SettingValue
from eval_gate.results.baseline import Baseline
from eval_gate.struct import replace
from tests.support.results import BASELINE_ID, make_baseline_run, make_result, make_run, make_suite_result
from tests.support.verdicts import judge_against

BASE = ReusedResult(
    source=ReuseSource.BASELINE, run_id=BASELINE_ID, timestamp="2026-11-19T10:00:00Z", sha="3f2c1ab00000"
)
OLDER = replace(BASE, run_id="older", timestamp="2026-11-12T09:00:00Z", sha="0aa11bb00000")
OWN = replace(BASE, source=ReuseSource.OWN_RUN, run_id="own", timestamp="2026-11-21T08:00:00Z", sha="77d3e4f00000")
BILLING, SEARCH, SUPPORT = (f"evals/{name}.yaml" for name in ("billing", "search", "support"))
Outcome = ReusedResult | SuiteDecision
"""What became of a suite: its origin, or why it ran."""


def make_decision(reason: RunReason, **fields) -> SuiteDecision:
    """Why a suite ran; `decide` fills in its name."""
    return SuiteDecision(suite="", reason=reason, **fields)


def make_suite(file: str, cases: Mapping[str, str] | list[CaseResult], **fields) -> SuiteResult:
    """A suite that is named after its file."""
    name = file.removeprefix("evals/").removesuffix(".yaml")
    return make_suite_result(cases, **({"eval_file": file, "tool_name": name, "tier": None} | fields))


def decide(run: RunResult, outcomes: Mapping[str, Outcome], **saved) -> RunResult:
    """The run whose suites ended so, with the sums of what it executed."""
    suites = tuple(
        replace(suite, reused=outcome) if isinstance(outcome := outcomes[suite.eval_file], ReusedResult) else suite
        for suite in run.suites
    )
    decisions = tuple(
        replace(outcome, suite=file)
        if isinstance(outcome, SuiteDecision)
        else SuiteDecision(suite=file, reused=outcome)
        for file, outcome in outcomes.items()
    )
    summary = summarize_suites(suites, run.summary.wall_ms)
    return replace(run, suites=suites, summary=summary, reuse=ReuseSummary(suites=decisions, **saved))


def judge_run(run: RunResult, then: RunResult) -> RunResult:
    """The run against its baseline."""
    return judge_against(run, Baseline(then, "main", age_days=2, commits_behind=4))


def _make_suites(*, fixed: bool = False, broken: bool = False) -> tuple[SuiteResult, ...]:
    support = {"refund": "passed" if fixed else "failed", "greeting": "passed"}
    return (
        make_suite(BILLING, {"invoice": "passed", "credit": "failed" if broken else "passed"}),
        make_suite(SEARCH, [make_result("find"), make_result("rank", trials="PPF", reruns=2)]),
        make_suite(SUPPORT, support),
    )


THEN = make_baseline_run(*_make_suites())
CHANGED = make_decision(RunReason.FILES_CHANGED)


def partly() -> RunResult:
    """Two of three suites reused, and a case of the third passes now."""
    run = decide(
        make_run(*_make_suites(fixed=True)),
        {BILLING: BASE, SEARCH: BASE, SUPPORT: CHANGED},
        saved_executions=5,
        saved_usd=1.42,
    )
    return judge_run(run, THEN)


def every() -> RunResult:
    """All suites reused, one from the pull request itself; a case that fails on main fails here."""
    outcomes = {BILLING: BASE, SEARCH: BASE, SUPPORT: replace(OWN, sha=BASE.sha)}
    return judge_run(decide(make_run(*_make_suites()), outcomes, saved_executions=7), THEN)


def off(reason: ReuseOff = ReuseOff.RERUN_ATTEMPT) -> RunResult:
    """Nothing could be reused."""
    return judge_run(replace(make_run(*_make_suites()), reuse=ReuseSummary(off=reason)), THEN)


def narrowed(before: str = "prompts/**, agents/**", here: str = "agents/**") -> RunResult:
    """The pull request measures less than the baseline."""
    suites = [
        replace(suite, cases=tuple(replace(case, fingerprints=CaseFingerprints()) for case in suite.cases))
        for suite in _make_suites()
    ]
    then, now = (EvaluationSetup(settings=(SettingValue(name="measures", value=one),)) for one in (before, here))
    outcomes = dict.fromkeys(
        (BILLING, SEARCH, SUPPORT), make_decision(RunReason.SETUP_CHANGED, parts=(StatePart.MEASURES,))
    )
    run = decide(make_run(*suites, setup=now), outcomes)
    return judge_run(run, make_baseline_run(*suites, setup=then))


def rechecked(*, broken: bool = True) -> RunResult:
    """A run of main that executed one suite only to see whether it still passes."""
    recheck = make_decision(RunReason.RECHECK, last_executed=OLDER)
    outcomes = {BILLING: recheck, SEARCH: BASE, SUPPORT: BASE}
    run = make_run(*_make_suites(broken=broken), git=GitFacts(sha="9e8d7c6b5a4f", ref="refs/heads/main"))
    return judge_run(decide(run, outcomes, saved_executions=5), THEN)


def many() -> RunResult:
    """Two hundred suites: from three commits, and executed for every reason."""
    files = [f"evals/{number:03}.yaml" for number in range(200)]
    last = {RunReason.RECHECK: {"last_executed": OLDER}, RunReason.SETUP_CHANGED: {"parts": tuple(StatePart)}}
    reasons = [make_decision(reason, **last.get(reason, {})) for reason in RunReason]
    outcomes = {
        file: (BASE, OLDER, OWN)[place % 3] if place % 4 else reasons[place // 4 % len(reasons)]
        for place, file in enumerate(files)
    }
    suites = [make_suite(file, {f"{file}-1": "passed"}) for file in files]
    measured = (MeasuredSuite(suite=files[4], problem="`agents/supprt/**` matches no file"),)
    run = replace(make_run(*suites), evaluated_state=EvaluatedState(parts={}, suites=measured))
    return judge_run(decide(run, outcomes, saved_executions=150, saved_usd=12.5), make_baseline_run(*suites))


HOSTILE = "</details>|`x`\n::error::no ##[warning] @team #12 ![i](http://x) <script>alert(1)</script> \x1b[31m\u202e"


def hostile() -> RunResult:
    """Names, commits, runs and problems that are attacks."""
    names = [f"evals/{number}{HOSTILE}.yaml" for number in range(3)]
    origin = replace(BASE, sha=HOSTILE, run_id=HOSTILE, timestamp=HOSTILE)
    unreadable = make_decision(RunReason.UNREADABLE, last_executed=origin)
    outcomes = {names[0]: origin, names[1]: replace(origin, sha=None), names[2]: unreadable}
    suites = [make_suite(name, {"a": "passed"}) for name in names]
    measured = (MeasuredSuite(suite=names[2], problem=f"`{HOSTILE}` matches no file"),)
    run = replace(make_run(*suites), evaluated_state=EvaluatedState(parts={}, suites=measured))
    return judge_run(decide(run, outcomes), make_baseline_run(*suites))


STATES = {state.__name__: state for state in (partly, every, off, narrowed, rechecked, many)}
