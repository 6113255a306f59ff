"""Changes of the evaluation setup since the baseline: rules, cases, judges and targets. Pure.

The agent has no part in this: each of these can turn a verdict while the agent stays what it is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from eval_gate.gate.case_matching import GateCases, has_all_cases
from eval_gate.gate.evidence.case_history import EarlierResult
from eval_gate.gate.must_pass import is_must_pass
from eval_gate.gate.policy_changes import compare_pass_rules, find_policy_changes
from eval_gate.gate.setting_changes import ProgramComparison, SettingComparison
from eval_gate.model.case import CaseKey, PassRule, build_pass_rule
from eval_gate.model.execution import UNDECIDED_TYPE, Status
from eval_gate.model.policy import EvaluationSetup, RunPolicy
from eval_gate.model.result import WAITS_FOR_GATE, CaseFingerprints, CaseResult, RunResult
from eval_gate.model.setup import TargetIdentity
from eval_gate.model.setup_change import ChangedCase, SetupChange, SetupChangeKind, SetupChanges
from eval_gate.struct import replace

MAX_NAMED_CASES: Final = 20
"""Cases of one difference that are kept by name."""
MAX_NAMED_FILES: Final = 20
"""Files of one difference that are kept by name."""
MAX_GROUPS: Final = 20
"""Judges and targets that are listed one by one."""
DEFAULT_EXTERNAL_COVERAGE: Final = 0.5
"""The share of the baseline's cases that another tool's results have to hold where `min_coverage` says nothing."""
_KIND_ORDER: Final = {kind: place for place, kind in enumerate(SetupChangeKind)}
_PROGRAM_KINDS: Final = frozenset(
    {SetupChangeKind.GRADER, SetupChangeKind.PREPARATION, SetupChangeKind.SNAPSHOT_SOURCE}
)
"""Differences that may be in the files of programs. Each file is named."""
_SETTING_KINDS: Final = frozenset({SetupChangeKind.SETUP, SetupChangeKind.TARGET_ASSIGNMENT, SetupChangeKind.AGENT})
"""Differences in settings. Each has a group of cases of its own."""
_FINGERPRINT_KINDS: Final = frozenset(
    {
        *(
            SetupChangeKind.NO_CHECKS,
            SetupChangeKind.FEWER_CHECKS,
            SetupChangeKind.NO_LONGER_DECIDES,
            SetupChangeKind.UNSTATED,
            SetupChangeKind.EXPECTATION,
            SetupChangeKind.PROMPT,
            SetupChangeKind.CASES_BEFORE,
            SetupChangeKind.PROMPT_OR_EXPECTATION,
        ),
        *(
            SetupChangeKind.GRADER,
            SetupChangeKind.PREPARATION,
            SetupChangeKind.JUDGE,
            SetupChangeKind.USER,
            SetupChangeKind.RECORDING,
            SetupChangeKind.SEEDS,
            SetupChangeKind.SNAPSHOT_SOURCE,
        ),
        *(SetupChangeKind.SETUP, SetupChangeKind.TARGET_ASSIGNMENT),
    }
)
"""Differences that change the case fingerprint."""
_EXPECTATION_KINDS: Final = frozenset(
    {
        SetupChangeKind.NO_CHECKS,
        SetupChangeKind.FEWER_CHECKS,
        SetupChangeKind.EXPECTATION,
        SetupChangeKind.PROMPT_OR_EXPECTATION,
    }
)
"""Differences in what a case's response is compared with."""
_CHANGED_KINDS: Final = _FINGERPRINT_KINDS | {SetupChangeKind.SKIPPED}
"""Differences that `fail-on: changed` is about, of cases that passed."""


def find_setup_changes(
    cases: GateCases, policy: RunPolicy, *, lost: Mapping[CaseKey, EarlierResult] = MappingProxyType({})
) -> SetupChanges:
    """Find everything that differs, the weightiest first. The baseline's run result has its own policy.

    `lost` are the cases without a score in the baseline, as an earlier run has them. Both runs have their pass scores
    applied. What one of the run results does not say is no difference.
    """
    baseline, current, rules = cases.baseline, cases.run, tuple[SetupChange, ...]()
    if baseline.policy:
        rules = (
            *find_policy_changes(
                _add_default_coverage(baseline.policy, baseline), _add_default_coverage(policy, current)
            ),
            *_find_freed_cases(cases, baseline.policy, policy),
            *_find_case_rules(
                cases, tuple(build_pass_rule(one.trials, one.passes) for one in (baseline.policy, policy))
            ),
        )
    touched = list(_iter_case_changes(cases, lost))
    kinds = {one.change.kind for one in touched}
    changes = [
        *rules,
        *_group_changes(touched),
        *_compare_targets(baseline, current, moved=SetupChangeKind.TARGET_ASSIGNMENT in kinds),
    ]
    return SetupChanges(
        changes=tuple(sorted(changes, key=lambda one: _KIND_ORDER[one.kind])),
        removed_cases=sum(one.change.kind is SetupChangeKind.REMOVED for one in touched),
        changed_cases=len({one.case for one in touched if one.passed and one.change.kind in _CHANGED_KINDS}),
        loosened_rules=sum(rule.kind is SetupChangeKind.LOOSENED for rule in rules),
    )


