"""Common shape of external results: a row is one execution of one case."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from eval_gate.errors import PAGES, ExitCode, GateError, Problem
from eval_gate.external_results.prompt_digests import PromptDigests
from eval_gate.model.base import JsonValue
from eval_gate.model.case import CaseKey, Location
from eval_gate.model.conversation import ToolCall
from eval_gate.model.execution import UNDECIDED_TYPE, ErrorKind, EvaluatorResult, Status, TurnResult
from eval_gate.model.limits import CASES, EXTERNAL_TEXT, MAX_COST_USD, MAX_DURATION_MS, MAX_TOKENS, in_range
from eval_gate.model.usage import Usage
from eval_gate.struct import Struct, field
from eval_gate.text.digest import compute_digest
from eval_gate.text.javascript.strings import as_text
from eval_gate.text.untrusted.surrogates import to_well_formed

DOCS: Final = f"{PAGES}/other-tools.md"
MAX_ROWS: Final = 10 * CASES
"""Executions of all files together."""
MAX_ROUNDING_ERROR: Final = 1e-6
"""A score may miss its threshold, or a grade its scale, by this much: computed values are rounded."""
MAX_NAME: Final = 1_000
"""Characters of a suite's or a case's name."""

_MAX_INTERNED: Final = 64
_MAX_PROMPT_NAME: Final = 200
"""Characters of a prompt that a case is named by."""

_UNREACHABLE: Final = re.compile(
    r"ECONNREFUSED|\bENOTFOUND\b|EAI_AGAIN|EHOSTUNREACH|connection refused|could not resolve|name or service not known"
    r"|\b(401|402|403|407|429|529)\b|unauthori[sz]ed|rate.?limit|quota|invalid.{0,20}api.?key|no api key",
    re.IGNORECASE,
)
"""What providers and their clients say of no connection, credentials and limits."""
_MAX_SEARCHED: Final = 2_000


def find_exception(error: str) -> str:
    """Return what was thrown, without the traceback, whose line numbers may look like codes of HTTP."""
    head, mark, trace = error.rpartition("Traceback (most recent call last):")
    if not mark:
        return error
    lines = trace.rstrip().splitlines()
    frames = [at for at, line in enumerate(lines) if line.startswith(" ")]
    return "\n".join(lines[frames[-1] + 1 if frames else 0 :]).strip() or head.strip() or error


def classify_error_kind(error: str) -> ErrorKind:
    """Classify an error by its words, because no tool states its kind: agent unreachable or agent error."""
    return ErrorKind.AGENT_UNREACHABLE if _UNREACHABLE.search(error[:_MAX_SEARCHED]) else ErrorKind.AGENT_ERROR


class RowPlace(NamedTuple):
    """Position of a row: the file as it was given, and a line or a path in its structure."""

    file: str
    line: int | None = None
    field: str | None = None

    def build_problem(self, message: str) -> Problem:
        """Build a problem at this place."""
        return Problem(message, self.file, self.line, self.field)

    def __str__(self) -> str:
        return str(self.build_problem("")).rstrip(": ")

    def build_error(self, what: str, hint: str | None = None) -> GateError:
        """Build the GateError `invalid-results` for one problem. Nothing was evaluated, so it is a usage error."""
        return build_problems_error([self.build_problem(what)], hint)

    def build_incomplete_error(self, what: str) -> GateError:
        """Build the error for results of a tool that did not finish, which is no mistake of the caller."""
        return GateError(
            "results-incomplete",
            "the tool that made the results did not finish",
            "run it again; missing cases are neither passed nor failed",
            problems=[self.build_problem(what)],
            exit_code=ExitCode.INCOMPLETE,
        )

    def build_unloaded_error(self, file: str, error: str) -> GateError:
        """Build the error for a file of tests that its runner could not load."""
        why = error.partition("\n")[0][:300]
        return self.build_incomplete_error(f"reports that {file} could not be loaded, so none of its tests ran: {why}")

    def check_count(self, declared_number: int, number: int, what: str) -> None:
        """Raise GateError where results count more of something than they have: what is missing may be what failed."""
        if number < declared_number:
            raise self.build_incomplete_error(f"counts {declared_number:,} {what}, but has {number:,}")

    @contextmanager
    def name_errors(self) -> Iterator[None]:
        """Raise an error of the system in this block as the GateError `invalid-results`."""
        try:
            yield
        except OSError as error:
            raise self.build_error(f"cannot be read: {error.strerror}") from error


class RowScore(NamedTuple):
    """Score of one scorer or assertion. `passed` is None when the tool itself does not decide."""

    name: str
    value: float | None
    passed: bool | None = None
    reason: str | None = None
    grader_failed: bool = False
    """It gave no score because its grader failed."""
    decides: bool = True
    """Whether it counts for the verdict. A score that only measures counts by a rule alone."""
    threshold: float | None = None
    """The score from which, or up to which, the tool passes it."""
    is_minimum: bool = False
    """The tool is known to pass scores from the threshold on."""


class ResultRow(NamedTuple):
    """One execution of a case. `status` None: a rule about the scores decides.

    Rows with the same suite and name are executions of one case if `repeat` is the same in all of them and not None;
    otherwise the name is a duplicate. `content` is the fingerprint of prompt and expectation, which identifies a
    renamed case. It is a fingerprint because the value itself is many times as large as the rest of a row.
    """

    suite: str
    id: str
    status: Status | None
    place: RowPlace
    scores: tuple[RowScore, ...] = ()
    score: float | None = None
    """The tool's score of the whole."""
    is_graded: bool = False
    """The score is a grade, and the gate says what is enough."""
    threshold: float | None = None
    """The score from which this row says that it passes."""
    contradiction: str | None = None
    """What the tool says against a pass, where only the score decides."""
    prompt: str = ""
    expectation: tuple[str, ...] = ()
    response: str | None = None
    trace: str | None = None
    """Id or address of its trace, where the tool has one."""
    error: str | None = None
    """Why it failed, or what broke."""
    error_kind: ErrorKind = ErrorKind.AGENT_ERROR
    duration_ms: float | None = None
    cost_usd: float | None = None
    usage: Usage | None = None
    calls: tuple[ToolCall, ...] = ()
    turns: tuple[TurnResult, ...] = ()
    """Turns of a conversation, if it has several; their calls are those of the row, in order."""
    location: Location | None = None
    tags: tuple[str, ...] = ()
    description: str = ""
    target: str | None = None
    content: str | None = None
    digests: PromptDigests | None = None
    """The same by field; None where the tool does not say what is asked and expected."""
    repeat: str | None = None
    trial: str | None = None
    """Which of the executions it is, where the tool numbers them; no two of a case are the same."""
    run: str | None = None
    """The run of the tool that it is of, where the tool says so: no two of them have a case in common."""
    rerun: bool = False
    """It is a re-run after a failure, and no first result."""
    retry_scope: str | None = None
    """Where the order shows re-runs: a row re-runs those of its name and scope if all of them failed."""
    rerun_name: str | None = None
    """What the tool itself calls the case when it is asked to run it again; None for its name."""
    longer_name: str | None = None
    """A longer name, for where another case has the same one."""
    longer_suites: tuple[str, ...] = ()
    """Longer names of its suite for the same purpose; the first that helps is used."""
    leg: str | None = None
    """Leg of a matrix that it is of: the prefix of its suite."""
    duplicate_hint: str | None = None
    """What to do where nothing tells two cases of this name apart, where that is known."""
    named_by: str = "name"
    """What its name is made of, in words for people."""
    unstable_reason: str | None = None
    """Why its name may be another one in the next run, and what to do; None where it is stable."""

    @property
    def key(self) -> CaseKey:
        """The case that it is an execution of."""
        return CaseKey(self.suite, self.id)


