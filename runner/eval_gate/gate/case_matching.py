"""Match cases with cases of the baseline, also after a file moved or an id changed.

Ids and files are names, and another name measures nothing else. The surest sign comes first, and a sign that points to
two cases points to none.

An earlier case without a match in this run is gone, or was not selected. The selection is applied to the baseline's own
record of a case (its eval file, id, tags and tier then), so that no change of the eval files moves a case out of a
selection without being seen.

A case without an earlier run is new, unless the baseline cannot say so: a part of it is missing, or it has none of the
cases of this run and may be another gate's. The history of such a case is unknown.

Failures of test runners may have names that the baseline does not have, while tests that passed in it are gone. A hook
that fails, a part of a test and a renamed test all look like this. The baseline cannot say that they are new: what is
gone, or was not run because of them, may be what failed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Set
from functools import cached_property
from typing import TypeVar

from eval_gate.config.selection import Selection
from eval_gate.config.settings import ResultsFormat
from eval_gate.gate.pass_score import apply_pass_score
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass, Comparison
from eval_gate.model.execution import ErrorKind, Status
from eval_gate.model.result import CaseResult, RunResult, SuiteResult
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.volatile_words import replace_volatile_words

_Cases = Mapping[CaseKey, CaseResult]
_MatchKey = Callable[[CaseKey, CaseResult], Hashable]
_Item = TypeVar("_Item")
_WITHOUT_HISTORY = frozenset({CaseClass.ADDED, CaseClass.INCOMPARABLE})
_NAME_DIGEST = re.compile(r"… [0-9a-f]{8}$")
_FAILING_STATUSES = frozenset({Status.FAILED, Status.ERROR})


def find_earlier_keys(baseline: RunResult, current: RunResult) -> Mapping[CaseKey, CaseKey]:
    """Map each case that had another key in the baseline to that key.

    A new case is the earlier one that is gone if it

    1. has the same prompt and expectation: under the same id in its moved file, under the same id, in the same
       file, or anywhere
    2. comes from another tool that reports neither, and had the same name apart from the part that tells files
       apart
    3. has the same name in results of other tools, apart from what is new in every run
    4. has the same id in its moved file, whatever its prompt is now

    No earlier case is matched twice. A case that a part of a run lacks may be in another part and is not gone, so rule
    4 and moved files do not apply to a part.
    """
    baseline_cases, current_cases = baseline.index_cases(), current.index_cases()
    if baseline_cases.keys() == current_cases.keys():
        return {}
    part = current.partial or current.shard is not None
    moved = {} if part else match_moved_files(baseline, current)
    lost = {key: case for key, case in baseline_cases.items() if key not in current_cases}
    new = {key: case for key, case in current_cases.items() if key not in baseline_cases}
    earlier_keys: dict[CaseKey, CaseKey] = {}
    both_external = baseline.is_external and current.is_external
    for sign in _build_match_keys(moved, both_external=both_external)[: -1 if part else None]:
        for new_key, old_key in _match_unique_cases(lost, new, sign):
            earlier_keys[new_key] = old_key
            del new[new_key], lost[old_key]
    return earlier_keys


class AbsentCases(FrozenStruct):
    """Cases of the baseline that this run does not have: removed, not selected, or unknown."""

    removed: tuple[CaseKey, ...] = ()
    """Gone: what was chosen here would have taken them as the baseline has them."""
    not_selected: tuple[CaseKey, ...] = ()
    """Not chosen here, as the baseline has them, or of another shard."""
    unknown: tuple[CaseKey, ...] = ()
    """Some cases were chosen, and the run result does not say which."""


class GateCases(FrozenStruct, dict=True):
    """Cases of a run and of its baseline, with the baseline's keys of those that have another key in this run."""

    baseline: RunResult
    run: RunResult
    earlier_keys: Mapping[CaseKey, CaseKey]
    pass_score: float = 1.0
    """Both runs are held to it."""
    quarantined: Set[CaseKey] = frozenset()
    """Cases of this run that no test counts."""

    @classmethod
    def pair(cls, baseline: RunResult, run: RunResult) -> GateCases:
        """Pair the cases of both runs."""
        return cls(baseline, run, find_earlier_keys(baseline, run))

    def apply_pass_score(self, pass_score: float) -> GateCases:
        """Apply a pass score to both runs."""
        baseline, run = (apply_pass_score(one, pass_score) for one in (self.baseline, self.run))
        return replace(self, baseline=baseline, run=run, pass_score=pass_score)

    @cached_property
    def current_cases(self) -> Mapping[CaseKey, CaseResult]:
        """The cases of this run."""
        return self.run.index_cases()

    @cached_property
    def baseline_cases(self) -> Mapping[CaseKey, CaseResult]:
        """The cases of the baseline, by their keys there."""
        return self.baseline.index_cases()

    @cached_property
    def current_keys(self) -> Mapping[CaseKey, CaseKey]:
        """The keys in this run of the baseline's cases that have another key in it."""
        return {old: new for new, old in self.earlier_keys.items()}

    @cached_property
    def without_reused(self) -> GateCases:
        """The pairs of cases that this run executed, for all that takes executions as evidence.

        The result of a reused suite is the baseline's own: its executions are in the history, and count there.
        """
        run = self.run.without_reused
        return self if run is self.run else replace(self, run=run)

    def get_earlier_key(self, key: CaseKey) -> CaseKey:
        """Return the key that a case of this run has, or would have, in the baseline."""
        return self.earlier_keys.get(key, key)

    def get_earlier(self, key: CaseKey) -> CaseResult | None:
        """Return a case of this run as it is in the baseline; None if it is new."""
        return self.baseline_cases.get(self.earlier_keys.get(key, key))

    def iter_pairs(self) -> Iterator[tuple[CaseKey, CaseResult, CaseResult]]:
        """Yield each case that both runs have: its key here, the case here, and the one in the baseline."""
        for key, case in self.current_cases.items():
            if (earlier := self.get_earlier(key)) is not None:
                yield key, case, earlier

    @cached_property
    def absent(self) -> AbsentCases:
        """Where the baseline's cases are that this run lacks. What one shard does not have may be in another."""
        run, common_keys = self.run, {self.get_earlier_key(key) for key in self.current_cases}
        lost = {key: case for key, case in self.baseline_cases.items() if key not in common_keys}
        if run.shard is not None:
            return AbsentCases(not_selected=tuple(lost))
        if not run.partial:
            return AbsentCases(removed=tuple(lost))
        if not run.selections:
            return AbsentCases(unknown=tuple(lost))
        selected = _find_selected_cases(lost, run, self.baseline)
        return AbsentCases(
            tuple(key for key in lost if key in selected), tuple(key for key in lost if key not in selected)
        )

    @property
    def shares_nothing(self) -> bool:
        """Whether the baseline has none of these cases, although it should: then it may well be another gate's."""
        absent = self.absent
        number = len(absent.removed) + len(absent.not_selected) + len(absent.unknown)
        return bool(absent.removed) and number == len(self.baseline_cases)