def _add_default_coverage(policy: RunPolicy, run: RunResult) -> RunPolicy:
    """Add the default minimum coverage to a policy without one, for external results only."""
    if policy.min_coverage is not None or not run.is_external:
        return policy
    return replace(policy, min_coverage=DEFAULT_EXTERNAL_COVERAGE)


def _find_freed_cases(cases: GateCases, baseline: RunPolicy, policy: RunPolicy) -> Iterator[SetupChange]:
    """Yield a change if cases that had to pass match no rule any more, because they are gone, renamed or lost a tag."""
    patterns = [pattern for pattern in baseline.must_pass if pattern in policy.must_pass]
    removed_keys = set(cases.absent.removed) if patterns and has_all_cases(cases.run) else ()

    def is_free(key: CaseKey) -> bool:
        other = cases.current_cases.get(cases.current_keys.get(key, key))
        return key in removed_keys if other is None else not is_must_pass(other, policy.must_pass)

    freed = [case.id for key, case in cases.baseline_cases.items() if is_must_pass(case, patterns) and is_free(key)]
    if freed:
        names = ", ".join(freed[:MAX_NAMED_CASES])
        yield SetupChange(kind=SetupChangeKind.LOOSENED, subject="must-pass", baseline=names, count=len(freed))


def _find_case_rules(cases: GateCases, shared: tuple[PassRule | None, ...]) -> Iterator[SetupChange]:
    """Yield the pass rules of cases that changed in another way than the `shared` one of each run."""
    groups: dict[SetupChange, list[ChangedCase]] = defaultdict(list)
    for key, case, earlier in cases.iter_pairs():
        if (sides := (earlier.pass_rule, case.pass_rule)) != shared:
            for change in compare_pass_rules(*sides):
                groups[change].append(build_changed_case(cases.get_earlier_key(key), key))
    for change, changed in sorted(groups.items(), key=_rank_group)[:MAX_GROUPS]:
        yield replace(change, count=len(changed), cases=tuple(changed[:MAX_NAMED_CASES]))


class _CaseChange(NamedTuple):
    """Change of one case, without counts; `passed` is whether the case passed in the newest run that scored it."""

    change: SetupChange
    case: ChangedCase
    passed: bool


def build_changed_case(key: CaseKey, current: CaseKey) -> ChangedCase:
    """Build a changed case from its keys in the baseline and in this run."""
    name = current.case_id if current.case_id != key.case_id else current.suite
    return ChangedCase(suite=key.suite, case_id=key.case_id, current_name=None if current == key else name)


def _group_changes(touched: Iterable[_CaseChange]) -> Iterator[SetupChange]:
    """Group the cases of equal changes: all of a kind without further details, else the largest groups."""
    groups: dict[SetupChange, list[ChangedCase]] = defaultdict(list)
    for one in touched:
        groups[one.change].append(one.case)
    numbers = Counter[Collection[SetupChangeKind]]()
    for change, cases in sorted(groups.items(), key=_rank_group):
        family = next((kinds for kinds in (_PROGRAM_KINDS, _SETTING_KINDS) if change.kind in kinds), (change.kind,))
        numbers[family] += 1
        if numbers[family] <= MAX_GROUPS:
            yield replace(change, count=len(cases), cases=tuple(cases[:MAX_NAMED_CASES]))


def _rank_group(group: tuple[SetupChange, Sequence[ChangedCase]]) -> tuple[int, str]:
    change, cases = group
    details = change.kind, change.owner, change.subject, change.setting, change.baseline, change.current
    return -len(cases), "\0".join(map(str, details)) if change.owner is not None else ""


def _iter_case_changes(cases: GateCases, lost: Mapping[CaseKey, EarlierResult]) -> Iterator[_CaseChange]:
    removed, differences = set(cases.absent.removed), _CaseDifferences(cases.baseline, cases.run)
    for key, case in cases.baseline_cases.items():
        own = cases.current_keys.get(key, key)
        other, passed = cases.current_cases.get(own), case.passed or (key in lost and lost[key].passed)
        changes: Iterable[SetupChange] = ()
        if other is not None:
            changes = differences.iter_changes(case, other, (key.suite, own.suite), passed=passed)
        elif passed and key in removed:
            changes = (SetupChange(kind=SetupChangeKind.REMOVED),)
        renamed = (SetupChange(kind=SetupChangeKind.RENAMED),) if other is not None and own != key else ()
        for change in (*changes, *renamed):
            yield _CaseChange(change, build_changed_case(key, own), passed)


