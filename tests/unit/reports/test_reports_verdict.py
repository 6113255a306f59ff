"""What people see of the verdict by records and re-runs, and of what somebody accepted: read tests/golden/verdict/."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from eval_gate.config.policy import FailOn, Policy
from eval_gate.model.comparison import CaseClass, Outcome
from eval_gate.model.evidence import BranchRun
from eval_gate.model.result import BaseAgentSummary, RerunStopReason, RunResult
from eval_gate.model.waiver import RefusedCommand
from eval_gate.reports.case_annotations import build_annotations
from eval_gate.reports.check_run import render_check_run
from eval_gate.reports.console.style import ConsoleStyle
from eval_gate.reports.context import ReportContext
from eval_gate.reports.markdown import render_comment, render_summary
from eval_gate.reports.rendering import render
from eval_gate.reports.rerun_command import build_rerun_command
from eval_gate.reports.view.report_view import ReportView, build_view
from eval_gate.results.baseline import Baseline
from eval_gate.results.history import build_history
from eval_gate.struct import replace
from tests.support.graded import make_graded, make_graded_baseline, make_graded_run
from tests.support.pages import case_on, without_assets
from tests.support.results import make_result
from tests.support.verdicts import (
    REGRESSIONS,
    STEADY,
    judge_against,
    make_executed,
    make_history,
    make_judged,
    make_waiver,
    make_waivers,
)
from tests.unit.reports.test_reports_golden import ON_GITHUB

PULL_REQUEST = replace(ON_GITHUB, can_waive_by_comment=True)
FORK = replace(PULL_REQUEST, waive_requires_sha=True, head_sha="9e8d7c6b5a4f" + "0" * 28)
COMMENT = "https://github.com/acme/bot/pull/7#issuecomment-12"
FLAKY = "PPPFPPPPPFPPPPPPPFPP"


def confirmed() -> RunResult:
    """One of everything: regressions by evidence, one that must pass, doubtful cases, a confirmed new pass.

    A case that the newest run of main fails too is not re-run: nothing is suspected of it.
    """
    records = {
        "refund/partial-order": "PPPPPPPPPPPPPFPPPPPP",
        "refund/expired": "FPPPPPPPPPPPPPPPPPPP",
        "pay/card": STEADY,
        "faq/hours": FLAKY,
        "faq/fax": "FFPFFPFFFFPFFFFFFFFF",
        "order/split": "FPFFFFFFPFFFFFFFFFFF",
        "order/bulk": "F" * 20,
        "order/late": FLAKY,
    }
    here = {
        "refund/partial-order": "FFFF",
        "refund/expired": "F",
        "pay/card": "FF",
        "faq/hours": "FPP",
        "faq/fax": "PF",
        "order/split": "PPPPPPP",
        "order/bulk": "F",
        "order/late": "P",
        "order/new": "P",
    }
    cases = [
        make_executed(name, letters, line=10 + number, cost_usd=0.002 * len(letters))
        for number, (name, letters) in enumerate(here.items())
    ]
    return make_judged(cases, records, policy=replace(REGRESSIONS, must_pass=("pay/*",)))


def suite_drop(policy: Policy = REGRESSIONS) -> RunResult:
    """A tenth of the cases fails once and recovers: no single one shows it, all of them together do."""
    names = [f"order/status-{number:02}" for number in range(60)]
    here = {name: "FPP" if number % 10 == 0 else "P" for number, name in enumerate(names)}
    return make_judged(here, dict.fromkeys(names, STEADY), policy=policy)


@pytest.mark.parametrize(
    ("broken", "heading"),
    [
        ("FFFF", "7 regressions, 6 of them in a drop of the whole suite"),
        ("P", "the whole suite fails more than usual: 6 cases failed at first"),
    ],
)
def test_headline__suite_drop_beside_a_regression__counts_what_the_output_counts(broken, heading) -> None:
    names = [f"order/status-{number:02}" for number in range(60)]
    here = {name: "FPP" if number % 10 == 0 else "P" for number, name in enumerate(names)} | {names[1]: broken}
    run = make_judged(here, dict.fromkeys(names, STEADY), policy=REGRESSIONS)
    counted = [change for change in run.comparison.changes if change.change is CaseClass.REGRESSION]
    assert heading in render_comment(build_view(run, ON_GITHUB))
    assert f"{len(counted)} " in heading


def bad_days_before() -> RunResult:
    """A third fails once and recovers, on a branch of which two older runs failed much, each time in other cases."""
    names = [f"order/status-{number:02}" for number in range(60)]
    flaked = [range(0, 60, 10), range(1, 60, 12)]
    records = {
        name: f"PPPP{'F' if number in flaked[0] else 'P'}PPPP{'F' if number in flaked[1] else 'P'}{'P' * 10}"
        for number, name in enumerate(names)
    }
    return make_judged({name: "P" if number % 3 else "FPP" for number, name in enumerate(names)}, records)


def few_reruns() -> RunResult:
    """One re-run is too few for a suite of this size: that it failed every time has to do."""
    names = [f"faq/{number:02}" for number in range(60)]
    return make_judged(dict.fromkeys(names, "P") | {"faq/07": "FF"}, dict.fromkeys(names, "PPP"), reruns=1)


def accepted(*extra: str, policy: Policy = REGRESSIONS) -> RunResult:
    """Two regressions are accepted, a flaky case is set aside; some entries are late, wrong or not needed."""
    records = {
        "refund/partial-order": STEADY,
        "refund/expired": STEADY,
        "faq/hours": FLAKY,
        "faq/fax": "F" * 20,
        "pay/card": STEADY,
        "pay/iban": STEADY,
        "pay/cash": STEADY,
    }
    here = {
        "refund/partial-order": "FFFF",
        "refund/expired": "FFFF",
        "faq/hours": "F",
        "faq/fax": "P",
        "pay/card": "P",
        "pay/iban": "P",
        "pay/cash": "P",
    }
    waivers = make_waivers(
        make_waiver("refund/partial-order", url=COMMENT),
        make_waiver("refund/exp*", line=3, is_new=True, owner="Kim", days=0, reason="the terms | changed, see @ops"),
        make_waiver("faq/hours", "quarantine", line=9, days=1, reason="the judge disagrees with itself", is_new=False),
        make_waiver("faq/fax", "quarantine", line=14, is_new=False),
        make_waiver("pay/card", line=20, days=-3, is_new=False),
        make_waiver("pay/crd", line=23, is_new=False),
        make_waiver("pay/iban", line=26, is_new=True),
        refusals=(
            RefusedCommand(
                author="eve",
                url=f"{COMMENT}3",
                message="waiving needs write access to the repository, and eve has `read`",
            ),
        ),
        troubles=("1 comment with commands is ignored: GitHub answers 502 (Bad Gateway)",),
    )
    return make_judged(
        here | dict.fromkeys(extra, "FFFF"), records | dict.fromkeys(extra, STEADY), policy=policy, waivers=waivers
    )


def proposed() -> RunResult:
    """A fork's pull request accepts its own regression in the file: it does not count."""
    waivers = make_waivers(
        make_waiver("refund/expired", line=3, is_new=True, owner="the author", reason="it is fine, really"),
        trusted=False,
    )
    return make_judged({"refund/expired": "FFFF"}, {"refund/expired": STEADY}, waivers=waivers)


