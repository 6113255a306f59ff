"""Whatever became of a case that passes in the baseline and is broken here: a green gate has named it.

Chosen away, renamed, moved, deleted, skipped, held back, waived, of a lost part, in any order: it is named, or the gate
is not green, or the choice of cases left it out by what the baseline's own record says of it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from eval_gate.action.relay import recompute_result
from eval_gate.config.policy import FailOn, Policy
from eval_gate.config.selection import Selection
from eval_gate.errors import ExitCode
from eval_gate.gate.verdict_decision import GateInputs, decide_verdict
from eval_gate.gate.waivers.waiver_file import KnownWaivers
from eval_gate.model.case import CaseKey, Tier
from eval_gate.model.execution import ErrorKind
from eval_gate.model.result import WAITS_FOR_GATE, CaseResult, GitFacts, RunResult, Shard
from eval_gate.reports.context import ReportContext
from eval_gate.reports.rendering import render
from eval_gate.results.baseline import Baseline
from eval_gate.results.history import build_history
from eval_gate.results.merge import merge_runs
from tests.support.results import make_baseline_run, make_result, make_run, make_suite_result
from tests.support.sizes import size
from tests.support.verdicts import make_waiver

TODAY = date(2026, 11, 21)
TIERS = {"evals/a.golden.json": Tier.GOLDEN, "evals/b.rubric.json": Tier.RUBRIC}
GOLDEN, RUBRIC = TIERS
TAGS = ((), ("fast",), ("slow",), ("fast", "slow"))
SKIPPED: dict[str, dict[str, Any]] = {
    "skipped": {"status": "skipped", "error": "its author does not want it now"},
    "held back": {"status": "skipped", "error": WAITS_FOR_GATE},
    "not run": {"status": "not_run"},
    "evaluation_error": {"status": "error", "error_kind": ErrorKind.EVALUATION_ERROR, "error": "the judge broke"},
    "agent_unreachable": {"status": "error", "error_kind": ErrorKind.AGENT_UNREACHABLE, "error": "nobody there"},
    "agent_error": {"status": "error", "error_kind": ErrorKind.AGENT_ERROR, "error": "HTTP 500"},
}
MOVES = ("stays", "deleted", "other id", "flaky id", "known id", "other tags", "other file", "other question")


@dataclass(frozen=True)
class Written:
    """A case as its eval file has it."""

    file: str
    id: str
    tags: tuple[str, ...] = ()
    measures: str = ""

    def result(self, status: str, **fields: object) -> CaseResult:
        return make_result(self.id, status, tags=self.tags, fingerprint=self.measures, **fields)


@dataclass(frozen=True)
class Change:
    """The cases of the baseline, all passing; what each is here, None for gone; and those that are broken."""

    before: Sequence[Written]
    after: Sequence[Written | None]
    broken: Mapping[int, str]
    """By number: how it ends here, `fails` or a key of `SKIPPED`."""
    selection: Selection = field(default_factory=Selection)
    parts: int = 1
    lost: bool = False
    seed: int = 0


def run_of(cases: Sequence[tuple[Written, CaseResult]], **fields: Any) -> RunResult:
    by_file: dict[str, list[CaseResult]] = {}
    for one, result in cases:
        by_file.setdefault(one.file, []).append(result)
    suites = [make_suite_result(mine, eval_file=file, tier=TIERS[file]) for file, mine in by_file.items()]
    return make_run(*suites, **fields)


def ran(change: Change) -> RunResult:
    """The run of the change, in as many parts as it has, put together."""
    cases = []
    for number, one in enumerate(change.after):
        if one is None or not change.selection.includes_case(
            CaseKey(one.file, one.id), one.tags, TIERS[one.file].value
        ):
            continue
        how = change.broken.get(number)
        fields = {"status": "passed"} if how is None else SKIPPED.get(how, {"status": "failed", "error": "wrong"})
        cases.append((one, one.result(**fields)))
    random.Random(change.seed).shuffle(cases)
    fields = {"partial": change.selection.has_filters, "selections": change.selection.chosen_cases}
    if change.parts == 1:
        return run_of(cases, **fields)
    runs = [
        run_of(cases[at :: change.parts], shard=Shard(index=at + 1, count=change.parts), run_id=f"part-{at}", **fields)
        for at in range(change.parts)
    ]
    return merge_runs(runs[change.lost :], "joined")


@st.composite
def changes(draw: st.DrawFn) -> Change:
    before, after, broken = [], [], {}
    for number in range(draw(st.integers(2, 5))):
        was = Written(draw(st.sampled_from([GOLDEN, RUBRIC])), f"case-{number}", draw(st.sampled_from(TAGS)))
        was = Written(was.file, was.id, was.tags, f"measure {number}")
        before.append(was)
        if draw(st.booleans()):
            after.append(was)
            continue
        after.append(moved(was, draw(st.sampled_from(MOVES)), number))
        broken[number] = draw(st.sampled_from(["fails", "fails", *SKIPPED]))
    choices = [
        Selection(),
        Selection(tags=("fast",)),
        Selection(tiers=("golden",)),
        Selection(cases=("case-*",)),
        Selection(cases=("case-0", "case-1"), tags=("slow",)),
        Selection(keys=frozenset({CaseKey(GOLDEN, "case-0"), CaseKey(RUBRIC, "case-0"), CaseKey(GOLDEN, "case-1")})),
    ]
    parts = draw(st.sampled_from([1, 1, 2]))
    lost = parts > 1 and draw(st.booleans())
    selection = draw(st.sampled_from(choices))
    return Change(before, after, broken, selection, parts, lost, draw(st.integers(0, 5)))


def moved(was: Written, move: str, number: int) -> Written | None:
    match move:
        case "deleted":
            return None
        case "other id" | "flaky id" | "known id":
            return Written(was.file, f"{move.split(maxsplit=1)[0]}-{number}", was.tags, was.measures)
        case "other tags":
            return Written(was.file, was.id, ("other",), was.measures)
        case "other file":
            return Written(GOLDEN if was.file == RUBRIC else RUBRIC, was.id, was.tags, was.measures)
        case "other question":
            return Written(was.file, was.id, was.tags, "something easier")
    return was


@settings(max_examples=size(400))
@given(changes(), st.data())
def test_decide_verdict__case_that_passed_is_broken_here__is_named_or_the_gate_is_not_green(change, data) -> None:
    then = make_baseline_run(*run_of([(one, one.result("passed")) for one in change.before]).suites)
    policy = Policy(
        frozenset({FailOn.REGRESSIONS}),
        max_errors=data.draw(st.integers(0, 2)),
        allowed_regressions=data.draw(st.integers(0, 1)),
        must_pass=data.draw(st.sampled_from([(), ("case-0",), ("tag:fast",)])),
    )
    given_ = [make_waiver("flaky-*", "quarantine"), make_waiver("known-1"), make_waiver("case-1", is_new=False)]
    waivers = KnownWaivers(TODAY, data.draw(st.sampled_from([(), given_])), trusted=data.draw(st.booleans()))
    question = GateInputs(Baseline(then, "main", history=build_history([then])), policy, waivers)
    run = ran(change)
    judged = decide_verdict(run, question)
    assert judged.verdict is not None
    relayed = decide_verdict(recompute_result(run, GitFacts(sha="9e8d7c6b5a4f")), question)
    assert relayed.verdict is not None
    assert relayed.verdict.exit_code is judged.verdict.exit_code
    code = judged.verdict.exit_code
    event(f"exit {code.value}")
    if code is not ExitCode.PASSED:
        return
    assert all(case.error != WAITS_FOR_GATE for _, case in run.iter_cases())
    said = render("md", judged, ReportContext())
    for number, was in enumerate(change.before):
        if number not in change.broken:
            continue
        if not change.selection.includes_case(CaseKey(was.file, was.id), was.tags, TIERS[was.file].value):
            continue
        names = {was.id, *([one.id] if (one := change.after[number]) else [])}
        assert any(name in said for name in names), (was, change.after[number], change.broken[number], said)


def test_decide_verdict__must_pass_case_without_a_result__is_never_green() -> None:
    """Whatever is missing, as long as somebody chose cases or the case is there."""
    was = Written(GOLDEN, "case-0", ("fast",), "measure")
    other = Written(GOLDEN, "case-1", ("fast",), "another measure")
    then = make_baseline_run(*run_of([(was, was.result("passed")), (other, other.result("passed"))]).suites)
    question = GateInputs(Baseline(then, "main"), Policy(must_pass=("case-0",), max_errors=5))
    chosen = Selection(tags=("fast",))
    for after, broken in (([None, other], {}), *(([was, other], {0: how}) for how in SKIPPED)):
        judged = decide_verdict(ran(Change([was, other], after, broken, chosen)), question)
        assert judged.verdict is not None
        assert judged.verdict.exit_code is not ExitCode.PASSED, broken


def test_decide_verdict__record_of_chosen_cases_that_does_not_say_which__could_not_decide() -> None:
    then = make_baseline_run({"a": "passed", "b": "passed"})
    judged = decide_verdict(make_run({"a": "passed"}, partial=True), GateInputs(Baseline(then, "main"), Policy()))
    assert judged.verdict is not None
    assert (judged.verdict.exit_code, judged.verdict.reasons[0].code) == (ExitCode.INCOMPLETE, "missing-case-result")
    failed = make_baseline_run({"a": "passed", "b": "failed"})
    judged = decide_verdict(make_run({"a": "passed"}, partial=True), GateInputs(Baseline(failed, "main"), Policy()))
    assert judged.verdict is not None
    assert judged.verdict.exit_code is ExitCode.PASSED


def test_decide_verdict__must_pass_case_of_another_shard__is_not_missed_in_this_one() -> None:
    here, there = Written(GOLDEN, "case-0", ("fast",), "measure"), Written(GOLDEN, "case-1", ("fast",), "other")
    then = make_baseline_run(*run_of([(one, one.result("passed")) for one in (here, there)]).suites)
    question = GateInputs(Baseline(then, "main"), Policy(must_pass=("case-*",)))
    chosen = Selection(tags=("fast",))
    fields = {"partial": True, "selections": chosen.chosen_cases}
    parts = [
        run_of([(one, one.result("passed"))], shard=Shard(index=at, count=2), run_id=f"part-{at}", **fields)
        for at, one in enumerate((here, there), 1)
    ]
    for run in (*parts, merge_runs(parts, "joined")):
        judged = decide_verdict(run, question)
        assert judged.verdict is not None
        assert judged.verdict.exit_code is ExitCode.PASSED, judged.verdict.reasons
