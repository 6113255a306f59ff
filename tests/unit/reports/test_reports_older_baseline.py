"""A baseline of a commit before the base: what the commits between them did counts too, and where that is said."""

import pytest

from eval_gate.config.policy import FailOn, Policy
from eval_gate.model.result import GitFacts
from eval_gate.reports.context import ReportContext
from eval_gate.reports.rendering import render
from eval_gate.results.baseline import Baseline
from tests.support.results import make_baseline_run, make_run
from tests.support.verdicts import judge_against

BASE = "b" * 40
SAID = "bbbbbbb, the base of this change, has no result."


def judged(status: str, *, since: int | None, allowed: int = 0, sha: str = "c" * 40):
    baseline = Baseline(make_baseline_run({"a": "passed"}), "main", base_sha=BASE, commits_since=since)
    return judge_against(
        make_run({"a": status}, git=GitFacts(sha=sha)),
        baseline,
        Policy(frozenset({FailOn.REGRESSIONS}), allowed_regressions=allowed),
    )


def render_form(form: str, run) -> str:
    text = render(form, run, ReportContext(base_branch="main", head_sha="c" * 40))
    return " ".join(text.replace("`", "").split())


@pytest.mark.parametrize("form", ["md", "console", "html"])
def test_report__red_and_older_than_the_base__says_which_commits_count_too(form) -> None:
    text = render_form(form, judged("failed", since=3))
    assert f"{SAID} The baseline is 3 commits older: their effects count too (3f2c1ab..bbbbbbb)" in text
    assert form == "console" or "1 regression, including 3 earlier commits (3f2c1ab..bbbbbbb)" in text


@pytest.mark.parametrize(("status", "since"), [("passed", 3), ("failed", 0), ("failed", None)])
@pytest.mark.parametrize("form", ["md", "console", "html"])
def test_report__nothing_red_or_not_older__says_nothing(form, status, since) -> None:
    text = render_form(form, judged(status, since=since))
    assert (SAID in text, "including" in text) == (False, False)


@pytest.mark.parametrize(("since", "commits"), [(1, None), (2, "is 1 commit: its"), (3, "are 2 commits: their")])
def test_report__of_a_push__does_not_count_the_pushed_commit_itself(since, commits) -> None:
    """It is held against its own commit, and the nearest before it has the result."""
    own = judged("failed", since=since, sha=BASE)
    for form in ("md", "console", "html"):
        text = render_form(form, own)
        assert SAID not in text
        between = f"Between the baseline and bbbbbbb {commits} effects count too (3f2c1ab..bbbbbbb^)"
        assert (between in text) is (commits is not None), text
    assert ("including" in render_form("md", own)) is (commits is not None)


def test_report__allowed__says_it_all_the_same() -> None:
    text = render_form("md", judged("failed", since=1, allowed=1))
    assert "⚠️ Agent eval gate — 1 regression, including 1 earlier commit (3f2c1ab..bbbbbbb), allowed" in text
    assert SAID in text


@pytest.mark.parametrize(
    ("context", "words"),
    [
        ({"workspace_sha": "d" * 40}, "Evaluated `ccccccc`, merged with `main` at `bbbbbbb` for this test ·"),
        ({"workspace_sha": "c" * 40}, "Evaluated `ccccccc`, not merged into `main` yet ·"),
        (
            {"workspace_sha": "d" * 40, "is_believed": True},
            "`bbbbbbb` for this test (there is no checkout to confirm it; the workflow says `ddddddd`) ·",
        ),
        ({}, "Evaluated `ccccccc`, merged with `main` for this test ·"),
    ],
)
def test_provenance__workspace__is_named_as_far_as_it_is_known(context, words) -> None:
    given = {"base_branch": "main", "head_sha": "c" * 40} | context
    assert words in render("md", judged("passed", since=0), ReportContext(**given))
