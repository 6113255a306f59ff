"""Changes of the evaluation setup since the baseline: rules, cases, judges and targets. Pure.

The agent has no part in this: each of these can turn a verdict while the agent stays what it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from eval_gate.gate.case_matching import find_absent_cases, find_earlier_keys, has_all_cases
from eval_gate.gate.evidence.case_history import EarlierResult
from eval_gate.gate.must_pass import is_must_pass
from eval_gate.gate.policy_changes import find_policy_changes
from eval_gate.gate.setting_changes import CaseSettingChange, SettingComparison
from eval_gate.model.case import CaseKey
from eval_gate.model.execution import Status
from eval_gate.model.policy import Measuring, RunPolicy
from eval_gate.model.result import HELD_BACK, CaseResult, RunResult, Yardstick
from eval_gate.model.setup import TargetIdentity
from eval_gate.model.yardstick import Difference, DifferenceKind, MeasuredDifferences, TouchedCase
from eval_gate.struct import replace

MAX_NAMED_CASES: Final = 20
"""Cases of one difference that are kept by name."""
MAX_GROUPS: Final = 20
"""Judges and targets that are told one by one."""
DEFAULT_EXTERNAL_COVERAGE: Final = 0.5
"""The share of the baseline's cases that another tool's results have to hold where `min_coverage` says nothing."""
_KIND_ORDER: Final = {kind: place for place, kind in enumerate(DifferenceKind)}
_GROUPED_KINDS: Final = frozenset(
    {DifferenceKind.JUDGE, DifferenceKind.SETUP, DifferenceKind.MOVED, DifferenceKind.AGENT}
)
"""Differences of which each has a group of cases of its own."""
_FINGERPRINT_KINDS: Final = frozenset(
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
_EXPECTATION_KINDS: Final = frozenset(
    {DifferenceKind.EMPTIED, DifferenceKind.FEWER_CHECKS, DifferenceKind.EXPECTATION, DifferenceKind.ASKED}
)
"""Differences in what the answer of a case is held against."""
_CHANGED_KINDS: Final = _FINGERPRINT_KINDS | {DifferenceKind.SKIPPED}
"""Differences that `fail-on: changed` is about, of cases that passed."""


def find_setup_changes(
    then: RunResult,
    now: RunResult,
    policy: RunPolicy,
    *,
    lost: Mapping[CaseKey, EarlierResult] = MappingProxyType({}),
) -> MeasuredDifferences:
    """Find everything that differs, the weightiest first. The baseline has its own policy on record.

    `lost` are the cases that the baseline could not judge, as an earlier run did. Both runs are held to their pass
    scores. What one of the records does not say is no difference.
    """
    rules: tuple[Difference, ...] = ()
    if then.policy:
        rules = (
            *find_policy_changes(_add_default_coverage(then.policy, then), _add_default_coverage(policy, now)),
            *_find_freed_cases(then, now, policy),
        )
    touched = _compare_cases(then, now, lost)
    found = [
        *rules,
        *touched.iter_differences(),
        *_compare_targets(then, now, moved=bool(touched.by_kind[DifferenceKind.MOVED])),
    ]
    return MeasuredDifferences(
        differences=tuple(sorted(found, key=lambda one: _KIND_ORDER[one.kind])),
        removed=len(touched.by_kind[DifferenceKind.REMOVED]),
        changed=len({case.key for kind in _CHANGED_KINDS for case in touched.by_kind[kind] if case.passed}),
        loosened=sum(rule.kind is DifferenceKind.LOOSENED for rule in rules),
    )


def _add_default_coverage(policy: RunPolicy, run: RunResult) -> RunPolicy:
    """The rules with the least coverage that another tool's results have to reach where nobody says one."""
    if policy.min_coverage is not None or not run.by_another_tool:
        return policy
    return replace(policy, min_coverage=DEFAULT_EXTERNAL_COVERAGE)


def _find_freed_cases(then: RunResult, now: RunResult, policy: RunPolicy) -> Iterator[Difference]:
    """Cases that had to pass and that no rule means any more, though it is still there: gone, renamed, a tag less."""
    assert then.policy is not None
    kept = [pattern for pattern in then.policy.must_pass if pattern in policy.must_pass]
    if not kept:
        return
    here, moved = now.by_key(), {old: new for new, old in find_earlier_keys(then, now).items()}
    gone = set(find_absent_cases(then, now).removed) if has_all_cases(now) else ()

    def is_free(key: CaseKey) -> bool:
        other = here.get(moved.get(key, key))
        return key in gone if other is None else not is_must_pass(other, policy.must_pass)

    freed = [case.id for key, case in then.cases() if is_must_pass(case, kept) and is_free(key)]
    if freed:
        named = ", ".join(freed[:MAX_NAMED_CASES])
        yield Difference(kind=DifferenceKind.LOOSENED, subject="must-pass", then=named, count=len(freed))


