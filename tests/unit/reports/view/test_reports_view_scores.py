"""How grades are worded, and that every report has the same ones."""

import json
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.config.outputs import JunitFailures
from eval_gate.config.policy import FailOn, Policy
from eval_gate.gate.failure_causes import find_cause
from eval_gate.model.comparison import Outcome
from eval_gate.model.execution import EvaluatorResult
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.model.setup import TargetIdentity
from eval_gate.reports.case_annotations import build_annotations
from eval_gate.reports.check_run import render_check_run
from eval_gate.reports.context import ReportContext
from eval_gate.reports.markdown import render_comment, render_summary
from eval_gate.reports.rendering import render
from eval_gate.reports.rerun_command import build_rerun_command
from eval_gate.reports.view.report_view import ReportView, build_view
from eval_gate.reports.view.scores import compute_mean_score, describe_shortfalls
from eval_gate.reports.wording.numbers import format_score, format_score_change
from eval_gate.results.baseline import NOT_REQUESTED, Baseline
from eval_gate.results.history import build_history
from tests.support.graded import make_evaluator, make_graded, make_graded_baseline, make_graded_run, make_graded_suite
from tests.support.pages import case_on
from tests.support.results import make_run
from tests.support.verdicts import judge_against

POLICY = Policy(frozenset({FailOn.REGRESSIONS}))


def judged(now: RunResult, then: RunResult | None = None, policy: Policy = POLICY) -> RunResult:
    return judge_against(now, Baseline(then, "b") if then else NOT_REQUESTED, policy)


def make_view(now: RunResult, then: RunResult | None = None, policy: Policy = POLICY) -> ReportView:
    return build_view(judged(now, then, policy), ReportContext())


@pytest.mark.parametrize(
    ("value", "least", "words"),
    [
        (2 / 3, 1.0, "0.67"),
        (1.0, 1.0, "1.00"),
        (0.996, 1.0, "0.996"),
        (0.9999999, 1.0, "0.99999"),
        (0.7996, 0.8, "0.7996"),
        (0.8, 0.8, "0.80"),
        (0.0, 1.0, "0.00"),
        (-1e308, 1.0, "-1e+308"),
    ],
)
def test_score__number__never_looks_as_if_it_reached_what_it_does_not(value, least, words) -> None:
    assert format_score(value, least) == words


@given(st.floats(0, 1).map(lambda value: round(value, 5)), st.sampled_from([0.5, 0.8, 0.85, 1.0]))
def test_score__any_of_five_digits__is_on_the_right_side_of_the_limit(value, least) -> None:
    shown = float(format_score(value, least))
    assert (shown >= least) == (value >= least)
    assert abs(shown - value) <= 0.005 + 1e-9


@pytest.mark.parametrize(
    ("change", "words"),
    [(-0.23, " (−0.23)"), (0.1, " (+0.10)"), (0.0, ""), (-0.004, ""), (None, "")],
)
def test_score_change__number__has_a_sign(change, words) -> None:
    assert format_score_change(change) == words


def test_shortfalls__several_evaluators__the_one_that_costs_most_first_and_bounded() -> None:
    results = (
        make_evaluator("small", 0.9, misses=()),
        make_evaluator("heavy", 0.5, weight=4, misses=("one", "  ", "two", "three")),
        make_evaluator("full"),
        make_evaluator("ignored", 0.0, weight=0),
        make_evaluator("low", 0.2, misses=(), reasoning="it is\nnot polite"),
        make_evaluator("least", 0.95),
    )
    case = make_graded("a", 0.6, evaluator_results=results)
    assert describe_shortfalls(case, {"heavy": 0.75, "small": 0.9}) == (
        "heavy 0.75 → 0.50: one; 2 more",
        "low 0.20: it is ⏎ not polite",
        "small 0.90",
        "1 more below 1",
    )
    assert find_cause(case) == "low score: heavy"


def test_shortfalls__something_required__comes_first_and_says_so() -> None:
    results = (make_evaluator("low", 0.1), make_evaluator("rules", 0.9, vetoed=True, misses=("no refund named",)))
    assert (
        describe_shortfalls(make_graded("a", 0.5, evaluator_results=results))[0]
        == "rules 0.90, required: no refund named"
    )


def test_shortfalls__error_or_yes_or_no__has_none() -> None:
    low = (make_evaluator("low", 0.1),)
    assert describe_shortfalls(make_graded("a", status="error", evaluator_results=low)) == ()
    assert describe_shortfalls(make_graded("a", 0.1, evaluator_results=low, graded=False)) == ()


def test_shortfalls__huge_texts__are_cut() -> None:
    case = make_graded("a", 0.1, evaluator_results=(make_evaluator("n" * 9_000, 0.1, misses=("m" * 9_000,) * 900),))
    assert sum(map(len, describe_shortfalls(case))) < 500