class _CaseDifferences:
    """Differences of single cases of a baseline and a run."""

    def __init__(self, baseline: RunResult, current: RunResult) -> None:
        old, new = baseline.setup or EvaluationSetup(), current.setup or EvaluationSetup()
        self._programs = ProgramComparison(baseline, current)
        self._settings = SettingComparison(baseline, current)
        self._fixed_snapshot = _is_snapshot_comparable(baseline.setup, current.setup, self._programs)
        self._snapshots, self._setup = (old.snapshot, new.snapshot), new
        self._by_another_tool = baseline.is_external and current.is_external

    def iter_changes(
        self, case: CaseResult, other: CaseResult, files: tuple[str, str], *, passed: bool
    ) -> Iterator[SetupChange]:
        """Yield the changes of a case, whose eval files in the baseline and in this run are `files`."""
        yield from self._settings.find_changes(case, other, files)
        parts = [*_compare_fingerprints(case, other, passed=passed, fixed_snapshot=self._fixed_snapshot)]
        for kind in (*parts, *(_find_external_changes(case, other, parts) if self._by_another_tool else ())):
            is_source = kind is SetupChangeKind.SNAPSHOT_SOURCE
            sides = self._snapshots if is_source else (_get_model(case, kind), _get_model(other, kind))
            changed = self._programs.find_changed_files(kind, case, other) if kind in _PROGRAM_KINDS else ()
            yield SetupChange(
                kind=kind,
                baseline=sides[0],
                current=sides[1],
                files=changed[:MAX_NAMED_FILES],
                file_count=len(changed),
            )
        if passed and self._setup.recording and _can_be_recorded(other, self._setup.judges):
            yield SetupChange(kind=SetupChangeKind.RECORDING, current=self._setup.recording)


def _compare_fingerprints(
    baseline: CaseResult, current: CaseResult, *, passed: bool, fixed_snapshot: bool
) -> Iterator[SetupChangeKind]:
    """Yield the differences of a case: in prompt and checks only if it passed, in what scores it always."""
    one, other = baseline.fingerprints or CaseFingerprints(), current.fingerprints or CaseFingerprints()
    case_parts = {
        SetupChangeKind.EXPECTATION: (one.expectation, other.expectation),
        SetupChangeKind.PROMPT: (one.prompt, other.prompt),
    }
    differ = [kind for kind, sides in case_parts.items() if _is_different(*sides)]
    if passed:
        yield from (_refine_kind(kind, baseline, current) for kind in differ)
    if passed and (baseline.dependent or current.dependent) and _is_different(one.cases_before, other.cases_before):
        yield SetupChangeKind.CASES_BEFORE
    if passed and current.status is Status.SKIPPED and current.error != WAITS_FOR_GATE:
        yield SetupChangeKind.SKIPPED
    if baseline.fingerprints and current.fingerprints:
        graded = {
            SetupChangeKind.GRADER: (_join_graders(one), _join_graders(other)),
            SetupChangeKind.JUDGE: (one.judge, other.judge),
            SetupChangeKind.USER: (one.user, other.user),
            SetupChangeKind.SEEDS: (one.seeds, other.seeds),
            SetupChangeKind.SNAPSHOT_SOURCE: (one.snapshot, other.snapshot) if fixed_snapshot else (None, None),
        }
        # a part that only one of the two has came or went with its evaluator, which is the expectation, or is not known
        has_both = not differ and baseline.status.is_scored and current.status.is_scored
        kinds = [kind for kind, sides in graded.items() if sides[0] != sides[1] and (None not in sides or has_both)]
        if one.preparation != other.preparation:
            kinds.append(SetupChangeKind.PREPARATION)
        yield from kinds
        differ += kinds
    if passed and not differ and _is_different(baseline.fingerprint, current.fingerprint):
        yield _refine_kind(SetupChangeKind.PROMPT_OR_EXPECTATION, baseline, current)
    elif passed and not set(differ) & set(case_parts) and (less := _find_skipped_checks(baseline, current)):
        yield less


def _join_graders(parts: CaseFingerprints) -> str | None:
    return " ".join(part for part in (parts.grader, parts.judge_program) if part) or None


def _refine_kind(kind: SetupChangeKind, baseline: CaseResult, current: CaseResult) -> SetupChangeKind:
    """Return a more specific kind if the case checks less than before, which only a case that passes shows."""
    old_number, new_number = (case.assertions_run + case.assertions_skipped for case in (baseline, current))
    if kind is SetupChangeKind.PROMPT or not current.passed:
        return kind
    if baseline.assertions_run and not current.assertions_run:
        return SetupChangeKind.NO_CHECKS
    return SetupChangeKind.FEWER_CHECKS if new_number < old_number else kind


