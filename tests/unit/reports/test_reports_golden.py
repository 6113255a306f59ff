"""What people see in each state, to the letter: read tests/golden/ as a user would."""

import re
import xml.etree.ElementTree as ET
from statistics import fmean

import pytest

from eval_gate.config.outputs import JunitFailures
from eval_gate.config.policy import FailOn, Policy
from eval_gate.errors import ExitCode, GateError, Problem
from eval_gate.model.case import Tier
from eval_gate.model.comparison import Outcome, Reason, ReasonCode, RuleCode, Verdict
from eval_gate.model.execution import ErrorCause, ErrorKind, EvaluatorResult
from eval_gate.model.result import CaseResult, RunResult, StaleFact, StaleKind
from eval_gate.reports.check_run import render_check_run
from eval_gate.reports.console.style import ConsoleStyle
from eval_gate.reports.context import BaselineRefresh, ReportContext
from eval_gate.reports.markdown import render_comment, render_problem, render_summary
from eval_gate.reports.rendering import render
from eval_gate.reports.view.report_view import build_view
from eval_gate.reports.wording.advice import find_advice
from eval_gate.results.baseline import NOT_REQUESTED, Baseline, NoBaseline
from eval_gate.results.history import build_history
from eval_gate.struct import replace
from tests.support.behaviours import make_behaving, make_details
from tests.support.graded import make_evaluator, make_graded, make_graded_baseline, make_graded_run, make_graded_suite
from tests.support.pages import without_assets
from tests.support.results import make_baseline_run, make_result, make_run, make_suite_result
from tests.support.verdicts import judge_against

VERBOSE = ConsoleStyle(verbose=True)

ONLY_REGRESSIONS = Policy(frozenset({FailOn.REGRESSIONS}))
ON_GITHUB = ReportContext(
    name="support",
    comment_key="evals.yml.gate.support",
    repository="acme/bot",
    head_sha="9e8d7c6b5a4f",
    base_branch="main",
    run_url="https://github.com/acme/bot/actions/runs/202/attempts/1",
    report_url="https://github.com/acme/bot/actions/runs/202/artifacts/303",
    baseline_run_url="https://github.com/acme/bot/actions/runs/101",
    workflow_url="https://github.com/acme/bot/actions/workflows/evals.yml",
    rerun_command="eval-gate run --config evals/support.yaml --case 'refund/*'",
)


def judged(now: RunResult, then: RunResult | None = None, policy: Policy = ONLY_REGRESSIONS, **age) -> RunResult:
    baseline = Baseline(then, "main", **({"age_days": 2, "commits_behind": 4} | age)) if then else NOT_REQUESTED
    return judge_against(now, baseline, policy)


def few() -> RunResult:
    then = make_baseline_run(
        make_suite_result(
            [
                make_result("refund/partial-order", trials="PPP"),
                make_result("refund/expired", trials="PPP"),
                make_result("faq/hours"),
                make_result("order/split", "failed"),
                make_result("order/bulk", "failed"),
            ]
        )
    )
    wanted = "toolsCalled: expected [issue_refund], called [escalate]"
    now = make_run(
        make_suite_result(
            [
                make_result("refund/partial-order", "failed", trials="FFF", error=wanted),
                make_result(
                    "refund/expired", "failed", trials="PFF", error="responseContains: expected '14 days' in response"
                ),
                make_result(
                    "faq/hours", "failed", error="responseContains: expected 'Sun|day`s' in response but not found"
                ),
                make_result("order/split"),
                make_result("order/bulk", "failed"),
                make_result("order/new"),
            ]
        )
    )
    return judged(now, then)


def many() -> RunResult:
    names = [f"order/status-{number:03}" for number in range(128)]
    broken = "toolsCalled: expected [lookup_order], called []"
    slow = "timeout: no response within 60000 ms"
    cases = [make_result(name, "failed", error=broken if number < 119 else slow) for number, name in enumerate(names)]
    return judged(
        make_run(make_suite_result([*cases, make_result("faq/a")])),
        make_baseline_run(dict.fromkeys([*names, "faq/a"], "passed")),
    )


def none(**age) -> RunResult:
    now = {"order/split": "passed", "faq/hours": "passed", "order/bulk": "failed"}
    return judged(make_run(now), make_baseline_run(now | {"order/split": "failed"}), **age)


