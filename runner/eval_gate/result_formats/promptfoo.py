"""promptfoo's results: `-o out.json`, or `-o out.jsonl` with one result a line (read from 0.121).

A result's `id`, `testIdx` and `promptId` are others in the next run. What stays is who was asked, the description and
the variables; `metadata.testCaseId` where the team gives one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypedDict, TypeVar

from msgspec import Raw

from eval_gate.model.base import JsonValue
from eval_gate.model.execution import Blame, Status
from eval_gate.model.limits import BROUGHT_LINE_BYTES
from eval_gate.result_formats.rows import (
    Ending,
    FileFacts,
    ResultRow,
    RowPlace,
    RowScore,
    blame_of,
    dollars,
    ending,
    mapping,
    members,
    milliseconds,
    nested,
    number,
    unreadable,
    usage,
    whole_number,
    words,
)
from eval_gate.result_formats.streaming import JsonWalk, document, left_raw, lines
from eval_gate.text.digest import digest, fingerprint_of, sorted_json
from eval_gate.text.javascript.strings import compact_json

_ASSERTION, _ERROR = 1, 2
"""`failureReason`: 0 none, 1 an assertion, 2 an error. Only this tells them apart; `error` also holds the reason of a
plain failure."""
_OUT_OF_TIME: Final = re.compile(r"Evaluation exceeded max duration of \d")
"""What promptfoo says of a test that it did not begin, or not end, within its own time for all of them."""
_FRAMES: Final = re.compile(r"\n[ \t]*at ")
_GRADING: Final = re.compile(
    r"(?<![\w.])(?:runAssertions?|matches[A-Z]\w{2,40}) \([^\n]{0,300}[\\/]promptfoo[\\/]dist[\\/]"
    r"|(?<![\w.])callApi \([^\n]{0,300}[\\/]promptfoo[\\/]dist[\\/]src[\\/]graders-"
)
"""Promptfoo's own frames below an assertion. Those of an agent go through callApi alone."""
_BLOCKED: Final = "Content failed guardrail safety checks"
"""The reason of a result that passes because guardrails blocked it, whatever its assertions say."""
_NO_NAME = "it has neither a description nor variables: give it `description`, or `metadata: {testCaseId: …}`"
_JOINED: Final = "the file holds two runs of promptfoo, which are not two executions: give the results of one"
_SHOWN_VARS = 200
_SHORT: Final = 4_000
"""Bytes of what is looked for among what other results said."""
_ANOTHER = re.compile(rb'"promptIdx": ?[1-9]')

_GRADED: Final = frozenset(
    {"answer-relevance", "classifier", "context-faithfulness", "context-recall", "context-relevance"}
    | {"conversation-relevance", "factuality", "g-eval", "llm-rubric", "model-graded-closedqa"}
    | {
        "model-graded-factuality",
        "moderation",
        "pi",
        "search-rubric",
        "select-best",
        "similar",
        "trajectory:goal-success",
    }
)
"""Assertions that ask a model."""
_MARKING: Final = (0, 121, 20)
"""From this version on promptfoo marks what a grader could not do, of the assertions in `_MARKED`."""
_MARKED: Final = frozenset({"g-eval", "llm-rubric", "search-rubric", "trajectory:goal-success"})
_VERSION: Final = re.compile(r'"promptfooVersion"\s{0,9}:\s{0,9}"(\d{1,9})\.(\d{1,9})\.(\d{1,9})')
_END: Final = 1 << 16
"""Bytes at a file's end in which its version stands, behind the results."""
_STATUS: Final = (
    r"(?:401|402|403|407|429|5\d\d)(?:$|[:,;]| ?[{<(]| (?:Unauthorized|Payment Required|Forbidden|Proxy Auth"
    r"|Too Many Requests|Internal Server|Bad Gateway|Service Unavailable|Gateway Time|status code|Incorrect API"
    r"|Invalid|You exceeded|Rate limit))"
)
_NO_GRADE: Final = re.compile(
    r"(?:\[?FAIL\]? *)?(?:Error: )?(?:API (?:call |response )?error[: ]|Could not (?:extract JSON from|perform remote) "
    r"|(?:Moderation|Search rubric evaluation) (?:API error|failed): |No output$|(?:Embedding not found|No embedding)$"
    r"|Unknown error fetching |Request timed out after \d|Rate limit(?:ed| exceeded| reached)|Quota exceeded"
    r"|You exceeded your current quota|(?:Invalid|Incorrect) API key(?: provided|$|[:.,])|Unauthorized(?:$|: )"
    r"|(?:llm-rubric|trajectory:goal-success) produced malformed response|Model grader produced a malformed response:"
    r"|LLM does not propose any evaluation|LLM-proposed evaluation (?:steps|result) |G-Eval (?:steps|evaluation|step-)"
    r"|Factuality checker output did not match|Invalid category value: |Error parsing output: "
    rf"|Invalid select-best verdict|(?:HTTP (?:call failed with status )?|status )?{_STATUS})",
    re.IGNORECASE,
)
"""What promptfoo and its providers say where the model gave no grade and nothing is marked. A verdict's own words that
begin with "Unauthorized" or "Error" go on in other ways."""

