"""Compare the prompts of other tools field by field, and leave out what is new in every run. Pure.

A thread id or a date in the variables is no other question. Such a value is left out if it differed in every case
between the baseline and the run before it. With one earlier run, dates, times and random words are left out. A case
that asks the same but for these values gets the fingerprints of its baseline: whatever compares cases then finds its
history.

Nothing here looks at the result of a case, and expectations have to be equal.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from eval_gate.gate.case_matching import GateCases
from eval_gate.model.result import CaseFingerprints, CaseResult, FieldDigests, RunResult
from eval_gate.struct import replace
from eval_gate.text.escape import format_count, format_first_few

_MAX_NAMED: Final = 5
_UNKNOWN_DIFFERENCE: Final = "the prompt or the expectation differs"
_FieldPair = tuple[FieldDigests, FieldDigests]


def align_fingerprints(cases: GateCases) -> RunResult:
    """Give cases the baseline's fingerprints if their prompts differ only in values that are new in every run."""
    run, baseline = cases.run, cases.baseline
    if not (run.is_external and baseline.is_external):
        return run
    pairs = {key: (case, earlier) for key, case, earlier in cases.iter_pairs()}
    other = [key for key, (case, earlier) in pairs.items() if _get_prompt_parts(case) != _get_prompt_parts(earlier)]
    if not other:
        return run
    old_fields, varying = baseline.varying_fields, _find_varying(pairs.values())
    left_out = {
        name: numbers
        for name, numbers in varying.items()
        if numbers <= (old_fields.get(name, -1) if old_fields is not None else 0)
    }
    return run.replace_cases(
        {key: _adopt_fingerprints(*pairs[key]) for key in other if _asks_same(*pairs[key], left_out)}
    )


def find_varying_fields(cases: GateCases) -> dict[str, bool] | None:
    """Find the fields that differ from the baseline in every case that has them, by name; true if numbers differ.

    Dates, times and random words that differed once stay in the result, because a date is the same for a day.
    """
    if not cases.run.is_external:
        return None
    pairs = [(case, earlier) for _, case, earlier in cases.iter_pairs()]
    old_fields = cases.baseline.varying_fields
    names = {one.name for case, other in pairs for one, _ in _pair_fields(case, other) if one.stable}
    once = {name: False for name, numbers in (old_fields or {}).items() if not numbers and name in names}
    if not any(_pair_fields(*pair) for pair in pairs):
        return old_fields
    return once | _find_varying(pairs)


def _find_varying(pairs: Iterable[tuple[CaseResult, CaseResult]]) -> dict[str, bool]:
    """Find the fields that differ in every pair of cases where they have such values.

    One value that stays the same shows that the others may have been edited. Numbers have to differ in two cases.
    """
    pairs_by_name = defaultdict[str, list[_FieldPair]](list)
    for case, other in pairs:
        for pair in _pair_fields(case, other):
            pairs_by_name[pair[0].name].append(pair)
    varying: dict[str, bool] = {}
    for name, fields in pairs_by_name.items():
        if _count_same_rests(fields, lambda one: one.stable):
            varying[name] = False
        elif _count_same_rests(fields, lambda one: one.fixed) > 1:
            varying[name] = True
    return varying


def _count_same_rests(fields: Iterable[_FieldPair], get_rest: Callable[[FieldDigests], str | None]) -> int:
    """Count the fields that are the same but for such values; 0 if one with such values is the same altogether."""
    pairs = [(one, two) for one, two in fields if get_rest(one) and get_rest(two)]
    same = any(one.value == two.value for one, two in pairs)
    return 0 if same else sum(get_rest(one) == get_rest(two) for one, two in pairs)


def iter_left_out_notes(cases: GateCases) -> Iterator[str]:
    """Yield a note that names each field that was left out of the comparison, once."""
    counts = Counter(
        one.name
        for _, case, other in cases.iter_pairs()
        if case.fingerprint == other.fingerprint
        for one, two in _pair_fields(case, other)
        if one.value != two.value
    )
    if counts:
        names = format_first_few(
            list(counts), _MAX_NAMED, lambda name: f"{name} ({format_count(counts[name], 'case')})"
        )
        yield f"left out of the comparison: {names}, because the values are new in every run"


def describe_difference(case: CaseResult, baseline: CaseResult) -> str:
    """Describe why a case cannot be compared with that of the baseline, as a clause."""
    one, two = case.fingerprints, baseline.fingerprints
    if one is None or two is None or one.fields is None or two.fields is None:
        return _UNKNOWN_DIFFERENCE
    if one.expectation != two.expectation:
        return "the expectation differs"
    new, old = {field.name: field for field in one.fields}, {field.name: field for field in two.fields}
    differing = [name for name, field in new.items() if name in old and field.value != old[name].value]
    # what could be left out is the reason only where nothing else differs
    edited = [name for name in differing if new[name].fixed is None or new[name].fixed != old[name].fixed]
    changes = (
        *(f"{name} is missing" for name in old if name not in new),
        *(f"{name} is new" for name in new if name not in old),
        *(f"{name} differs" for name in edited or differing),
    )
    return format_first_few(changes, 3) if changes else _UNKNOWN_DIFFERENCE


def _pair_fields(case: CaseResult, baseline: CaseResult) -> list[_FieldPair]:
    """Pair the fields of two cases that have the same fields and expect the same; none for other cases."""
    one, two = case.fingerprints, baseline.fingerprints
    if one is None or two is None or not one.fields or not two.fields or one.expectation != two.expectation:
        return []
    same = [field.name for field in one.fields] == [field.name for field in two.fields]
    return list(zip(one.fields, two.fields, strict=True)) if same else []


def _get_prompt_parts(case: CaseResult) -> tuple[str | None, ...]:
    parts = case.fingerprints or CaseFingerprints()
    return case.fingerprint, parts.prompt, parts.expectation


def _asks_same(case: CaseResult, baseline: CaseResult, left_out: Mapping[str, bool]) -> bool:
    if case.fingerprint is None or baseline.fingerprint is None:
        return False
    if case.fingerprint == baseline.fingerprint:
        return True
    pairs = _pair_fields(case, baseline)
    return bool(pairs) and all(one.value == two.value or _is_same_rest(one, two, left_out) for one, two in pairs)


def _is_same_rest(field: FieldDigests, baseline: FieldDigests, left_out: Mapping[str, bool]) -> bool:
    """Whether a field is left out, and the same but for what is new in every run."""
    if field.name not in left_out:
        return False
    sides = (field.fixed, baseline.fixed) if left_out[field.name] else (field.stable, baseline.stable)
    return sides[0] is not None and sides[0] == sides[1]


def _adopt_fingerprints(case: CaseResult, baseline: CaseResult) -> CaseResult:
    """Take over what the baseline has for the prompt and the expectation, but for the digests of the fields."""
    own, other = case.fingerprints or CaseFingerprints(), baseline.fingerprints or CaseFingerprints()
    parts = replace(own, prompt=other.prompt, expectation=other.expectation)
    return replace(case, fingerprint=baseline.fingerprint, fingerprints=parts)
