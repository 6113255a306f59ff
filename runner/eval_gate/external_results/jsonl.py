"""Eval Gate's own results format: one JSON object for each line, or CSV with the same columns.

A key that closely resembles a known one is an error. Any other unknown key is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import PydanticKnownError

from eval_gate.config.values import find_boolean_mistake
from eval_gate.errors import GateError, Problem, format_suggestion
from eval_gate.external_results.json_streaming import iter_raw_lines, parse_value
from eval_gate.external_results.prompt_digests import digest_prompt
from eval_gate.external_results.records import iter_table_rows
from eval_gate.external_results.result_encoding import decode_head
from eval_gate.external_results.result_rows import (
    MAX_NAME,
    ExecutionEnding,
    FileFacts,
    ResultRow,
    RowPlace,
    RowScore,
    build_ending,
    build_problems_error,
    build_usage,
    describe_low_score,
    to_text,
)
from eval_gate.external_results.statuses import classify_thrown_error, let_verdicts_decide, parse_tables
from eval_gate.model.base import JsonValue
from eval_gate.model.case import Location
from eval_gate.model.conversation import ToolCall
from eval_gate.model.execution import ErrorKind, Status
from eval_gate.model.limits import (
    EXTERNAL_NEAR_KEYS,
    EXTERNAL_SCORES,
    EXTERNAL_TEXT,
    FINDINGS,
    MAX_COST_USD,
    MAX_DURATION_MS,
    MAX_TOKENS,
)
from eval_gate.text.digest import compute_fingerprint
from eval_gate.text.sources.validation_errors import describe_error, format_field_path, list_errors
from eval_gate.text.untrusted.surrogates import to_well_formed

Line = TypeVar("Line")
_Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
_Text = Annotated[str, Field(max_length=EXTERNAL_TEXT)]

_Number = Annotated[float, Field(allow_inf_nan=False)]
_LISTS: Final = ("tool_calls", "checks", "tags")
_HEAD: Final = 1 << 16
_AS_LINES: Final = "write each member on its own line, for example with `jq -c '.[]' out.json > out.jsonl`"
STATUSES: Final = parse_tables("""
Own results: status of a line, where any other is refused with its place
  passed: passed; failed: failed; skipped: skipped; agent error: error; no verdict: -
""")
_VERDICTS: Final = ("passed", "pass", "success")
"""Keys for the result in other tools. They are not a status here, but must not contradict it."""
_NEGATIVE_WORDS: Final = frozenset({"false", "no", "0", "failed", "fail"})


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_true(cls, value: object, info: ValidationInfo) -> object:
        """Refuse true as a number: Python takes it for 1. Raises PydanticKnownError."""
        if isinstance(value, bool) and (
            mistake := find_boolean_mistake(cls.model_fields[info.field_name or ""].annotation)
        ):
            raise PydanticKnownError(mistake)
        return value


class LineCheck(_Part):
    """Result of one scorer or assertion. Without `passed` and `score`, the scorer failed: an evaluation error."""

    name: _Name
    score: _Number | None = None
    threshold: _Number | None = Field(default=None, description="Minimum score with which the check passes.")
    passed: bool | None = None
    reason: _Text | None = None


class LineCall(_Part):
    """One tool call, in call order."""

    name: _Name
    params: JsonValue = None
    output: JsonValue = None
    success: bool | None = None
    duration_ms: float | None = Field(default=None, ge=0, le=MAX_DURATION_MS)


class ResultLine(_Part):
    """Result of one case, or of one of its trials. Only `id`, and `status`, `score` or `checks`, are required."""

    suite: _Name = Field(default="results", description="Suite of the case; suite and id together are its name.")
    id: _Name = Field(description="Name of the case, the same in every run.")
    status: Literal["passed", "failed", "error", "skipped"] | None = None
    score: _Number | None = Field(
        default=None,
        description="Score from 0 to 1. Without a status, `threshold` or passScore decides whether the case passes.",
    )
    threshold: _Number | None = Field(default=None, description="Minimum score with which the case passes.")
    input: JsonValue = Field(default=None, description="Prompt; a case with another prompt is another case.")
    expected: JsonValue = Field(default=None, description="Expected response.")
    output: JsonValue = Field(default=None, description="Response.")
    error: _Text | None = Field(default=None, description="Reason for the failure or the error.")
    duration_ms: float | None = Field(default=None, ge=0, le=MAX_DURATION_MS)
    cost_usd: float | None = Field(default=None, ge=0, le=MAX_COST_USD)
    input_tokens: int | None = Field(default=None, ge=0, le=MAX_TOKENS)
    output_tokens: int | None = Field(default=None, ge=0, le=MAX_TOKENS)
    tool_calls: tuple[LineCall, ...] = ()
    checks: tuple[LineCheck, ...] = Field(
        default=(),
        description="Without a status and score, all that have `passed` must pass; if none has, a score needs a rule.",
    )
    trial: int | None = Field(default=None, ge=0, description="Number of the execution of this case, from 0 or 1.")
    rerun: bool = Field(default=False, description="Whether this is a re-run after a failure.")
    error_kind: ErrorKind | None = Field(
        default=None,
        description="Kind of an error: agent_error, agent_unreachable or evaluation_error; else by the words of error.",
    )
    file: _Text | None = Field(default=None, description="File of the case, relative to the repository.")
    line: int | None = Field(default=None, ge=1)
    tags: tuple[_Name, ...] = ()
    description: _Text = ""
    target: _Name | None = Field(default=None, description="Name of the target, if results differ in it.")
    trace_id: _Text | None = Field(default=None, validation_alias=AliasChoices("trace_id", "traceId"))


def read_jsonl(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Yield every line of the file."""
    facts.tool, near = "JSON lines", MisspeltKeys()
    if _is_json_list(file):
        raise RowPlace(shown_as).build_error("is one JSON list, not one object per line", _AS_LINES)
    return _iter_rows(
        iter_raw_lines(file, shown_as), lambda text, place: _build_row(parse_value(text, place), place, near)
    )