class ExecutionEnding(NamedTuple):
    """End of an execution and the cause of an error. `status` None: a rule about the scores decides."""

    status: Status | None
    error_kind: ErrorKind = ErrorKind.AGENT_ERROR
    error: str | None = None


def build_ending(
    tools: ExecutionEnding, scores: Sequence[RowScore], *, weighed: bool = False, against: str | None = None
) -> ExecutionEnding:
    """Build the ending of an execution without an agent error, by one rule for all tools.

    A failed score fails it. Otherwise a failed grader makes it an evaluation error. Otherwise the tool's own ending
    counts; its status is None if the tool has no verdict. A pass that its own file contradicts is an evaluation error:
    by a failed score, unless scores are `weighed` against each other, or by what `against` describes.
    """
    own, error = tools.status, tools.error
    if own is Status.ERROR or own is Status.SKIPPED:
        return tools
    if own is not Status.FAILED and (low := _find_low_score(scores)):
        return ExecutionEnding(Status.ERROR, ErrorKind.EVALUATION_ERROR, low)
    if own is Status.PASSED and (no := against or _find_failed_score(scores, weighed=weighed)):
        why = f"the tool reports that it passed, but also {no}"
        return ExecutionEnding(Status.ERROR, ErrorKind.EVALUATION_ERROR, why)
    broke = [one for one in scores if one.grader_failed]
    failed = own is not Status.PASSED and any(one.passed is False and not one.grader_failed for one in scores)
    if broke and not failed:
        reasons = "; ".join(f"{one.name}: {one.reason}" if one.reason else f"{one.name} gave no score" for one in broke)
        return ExecutionEnding(Status.ERROR, ErrorKind.EVALUATION_ERROR, reasons)
    if own is None and failed:
        return ExecutionEnding(Status.FAILED, error=error)
    if own is None and scores and all(one.passed for one in scores):
        return ExecutionEnding(Status.PASSED)
    return ExecutionEnding(own, error=None if own is Status.PASSED else error)


