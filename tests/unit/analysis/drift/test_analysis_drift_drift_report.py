"""The issue about main in words: sizes first, commits as links, and nothing of what strangers wrote is alive."""

from __future__ import annotations

import math

import pytest

from eval_gate.analysis.drift.branch_drift import Degradation, Drift, ModelChange
from eval_gate.analysis.drift.case_drift import CaseDegradation
from eval_gate.analysis.drift.drift_report import (
    format_issue_title,
    iter_console_lines,
    list_degraded_names,
    render_issue,
    render_recovery_comment,
    render_summary_part,
)
from eval_gate.model.case import CaseKey
from eval_gate.model.evidence import Counts, RunReference
from eval_gate.reports.context import ReportContext
from eval_gate.results.history import HistoryRun
from eval_gate.results.levels import LevelKind, RunLevels
from eval_gate.struct import replace

CONTEXT = ReportContext(repository="acme/bot", server_url="https://github.com", run_url="https://github.com/run/1")
BOUNDS = ("last_good", "first_bad", "last_surely_good", "first_surely_bad")


def run(number: int, sha: str | None = None) -> RunLevels:
    return RunLevels(run_id=f"run-{number}", timestamp=f"2026-11-{number:02}T03:00:00Z", sha=sha or f"{number:040x}")


def worse(measured: LevelKind, then: float, now: float, *cases: CaseDegradation, same: bool = False) -> Degradation:
    before = run(16, sha="e" * 40)
    since = run(17, sha="e" * 40 if same else "f" * 40)
    return Degradation(measured, then, now, before, since, run(14, sha="a" * 40), since, 7, cases)


def case(name: str) -> CaseDegradation:
    return CaseDegradation(
        CaseKey("evals/a.json", name),
        counts_before=Counts(passes=19, failures=1),
        counts_since=Counts(failures=7),
        last_good=RunReference(run_id="g", sha="a" * 40),
        first_bad=RunReference(run_id="b", sha="b" * 40),
    )


def drift(*found: Degradation, broken: tuple[CaseDegradation, ...] = ()) -> Drift:
    return Drift(run(23), 30, found, broken, examined_levels=tuple(LevelKind))


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (worse(LevelKind.FAILING_BEFORE_RERUNS, 0.02, 0.08), "The failure rate before re-runs rose by 6.0 points"),
        (worse(LevelKind.FAILING, 0.0, 0.01), "The failure rate rose by 1.0 points: 0.0 % before, 1.0 % now."),
        (worse(LevelKind.SCORE, 0.9, 0.8), "Scores fell from 0.90 to 0.80."),
        (worse(LevelKind.JUDGE, 0.9, 0.8), "The judge gives lower scores to the same responses: −0.10"),
        (worse(LevelKind.TIME, 1.0, 1.0 + math.log(1.8)), "A case takes 1.8 × as long."),
        (worse(LevelKind.COST, -5.0, -5.0 + math.log(1.4)), "A case costs 1.4 × as much."),
    ],
)
def test_issue__each_thing_that_is_worse__is_said_with_its_size_and_its_commits(one, says) -> None:
    body = render_issue(drift(one), "main", CONTEXT)
    assert says in body
    assert f"[{'e' * 7}…{'f' * 7}](https://github.com/acme/bot/compare/{'e' * 40}...{'f' * 40})" in body
    assert f"compare/{'a' * 40}...{'f' * 40}" in body
    assert "Since 2026-11-17 (7 runs)" in body
    assert any(says in line for line in iter_console_lines(drift(one)))


