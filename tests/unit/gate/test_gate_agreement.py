"""One verdict wherever a run is judged: `run`, `compare`, merged shards, the relay and `results:` say the same.

The worlds are random: a branch whose runs each re-run what is in doubt and carry the ledger on, and a pull request that
draws from tapes. Everything goes through the functions that the commands use, and over the disk.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import assume, event, example, given, settings
from hypothesis import strategies as st

from eval_gate.action.relay import recompute_result
from eval_gate.config.policy import FailOn, Policy
from eval_gate.gate.must_pass import add_idle_pattern_warnings
from eval_gate.gate.verdict_decision import GateInputs, decide_verdict
from eval_gate.gate.waivers.waiver_file import KnownWaivers
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass, Outcome
from eval_gate.model.evidence import GroundKind
from eval_gate.model.result import GitFacts, RunResult, Shard
from eval_gate.model.waiver import FileOrigin, Waiver, WaiverKind
from eval_gate.results.baseline import Baseline
from eval_gate.results.history import HISTORY_NAME
from eval_gate.results.merge import merge_runs
from eval_gate.results.run_reader import read_run, require_baseline
from eval_gate.results.run_writer import write_history, write_result
from eval_gate.session.history_update import build_next_history
from eval_gate.struct import replace
from tests.support.histories import Asked, Branch, Engine, permuted_ledger
from tests.support.sizes import size

pytestmark = pytest.mark.slow

TODAY = date(2026, 11, 21)
SUITES = ("a.json", "b.json")
MOST_RERUNS = 6
TAPE = st.text("PPPPPFFFCTUO", min_size=1, max_size=MOST_RERUNS + 1)
SEVERITY = {Outcome.PASSED: 0, Outcome.INCONCLUSIVE: 1, Outcome.FAILED: 2}


@dataclass(frozen=True)
class World:
    """What the branch's runs did, oldest first, and what the pull request does."""

    main: tuple[tuple[Asked, ...], ...]
    here: tuple[Asked, ...]
    policy: Policy
    reruns: int
    waivers: KnownWaivers | None = None
    trials: int = 1

    def branch(self) -> Branch:
        branch = Branch()
        for number, cases in enumerate(self.main):
            branch = branch.pushed(cases, self.policy, number, reruns=self.reruns, trials=self.trials)
        return branch

    def question(self, baseline: Baseline) -> GateInputs:
        return GateInputs(baseline, self.policy, waivers=self.waivers)

    def run(self, baseline: Baseline) -> RunResult:
        """As `run` and the action make it."""
        question = self.question(baseline)
        return decide_verdict(Engine(self.here, self.reruns, self.trials).run(question), question)


def quarantine(case: str) -> Waiver:
    origin = FileOrigin(file="f.yaml", line=3)
    return Waiver(kind=WaiverKind.QUARANTINE, case=case, reason="flaky", until=date(2026, 12, 1), origin=origin)


