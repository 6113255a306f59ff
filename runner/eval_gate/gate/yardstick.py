"""What differs in how a run was measured from how its baseline was: rules, cases, graders, targets. Pure.

The agent has no part in this: each of these can turn a verdict while the agent stays what it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from eval_gate.gate.evidence.past import NewestEarlier
from eval_gate.gate.loosening import changed_rules
from eval_gate.gate.moved_cases import absent_cases, earlier_keys, is_whole
from eval_gate.gate.must_pass import must_pass
from eval_gate.gate.setup_changes import SetupChange, SetupChanges
from eval_gate.model.case import CaseKey
from eval_gate.model.execution import Status
from eval_gate.model.policy import Measuring, RunPolicy
from eval_gate.model.result import HELD_BACK, CaseResult, RunResult, Yardstick
from eval_gate.model.setup import TargetIdentity
from eval_gate.model.yardstick import Difference, DifferenceKind, MeasuredDifferences, TouchedCase
from eval_gate.struct import replace

MAX_NAMED: Final = 20
"""Cases of one difference that are kept by name."""
MAX_GROUPS: Final = 20
"""Judges and targets that are told one by one."""
LEAST_OF_ANOTHER_TOOL: Final = 0.5
"""The share of the baseline's cases that another tool's results have to hold where `min_coverage` says nothing."""
_ORDER: Final = {kind: place for place, kind in enumerate(DifferenceKind)}
_GROUPED: Final = frozenset({DifferenceKind.JUDGE, DifferenceKind.SETUP, DifferenceKind.MOVED, DifferenceKind.AGENT})
"""Differences of which each has a group of cases of its own."""
_YARDSTICK: Final = frozenset(
    {
        *(
            DifferenceKind.EMPTIED,
            DifferenceKind.FEWER_CHECKS,
            DifferenceKind.EXPECTATION,
            DifferenceKind.QUESTION,
            DifferenceKind.CASES_BEFORE,
            DifferenceKind.ASKED,
        ),
        *(
            DifferenceKind.GRADER,
            DifferenceKind.JUDGE,
            DifferenceKind.RECORDED,
            DifferenceKind.SEEDS,
            DifferenceKind.SNAPSHOT_SOURCE,
        ),
        *(DifferenceKind.SETUP, DifferenceKind.MOVED),
    }
)
"""Differences that make the yardstick of a case another one."""
_CHECKED: Final = frozenset(
    {DifferenceKind.EMPTIED, DifferenceKind.FEWER_CHECKS, DifferenceKind.EXPECTATION, DifferenceKind.ASKED}
)
"""Differences in what the answer of a case is held against."""
_CHANGED: Final = _YARDSTICK | {DifferenceKind.SKIPPED}
"""Differences that `fail-on: changed` is about, of cases that passed."""


def measured_differences(
    then: RunResult,
    now: RunResult,
    policy: RunPolicy,
    *,
    lost: Mapping[CaseKey, NewestEarlier] = MappingProxyType({}),
) -> MeasuredDifferences:
    """Everything that differs, the weightiest first. `then` has its own policy on record, `policy` is the one of `now`.

    `lost` are the cases that the baseline could not judge, as an earlier run did. Both runs are held to their pass
    scores. What one of the records does not say is no difference.
    """
    rules: tuple[Difference, ...] = ()
    if then.policy:
        rules = (*changed_rules(_covering(then.policy, then), _covering(policy, now)), *_freed(then, now, policy))
    touched = _cases(then, now, lost)
    found = [*rules, *touched.differences(), *_targets(then, now, moved=bool(touched.by_kind[DifferenceKind.MOVED]))]
    return MeasuredDifferences(
        differences=tuple(sorted(found, key=lambda one: _ORDER[one.kind])),
        removed=len(touched.by_kind[DifferenceKind.REMOVED]),
        changed=len({case.key for kind in _CHANGED for case in touched.by_kind[kind] if case.passed}),
        loosened=sum(rule.kind is DifferenceKind.LOOSENED for rule in rules),
    )


def _covering(policy: RunPolicy, run: RunResult) -> RunPolicy:
    """The rules with the least coverage that another tool's results have to reach where nobody says one."""
    if policy.min_coverage is not None or not run.by_another_tool:
        return policy
    return replace(policy, min_coverage=LEAST_OF_ANOTHER_TOOL)


def _freed(then: RunResult, now: RunResult, policy: RunPolicy) -> Iterator[Difference]:
    """Cases that had to pass and that no rule means any more, though it is still there: gone, renamed, a tag less."""
    assert then.policy is not None
    kept = [pattern for pattern in then.policy.must_pass if pattern in policy.must_pass]
    if not kept:
        return
    here, moved = now.by_key(), {old: new for new, old in earlier_keys(then, now).items()}
    gone = set(absent_cases(then, now).removed) if is_whole(now) else ()

    def is_free(key: CaseKey) -> bool:
        other = here.get(moved.get(key, key))
        return key in gone if other is None else not must_pass(other, policy.must_pass)

    freed = [case.id for key, case in then.cases() if must_pass(case, kept) and is_free(key)]
    if freed:
        named = ", ".join(freed[:MAX_NAMED])
        yield Difference(kind=DifferenceKind.LOOSENED, subject="must-pass", then=named, count=len(freed))


