"""Parses a run result, or the result of one suite, and checks that it does not contradict itself.

A verdict uses counts from one part and cases from another, so that a contradiction could bypass the gate. Counts are
recalculated where possible, and a contradiction that cannot be resolved is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from msgspec import MsgspecError, Raw, ValidationError, convert, structs

from eval_gate.errors import GateError, Problem
from eval_gate.model import limits
from eval_gate.model.base import JsonValue, decode_json
from eval_gate.model.case import CaseKey, decide_pass
from eval_gate.model.execution import Status
from eval_gate.model.result import SCHEMA_VERSION, CaseResult, RunResult, SuiteResult, Summary, ToolIdentity
from eval_gate.model.run_totals import summarize_cases
from eval_gate.model.setup import TargetIdentity
from eval_gate.struct import replace
from eval_gate.text.sources.json import JsonPositions, parse_json
from eval_gate.text.sources.validation_errors import describe_mismatch, format_field_path
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, check_json_size, may_hold_non_json

MAX_RESULT_BYTES: Final = limits.RESULT_BYTES
MAX_SHOWN: Final = 20
"""Maximum contradictions that are reported individually."""


def parse_run(data: bytes, name: str, *, compared: bool = True) -> RunResult:
    """Parse a run result, or one EvalSuiteResult of any runner that follows the contract.

    `name` stands for the file in errors; without `compared`, the comparison with the baseline is omitted. Raises
    GateError `invalid-run-result` and `unsupported-run-result-version`.
    """
    result = _parse_result(data, name)
    if wrong := list(islice(iter_contradictions(result), MAX_SHOWN)):
        (_, positions), alone = _parse_document(data, name), result.tool.name == CONTRACT_TOOL
        problems = [
            Problem(what, name, positions.find_line(path), format_field_path(path))
            for place, what in wrong
            for path in [place[2:] if alone else place]
        ]
        raise build_corrupt_error(name, "it contradicts itself", problems)
    run = recount_run(result)
    return run if compared else replace(run, comparison=None)


def parse_head(data: bytes, name: str) -> RunResult:
    """Parse a run without its suites and comparison, in a fraction of the time. Raises as `parse_run` does.

    The rest is only checked to be JSON.
    """
    if len(data) <= MAX_RESULT_BYTES:
        with suppress(MsgspecError, RecursionError):
            head: RunResult = decode_json(data, _RunHead)
            return replace(head, suites=(), comparison=None)
    return replace(_parse_result(data, name), suites=(), comparison=None)


class _RunHead(RunResult, kw_only=True):
    """Run result whose large parts are not parsed."""

    suites: Raw = Raw(b"[]")  # type: ignore[assignment]
    comparison: Raw = Raw(b"null")  # type: ignore[assignment]


def _parse_result(data: bytes, name: str) -> RunResult:
    if len(data) > MAX_RESULT_BYTES:
        raise build_corrupt_error(name, f"larger than {MAX_RESULT_BYTES:,} bytes")
    try:
        check_json_size(data, limits.RESULT_VALUES)
        if not may_hold_non_json(data):
            return decode_json(data, RunResult)
    except (UntrustedJsonError, MsgspecError):
        pass
    return _parse_step_by_step(data, name)


def _parse_step_by_step(data: bytes, name: str) -> RunResult:
    """Parse a result that the fast way refuses, or a suite's result. Raises GateError for other data."""
    document, positions = _parse_document(data, name)
    if not isinstance(document, dict):
        raise build_corrupt_error(name, "expected a mapping: a run result or an EvalSuiteResult")
    version = document.get("schemaVersion")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise GateError(
            "unsupported-run-result-version",
            f"{name} was written by a newer version (schema {version}, this one reads {SCHEMA_VERSION})",
            "update eval-gate, or give an older result",
        )
    try:
        if version is None and "cases" in document:
            return convert_suite(convert(_add_status(document), SuiteResult))
        return convert(document, RunResult)
    except ValidationError as error:
        place, what = describe_mismatch(error)
        problem = Problem(what, name, positions.find_line(place), format_field_path(place))
        raise build_corrupt_error(name, "not a run result", [problem]) from error


def _parse_document(data: bytes, name: str) -> tuple[JsonValue, JsonPositions]:
    try:
        return parse_json(data, name, values=limits.RESULT_VALUES)
    except GateError as error:
        raise build_corrupt_error(name, "not valid JSON", list(error.problems)) from error


