"""The whole verdict: plain rule, records and re-runs, waivers, must-pass, budgets, coverage."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date

import pytest

from eval_gate.config.policy import FailOn, Policy
from eval_gate.gate.reruns import NO_INTERVAL, RerunInterval, Reruns
from eval_gate.gate.verdict_decision import GateInputs, decide_verdict
from eval_gate.gate.waivers.waiver_file import KnownWaivers
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass, Outcome, ReasonCode
from eval_gate.model.evidence import GroundKind
from eval_gate.model.execution import ErrorKind, Status, Trial
from eval_gate.model.result import RerunStopReason, RunResult, Shard
from eval_gate.model.waiver import FileOrigin, Waiver, WaiverKind, WaiverState
from eval_gate.results.baseline import NOT_REQUESTED, Baseline, NoBaseline
from eval_gate.results.history import build_history
from eval_gate.struct import replace
from tests.support.graded import make_graded_baseline, make_graded_run
from tests.support.results import BASELINE_ID, FILE, make_result, make_run, make_suite_result
from tests.support.verdicts import STEADY, judge_against, make_judged, make_waiver, make_waivers

TODAY = date(2026, 11, 21)
REGRESSIONS = Policy(frozenset({FailOn.REGRESSIONS}))


def earlier(day: int = 0, **cases: str):
    """A run of so many days before the newest; a case is its status."""
    run = make_run(make_suite_result(cases or {"a": "passed", "b": "passed"}))
    stamp = f"2026-11-{20 - day:02}T10:00:00Z"
    return replace(run, run_id=f"{BASELINE_ID}-{day}", timestamp=stamp)


def main_branch(runs: int = 10, **cases: str) -> Baseline:
    """A branch whose runs all ended so."""
    history = tuple(earlier(day, **cases) for day in range(runs))
    return Baseline(history[0], "main", history=build_history(history))


def here(reruns: int = 6, **cases: str):
    """A run of now: `FFF` is a failed first execution with two re-runs."""
    made = []
    for name, trials in cases.items():
        failed = trials.count("F") * 2 >= len(trials)
        made.append(make_result(name, "failed" if failed else "passed", trials=trials, reruns=len(trials) - 1))
    return make_run(make_suite_result(made), reruns=reruns)


def changes(run) -> dict[str, CaseClass]:
    return {change.case_id: change.change for change in run.comparison.changes}


def whys(run) -> dict[str, GroundKind | None]:
    return {change.case_id: change.grounds and change.grounds.kind for change in run.comparison.changes}


def rules(run) -> dict[str, tuple[str, str, bool]]:
    return {rule.name: (rule.value, rule.limit, rule.ok) for rule in run.verdict.rules}


@pytest.mark.contract("verdict.plain")
def test_decide_verdict__no_confirmation__is_the_plain_rule_whatever_the_record() -> None:
    past = (earlier(), *(earlier(day, a="failed", b="passed") for day in range(1, 9)))
    flaky = Baseline(past[0], "main", history=build_history(past))
    judged = judge_against(here(reruns=0, a="F", b="P"), flaky, REGRESSIONS)
    assert changes(judged) == {"a": CaseClass.REGRESSION, "b": CaseClass.STILL_PASSING}
    assert judged.verdict.outcome is Outcome.FAILED
    assert judged.comparison.suite_finding is None


def test_decide_verdict__failed_every_time__is_a_regression_with_its_grounds() -> None:
    judged = judge_against(here(a="FFFF", b="P"), main_branch(), REGRESSIONS)
    change = judged.comparison.changes[0]
    assert (change.change, judged.verdict.exit_code) == (CaseClass.REGRESSION, 1)
    assert (change.grounds.current.failures, change.grounds.reruns) == (4, 3)
    assert (change.grounds.history.passes, change.case_history.counts.executions) == (10, 10)


def test_decide_verdict__recovered__is_not_sure_and_blocks_only_when_asked_to() -> None:
    run = here(a="FPPPPPP", b="P")
    judged = judge_against(run, main_branch(), REGRESSIONS)
    assert changes(judged)["a"] is CaseClass.INCONCLUSIVE
    assert judged.verdict.outcome is Outcome.PASSED
    strict = Policy(frozenset({FailOn.REGRESSIONS, FailOn.FLAKY}))
    assert judge_against(run, main_branch(), strict).verdict.outcome is Outcome.FAILED


def test_decide_verdict__reruns_that_are_missing__decide_nothing_and_pass_nothing() -> None:
    judged = judge_against(here(a="F", b="P"), main_branch(), REGRESSIONS)
    assert whys(judged)["a"] is GroundKind.MISSING_RERUNS
    assert (judged.verdict.outcome, judged.verdict.exit_code) == (Outcome.INCONCLUSIVE, 3)
    assert judged.verdict.reasons[0].code == "unconfirmed-regressions"


def test_decide_verdict__known_failure__stays_one_though_the_last_run_passed() -> None:
    history = (earlier(0), *(earlier(day, a="failed", b="passed") for day in range(1, 10)))
    judged = judge_against(
        here(a="F", b="P"), Baseline(history[0], "main", history=build_history(history)), REGRESSIONS
    )
    assert changes(judged)["a"] is CaseClass.STILL_FAILING
    assert judged.verdict.outcome is Outcome.PASSED


@pytest.mark.contract("verdict.suite")
def test_decide_verdict__many_small_drops__are_found_together() -> None:
    names = [f"c{number}" for number in range(40)]
    branch = main_branch(**dict.fromkeys(names, "passed"))
    run = here(**{name: "FPP" if number < 8 else "P" for number, name in enumerate(names)})
    judged = judge_against(run, branch, REGRESSIONS)
    assert judged.comparison.suite_finding.is_drop
    assert rules(judged)["Suite test"][2] is False
    assert "suite-drop" in [reason.code for reason in judged.verdict.reasons]
    assert set(whys(judged).values()) == {GroundKind.SUITE_DROP, None}


def ten_trials(run_id: str, failures: Callable[[int], int]) -> RunResult:
    """Sixty cases that are run ten times each, whatever comes of it, and fail so many of these."""
    cases = [make_result(f"c{at}", "passed", trials="F" * failures(at) + "P" * (10 - failures(at))) for at in range(60)]
    return replace(make_run(make_suite_result(cases), reruns=6), run_id=run_id)


@pytest.mark.contract("verdict.suite", "verdict.trials")
def test_decide_verdict__trials__a_drop_of_all_of_them_is_red_though_every_case_passes_most_of_its_own() -> None:
    before = ten_trials("before", lambda at: at % 2)
    branch = Baseline(before, "main", history=build_history([before]))
    judged = judge_against(ten_trials("here", lambda _: 1), branch, REGRESSIONS)
    found = judged.comparison.suite_finding
    assert (found.cases, found.executions, found.failures, found.expected) == (60, 600, 60, 45)
    assert [reason.code for reason in judged.verdict.reasons] == ["suite-drop"]
    assert "60 of 600 executions of 60 cases failed at first" in judged.verdict.reasons[0].message
    assert judged.verdict.outcome is Outcome.FAILED
    assert set(changes(judged).values()) == {CaseClass.FLAKY}
    assert whys(judged) == {f"c{at}": GroundKind.MIXED if at % 2 else GroundKind.SUITE_DROP for at in range(60)}
    same = judge_against(ten_trials("here", lambda at: (at + 1) % 2), branch, REGRESSIONS)
    assert (same.comparison.suite_finding.is_drop, same.verdict.outcome) == (False, Outcome.PASSED)


@pytest.mark.contract("verdict.suite", "verdict.trials")
def test_decide_verdict__trials__whoever_waives_all_cases_of_the_drop_waives_the_drop() -> None:
    before = ten_trials("before", lambda at: at % 2)
    branch, here = Baseline(before, "main", history=build_history([before])), ten_trials("here", lambda _: 1)
    known = [make_waiver(f"c{at}") for at in range(0, 60, 2)]
    some, every = make_waivers(*known[1:]), make_waivers(*known)
    assert judge_against(here, branch, REGRESSIONS, waivers=some).verdict.outcome is Outcome.FAILED
    assert judge_against(here, branch, REGRESSIONS, waivers=every).verdict.outcome is Outcome.PASSED


@pytest.mark.contract("verdict.must-pass")
@pytest.mark.parametrize(
    ("pattern", "trials", "ok"),
    [
        ("a", "FF", False),
        ("a*", "FF", False),
        ("tag:safety", "FF", False),
        ("tag:other", "FF", True),
        ("a", "FPP", True),
        ("b", "FF", True),
    ],
    ids=["id", "glob", "tag", "another tag", "recovered", "another case"],
)
def test_decide_verdict__must_pass__blocks_whatever_the_record_says(pattern, trials, ok) -> None:
    failing = main_branch(a="failed", b="passed")
    run = here(a=trials, b="P")
    suite = run.suites[0]
    tagged = tuple(replace(case, tags=("safety",)) if case.id == "a" else case for case in suite.cases)
    run = replace(run, suites=(replace(suite, cases=tagged),))
    judged = judge_against(run, failing, Policy(frozenset({FailOn.REGRESSIONS}), must_pass=(pattern,)))
    assert rules(judged)["Must pass"][2] is ok
    assert (judged.verdict.outcome is Outcome.PASSED) is ok


def test_decide_verdict__must_pass_without_baseline__needs_none() -> None:
    judged = judge_against(
        here(reruns=0, a="F", b="P"), NOT_REQUESTED, Policy(frozenset({FailOn.REGRESSIONS}), must_pass=("a",))
    )
    assert judged.verdict.outcome is Outcome.FAILED


def test_decide_verdict__allowed_regressions__are_as_many_as_said() -> None:
    run = here(reruns=0, a="F", b="F", c="P", d="P", e="P")
    branch = main_branch(a="passed", b="passed", c="passed", d="passed", e="passed")
    for allowed, outcome in ((1, Outcome.FAILED), (2, Outcome.PASSED)):
        policy = Policy(frozenset({FailOn.REGRESSIONS}), allowed_regressions=allowed)
        assert judge_against(run, branch, policy).verdict.outcome is outcome


def test_decide_verdict__coverage__is_of_all_cases() -> None:
    run = make_run(make_suite_result({"a": "passed", "b": "skipped", "c": "skipped"}))
    policy = Policy(min_coverage=0.5)
    judged = judge_against(run, NOT_REQUESTED, policy)
    assert rules(judged)["Coverage"] == ("33.3 %", "50.0 %", False)
    assert judged.verdict.outcome is Outcome.FAILED


def test_decide_verdict__latency_budget__looks_at_the_typical_case() -> None:
    names = [f"c{number}" for number in range(9)]
    branch = main_branch(**dict.fromkeys(names, "passed"))
    slow = make_run(make_suite_result([make_result(name, duration_ms=300.0) for name in names]))
    judged = judge_against(slow, branch, Policy(frozenset({FailOn.REGRESSIONS}), max_latency_increase=50))
    assert rules(judged)["Latency"] == ("+150 %", "+50 %", False)
    assert judged.verdict.outcome is Outcome.FAILED
    judged = judge_against(slow, branch, Policy(frozenset({FailOn.REGRESSIONS}), max_cost_increase=50))
    assert rules(judged)["Cost"] == ("unknown", "+50 %", True)


def accepted(case: str, kind: WaiverKind = WaiverKind.WAIVER, until: date = date(2026, 12, 1)) -> Waiver:
    return Waiver(kind=kind, case=case, reason="known", until=until, origin=FileOrigin(file="f.yaml", line=3))


@pytest.mark.contract("accepting.only-failures")
@pytest.mark.parametrize(
    ("waiver", "outcome", "state"),
    [
        (accepted("a"), Outcome.PASSED, WaiverState.IN_USE),
        (accepted("a", WaiverKind.QUARANTINE), Outcome.PASSED, WaiverState.IN_USE),
        (accepted("b"), Outcome.FAILED, WaiverState.UNNEEDED),
        (accepted("zzz"), Outcome.FAILED, WaiverState.UNMATCHED),
        (accepted("a", until=date(2026, 11, 20)), Outcome.FAILED, WaiverState.EXPIRED),
    ],
    ids=["accepted", "quarantined", "another case", "no case", "expired"],
)
def test_decide_verdict__waiver__lets_exactly_its_cases_fail(waiver, outcome, state) -> None:
    judged = judge_against(
        here(reruns=0, a="F", b="P"), main_branch(), Policy(), waivers=KnownWaivers(TODAY, (waiver,))
    )
    assert judged.verdict.outcome is outcome
    assert [entry.state for entry in judged.waivers.entries] == [state]


def test_decide_verdict__waiver_of_a_fork__is_proposed_and_does_not_count() -> None:
    waivers = KnownWaivers(TODAY, (accepted("a"),), trusted=False)
    judged = judge_against(here(reruns=0, a="F", b="P"), main_branch(), REGRESSIONS, waivers=waivers)
    assert judged.verdict.outcome is Outcome.FAILED
    assert judged.waivers.entries[0].state is WaiverState.PROPOSED


def test_decide_verdict__quarantine__is_on_neither_side_of_the_pass_rate() -> None:
    waivers = KnownWaivers(TODAY, (accepted("a", WaiverKind.QUARANTINE),))
    policy = Policy(frozenset({FailOn.REGRESSIONS}), min_pass_rate=1.0)
    judged = judge_against(here(reruns=0, a="F", b="P"), main_branch(), policy, waivers=waivers)
    assert rules(judged)["Pass rate"] == ("100.0 %", "100.0 %", True)


@pytest.mark.parametrize(("run", "times"), [({"a": "F"}, 1), ({"a": "P"}, 0)], ids=["failed", "green"])
def test_decide_verdict__comments__are_asked_for_once_and_only_where_something_failed(run, times) -> None:
    asked = []

    def more(waivers: KnownWaivers) -> KnownWaivers:
        asked.append(waivers)
        return KnownWaivers(TODAY, (accepted("a"),))

    judged = decide_verdict(
        here(reruns=0, **run, b="P"),
        GateInputs(main_branch(), REGRESSIONS, waivers=KnownWaivers(TODAY), waiver_lookup=more),
    )
    assert (len(asked), judged.verdict.outcome) == (times, Outcome.PASSED)


# which cases are run again


def reruns(branch: Baseline = NOT_REQUESTED, reruns: int = 6, **options) -> Reruns:
    interval = options.pop("interval", NO_INTERVAL)
    return Reruns(GateInputs(branch, REGRESSIONS, **options), reruns, interval=interval)


def tries(letters: str) -> list[Trial]:
    return [
        Trial(status={"P": Status.PASSED, "F": Status.FAILED, "E": Status.ERROR}[letter], score=0.0, duration_ms=1.0)
        for letter in letters
    ]


A, B = CaseKey(FILE, "a"), CaseKey(FILE, "b")


def test_reruns__green_run__has_none() -> None:
    assert not reruns(main_branch()).find_rerun_candidates(here(a="P", b="P"))


def test_reruns__failed_case__goes_on_until_the_evidence_decides() -> None:
    found = reruns(main_branch())
    assert list(found.find_rerun_candidates(here(a="F", b="P"))) == [A]
    failures = 0
    while found.should_rerun(A, tries("F" * failures)):
        failures += 1
    assert 1 <= failures <= 6
    assert not found.should_rerun(A, tries("PPPPP"))
    assert not found.should_rerun(A, tries("EEEEEE"))
    assert not found.should_rerun(B, ())
    assert [found.get_rerun_end(A, tries(text)) for text in ("F" * failures, "PPPPP", "EEEEEE", "E")] == [
        *(RerunStopReason.DECIDED, RerunStopReason.DECIDED, RerunStopReason.NO_RESULT, RerunStopReason.RUN_STOPPED)
    ]


@pytest.mark.parametrize("graded", [True, False])
def test_reruns__graded_executions__count_by_the_pass_score_as_the_verdict_does(graded) -> None:
    """A re-run at 0.85 passes a gate that asks for 0.8, though the record's own status is a failure."""
    failed = make_result("a", "failed", graded=graded, score=0.5, trials="F")
    run = make_run(make_suite_result([failed, make_result("b")]), reruns=6)
    found = Reruns(GateInputs(main_branch(), Policy(frozenset({FailOn.REGRESSIONS}), pass_score=0.8)), 6)
    assert list(found.find_rerun_candidates(run)) == [A]
    reruns = [Trial(status=Status.FAILED, score=0.85, duration_ms=1)] * 5
    failed = replace(
        failed,
        trials=(*failed.trials, *reruns),
        reruns=5,
        rerun_stop_reason=found.get_rerun_end(A, reruns),
    )
    run = make_run(make_suite_result([failed, make_result("b")]), reruns=6)
    judged = decide_verdict(run, GateInputs(main_branch(), Policy(frozenset({FailOn.REGRESSIONS}), pass_score=0.8)))
    assert changes(judged)["a"] is (CaseClass.INCONCLUSIVE if graded else CaseClass.REGRESSION)