class _BaselineCase:
    """One case of the baseline, and whether it passed there, or in the newest run that could judge it."""

    def __init__(self, key: CaseKey, became: CaseKey | None, *, passed: bool) -> None:
        self.key, self.passed = key, passed
        self._became = became

    def to_touched_case(self) -> TouchedCase:
        became = self._became
        name = None if became is None else became.case_id if became.case_id != self.key.case_id else became.suite
        return TouchedCase(suite=self.key.suite, case_id=self.key.case_id, became=name)


class _ChangedCases:
    """The cases that something differs about, by what it is."""

    def __init__(self, snapshots: tuple[str | None, str | None], recorded: str | None = None) -> None:
        self.sources = {DifferenceKind.SNAPSHOT_SOURCE: snapshots, DifferenceKind.RECORDED: (None, recorded)}
        self.by_kind: dict[DifferenceKind, list[_BaselineCase]] = defaultdict(list)
        self.judges: dict[tuple[str | None, str | None], list[_BaselineCase]] = defaultdict(list)
        self.setups: dict[CaseSettingChange, list[_BaselineCase]] = defaultdict(list)

    def iter_differences(self) -> Iterator[Difference]:
        for kind, cases in self.by_kind.items():
            if kind not in _GROUPED_KINDS and cases:
                yield _build_difference(kind, cases, *self.sources.get(kind, (None, None)))
        groups = sorted(self.judges.items(), key=lambda group: -len(group[1]))
        for (then, now), cases in groups[:MAX_GROUPS]:
            yield _build_difference(DifferenceKind.JUDGE, cases, then, now)
        for change, cases in sorted(self.setups.items(), key=lambda group: (-len(group[1]), *map(str, group[0])))[
            :MAX_GROUPS
        ]:
            difference = _build_difference(change.kind, cases, change.baseline_value, change.current_value)
            yield replace(difference, subject=change.subject, setting=change.name, setup_of=change.owner)


def _build_difference(
    kind: DifferenceKind, cases: Sequence[_BaselineCase], then: str | None = None, now: str | None = None
) -> Difference:
    named = tuple(case.to_touched_case() for case in cases[:MAX_NAMED_CASES])
    return Difference(kind=kind, then=then, now=now, count=len(cases), cases=named)


def _compare_cases(then: RunResult, now: RunResult, lost: Mapping[CaseKey, EarlierResult]) -> _ChangedCases:
    before, after = then.measuring or Measuring(), now.measuring or Measuring()
    found, here = _ChangedCases((before.snapshot, after.snapshot), after.recorded), now.by_key()
    moved = {old: new for new, old in find_earlier_keys(then, now).items()}
    fixed, removed = _is_snapshot_comparable(then.measuring, now.measuring), set(find_absent_cases(then, now).removed)
    setups, by_another_tool = SettingComparison(then, now), then.by_another_tool and now.by_another_tool
    for key, case in then.cases():
        own = moved.get(key, key)
        other = here.get(own)
        passed = case.passed or (key in lost and lost[key].passed)
        known = _BaselineCase(key, own if own != key else None, passed=passed)
        if other is None:
            if passed and key in removed:
                found.by_kind[DifferenceKind.REMOVED].append(known)
            continue
        changes = setups.find_changes(case, other, (key.suite, own.suite))
        for change in changes:
            found.setups[change].append(known)
        for kind in {change.kind for change in changes}:
            found.by_kind[kind].append(known)
        parts = [*_compare_fingerprints(case, other, passed=passed, fixed_snapshot=fixed)]
        for kind in (*parts, *(_find_missing_scorers(case, other, parts) if by_another_tool else ())):
            found.by_kind[kind].append(known)
            if kind is DifferenceKind.JUDGE:
                found.judges[_get_judge(case), _get_judge(other)].append(known)
        if passed and after.recorded and _can_be_recorded(other, after.judges):
            found.by_kind[DifferenceKind.RECORDED].append(known)
        if own != key:
            found.by_kind[DifferenceKind.RENAMED].append(known)
    return found


def _compare_fingerprints(
    then: CaseResult, now: CaseResult, *, passed: bool, fixed_snapshot: bool
) -> Iterator[DifferenceKind]:
    """What is another one about this case. What it checks only matters where it passed; who grades it, always."""
    one, other = then.yardstick or Yardstick(), now.yardstick or Yardstick()
    asked = {
        DifferenceKind.EXPECTATION: (one.expectation, other.expectation),
        DifferenceKind.QUESTION: (one.question, other.question),
    }
    differ = [kind for kind, sides in asked.items() if _is_different(*sides)]
    if passed:
        yield from (_refine_kind(kind, then, now) for kind in differ)
    if passed and (then.dependent or now.dependent) and _is_different(one.before, other.before):
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
    if passed and not differ and _is_different(then.fingerprint, now.fingerprint):
        yield _refine_kind(DifferenceKind.ASKED, then, now)
    elif passed and not set(differ) & set(asked) and (less := _find_skipped_checks(then, now)):
        yield less


