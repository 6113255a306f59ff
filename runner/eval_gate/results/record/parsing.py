"""Read a run result, or the result of one suite that any runner of the contract wrote."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from typing import Final

from msgspec import MsgspecError, Raw, ValidationError, convert

from eval_gate.errors import GateError, Problem
from eval_gate.model import limits
from eval_gate.model.base import JsonValue, decode_json
from eval_gate.model.result import SCHEMA_VERSION, RunResult, SuiteResult
from eval_gate.results.record.consistency import contradictions, counted_anew
from eval_gate.results.record.foreign import CONTRACT, run_of_suite
from eval_gate.struct import replace
from eval_gate.text.foreign.json import ForeignJsonError, may_be_no_json, refuse_too_much
from eval_gate.text.sources.json import JsonPositions, parse_json
from eval_gate.text.sources.shape import field_path, misfit

MAX_RESULT_BYTES: Final = limits.RESULT_BYTES
SHOWN: Final = 20
"""Contradictions that are told one by one."""


def run_of(data: bytes, shown: str, *, compared: bool = True) -> RunResult:
    """Read a run result of ours, or one EvalSuiteResult of any runner that keeps the contract.

    `shown` names the file in an error; without `compared` what it was compared with is left out. Raises GateError
    `baseline-corrupt` and `baseline-schema`.
    """
    found = _read(data, shown)
    if wrong := list(islice(contradictions(found), SHOWN)):
        (_, positions), alone = _parsed(data, shown), found.tool.name == CONTRACT
        problems = [
            Problem(what, shown, positions.line(path), field_path(path))
            for place, what in wrong
            for path in [place[2:] if alone else place]
        ]
        raise corrupt(shown, "it contradicts itself", problems)
    run = counted_anew(found)
    return run if compared else replace(run, comparison=None)


def head_of(data: bytes, shown: str) -> RunResult:
    """Read a run without its suites and what it was compared with, in a fraction of the time. Raises as `run_of` does.

    Nothing is known of the rest but that it is JSON.
    """
    if len(data) <= MAX_RESULT_BYTES:
        with suppress(MsgspecError, RecursionError):
            head: RunResult = decode_json(data, _Head)
            return replace(head, suites=(), comparison=None)
    return replace(_read(data, shown), suites=(), comparison=None)


class _Head(RunResult, kw_only=True):
    """A run of which the large parts are left as they stand."""

    suites: Raw = Raw(b"[]")  # type: ignore[assignment]
    comparison: Raw = Raw(b"null")  # type: ignore[assignment]


def _read(data: bytes, shown: str) -> RunResult:
    if len(data) > MAX_RESULT_BYTES:
        raise corrupt(shown, f"larger than {MAX_RESULT_BYTES:,} bytes")
    try:
        refuse_too_much(data, limits.RESULT_VALUES)
        if not may_be_no_json(data):
            return decode_json(data, RunResult)
    except (ForeignJsonError, MsgspecError):
        pass
    return _read_step_by_step(data, shown)


def _read_step_by_step(data: bytes, shown: str) -> RunResult:
    """Read a result in which something is odd, or a suite's result. Raises GateError for what is neither."""
    document, positions = _parsed(data, shown)
    if not isinstance(document, dict):
        raise corrupt(shown, "expected a mapping: a run record or an EvalSuiteResult")
    version = document.get("schemaVersion")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise GateError(
            "baseline-schema",
            f"{shown} was written by a newer version (schema {version}, this one reads {SCHEMA_VERSION})",
            "update eval-gate, or name an older result",
        )
    try:
        if version is None and "cases" in document:
            return run_of_suite(convert(_with_status(document), SuiteResult))
        return convert(document, RunResult)
    except ValidationError as error:
        place, what = misfit(error)
        problem = Problem(what, shown, positions.line(place), field_path(place))
        raise corrupt(shown, "not a run record", [problem]) from error


def _parsed(data: bytes, shown: str) -> tuple[JsonValue, JsonPositions]:
    try:
        return parse_json(data, shown, values=limits.RESULT_VALUES)
    except GateError as error:
        raise corrupt(shown, "not valid JSON", list(error.problems)) from error


def _with_status(suite: dict[str, JsonValue]) -> dict[str, JsonValue]:
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


def corrupt(shown: str, what: str, problems: list[Problem] | None = None) -> GateError:
    """The error of a result that cannot be read."""
    return GateError(
        "baseline-corrupt",
        f"{shown} is not a result that can be compared with: {what}",
        "name another result; a result is never changed by hand",
        problems=problems or (),
    )
