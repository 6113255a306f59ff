"""pydantic-evals report as JSON: `EvaluationReportAdapter.dump_json(report)` (since 2.0).

A case passes when all of its assertions are true, and there is at least one. Scores have no threshold: a rule has to
say from where on they pass.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from eval_gate.external_results.json_streaming import read_record
from eval_gate.external_results.prompt_digests import digest_prompt
from eval_gate.external_results.records import Fields, iter_listed_records
from eval_gate.external_results.result_rows import FileFacts, ResultRow, RowPlace, RowScore
from eval_gate.external_results.statuses import end_execution, let_verdicts_decide, parse_tables
from eval_gate.text.digest import compute_fingerprint

STATUSES: Final = parse_tables("""
pydantic-evals 2.62: value of an assertion
  passed: true; failed: false
""")
_NAMES: Final = ("source_case_name", "name")
"""A name may itself end like the mark of a repeat, so that only the first is without it."""
_NUMBERED_NAME: Final = re.compile(r"Case \d+")
_NO_NAME_HINT: Final = "pydantic-evals numbers cases without a name, and the numbers shift: give each Case a name"


def read_pydantic_evals(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Yield every case, then those whose task broke."""
    facts.tool, report, graders = "pydantic-evals", read_record(file, shown_as), dict[str, set[str]]()
    suite = report.text("dataset_name", "name") or "pydantic-evals"
    for case in report.members("cases"):  # the evaluators of all of its executions
        graders.setdefault(case.text(*_NAMES), set()).update(_list_evaluators(case))
    for kind, case, place in iter_listed_records(report, ("cases", "failures"), shown_as):
        yield _build_row(case, suite[:300], place, graders, broke=kind == "failures")
    facts.notes += _iter_coverage_notes(graders)


def _list_evaluators(case: Fields) -> set[str]:
    """List the evaluators with a result in this execution, if only that they failed."""
    entries = [one for kind in ("assertions", "scores", "labels") for _, one in case.items(kind)]
    entries += case.members("evaluator_failures")
    return {name[:200] for one in entries if (name := one.text("source.name"))}


def _iter_coverage_notes(graders: dict[str, set[str]]) -> Iterator[str]:
    """Yield a note for each evaluator that graded most but not all cases: intended, or without a result."""
    for grader, graded in Counter(one for evaluators in graders.values() for one in evaluators).items():
        if len(graders) / 2 < graded < len(graders):
            first = next(case for case, evaluators in graders.items() if grader not in evaluators)
            yield f"{grader} graded {graded:,} of {len(graders):,} cases, but not {first[:80]}"


def _build_row(case: Fields, suite: str, place: RowPlace, graders: dict[str, set[str]], *, broke: bool) -> ResultRow:
    silent_graders = sorted(graders.get(case.text(*_NAMES), set()) - _list_evaluators(case)) if not broke else ()
    scores = let_verdicts_decide([*_iter_scores(case, silent_graders)])
    ending = end_execution(scores, case.text("error_message") if broke else None)
    inputs, expected = case.get("inputs"), case.get("expected_output")
    content, name = compute_fingerprint([inputs, expected]), case.name(*_NAMES, place=place)
    return ResultRow(
        suite=suite,
        id=name,
        place=place,
        **ending._asdict(),
        scores=scores,
        prompt=case.text("inputs"),
        expectation=() if expected is None else (case.text("expected_output"),),
        response=None if broke else case.text_or_none("output"),
        duration_ms=case.seconds("task_duration"),
        cost_usd=case.cost("metrics.cost"),
        usage=case.usage("metrics.input_tokens", "metrics.output_tokens"),
        content=content,
        digests=digest_prompt("inputs", inputs, expected),
        repeat=content if case.get("source_case_name") else None,
        named_by="name",
        unstable_reason=_NO_NAME_HINT if _NUMBERED_NAME.fullmatch(name) else None,
    )


def _iter_scores(case: Fields, silent_graders: Iterable[str]) -> Iterator[RowScore]:
    """Yield the scores of assertions, which each have a verdict, those with a number alone, and of what broke."""
    for name, one in case.items("assertions"):
        score = RowScore(name[:200], float(one.get("value") is True), None, one.text("reason") or None)
        yield STATUSES[0].apply_verdict(score, one.get("value"))
    for name, one in case.items("scores"):
        yield RowScore(name[:200], one.number("value"), None, one.text("reason") or None)
    for one in case.members("evaluator_failures"):
        yield RowScore(one.text("name")[:200], None, None, one.text("error_message") or None, grader_failed=True)
    for grader in silent_graders:
        yield RowScore(grader, None, None, "it graded other executions, but not this one", grader_failed=True)