REFUSED = "agent error: no connection to 127.0.0.1:1: refused"


def interrupted() -> RunResult:
    cases = [make_result("a")]
    why = {"error": REFUSED, "error_kind": ErrorKind.AGENT_UNREACHABLE, "error_cause": ErrorCause.AGENT_GONE}
    cases += [make_result(f"b{number}", "error", **why) for number in range(5)]
    cases += [make_result(f"c{number}", "not_run") for number in range(3)]
    stopped = f"no connection to the target, 5 cases in a row: {REFUSED.removeprefix('agent error: ')}"
    cause = ErrorCause.AGENT_GONE
    run = make_run(make_suite_result(cases), stop_reason=stopped, stop_cause=cause)
    return judged(run, make_baseline_run({"a": "passed"}))


def not_comparable() -> RunResult:
    then = make_baseline_run(
        make_suite_result([make_result("a", fingerprint="another question"), make_result("b", "error")])
    )
    return judged(make_run({"a": "passed", "b": "failed"}), then)


def stale_evals() -> RunResult:
    facts = (StaleFact(kind=StaleKind.DESCRIPTION, recorded="3fa9c1d2e4b5", current="77aa01bc9e10"),)
    grown = (StaleFact(kind=StaleKind.REGISTRY_SIZE, recorded="4", current="9"),)
    suites = [
        make_suite_result(
            {f"{tier}-1": "passed"},
            tier=Tier(tier),
            eval_file=f"evals/w.{tier}.json",
            stale=True,
            stale_facts=found,
            staleness_warnings=("a sentence of the contract",) * len(found),
        )
        for tier, found in (("golden", facts), ("labeled", facts + grown))
    ]
    misspelt = 'gs-1: unknown assertion "responseContain" (did you mean "responseContains"?): it is not checked'
    suites.append(
        make_suite_result(
            [make_result("r", "skipped", error="rubric dimensions need a judge, and none is configured")],
            tier=Tier.RUBRIC,
            eval_file="evals/w.rubric.json",
            warnings=(misspelt,),
        )
    )
    return judged(make_run(*suites), make_baseline_run(*suites))


STATES = {
    "few": few(),
    "many": many(),
    "none": none(),
    "none-stale-baseline": none(age_days=23, commits_behind=425),
    "no-baseline": judged(
        make_run({"a": "passed", "b": "failed"}), policy=Policy(frozenset({FailOn.REGRESSIONS}), 0.4)
    ),
    "no-baseline-failures": judged(make_run({"a": "passed", "b": "failed"}), policy=Policy()),
    "could-not-decide": interrupted(),
    "pass-rate": judged(
        make_run({"a": "passed", "b": "failed"}),
        make_baseline_run({"a": "passed", "b": "failed"}),
        Policy(frozenset({FailOn.REGRESSIONS}), 0.9),
    ),
    "errors": judged(
        make_run({"a": "passed", "b": "error", "c": "passed"}), make_baseline_run({"a": "passed", "b": "passed"})
    ),
    "stale-evals": stale_evals(),
    "errors-allowed": judged(
        make_run({"a": "passed", "b": "error"}),
        make_baseline_run({"a": "passed", "b": "passed"}),
        Policy(frozenset({FailOn.REGRESSIONS}), max_errors=1),
    ),
    "not-comparable": not_comparable(),
    "flaky": judged(
        make_run(make_suite_result([make_result("a", trials="PPF"), make_result("b")])),
        make_baseline_run({"a": "passed", "b": "passed"}),
    ),
    "report-only": judged(
        make_run({"a": "failed"}), make_baseline_run({"a": "passed"}), Policy(frozenset({FailOn.NEVER}))
    ),
}


def history() -> RunResult:
    """A case that fails here, and that comes and goes on the default branch."""
    runs = tuple(
        make_baseline_run({"a": "failed" if number in {2, 5} else "passed", "b": "passed"}, run_id=f"r{number}")
        for number in range(10)
    )
    baseline = Baseline(runs[0], "main", age_days=2, commits_behind=4, history=build_history(runs))
    return judge_against(make_run({"a": "failed", "b": "passed"}), baseline, ONLY_REGRESSIONS)


