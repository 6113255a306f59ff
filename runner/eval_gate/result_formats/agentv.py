"""AgentV's results (4.x): `index.jsonl` of a run, and the files beside it that its rows name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final

from eval_gate.files.reading import read_left_up_to
from eval_gate.model.base import JsonValue
from eval_gate.model.execution import Blame, Status
from eval_gate.model.limits import BROUGHT_TEXT
from eval_gate.result_formats.rows import (
    Ending,
    FileFacts,
    ResultRow,
    RowPlace,
    RowScore,
    broken_off,
    ending,
    mapping,
    members,
    milliseconds,
    name_of,
    nested,
    number,
    unreadable,
    usage,
    words,
)
from eval_gate.result_formats.streaming import lines, value_of
from eval_gate.text.digest import fingerprint

INDEX: Final = "index.jsonl"
_SUMMARIES: Final = ("benchmark.json", "summary.json")
"""Beside the index, from a run's beginning: of version 4, and of version 5."""
_AGENT: Final = "agent"
_EVALUATOR: Final = "evaluator"
"""Values of `failure_stage`: what failed. All others, such as `repo_setup`, come before the agent is asked."""
_JUDGED: Final = {"ok": Status.PASSED, "quality_failure": Status.FAILED}


def read_agentv(file: Path, shown: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Every row of the index. Raises GateError, as for a run with fewer rows than AgentV had planned."""
    facts.tool = "AgentV"
    beside = _Beside(file.parent, _shared(file, shown))
    count, seen = 0, dict[str, RowPlace]()
    for place, value in lines(file, shown):
        row = mapping(value, place)
        first = seen.setdefault(fingerprint(row), place)
        if first is not place:
            facts.notes.append(f"{place} is the same row as {first}, as --rerun-failed writes it: it was read once")
            continue
        yield _row(row, beside, place)
        count += 1
    said = (nested(beside.json(name, RowPlace(shown)), "metadata", "planned_test_count") for name in _SUMMARIES)
    planned = max((found for one in said if (found := number(one)) is not None), default=0)
    if count < planned:  # rows are written one by one
        raise broken_off(RowPlace(shown), f"holds {count} of {planned:.0f} results that AgentV had planned")


def _shared(file: Path, shown: str) -> frozenset[str]:
    """Folders that rows of several targets name: AgentV lets the last target overwrite what the others left there."""
    targets: dict[str, set[str]] = {}
    for _, value in lines(file, shown):
        if isinstance(folder := nested(value, "artifact_dir"), str):
            targets.setdefault(folder, set()).add(words(nested(value, "target")))
    return frozenset(folder for folder, several in targets.items() if len(several) > 1)


class _Beside:
    """The files that rows name. What leads out of the index's folder is not read."""

    def __init__(self, folder: Path, shared: Collection[str]) -> None:
        self._folder = folder.resolve()
        self._shared = shared

    def own(self, row: Mapping[str, JsonValue]) -> bool:
        """Whether what the row's files say of an answer is about this row, and not about another target's."""
        return row.get("artifact_dir") not in self._shared

    def text(self, named: JsonValue, place: RowPlace) -> str | None:
        """The file's text; None where none is named, or it is not there."""
        if not isinstance(named, str) or not named:
            return None
        try:
            file = (self._folder / named).resolve()
            if not file.is_relative_to(self._folder):
                raise unreadable(place, f"names a file outside of its folder: {named[:100]}")
            data = read_left_up_to(file, BROUGHT_TEXT)[:BROUGHT_TEXT] if file.is_file() else None
            return None if data is None else data.decode("utf-8", "replace")
        except (OSError, ValueError):
            return None

    def json(self, named: JsonValue, place: RowPlace) -> JsonValue:
        """The file's value; None where it is not there."""
        text = self.text(named, place)
        return value_of(text, place) if text else None


def _row(row: dict[str, JsonValue], beside: _Beside, place: RowPlace) -> ResultRow:
    scores = tuple(_score(one) for one in members(row.get("scores")))
    ended = _ended(row, scores)
    own = beside.own(row)
    timing = beside.json(row.get("timing_path"), place) if own else None
    asked = beside.text(row.get("input_path"), place) or ""
    suite, target = words(row.get("suite")) or "agentv", words(row.get("target"))[:200]
    variant = words(nested(row, "projection_identity", "dimensions", "variant"))
    attempt = nested(row, "projection_identity", "dimensions", "attempt")
    return ResultRow(
        suite=", ".join(filter(None, (suite[:300], target, variant[:100]))),
        id=name_of(row.get("test_id"), place, "test_id"),
        status=ended.status,
        place=place,
        scores=scores,
        score=number(row.get("score")),
        question=asked,
        answer=beside.text(row.get("answer_path") or row.get("output_path"), place) if own else None,
        error=ended.error,
        blame=ended.blame,
        duration_ms=milliseconds(nested(timing, "duration_ms")),
        usage=usage(nested(timing, "token_usage", "input"), nested(timing, "token_usage", "output")),
        target=target or None,
        content=fingerprint([asked]) if asked else None,
        repeat=words(nested(row, "projection_identity", "dimensions", "run_id")) if isinstance(attempt, int) else None,
        run=words(nested(row, "projection_identity", "dimensions", "run_id")) or None,
        named_by="suite, target and test_id",
    )


def _ended(row: dict[str, JsonValue], scores: tuple[RowScore, ...]) -> Ending:
    """How the row's test ended. What did not get to the agent, or broke behind it, says nothing about the agent."""
    status, why = _JUDGED.get(words(row.get("execution_status")), Status.ERROR), _why(row, scores)
    stage = words(row.get("failure_stage") or nested(row, "execution_error", "stage"))
    if stage and stage != _AGENT and (status is Status.ERROR or stage == _EVALUATOR):
        return Ending(Status.ERROR, Blame.OURS, f"{stage}: {why}")
    if not stage and not row.get("execution_status"):
        return Ending(Status.ERROR, Blame.OURS, why)
    return ending(status, scores, why, weighed=True)


def _score(one: JsonValue) -> RowScore:
    verdict, said = nested(one, "verdict"), members(nested(one, "assertions"))
    missed = [words(nested(each, "text")) for each in said if nested(each, "passed") is not True]
    shown = missed or [words(nested(each, "text")) for each in said]
    passed = {"pass": True, "fail": False}.get(verdict) if isinstance(verdict, str) else None
    return RowScore(
        words(nested(one, "name"))[:200] or "score", number(nested(one, "score")), passed, "; ".join(shown) or None
    )


def _why(row: dict[str, JsonValue], scores: tuple[RowScore, ...]) -> str:
    missed = [f"{one.name}: {one.reason or one.value}" for one in scores if one.passed is False]
    said = words(nested(row, "error", "message") or row.get("error") or nested(row, "execution_error", "message"))
    return said or "; ".join(missed) or words(row.get("execution_status")) or "no verdict"