def broken_reruns(policy: Policy = REGRESSIONS) -> RunResult:
    """A case fails, and its re-runs break: nobody knows."""
    return make_judged({"a": "FEE", "b": "P"}, {"a": STEADY, "b": STEADY}, policy=policy)


def suspected() -> RunResult:
    """One cause broke twelve cases: three were confirmed, and nine not re-run because the gate had failed already."""
    cases = [make_executed(f"order/{number}", "FFF" if number < 3 else "F") for number in range(12)]
    cases = [
        replace(case, rerun_stop_reason=RerunStopReason.DECIDED if case.reruns else RerunStopReason.GATE_FAILED)
        for case in cases
    ]
    return make_judged([*cases, make_result("b")], {f"order/{number}": STEADY for number in range(12)} | {"b": STEADY})


def must_pass() -> RunResult:
    """Cases that must pass and do not: one that never did, and a new one."""
    policy = replace(REGRESSIONS, must_pass=("pay/*",))
    return make_judged(
        {"pay/card": "FF", "pay/new": "FFF", "b": "P"}, {"pay/card": "F" * 20, "b": STEADY}, policy=policy
    )


def unsure(**fields) -> RunResult:
    """A flaky case that failed and recovered."""
    return make_judged({"a": "FPP", "b": "P"}, {"a": FLAKY, "b": STEADY}, **fields)


def graded() -> RunResult:
    """A graded case that got worse, by its trials."""
    then = {"tone": STEADY}
    case = make_graded("tone", trials=(0.5, 0.4, 0.6, 0.4))
    case = replace(case, reruns=3, location=None)
    return make_judged([case, make_executed("b", "P")], then | {"b": STEADY})


