"""Reads a run record, whole or its head alone. A sound one at once; an odd one step by step, to say what is wrong.

A large record is read case by case: as one document it would be in memory three times, and what a run was compared
with, a third of it, is nothing that a baseline is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import islice
from typing import Any, Final, TypeVar

from msgspec import MsgspecError, Raw, Struct, defstruct
from msgspec.json import Decoder
from pydantic import BaseModel, ValidationError

from eval_gate.errors import GateError, Problem
from eval_gate.model import limits
from eval_gate.model.base import JsonValue, lean
from eval_gate.model.result import SCHEMA_VERSION, CaseResult, RunResult, SuiteResult
from eval_gate.results.record.consistency import contradictions, counted_anew
from eval_gate.results.record.foreign import CONTRACT, run_of_suite
from eval_gate.text.foreign.json import ForeignJsonError, may_be_no_json, refuse_too_much
from eval_gate.text.sources.json import JsonPositions, parse_json
from eval_gate.text.sources.shape import field_path, sentence

MAX_RESULT_BYTES: Final = limits.RESULT_BYTES
MAX_MISTAKES: Final = 1_000
SHOWN: Final = 20
"""Mistakes that are told one by one."""
_Data = TypeVar("_Data", bound=BaseModel)


def run_of(data: bytes, shown: str, *, compared: bool = True) -> RunResult:
    """A run record of ours, or one EvalSuiteResult of any runner that keeps the contract.

    `shown` names the file in an error; without `compared` what it was compared with is left out. Raises GateError
    `baseline-corrupt` and `baseline-schema`.
    """
    if len(data) > MAX_RESULT_BYTES:
        raise corrupt(shown, f"larger than {MAX_RESULT_BYTES:,} bytes")
    found = _sound(data, compared=compared) or _step_by_step(data, shown, compared=compared)
    if wrong := list(islice(contradictions(found), SHOWN)):
        (_, positions), alone = _parsed(data, shown), found.tool.name == CONTRACT
        problems = [
            Problem(what, shown, positions.line(path), field_path(path))
            for place, what in wrong
            for path in [place[2:] if alone else place]
        ]
        raise corrupt(shown, "it contradicts itself", problems)
    return counted_anew(found)


def _step_by_step(data: bytes, shown: str, *, compared: bool) -> RunResult:
    """A record of which something is odd, or a suite's result. Raises GateError for what is neither."""
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
            return run_of_suite(SuiteResult.model_validate(_with_status(document)))
        run = RunResult.model_validate(document)
    except ValidationError as error:
        # a hostile record can hold millions of mistakes: then their number has to do
        many = error.error_count() > MAX_MISTAKES
        details = [] if many else error.errors(include_url=False)[:SHOWN]
        raise corrupt(
            shown,
            "not a run record",
            [
                Problem(sentence(detail), shown, positions.line(detail["loc"]), field_path(detail["loc"]))
                for detail in details
            ],
        ) from error
    return run if compared else run.model_copy(update={"comparison": None})


def head_of(data: bytes, shown: str) -> RunResult:
    """The run without its suites and what it was compared with, which takes a twentieth of the time.

    Nobody looked at the rest, but that it is JSON. Raises GateError as above for what is odd so far.
    """
    if (found := _sound_head(data)) is not None:
        return found
    return run_of(data, shown, compared=False).model_copy(update={"suites": ()})


def _sound_head(data: bytes) -> RunResult | None:
    if len(data) > MAX_RESULT_BYTES:
        return None
    try:
        parts = _given(_pieces_of(RunResult).decode(data))
        return _checked(RunResult, {name: raw for name, raw in parts.items() if name not in {"suites", "comparison"}})
    except (MsgspecError, RecursionError, ValidationError):
        return None


def _sound(data: bytes, *, compared: bool) -> RunResult | None:
    """A record in which nothing is wrong. None where anything is odd: then it is read step by step, to say what."""
    try:
        refuse_too_much(data, limits.RESULT_VALUES)
        if may_be_no_json(data):
            return None
        parts = _given(_pieces_of(RunResult).decode(data))
        suites = _pieces_of(SuiteResult, several=True).decode(parts.pop("suites", b"[]"))
        if not compared:
            parts.pop("comparison", None)
        run = _checked(RunResult, parts)
        return run.model_copy(update={"suites": tuple(_suite(_given(suite)) for suite in suites)})
    except (ForeignJsonError, MsgspecError, ValidationError):
        return None


def _suite(parts: dict[str, Raw]) -> SuiteResult:
    cases = _cases().decode(parts.pop("cases", b"[]"))
    suite = _checked(SuiteResult, parts)
    return suite.model_copy(update={"cases": tuple(_lean(CaseResult.model_validate_json(bytes(one))) for one in cases)})


def _lean(case: CaseResult) -> CaseResult:
    """The case, half as large: which of its fields were given is nothing that anybody asks."""
    for part in (case.details, case.asked, case.yardstick, *case.trials, *case.evaluator_results):
        if part is not None:
            lean(part)
    return lean(case)


def _checked(kind: type[_Data], parts: Mapping[str, Raw]) -> _Data:
    """The data of fields that are JSON each. Raises ValidationError."""
    return kind.model_validate_json(
        b"{%b}" % b",".join(b'"%b":%b' % (name.encode(), raw) for name, raw in parts.items())
    )


def _given(pieces: Struct) -> dict[str, Raw]:
    """The fields that are there, each as it stands."""
    return {name: raw for name in pieces.__struct_fields__ if len(raw := getattr(pieces, name))}


@cache
def _pieces_of(kind: type[BaseModel], *, several: bool = False) -> Decoder[Any]:
    """Takes JSON of this kind, or a list of it, to pieces: each field as it stands, and nothing of unknown ones."""
    # both spellings: what a slow look takes for a field is none that a quick one passes over
    names = {spelt for name, field in kind.model_fields.items() for spelt in (field.alias or name, name)}
    fields = [(spelt, Raw, Raw()) for spelt in sorted(names)]
    pieces: Any = defstruct(kind.__name__, fields)
    return Decoder(list[pieces] if several else pieces)


@cache
def _cases() -> Decoder[list[Raw]]:
    return Decoder(list[Raw])


def _parsed(data: bytes, shown: str) -> tuple[JsonValue, JsonPositions]:
    try:
        return parse_json(data, shown, values=limits.RESULT_VALUES)
    except GateError as error:
        raise corrupt(shown, "not valid JSON", list(error.problems)) from error


def _with_status(suite: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """A contract result knows only `passed`: that is the status."""
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