def _find_selected_cases(cases: _Cases, chosen_by: RunResult, run: RunResult) -> Set[CaseKey]:
    """Find which of these cases of `run` the selections of another run take."""
    chosen = [Selection.from_chosen_cases(one) for one in chosen_by.selections]
    tiers = {suite.eval_file: suite.tier and suite.tier.value for suite in run.suites}
    return {
        key
        for key, case in cases.items()
        if any(each.includes_case(key, case.tags, tiers[key.suite]) for each in chosen)
    }


def find_uncovered_cases(cases: GateCases, comparison: Comparison) -> tuple[CaseKey, ...]:
    """Find the cases without an earlier result that the baseline does not show to be new."""
    run, baseline, old = cases.run, cases.baseline, cases.baseline_cases
    keys = [one.key for one in comparison.changes if one.change in _WITHOUT_HISTORY]
    if cases.shares_nothing:
        return tuple(keys)
    lacks_any = not baseline.complete or (baseline.shard is not None and baseline.shard != run.shard)
    new = {key: cases.current_cases[key] for key in keys if key not in old}
    unknown = set() if lacks_any or not baseline.partial else new.keys() - _find_selected_cases(new, baseline, run)
    return tuple(
        key for key in keys if (old[key].status is Status.NOT_RUN if key in old else lacks_any or key in unknown)
    )


def describe_missing_coverage(cases: GateCases) -> str:
    """Describe what the baseline lacks, as a clause that ends a sentence."""
    baseline = cases.baseline
    if cases.shares_nothing:
        return "the baseline has none of the cases of this run"
    if baseline.shard is not None and baseline.shard != cases.run.shard:
        return f"the baseline is only shard {baseline.shard.index} of {baseline.shard.count}"
    if not baseline.complete:
        return f"the baseline is incomplete: {baseline.stop_reason or 'its run ended early'}"
    return "the baseline is a run of selected cases"


def has_all_cases(run: RunResult) -> bool:
    """Whether no case was left out of a run, by choice or for another shard."""
    return not run.partial and run.shard is None


def match_moved_files(baseline: RunResult, current: RunResult) -> Mapping[str, str]:
    """Map each new eval file to its earlier name, if each is the only one of its kind left on its side."""
    old, new = {suite.eval_file for suite in baseline.suites}, {suite.eval_file for suite in current.suites}
    old_files = _group_by_kind(suite for suite in baseline.suites if suite.eval_file not in new)
    new_files = _group_by_kind(suite for suite in current.suites if suite.eval_file not in old)
    return {
        files[0]: old_files[kind][0]
        for kind, files in new_files.items()
        if len(files) == len(old_files.get(kind, ())) == 1
    }