@st.composite
def worlds(draw: st.DrawFn, *, most_cases: int = 6) -> World:
    count = draw(st.integers(1, most_cases))
    runs = draw(st.integers(1, 5))
    graded = draw(st.booleans())
    base: list[Asked] = []
    for number in range(count):
        tags = ("safety",) if draw(st.integers(0, 5)) == 0 else ()
        suite = draw(st.sampled_from(SUITES))
        base.append(
            Asked(
                suite,
                f"case-{number}",
                "P",
                graded=graded and draw(st.booleans()),
                dependent=draw(st.integers(0, 7)) == 0,
                tags=tags,
                line=number + 1,
            )
        )
    steady = st.one_of(st.just("P"), st.just("P"), st.just("P"), st.just("F"), TAPE)
    main = tuple(tuple(replace(one, tape=draw(steady)) for one in base if draw(st.integers(0, 9))) for _ in range(runs))
    here = []
    for one in base:
        fate = draw(st.integers(0, 12))
        if fate == 0:
            continue
        if fate == 1:
            one = replace(one, measures=f"another measure of {one.id}")  # noqa: PLW2901
        if fate == 2:
            one = replace(one, id=f"{one.id}-renamed", measures=f"measures {one.suite} {one.id}")  # noqa: PLW2901
        if fate == 3:
            other = SUITES[one.suite == SUITES[0]]
            one = replace(one, suite=other, measures=f"measures {one.suite} {one.id}")  # noqa: PLW2901
        here.append(replace(one, tape=draw(st.one_of(st.just("P"), st.just("F"), TAPE))))
    here += [Asked(draw(st.sampled_from(SUITES)), "new", draw(TAPE), line=99)] if draw(st.integers(0, 3)) == 0 else []
    names = draw(st.lists(st.sampled_from(["case-0", "case-1", "case-*"]), max_size=1))
    policy = Policy(
        frozenset({FailOn.REGRESSIONS}),
        allowed_regressions=draw(st.integers(0, 3)),
        pass_score=0.8 if graded else 1.0,
        must_pass=draw(st.sampled_from([(), ("tag:safety",), ("case-2",)])),
        max_errors=draw(st.integers(0, 2)),
        false_alarm_rate=draw(st.sampled_from([0.05, 0.2])),
    )
    waivers = KnownWaivers(TODAY, tuple(map(quarantine, names))) if names else None
    reruns = draw(st.sampled_from([0, 2, MOST_RERUNS, MOST_RERUNS]))
    return World(main, tuple(here), policy, reruns, waivers, draw(st.sampled_from([1, 1, 3])))


def said(judged: RunResult) -> dict[str, Any]:
    """Everything that another judge has to say as well."""
    comparison, verdict = judged.comparison, judged.verdict
    assert comparison is not None
    assert verdict is not None
    return {
        "outcome": verdict.outcome,
        "exit code": verdict.exit_code,
        "reasons": [one.code for one in verdict.reasons],
        "rules": verdict.rules,
        "suite": comparison.suite_finding,
        "cases": {one.key: replace(one, location=None, baseline_evaluator_scores={}) for one in comparison.changes},
    }


def without_order(run: RunResult) -> RunResult:
    """The run without how many cases each re-run executed first, which other orders have otherwise."""
    assert run.comparison is not None
    changes = tuple(
        one if one.grounds is None else replace(one, grounds=replace(one.grounds, cases_before=0))
        for one in run.comparison.changes
    )
    return replace(run, comparison=replace(run.comparison, changes=changes))


def executed(run: RunResult) -> dict[CaseKey, int]:
    """How often each case was run."""
    return {key: len(case.list_executions()) for key, case in run.iter_cases()}


class Desk:
    """Keeps what is judged in a results folder, and judges it again from there."""

    def __init__(self, world: World, branch: Branch, folder: Path) -> None:
        self.world, self.folder = world, folder
        assert branch.newest is not None
        write_history(folder, branch.newest.run_id, branch.ledger)
        write_result(folder, branch.newest)
        self.main = str(folder / branch.newest.run_id)

    @property
    def baseline(self) -> Baseline:
        """As the command line finds it."""
        found = require_baseline(_NOBODY, self.main, self.folder)
        assert found.result.run_id != _NOBODY.run_id
        return found

    def forget(self) -> None:
        """The ledger beside the baseline is gone."""
        (Path(self.main) / HISTORY_NAME).unlink()

    def kept(self, run: RunResult, name: str) -> RunResult:
        """Written and read again."""
        write_history(self.folder, name, build_next_history(run, self.baseline))
        write_result(self.folder, replace(run, run_id=name))
        return read_run(name, self.folder)

    def again(self, run: RunResult) -> RunResult:
        """As `compare` and a step with `results:` judge it."""
        return decide_verdict(
            add_idle_pattern_warnings(run, self.world.policy.must_pass), self.world.question(self.baseline)
        )

    def merged(self, parts: Sequence[Sequence[Asked]]) -> RunResult:
        """Each part run and judged alone, then joined and judged."""
        world, judged = self.world, []
        parts = [part for part in parts if part]
        for number, part in enumerate(parts, 1):
            question = world.question(self.baseline)
            shard = {"shard": Shard(index=number, count=len(parts))}
            engine = Engine(part, world.reruns, world.trials, planned=len(world.here), fields=shard)
            judged.append(self.kept(decide_verdict(engine.run(question), question), f"part-{number}"))
        return self.again(self.kept(merge_runs(judged, "merged"), "merged"))