def test_drift__runs_without_commits__are_named_by_their_times() -> None:
    known = worse(LevelKind.TIME, 1.0, 2.0)
    one = replace(
        known,
        **{name: replace(getattr(known, name), sha=None) for name in BOUNDS},
    )
    good, bad = (HistoryRun(run_id=f"r{day}", timestamp=f"2026-11-{day}T03:07:09Z") for day in (18, 19))
    found = replace(
        drift(one, broken=(replace(case("c"), last_good=good, first_bad=bad),)),
        newest=replace(run(23), sha=None),
    )
    said = [
        "\n".join(iter_console_lines(found)),
        render_issue(found, "main", CONTEXT),
        render_recovery_comment(found, "main", CONTEXT),
    ]
    assert not any("unknown" in words or "not known" in words for words in said)
    assert "probably between the run of 2026-11-16 03:00 and the run of 2026-11-17 03:00" in said[0]
    assert "last good: the run of 2026-11-18 03:07, first bad: the run of 2026-11-19 03:07" in said[0]
    assert "Probable cause: the commits between the run of 2026-11-16 03:00 and the run of 2026-11-17 03:00" in said[1]
    assert said[2].endswith("up to the run of 2026-11-23 03:00, are as good as before.")


def test_issue__no_commit_between__says_that_nothing_of_ours_changed() -> None:
    body = render_issue(drift(worse(LevelKind.TIME, 1.0, 2.0, same=True)), "main", CONTEXT)
    assert "**The repository did not change**" in body
    assert "the model behind the agent" in body


def changed_model(*, same: bool = False, **names: str) -> ModelChange:
    before, since = names.get("before", "gpt-x-0613"), names.get("since", "gpt-x-1106")
    return ModelChange(
        replace(run(16, sha="e" * 40), models=(before,)),
        replace(run(17, sha="e" * 40 if same else "f" * 40), models=(since,)),
        7,
    )


def test_issue__another_model_answered_then__is_said_with_what_is_worse_and_only_once() -> None:
    one = replace(worse(LevelKind.TIME, 1.0, 2.0, same=True), model_change=changed_model(same=True))
    found = replace(drift(one), model_changes=(changed_model(same=True),))
    body = render_issue(found, "main", CONTEXT)
    assert (
        "ran before and since. The model behind it changed on 2026-11-17: `gpt-x-0613` before, "
        "`gpt-x-1106` since." in body
    )
    assert body.count("gpt-x-0613") == 1
    assert "a service, or data" not in body
    assert sum("gpt-x-0613" in line for line in iter_console_lines(found)) == 1


@pytest.mark.parametrize(("same", "says"), [(True, "the repository did not change"), (False, "in between: [")])
def test_part__another_model_answered_and_nothing_is_worse__is_said_as_a_fact(same, says) -> None:
    part = render_summary_part(replace(drift(), model_changes=(changed_model(same=same),)), "main", CONTEXT)
    assert "did not get worse over 30 runs. The model behind it changed on 2026-11-17" in part
    assert "(7 runs)" in part
    assert says in part


def test_part__model_named_with_markup__is_dead_text() -> None:
    change = changed_model(since="`</sub>` @everyone <img src=x>")
    part = render_summary_part(replace(drift(), model_changes=(change,)), "main", CONTEXT)
    assert "`` `</sub>` @everyone <img src=x> ``" in part


def test_issue__names_with_markup_and_mentions__are_dead_text() -> None:
    evil = "`@octocat` <!-- x --> [a](http://evil) \n# head"
    body = render_issue(drift(broken=(case(evil),)), "main", CONTEXT)
    (line,) = [line for line in body.splitlines() if "octocat" in line]
    assert "``" in line  # inside a code span longer than any run of backticks in the name, all on one line
    assert not any(line.startswith("# head") for line in body.splitlines())


def test_issue__very_many_cases__stays_short() -> None:
    body = render_issue(drift(broken=tuple(case(f"c{at}" * 100) for at in range(500))), "main", CONTEXT)
    assert "and 490 more" in body
    assert len(body) < 20_000


def test_title__a_gate_with_a_name__is_its_own() -> None:
    assert format_issue_title("main", None) == "main got worse over several runs"
    assert format_issue_title("main", "sales") == "main got worse over several runs (sales)"


def test_part__too_few_runs__does_not_say_that_all_is_well() -> None:
    part = render_summary_part(Drift(run(1), 5), "main", CONTEXT)
    assert "cannot be detected yet" in part
    assert "5 runs" in part


def test_names__what_is_worse__in_a_word_each() -> None:
    assert list_degraded_names(drift(worse(LevelKind.TIME, 1.0, 2.0), broken=(case("a"),))) == ("time", "single cases")