@pytest.mark.contract("agentv.results.errors-apart")
def test_mean_score__of_judged_cases__and_its_change_of_compared_ones() -> None:
    now = [make_graded("a", 0.5), make_graded("b", 0.9), make_graded("new", 0.1), make_graded("e", status="error")]
    view = make_view(make_graded_run(now), make_graded_baseline({"a": 0.9, "b": 0.8}))
    assert str(view.suites[0].score) == "0.50 (−0.15)"
    assert compute_mean_score(make_run({"a": "failed"}).suites[0].cases, ()) is None


def test_view__several_trials__shows_the_mean_and_how_many_passed() -> None:
    view = make_view(make_graded_run([make_graded("a", trials=(0.9, 1.0, 0.5))]), make_graded_baseline({"a": 1.0}))
    assert (view.regressions[0].baseline_result, view.regressions[0].current_result) == (
        "1.00",
        "0.80, 1 of 3 pass (−0.20)",
    )


def test_view__score_that_did_not_change__is_said_once() -> None:
    view = make_view(make_graded_run({"a": 0.8, "b": 0.801}), make_graded_baseline({"a": 0.8, "b": 0.8}))
    assert [row.scores for row in view.still_failing] == ["0.80", "0.80"]


def test_view__history__shows_the_mean_over_it() -> None:
    runs = tuple(make_graded_baseline({"a": value}, run_id=f"r{value}") for value in (1.0, 0.8, 0.6))
    run = judge_against(make_graded_run({"a": 0.5}), Baseline(runs[0], "b", history=build_history(runs)), POLICY)
    assert build_view(run, ReportContext()).regressions[0].baseline_result == "1.00, 0.80 over 3 runs"


def test_view__many_failures_of_one_evaluator__have_one_cause() -> None:
    cases = [make_graded(f"c{number}", evaluators={"policy": 0.1 + number / 100, "style": 0.9}) for number in range(20)]
    view = make_view(make_graded_run(cases), make_graded_baseline({case.id: 1.0 for case in cases}))
    assert [(cause.text, cause.count) for cause in view.causes] == [("low score: policy", 20)]


def test_view__score_drop_among_still_failing__is_not_called_known() -> None:
    view = make_view(make_graded_run({"a": 0.3, "b": 0.8}), make_graded_baseline({"a": 0.9, "b": 0.8}))
    assert [row.id for row in view.still_failing] == ["a", "b"]
    assert [row.id for row in view.known_failing] == ["b"]
    assert [row.id for row in view.score_drops] == ["a"]


def test_view__several_targets__are_all_named() -> None:
    targets = tuple(TargetIdentity(name=name, provider="cli", identity=f"./{name}") for name in ("a", "b"))
    run = judged(make_graded_run([make_graded("x", target="b")], target=targets[0], targets=targets))
    assert build_view(run, ReportContext()).targets == ("./a", "./b")
    assert "against `./a`, `./b`." in render("md", run, ReportContext()) + render_summary(
        build_view(run, ReportContext())
    )
    assert case_on(render("html", run, ReportContext()), "x")["target"] == "b"


def test_remarks__score_drops__block_only_where_the_gate_says_so() -> None:
    now, then = make_graded_run({"a": 0.3}), make_graded_baseline({"a": 0.9})
    for most, blocking in ((None, False), (0.2, True)):
        found = build_annotations(
            make_view(now, then, Policy(frozenset({FailOn.REGRESSIONS}), max_score_drop=most))
        ).items
        assert [(remark.title, remark.blocking) for remark in found] == [("Score drop: a", blocking)]
        assert found[0].message.startswith("0.90 → 0.30 (−0.60). ")


def test_rerun__names__what_got_worse_and_nothing_that_is_accepted() -> None:
    now, then = {"a": 0.3, "b": 0.85, "c": 0.2}, {"a": 0.9, "b": 0.85, "c": 0.2}
    assert (
        build_rerun_command(["run"], judged(make_graded_run(now), make_graded_baseline(then))).command
        == "eval-gate run --case a"
    )
    alone = judged(make_graded_run(now), policy=Policy(pass_score=0.8))
    assert build_rerun_command(["run"], alone).command == "eval-gate run --case a,c"


def test_comment__hundreds_of_score_drops__are_cut_and_counted() -> None:
    names = [f"case-{number:03}" for number in range(300)]
    then, now = (dict.fromkeys(names, value) for value in (0.9, 0.2))
    view = make_view(make_graded_run(now), make_graded_baseline(then))
    text = render_comment(view)
    assert "**300 score drops:** the score of each case fell by more than 0.10" in text
    assert "20 of 300 score drops, largest drop first" in text
    assert "280 more are in the results of the run." in text
    for limit in (2_000, 5_000, 20_000):
        short = render_comment(view, limit=limit)
        assert len(short) <= limit
        assert "300 score drops" in short