def test_reruns__nobody_named_a_baseline__runs_what_fails_again() -> None:
    """Such a run is judged later, as by the action in a step of its own; then its re-runs are there."""
    found = reruns()
    assert list(found.find_rerun_candidates(here(a="F", b="P"))) == [A]
    assert found.should_rerun(A, tries("F"))
    assert not found.should_rerun(A, tries("FFF"))
    assert not reruns(NoBaseline(ReasonCode.NO_RUN_YET, "none")).find_rerun_candidates(here(a="F", b="P"))


def sharing(share: float, **cases: str) -> RunResult:
    """A run of a branch on which so much of a case's variance belongs to the run."""
    judged = decide_verdict(here(**cases), GateInputs(main_branch(), REGRESSIONS))
    assert judged.comparison is not None
    assert judged.comparison.evidence is not None
    evidence = replace(judged.comparison.evidence, run_share=share)
    return replace(judged, verdict=None, comparison=replace(judged.comparison, evidence=evidence))


@pytest.mark.parametrize(
    ("share", "interval", "expected"),
    [
        (0.0, RerunInterval(most_s=math.inf), 0),
        (0.01, RerunInterval(most_s=math.inf), 0),
        (0.1, RerunInterval(most_s=math.inf), 60),
        (0.9, RerunInterval(most_s=math.inf), 300),
        (0.9, RerunInterval(most_s=150), 25),
        (0.9, RerunInterval(30.0), 30),
        (0.0, RerunInterval(30.0), 30),
        (0.9, RerunInterval(0.0), 0),
        (0.9, RerunInterval(), 0),
    ],
)
def test_reruns__wait_between_executions__grows_with_the_share_unless_a_user_sets_it(share, interval, expected) -> None:
    found = reruns(main_branch(), interval=interval)
    assert A in found.find_rerun_candidates(sharing(share, a="F", b="P"))
    assert (found.rerun_wait, found.get_interval_s(A)) == (expected, expected)