def _group_by_kind(suites: Iterable[SuiteResult]) -> Mapping[Hashable, list[str]]:
    return _group(((suite.tool_name, suite.tier, suite.format), suite.eval_file) for suite in suites)


def _group(pairs: Iterable[tuple[Hashable, _Item]]) -> Mapping[Hashable, list[_Item]]:
    """Group items by their signs, without those that have none."""
    groups: dict[Hashable, list[_Item]] = defaultdict(list)
    for sign, item in pairs:
        if sign is not None:
            groups[sign].append(item)
    return groups


def _build_match_keys(moved: Mapping[str, str], *, both_external: bool) -> tuple[_MatchKey, ...]:
    """Build the keys that match cases, the most reliable first; None matches nothing. Moved files keep the old name."""

    def file(key: CaseKey) -> str:
        return moved.get(key.suite, key.suite)

    return (
        lambda key, case: case.fingerprint and (case.fingerprint, file(key), key.case_id),
        lambda key, case: case.fingerprint and (case.fingerprint, key.case_id),
        lambda key, case: case.fingerprint and (case.fingerprint, file(key)),
        lambda _, case: case.fingerprint,
        _get_short_name_in_file,
        _get_short_name,
        *([_get_lasting_name] if both_external else []),
        lambda key, _: (file(key), key.case_id),
    )


def _get_short_name_in_file(key: CaseKey, case: CaseResult) -> Hashable:
    """Return the file and the name without its file prefix, for results of tools that store no prompts."""
    if case.fingerprint is not None or case.location is None:
        return None
    file = case.location.file
    return file, key.suite.removeprefix(f"{file}: "), key.case_id


def _get_short_name(key: CaseKey, case: CaseResult) -> Hashable:
    """Return the suite without its prefix (up to the last `: `) and the case id; None for a case with a fingerprint."""
    return None if case.fingerprint is not None else (key.suite.rpartition(": ")[2], key.case_id)


def _get_lasting_name(key: CaseKey, case: CaseResult) -> Hashable:
    """Return the suite and the name without what is new in every run; None for a name without such a value."""
    name = _NAME_DIGEST.sub("…", replace_volatile_words(key.case_id))
    return None if case.fingerprint is None or name == key.case_id else (key.suite, name)


def _match_unique_cases(lost: _Cases, added: _Cases, sign: _MatchKey) -> list[tuple[CaseKey, CaseKey]]:
    """Match a new and an earlier case that are the only ones with this key in their run."""
    old, new = (_group((sign(key, case), key) for key, case in cases.items()) for cases in (lost, added))
    return [(keys[0], old[one][0]) for one, keys in new.items() if len(keys) == len(old.get(one, ())) == 1]


class PossibleRenames(FrozenStruct):
    """Failing cases of this run that may be renamed cases of the baseline, and those cases."""

    failing: tuple[CaseKey, ...] = ()
    old_cases: tuple[CaseKey, ...] = ()


def find_possible_renames(cases: GateCases) -> PossibleRenames:
    """Find possible renames in JUnit results. In other formats the prompt matches a renamed case."""
    if not cases.run.target.provider == cases.baseline.target.provider == ResultsFormat.JUNIT:
        return PossibleRenames()
    removed = frozenset(cases.absent.removed)
    passed = ((key, case) for key, case in cases.baseline_cases.items() if case.passed)
    lost = {key: case for key, case in passed if key in removed or _is_skipped(key, cases)}
    pairs = [
        (key, other)
        for key, case in cases.current_cases.items()
        if case.status in _FAILING_STATUSES
        and (case.error_kind is ErrorKind.EVALUATION_ERROR or cases.get_earlier(key) is None)
        for other, earlier in lost.items()
        if case.error_kind is ErrorKind.EVALUATION_ERROR or _can_be_renamed(key, case, other, earlier)
    ]
    return PossibleRenames(tuple(dict.fromkeys(key for key, _ in pairs)), tuple(dict.fromkeys(key for _, key in pairs)))


def _is_skipped(key: CaseKey, cases: GateCases) -> bool:
    case = cases.current_cases.get(cases.current_keys.get(key, key))
    return case is not None and case.status is Status.SKIPPED


def _can_be_renamed(key: CaseKey, case: CaseResult, other: CaseKey, baseline: CaseResult) -> bool:
    """Whether a failing case may stand for another one: it is of the same suite or file, or has its short name."""
    if other.suite in {key.suite, key.case_id}:  # the name of a class is what failed before or after its tests
        return True
    if case.location is not None and baseline.location is not None and case.location.file == baseline.location.file:
        return True
    return key.case_id == other.case_id and key.suite.rpartition(": ")[2] == other.suite.rpartition(": ")[2]
