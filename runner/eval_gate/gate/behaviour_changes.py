"""Cases that pass in both runs and behave differently: another tool, number of calls, parameter or response. Pure.

No verdict reads them. A change is what all stored executions of this run have in common and none of the baseline's
shows; what was not stored, or truncated, is not compared. What varies by itself is left out: the executions of one run
differ, the newest runs of the baseline's branch keep changing, or one of them did what this run does. So is what varies
in a good part of all cases of that branch, because the history of a single case is short.

A single earlier run does not show what varies. An id or a time of day in a parameter then differs in most cases, each
time in another way, and is left out too.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import Any, Final, NamedTuple, TypeVar

from eval_gate.config.settings import RetentionRules
from eval_gate.gate.case_matching import GateCases
from eval_gate.model.behaviour_change import (
    BehaviourChange,
    BehaviourChanges,
    BehaviourKind,
    ParameterDifference,
)
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import Comparison
from eval_gate.model.execution import CaseDetails
from eval_gate.model.limits import BEHAVIOUR_CHANGES
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.results.case_behaviour import (
    FIELDS,
    Behaviour,
    BehaviourDigest,
    find_lost_words,
    hash_place,
    hash_tool,
    hash_values,
    list_behaviours,
    split_tool,
    split_words,
)
from eval_gate.results.detail_truncation import drop_response
from eval_gate.results.history import EMPTY_HISTORY, History, compute_result_fingerprint, match_fingerprints
from eval_gate.results.masking import TextMasking, map_details
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.javascript.regex import PatternError, replace_matches_sync
from eval_gate.text.mask import MASK

MAX_VALUE: Final = 200
"""Characters of a value, or of the beginning of a response."""
_MIN_CHANGES: Final = 2
"""Changes between neighboring runs of the branch from which something varies by itself; one may be a change of code."""
_MIN_VARYING_CASES: Final = 2
_VARYING_SHARE: Final = 0.2
"""Share of the cases with a tool, a parameter or a response in which it varies, from which it may in all of them."""
_Value = TypeVar("_Value")


def find_behaviour_changes(cases: GateCases, history: History = EMPTY_HISTORY) -> BehaviourChanges:
    """Find the cases that pass in both runs and behave differently.

    `history` ends with the baseline, and tells what varies by itself. Without it, only executions of the same run do.
    Values are complete; `limit_behaviour_changes` truncates them.
    """
    return _collect_changes(_find_all(cases, history), cases)


def _find_all(cases: GateCases, history: History) -> list[_Finding]:
    listing, listed = _find_listing_targets(cases.run), _find_listing_targets(cases.baseline)
    branch = _BranchBehaviour(history, cases.baseline_cases)
    findings: list[_Finding] = []
    for key, case, earlier in _iter_pairs(cases):
        if _has_equal_details(case, earlier):
            continue
        behaviours = list_behaviours(earlier), list_behaviours(case)
        sides = _Sides(key, *behaviours, cases.get_earlier_key(key), branch, _has_turns(case))
        if not (sides.baseline and sides.current) or _has_turns(case) != _has_turns(earlier):
            continue
        findings += _find_call_changes(sides, are_listed=case.target in listing and earlier.target in listed)
        findings += _find_response_change(sides)
    return findings


def _iter_pairs(cases: GateCases) -> Iterator[tuple[CaseKey, CaseResult, CaseResult]]:
    """Yield each case that passes in both runs after the same prompt: in this run, then in the baseline."""
    for key, case, earlier in cases.iter_pairs():
        if case.passed and earlier.passed and _has_same_prompt(case, earlier):
            yield key, case, earlier


class _Place(NamedTuple):
    """Parameter of a tool, its number of calls if only the tool is given, or the response if both are None."""

    tool: str | None = None
    parameter: str | None = None


_RESPONSE: Final = _Place()


class _Finding(NamedTuple):
    """A change, and the number of earlier runs that could have shown that it varies."""

    change: BehaviourChange
    runs: int = _MIN_CHANGES

    @property
    def may_vary(self) -> bool:
        """Whether it is a value that may vary by itself for all that is known."""
        is_value = self.change.difference is ParameterDifference.VALUE or self.change.kind is BehaviourKind.RESPONSE
        return is_value and self.runs < _MIN_CHANGES

    @property
    def place(self) -> _Place:
        change = self.change
        tool = FIELDS if change.kind is BehaviourKind.FIELD else change.tool
        return _Place(f"{change.turn}:{tool}" if change.turn and tool else tool, change.parameter)


class _Sides(FrozenStruct):
    """Behaviour of a case in both runs, and in the newest runs of the baseline's branch."""

    key: CaseKey
    baseline: Sequence[Behaviour]
    current: Sequence[Behaviour]
    earlier_key: CaseKey
    branch: _BranchBehaviour
    has_turns: bool
    """Whether names of tools begin with the turn of a conversation."""

    def split_tool(self, tool: str) -> tuple[int | None, str]:
        """Split the name of a tool into its turn, if it has one, and the tool."""
        return split_tool(tool) if self.has_turns else (None, tool)

    def build_change(self, kind: BehaviourKind, turn: int | None, **facts: Any) -> BehaviourChange:
        """Build a change of this case."""
        return BehaviourChange(**self.key._asdict(), kind=kind, turn=turn, **facts)

    def list_values(self, place: _Place) -> list[list[object]]:
        """List what each run of the branch had at a place, newest first."""
        return self.branch.list_values(self.earlier_key, place)

    def varies(self, place: _Place, current: object) -> bool:
        """Whether something varies by itself, or may, or was what it is now in a run of the branch."""
        values = self.list_values(place)
        occurs = any(current in run for run in values)
        return occurs or _keeps_changing(values) or self.branch.varies_in_many_cases(place)