def test_reruns__no_suspected_regression__waits_for_nothing() -> None:
    found = reruns(main_branch(), interval=RerunInterval(most_s=math.inf))
    found.find_rerun_candidates(sharing(0.9, a="P", b="P"))
    assert found.rerun_wait == 0


def test_reruns__new_case__waits_only_if_a_user_says_so() -> None:
    new = CaseKey(FILE, "n")
    for interval, expected in ((RerunInterval(most_s=math.inf), 0), (RerunInterval(30.0), 30)):
        found = reruns(main_branch(), interval=interval)
        assert new in found.find_rerun_candidates(sharing(0.9, a="F", b="P", n="P"))
        assert found.get_interval_s(new) == expected


@pytest.mark.parametrize(
    ("share", "wait", "said"),
    [
        (0.2, 120, "re-runs waited 120 s each, because executions of one run belong together on the default branch"),
        (0.0, 30, "re-runs waited 30 s each"),
        (0.2, 0, None),
    ],
    ids=["because of the share", "because a user says so", "not at all"],
)
def test_reruns__waited__the_report_says_how_long_and_why(share, wait, said) -> None:
    judged = decide_verdict(
        replace(sharing(share, a="F", b="P"), rerun_wait=wait), GateInputs(main_branch(), REGRESSIONS)
    )
    assert judged.comparison is not None
    notes = [note for note in judged.comparison.notes if "waited" in note]
    assert notes == ([said] if said else [])


