"""pydantic-evals report as JSON: `EvaluationReportAdapter.dump_json(report)` (since 2.0).

A case passes when all of its assertions are true, and there is at least one. Scores have no threshold: a rule has to
say from where on they pass.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from eval_gate.external_results.json_streaming import read_document
from eval_gate.external_results.prompt_digests import digest_prompt
from eval_gate.external_results.result_rows import (
    FileFacts,
    ResultRow,
    RowPlace,
    RowScore,
    build_usage,
    get_items,
    get_members,
    get_nested,
    iter_list_members,
    parse_cost,
    parse_number,
    parse_seconds,
    require_mapping,
    require_name,
    to_text,
    to_text_or_none,
)
from eval_gate.external_results.scored_rows import end_execution, let_verdicts_decide
from eval_gate.external_results.statuses import parse_tables
from eval_gate.model.base import JsonValue
from eval_gate.text.digest import compute_fingerprint

STATUSES: Final = parse_tables("""
pydantic-evals 2.62: value of an assertion
  passed: true; failed: false
""")
_NUMBERED_NAME: Final = re.compile(r"Case \d+")
_NO_NAME_HINT: Final = "pydantic-evals numbers cases without a name, and the numbers shift: give each Case a name"


def read_pydantic_evals(file: Path, shown: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Every case, then those whose task broke."""
    facts.tool = "pydantic-evals"
    report = require_mapping(read_document(file, shown), RowPlace(shown))
    suite = to_text(report.get("dataset_name") or report.get("name")) or "pydantic-evals"
    graders = _find_graders(report)
    for kind, case, place in iter_list_members(report, ("cases", "failures"), shown):
        yield _build_row(case, suite[:300], place, graders, broke=kind == "failures")
    facts.notes += _iter_coverage_notes(graders)


def _find_graders(report: dict[str, JsonValue]) -> dict[str, set[str]]:
    """Return the evaluators that reported on each case, in any of its executions."""
    found: dict[str, set[str]] = {}
    for case in get_members(report.get("cases")):
        found.setdefault(_get_case_name(case), set()).update(_list_evaluators(case))
    return found


def _list_evaluators(case: JsonValue) -> set[str]:
    """Those that said something in this execution, if only that they failed."""
    results = [get_nested(case, kind) for kind in ("assertions", "scores", "labels")]
    given = [one for kind in results if isinstance(kind, dict) for one in kind.values()]
    given += get_members(get_nested(case, "evaluator_failures"))
    return {name[:200] for one in given if (name := to_text(get_nested(one, "source", "name")))}


def _get_case_name(case: JsonValue) -> str:
    return to_text(get_nested(case, "source_case_name") or get_nested(case, "name"))


def _iter_coverage_notes(graders: dict[str, set[str]]) -> Iterator[str]:
    """Yield a note for each evaluator that graded most but not all cases: intended, or without a result."""
    for grader, graded in Counter(one for said in graders.values() for one in said).items():
        if len(graders) / 2 < graded < len(graders):
            first = next(case for case, said in graders.items() if grader not in said)
            yield f"{grader} graded {graded:,} of {len(graders):,} cases, but not {first[:80]}"


def _build_row(
    case: dict[str, JsonValue], suite: str, place: RowPlace, graders: dict[str, set[str]], *, broke: bool
) -> ResultRow:
    missing = sorted(graders.get(_get_case_name(case), set()) - _list_evaluators(case)) if not broke else ()
    broken = [*get_members(case.get("evaluator_failures"))]
    broken += [{"name": one, "error_message": "it graded other executions, but not this one"} for one in missing]
    asserted = _iter_scores(case.get("assertions"), has_verdict=True)
    scored = _iter_scores(case.get("scores"), has_verdict=False)
    scores = let_verdicts_decide([*asserted, *scored, *map(_build_failure, broken)])
    ended = end_execution(scores, to_text(case.get("error_message")) if broke else None)
    content = compute_fingerprint([case.get("inputs"), case.get("expected_output")])
    metrics = case.get("metrics")
    # a name may itself end like the mark of a repeat, so that only this one is without it
    name = require_name(case.get("source_case_name") or case.get("name"), place, "name")
    return ResultRow(
        suite=suite,
        id=name,
        place=place,
        **ended._asdict(),
        scores=scores,
        prompt=to_text(case.get("inputs")),
        expectation=(to_text(case["expected_output"]),) if case.get("expected_output") is not None else (),
        response=None if broke else to_text_or_none(case.get("output")),
        duration_ms=parse_seconds(case.get("task_duration")),
        cost_usd=parse_cost(get_nested(metrics, "cost")),
        usage=build_usage(get_nested(metrics, "input_tokens"), get_nested(metrics, "output_tokens")),
        content=content,
        digests=digest_prompt("inputs", case.get("inputs"), case.get("expected_output")),
        repeat=content if case.get("source_case_name") else None,
        named_by="name",
        unstable_reason=_NO_NAME_HINT if _NUMBERED_NAME.fullmatch(name) else None,
    )


def _build_failure(one: JsonValue) -> RowScore:
    name, why = (to_text(get_nested(one, key)) for key in ("name", "error_message"))
    return RowScore(name[:200], None, None, why or None, grader_failed=True)


def _iter_scores(given: JsonValue, *, has_verdict: bool) -> Iterator[RowScore]:
    """Yield the scores of assertions, which each have a verdict, or those with a number alone."""
    for name, one in get_items(given):
        value, reason = get_nested(one, "value"), to_text(get_nested(one, "reason")) or None
        number = float(value is True) if has_verdict else parse_number(value)
        score = RowScore(name[:200], number, None, reason)
        yield STATUSES[0].apply_verdict(score, value) if has_verdict else score