def unavailable() -> RunResult:
    """A case that fails here, and GitHub does not say whether it passed before."""
    reason = "the baseline could not be read (listing the artifacts: GitHub answers 502 (Bad Gateway))"
    absent = NoBaseline(ReasonCode.BASELINE_UNAVAILABLE, reason, unavailable=True)
    return judge_against(make_run({"a": "failed", "b": "passed"}), absent, ONLY_REGRESSIONS)


def graded() -> RunResult:
    """A rubric case with two dimensions, one of them too low."""
    request = {
        "systemPrompt": "s",
        "userPrompt": "u",
        "replies": 1,
        "dimensions": [
            {"dimension": "accuracy", "score": 3, "maxScore": 3, "given": True},
            {"dimension": "safety|tone", "score": 0, "maxScore": 1, "given": True},
        ],
    }
    rubric = EvaluatorResult(
        name="rubric",
        type="rubric",
        score=0.5,
        hits=("accuracy 3/3: all of it is right",),
        misses=("safety|tone 0/1: it promises @octocat a refund",),
        evaluator_provider_request=request,
    )
    case = make_result("r-1", "failed", error="rubric: safety|tone 0/1", evaluator_results=(rubric,), cost_usd=0.0031)
    case = replace(case, judge_cost_usd=0.0009)
    return judged(make_run(make_suite_result([case, make_result("gs-1", cost_usd=0.002)])), policy=Policy())


STATES |= {"graded": graded(), "history": history(), "baseline-unavailable": unavailable()}


def scores(policy: Policy = ONLY_REGRESSIONS) -> RunResult:
    """An AgentV suite beside a tool-forge one: grades that rose, fell, and fell where both are failures."""
    earlier = [
        make_graded("tone", evaluators={"policy": 1.0, "style": 1.0}),
        make_graded("refund/limit", evaluators={"policy": 0.8, "style": 1.0}),
        make_graded("refund/proof", evaluators={"policy": 0.6, "style": 0.6}),
        make_graded("refund/late", 0.95),
        make_graded("greeting", evaluators={"policy": 0.6, "style": 1.0}),
        make_graded("plain"),
        make_graded("gone", 0.5),
    ]
    wordy = make_evaluator("style", 0.7, misses=("it is too long", "it says `sorry` | twice", "it has no end"))
    now = [
        make_graded("tone", 0.85, evaluator_results=(make_evaluator("policy"), wordy)),
        make_graded("refund/limit", evaluators={"policy": 0.34, "style": 1.0}),
        make_graded("refund/proof", evaluators={"policy": 0.5, "style": 0.6}),
        make_graded("refund/late", 0.8, error="the score is below 1"),
        make_graded("greeting", evaluators={"policy": 1.0, "style": 1.0}),
        make_graded("plain"),
        make_graded("new", evaluators={"policy": 0.9}),
        make_graded("broken", 0.0, "error"),
    ]
    then = make_baseline_run(make_graded_suite(earlier), {"w-1": "passed"})
    return judged(make_run(make_graded_suite(now), {"w-1": "passed"}), then, policy)


def only_drops(policy: Policy = ONLY_REGRESSIONS) -> RunResult:
    """Nothing passes and nothing passed; one case is much worse."""
    then = make_graded_baseline({"a": 0.9, "b": 0.9})
    return judged(make_graded_run({"a": 0.4, "b": 0.85}), then, policy)


def behaviour() -> RunResult:
    """Nothing failed, and five cases do something else; ids in a parameter differ each time."""
    names = ("order/status", "order/late", "faq/hours", "refund/expired", "refund/partial-order", "faq/contact")

    def make_side(*, here: bool) -> list[CaseResult]:
        day, tool = ("Sunday", "search_orders") if here else ("2026-11-22", "lookup_order")
        said = "I cannot help with this." if here else "You have fourteen days to send it back, at no cost."
        calls = {
            "order/status": [("lookup_order", {"id": "A7", "day": day})],
            "order/late": [("lookup_order", {"id": "A8", "day": day})],
            "faq/hours": [(tool, {"id": "`|@octocat"})],
            "refund/expired": [("lookup_order", {"id": "A9"})],
            "refund/partial-order": [("lookup_order", {"id": 9 if here else "9"}), *([("refund", {})] * (1 + here))],
            "faq/contact": [("lookup_order", {"id": "A4"})],
        }
        for place, name in enumerate(names):
            calls[name][0][1]["trace"] = f"{place}{here:d}f3"
        return [
            make_behaving(name, make_details(calls[name], *([said] if name == "refund/expired" else [])))
            for name in names
        ]

    return judged(
        make_run(make_suite_result(make_side(here=True))), make_baseline_run(make_suite_result(make_side(here=False)))
    )