def _find_low_score(scores: Sequence[RowScore]) -> str | None:
    """Return what contradicts a score that is below the minimum of its own record and marked as passed, or None."""
    low = ((one.name, describe_low_score(one.value, one.threshold)) for one in scores if one.passed and one.is_minimum)
    return next((f"the tool reports that {name} passed, but also {why}" for name, why in low if why), None)


def describe_low_score(score: float | None, threshold: float | None) -> str | None:
    """Describe a score that is below its threshold by more than rounding; None for any other."""
    if score is None or threshold is None or score >= threshold - MAX_ROUNDING_ERROR:
        return None
    return f"a score of {score:g}, below the threshold of {threshold:g}"


def _find_failed_score(scores: Sequence[RowScore], *, weighed: bool) -> str | None:
    """Return why an execution cannot have passed; weighed scores must all have failed with the value 0."""
    failed = [one for one in scores if one.passed is False and not one.grader_failed]
    if not failed or (weighed and (len(failed) < len(scores) or any(one.value != 0 for one in failed))):
        return None
    why = f": {failed[0].reason}" if failed[0].reason else ""
    return f"that {failed[0].name} did not{why}"


class FileFacts(Struct):
    """Facts about a results file besides its rows; complete after all rows are read."""

    tool: str = ""
    """The tool that wrote it, as it names itself: `promptfoo 0.121.20`."""
    notes: list[str] = field(default_factory=list)
    """Sentences for people."""
    executions: int = 0
    """Executions that the file counts; 0 if it does not count them."""
    repeats: int = 0
    """Executions of each case that the file states; 0 if it does not."""
    failures: int = 0
    """Failures and errors that the file counts."""
    needs_sent_prompts: bool = False
    """The reader is asked for prompts as they were sent, and not for the variables that they are made of."""

    def check_counts(self, shown_as: str, executions: int, failures: int) -> None:
        """Raise GateError where fewer were found: what is missing may be what failed."""
        for declared_number, number, what in (
            (self.failures, failures, "that did not pass"),
            (self.executions, executions, "executions"),
        ):
            RowPlace(shown_as).check_count(declared_number, number, what)