HOSTILE = "</details>|`x`\n::error::no ##[warning] @team #12 ![i](http://x) <script>alert(1)</script> \x1b[31m\u202e"


def test_reports__hostile_evaluators__stay_in_their_form() -> None:
    low = make_evaluator(HOSTILE, 0.2, misses=(HOSTILE,), reasoning=HOSTILE, type=HOSTILE)
    now = make_graded_run([make_graded(HOSTILE, 0.2, evaluator_results=(low,), target=HOSTILE)])
    run = judged(now, make_graded_baseline([make_graded(HOSTILE, 0.9)]))
    for text in (render("md", run, ReportContext()), render_summary(build_view(run, ReportContext()))):
        outside = re.sub(r"<summary>.*</summary>|(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
        assert [word for word in ("<script", "@team", "![i]") if word in outside] == []
    assert render("html", run, ReportContext()).count("<script") == 4  # ours, and the data
    console = render("console", run, ReportContext())
    assert "\x1b" not in console
    assert not any(line.lstrip().startswith("::") for line in console.splitlines())
    ET.fromstring(render("junit", run, ReportContext()))
    assert [json.loads(line)["eval_id"] for line in render("agentv", run, ReportContext()).splitlines()] == [HOSTILE]


GRADES = st.sampled_from([0.0, 0.3, 0.5, 0.79, 0.8, 0.85, 0.996, 1.0])
SIDES = st.dictionaries(st.sampled_from("abcdef"), GRADES, min_size=1, max_size=6)


@given(SIDES, SIDES, st.sampled_from([0.5, 0.8, 1.0]))
def test_reports__any_graded_run__have_the_same_numbers(then, now, least) -> None:
    run = judged(make_graded_run(now), make_graded_baseline(then), Policy(pass_score=least))
    view = build_view(run, ReportContext())
    passed = sum(value >= least for value in now.values())
    drops = sum(
        name in then and round(then[name] - value, 6) > 0.1 and not (then[name] >= least > value)
        for name, value in now.items()
    )
    assert (view.summary.passed, view.summary.failed, len(view.score_drops)) == (passed, len(now) - passed, drops)
    failing = len(now) - passed
    counts = f"{passed} pass" + (f", {failing} {'does' if failing == 1 else 'do'} not pass" if failing else "")
    assert counts in render_comment(view)
    assert counts in render_summary(view)
    assert counts in render_check_run(view).summary
    console = " ".join(render("console", run, ReportContext()).split())
    assert f" {passed} of {len(now)} pass" in console
    assert counts.partition(", ")[2] in console
    everything = ET.fromstring(render("junit", run, ReportContext(junit=JunitFailures.ALL)))
    assert len([*everything.iter("failure")]) >= len(now) - passed
    assert (not [*everything.iter("failure")]) == (passed == len(now) and run.verdict.outcome is Outcome.PASSED)
    rule = next(rule for rule in run.verdict.rules if rule.name == "Failures")
    assert rule.value == str(len(now) - passed)


def test_suite_table__no_graded_suite__has_no_score_column() -> None:
    assert "Mean score" not in render("md", judged(make_run({"a": "failed"})), ReportContext())
    assert "Mean score" in render("md", judged(make_run(make_graded_suite({"a": 0.5}))), ReportContext())


def test_describe_shortfalls__turn_of_a_conversation__says_what_its_evaluators_missed() -> None:
    members = (make_evaluator("style", 0.4), make_evaluator("facts"), EvaluatorResult(name="x", type="y", score=0.9))
    turn = EvaluatorResult(name="turn 3", type="turn", score=0.4, evaluator_results=members)
    unsent = EvaluatorResult(name="turn 4", type="turn", score=0.0, misses=("not sent",))
    case = make_graded("a", 0.2, evaluator_results=(turn, unsent))
    assert describe_shortfalls(case, {"turn 3": 1.0}) == (
        "turn 4 0.00: not sent",
        "turn 3 1.00 → 0.40: style: style is not what it should be; x: 0.90",
    )


def test_heading__the_same_turn_of_two_conversations_fell__is_no_evaluator_that_fell() -> None:
    def make_cases(score: float, kind: str) -> list[CaseResult]:
        result = EvaluatorResult(name="turn 3", type=kind, score=score)
        return [make_graded(name, score, evaluator_results=(result,)) for name in "ab"]

    for kind, is_named in (("turn", False), ("llm_judge", True)):
        baseline = Baseline(make_graded_baseline(make_cases(1.0, kind)), "main")
        view = build_view(judge_against(make_graded_run(make_cases(0.4, kind)), baseline), ReportContext())
        assert ("turn 3" in view.heading) is is_named