def metrics() -> RunResult:
    """Twelve cases pass; one evaluator and one member of a composite fall, another rises, and names are hostile."""

    def make_case(number: int, *, here: bool) -> CaseResult:
        members = [
            make_evaluator("facts", 0.7 if here else 0.9),
            make_evaluator("tone", 0.8 if here else 0.6 + 0.01 * number),
        ]
        results = [
            make_evaluator("style", 0.75 if here else 0.95 - 0.01 * number),
            make_evaluator("`|<b>@octocat</b>", 0.9 if here else 0.8),
            make_evaluator("format", float(number != 3 + here)),
            make_evaluator(
                "policy", fmean(one.score for one in members), type="composite", evaluator_results=tuple(members)
            ),
        ]
        return make_graded(
            f"case-{number:02}",
            fmean(one.score for one in results),
            evaluator_results=tuple(results),
            tags=("refunds" if number % 2 else "a|</td><script>", *(("vip",) if number < 8 else ())),
        )

    then, now = ([make_case(number, here=here) for number in range(12)] for here in (False, True))
    policy = Policy(frozenset({FailOn.REGRESSIONS}), pass_score=0.5)
    return judged(make_graded_run(now), make_graded_baseline(then), policy)


STATES |= {
    "metrics": metrics(),
    "behaviour": behaviour(),
    "scores": scores(Policy(frozenset({FailOn.REGRESSIONS}), max_errors=1)),
    "scores-threshold": scores(Policy(frozenset({FailOn.REGRESSIONS}), 0.5, 1, pass_score=0.8)),
    "scores-drops-only": only_drops(),
    "scores-limit": only_drops(Policy(frozenset({FailOn.REGRESSIONS}), max_score_drop=0.2)),
    "scores-no-baseline": judged(make_graded_run({"a": 0.4, "b": 1.0}), policy=Policy()),
}


@pytest.mark.parametrize("state", STATES)
def test_comment__state__looks_like_this(golden, state) -> None:
    golden(f"comment/{state}.md", render("md", STATES[state], ON_GITHUB))


REFRESHABLE = replace(
    ON_GITHUB,
    no_baseline_reason="no usable artifact eval-gate-results of main; seen 1: 1 expired",
    baseline_refresh=BaselineRefresh("gh workflow run evals.yml --ref main", "/eval-gate refresh"),
)


def expired() -> RunResult:
    """A case that fails here, and the baseline is too old to be had."""
    reason = "no usable artifact eval-gate-results of main; seen 1: 1 expired"
    absent = NoBaseline(
        ReasonCode.BASELINE_ARTIFACT_NOT_FOUND, reason, unavailable=True, expired=True, refreshable=True
    )
    return judge_against(make_run({"a": "failed", "b": "passed"}), absent, ONLY_REGRESSIONS)


@pytest.mark.parametrize("state", ["none-stale-baseline", "no-baseline", "not-comparable", "baseline-expired"])
def test_reports__new_baseline_would_help__say_once_how_it_is_made(golden, state) -> None:
    run = expired() if state == "baseline-expired" else STATES[state]
    view = build_view(run, REFRESHABLE)
    comment, summary = render_comment(view), render_summary(view)
    page = without_assets(render("html", run, REFRESHABLE))
    golden(f"refresh/{state}.md", comment)
    golden(f"refresh/{state}-summary.md", summary)
    if state == "none-stale-baseline":
        golden(f"refresh/{state}.html", page)
    for text in (comment, summary, page):
        assert text.count("gh workflow run evals.yml --ref main") == 1
        assert text.count("/eval-gate refresh") == 1


@pytest.mark.parametrize("state", [name for name, run in STATES.items() if run.verdict.outcome is not Outcome.PASSED])
def test_comment__not_green__says_what_to_do_once(state) -> None:
    assert render("md", STATES[state], ON_GITHUB).count("**Next step:** ") == 1