_SCRIPTS: Final = frozenset({"javascript", "python", "ruby", "webhook"})
"""Assertions that run what the team has written."""
_SCRIPT_BROKE: Final = re.compile(
    r"Webhook error: |Custom function threw error: Custom function must return "
    r"|Custom function threw error: [^\n]{0,2000}\nStack Trace: ReferenceError: "
    r"|(?:Python|Ruby) code execution failed: [^\n]{0,2000}"
    r"\b(?:NameError|ImportError|ModuleNotFoundError|IndentationError)\b"
)
"""What no answer can bring about. Any other exception may be due to an answer that they did not expect: a failure."""

_Read = TypeVar("_Read")


class _Described(TypedDict, total=False):
    testCaseId: Any


_Case = TypedDict("_Case", {"description": Any, "assert": Raw, "metadata": _Described | None}, total=False)


class _Response(TypedDict, total=False):
    output: Any


_Grading = TypedDict("_Grading", {"pass": Any, "reason": Any, "componentResults": Raw}, total=False)


class _Tokens(TypedDict, total=False):
    total: Any
    prompt: Any
    completion: Any


class _Result(TypedDict, total=False):
    """What is looked at: a third of what promptfoo writes of each result.

    What most results say alike is left as it stands there, and read once (`_read_once`).
    """

    cost: Any
    error: Any
    failureReason: Any
    gradingResult: _Grading | None
    latencyMs: Any
    metadata: _Described | None
    promptIdx: Any
    provider: Any
    response: _Response | None
    score: Any
    success: Any
    testCase: _Case | None
    testIdx: Any
    tokenUsage: _Tokens | None
    vars: Any