def blamed(policy: Policy = REGRESSIONS) -> RunResult:
    """Every error kind: crashes that are regressions, new errors of each kind, and errors that main has too."""
    ten = "P" * 10
    records = {
        "refund/partial": ten,
        "refund/expired": ten,
        "refund/half": ten,
        "pay/card": ten,
        "pay/iban": ten,
        "faq/hours": ten,
        "faq/tone": ten,
        "order/bulk": "E" + "P" * 9,
        "order/late": "E" + "P" * 9,
        "order/old": "C" * 10,
        "order/odd": "F" + ten,
    }
    here = {
        "refund/partial": "CCCCCCC",
        "refund/expired": "CTCTCTC",
        "refund/half": "FCFF",
        "pay/card": "U",
        "pay/iban": "U",
        "faq/hours": "P",
        "faq/tone": "O",
        "order/bulk": "C",
        "order/late": "P",
        "order/old": "T",
        "order/new": "C",
        "order/odd": "P",
    }
    others = [f"faq/other-{number:02}" for number in range(14)]
    here |= dict.fromkeys(others, "P")
    records |= dict.fromkeys(others, ten)
    return make_judged(here, records, policy=policy)


def main_broke() -> RunResult:
    """Main broke two cases in its newest runs; the baseline could not judge a third, which fails here."""
    records = {"faq/hours": "FPPPPPPPPP", "faq/tone": "FFPPPPPPPP", "pay/card": "UPPPPPPPPP", "pay/iban": "P" * 10}
    return make_judged({"faq/hours": "F", "faq/tone": "F", "pay/card": "FF", "pay/iban": "FPP"}, records)


def everything(letters: str) -> RunResult:
    """Four cases that main passes, and all of them end so."""
    names = ("faq/hours", "faq/tone", "pay/card", "pay/iban")
    return make_judged(dict.fromkeys(names, letters), dict.fromkeys(names, "P" * 10))


def green_with_errors() -> RunResult:
    """Nothing is known against the change; some cases could not be judged, on main neither."""
    policy = replace(REGRESSIONS, max_errors=2)
    records = {"a": "P" * 10, "b": "P" * 10, "c": "E" + "P" * 9, "d": "P" * 10}
    return make_judged({"a": "P", "b": "U", "c": "C", "d": "P"}, records, policy=policy)


def otherwise_compared() -> RunResult:
    """A run that was judged against another baseline before, and had no re-runs."""
    before = make_judged({"a": "F", "b": "P"}, {"a": "P" * 10, "b": "P"}, reruns=0)
    earlier = make_history({"a": "F" * 3, "b": "P" * 3})[1]
    policy = replace(REGRESSIONS, reruns=6)
    return judge_against(before, Baseline(earlier, "main", age_days=2, history=build_history((earlier,))), policy)


def suite_scores(fail_on: FailOn = FailOn.REGRESSIONS) -> RunResult:
    """Every score fell a little, and no case fails for it."""
    runs = [
        make_graded_baseline(
            [make_graded(f"c{at:02}", 0.8 + (at * 7 + day * 3) % 5 / 100) for at in range(20)],
            run_id=f"main-{day}",
            timestamp=f"2026-11-{19 - day:02}T10:00:00Z",
        )
        for day in range(6)
    ]
    here = make_graded_run([make_graded(f"c{at:02}", 0.76) for at in range(20)], reruns=6)
    policy = Policy(frozenset({fail_on}), pass_score=0.5, reruns=6)
    return judge_against(here, Baseline(runs[0], "main", history=build_history(runs)), policy)


