"""What differs in how a run was measured: it stands below the verdict everywhere, whatever it says and however long."""

from __future__ import annotations

import re

import pytest

from eval_gate.config.policy import FailOn, Policy
from eval_gate.model.policy import EvaluationSetup, RunPolicy
from eval_gate.model.result import CaseFingerprints, RunResult
from eval_gate.model.setup import TargetIdentity
from eval_gate.model.setup_change import SetupChangeKind
from eval_gate.reports.check_run import render_check_run
from eval_gate.reports.console.style import ConsoleStyle
from eval_gate.reports.context import ReportContext
from eval_gate.reports.detail_levels import DETAIL_LEVELS
from eval_gate.reports.markdown import render_comment, render_summary
from eval_gate.reports.rendering import render
from eval_gate.reports.view.report_view import build_view
from eval_gate.results.baseline import Baseline
from tests.support.results import make_baseline_run, make_result, make_run, make_suite_result
from tests.support.verdicts import judge_against
from tests.support.write_setup_changes import EXAMPLES, PAGE, page

HOSTILE = "</details>|`x`\n::error::no ##[warning] @team #12 ![i](http://x) <script>alert(1)</script> \x1b[31m\u202e"
ON_GITHUB = ReportContext(name="support", comment_key="k", repository="acme/bot", base_branch="main")
STRICT = RunPolicy(fail_on=("changed", "regressions"), must_pass=("tag:safety",), reruns=6, trials=3)


def test_page_of_baselines__every_phrase__is_one_of_the_report() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.support.write_setup_changes"
    assert set(SetupChangeKind) - {change.kind for change, _ in EXAMPLES} == {
        *(SetupChangeKind.TIGHTENED, SetupChangeKind.CHANGED, SetupChangeKind.PROMPT_OR_EXPECTATION),
        *(SetupChangeKind.TARGET, SetupChangeKind.AGENT),
    }, "each has the phrase of another kind"


def _cases(names: list[str], judge_name: str, **parts: str) -> list:
    stick = {"prompt": "q", "expectation": "e", "judge": judge_name} | parts
    return [make_result(name, fingerprints=CaseFingerprints(**stick)) for name in names]


def bent(name: str = "refund/partial", many: int = 1) -> RunResult:
    """Everything at once, with this name wherever a name is shown."""
    gone = [f"{name} {number}" for number in range(many)]
    then = make_baseline_run(
        make_suite_result(_cases([*gone, "a", "b", "c"], "openai:gpt-5")),
        target=TargetIdentity(name=name, provider="openai", identity="openai:gpt-5", model="gpt-5"),
        policy=STRICT,
        setup=EvaluationSetup(snapshot=name, trials=3, reruns=6),
    )
    here = [
        *_cases(["a"], f"openai:gpt-5-mini {name}"),
        *_cases(["b"], "openai:gpt-5", expectation="weaker"),
        *_cases(["c"], "openai:gpt-5", grader="other", seeds="other", snapshot="other"),
    ]
    now = make_run(
        make_suite_result(here),
        target=TargetIdentity(name=name, provider="openai", identity="openai:gpt-5-mini", model=f"gpt-5-mini {name}"),
        setup=EvaluationSetup(snapshot=f"other {name}", trials=1, reruns=6),
    )
    policy = Policy(frozenset({FailOn.NEVER}), allowed_regressions=100, min_coverage=0.5)
    return judge_against(now, Baseline(then, "main", age_days=2, commits_behind=4), policy)


@pytest.mark.parametrize(("state", "run"), [("bent", bent()), ("hostile", bent(HOSTILE, 8))])
def test_reports__measured_differently__look_like_this(golden, state, run) -> None:
    golden(f"measured/{state}.md", render("md", run, ON_GITHUB))
    golden(f"measured/{state}-check.md", render_check_run(build_view(run, ON_GITHUB)).summary)
    golden(f"measured/{state}.txt", render("console", run, ReportContext()))


def test_reports__hostile_names__stay_in_their_place() -> None:
    run = bent(HOSTILE, 8)
    page = render("html", run, ON_GITHUB)
    assert "<script>alert" not in page
    assert 'class="measured"' in page
    for line in render("console", run, ReportContext(), style=ConsoleStyle(verbose=True)).splitlines():
        assert not line.lstrip().startswith("::")
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", line)
    block = next(
        line
        for line in render("md", run, ON_GITHUB).splitlines()
        if "Evaluation setup changed since the baseline" in line
    )
    outside = re.sub(r"(`+).*?\1", "", block)
    assert not re.search(r"[<>@]|!\[|\x1b", outside)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(len(DETAIL_LEVELS)))
def test_comment__every_step_of_the_ladder__keeps_the_block_before_any_fold(start) -> None:
    view = build_view(bent(many=300), ON_GITHUB)
    for text in (render_comment(view, start=start), render_summary(view)):
        block = text.partition("<details>")[0]
        assert "**Evaluation setup changed since the baseline:**\n\n- `fail" in block
        assert "300 cases that pass on main were removed" in block


@pytest.mark.slow
def test_summary__so_long_that_only_counts_are_left__keeps_the_block() -> None:
    names = [f"case {number} {'x' * 300}" for number in range(3000)]
    run = judge_against(
        make_run(dict.fromkeys(names, "failed")),
        Baseline(make_baseline_run(dict.fromkeys([*names, "gone"], "passed")), "main"),
        Policy(frozenset({FailOn.REGRESSIONS})),
    )
    assert "1 case that passes on main was removed" in render_comment(build_view(run, ON_GITHUB), limit=1_500)


def test_reports__nothing_differs__say_nothing() -> None:
    run = judge_against(make_run({"a": "passed"}), Baseline(make_baseline_run({"a": "passed"}), "main"), Policy())
    assert "setup" not in render("md", run, ON_GITHUB)
    assert build_view(run, ON_GITHUB).setup_changes is None
