"""OpenAI evals' records: a line with the specification, then events of samples (read from evals 3.0)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.model.execution import Blame, Status
from eval_gate.model.limits import BROUGHT_SCORES, CASES
from eval_gate.result_formats.rows import (
    FileFacts,
    ResultRow,
    RowPlace,
    RowScore,
    blame_of,
    broken_off,
    mapping,
    members,
    nested,
    number,
    two_runs,
    unreadable,
    whole_number,
    words,
)
from eval_gate.result_formats.streaming import lines
from eval_gate.struct import Struct, field

_BY_INDEX = "samples are named by their number, which shifts when a line is added before them: add new ones at the end"
_COUNTS: Final = "counts/"
_ROUNDED: Final = 1e-6
_NO_VERDICT: Final = "nothing in the record says whether this sample passed: it has no `match` event"


class _Sample(Struct):
    place: RowPlace
    verdicts: list[bool]
    metrics: dict[str, float] = field(default_factory=dict)
    measured: int = 0
    """`metrics` events."""
    question: str = ""
    answer: str | None = None
    error: str | None = None
    broke: bool = False
    """There is an `error` event."""


class _Record(Struct):
    """What is known of the run that a file holds."""

    shown: str
    suite: str = "openai"
    begun: RowPlace | None = None
    """Where its specification stands."""
    run: str = ""
    report: JsonValue = None
    events: set[int] = field(default_factory=set)
    """The numbers of the events that are there: evals counts them from 0."""
    samples: dict[str, _Sample] = field(default_factory=dict)

    def take(self, event: dict[str, JsonValue], place: RowPlace) -> None:
        """Add a line of the file. Raises GateError for one of another run."""
        self._hold_to_one_run(event, place)
        if "spec" in event:
            self.suite = words(nested(event, "spec", "eval_name"))[:300] or self.suite
        elif "final_report" in event:
            self.report = event["final_report"] or {}
        elif event.get("sample_id") is not None:
            if len(self.samples) >= CASES:
                raise unreadable(place, f"is of more than {CASES:,} samples")
            if type(number := event.get("event_id")) is int:
                self.events.add(number)
            _take(self.samples.setdefault(words(event["sample_id"])[:300], _Sample(place, [])), event)

    def _hold_to_one_run(self, event: dict[str, JsonValue], place: RowPlace) -> None:
        """Evals writes each run into a file of its own: one with two of them was joined from two."""
        run = words(event.get("run_id") or nested(event, "spec", "run_id"))[:100]
        other = "spec" in event and self.begun is not None
        if other or (run and self.run and run != self.run):
            first = f"begins at {self.begun}" if self.begun else f"is {self.run}"
            raise two_runs(
                f"{self.shown} holds", place.problem(f"is of the run {run or 'after it'}; the first {first}")
            )
        self.run = self.run or run
        if "spec" in event:
            self.begun = place

    def refuse_part(self) -> None:
        """Raise GateError where something is missing: the report often stands before the events that it is about."""
        if self.report is None:
            raise broken_off(RowPlace(self.shown), "has no final_report")
        if missing := max(self.events, default=-1) + 1 - len(self.events):
            raise broken_off(RowPlace(self.shown), f"lacks {missing:,} of the events that evals numbered")
        said = _counted(self.report)
        found = sum(sample.measured for sample in self.samples.values())
        if found < said:
            raise broken_off(RowPlace(self.shown), f"counts {said:,} samples in its report, and {found:,} are in it")
        accuracy = number(nested(self.report, "accuracy"))
        found_of = self._accuracies()
        if accuracy is not None and not any(abs(one - accuracy) < _ROUNDED for one in found_of):
            of = f"the events in it make {found_of[0]:.4g}" if found_of else "nothing in it was matched or measured"
            raise broken_off(RowPlace(self.shown), f"reports an accuracy of {accuracy:.4g}, and {of}")

    def _accuracies(self) -> list[float]:
        """What an eval may mean by it: of all matches, of the samples, or the mean of what it measured."""
        samples = self.samples.values()
        matches = [correct for sample in samples for correct in sample.verdicts]
        each = [(all(one.verdicts), any(one.verdicts)) for one in samples if one.verdicts]
        measured = [value for one in samples if (value := one.metrics.get("accuracy")) is not None]
        ways: list[Sequence[float]] = [matches, [first for first, _ in each], [second for _, second in each], measured]
        return [sum(way) / len(way) for way in ways if way]


def _counted(report: JsonValue) -> int:
    """The samples that an eval graded by a model has put into classes, by `counts/Y`, or `counts/choice/Y` of each."""
    sums = Counter[str]()
    for name, count in report.items() if isinstance(report, dict) else ():
        if name.startswith(_COUNTS):
            sums[name.rpartition("/")[0]] += whole_number(count)
    return max(sums.values(), default=0)


def read_openai(file: Path, shown: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Every sample: as it was matched, or broke; one that has only metrics is left to a rule about them."""
    facts.tool = "OpenAI evals"
    record = _Record(shown)
    for place, value in lines(file, shown):
        record.take(mapping(value, place), place)
    record.refuse_part()
    facts.notes.append(_BY_INDEX)
    for name, sample in record.samples.items():
        yield from _rows(record.suite, name, sample)


def _take(sample: _Sample, event: dict[str, JsonValue]) -> None:
    data = event.get("data")
    match event.get("type"):
        case "match":
            sample.verdicts.append(nested(data, "correct") is True)
            if nested(data, "correct") is not True and nested(data, "expected") is not None:
                sample.error = f"expected {words(nested(data, 'expected'))[:300]}"
        case "sampling":
            prompt, sampled = nested(data, "prompt"), nested(data, "sampled")
            sample.question = (
                prompt
                if isinstance(prompt, str)
                else "\n\n".join(
                    f"{words(nested(one, 'role'))}: {words(nested(one, 'content'))}" for one in members(prompt)
                )
            )
            sample.answer = words(sampled[0] if isinstance(sampled, list) and len(sampled) == 1 else sampled)
        case "metrics" if isinstance(data, dict):
            sample.measured += 1
            values = {words(name)[:200]: _score(value) for name, value in islice(data.items(), BROUGHT_SCORES)}
            sample.metrics |= {name: value for name, value in values.items() if name and value is not None}
        case "error":
            sample.broke = True
            sample.error = words(nested(data, "message")) or words(nested(data, "type")) or "an error"


def _score(value: JsonValue) -> float | None:
    return float(value) if isinstance(value, bool) else number(value)


def _rows(suite: str, name: str, sample: _Sample) -> Iterator[ResultRow]:
    row = ResultRow(
        suite=suite,
        id=name,
        status=Status.ERROR,
        place=sample.place,
        question=sample.question,
        answer=sample.answer,
        error=sample.error,
        blame=blame_of(sample.error or ""),
        repeat="",
        named_by="eval_name and sample_id",
    )
    if sample.verdicts:
        for correct in sample.verdicts:
            status = Status.PASSED if correct else Status.FAILED
            yield row._replace(status=status, error=None if correct else sample.error)
    elif sample.broke:
        yield row
    elif sample.metrics:
        yield row._replace(status=None, scores=tuple(RowScore(*one) for one in sample.metrics.items()))
    else:
        yield row._replace(error=_NO_VERDICT, blame=Blame.OURS)