FLAKY_FAILS = replace(REGRESSIONS, fail_on=frozenset({FailOn.REGRESSIONS, FailOn.FLAKY}))
STATES = {
    "confirmed": confirmed(),
    "few-reruns": few_reruns(),
    "suite-drop": suite_drop(),
    "suite-drop-bad-days": bad_days_before(),
    "suite-drop-reported": suite_drop(Policy(frozenset({FailOn.NEVER}))),
    "suite-score-drop": suite_scores(),
    "suite-scores-reported": suite_scores(FailOn.NEVER),
    "not-decided": broken_reruns(),
    "not-decided-reported": broken_reruns(Policy(frozenset({FailOn.NEVER}))),
    "suspected": suspected(),
    "not-sure": unsure(),
    "not-sure-blocks": unsure(policy=FLAKY_FAILS),
    "must-pass": must_pass(),
    "allowed": make_judged(
        {"a": "FFFF", "b": "P"}, {"a": STEADY, "b": STEADY}, policy=replace(REGRESSIONS, allowed_regressions=1)
    ),
    "coverage": make_judged(
        [make_result("a"), make_result("b", "skipped", error="no question")],
        {"a": STEADY, "b": STEADY},
        policy=replace(REGRESSIONS, min_coverage=0.9),
    ),
    "latency": make_judged(
        [make_result(f"c{number}", duration_ms=300.0) for number in range(8)],
        {f"c{number}": STEADY for number in range(8)},
        policy=replace(REGRESSIONS, max_latency_increase=20),
    ),
    "graded": graded(),
    "accepted": accepted(),
    "accepted-partly": accepted("order/bulk"),
    "accepted-no-baseline": make_judged(
        {"a": "F", "b": "P"}, policy=Policy(), reruns=0, waivers=make_waivers(make_waiver("a", is_new=False))
    ),
    "accepted-unsure": unsure(policy=FLAKY_FAILS, waivers=make_waivers(make_waiver("a", is_new=False))),
    "quarantine-rate": accepted(policy=replace(REGRESSIONS, min_pass_rate=0.5)),
    "proposed": proposed(),
    "blamed": blamed(),
    "main-broke": main_broke(),
    "all-agent-errors": everything("CCC"),
    "all-unreachable": everything("U"),
    "all-timed-out": everything("T"),
    "all-ours": everything("O"),
    "green-with-errors": green_with_errors(),
    "otherwise-compared": otherwise_compared(),
}


def context_for(state: str) -> ReportContext:
    return FORK if state == "proposed" else PULL_REQUEST


@pytest.mark.parametrize("state", STATES)
def test_comment__verdict__looks_like_this(golden, state) -> None:
    golden(f"verdict/comment/{state}.md", render("md", STATES[state], context_for(state)))


@pytest.mark.parametrize("state", STATES)
def test_check__verdict__has_this_title_and_summary(golden, state) -> None:
    text = render_check_run(build_view(STATES[state], context_for(state)))
    golden(f"verdict/check/{state}.md", f"{text.title}\n\n{text.summary}")
    assert len(text.title) <= 80


@pytest.mark.parametrize("state", STATES)
def test_console__verdict__looks_like_this(golden, state) -> None:
    text = render("console", STATES[state], ReportContext(base_branch="main"))
    golden(f"verdict/console/{state}.txt", text)
    assert render("console", STATES[state], ReportContext(), style=ConsoleStyle(ascii=True)).isascii()


@pytest.mark.parametrize(
    "state",
    [*("confirmed", "accepted", "not-decided", "suspected", "suite-drop-reported", "proposed", "blamed", "main-broke")],
)
def test_summary__verdict__looks_like_this(golden, state) -> None:
    golden(f"verdict/summary/{state}.md", render_summary(build_view(STATES[state], context_for(state))))


@pytest.mark.parametrize("state", ["confirmed", "accepted", "blamed", "main-broke"])
def test_html__verdict__looks_like_this(golden, state) -> None:
    golden(f"verdict/html/{state}.html", without_assets(render("html", STATES[state], PULL_REQUEST)))


@pytest.mark.parametrize("state", ["confirmed", "accepted", "blamed"])
def test_junit__verdict__looks_like_this(golden, state) -> None:
    text = render("junit", STATES[state], PULL_REQUEST)
    golden(f"verdict/junit/{state}.xml", text)


# --- more false alarms than are promised ------------------------------------------------------------------------------

FALSE_ALARMS = "harmless pull requests would fail. "


def a_fifth_is_flaky() -> RunResult:
    """Nothing changed in a suite of 500 after one run; a fifth of its cases fails half of the time."""
    names = [f"order/status-{number:03}" for number in range(500)]
    here = {names[at]: ("FPP", "FFP", "FFFP")[at % 3] for at in range(100) if at % 10 >= 5}
    then = {names[at]: "F" for at in range(100) if at % 10 < 5}
    return make_judged(dict.fromkeys(names, "P") | here, dict.fromkeys(names, "P") | then)


@pytest.mark.parametrize("kind", ["md", "console", "html"])
def test_false_alarms__few_runs_and_many_flaky_cases__are_said_with_what_would_change_it(kind) -> None:
    run = a_fifth_is_flaky()
    said = " ".join(render(kind, run, PULL_REQUEST).split())
    assert FALSE_ALARMS in said
    assert re.search(r"more runs? on main reduces? this to under 1 in 50", said)
    assert FALSE_ALARMS in render_check_run(build_view(run, PULL_REQUEST)).summary
    assert run.verdict.outcome is Outcome.PASSED