def asked_again(found: Reruns, run) -> int:
    """How many re-runs the engine makes of a run in which everything that fails goes on to fail."""
    made = dict.fromkeys(found.find_rerun_candidates(run), 0)
    waiting = list(made)
    while waiting and (turn := found.select_next(waiting)):
        for key in turn:
            while found.should_rerun(key, tries("F" * made[key])):
                made[key] += 1
        waiting = [key for key in waiting if key not in turn]
    return sum(made.values())


def many() -> tuple[Baseline, RunResult]:
    names = [f"c{number}" for number in range(20)]
    return main_branch(**dict.fromkeys(names, "passed")), here(**dict.fromkeys(names, "F"))


def test_reruns__all_is_dead__stop_when_the_gate_is_red_for_certain() -> None:
    branch, run = many()
    assert asked_again(reruns(branch), run) == 12
    never = Reruns(GateInputs(branch, Policy(frozenset({FailOn.NEVER}))), 6)
    assert asked_again(never, run) >= 20
    assert asked_again(reruns(), run) >= 20, "which of them were passing before is not known yet"


def test_reruns__all_is_dead_and_accepted_in_a_comment__goes_on() -> None:
    """Whoever accepted what is confirmed first would else wait for the others at every push."""
    branch, run = many()
    waivers, said = KnownWaivers(TODAY), KnownWaivers(TODAY, tuple(accepted(f"c{number}") for number in range(20)))
    assert asked_again(reruns(branch, waivers=waivers, waiver_lookup=lambda _: said), run) >= 20