class _Case:
    """One case of the baseline, and whether it passed there, or in the newest run that could judge it."""

    def __init__(self, key: CaseKey, became: CaseKey | None, *, passed: bool) -> None:
        self.key, self.passed = key, passed
        self._became = became

    def touched(self) -> TouchedCase:
        became = self._became
        name = None if became is None else became.case_id if became.case_id != self.key.case_id else became.suite
        return TouchedCase(suite=self.key.suite, case_id=self.key.case_id, became=name)


class _Touched:
    """The cases that something differs about, by what it is."""

    def __init__(self, snapshots: tuple[str | None, str | None], recorded: str | None = None) -> None:
        self.sources = {DifferenceKind.SNAPSHOT_SOURCE: snapshots, DifferenceKind.RECORDED: (None, recorded)}
        self.by_kind: dict[DifferenceKind, list[_Case]] = defaultdict(list)
        self.judges: dict[tuple[str | None, str | None], list[_Case]] = defaultdict(list)
        self.setups: dict[SetupChange, list[_Case]] = defaultdict(list)

    def differences(self) -> Iterator[Difference]:
        for kind, cases in self.by_kind.items():
            if kind not in _GROUPED and cases:
                yield _difference(kind, cases, *self.sources.get(kind, (None, None)))
        groups = sorted(self.judges.items(), key=lambda group: -len(group[1]))
        for (then, now), cases in groups[:MAX_GROUPS]:
            yield _difference(DifferenceKind.JUDGE, cases, then, now)
        for change, cases in sorted(self.setups.items(), key=lambda group: (-len(group[1]), *map(str, group[0])))[
            :MAX_GROUPS
        ]:
            difference = _difference(change.kind, cases, change.then, change.now)
            yield replace(difference, subject=change.subject, setting=change.name, setup_of=change.whose)


def _difference(
    kind: DifferenceKind, cases: Sequence[_Case], then: str | None = None, now: str | None = None
) -> Difference:
    named = tuple(case.touched() for case in cases[:MAX_NAMED])
    return Difference(kind=kind, then=then, now=now, count=len(cases), cases=named)


def _cases(then: RunResult, now: RunResult, lost: Mapping[CaseKey, NewestEarlier]) -> _Touched:
    before, after = then.measuring or Measuring(), now.measuring or Measuring()
    found, here = _Touched((before.snapshot, after.snapshot), after.recorded), now.by_key()
    moved = {old: new for new, old in earlier_keys(then, now).items()}
    fixed, removed = _fixed(then.measuring, now.measuring), set(absent_cases(then, now).removed)
    setups, by_another_tool = SetupChanges(then, now), then.by_another_tool and now.by_another_tool
    for key, case in then.cases():
        own = moved.get(key, key)
        other = here.get(own)
        passed = case.passed or (key in lost and lost[key].passed)
        known = _Case(key, own if own != key else None, passed=passed)
        if other is None:
            if passed and key in removed:
                found.by_kind[DifferenceKind.REMOVED].append(known)
            continue
        changes = setups.of(case, other, (key.suite, own.suite))
        for change in changes:
            found.setups[change].append(known)
        for kind in {change.kind for change in changes}:
            found.by_kind[kind].append(known)
        parts = [*_parts(case, other, passed=passed, fixed_snapshot=fixed)]
        for kind in (*parts, *(_scorers_gone(case, other, parts) if by_another_tool else ())):
            found.by_kind[kind].append(known)
            if kind is DifferenceKind.JUDGE:
                found.judges[_judge(case), _judge(other)].append(known)
        if passed and after.recorded and _may_be_recorded(other, after.judges):
            found.by_kind[DifferenceKind.RECORDED].append(known)
        if own != key:
            found.by_kind[DifferenceKind.RENAMED].append(known)
    return found


def _parts(then: CaseResult, now: CaseResult, *, passed: bool, fixed_snapshot: bool) -> Iterator[DifferenceKind]:
    """What is another one about this case. What it checks only matters where it passed; who grades it, always."""
    one, other = then.yardstick or Yardstick(), now.yardstick or Yardstick()
    asked = {
        DifferenceKind.EXPECTATION: (one.expectation, other.expectation),
        DifferenceKind.QUESTION: (one.question, other.question),
    }
    differ = [kind for kind, sides in asked.items() if _differ(*sides)]
    if passed:
        yield from (_weighed(kind, then, now) for kind in differ)
    if passed and (then.dependent or now.dependent) and _differ(one.before, other.before):
        yield DifferenceKind.CASES_BEFORE
    if passed and now.status is Status.SKIPPED and now.error != HELD_BACK:
        yield DifferenceKind.SKIPPED
    if then.yardstick and now.yardstick:
        graded = {
            DifferenceKind.GRADER: (one.grader, other.grader),
            DifferenceKind.JUDGE: (one.judge, other.judge),
            DifferenceKind.SEEDS: (one.seeds, other.seeds),
            DifferenceKind.SNAPSHOT_SOURCE: (one.snapshot, other.snapshot) if fixed_snapshot else (None, None),
        }
        # a part that only one of the two has came or went with its evaluator, which is the expectation
        alike = [kind for kind, sides in graded.items() if sides[0] != sides[1] and (None not in sides or not differ)]
        yield from alike
        differ += alike
    if passed and not differ and _differ(then.fingerprint, now.fingerprint):
        yield _weighed(DifferenceKind.ASKED, then, now)
    elif passed and not set(differ) & set(asked) and (less := _leads_nowhere(then, now)):
        yield less