def test_false_alarms__a_steady_suite__are_not_said() -> None:
    assert build_view(confirmed(), PULL_REQUEST).false_alarms is None


# --- a suspected bad day ----------------------------------------------------------------------------------------------

BAD_DAY = "A bad day of the model or the network looks the same."


@pytest.mark.parametrize("kind", ["md", "console", "html"])
def test_bad_day__only_the_suite_test_failed__is_said_and_stays_red(kind) -> None:
    run = suite_drop()
    assert BAD_DAY in " ".join(render(kind, run, PULL_REQUEST).split())
    assert BAD_DAY in render_check_run(build_view(run, PULL_REQUEST)).summary
    assert run.verdict.outcome is Outcome.FAILED


def with_one_more(here: str) -> RunResult:
    names = [f"order/status-{number:02}" for number in range(60)]
    executed = {name: "FPP" if number % 10 == 0 else "P" for number, name in enumerate(names)}
    return make_judged(executed | {"z": here}, dict.fromkeys([*names, "z"], STEADY))


def test_bad_day__a_case_by_itself_is_confirmed__is_not_said() -> None:
    assert build_view(with_one_more("P"), PULL_REQUEST).bad_day
    run = with_one_more("FFFF")
    assert run.comparison.suite_finding.is_drop
    assert build_view(run, PULL_REQUEST).bad_day is None


def test_bad_day__base_agent_was_asked__is_not_said() -> None:
    run = suite_drop()
    assert build_view(replace(run, base_agent=BaseAgentSummary(target=run.target)), PULL_REQUEST).bad_day is None


def test_bad_day__no_drop__is_not_said() -> None:
    assert build_view(confirmed(), PULL_REQUEST).bad_day is None


@pytest.mark.parametrize(
    ("failures", "said"),
    [
        ((), "0 runs on main are too few to know earlier bad days."),
        ((2,), "1 run on main is too few to know earlier bad days."),
        ((2, 3, 1, 2, 4, 2), "None of the last 6 runs on main was such a day."),
        ((0,) * 9 + (2,), "None of the last 10 runs on main was such a day."),
        (
            (2, 7, 1, 2, 9, 3, 2),
            "2 of the last 7 runs on main were such days: 7 to 9 failures at first (usually about 2).",
        ),
        (
            (0,) * 9 + (6,),
            "1 of the last 10 runs on main was such a day: 6 failures at first (usually fewer than 1).",
        ),
        ((1,) * 9 + (8,), "1 of the last 10 runs on main was such a day: 8 failures at first (usually about 1)."),
    ],
)
def test_bad_day__days_on_record__are_said_as_they_were(failures, said) -> None:
    run, mean = suite_drop(), sum(failures) / max(len(failures), 1)
    days = tuple(BranchRun(failures=one, expected=mean, variance=mean) for one in failures)
    comparison = replace(run.comparison, evidence=replace(run.comparison.evidence, branch_runs=days))
    assert f" {said} A base agent" in build_view(replace(run, comparison=comparison), PULL_REQUEST).bad_day


# --- what the pages never say -----------------------------------------------------------------------------------------


def page(run: RunResult, **context) -> str:
    return render("md", run, ReportContext(**context))


def test_comment__no_branch_is_known__the_record_has_no_name() -> None:
    assert "failed 4 of 4 here, 1 of 20 in the history" in page(confirmed())
    assert "on main" not in page(confirmed())


def test_comment__no_pull_request__offers_no_command() -> None:
    assert "/eval-gate waive" not in page(confirmed())
    assert "/eval-gate waive" in page(confirmed(), can_waive_by_comment=True)
    assert "/eval-gate waive" not in page(
        confirmed(), can_waive_by_comment=True, waive_requires_sha=True
    )  # of which nobody knows
    assert "/eval-gate waive" not in page(STATES["allowed"], can_waive_by_comment=True)


def test_comment__many_regressions__offers_the_first_ten() -> None:
    names = [f"c{number:02}" for number in range(12)]
    run = make_judged(dict.fromkeys(names, "FFFF"), dict.fromkeys(names, STEADY))
    assert build_view(run, PULL_REQUEST).waive_comment == f"/eval-gate waive {' '.join(names[:10])} -- <reason>"