# a waiver names cases, and more agent errors than usual are a finding about the run
@pytest.mark.parametrize("code", [code for code in RuleCode if code is not RuleCode.AGENT_ERRORS], ids=str)
def test_to_do__any_rule_that_does_not_hold__has_words_and_may_be_accepted_where_that_is_offered(code) -> None:
    failed = Verdict(
        outcome=Outcome.FAILED, exit_code=ExitCode.FAILED, reasons=(Reason(code=code, message="it is so"),)
    )
    alone, offered = (find_advice(none(), failed, ON_GITHUB, waive=how) for how in (None, "waive the failures"))
    step = alone.next_step.removesuffix(".")
    assert offered.next_step == f"{step}, or waive the failures."


@pytest.mark.parametrize(
    ("changes", "is_named"),
    [({}, True), ({"format": "agentv"}, True), ({"format": "agent-evals"}, False), ({"format": "agent"}, False)],
    ids=str,
)
def test_next_step__regressions__names_the_update_of_evals_that_can_be_updated(changes, is_named) -> None:
    """The target of the run is called agent: suites of a format of this name are results of another tool."""
    run = few()
    provider = run.target.provider
    changes = {key: provider if value == "agent" else value for key, value in changes.items()}
    text = render("md", replace(run, suites=tuple(replace(suite, **changes) for suite in run.suites)), ON_GITHUB)
    assert ("update the evals with `eval-gate draft --update CASE`" in text) == is_named


def test_comment__could_not_decide__links_to_the_error() -> None:
    text = render("md", interrupted(), replace(ON_GITHUB, errors_doc_url="https://example.org/errors"))
    assert "See [`too-few-scored-cases`](https://example.org/errors#too-few-scored-cases)." in text


