"""The cases of a run as what they can show depends on them: grouped by record, so that many cost no more than few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from eval_gate.config.policy import Policy
from eval_gate.gate.conclude import confirmation_of, planned, trials_of
from eval_gate.gate.evidence.bars import bars_of
from eval_gate.gate.evidence.days import NOTHING_KNOWN, Days, learned_days
from eval_gate.gate.evidence.past import past_before
from eval_gate.gate.evidence.prior import learned_from
from eval_gate.gate.evidence.reruns import Confirmation
from eval_gate.gate.evidence.settle import CaseFacts
from eval_gate.gate.must_pass import must_pass
from eval_gate.gate.pass_score import held_to
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass
from eval_gate.model.grounds import NO_RECORD, CaseRecord, Counts
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.results.baseline import Baseline
from eval_gate.struct import FrozenStruct, replace


class CaseGroup(FrozenStruct):
    """So many cases (`number`) with the same record; `keys` are their names, of supposed cases there are none.

    `compared` says whether there is an earlier result by the same question, `passed_then` whether that was a pass.
    Those that are `dependent` work on files of others, and are in no test that counts cases.
    """

    record: CaseRecord
    number: int
    keys: tuple[CaseKey, ...] = ()
    compared: bool = True
    passed_then: bool = True
    must_pass: bool = False
    dependent: bool = False

    @property
    def facts(self) -> CaseFacts:
        """One of them as the verdict will see it, not executed yet."""
        plain = CaseClass.REGRESSION if self.compared else CaseClass.INCOMPARABLE
        before = 0 if self.dependent else None
        return CaseFacts(CaseKey("", ""), plain, self.record, must_pass=self.must_pass, cases_before=before)


class CaseGroups(FrozenStruct):
    """All cases that a verdict will be about, and how they are confirmed.

    `runs` is how many runs their records go back, `trials` how often a case is executed at first, `allowed` the number
    of regressions that do not fail the gate, `aside` of cases in quarantine, which no test looks at.
    """

    kinds: tuple[CaseGroup, ...]
    confirmation: Confirmation
    runs: int
    trials: int = 1
    allowed: int = 0
    aside: int = 0
    days: Days = NOTHING_KNOWN
    """How much whole runs of the branch differ."""

    @property
    def number(self) -> int:
        """How many cases there are."""
        return sum(kind.number for kind in self.kinds)


class _One(FrozenStruct):
    key: CaseKey
    record: CaseRecord
    compared: bool
    passed_then: bool
    must_pass: bool
    dependent: bool


def cases_of(run: RunResult) -> CaseGroups | None:
    """The cases of a judged run with the record that it was judged by.

    None where there is none: compared with nothing, only some cases chosen, or a part of a run.
    """
    comparison = run.comparison
    if comparison is None or comparison.evidence is None or run.eval_paths is None or run.shard is not None:
        return None
    evidence, policy, results = comparison.evidence, run.policy, run.by_key()
    patterns = policy.must_pass if policy else ()
    aside = run.quarantined

    def one_by_one() -> Iterator[_One]:
        for change in comparison.changes:
            case = results.get(key := change.key)
            if case is None or key in aside:
                continue
            compared = change.baseline is not None and change.change is not CaseClass.INCOMPARABLE
            yield _One(
                key,
                change.case_record or NO_RECORD,
                compared,
                compared and change.baseline is not None and change.baseline.passed,
                must_pass(case, patterns),
                case.dependent,
            )

    kinds = _grouped(one_by_one())
    number = sum(kind.number for kind in kinds)
    return CaseGroups(
        kinds,
        confirmation_of(evidence),
        evidence.runs,
        trials=evidence.trials,
        allowed=policy.allowed_regressions if policy else 0,
        aside=len(results) - number,
        days=learned_days(evidence.days),
    )


def cases_before(baseline: Baseline, policy: Policy, quarantined: Collection[CaseKey] = ()) -> CaseGroups:
    """The cases of a baseline with the record that ends with it: what the next run will be judged by."""
    past, run = past_before(baseline, policy.pass_score), held_to(baseline.result, policy.pass_score)
    pasts, results = past.of(run), run.by_key()

    def one(key: CaseKey, case: CaseResult) -> _One:
        known = pasts[key]
        return _One(
            key,
            known.record,
            known.newest is not None,
            known.newest is not None and known.newest.passed,
            must_pass(case, policy.must_pass),
            case.dependent,
        )

    kinds = _grouped(one(key, case) for key, case in run.cases() if key not in quarantined)
    confirmation = _worked_out(
        Confirmation(
            max(planned(run), 1), past.belief(quarantined), policy.error_rate, policy.most_reruns, trials=trials_of(run)
        ),
        past.records(quarantined),
    )
    aside = len(results) - sum(kind.number for kind in kinds)
    days = learned_days(past.days(quarantined))
    return CaseGroups(kinds, confirmation, past.level, confirmation.trials, policy.allowed_regressions, aside, days)


def _grouped(cases: Iterable[_One]) -> tuple[CaseGroup, ...]:
    """The cases with the same record together, those of which there are most first."""
    found: dict[tuple[object, ...], tuple[_One, list[CaseKey]]] = {}
    for one in cases:
        record = one.record
        same = (
            _numbers(record.counts),
            _numbers(record.newest),
            record.newest_failed,
            one.compared,
            one.passed_then,
            one.must_pass,
            one.dependent,
        )
        found.setdefault(same, (one, []))[1].append(one.key)
    kinds = [
        CaseGroup(one.record, len(keys), tuple(keys), one.compared, one.passed_then, one.must_pass, one.dependent)
        for one, keys in found.values()
    ]
    return tuple(sorted(kinds, key=lambda kind: -kind.number))


def _numbers(counts: Counts) -> tuple[int, int, int]:
    return counts.passes, counts.failures, counts.crashes


def with_history(cases: CaseGroups, runs: int) -> CaseGroups:
    """The same cases after so many runs in which each failed as often as it did so far, and the belief learned anew."""
    if not cases.runs:
        return cases
    factor = runs / cases.runs
    kinds = tuple(replace(kind, record=_longer(kind.record, factor)) for kind in cases.kinds)
    return learned_anew(replace(cases, kinds=kinds, runs=runs))


def with_number(cases: CaseGroups, number: int) -> CaseGroups:
    """So many cases like these: as many of each record as there are now, in proportion, and the error rate shared."""
    factor = number / max(cases.number, 1)
    ends = [round(sum(kind.number for kind in cases.kinds[: at + 1]) * factor) for at in range(len(cases.kinds))]
    counts = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    kinds = tuple(
        replace(kind, number=count, keys=kind.keys[:count])
        for kind, count in zip(cases.kinds, counts, strict=True)
        if count
    )
    confirmation = replace(cases.confirmation, cases=max(round(cases.confirmation.cases * factor), 1))
    return learned_anew(replace(cases, kinds=kinds, confirmation=confirmation))


def with_confirm(cases: CaseGroups, confirm: int) -> CaseGroups:
    """The same cases with so many re-runs of one at most."""
    return _bars_anew(replace(cases, confirmation=replace(cases.confirmation, confirm=confirm)))


def learned_anew(cases: CaseGroups) -> CaseGroups:
    """The same cases with what their records let believe, and the evidence they need by it."""
    prior = learned_from(_records(cases))
    return _bars_anew(replace(cases, confirmation=replace(cases.confirmation, prior=prior)))


def _bars_anew(cases: CaseGroups) -> CaseGroups:
    return replace(cases, confirmation=_worked_out(cases.confirmation, _records(cases)))


def _records(cases: CaseGroups) -> Counter[tuple[int, int]]:
    found: Counter[tuple[int, int]] = Counter()
    for kind in cases.kinds:
        found[kind.record.counts.passes, kind.record.counts.failures] += kind.number
    return found


def _worked_out(confirmation: Confirmation, records: Mapping[tuple[int, int], int]) -> Confirmation:
    """With the evidence that cases with these records need."""
    asked = bars_of(confirmation.prior, records, confirmation.cases, confirmation.executions, confirmation.error_rate)
    return replace(confirmation, sure=asked.sure if asked else None, every=asked.every if asked else None)


def _longer(record: CaseRecord, factor: float) -> CaseRecord:
    """As many executions more as the record is longer, with the same share of failures; the newest run stays."""
    counts = record.counts
    if not counts.runs:
        return record
    runs = max(round(counts.runs * factor), 1)
    failures = round(counts.failures * runs / counts.runs)
    crashes = round(counts.crashes * runs / counts.runs)
    scaled = Counts(passes=runs - failures, failures=failures, crashes=min(crashes, failures))
    return replace(record, counts=scaled)
