"""OpenAI evals' records: a line with the specification, then events of samples (read from evals 3.0)."""

from __future__ import annotations

from collections.abc import Iterator
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
    unreadable,
    words,
)
from eval_gate.result_formats.streaming import lines
from eval_gate.struct import Struct, field

_BY_INDEX = "samples are named by their number, which shifts when a line is added before them: add new ones at the end"


_NO_VERDICT: Final = "nothing in the record says whether this sample passed: it has no `match` event"


class _Sample(Struct):
    place: RowPlace
    verdicts: list[bool]
    metrics: dict[str, float] = field(default_factory=dict)
    question: str = ""
    answer: str | None = None
    error: str | None = None
    broke: bool = False
    """There is an `error` event."""


def read_openai(file: Path, shown: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Every sample: as it was matched, or broke; one that has only metrics is left to a rule about them."""
    facts.tool = "OpenAI evals"
    suite, finished, samples = "openai", False, dict[str, _Sample]()
    for place, value in lines(file, shown):
        event = mapping(value, place)
        if "spec" in event:
            suite = words(nested(event, "spec", "eval_name"))[:300] or suite
        elif "final_report" in event:
            finished = True
        elif event.get("sample_id") is not None:
            if len(samples) >= CASES:
                raise unreadable(place, f"is of more than {CASES:,} samples")
            _take(samples.setdefault(words(event["sample_id"])[:300], _Sample(place, [])), event)
    if not finished:
        raise broken_off(RowPlace(shown), "has no final_report")
    facts.notes.append(_BY_INDEX)
    for name, sample in samples.items():
        yield from _rows(suite, name, sample)


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