def test_reruns__shard_in_which_nothing_is_answered__spares_none() -> None:
    """The whole run may see an outage there."""
    branch, _ = many()
    crashed = [make_result(f"c{number}", "error", error_kind=ErrorKind.AGENT_ERROR) for number in range(20)]
    run = make_run(make_suite_result(crashed), reruns=6, shard=Shard(index=1, count=2), planned_cases=40)
    late = Trial(status=Status.ERROR, score=0, duration_ms=1, error_kind=ErrorKind.AGENT_ERROR, timed_out=True)
    found = reruns(branch)
    doubtful = list(found.find_rerun_candidates(run))
    asked = [found.should_rerun(key, [late] * number) for key in doubtful for number in (0, 12)]
    assert asked == [True, False] * 20
    assert len(doubtful) == 20


def test_reruns__quarantined_case__is_never_run_again() -> None:
    waivers = KnownWaivers(TODAY, (accepted("a", WaiverKind.QUARANTINE),))
    assert not reruns(main_branch(), waivers=waivers).find_rerun_candidates(here(a="F", b="P"))


def depending(run: RunResult) -> RunResult:
    """The same run of cases that work on files of those before them."""
    suite = run.suites[0]
    return replace(run, suites=(replace(suite, cases=tuple(replace(case, dependent=True) for case in suite.cases)),))


