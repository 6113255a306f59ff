"""OpenAI evals logs: a line with the specification, then events of samples (since evals 3.0)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from eval_gate.external_results.json_streaming import iter_lines
from eval_gate.external_results.records import Fields
from eval_gate.external_results.result_rows import (
    ExecutionEnding,
    FileFacts,
    ResultRow,
    RowPlace,
    RowScore,
    build_two_runs_error,
    classify_error_kind,
    to_text,
)
from eval_gate.external_results.statuses import parse_tables
from eval_gate.model.execution import ErrorKind, Status
from eval_gate.model.limits import CASES, EXTERNAL_SCORES
from eval_gate.struct import Struct, field

STATUSES: Final = parse_tables("""
OpenAI evals 3.0: correct of a `match` event
  passed: true; failed: false
""")
_BY_INDEX = "samples are named by number, which shifts when a line is added before them: add new samples at the end"
_COUNTS: Final = "counts/"
_ROUNDING: Final = 1e-6
_NO_VERDICT: Final = "the log does not report whether this sample passed: it has no `match` event"


class _Sample(Struct):
    place: RowPlace
    verdicts: list[ExecutionEnding]
    metrics: dict[str, float] = field(default_factory=dict)
    metric_events: int = 0
    prompt: str = ""
    response: str | None = None
    error: str | None = None
    has_error: bool = False


class _EvalsRun(Struct):
    shown_as: str
    suite: str = "openai"
    spec_place: RowPlace | None = None
    run: str = ""
    report: Fields | None = None
    events: set[int] = field(default_factory=set)
    """The numbers of the events that are there: evals counts them from 0."""
    samples: dict[str, _Sample] = field(default_factory=dict)

    def add_event(self, event: Fields, place: RowPlace) -> None:
        """Add a line of the file. Raises GateError for one of another run."""
        self._require_one_run(event, place)
        if event.has("spec"):
            self.suite = event.text("spec.eval_name")[:300] or self.suite
        elif event.has("final_report"):
            self.report = event.at("final_report")
        elif event.get("sample_id") is not None:
            if len(self.samples) >= CASES:
                raise place.build_error(f"is of more than {CASES:,} samples")
            if type(number := event.get("event_id")) is int:
                self.events.add(number)
            _add_to_sample(self.samples.setdefault(event.text("sample_id")[:300], _Sample(place, [])), event)

    def _require_one_run(self, event: Fields, place: RowPlace) -> None:
        """Raise GateError for a line of a second run: evals writes each run into a file of its own."""
        run = event.text("run_id", "spec.run_id")[:100]
        other = event.has("spec") and self.spec_place is not None
        if other or (run and self.run and run != self.run):
            first = f"begins at {self.spec_place}" if self.spec_place else f"is {self.run}"
            problem = place.build_problem(f"is of the run {run or 'after it'}; the first {first}")
            raise build_two_runs_error(f"{self.shown_as} contains", problem)
        self.run = self.run or run
        if event.has("spec"):
            self.spec_place = place

    def check_complete(self) -> None:
        """Raise GateError where something is missing: the report often stands before the events that it is about."""
        place = RowPlace(self.shown_as)
        if self.report is None:
            raise place.build_incomplete_error("has no final_report")
        if missing_events := max(self.events, default=-1) + 1 - len(self.events):
            raise place.build_incomplete_error(f"is missing {missing_events:,} of the events that evals numbered")
        # count the samples that a model-graded eval classified: `counts/Y`, or `counts/choice/Y` per choice
        sums = Counter[str]()
        for name, count in self.report.items():
            if name.startswith(_COUNTS):
                sums[name.rpartition("/")[0]] += count.count()
        declared_number = max(sums.values(), default=0)
        number = sum(sample.metric_events for sample in self.samples.values())
        place.check_count(declared_number, number, "samples in its report")
        accuracy = self.report.number("accuracy")
        accuracies = self._compute_accuracies()
        if accuracy is not None and not any(abs(one - accuracy) < _ROUNDING for one in accuracies):
            of = f"its events make {accuracies[0]:.4g}" if accuracies else "it has no matches and no measurements"
            raise place.build_incomplete_error(f"reports an accuracy of {accuracy:.4g}, and {of}")

    def _compute_accuracies(self) -> list[float]:
        """Compute every value that an eval may report as its accuracy."""
        samples = self.samples.values()
        correct = [[verdict.status is Status.PASSED for verdict in sample.verdicts] for sample in samples]
        matches = [one for each in correct for one in each]
        each = [(all(one), any(one)) for one in correct if one]
        measured = [value for one in samples if (value := one.metrics.get("accuracy")) is not None]
        ways: list[Sequence[float]] = [matches, [first for first, _ in each], [second for _, second in each], measured]
        return [sum(way) / len(way) for way in ways if way]


def read_openai(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Yield every sample. One with metrics alone has no verdict: a score rule decides."""
    facts.tool = "OpenAI evals"
    record = _EvalsRun(shown_as)
    for place, event in iter_lines(file, shown_as):
        record.add_event(event, place)
    record.check_complete()
    facts.notes.append(_BY_INDEX)
    for name, sample in record.samples.items():
        yield from _iter_rows(record.suite, name, sample)


def _add_to_sample(sample: _Sample, event: Fields) -> None:
    data = event.at("data")
    match event.get("type"):
        case "match":
            ending = STATUSES[0].build_ending(data.get("correct"))
            sample.verdicts.append(ending)
            if ending.status is Status.FAILED and data.get("expected") is not None:
                sample.error = f"expected {data.text('expected')[:300]}"
        case "sampling":
            prompt, sampled = data.get("prompt"), data.get("sampled")
            turns = (f"{one.text('role')}: {one.text('content')}" for one in data.members("prompt"))
            sample.prompt = prompt if isinstance(prompt, str) else "\n\n".join(turns)
            sample.response = to_text(sampled[0] if isinstance(sampled, list) and len(sampled) == 1 else sampled)
        case "metrics" if isinstance(data.value, dict):
            sample.metric_events += 1
            for name, one in islice(data.items(), EXTERNAL_SCORES):
                number = float(one.value) if isinstance(one.value, bool) else one.number()
                if name and number is not None:
                    sample.metrics[to_text(name)[:200]] = number
        case "error":
            sample.has_error = True
            sample.error = data.text("message") or data.text("type") or "an error"


def _iter_rows(suite: str, name: str, sample: _Sample) -> Iterator[ResultRow]:
    row = ResultRow(
        suite=suite,
        id=name,
        status=Status.ERROR,
        place=sample.place,
        prompt=sample.prompt,
        response=sample.response,
        error=sample.error,
        error_kind=classify_error_kind(sample.error or ""),
        named_by="eval_name and sample_id",
    )
    if sample.verdicts:  # several belong to one execution, and each has to match
        ending = max(sample.verdicts, key=lambda one: (one.status is Status.ERROR, one.status is Status.FAILED))
        error = sample.error if ending.status is Status.FAILED else ending.error
        yield row._replace(status=ending.status, error=error, error_kind=ending.error_kind)
    elif sample.has_error:
        yield row
    elif sample.metrics:
        yield row._replace(status=None, scores=tuple(RowScore(*one) for one in sample.metrics.items()))
    else:
        yield row._replace(error=_NO_VERDICT, error_kind=ErrorKind.EVALUATION_ERROR)