PROBLEMS = {
    "problem-usage": (
        GateError(
            "invalid-eval-files",
            "2 problems in the eval files",
            "correct them; `eval-gate validate` checks without running anything",
            problems=(
                Problem("expected a list", "evals/a|b.golden.json", 12, "cases[0].expect.toolsCalled"),
                Problem("@octocat <b>wrote</b> this", "evals/x.json", 3),
            ),
        ),
        "nothing ran",
    ),
    "problem-github": (
        GateError("github-unreachable", "reading run 5: GitHub answers 502 (Bad Gateway)", "re-run the failed job"),
        "inconclusive",
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_comment__nothing_could_be_run__looks_like_this(golden, name) -> None:
    error, heading = PROBLEMS[name]
    error.exit_code = ExitCode.USAGE if name == "problem-usage" else ExitCode.INCOMPLETE
    context = replace(ON_GITHUB, errors_doc_url="https://x.test/e")
    text = render_problem(error, context, heading, as_comment=True)
    golden(f"comment/{name}.md", text)
    assert text == f"<!-- eval-gate:v1 key=evals.yml.gate.support -->\n{render_problem(error, context, heading)}"


@pytest.mark.parametrize("state", STATES)
def test_check__state__has_this_title_and_summary(golden, state) -> None:
    text = render_check_run(build_view(STATES[state], ON_GITHUB))
    golden(f"check/{state}.md", f"{text.title}\n\n{text.summary}")
    assert len(text.title) <= 80
    assert "> [!" not in text.summary


def test_comment__on_a_laptop__has_no_links(golden) -> None:
    text = render("md", few(), ReportContext())
    golden("comment/few-local.md", text)
    assert "](" not in text


@pytest.mark.contract("console.regressions")
@pytest.mark.parametrize(
    "state",
    [
        *("few", "none", "none-stale-baseline", "no-baseline-failures", "could-not-decide", "stale-evals", "flaky"),
        *("scores", "scores-threshold"),
    ],
)
def test_console__state__looks_like_this(golden, state) -> None:
    context = ReportContext(result_path="evals/results/r/run.json", rerun_command="eval-gate run --case a")
    golden(f"console/{state}.txt", render("console", STATES[state], context))


@pytest.mark.contract("console.layout", "console.staleness")
@pytest.mark.parametrize("state", ["few", "could-not-decide", "scores", "stale-evals"])
def test_console__verbose__looks_like_this(golden, state) -> None:
    golden(f"console/{state}-verbose.txt", render("console", STATES[state], ReportContext(), style=VERBOSE))


@pytest.mark.contract("console.totals")
@pytest.mark.parametrize("state", STATES)
def test_console__state__totals_begin_as_the_contract_says(state) -> None:
    text = render("console", STATES[state], ReportContext(), style=VERBOSE)
    totals = re.findall(r"^  \d+/\d+ passed \| \d+ failed \| \d+ skipped assertions \| \d+ms total", text, re.MULTILINE)
    assert len(totals) == len(STATES[state].suites)


def test_console__the_last_block__is_the_verdict() -> None:
    """CI logs are read from the end."""
    lines = render("console", few(), ReportContext(result_path="run.json", rerun_command="again")).splitlines()
    verdict = next(at for at, line in enumerate(lines) if line.startswith("GATE"))
    assert lines[verdict].endswith("exit 1")
    assert [line.split()[0] for line in lines[verdict:] if line[0] != " " or ":" in line] == [
        *("GATE", "Next", "result:", "rerun:"),
    ]


def test_console__ascii_only__holds_nothing_else(golden) -> None:
    text = render("console", few(), ReportContext(), style=ConsoleStyle(ascii=True))
    golden("console/few-ascii.txt", text)
    assert text.isascii()


def test_console__cases_behave_differently__are_one_line_and_a_table_with_verbose(golden) -> None:
    golden("console/behaviour.txt", render("console", behaviour(), ReportContext()))
    text = render("console", behaviour(), ReportContext(), style=ConsoleStyle(verbose=True))
    golden("console/behaviour-verbose.txt", text)


def test_console__evaluators_and_tags_changed__are_one_line_and_a_table_with_verbose(golden) -> None:
    golden("console/metrics.txt", render("console", metrics(), ReportContext()))
    text = render("console", metrics(), ReportContext(), style=ConsoleStyle(verbose=True))
    golden("console/metrics-verbose.txt", text)


@pytest.mark.parametrize(
    "state", ["few", "could-not-decide", "metrics", "behaviour", "stale-evals", "no-baseline", "scores-threshold"]
)
def test_summary__state__looks_like_this(golden, state) -> None:
    golden(f"summary/{state}.md", render_summary(build_view(STATES[state], ON_GITHUB)))


def test_junit__few__looks_like_this(golden) -> None:
    text = render("junit", few(), ReportContext())
    golden("junit/few.xml", text)
    root = ET.fromstring(text)
    assert [root.get(key) for key in ("tests", "failures", "errors", "skipped")] == ["6", "3", "0", "1"]
    assert len(root.findall("./testsuite/testcase/failure")) == 3


@pytest.mark.parametrize("state", STATES)
def test_junit__any_state__is_red_exactly_where_the_gate_does_not_pass(state) -> None:
    root = ET.fromstring(render("junit", STATES[state], ReportContext()))
    red = int(root.get("failures")) + int(root.get("errors"))
    assert (red == 0) == (STATES[state].verdict.exit_code == ExitCode.PASSED)
    assert red == len([*root.iter("failure"), *root.iter("error")])


def test_junit__all_that_fail__are_failures_where_that_is_asked_for() -> None:
    root = ET.fromstring(render("junit", few(), ReportContext(junit=JunitFailures.ALL)))
    assert [root.get(key) for key in ("failures", "errors", "skipped")] == ["4", "0", "0"]


@pytest.mark.parametrize("state", ["scores", "scores-threshold"])
def test_junit__scores__look_like_this(golden, state) -> None:
    text = render("junit", STATES[state], ReportContext())
    golden(f"junit/{state}.xml", text)
    root = ET.fromstring(text)
    assert len(root.findall("./testsuite/testcase/failure")) == int(root.get("failures"))


def test_html__scores__are_on_the_page(golden) -> None:
    golden("html/scores-threshold.html", without_assets(render("html", STATES["scores-threshold"], ON_GITHUB)))


def test_html__evaluators_and_tags_changed__are_in_a_table(golden) -> None:
    golden("html/metrics.html", without_assets(render("html", metrics(), ON_GITHUB)))


def test_html__cases_behave_differently__has_a_filter_a_mark_and_both_sides(golden) -> None:
    golden("html/behaviour.html", without_assets(render("html", behaviour(), ON_GITHUB)))


def test_html__few__is_one_whole_page(golden) -> None:
    page = render("html", few(), ON_GITHUB)
    golden("html/few.html", without_assets(page))