def test_reruns__case_that_needs_earlier_ones__is_run_again_like_any_other() -> None:
    assert [key.case_id for key in reruns(main_branch()).find_rerun_candidates(depending(here(a="F", b="P")))] == ["a"]


@pytest.mark.parametrize(("trials", "code"), [("FFFFFFF", 1), ("FPPPPPP", 0)])
def test_decide_verdict__case_that_needs_earlier_ones__goes_by_its_re_runs(trials, code) -> None:
    run = depending(here(b="P", a=trials))
    judged = judge_against(run, main_branch(), REGRESSIONS)
    assert judged.verdict.exit_code == code
    grounds = next(one.grounds for one in judged.comparison.changes if one.case_id == "a")
    assert (grounds.cases_before, grounds.reruns) == (1, len(trials) - 1)


def test_decide_verdict__many_cases_that_need_each_other_fail_once__is_no_drop_of_the_suite() -> None:
    names = [f"c{number}" for number in range(20)]
    branch = main_branch(**dict.fromkeys(names, "passed"))
    run = here(**dict.fromkeys(names, "FPPPPPP"))
    assert judge_against(run, branch, REGRESSIONS).verdict.exit_code == 1
    assert judge_against(depending(run), branch, REGRESSIONS).verdict.exit_code == 0


