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

from eval_gate.gate.case_matching import find_earlier_keys
from eval_gate.model.result import CaseFingerprints, CaseResult, FieldDigests, RunResult
from eval_gate.struct import replace
from eval_gate.text.escape import format_count, format_first_few

_MAX_NAMED: Final = 5
_UNKNOWN_DIFFERENCE: Final = "the prompt or the expectation differs"
_FieldPair = tuple[FieldDigests, FieldDigests]


def align_fingerprints(run: RunResult, baseline: RunResult) -> RunResult:
    """Give the cases that ask the same as in the baseline, but for values that are new in every run, its fingerprints.

    A case with another name may be one of them.
    """
    if not (run.is_external and baseline.is_external):
        return run
    there, here = baseline.index_cases(), run.index_cases()
    pairs = {key: there[key] for key in here if key in there}
    pairs |= {key: there[before] for key, before in find_earlier_keys(baseline, run).items()}
    other = [key for key in pairs if _get_prompt_fingerprints(here[key]) != _get_prompt_fingerprints(pairs[key])]
    if not other:
        return run
    known, found = baseline.varying_fields, _find_varying((here[key], pairs[key]) for key in pairs)
    left_out = {
        name: numbers for name, numbers in found.items() if numbers <= (known.get(name, -1) if known is not None else 0)
    }
    return run.replace_cases(
        {
            key: _adopt_fingerprints(here[key], pairs[key])
            for key in other
            if _asks_same(here[key], pairs[key], left_out)
        }
    )


def find_varying_fields(run: RunResult, baseline: RunResult) -> dict[str, bool] | None:
    """Find the fields that differ from the baseline in every case that has them, by name; true if numbers differ.

    Dates, times and random words that differed once stay in the result, because a date is the same for a day.
    """
    if not run.is_external:
        return None
    pairs, known = list(_iter_pairs(run, baseline)), baseline.varying_fields or {}
    names = {one.name for case, other in pairs for one, _ in _pair_fields(case, other) if one.stable}
    once = {name: False for name, numbers in known.items() if not numbers and name in names}
    if not any(_pair_fields(*pair) for pair in pairs):
        return baseline.varying_fields
    return once | _find_varying(pairs)


def _find_varying(pairs: Iterable[tuple[CaseResult, CaseResult]]) -> dict[str, bool]:
    """Find the fields that differ in every pair of cases where they have such values.

    One value that stays the same shows that the others may have been edited. Numbers have to differ in two cases.
    """
    seen = defaultdict[str, list[_FieldPair]](list)
    for case, other in pairs:
        for pair in _pair_fields(case, other):
            seen[pair[0].name].append(pair)
    found: dict[str, bool] = {}
    for name, fields in seen.items():
        if _count_same_rests(fields, lambda one: one.stable):
            found[name] = False
        elif _count_same_rests(fields, lambda one: one.fixed) > 1:
            found[name] = True
    return found


def _count_same_rests(fields: Iterable[_FieldPair], get_rest: Callable[[FieldDigests], str | None]) -> int:
    """Count the fields that are the same but for such values; 0 if one with such values is the same altogether."""
    known = [(one, two) for one, two in fields if get_rest(one) and get_rest(two)]
    same = any(one.value == two.value for one, two in known)
    return 0 if same else sum(get_rest(one) == get_rest(two) for one, two in known)


def iter_left_out_notes(run: RunResult, baseline: RunResult) -> Iterator[str]:
    """Yield a note that names each field that was left out of the comparison, once."""
    counts = Counter(
        one.name
        for case, other in _iter_pairs(run, baseline)
        if case.fingerprint == other.fingerprint
        for one, two in _pair_fields(case, other)
        if one.value != two.value
    )
    if counts:
        named = format_first_few(
            list(counts), _MAX_NAMED, lambda name: f"{name} ({format_count(counts[name], 'case')})"
        )
        yield f"left out of the comparison: {named}, because the values are new in every run"


def describe_difference(case: CaseResult, baseline: CaseResult) -> str:
    """Describe why a case cannot be compared with that of the baseline, as a clause."""
    one, two = case.fingerprints, baseline.fingerprints
    if one is None or two is None or one.fields is None or two.fields is None:
        return _UNKNOWN_DIFFERENCE
    if one.expectation != two.expectation:
        return "the expectation differs"
    now, then = {field.name: field for field in one.fields}, {field.name: field for field in two.fields}
    differing = [name for name, field in now.items() if name in then and field.value != then[name].value]
    # what could be left out is the reason only where nothing else differs
    edited = [name for name in differing if now[name].fixed is None or now[name].fixed != then[name].fixed]
    changes = (
        *(f"{name} is missing" for name in then if name not in now),
        *(f"{name} is new" for name in now if name not in then),
        *(f"{name} differs" for name in edited or differing),
    )
    return format_first_few(changes, 3) if changes else _UNKNOWN_DIFFERENCE


def _iter_pairs(run: RunResult, baseline: RunResult) -> Iterator[tuple[CaseResult, CaseResult]]:
    there, earlier = baseline.index_cases(), find_earlier_keys(baseline, run)
    for key, case in run.iter_cases():
        other = there.get(earlier.get(key, key))
        if other is not None:
            yield case, other


def _pair_fields(case: CaseResult, baseline: CaseResult) -> list[_FieldPair]:
    """Pair the fields of two cases that have the same fields and expect the same; none for other cases."""
    one, two = case.fingerprints, baseline.fingerprints
    if one is None or two is None or not one.fields or not two.fields or one.expectation != two.expectation:
        return []
    same = [field.name for field in one.fields] == [field.name for field in two.fields]
    return list(zip(one.fields, two.fields, strict=True)) if same else []


def _get_prompt_fingerprints(case: CaseResult) -> tuple[str | None, ...]:
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