def spared(run: RunResult) -> list[str]:
    """The cases that were not run again because the gate was red already."""
    assert run.comparison is not None
    return [
        one.case_id
        for one in run.comparison.changes
        if one.grounds is not None and one.grounds.kind is GroundKind.GATE_FAILED
    ]


_NOBODY = msgspec.convert(
    {
        "runId": "nobody",
        "timestamp": "2026-11-21T10:00:00Z",
        "complete": True,
        "tool": {"version": "1"},
        "target": {"name": "agent", "provider": "http", "identity": "x"},
    },
    RunResult,
)


_KNOWN_CASE = Asked(SUITES[0], "case-0", "P")
_NEW_CASE_ALONE = World(
    main=((_KNOWN_CASE,), ()),
    here=(_KNOWN_CASE, Asked(SUITES[0], "new", "C", line=99)),
    policy=Policy(frozenset({FailOn.REGRESSIONS})),
    reruns=2,
)
"""A shard whose only case is new: that it is run three times says nothing about how often other cases are."""


def at_desk(world: World, check: Callable[[Desk, RunResult], None]) -> None:
    branch = world.branch()
    assume(branch.newest is not None and world.here)
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(world, branch, Path(folder))
        run = world.run(desk.baseline)
        assert run.verdict is not None
        event(f"{run.verdict.outcome}")
        check(desk, run)


@settings(max_examples=size(80))
@given(worlds())
def test_decide_verdict__stored_run__is_judged_again_as_at_first(world: World) -> None:
    def check(desk: Desk, run: RunResult) -> None:
        stored = desk.kept(run, "here")
        assert said(desk.again(stored)) == said(run)
        relayed = recompute_result(stored, GitFacts(sha="f" * 40))
        assert said(decide_verdict(relayed, world.question(desk.baseline))) == said(run)
        desk.forget()
        assert said(desk.again(stored)) == said(run)

    at_desk(world, check)


@settings(max_examples=size(80))
@given(worlds(), st.lists(st.integers(0, 3), min_size=7, max_size=7))
@example(_NEW_CASE_ALONE, [0, 1])
def test_decide_verdict__shards_that_are_merged__say_what_the_whole_run_says(world: World, places: list[int]) -> None:
    assume(any(one.tape[0] in "PFC" for one in world.here))  # a shard cannot know that nobody answers anywhere
    late = any("T" in one.tape for one in world.here)

    def check(desk: Desk, run: RunResult) -> None:
        assume(not spared(run))  # which cases are spared depends on what else is in a part
        parts = [[one for one, at in zip(world.here, places, strict=False) if at == place] for place in range(4)]
        merged = desk.merged(parts)
        # nor how many were late: where one was it asks on until the answers decide, which is another run
        if executed(merged) == executed(run) or not late:
            assert said(merged) == said(run)
        desk.forget()
        assert said(desk.again(read_run("merged", desk.folder))) == said(merged)

    at_desk(world, check)


@settings(max_examples=size(120))
@given(worlds(most_cases=8), st.data())
def test_decide_verdict__one_more_failure__is_never_milder(world: World, data: st.DataObject) -> None:
    passes = [(at, place) for at, one in enumerate(world.here) for place, x in enumerate(one.tape) if x == "P"]
    assume(passes)
    at, place = data.draw(st.sampled_from(passes))
    tape = world.here[at].tape
    worse = replace(world.here[at], tape=f"{tape[:place]}F{tape[place + 1 :]}{tape[-1]}")
    here = (*world.here[:at], worse, *world.here[at + 1 :])
    branch = world.branch()
    assume(branch.newest is not None)
    for allowed in range(4):
        policy = replace(world.policy, allowed_regressions=allowed)
        before, after = (replace(world, here=cases, policy=policy).run(branch.baseline) for cases in (world.here, here))
        assert severity(after) >= severity(before), (said(before), said(after))