def _find_external_changes(
    baseline: CaseResult, current: CaseResult, parts: Iterable[SetupChangeKind]
) -> Iterator[SetupChangeKind]:
    """Yield what a passing external case lacks now: a scorer, its verdict, or what it was held against."""
    if not baseline.passed or not current.passed or _EXPECTATION_KINDS.intersection(parts):
        return
    one, other = (case.fingerprints or CaseFingerprints() for case in (baseline, current))
    if (one.prompt and not other.prompt) or (one.expectation and not other.expectation):
        yield SetupChangeKind.UNSTATED
    old_types, new_types = (
        {one.name: one.type for one in case.evaluator_results}
        if len(case.evaluator_results) == case.assertions_run  # a large run result does not store all results
        else {}
        for case in (baseline, current)
    )
    if baseline.assertions_run > current.assertions_run:
        yield SetupChangeKind.FEWER_CHECKS if current.assertions_run else SetupChangeKind.NO_CHECKS
    elif new_types and old_types.keys() - new_types.keys():  # as many scorers with another name: another expectation
        yield SetupChangeKind.EXPECTATION
    elif any(new_types.get(name) == UNDECIDED_TYPE and kind != UNDECIDED_TYPE for name, kind in old_types.items()):
        yield SetupChangeKind.NO_LONGER_DECIDES


def _can_be_recorded(case: CaseResult, judges: Sequence[TargetIdentity]) -> bool:
    """Whether the response, or the judge's reply, may come from a recording: of replies no run result says so."""
    if case.details.replayed or _get_model(case, SetupChangeKind.USER) is not None:
        return True
    who = _get_model(case, SetupChangeKind.JUDGE)
    if who is None:
        return False
    own_judges = [judge for judge in judges if judge.identity in who]
    return not own_judges or any(judge.model is not None for judge in own_judges)  # commands are never recorded


def _find_skipped_checks(baseline: CaseResult, current: CaseResult) -> SetupChangeKind | None:
    """Find out whether the case passes because values for its checks are missing: the same checks, but fewer ran."""
    if (
        not current.passed
        or current.assertions_skipped <= baseline.assertions_skipped
        or current.assertions_run >= baseline.assertions_run
    ):
        return None
    return SetupChangeKind.FEWER_CHECKS if current.assertions_run else SetupChangeKind.NO_CHECKS


def _is_different(baseline: str | None, current: str | None) -> bool:
    return baseline is not None and current is not None and baseline != current


def _get_model(case: CaseResult, kind: SetupChangeKind) -> str | None:
    """Return the LLM judge or the simulated user of a case, if that is what differs."""
    models = case.fingerprints or CaseFingerprints()
    return {SetupChangeKind.JUDGE: models.judge, SetupChangeKind.USER: models.user}.get(kind)


def _is_snapshot_comparable(
    baseline: EvaluationSetup | None, current: EvaluationSetup | None, programs: ProgramComparison
) -> bool:
    """Whether other values of a snapshot say anything: live ones are others each time, unless their source is."""
    if baseline is None or current is None:
        return False
    return baseline.snapshot != current.snapshot or current.snapshot_is_file or bool(programs.snapshot_files)


def _compare_targets(baseline: RunResult, current: RunResult, *, moved: bool) -> Iterator[SetupChange]:
    """Compare targets of the same name; without any, it is another target, unless the cases say so (`moved`)."""
    old, new = _index_by_name(baseline), _index_by_name(current)
    same = [name for name in new if name in old]
    if not same and not moved:
        were, are = (_join_sorted(one.identity for one in targets.values()) for targets in (old, new))
        if were == are:  # they differ only in their names
            were, are = _join_sorted(old), _join_sorted(new)
        yield SetupChange(kind=SetupChangeKind.TARGET, baseline=were, current=are)
    yield from [one for name in same for one in _compare_target(name, old[name], new[name])][:MAX_GROUPS]


def _compare_target(name: str, baseline: TargetIdentity, current: TargetIdentity) -> Iterator[SetupChange]:
    elsewhere = SetupChangeKind.TARGET, baseline.identity, current.identity
    other_model = SetupChangeKind.MODEL, baseline.model, current.model
    for kind, was, is_now in (
        (SetupChangeKind.TARGET, baseline.provider, current.provider),
        elsewhere if baseline.model == current.model else other_model,
    ):
        if was != is_now:
            yield SetupChange(kind=kind, subject=name, baseline=was, current=is_now)


def _join_sorted(texts: Iterable[str]) -> str:
    return ", ".join(sorted(texts)[:MAX_GROUPS])


def _index_by_name(run: RunResult) -> Mapping[str, TargetIdentity]:
    return {target.name: target for target in run.targets or (run.target,)}