class _BranchBehaviour:
    """Behaviour of the cases in the newest runs of the baseline's branch that are comparable."""

    def __init__(self, history: History, cases: Mapping[CaseKey, CaseResult]) -> None:
        self._history = history
        self._cases = cases
        runs = history.runs
        self._usable = [
            place == 0 or (run.is_usable and run.target == runs[0].target) for place, run in enumerate(runs)
        ]
        self._runs: dict[CaseKey, list[tuple[BehaviourDigest, ...]]] = {}
        self._varying: dict[_Place, bool] = {}

    def list_values(self, key: CaseKey, place: _Place) -> list[list[object]]:
        """List the values of a case at a place by run, newest first, for each of its executions that is known."""
        values = [[_get_value(one, place) for one in run] for run in self._list_runs(key)]
        runs = [[one for one in run if one is not _UNKNOWN] for run in values]
        return [run for run in runs if run]

    def varies_in_many_cases(self, place: _Place) -> bool:
        """Whether a good part of the cases that have something at a place keep changing it."""
        if place not in self._varying:
            values = [self.list_values(key, place) for key in self._cases]
            if place == _RESPONSE:
                having = [one for one in values if one]
                varying = sum(map(_loses_words_often, having))
            else:
                having = [one for one in values if any(any(run) for run in one)]
                varying = sum(map(_keeps_changing, having))
            self._varying[place] = varying >= _MIN_VARYING_CASES and varying >= _VARYING_SHARE * len(having)
        return self._varying[place]

    def _list_runs(self, key: CaseKey) -> Sequence[Sequence[BehaviourDigest]]:
        """List what the comparable runs know of a case, newest first."""
        if key not in self._runs:
            self._runs[key] = list(self._iter_runs(key))
        return self._runs[key]

    def _iter_runs(self, key: CaseKey) -> Iterator[tuple[BehaviourDigest, ...]]:
        history, fingerprint = self._history.get_case(key), compute_result_fingerprint(self._cases[key])
        fits = [match_fingerprints(one, fingerprint).same_case for one in history.fingerprints]
        runs = zip(history.decode_behaviours(), history.decode_entries_unchecked(), self._usable, strict=False)
        for digests, entry, usable in runs:
            if entry is None or not (usable and digests):
                continue
            if entry.fingerprint_index < len(fits) and fits[entry.fingerprint_index]:
                yield digests


_UNKNOWN: Final = object()