def severity(run: RunResult) -> int:
    """A gate that is red only because too much could not be measured says no more than one that could not decide."""
    assert run.verdict is not None
    unmeasured = {reason.code for reason in run.verdict.reasons} <= {"max-errors", "min-coverage"}
    failed = run.verdict.outcome is Outcome.FAILED
    return SEVERITY[Outcome.INCONCLUSIVE if failed and unmeasured else run.verdict.outcome]


@settings(max_examples=size(60))
@given(worlds(), st.randoms(use_true_random=False))
def test_decide_verdict__other_order_of_cases_suites_and_history__changes_nothing(world: World, random) -> None:
    branch = world.branch()
    assume(branch.newest is not None)
    assert branch.newest is not None
    here = list(world.here)
    random.shuffle(here)
    suites = tuple(replace(suite, cases=suite.cases[::-1]) for suite in branch.newest.suites[::-1])
    other = Branch(replace(branch.newest, suites=suites), permuted_ledger(branch.ledger))
    run = world.run(branch.baseline)
    assume(not spared(run))  # which cases are spared depends on which come first
    assert said(without_order(replace(world, here=tuple(here)).run(other.baseline))) == said(without_order(run))


# one small world for each way in which judges disagreed


def world_of(here: dict[str, str], *main: dict[str, str], reruns: int = 6, **fields) -> World:
    """Tapes of the pull request, and of the branch's runs from the oldest to the newest; `a.json/x` names a file."""

    def asked(tapes: dict[str, str]) -> tuple[Asked, ...]:
        places = ((("/" in name and name) or f"a.json/{name}").split("/") for name in tapes)
        return tuple(Asked(*place, tape) for place, tape in zip(places, tapes.values(), strict=True))

    policy = fields.pop("policy", Policy(frozenset({FailOn.REGRESSIONS})))
    return World(tuple(map(asked, main)), asked(here), policy, reruns, **fields)


@pytest.fixture
def desk(tmp_path) -> Callable[[World], Desk]:
    return lambda world: Desk(world, world.branch(), tmp_path)


def classes(run: RunResult) -> dict[str, CaseClass]:
    assert run.comparison is not None
    return {one.case_id: one.change for one in run.comparison.changes}


def test_decide_verdict__plain_rule_and_no_history_any_more__compares_with_the_runs_of_then(desk) -> None:
    """`a` was unreachable in the newest run of the branch: what it did before is in the record of the run as well."""
    world = world_of({"a": "F", "b": "P"}, {"a": "P", "b": "P"}, {"a": "U", "b": "P"}, reruns=0)
    at = desk(world)
    run = at.kept(world.run(at.baseline), "here")
    at.forget()
    assert classes(at.again(run)) == classes(run) == {"a": CaseClass.REGRESSION, "b": CaseClass.STILL_PASSING}


def test_decide_verdict__relayed_part_of_a_plan__is_held_to_the_bar_of_the_whole_plan(desk) -> None:
    """Fewer cases would make it a regression there."""
    names = [f"c{number}" for number in range(40)]
    world = world_of({"c0": "FPFFPFF"}, *[dict.fromkeys(names, "P")] * 4)
    at = desk(world)
    question = world.question(at.baseline)
    run = decide_verdict(Engine(world.here, planned=4000, fields={"partial": True}).run(question), question)
    relayed = decide_verdict(recompute_result(at.kept(run, "here"), GitFacts(sha="f" * 40)), question)
    assert relayed.comparison.evidence == run.comparison.evidence
    assert said(relayed) == said(run)


def test_decide_verdict__quarantine_of_a_glob__does_not_depend_on_the_other_cases_of_it(desk) -> None:
    """One of them could not be judged here: the other is set aside all the same, as in a shard without the first."""
    steady = {"case-0": "P", "case-1": "P", "b": "P"}
    main = [steady, steady, steady | {"case-0": "U"}]
    world = world_of(
        {"case-0": "U", "case-1": "F", "b": "P"}, *main, waivers=KnownWaivers(TODAY, (quarantine("case-*"),))
    )
    at = desk(world)
    assert said(at.merged([world.here[:1], world.here[1:]])) == said(world.run(at.baseline))
    alone = replace(world, here=tuple(replace(one, tape="P") if one.id == "case-1" else one for one in world.here))
    assert alone.run(at.baseline).comparison.suite_finding.cases == 1