def read_promptfoo(file: Path, shown: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Every result of `-o FILE.json`."""
    facts.tool = "promptfoo"
    found, marks = False, _version(file, shown) >= _MARKING
    with document(file, shown) as walked:
        for key in walked.names():
            if key == "results":
                found = True
                yield from _results(walked, shown, facts, marks=marks)
            else:
                value = walked.value()
                if key == "metadata" and (version := nested(value, "promptfooVersion")):
                    facts.tool = f"promptfoo {words(version)[:40]}"
        walked.end()
    if not found:
        raise unreadable(RowPlace(shown, field="results"), "is missing")


def _version(file: Path, shown: str) -> tuple[int, ...]:
    """The version of promptfoo that wrote the file, as its last bytes say it; empty where they do not."""
    try:
        with file.open("rb") as stream:
            stream.seek(max(stream.seek(0, os.SEEK_END) - _END, 0))
            end = stream.read(_END).replace(b"\0", b"")  # of UTF-16 what is ASCII is left
    except OSError as error:
        raise unreadable(RowPlace(shown), f"cannot be read: {error.strerror}") from error
    found = _VERSION.findall(end.decode("ascii", "replace"))
    return tuple(map(int, found[-1])) if found else ()


def _results(walked: JsonWalk, shown: str, facts: FileFacts, *, marks: bool) -> Iterator[ResultRow]:
    numbers, runs = dict[int, int](), _Runs()
    for key in walked.names():
        if key == "results":
            for at, value in enumerate(walked.members(_Result)):
                yield runs.of(_row(value, RowPlace(shown, field=f"results.results[{at}]"), numbers, marks=marks), value)
        else:
            value = walked.value()
            if key == "stats":
                facts.failures = sum(whole_number(nested(value, kind)) for kind in ("failures", "errors"))
                facts.executions = facts.failures + whole_number(nested(value, "successes"))
            if key == "prompts":  # it comes before the results
                numbers = _numbers((at, words(nested(one, "provider"))) for at, one in enumerate(members(value)))


def read_promptfoo_lines(file: Path, shown: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Every line of `-o FILE.jsonl`."""
    facts.tool = "promptfoo"
    numbers = _numbers(_asked(file, shown)) if _asks_several(file, shown) else {}
    runs = _Runs()
    return (runs.of(_row(value, place, numbers, marks=False), value) for place, value in lines(file, shown))


class _Runs:
    """Tells joined runs apart: in one run each test, of which every repeat is one, has each prompt once."""

    def __init__(self) -> None:
        self._seen: set[tuple[int, int]] = set()
        self._before = 0

    def of(self, row: ResultRow, result: JsonValue) -> ResultRow:
        """The row, which is no execution of a case of an earlier run."""
        test, prompt = nested(result, "testIdx"), nested(result, "promptIdx")
        if not isinstance(test, int) or not isinstance(prompt, int):
            return row
        if (test, prompt) in self._seen:
            self._seen.clear()
            self._before += 1
        self._seen.add((test, prompt))
        return row._replace(repeat=f"{row.repeat} {self._before}", if_twice=_JOINED) if self._before else row


def _asks_several(file: Path, shown: str) -> bool:
    """Whether there is more than one pair of provider and prompt: most files have one, and are read once."""
    try:
        with file.open("rb") as stream:
            return any(_ANOTHER.search(line) for line in iter(lambda: stream.readline(BROUGHT_LINE_BYTES), b""))
    except OSError as error:
        raise unreadable(RowPlace(shown), f"cannot be read: {error.strerror}") from error


def _asked(file: Path, shown: str) -> Iterator[tuple[int, str]]:
    """Every line's number of its pair, and its provider. Lines come in the order in which tests were done."""
    for _, value in lines(file, shown):
        if isinstance(value, dict) and isinstance(at := value.get("promptIdx"), int):
            yield at, _provider(value)


def _numbers(asked: Iterable[tuple[int, str]]) -> dict[int, int]:
    """The number of the prompt among its provider's, by `promptIdx`.

    That counts pairs of provider and prompt, so that a prompt or provider more is another number for those behind it.
    """
    by_provider: dict[str, set[int]] = {}
    for at, provider in asked:
        by_provider.setdefault(provider, set()).add(at)
    return {at: number for pairs in by_provider.values() for number, at in enumerate(sorted(pairs))}


def _row(value: JsonValue, place: RowPlace, numbers: Mapping[int, int], *, marks: bool) -> ResultRow:
    result = mapping(value, place)
    case, variables = result.get("testCase"), result.get("vars") or {}
    broke = result.get("failureReason") == _ERROR
    own = Status.ERROR if broke else Status.PASSED if result.get("success") is True else Status.FAILED
    described, asserts = (case.get("description"), case.get("assert")) if isinstance(case, dict) else (None, None)
    description = words(described)
    name = _name(result, case, description, variables)
    answered, grading = result.get("response"), result.get("gradingResult")
    response = answered.get("output") if isinstance(answered, dict) else None
    parts = grading.get("componentResults") if isinstance(grading, dict) else None
    tokens, cost = result.get("tokenUsage"), result.get("cost")
    scores = _read_once(parts, *((_scored_marked, _scored_marked_in) if marks else (_scored, _scored_in)))
    why = _reason(result, broke=broke)
    asked = [one for one in scores if one.broke] if own is Status.PASSED and why == _BLOCKED else scores
    ended = ending(own, asked, why, weighed=True, against=_against(result))
    if broke:
        ended = _broken(why or "")
    wanted = _read_once(asserts, _asserted, _asserted_in)
    content = fingerprint_of(f"[{sorted_json(variables)},{wanted.json}]")
    return ResultRow(
        suite=_suite(result, numbers),
        id=name.name,
        status=ended.status,
        place=place,
        scores=scores,
        score=number(result.get("score")),
        question=_question(variables),
        expectation=wanted.words,
        answer=None if response is None else words(response),
        error=ended.error,
        blame=ended.blame,
        duration_ms=milliseconds(result.get("latencyMs")),
        cost_usd=dollars(cost) or None if cost else None,  # 0 where nobody knows
        usage=usage(nested(tokens, "prompt"), nested(tokens, "completion"))
        if tokens and nested(tokens, "total")
        else None,
        description=description[:500],
        content=content,
        repeat=content,
        again=description.strip() if name.named_by != "metadata.testCaseId" else None,
        longer=name.longer,
        named_by=name.named_by,
        unstable=name.unstable,
    )


def _broken(error: str) -> Ending:
    """Whose fault an error is: its first words say what broke, and promptfoo's own frames below them where."""
    message, *frames = _FRAMES.split(error, maxsplit=1)
    if _OUT_OF_TIME.match(message):
        return Ending(Status.ERROR, Blame.OURS, f"not run: {message}")
    if frames and _GRADING.search(frames[0]):
        return Ending(Status.ERROR, Blame.OURS, error)
    return Ending(Status.ERROR, blame_of(message), error)


def _against(result: dict[str, JsonValue]) -> str | None:
    """What says that a result did not pass, beside `success`."""
    if nested(result, "gradingResult", "pass") is False:
        return "`gradingResult.pass` false"
    return "`failureReason` 1" if result.get("failureReason") == _ASSERTION else None


def _suite(result: dict[str, JsonValue], numbers: Mapping[int, int]) -> str:
    """Who was asked, and with which of several prompts. A prompt's text changes, its number stays."""
    at = result.get("promptIdx")
    number = numbers.get(at, at) if isinstance(at, int) else 0
    named = _provider(result)[:300] or "promptfoo"
    return f"{named}, prompt {number + 1}" if number > 0 else named


def _provider(result: dict[str, JsonValue]) -> str:
    provider = result.get("provider")
    if isinstance(provider, dict):
        return words(provider.get("label") or provider.get("id") or provider)
    return words(provider)


class _Name(NamedTuple):
    """`longer` is for where several tests share a description; `unstable` says why it may be another one next time."""

    name: str
    named_by: str
    longer: str | None = None
    unstable: str | None = None


def _name(result: dict[str, JsonValue], case: JsonValue, description: str, variables: JsonValue) -> _Name:
    own = nested(result.get("metadata"), "testCaseId") or nested(case, "metadata", "testCaseId")
    if own:
        return _Name(words(own)[:300], "metadata.testCaseId")
    description = description.strip()[:300]
    shown = compact_json(variables) if variables else ""
    if len(shown) > _SHOWN_VARS:
        shown = f"{shown[:_SHOWN_VARS]}… {digest(variables)[:8]}"
    if description:
        return _Name(description, "description and vars", f"{description} {shown}" if shown else None)
    return _Name(shown, "vars") if shown else _Name(f"test {result.get('testIdx')}", "place", unstable=_NO_NAME)


def _question(variables: JsonValue) -> str:
    """The variables; of a single one its value."""
    if isinstance(variables, dict) and len(variables) == 1:
        return words(next(iter(variables.values())))
    return words(variables) if variables else ""


def _read_once(value: Any, read: Callable[[JsonValue], _Read], known: Callable[[bytes], _Read]) -> _Read:
    """What `read` makes of the value; `known` does of bytes, and knows what it made of the same."""
    if not isinstance(value, Raw):
        return read(value)
    data = bytes(value)
    return known(data) if len(data) <= _SHORT else read(left_raw(data))


class _Asserted(NamedTuple):
    """What is asked of an answer: as JSON for the fingerprint, and in words."""

    json: str
    words: tuple[str, ...]


def _asserted(asserts: JsonValue) -> _Asserted:
    return _Asserted(sorted_json(asserts), tuple([_wanted(one) for one in members(asserts)[:50]]))


@lru_cache(1_000)
def _asserted_in(data: bytes) -> _Asserted:
    return _asserted(left_raw(data))


def _scored(parts: JsonValue) -> tuple[RowScore, ...]:
    return tuple([_score(one, marks=False) for one in members(parts)])


@lru_cache(1_000)
def _scored_in(data: bytes) -> tuple[RowScore, ...]:
    return _scored(left_raw(data))


def _scored_marked(parts: JsonValue) -> tuple[RowScore, ...]:
    """The same of a version that marks what a grader could not do."""
    return tuple([_score(one, marks=True) for one in members(parts)])


@lru_cache(1_000)
def _scored_marked_in(data: bytes) -> tuple[RowScore, ...]:
    return _scored_marked(left_raw(data))


def _wanted(one: JsonValue) -> str:
    """An assertion in a few words: `contains "4711"`."""
    kind, value = (one.get("type"), one.get("value")) if isinstance(one, dict) else (None, None)
    if isinstance(kind, str) and (value is None or isinstance(value, str)):
        return _wanted_words(kind, value)  # most tests ask for the same
    return _in_words(words(kind), value)


@lru_cache(1_000)
def _wanted_words(kind: str, value: str | None) -> str:
    return _in_words(words(kind), value)


def _in_words(kind: str, value: JsonValue) -> str:
    kind = kind or "assertion"
    return words(f"{kind} {compact_json(value)[:300]}") if value is not None else kind


def _score(one: JsonValue, *, marks: bool) -> RowScore:
    if not isinstance(one, dict):
        return RowScore("assertion", None, passed=False)
    assertion = one.get("assertion")
    named = assertion.get("metric") or assertion.get("type") if isinstance(assertion, dict) else None
    passed, reason = one.get("pass") is True, one.get("reason")
    if _grader_broke(one, marks=marks, passed=passed, reason=reason):
        return RowScore(words(named or "assertion")[:200], None, None, words(reason), broke=True)
    if isinstance(named, str) and (reason is None or isinstance(reason, str)):
        return _said_of(named, number(one.get("score")), reason, passed=passed)  # nearly the same of most answers
    return RowScore(words(named or "assertion")[:200], number(one.get("score")), passed, words(reason))


def _grader_broke(one: dict[str, JsonValue], *, marks: bool, passed: bool, reason: JsonValue) -> bool:
    """Whether who grades could not: it is marked, or said in words where nothing is. A set says what is in it.

    An assertion that has no weight decides nothing.
    """
    if nested(one, "assertion", "weight") == 0:
        return False
    if nested(one, "metadata", "graderError") is True:
        return True
    inner = [each for each in members(one.get("componentResults")) if isinstance(each, dict)]
    if inner:
        scores = [_score(each, marks=marks) for each in inner]
        return any(each.broke for each in scores) and all(each.broke or each.passed for each in scores)
    kind = nested(one, "assertion", "type")
    plain = kind.removeprefix("not-") if isinstance(kind, str) else ""
    if plain in _SCRIPTS:
        return not passed and bool(_SCRIPT_BROKE.match(words(reason)))
    graded = plain in _GRADED and not (marks and plain in _MARKED)
    return graded and not (passed and not str(kind).startswith("not-")) and bool(_NO_GRADE.match(words(reason)))


@lru_cache(1_000)
def _said_of(named: str, score: float | None, reason: str | None, *, passed: bool) -> RowScore:
    return RowScore(words(named)[:200], score, passed, words(reason))


def _reason(result: dict[str, JsonValue], *, broke: bool) -> str | None:
    grading = words(nested(result, "gradingResult", "reason"))
    said = words(result.get("error"))
    return (said if broke else grading or said) or None