def _add_status(suite: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Add the status to every case: a contract result knows only `passed`."""
    cases = suite.get("cases")
    if not isinstance(cases, list):
        return suite
    rated: list[JsonValue] = []
    for case in cases:
        if isinstance(case, dict):
            rated.append({"status": "passed" if case.get("passed") is True else "failed", **case})
        else:
            rated.append(case)
    return {**suite, "cases": rated}


def build_corrupt_error(name: str, what: str, problems: list[Problem] | None = None) -> GateError:
    """Build the GateError `invalid-run-result` for a result that cannot be read."""
    return GateError(
        "invalid-run-result",
        f"{name} is not a valid run result: {what}",
        "give another result; do not edit a result by hand",
        problems=problems or (),
    )


CONTRACT_TOOL: Final = "tool-forge contract"
"""Tool name of such a run, because the contract does not name its tool."""


def convert_suite(suite: SuiteResult) -> RunResult:
    """Convert one suite's result to a run result without fingerprints: its cases are compared by ids alone."""
    stated = suite.summary
    summary = replace(
        summarize_cases(suite.cases),
        skipped_assertions=stated.skipped_assertions,
        total_duration_ms=stated.total_duration_ms,
        estimated_cost_usd=stated.estimated_cost_usd,
    )
    name = suite.eval_file or f"{suite.tool_name}.{suite.tier}.json"
    endpoint = suite.agent_endpoint or "unknown"
    return RunResult(
        run_id=suite.run_id,
        timestamp=suite.timestamp,
        complete=True,
        tool=ToolIdentity(name=CONTRACT_TOOL, version="unknown"),
        target=TargetIdentity(name=PurePosixPath(endpoint).name or endpoint, provider="unknown", identity=endpoint),
        suites=(replace(suite, eval_file=name),),
        summary=summary,
    )


CASE_COUNTS: Final = ("total_cases", "passed", "failed", "errored", "skipped", "not_run", "flaky", "pass_rate")
"""Counts of a summary that follow from the cases alone."""


class Contradiction(NamedTuple):
    """Place of a contradiction in the result, and its description."""

    place: tuple[str | int, ...]
    what: str


def iter_contradictions(run: RunResult) -> Iterator[Contradiction]:
    """Yield the facts of a run result that contradict each other, if nothing shows which of them is true."""
    places: dict[CaseKey, tuple[str | int, ...]] = {}
    for number, suite in enumerate(run.suites):
        for at, case in enumerate(suite.cases):
            key, place = CaseKey(suite.eval_file, case.id), ("suites", number, "cases", at)
            if key in places:
                yield Contradiction(place, f'the case "{case.id[:100]}" appears twice, and only one can be compared')
            places[key] = place
            if wrong := _find_case_error(case):
                yield Contradiction(place, f'the case "{case.id[:100]}" {wrong}')
    if run.complete and run.summary.total_cases != (total := sum(len(suite.cases) for suite in run.suites)):
        yield Contradiction(("summary",), f"counts {run.summary.total_cases:,} cases, but the result has {total:,}")


def _find_case_error(case: CaseResult) -> str | None:
    trials = case.trials
    if len(trials) == 1 and trials[0].status is case.status and not (case.reruns or case.new_case_executions):
        return None  # as most cases are
    if not (0 <= case.reruns <= max(len(trials), 1) and 0 <= case.new_case_executions <= max(len(trials), 1)):
        return f"has {max(len(trials), 1)} executions, fewer than its number of re-runs"
    if not trials or not case.status.is_scored:
        return None
    passes = [trial.status is Status.PASSED for trial in trials if trial.status.is_scored]
    if decide_pass(case.pass_rule, passes) is not (case.status is Status.PASSED):
        return f"is {case.status.value}, but {sum(passes)} of its {len(passes)} executions with a score passed"
    return None


def recount_run(run: RunResult) -> RunResult:
    """Recompute the counts of a run from its cases, and add a warning if they differ.

    A case has passed only if `passed` and `status` both say so. The summary of an incomplete run stays as it is,
    because it may have been written before any of its cases: it counts the planned cases, and no gate passes on it.
    Its suites are recomputed without a warning.
    """
    suites = tuple(map(_recount_suite, run.suites)) if any(map(_is_miscounted, run.suites)) else run.suites
    if not run.complete:
        return run if suites is run.suites else replace(run, suites=suites)
    summary = _recount_summary(run.summary, [case for suite in suites for case in suite.cases])
    if suites is run.suites and summary is run.summary:
        return run
    warning = "the counts of the run result did not match its cases, so they were corrected"
    return replace(
        run,
        suites=suites,
        summary=summary,
        warnings=(*run.warnings, warning),
    )


def _is_miscounted(suite: SuiteResult) -> bool:
    return any(case.passed is not (case.status is Status.PASSED) for case in suite.cases) or (
        _recount_summary(suite.summary, suite.cases) is not suite.summary
    )


def _recount_suite(suite: SuiteResult) -> SuiteResult:
    cases = tuple(map(_align_passed, suite.cases))
    return replace(suite, cases=cases, summary=_recount_summary(suite.summary, cases))


def _align_passed(case: CaseResult) -> CaseResult:
    if case.passed is (case.status is Status.PASSED):
        return case
    return replace(case, passed=False, status=Status.FAILED if case.status is Status.PASSED else case.status)


def _recount_summary(summary: Summary, cases: Sequence[CaseResult]) -> Summary:
    """Recompute the counts of a summary; return the summary itself if they are already correct."""
    totals = summarize_cases(cases)
    wrong = {name: one for name in CASE_COUNTS if (one := getattr(totals, name)) != getattr(summary, name)}
    return structs.replace(summary, **wrong) if wrong else summary
