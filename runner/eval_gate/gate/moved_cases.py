"""Which earlier case is the same one, where a file has moved or a case has another id: by what it measures.

Ids and files are names, and another name measures nothing else. The surest sign comes first, and a sign that points to
two cases points to none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import lru_cache

from eval_gate.model.base import SameObject
from eval_gate.model.case import CaseKey
from eval_gate.model.result import CaseResult, RunResult, SuiteResult

_Cases = Mapping[CaseKey, CaseResult]
_Sign = Callable[[CaseKey, CaseResult], Hashable]


def earlier_keys(baseline: RunResult, current: RunResult) -> Mapping[CaseKey, CaseKey]:
    """The earlier key of every case here that had another one. What has kept its file and id is left out.

    A case that is new here is the earlier one that is gone and
    1. asks and expects the same: under the same id in its moved file, under the same id, in the same file, anywhere
    2. has the same id in its moved file, whatever it asks now

    No earlier case is taken twice, and none that is still here by its own key. What is not in a part of a plan may
    be in another one, and is not gone: there only what is measured says that a case is the same.
    """
    return _renamed(SameObject(baseline), SameObject(current))


@lru_cache(maxsize=1)
def _renamed(one: SameObject[RunResult], other: SameObject[RunResult]) -> Mapping[CaseKey, CaseKey]:
    baseline, current = one.thing, other.thing
    there, here = baseline.by_key(), current.by_key()
    if there.keys() == here.keys():
        return {}
    part = current.partial or current.shard is not None
    moved = {} if part else moved_files(baseline, current)
    gone = {key: case for key, case in there.items() if key not in here}
    new = {key: case for key, case in here.items() if key not in there}
    found: dict[CaseKey, CaseKey] = {}
    for sign in _signs(moved)[: -1 if part else None]:
        for now, then in _matches(gone, new, sign):
            found[now] = then
            del new[now], gone[then]
    return found


def moved_files(baseline: RunResult, current: RunResult) -> Mapping[str, str]:
    """The earlier file of every eval file here that is new: the only one left of the same kind, on both sides."""
    there, here = {suite.eval_file for suite in baseline.suites}, {suite.eval_file for suite in current.suites}
    gone = _by_kind(suite for suite in baseline.suites if suite.eval_file not in here)
    new = _by_kind(suite for suite in current.suites if suite.eval_file not in there)
    return {files[0]: gone[kind][0] for kind, files in new.items() if len(files) == len(gone.get(kind, ())) == 1}


def _by_kind(suites: Iterable[SuiteResult]) -> Mapping[Hashable, list[str]]:
    kinds: dict[Hashable, list[str]] = defaultdict(list)
    for suite in suites:
        kinds[suite.tool_name, suite.tier, suite.format].append(suite.eval_file)
    return kinds


def _signs(moved: Mapping[str, str]) -> tuple[_Sign, ...]:
    """By what a case is known again, the surest first; None is no sign at all. Moved files go by their earlier name."""

    def file(key: CaseKey) -> str:
        return moved.get(key.suite, key.suite)

    return (
        lambda key, case: case.fingerprint and (case.fingerprint, file(key), key.case_id),
        lambda key, case: case.fingerprint and (case.fingerprint, key.case_id),
        lambda key, case: case.fingerprint and (case.fingerprint, file(key)),
        lambda _, case: case.fingerprint,
        lambda key, _: (file(key), key.case_id),
    )


def _matches(gone: _Cases, new: _Cases, sign: _Sign) -> list[tuple[CaseKey, CaseKey]]:
    """Pairs of a new and an earlier case that alone have this sign on their side."""
    there, here = _by_sign(gone, sign), _by_sign(new, sign)
    return [(keys[0], there[one][0]) for one, keys in here.items() if len(keys) == len(there.get(one, ())) == 1]


def _by_sign(cases: _Cases, sign: _Sign) -> Mapping[Hashable, list[CaseKey]]:
    found: dict[Hashable, list[CaseKey]] = defaultdict(list)
    for key, case in cases.items():
        if (one := sign(key, case)) is not None:
            found[one].append(key)
    return found