@pytest.mark.contract("verdict.monotone")
@pytest.mark.parametrize("trials", ["P", "FPP", "FPF", "FFF", "FFFFFFF"])
def test_decide_verdict__more_failures__never_make_it_milder(trials) -> None:
    severity = {Outcome.PASSED: 0, Outcome.INCONCLUSIVE: 1, Outcome.FAILED: 2}
    now = severity[judge_against(here(a=trials, b="P"), main_branch(), REGRESSIONS).verdict.outcome]
    worse = trials.replace("P", "F", 1)
    then = severity[
        judge_against(here(a=worse + "F" * (7 - len(worse)), b="P"), main_branch(), REGRESSIONS).verdict.outcome
    ]
    assert then >= now


def test_decide_verdict__stored_run_again__goes_by_what_was_known_when_it_was_made() -> None:
    branch = main_branch(10)
    first = judge_against(here(a="FFF"), branch, REGRESSIONS)
    forgotten = Baseline(branch.result, "main")  # the same run, and nothing of those before it
    again = judge_against(first, forgotten, REGRESSIONS)
    assert [change.case_history for change in again.comparison.changes] == [
        change.case_history for change in first.comparison.changes
    ]
    assert again.comparison.changes[0].case_history.counts.executions == 10
    assert again.comparison.evidence == first.comparison.evidence


def test_decide_verdict__stored_run_again__knows_cases_that_only_runs_before_the_baseline_had() -> None:
    runs = [earlier(0, a="passed"), *(earlier(day, a="passed", b="failed") for day in range(1, 6))]
    branch = Baseline(runs[0], "main", history=build_history(runs))
    first = judge_against(here(a="P", b="FFF"), branch, REGRESSIONS)
    again = judge_against(first, Baseline(branch.result, "main"), REGRESSIONS)
    assert changes(again) == changes(first)
    history = {change.case_id: change.case_history for change in again.comparison.changes}["b"]
    assert history is not None
    assert history.counts.failures == 5


def test_decide_verdict__stored_run_again__knows_how_scores_varied() -> None:
    runs = [make_graded_baseline({"a": score, "b": score}, run_id=f"r{at}") for at, score in enumerate((0.8, 0.9, 0.7))]
    branch = Baseline(runs[0], "main", history=build_history(runs))
    first = judge_against(make_graded_run({"a": 0.8, "b": 0.8}), branch, REGRESSIONS)
    again = judge_against(first, Baseline(branch.result, "main"), REGRESSIONS)
    histories = [change.score_history for change in again.comparison.changes]
    assert histories == [change.score_history for change in first.comparison.changes]
    assert [one.runs for one in histories if one is not None] == [3, 3]


@pytest.mark.parametrize(
    ("executions", "expected"),
    [({"a": "T", "b": "T"}, CaseClass.ERRORED), ({"a": "T", "b": "P"}, CaseClass.REGRESSION)],
    ids=["nobody-answered", "somebody-answered"],
)
def test_decide_verdict__case_that_timed_out__is_the_agent_s_only_where_the_agent_was_heard(
    executions, expected
) -> None:
    run = make_judged(executions, {"a": STEADY, "b": STEADY}, reruns=0)
    assert changes(run)["a"] is expected


@pytest.mark.parametrize(
    ("fields", "gone"),
    [({}, ["b"]), ({"partial": True}, []), ({"shard": Shard(index=1, count=2)}, [])],
    ids=["everything", "chosen cases", "a part"],
)
def test_decide_verdict__case_that_is_not_here__is_only_gone_where_everything_was_run(fields, gone) -> None:
    run = replace(here(a="P"), **fields)
    judged = judge_against(run, main_branch(), REGRESSIONS)
    assert [name for name, change in changes(judged).items() if change is CaseClass.REMOVED] == gone


@pytest.mark.parametrize(("cases", "share"), [({"a": "P"}, 1), ({"a": "P", "b": "P"}, 2)])
def test_decide_verdict__cases_of_the_run__share_the_false_alarm_rate(cases, share) -> None:
    assert judge_against(here(**cases), main_branch(), REGRESSIONS).comparison.evidence.cases == share


def test_decide_verdict__question_that_does_not_say_otherwise__is_about_everything() -> None:
    judged = decide_verdict(here(a="P"), GateInputs(main_branch(), REGRESSIONS))
    assert changes(judged)["b"] is CaseClass.REMOVED
