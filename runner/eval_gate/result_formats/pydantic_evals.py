"""pydantic-evals' report as JSON: `EvaluationReportAdapter.dump_json(report)` (read from 2.0).

A case passes when all of its assertions are true, and there is at least one. Scores have no threshold: a rule has to
say from where on they pass.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.model.execution import Blame, Status
from eval_gate.result_formats.rows import (
    FileFacts,
    ResultRow,
    RowPlace,
    RowScore,
    blame_of,
    dollars,
    list_members,
    mapping,
    members,
    name_of,
    nested,
    number,
    seconds,
    usage,
    words,
)
from eval_gate.result_formats.streaming import read_whole
from eval_gate.text.digest import fingerprint

_NUMBERED: Final = re.compile(r"Case \d+")
_NAMELESS: Final = "pydantic-evals numbers cases without a name, and the number shifts: give each Case a name"


def read_pydantic_evals(file: Path, shown: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Every case, then those whose task broke."""
    facts.tool = "pydantic-evals"
    report = mapping(read_whole(file, shown), RowPlace(shown))
    suite = words(report.get("dataset_name") or report.get("name")) or "pydantic-evals"
    graders = _graders(report)
    for kind, case, place in list_members(report, ("cases", "failures"), shown):
        yield _row(case, suite[:300], place, graders, broke=kind == "failures")
    facts.notes += _left_out(graders)


def _graders(report: dict[str, JsonValue]) -> dict[str, set[str]]:
    """The evaluators that said something of each case, in any of its executions."""
    found: dict[str, set[str]] = {}
    for case in members(report.get("cases")):
        found.setdefault(_named(case), set()).update(_evaluators(case))
    return found


def _evaluators(case: JsonValue) -> set[str]:
    """Those that said something in this execution, if only that they failed."""
    results = [nested(case, kind) for kind in ("assertions", "scores", "labels")]
    given = [one for kind in results if isinstance(kind, dict) for one in kind.values()]
    given += members(nested(case, "evaluator_failures"))
    return {name[:200] for one in given if (name := words(nested(one, "source", "name")))}


def _named(case: JsonValue) -> str:
    return words(nested(case, "source_case_name") or nested(case, "name"))


def _left_out(graders: dict[str, set[str]]) -> Iterator[str]:
    """What is to be said of evaluators that graded most cases and not all: it may be meant, or they gave nothing."""
    for grader, graded in Counter(one for said in graders.values() for one in said).items():
        if len(graders) / 2 < graded < len(graders):
            first = next(case for case, said in graders.items() if grader not in said)
            yield f"{grader} graded {graded:,} of {len(graders):,} cases, and not {first[:80]}"


def _row(
    case: dict[str, JsonValue], suite: str, place: RowPlace, graders: dict[str, set[str]], *, broke: bool
) -> ResultRow:
    checks, failures = _checks(case.get("assertions")), [*members(case.get("evaluator_failures"))]
    if not broke:
        missing = sorted(graders.get(_named(case), set()) - _evaluators(case))
        failures += [{"name": one, "error_message": "it graded other executions, and not this one"} for one in missing]
    content = fingerprint([case.get("inputs"), case.get("expected_output")])
    metrics = case.get("metrics")
    # a name may itself end like the mark of a repeat, so that only this one is without it
    name = name_of(case.get("source_case_name") or case.get("name"), place, "name")
    return ResultRow(
        suite=suite,
        id=name,
        status=Status.ERROR if broke else _status(checks, failures, scored=bool(case.get("scores"))),
        place=place,
        scores=(*checks, *_scores(case.get("scores"))),
        question=words(case.get("inputs")),
        expectation=(words(case["expected_output"]),) if case.get("expected_output") is not None else (),
        answer=None if broke or case.get("output") is None else words(case.get("output")),
        error=words(case.get("error_message")) or _why(checks, failures),
        blame=blame_of(words(case.get("error_message"))) if broke else Blame.OURS,
        duration_ms=seconds(case.get("task_duration")),
        cost_usd=dollars(nested(metrics, "cost")),
        usage=usage(nested(metrics, "input_tokens"), nested(metrics, "output_tokens")),
        content=content,
        repeat=content if case.get("source_case_name") else None,
        named_by="name",
        unstable=_NAMELESS if _NUMBERED.fullmatch(name) else None,
    )


def _status(checks: tuple[RowScore, ...], failures: Sequence[JsonValue], *, scored: bool) -> Status | None:
    if any(check.passed is False for check in checks):
        return Status.FAILED
    if failures:
        return Status.ERROR
    if checks:
        return Status.PASSED
    return None if scored else Status.ERROR


def _why(checks: tuple[RowScore, ...], failures: Sequence[JsonValue]) -> str | None:
    missed = [f"{one.name}: {one.reason}" if one.reason else one.name for one in checks if one.passed is False]
    broke = [f"{words(nested(one, 'name'))}: {words(nested(one, 'error_message'))}" for one in failures]
    said = "; ".join((*missed, *broke))
    return said or (None if checks else "nothing was asserted")


def _checks(given: JsonValue) -> tuple[RowScore, ...]:
    found = given.items() if isinstance(given, dict) else ()
    return tuple(
        RowScore(
            name[:200],
            float(nested(one, "value") is True),
            nested(one, "value") is True,
            words(nested(one, "reason")) or None,
        )
        for name, one in found
    )


def _scores(given: JsonValue) -> tuple[RowScore, ...]:
    found = given.items() if isinstance(given, dict) else ()
    return tuple(
        RowScore(name[:200], number(nested(one, "value")), None, words(nested(one, "reason")) or None)
        for name, one in found
    )