def test_decide_verdict__quarantined_case_that_must_pass_by_its_tag__teaches_all_parts_the_same(desk) -> None:
    """The part without it took it for set aside, learned something else of the branch, and nothing joined the two."""
    must = Asked("a.json", "case-0", "P", tags=("safety",))
    others = tuple(Asked("a.json", name, "P", line=line) for line, name in enumerate("abc", 2))
    flaky = replace(must, tape="F")
    policy = Policy(frozenset({FailOn.REGRESSIONS}), must_pass=("tag:safety",))
    waivers = KnownWaivers(TODAY, (quarantine("case-0"),))
    at = desk(World(((flaky, *others), (must, *others)), (must, *others), policy, 0, waivers))
    run = at.world.run(at.baseline)
    merged = at.merged([at.world.here[:1], at.world.here[1:]])
    assert merged.comparison.evidence == run.comparison.evidence
    at.forget()
    assert said(at.again(read_run("merged", at.folder))) == said(merged) == said(run)


def test_decide_verdict__only_case_of_a_shard_is_too_late__gets_the_verdict_of_the_whole_run(desk) -> None:
    """The shard makes all its re-runs: the whole may see another share of errors than it does."""
    world = world_of({"a": "T", "b": "P", "c": "P"}, *[dict.fromkeys("abc", "P")] * 4)
    at = desk(world)
    run, merged = world.run(at.baseline), at.merged([world.here[:1], world.here[1:]])
    assert (classes(run)["a"], run.verdict.exit_code) == (CaseClass.REGRESSION, 1)
    assert (classes(merged), merged.verdict.exit_code) == (classes(run), 1)


def test_decide_verdict__moved_file_with_another_question__is_the_same_in_shards(desk) -> None:
    """By its name only the whole can tell: to a shard, the file may well be in another shard."""
    world = world_of({"z.json/a": "P", "z.json/b": "P"}, {"a.json/a": "P", "a.json/b": "P"})
    changed = tuple(replace(one, measures=f"another of {one.id}") for one in world.here)
    world = replace(world, here=changed)
    at = desk(world)
    run = world.run(at.baseline)
    assert set(classes(run).values()) == {CaseClass.INCOMPARABLE}
    assert said(at.merged([world.here[:1], world.here[1:]])) == said(run)


def test_decide_verdict__new_file_in_a_shard_of_its_own__is_not_the_one_of_another_shard(desk) -> None:
    world = world_of({"a.json/x": "P", "b.json/x": "F"}, *[{"a.json/x": "P"}] * 3)
    at = desk(world)
    run = world.run(at.baseline)
    assert [one.change for one in run.comparison.changes] == [CaseClass.STILL_PASSING, CaseClass.ADDED]
    assert said(at.merged([world.here[:1], world.here[1:]])) == said(run)


def test_merge__part_that_is_missing__its_cases_are_not_gone(desk) -> None:
    world = world_of({"a": "P", "b": "P"}, {"a": "P", "b": "P"})
    at = desk(world)
    question = world.question(at.baseline)
    first = Engine(world.here[:1], planned=2, fields={"shard": Shard(index=1, count=2)}).run(question)
    joined = at.again(merge_runs([decide_verdict(first, question)], "joined"))
    assert (classes(joined), joined.comparison.setup_changes.removed_cases) == ({"a": CaseClass.STILL_PASSING}, 0)
    assert joined.verdict.exit_code == 3


