"""Parses a run result, or the result of one suite from any runner of the contract."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from typing import Final

from msgspec import MsgspecError, Raw, ValidationError, convert

from eval_gate.errors import GateError, Problem
from eval_gate.model import limits
from eval_gate.model.base import JsonValue, decode_json
from eval_gate.model.result import SCHEMA_VERSION, RunResult, SuiteResult
from eval_gate.results.run_result.consistency import iter_contradictions, recount_run
from eval_gate.results.run_result.contract_suite import CONTRACT_TOOL, convert_suite
from eval_gate.struct import replace
from eval_gate.text.sources.json import JsonPositions, parse_json
from eval_gate.text.sources.validation_errors import describe_mismatch, format_field_path
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, check_json_size, may_hold_non_json

MAX_RESULT_BYTES: Final = limits.RESULT_BYTES
MAX_SHOWN: Final = 20
"""Maximum contradictions that are reported individually."""


def parse_run(data: bytes, shown: str, *, compared: bool = True) -> RunResult:
    """Read a run result of ours, or one EvalSuiteResult of any runner that keeps the contract.

    `shown` names the file in an error; without `compared` what it was compared with is left out. Raises GateError
    `invalid-run-result` and `unsupported-run-result-version`.
    """
    found = _parse_result(data, shown)
    if wrong := list(islice(iter_contradictions(found), MAX_SHOWN)):
        (_, positions), alone = _parse_document(data, shown), found.tool.name == CONTRACT_TOOL
        problems = [
            Problem(what, shown, positions.find_line(path), format_field_path(path))
            for place, what in wrong
            for path in [place[2:] if alone else place]
        ]
        raise build_corrupt_error(shown, "it contradicts itself", problems)
    run = recount_run(found)
    return run if compared else replace(run, comparison=None)


def parse_head(data: bytes, shown: str) -> RunResult:
    """Read a run without its suites and comparison, in a fraction of the time. Raises as `parse_run` does.

    Nothing is known of the rest but that it is JSON.
    """
    if len(data) <= MAX_RESULT_BYTES:
        with suppress(MsgspecError, RecursionError):
            head: RunResult = decode_json(data, _RunHead)
            return replace(head, suites=(), comparison=None)
    return replace(_parse_result(data, shown), suites=(), comparison=None)


class _RunHead(RunResult, kw_only=True):
    """Run result whose large parts are not parsed."""

    suites: Raw = Raw(b"[]")  # type: ignore[assignment]
    comparison: Raw = Raw(b"null")  # type: ignore[assignment]


def _parse_result(data: bytes, shown: str) -> RunResult:
    if len(data) > MAX_RESULT_BYTES:
        raise build_corrupt_error(shown, f"larger than {MAX_RESULT_BYTES:,} bytes")
    try:
        check_json_size(data, limits.RESULT_VALUES)
        if not may_hold_non_json(data):
            return decode_json(data, RunResult)
    except (UntrustedJsonError, MsgspecError):
        pass
    return _parse_step_by_step(data, shown)


def _parse_step_by_step(data: bytes, shown: str) -> RunResult:
    """Read a result in which something is odd, or a suite's result. Raises GateError for what is neither."""
    document, positions = _parse_document(data, shown)
    if not isinstance(document, dict):
        raise build_corrupt_error(shown, "expected a mapping: a run result or an EvalSuiteResult")
    version = document.get("schemaVersion")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise GateError(
            "unsupported-run-result-version",
            f"{shown} was written by a newer version (schema {version}, this one reads {SCHEMA_VERSION})",
            "update eval-gate, or give an older result",
        )
    try:
        if version is None and "cases" in document:
            return convert_suite(convert(_add_status(document), SuiteResult))
        return convert(document, RunResult)
    except ValidationError as error:
        place, what = describe_mismatch(error)
        problem = Problem(what, shown, positions.find_line(place), format_field_path(place))
        raise build_corrupt_error(shown, "not a run result", [problem]) from error


def _parse_document(data: bytes, shown: str) -> tuple[JsonValue, JsonPositions]:
    try:
        return parse_json(data, shown, values=limits.RESULT_VALUES)
    except GateError as error:
        raise build_corrupt_error(shown, "not valid JSON", list(error.problems)) from error


def _add_status(suite: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Add the status to every case: a contract result knows only `passed`."""
    cases = suite.get("cases")
    if not isinstance(cases, list):
        return suite
    told: list[JsonValue] = []
    for case in cases:
        if isinstance(case, dict):
            told.append({"status": "passed" if case.get("passed") is True else "failed", **case})
        else:
            told.append(case)
    return {**suite, "cases": told}


def build_corrupt_error(shown: str, what: str, problems: list[Problem] | None = None) -> GateError:
    """Build the GateError `invalid-run-result` for a result that cannot be read."""
    return GateError(
        "invalid-run-result",
        f"{shown} is not a valid run result: {what}",
        "give another result; do not edit a result by hand",
        problems=problems or (),
    )