def test_comment__long_names__are_offered_as_far_as_a_line_goes() -> None:
    names = [f"c{number}{'x' * 280}" for number in range(10)]
    run = make_judged(dict.fromkeys(names, "FFFF"), dict.fromkeys(names, STEADY))
    command = build_view(run, PULL_REQUEST).waive_comment
    assert len(command) <= 1_500
    assert command == f"/eval-gate waive {' '.join(names[:5])} -- <reason>"
    assert command in page(run, can_waive_by_comment=True)


def test_comment__name_that_no_command_can_hold__is_left_out_of_it() -> None:
    both = 'say `this` "now"'
    run = make_judged({both: "FFFF", "b": "FFFF"}, {both: STEADY, "b": STEADY})
    assert build_view(run, PULL_REQUEST).waive_comment == "/eval-gate waive b -- <reason>"


@pytest.mark.parametrize(
    ("url", "linked"),
    [
        (COMMENT, True),
        ("https://github.com.evil.test/a", False),
        ("http://github.com/a", False),
        ("https://github.com/a) [x](https://evil.test", False),
        ("javascript:alert(1)", False),
    ],
)
def test_waived__comment__is_a_link_only_on_this_server(url, linked) -> None:
    run = make_judged({"a": "FFFF"}, {"a": STEADY}, waivers=make_waivers(make_waiver("a", url=url)))
    assert (f"[comment]({url})" in page(run)) is linked
    assert (case_on(render("html", run, ReportContext()), "a")["waived"].get("url") == url) is linked


def test_waived__record_of_anybody__may_name_entries_that_are_not_there() -> None:
    run = accepted()
    broken = tuple(replace(one, entry=place) for one, place in zip(run.waivers.waived, (99, -99, 0), strict=True))
    odd = replace(run, waivers=replace(run.waivers, waived=broken))
    assert [row.id for row in build_view(odd, ReportContext()).waived] == ["faq/hours"]


def test_rerun__regressions_and_inconclusive__but_not_what_is_accepted() -> None:
    assert build_rerun_command(["run"], accepted("order/bulk")).command == "eval-gate run --case order/bulk"
    assert build_rerun_command(["run"], accepted()) is None
    assert build_rerun_command(["run"], broken_reruns()).command == "eval-gate run --case a"


def test_remarks__of_a_verdict__block_only_where_the_gate_does() -> None:
    def titles(run: RunResult) -> list[tuple[str, bool]]:
        return [(remark.title, remark.blocking) for remark in build_annotations(build_view(run, PULL_REQUEST)).items]

    assert titles(accepted("order/bulk")) == [("Regression: order/bulk", True)]
    assert titles(unsure()) == [("Inconclusive: a", False)]
    assert titles(unsure(policy=FLAKY_FAILS)) == [("Inconclusive: a", True)]
    assert titles(broken_reruns()) == [("Re-runs missing: a", False)]
    assert titles(must_pass()) == [("Must-pass case failed: pay/card", True), ("Must-pass case failed: pay/new", True)]


def test_remarks__regression__says_what_was_seen() -> None:
    (remark,) = build_annotations(build_view(accepted("order/bulk"), PULL_REQUEST)).items
    assert remark.message.startswith(
        "Confirmed: failed 4 of 4 here, 0 of 20 on main. Chance without a real change: 1 in "
    )
    assert "called [escalate]. Next step: Fix the change. " in remark.message


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
def test_html__trials__say_k_of_n_where_there_are_reruns(state) -> None:
    run = STATES[state]
    text = render("html", run, PULL_REQUEST)
    for case in (case for suite in run.suites for case in suite.cases if case.reruns):
        shown = case_on(text, case.id)["runs"]
        assert [one["status"] for one in shown] == [trial.status.value[0].upper() for trial in case.trials]
        assert sum(one.get("again", False) for one in shown) == case.reruns


def test_view__accepted__is_no_regression_and_no_failure_of_another_kind() -> None:
    view: ReportView = build_view(accepted("order/bulk"), PULL_REQUEST)
    assert [row.id for row in view.regressions] == ["order/bulk"]
    assert [row.id for row in view.waived] == ["refund/partial-order", "refund/expired", "faq/hours"]
    assert view.verdict.outcome is Outcome.FAILED
    assert all(row.change_class is CaseClass.REGRESSION for row in view.waived)
    assert ET.fromstring(render("junit", accepted(), PULL_REQUEST)).get("failures") == "0"


def test_render_comment__is_what_render_says() -> None:
    assert render_comment(build_view(confirmed(), PULL_REQUEST)) == render("md", confirmed(), PULL_REQUEST)