def test_decide_verdict__open_cases_within_the_allowed_regressions__leave_nothing_open(desk) -> None:
    """Worse than a regression they cannot be; and then the gate would pass."""
    world = world_of({"a": "FOOOOOO", "b": "P"}, *[{"a": "P", "b": "P"}] * 4)
    at = desk(world)
    for allowed, patterns, outcome in ((0, (), "inconclusive"), (1, (), "passed"), (1, ("a",), "failed")):
        policy = replace(world.policy, allowed_regressions=allowed, must_pass=patterns)
        assert replace(world, policy=policy).run(at.baseline).verdict.outcome == outcome


def test_reruns__some_say_nothing__goes_on_until_it_is_decided_or_none_are_left(desk) -> None:
    """The engine stopped here, and the verdict then missed the re-runs that nobody had made."""
    names = [f"c{number}" for number in range(5)]
    world = world_of(dict.fromkeys(names, "P") | {"c0": "CFPOPU"}, *[dict.fromkeys(names, "P")] * 3)
    at = desk(world)
    question = world.question(at.baseline)
    stopped = [
        (tape, case.rerun_stop_reason)
        for tape in ("CFPOPU", "FFPOPPP", "FPOFOPF", "FFOPOF", "FOOPFFF", "FPOOOFF")
        for _, case in Engine((replace(world.here[0], tape=tape), *world.here[1:])).run(question).iter_cases()
        if case.rerun_stop_reason is not None and case.rerun_stop_reason.value == "run_stopped"
    ]
    assert stopped == []


def much_broke(**fields) -> World:
    """Thirty of forty cases died at once, one of the others failed by chance, and main had passed all of them."""
    names = [f"c{number:02}" for number in range(40)]
    here = {name: "F" if number < 30 else "FPPP" if number == 35 else "P" for number, name in enumerate(names)}
    return world_of(here, *[dict.fromkeys(names, "P")] * 6, **fields)


def test_decide_verdict__cases_were_spared__all_say_the_same_of_them(desk) -> None:
    world = much_broke()
    at = desk(world)
    run = world.run(at.baseline)
    assert (run.verdict.exit_code, len(spared(run))) == (1, 19)
    stored = at.kept(run, "here")
    assert said(at.again(stored)) == said(run)
    assert said(decide_verdict(recompute_result(stored, GitFacts(sha="f" * 40)), world.question(at.baseline))) == said(
        run
    )
    at.forget()
    assert said(at.again(stored)) == said(run)


def test_decide_verdict__shards_that_spared_cases__are_as_red_as_one_run_and_call_no_other_case_a_regression(
    desk,
) -> None:
    world = much_broke()
    at = desk(world)
    whole, merged = world.run(at.baseline), at.merged([world.here[place::4] for place in range(4)])
    assert merged.verdict.exit_code == whole.verdict.exit_code == 1
    died = {one.id for one in world.here if one.tape == "F"}
    for run in (whole, merged):
        of_class = {one.case_id for one in run.comparison.select_changes(CaseClass.REGRESSION)}
        assert of_class <= died
        assert died <= of_class | set(spared(run))


def test_decide_verdict__the_confirmed_ones_are_accepted_later__spared_cases_keep_the_gate_from_passing(desk) -> None:
    """Nobody knows of them, so there is no verdict; who accepts all of them by a glob accepts them too."""
    world = much_broke()
    at = desk(world)
    run = at.kept(world.run(at.baseline), "here")
    confirmed = tuple(one.case_id for one in run.comparison.select_changes(CaseClass.REGRESSION))
    for names, outcome in ((confirmed, Outcome.INCONCLUSIVE), (("c*",), Outcome.PASSED)):
        given = tuple(replace(quarantine(name), kind=WaiverKind.WAIVER) for name in names)
        waivers = KnownWaivers(TODAY, given)
        judged = decide_verdict(run, replace(world.question(at.baseline), waivers=waivers))
        assert (names, judged.verdict.outcome) == (names, outcome)
    more = replace(world.policy, allowed_regressions=30)
    assert (
        decide_verdict(run, replace(world.question(at.baseline), policy=more)).verdict.outcome is Outcome.INCONCLUSIVE
    )
    more = replace(world.policy, allowed_regressions=31)
    assert decide_verdict(run, replace(world.question(at.baseline), policy=more)).verdict.outcome is Outcome.PASSED