def _refine_kind(kind: DifferenceKind, then: CaseResult, now: CaseResult) -> DifferenceKind:
    """The same, or that the case checks less than it did, which only a case that passes can tell."""
    before, after = (case.assertions_run + case.assertions_skipped for case in (then, now))
    if kind is DifferenceKind.QUESTION or not now.passed:
        return kind
    if then.assertions_run and not now.assertions_run:
        return DifferenceKind.EMPTIED
    return DifferenceKind.FEWER_CHECKS if after < before else kind


def _find_missing_scorers(
    then: CaseResult, now: CaseResult, parts: Iterable[DifferenceKind]
) -> Iterator[DifferenceKind]:
    """That a case of another tool passes without a scorer that it had; as many others are another expectation.

    Nothing where `parts` say so already.
    """
    if not then.passed or not now.passed or _EXPECTATION_KINDS.intersection(parts):
        return
    before, after = (
        {one.name for one in case.evaluator_results} if len(case.evaluator_results) == case.assertions_run else set()
        for case in (then, now)  # of many cases not all of what was said is kept
    )
    if then.assertions_run > now.assertions_run:
        yield DifferenceKind.FEWER_CHECKS if now.assertions_run else DifferenceKind.EMPTIED
    elif after and before - after:
        yield DifferenceKind.EXPECTATION


def _can_be_recorded(case: CaseResult, judges: Sequence[TargetIdentity]) -> bool:
    """Whether its answer was a recorded one, or a model graded it: of a judge's replies no record says so.

    Nobody records what a command says. Of a judge that is not among those on record nobody knows what it is.
    """
    who = _get_judge(case)
    if case.details.replayed or who is None:
        return case.details.replayed
    known = [judge for judge in judges if judge.identity in who]
    return not known or any(judge.model is not None for judge in known)


def _find_skipped_checks(then: CaseResult, now: CaseResult) -> DifferenceKind | None:
    """That the case passes for want of values: the same checks, of which fewer could be made, whatever their source."""
    if not now.passed or now.assertions_skipped <= then.assertions_skipped or now.assertions_run >= then.assertions_run:
        return None
    return DifferenceKind.FEWER_CHECKS if now.assertions_run else DifferenceKind.EMPTIED


def _is_different(then: str | None, now: str | None) -> bool:
    return then is not None and now is not None and then != now


def _get_judge(case: CaseResult) -> str | None:
    return case.yardstick.judge if case.yardstick else None


def _is_snapshot_comparable(then: Measuring | None, now: Measuring | None) -> bool:
    """Whether other values of a snapshot say anything: live ones are others each time, unless their source is."""
    if then is None or now is None:
        return False
    source = (then.snapshot, then.snapshot_scripts) != (now.snapshot, now.snapshot_scripts)
    return source or now.snapshot_fixed


def _compare_targets(then: RunResult, now: RunResult, *, moved: bool) -> Iterator[Difference]:
    """Other addresses, programs and models behind the same names; where no name is the same, another target.

    `moved`: the cases say that.
    """
    before, after = _index_by_name(then), _index_by_name(now)
    same = [name for name in after if name in before]
    if not same and not moved:
        were, are = _format_identities(before.values()), _format_identities(after.values())
        if were == are:  # told apart by their names alone
            were, are = _format_names(before.values()), _format_names(after.values())
        yield Difference(kind=DifferenceKind.TARGET, then=were, now=are)
    yield from [one for name in same for one in _compare_target(name, before[name], after[name])][:MAX_GROUPS]


def _compare_target(name: str, then: TargetIdentity, now: TargetIdentity) -> Iterator[Difference]:
    if then.provider != now.provider:
        yield Difference(kind=DifferenceKind.TARGET, subject=name, then=then.provider, now=now.provider)
    if then.model != now.model:
        yield Difference(kind=DifferenceKind.MODEL, subject=name, then=then.model, now=now.model)
    elif then.identity != now.identity:
        yield Difference(kind=DifferenceKind.TARGET, subject=name, then=then.identity, now=now.identity)


def _format_identities(targets: Iterable[TargetIdentity]) -> str:
    return ", ".join(sorted(target.identity for target in targets)[:MAX_GROUPS])


def _format_names(targets: Iterable[TargetIdentity]) -> str:
    return ", ".join(sorted(target.name for target in targets)[:MAX_GROUPS])


def _index_by_name(run: RunResult) -> Mapping[str, TargetIdentity]:
    return {target.name: target for target in run.targets or (run.target,)}