def _is_json_list(file: Path) -> bool:
    """Whether a file begins as a list does; reading it reports what cannot be read."""
    try:
        with file.open("rb") as stream:
            return decode_head(stream.read(_HEAD)).startswith("[")
    except OSError:
        return False


def read_csv(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Yield every line of a table whose first line names the columns. An empty cell is a missing value."""
    facts.tool, near = "CSV", MisspeltKeys()
    return _iter_rows(
        iter_table_rows(file, shown_as),
        lambda cells, place: _build_row(
            {name: _parse_cell(name, cell, place) for name, cell in cells.items() if cell}, place, near
        ),
    )


def _iter_rows(
    lines: Iterable[tuple[RowPlace, Line]], read: Callable[[Line, RowPlace], ResultRow]
) -> Iterator[ResultRow]:
    """Yield the row of every line up to the first problem; the error at the end has the problems of all lines."""
    problems: list[Problem] = []
    try:
        for place, line in lines:
            try:
                row = read(line, place)
            except GateError as error:
                problems += error.problems
                if len(problems) >= FINDINGS:
                    problems[FINDINGS:] = [Problem("there may be more problems than are listed", file=place.file)]
                    break
            else:
                if not problems:
                    yield row
    except GateError as error:  # what comes after this line cannot be read
        if not problems:
            raise
        problems += error.problems
    if problems:
        raise build_problems_error(problems)


def _parse_cell(name: str, cell: str, place: RowPlace) -> JsonValue:
    """Parse a table cell. Lists are JSON. Tags may also be words separated by semicolons. Texts stay as they are."""
    if name == "tags" and not cell.lstrip().startswith("["):
        return [tag.strip() for tag in cell.split(";") if tag.strip()]
    if name in _LISTS:
        return parse_value(cell, RowPlace(place.file, place.line, name))
    return cell


def _build_row(value: JsonValue, place: RowPlace, near: MisspeltKeys) -> ResultRow:
    if not isinstance(value, dict):
        raise place.build_error("is not a mapping")
    for name in _LISTS:
        members = value.get(name)
        if isinstance(members, list) and len(members) > EXTERNAL_SCORES:  # a mistake in each of them would be kept
            raise RowPlace(place.file, place.line, name).build_error(f"has more than {EXTERNAL_SCORES:,} members")
    try:
        line = ResultLine.model_validate(value)
    except ValidationError as error:
        wrong = [
            RowPlace(place.file, place.line, format_field_path(one["loc"])).build_problem(describe_error(one))
            for one in list_errors(error)
        ]
        raise build_problems_error([*wrong, *near.iter_problems(ResultLine, value, place)]) from None
    parts: list[_Part] = [line, *line.checks, *line.tool_calls]
    misspelt = [one for part in parts for one in near.iter_problems(type(part), part.model_extra or {}, place)]
    if misspelt:
        raise build_problems_error(misspelt)
    if line.status is None and line.score is None and not line.checks:
        raise place.build_error("has no status, score or checks: add one of them")
    scores = tuple(map(_build_score, line.checks))
    if line.status is None and line.score is None:
        scores = let_verdicts_decide(scores)
    ending = _build_ending(line, scores)
    return ResultRow(
        suite=to_well_formed(line.suite),
        id=to_well_formed(line.id),
        place=place,
        **ending._asdict(),
        scores=scores,
        score=line.score,
        threshold=line.threshold,
        contradiction=_find_contradiction(line) if line.status is None else None,
        prompt=to_text(line.input),
        expectation=(to_text(line.expected),) if line.expected is not None else (),
        response=None if line.output is None else to_text(line.output),
        trace=line.trace_id,
        duration_ms=line.duration_ms,
        cost_usd=line.cost_usd,
        usage=build_usage(line.input_tokens, line.output_tokens),
        calls=tuple(map(_build_call, line.tool_calls)),
        location=Location(file=line.file, line=line.line or 1) if line.file else None,
        tags=line.tags,
        description=line.description,
        target=line.target,
        content=None if line.input is None else compute_fingerprint([line.input, line.expected]),
        digests=None if line.input is None else digest_prompt("input", line.input, line.expected),
        repeat=None if line.trial is None else "",
        trial=None if line.trial is None else f"{'re-run' if line.rerun else 'trial'} {line.trial}",
        rerun=line.rerun,
        named_by="suite and id",
    )


def _build_score(one: LineCheck) -> RowScore:
    """Build the score of a check: where it does not say whether it passed, its threshold does."""
    by_threshold = None if one.score is None or one.threshold is None else one.score >= one.threshold
    passed = by_threshold if one.passed is None else one.passed
    broke = passed is None and one.score is None
    return RowScore(one.name, one.score, passed, one.reason, broke, threshold=one.threshold, is_minimum=True)


def _build_ending(line: ResultLine, scores: tuple[RowScore, ...]) -> ExecutionEnding:
    """Build the ending that the line states, but a pass that the line contradicts is none."""
    if line.status == "passed":
        # checks with a score of the whole are weighed, as those of an eval with a weighted mean are
        own = ExecutionEnding(Status.PASSED, error=line.error)
        return build_ending(own, scores, weighed=line.score is not None, against=_find_contradiction(line))
    kind = line.error_kind or classify_thrown_error(line.error or "")
    return STATUSES[0].build_ending(line.status)._replace(error_kind=kind, error=line.error)


def _find_contradiction(line: ResultLine) -> str | None:
    """Return what contradicts a pass in this line, apart from its status, or None."""
    if low := describe_low_score(line.score, line.threshold):
        return low
    for name in _VERDICTS:
        value = (line.model_extra or {}).get(name)
        if value is False or (isinstance(value, str) and value.strip().lower() in _NEGATIVE_WORDS):
            return f"`{name}` {to_text(value)}"
    return f"the error {line.error}" if line.error and line.error.strip() else None


def _build_call(call: LineCall) -> ToolCall:
    """Build a tool call. Arguments that are no mapping, such as a truncated text, get a single name."""
    params: dict[str, JsonValue] = {} if call.params is None else {"…": call.params}
    params = call.params if isinstance(call.params, dict) else params
    success, took = call.success, call.duration_ms
    return ToolCall(name=call.name, params=params, result=call.output, success=success, duration_ms=took)


class MisspeltKeys:
    """Detector of misspelled keys in one file, in which most lines have the same keys."""

    def __init__(self) -> None:
        self._suggestions: dict[tuple[type[BaseModel], str], str] = {}

    def iter_problems(self, part: type[BaseModel], keys: Iterable[str], place: RowPlace) -> Iterator[Problem]:
        """Yield a problem for each unknown key that resembles a known one. Raises GateError for too many keys."""
        for key in keys:
            if key in part.model_fields or key == "traceId":
                continue
            suggestion = self._suggestions.get((part, key))
            if suggestion is None:
                if len(self._suggestions) >= EXTERNAL_NEAR_KEYS:
                    what = f"more than {EXTERNAL_NEAR_KEYS:,} different keys are not known"
                    raise place.build_error(f"{what}: misspelt keys are not reported")
                suggestion = self._suggestions[part, key] = format_suggestion(key, part.model_fields)
            if suggestion:
                yield RowPlace(place.file, place.line, key[:80]).build_problem(f"is not known{suggestion}")