def _weighed(kind: DifferenceKind, then: CaseResult, now: CaseResult) -> DifferenceKind:
    """The same, or that the case checks less than it did, which only a case that passes can tell."""
    before, after = (case.assertions_run + case.assertions_skipped for case in (then, now))
    if kind is DifferenceKind.QUESTION or not now.passed:
        return kind
    if then.assertions_run and not now.assertions_run:
        return DifferenceKind.EMPTIED
    return DifferenceKind.FEWER_CHECKS if after < before else kind


def _scorers_gone(then: CaseResult, now: CaseResult, parts: Iterable[DifferenceKind]) -> Iterator[DifferenceKind]:
    """That a case of another tool passes without a scorer that it had; as many others are another expectation.

    Nothing where `parts` say so already.
    """
    if not then.passed or not now.passed or _CHECKED.intersection(parts):
        return
    before, after = (
        {one.name for one in case.evaluator_results} if len(case.evaluator_results) == case.assertions_run else set()
        for case in (then, now)  # of many cases not all of what was said is kept
    )
    if then.assertions_run > now.assertions_run:
        yield DifferenceKind.FEWER_CHECKS if now.assertions_run else DifferenceKind.EMPTIED
    elif after and before - after:
        yield DifferenceKind.EXPECTATION


def _may_be_recorded(case: CaseResult, judges: Sequence[TargetIdentity]) -> bool:
    """Whether its answer was a recorded one, or a model graded it: of a judge's replies no record says so.

    Nobody records what a command says. Of a judge that is not among those on record nobody knows what it is.
    """
    who = _judge(case)
    if case.details.replayed or who is None:
        return case.details.replayed
    known = [judge for judge in judges if judge.identity in who]
    return not known or any(judge.model is not None for judge in known)


def _leads_nowhere(then: CaseResult, now: CaseResult) -> DifferenceKind | None:
    """That the case passes for want of values: the same checks, of which fewer could be made, whatever their source."""
    if not now.passed or now.assertions_skipped <= then.assertions_skipped or now.assertions_run >= then.assertions_run:
        return None
    return DifferenceKind.FEWER_CHECKS if now.assertions_run else DifferenceKind.EMPTIED


def _differ(then: str | None, now: str | None) -> bool:
    return then is not None and now is not None and then != now


def _judge(case: CaseResult) -> str | None:
    return case.yardstick.judge if case.yardstick else None


def _fixed(then: Measuring | None, now: Measuring | None) -> bool:
    """Whether other values of a snapshot say anything: live ones are others each time, unless their source is."""
    if then is None or now is None:
        return False
    source = (then.snapshot, then.snapshot_scripts) != (now.snapshot, now.snapshot_scripts)
    return source or now.snapshot_fixed


def _targets(then: RunResult, now: RunResult, *, moved: bool) -> Iterator[Difference]:
    """Other addresses, programs and models behind the same names; where no name is the same, another target.

    `moved`: the cases say that.
    """
    before, after = _by_name(then), _by_name(now)
    same = [name for name in after if name in before]
    if not same and not moved:
        were, are = _several(before.values()), _several(after.values())
        if were == are:  # told apart by their names alone
            were, are = _names(before.values()), _names(after.values())
        yield Difference(kind=DifferenceKind.TARGET, then=were, now=are)
    yield from [one for name in same for one in _one_target(name, before[name], after[name])][:MAX_GROUPS]


def _one_target(name: str, then: TargetIdentity, now: TargetIdentity) -> Iterator[Difference]:
    if then.provider != now.provider:
        yield Difference(kind=DifferenceKind.TARGET, subject=name, then=then.provider, now=now.provider)
    if then.model != now.model:
        yield Difference(kind=DifferenceKind.MODEL, subject=name, then=then.model, now=now.model)
    elif then.identity != now.identity:
        yield Difference(kind=DifferenceKind.TARGET, subject=name, then=then.identity, now=now.identity)


def _several(targets: Iterable[TargetIdentity]) -> str:
    return ", ".join(sorted(target.identity for target in targets)[:MAX_GROUPS])


def _names(targets: Iterable[TargetIdentity]) -> str:
    return ", ".join(sorted(target.name for target in targets)[:MAX_GROUPS])


def _by_name(run: RunResult) -> Mapping[str, TargetIdentity]:
    return {target.name: target for target in run.targets or (run.target,)}