def _get_value(digest: BehaviourDigest, place: _Place) -> object:
    """Return what an execution had at a place: a number of calls, a hash, or whether the response lost words."""
    if place.tool is None:
        return _UNKNOWN if digest.lost_words is None else digest.lost_words
    tool = hash_tool(place.tool)
    if place.parameter is None:
        return digest.calls.get(tool, 0)
    if tool not in digest.calls or tool in digest.unknown:
        return _UNKNOWN
    return digest.values.get(hash_place(place.tool, place.parameter))


def _find_listing_targets(run: RunResult) -> frozenset[str | None]:
    """Find the targets that list the tool calls of any case. An empty list of another target may mean anything."""
    return frozenset(
        case.target for _, case in run.iter_cases() if case.details.tools_called or case.trace_summary is not None
    )


def _has_same_prompt(case: CaseResult, baseline_case: CaseResult) -> bool:
    """Whether both runs sent the same prompt, with the same values of its tokens."""
    if not match_fingerprints(compute_result_fingerprint(case), compute_result_fingerprint(baseline_case)).same_case:
        return False
    new, old = case.fingerprints, baseline_case.fingerprints
    if new is None or old is None:
        return True
    pairs = ((new.prompt, old.prompt), (new.seeds, old.seeds), (new.snapshot, old.snapshot))
    return all(one == other for one, other in pairs) and (not case.dependent or new.cases_before == old.cases_before)


def _has_equal_details(case: CaseResult, baseline_case: CaseResult) -> bool:
    """Whether a case did the same in both runs, as most cases of a stable agent do."""
    new, old = case.details, baseline_case.details
    # as texts, because Python takes 1 and true for equal
    calls = [repr([details.fields, *(call.arguments for call in details.tool_calls)]) for details in (new, old)]
    turns = [[(turn.response, turn.calls, repr(turn.fields)) for turn in details.turns] for details in (new, old)]
    return (new.response, new.tools_called, calls[0], turns[0]) == (old.response, old.tools_called, calls[1], turns[1])


def _has_turns(case: CaseResult) -> bool:
    """Whether the behaviour of a case is that of the turns of a script."""
    return bool(case.details.turns) and case.details.user_end is None


def _count_places(cases: GateCases) -> Counter[_Place]:
    """Count the cases in which both runs have a parameter, or a response."""
    counts = Counter[_Place]()
    for _, case, earlier in _iter_pairs(cases):
        old, new = list_behaviours(earlier), list_behaviours(case)
        if old and new:
            counts.update(_iter_places(old[0], new[0]))
    return counts


def _iter_places(baseline: Behaviour, current: Behaviour) -> Iterator[_Place]:
    if baseline.responses is not None and current.responses is not None:
        yield _RESPONSE
    for tool, parameters in baseline.parameters.items():
        current_parameters = current.parameters.get(tool)
        if parameters and current_parameters:
            yield from (_Place(tool, name) for name in parameters if name in current_parameters)


def _keeps_changing(runs: Sequence[Sequence[object]]) -> bool:
    """Whether a value varies by itself: one that changed only once may be a change of code."""
    if any(one != run[0] for run in runs for one in run):
        return True
    changes = sum(one[0] != other[0] for one, other in pairwise(runs))
    return _is_often(changes, len(runs) - 1)


def _is_often(number: int, times: int) -> bool:
    return number >= _MIN_CHANGES or (number > 0 and number * 2 >= times)


def _get_common(values: Iterable[_Value]) -> _Value | None:
    """Return the value that all executions have; None if they differ, or if one of them is None."""
    all_values = list(values)
    return all_values[0] if all_values and all(one == all_values[0] for one in all_values) else None


# Calls