ResultsReader: TypeAlias = Callable[[Path, str, FileFacts], Iterator[ResultRow]]
"""Reader of one format: yields every execution in a file, which is shown by the name that was given, in its order."""


def build_problems_error(problems: Sequence[Problem], hint: str | None = None) -> GateError:
    """Build the GateError `invalid-results` for several problems."""
    hint = hint or f"{DOCS} shows what each format needs"
    return GateError("invalid-results", "the results cannot be read", hint, problems=problems)


def build_two_runs_error(which: str, problem: Problem) -> GateError:
    """Build the error for results of two runs instead of one. It begins with `which`, as in `a and b are`."""
    return GateError(
        "duplicate-results",
        f"{which} two runs of the tool, not two executions in one run",
        "use the results of one run: remove those of earlier runs, or name only the newest file; for the jobs of a"
        " matrix, write NAME=PATH for each file",
        problems=[problem],
    )


def shorten_name(text: str) -> str:
    """Return a text as the name of a case: a long one ends with its digest."""
    return text if len(text) <= _MAX_PROMPT_NAME else f"{text[:_MAX_PROMPT_NAME]}… {compute_digest(text)[:8]}"


def to_text(value: JsonValue) -> str:
    """Return a text, or compact JSON, or nothing for null; truncated and without lone surrogates."""
    if value is None:
        return ""
    text = to_well_formed(as_text(value))
    if len(text) < _MAX_INTERNED:
        return sys.intern(text)  # names and verdicts are the same in most rows
    return text[:EXTERNAL_TEXT]


def require_name(value: JsonValue, place: RowPlace, what: str) -> str:
    """Return a name: a text or whole number, neither empty nor too long. Raises GateError for anything else."""
    is_name = isinstance(value, str | int) and not isinstance(value, bool)
    name = to_text(value).strip() if is_name else ""
    if not name or len(name) > MAX_NAME:
        raise place.build_error(f"has no {what} of up to {MAX_NAME:,} characters")
    return name


def parse_number(value: JsonValue) -> float | None:
    """Return a finite number, or None for any other value, including true and false."""
    if type(value) is float:  # of what JSON holds there is no other kind of it, and this is asked of every row
        return value if math.isfinite(value) else None
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def parse_seconds(value: JsonValue) -> float | None:
    """Return seconds as milliseconds."""
    seconds = parse_number(value)
    return in_range(seconds * 1000, MAX_DURATION_MS) if seconds is not None else None


def parse_milliseconds(value: JsonValue) -> float | None:
    """Return a duration in milliseconds, or None if it is not a number in range."""
    return in_range(parse_number(value), MAX_DURATION_MS)


def parse_cost(value: JsonValue) -> float | None:
    """Return a cost in US dollars, or None if it is not a number in range."""
    return in_range(parse_number(value), MAX_COST_USD)


def build_usage(inputs: JsonValue, outputs: JsonValue) -> Usage | None:
    """Build the usage of tokens, if at least one side is known."""
    numbers = [in_range(parse_number(side), MAX_TOKENS) for side in (inputs, outputs)]
    whole = [None if side is None else int(side) for side in numbers]
    return Usage(input_tokens=whole[0], output_tokens=whole[1]) if any(side is not None for side in whole) else None


@lru_cache(1_000)
def build_evaluator_results(scores: tuple[RowScore, ...]) -> tuple[EvaluatorResult, ...]:
    """Build the scores of a run result. Most executions have equal scores, and share them."""
    return tuple(map(_build_evaluator_result, scores))


def _build_evaluator_result(score: RowScore) -> EvaluatorResult:
    reasons = (score.reason or score.name,)
    value = score.value if score.value is not None else float(bool(score.passed))
    return EvaluatorResult(
        name=score.name,
        type=UNDECIDED_TYPE if score.passed is None else "check",
        score=value,
        hits=reasons if score.passed else (),
        misses=reasons if score.passed is False else (),
        reasoning=score.reason,
    )