def _find_call_changes(sides: _Sides, *, are_listed: bool) -> list[_Finding]:
    """Find the changes of calls, if tool calls `are_listed`, and of checked fields."""
    tools = dict.fromkeys(tool for one in (*sides.baseline, *sides.current) for tool in one.calls)
    removed, added = defaultdict[int | None, list[str]](list), defaultdict[int | None, list[str]](list)
    findings = list[_Finding]()
    for tool in tools:
        if not (are_listed or tool.endswith(FIELDS)):
            continue
        old = _get_common(one.calls.get(tool, 0) for one in sides.baseline)
        new = _get_common(one.calls.get(tool, 0) for one in sides.current)
        if old is None or new is None:
            continue
        if old == new:
            findings += _find_parameter_changes(sides, tool)
            continue
        if tool.endswith(FIELDS) or sides.varies(_Place(tool), new):
            continue  # a new expectation is no new behaviour
        turn, name = sides.split_tool(tool)
        if old and new:
            counts = {"baseline": str(old), "current": str(new)}
            findings.append(_Finding(sides.build_change(BehaviourKind.CALL_COUNT, turn, tool=name, **counts)))
        else:
            (removed if old else added)[turn].append(name)
    for turn in dict.fromkeys((*removed, *added)):
        findings += (
            _Finding(sides.build_change(BehaviourKind.TOOL, turn, baseline=lost, current=gained))
            for lost, gained in zip_longest(removed[turn], added[turn])
        )
    return findings


def _find_parameter_changes(sides: _Sides, tool: str) -> Iterator[_Finding]:
    parameters = [one.parameters.get(tool) for one in (*sides.baseline, *sides.current)]
    places = dict.fromkeys(place for one in parameters if one is not None for place in one)
    if None in parameters:
        return
    for place in places:
        old = _get_common(_get_values(one, tool, place) for one in sides.baseline)
        new = _get_common(_get_values(one, tool, place) for one in sides.current)
        is_field = tool.endswith(FIELDS)
        if old is None or new is None or old == new or (is_field and not (old and new)):
            continue
        where = _Place(tool, place)
        if sides.varies(where, hash_values(new) if new else None):
            continue
        removed, added = _subtract(old, new), _subtract(new, old)
        difference = _classify_difference(old, new, removed, added)
        turn, name = sides.split_tool(tool)
        change = sides.build_change(
            BehaviourKind.FIELD if is_field else BehaviourKind.PARAMETER,
            turn,
            tool=None if is_field else name,
            parameter=place,
            difference=difference,
            baseline=_format_values(removed),
            current=_format_values(added),
        )
        yield _Finding(change, len(sides.list_values(where)))


def _get_values(behaviour: Behaviour, tool: str, place: str) -> tuple[str, ...]:
    return (behaviour.parameters.get(tool) or {}).get(place, ())


def _subtract(values: Sequence[str], removed: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted((Counter(values) - Counter(removed)).elements()))


def _classify_difference(
    baseline: Sequence[str], current: Sequence[str], only_baseline: Sequence[str], only_current: Sequence[str]
) -> ParameterDifference:
    if not baseline or not only_baseline:
        return ParameterDifference.ADDED
    if not current or not only_current:
        return ParameterDifference.MISSING
    types = {_get_json_type(one) for one in only_baseline}, {_get_json_type(one) for one in only_current}
    return ParameterDifference.VALUE if types[0] & types[1] else ParameterDifference.TYPE


def _get_json_type(text: str) -> str:
    """Return a letter for the type of a JSON text: its first character, with one for all numbers and one for a yes."""
    first = text[:1]
    return "0" if first.isdigit() or first in "-NI" else "t" if first == "f" else first


def _format_values(values: Sequence[str]) -> str | None:
    return ", ".join(json.dumps(json.loads(one), ensure_ascii=False) for one in values) or None


# Responses


def _find_response_change(sides: _Sides) -> Iterator[_Finding]:
    """Yield the change of the response if each of this run's lost many words of each of the baseline's."""
    old, new = ([one.responses or () for one in side] for side in (sides.baseline, sides.current))
    lost = [find_lost_words(baseline, current) for baseline in old for current in new]
    number = lost[0]
    if number is None or None in lost:
        return
    if _differ_among_themselves(old) or _differ_among_themselves(new):
        return
    losses = sides.list_values(_RESPONSE)
    if _loses_words_often(losses) or sides.branch.varies_in_many_cases(_RESPONSE):
        return
    change = sides.build_change(
        BehaviourKind.RESPONSE,
        number if sides.has_turns else None,
        baseline=_describe_response(old[0][number - 1]),
        current=_describe_response(new[0][number - 1]),
    )
    yield _Finding(change, len(losses) + 1)


def _loses_words_often(losses: Sequence[Sequence[object]]) -> bool:
    """Whether the response lost many of its words between neighboring runs twice, or at least every second time."""
    return _is_often(sum(any(run) for run in losses), len(losses))


def _differ_among_themselves(responses: Sequence[Sequence[str]]) -> bool:
    return any(find_lost_words(responses[0], one) is not None for one in responses[1:])


def _describe_response(text: str) -> str:
    number = len(split_words(text))
    return f"{number} word{'' if number == 1 else 's'}" + (f": {text.strip()}" if text.strip() else "")


# All cases


def _collect_changes(findings: Sequence[_Finding], cases: GateCases) -> BehaviourChanges:
    by_place: dict[_Place, list[BehaviourChange]] = defaultdict(list)
    for one in findings:
        if one.may_vary:
            by_place[one.place].append(one.change)
    several = {
        place: len(changes)
        for place, changes in by_place.items()
        if len({(one.baseline, one.current) for one in changes}) > 1
    }
    compared = _count_places(cases) if several else Counter[_Place]()
    varying = {place for place, number in several.items() if number * 2 > compared[place]}
    listed_changes = tuple(one.change for one in findings if not (one.may_vary and one.place in varying))
    return BehaviourChanges(cases=len({one.key for one in listed_changes}), changes=listed_changes)


# What is stored


def add_behaviour_changes(
    comparison: Comparison, cases: GateCases, branch_history: History, retention: RetentionRules
) -> Comparison:
    """Add how passing cases behave differently to a comparison, and mark these cases.

    A stored run that is checked again keeps its changes: its history or details may be gone.
    """
    recorded = cases.run.comparison
    if (
        recorded is not None
        and recorded.behaviour_changes is not None
        and recorded.baseline.run_id == cases.baseline.run_id
        and len(recorded.recent_runs) > len(branch_history.runs)
    ):
        behaviour = recorded.behaviour_changes
    else:
        masked_cases = _redact_baseline(cases, branch_history, retention.patterns) if retention.patterns else cases
        behaviour = find_behaviour_changes(masked_cases, branch_history)
    behaviour = limit_behaviour_changes(behaviour)
    keys = {one.key for one in behaviour.changes}
    changes = comparison.changes
    if keys:
        changes = tuple(replace(one, behaves_differently=True) if one.key in keys else one for one in changes)
    return replace(comparison, changes=changes, behaviour_changes=behaviour)


def _redact_baseline(cases: GateCases, history: History, patterns: Sequence[str]) -> GateCases:
    """Mask the baseline, which may be older than a pattern: else its values would show, and each mask be a change."""
    keys = {cases.get_earlier_key(one.change.key) for one in _find_all(cases, history)}
    masked = TextMasking()
    for key in keys:
        _map_case_details(cases.baseline_cases[key], lambda details: map_details(details, masked.collect_text))

    def mask(details: CaseDetails) -> CaseDetails:
        return map_details(details, masked.mask_text)

    change = mask
    try:
        masked.set_masked(replace_matches_sync(patterns, masked.texts, MASK))
    except PatternError:  # too slow to search: only names of tools are left to compare
        change = drop_response
    masked_cases = {key: _map_case_details(cases.baseline_cases[key], change) for key in keys}
    return replace(cases, baseline=cases.baseline.replace_cases(masked_cases))


def _map_case_details(case: CaseResult, change: Callable[[CaseDetails], CaseDetails]) -> CaseResult:
    """Apply `change` to the details of each execution of a case."""
    trials = tuple(one if one.details is None else replace(one, details=change(one.details)) for one in case.trials)
    return replace(case, details=change(case.details), trials=trials)


def limit_behaviour_changes(behaviour: BehaviourChanges) -> BehaviourChanges:
    """Truncate the texts, and drop the changes beyond what a run result lists; their cases stay counted."""
    return replace(
        behaviour,
        changes=tuple(
            replace(
                one,
                tool=_truncate(one.tool),
                parameter=_truncate(one.parameter),
                baseline=_truncate(one.baseline),
                current=_truncate(one.current),
            )
            for one in behaviour.changes[:BEHAVIOUR_CHANGES]
        ),
    )


def _truncate(text: str | None) -> str | None:
    return text and text[:MAX_VALUE]
