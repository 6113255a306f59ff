"""promptfoo results: `-o out.json`, or `-o out.jsonl` with one result per line (since 0.121).

A result's `id`, `testIdx` and `promptId` change with every run. The provider, the description and the variables name a
case, or `metadata.testCaseId` where the team sets it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from eval_gate.external_results.chat_turns import build_turns
from eval_gate.external_results.json_streaming import JsonReader, iter_lines, open_document
from eval_gate.external_results.prompt_digests import digest_prompt
from eval_gate.external_results.records import Fields
from eval_gate.external_results.result_rows import (
    ExecutionEnding,
    FileFacts,
    ResultRow,
    RowPlace,
    RowScore,
    build_ending,
    classify_error_kind,
    describe_low_score,
    to_text,
)
from eval_gate.external_results.statuses import Meaning, parse_tables
from eval_gate.model.base import JsonValue
from eval_gate.model.execution import ErrorKind, Status
from eval_gate.model.limits import EXTERNAL_LINE_BYTES
from eval_gate.text.digest import compute_digest, dump_sorted_json, fingerprint_json
from eval_gate.text.javascript.strings import dump_compact_json

STATUSES: Final = parse_tables("""
promptfoo 0.121.20: failureReason
  no verdict: -, 0; failed: 1; agent error: 2
promptfoo 0.121.20: success
  passed: true; failed: false
promptfoo 0.121.20: gradingResult.pass
  passed: true; failed: false; no verdict: -
promptfoo 0.121.20: pass of an assertion
  passed: true; failed: false
""")
_REASON, _SUCCESS, _GRADED, _PASS = STATUSES
"""Only `failureReason` tells an error from a failure: `error` also holds the reason of a plain failure."""
_MINIMUMS: Final = frozenset(
    {"answer-relevance", "bleu", "classifier", "context-faithfulness", "context-recall", "context-relevance", "g-eval"}
    | {"gleu", "llm-rubric", "meteor", "perplexity-score", "pi", "python", "rouge-n", "ruby", "search-rubric"}
    | {"similar", "trajectory:goal-success"}
)
"""Assertions whose score passes from their threshold on."""
_SCORING_BROKE: Final = "Scoring function error: "
"""How the reason of a result begins whose own scoring function raised."""
_TIMED_OUT: Final = re.compile(r"Evaluation exceeded max duration of \d")
"""The error of a test that promptfoo did not begin or end within its time for the whole run."""
_STACK_FRAMES: Final = re.compile(r"\n[ \t]*at ")
_GRADING_FRAME: Final = re.compile(
    r"(?<![\w.])(?:runAssertions?|matches[A-Z]\w{2,40}) \([^\n]{0,300}[\\/]promptfoo[\\/]dist[\\/]"
    r"|(?<![\w.])callApi \([^\n]{0,300}[\\/]promptfoo[\\/]dist[\\/]src[\\/]graders-"
)
"""Promptfoo's own frames below an assertion. Those of an agent go through callApi alone."""
_BLOCKED: Final = "Content failed guardrail safety checks"
"""The reason of a result that passes because guardrails blocked it, whatever its assertions say."""
_NO_NAME_HINT = "it has neither a description nor variables: give it `description`, or `metadata: {testCaseId: …}`"
_JOINED_RUNS_HINT: Final = "the file has two runs of promptfoo, which are not two executions: use the results of one"
_SHOWN_VARS = 200
_LATER_PROMPT = re.compile(rb'"promptIdx": ?[1-9]')

_MODEL_ASSERTIONS: Final = frozenset(
    {"answer-relevance", "classifier", "context-faithfulness", "context-recall", "context-relevance"}
    | {"conversation-relevance", "factuality", "g-eval", "llm-rubric", "model-graded-closedqa"}
    | {"model-graded-factuality", "moderation", "pi", "search-rubric", "select-best", "similar"}
    | {"trajectory:goal-success"}
)
"""Assertions that ask a model."""
_FIRST_MARKING_VERSION: Final = (0, 121, 20)
"""From this version on promptfoo marks what a grader could not do, of the assertions in `_MARKED_ASSERTIONS`."""
_MARKED_ASSERTIONS: Final = frozenset({"g-eval", "llm-rubric", "search-rubric", "trajectory:goal-success"})
_VERSION: Final = re.compile(r'"promptfooVersion"\s{0,9}:\s{0,9}"(\d{1,9})\.(\d{1,9})\.(\d{1,9})')
_VERSION_BYTES: Final = 1 << 16
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

_SCRIPT_ASSERTIONS: Final = frozenset({"javascript", "python", "ruby", "webhook"})
"""Assertions that run what the team has written."""
_SCRIPT_BROKE: Final = re.compile(
    r"Webhook error: |Custom function threw error: Custom function must return "
    r"|Custom function threw error: [^\n]{0,2000}\nStack Trace: ReferenceError: "
    r"|(?:Python|Ruby) code execution failed: [^\n]{0,2000}"
    r"\b(?:NameError|ImportError|ModuleNotFoundError|IndentationError)\b"
)
"""Errors that no response can cause. Any other exception may come from an unexpected response: a failure."""


def read_promptfoo(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Yield every result of `-o FILE.json`."""
    facts.tool = "promptfoo"
    has_results, marks = False, _read_version(file, shown_as) >= _FIRST_MARKING_VERSION
    with open_document(file, shown_as) as walked:
        for key in walked.iter_keys():
            if key == "results":
                has_results = True
                yield from _iter_results(walked, shown_as, facts, marks=marks)
            else:
                value = Fields(walked.read_value())
                if key == "runtimeOptions":
                    facts.repeats = value.count("repeat")
                if key == "metadata" and value.get("promptfooVersion"):
                    facts.tool = f"promptfoo {value.text('promptfooVersion')[:40]}"
        walked.require_end()
    if not has_results:
        raise RowPlace(shown_as, field="results").build_error("is missing")


def _read_version(file: Path, shown_as: str) -> tuple[int, ...]:
    """Return the promptfoo version that wrote the file, read from its last bytes; empty if they give none."""
    with RowPlace(shown_as).name_errors(), file.open("rb") as stream:
        stream.seek(max(stream.seek(0, os.SEEK_END) - _VERSION_BYTES, 0))
        end = stream.read(_VERSION_BYTES)
    versions = _VERSION.findall(end.decode("ascii", "replace"))
    return tuple(map(int, versions[-1])) if versions else ()


def _iter_results(walked: JsonReader, shown_as: str, facts: FileFacts, *, marks: bool) -> Iterator[ResultRow]:
    numbers, runs = dict[int, int](), _JoinedRuns()
    for key in walked.iter_keys():
        if key == "results":
            for place, result in walked.iter_records("results.results"):
                row = _build_row(result, place, numbers, marks=marks)
                yield runs.mark_joined_row(_add_sent_prompt(row, result, facts), result)
        else:
            value = Fields(walked.read_value())
            if key == "stats":
                facts.failures = value.count("failures") + value.count("errors")
                facts.executions = facts.failures + value.count("successes")
            if key == "prompts":  # it comes before the results
                numbers = _number_prompts(enumerate(one.text("provider") for one in value.members()))


def read_promptfoo_lines(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Return every result of `-o FILE.jsonl`, one a line."""
    facts.tool = "promptfoo"
    numbers = _number_prompts(_iter_prompts(file, shown_as)) if _has_several_prompts(file, shown_as) else {}
    runs = _JoinedRuns()
    return (
        runs.mark_joined_row(_add_sent_prompt(_build_row(result, place, numbers, marks=False), result, facts), result)
        for place, result in iter_lines(file, shown_as)
    )


class _JoinedRuns:
    """Separation of joined runs: in one run, each test has each prompt once, and each repeat is a test."""

    def __init__(self) -> None:
        self._pairs: set[tuple[int, int]] = set()
        self._earlier_runs = 0

    def mark_joined_row(self, row: ResultRow, result: Fields) -> ResultRow:
        """Mark a row of a later run so that it does not count as an execution of an earlier run."""
        test, prompt = result.get("testIdx"), result.get("promptIdx")
        if not isinstance(test, int) or not isinstance(prompt, int):
            return row
        if (test, prompt) in self._pairs:
            self._pairs.clear()
            self._earlier_runs += 1
        self._pairs.add((test, prompt))
        if not self._earlier_runs:
            return row
        return row._replace(repeat=f"{row.repeat} {self._earlier_runs}", duplicate_hint=_JOINED_RUNS_HINT)


def _has_several_prompts(file: Path, shown_as: str) -> bool:
    """Whether there is more than one pair of provider and prompt: most files have one, and are read once."""
    with RowPlace(shown_as).name_errors(), file.open("rb") as stream:
        return any(_LATER_PROMPT.search(line) for line in iter(lambda: stream.readline(EXTERNAL_LINE_BYTES), b""))


def _iter_prompts(file: Path, shown_as: str) -> Iterator[tuple[int, str]]:
    """Yield the `promptIdx` and the provider of each line. Lines are in the order in which tests ended."""
    for _, result in iter_lines(file, shown_as):
        if isinstance(at := result.get("promptIdx"), int):
            yield at, _format_provider(result)


def _number_prompts(prompts: Iterable[tuple[int, str]]) -> dict[int, int]:
    """Map each `promptIdx` to a number within its provider: one more prompt or provider shifts all that follow."""
    by_provider: dict[str, set[int]] = {}
    for at, provider in prompts:
        by_provider.setdefault(provider, set()).add(at)
    return {at: number for pairs in by_provider.values() for number, at in enumerate(sorted(pairs))}


def _build_row(result: Fields, place: RowPlace, numbers: Mapping[int, int], *, marks: bool) -> ResultRow:
    variables: JsonValue = result.get("vars") or {}
    broke = _REASON.find_meaning(result.get("failureReason")) is Meaning.AGENT_ERROR
    description, asserts = result.text("testCase.description"), result.at("testCase.assert")
    asserted = dump_sorted_json(asserts.value)
    name = _choose_name(result, description, variables)
    parts = result.members("gradingResult.componentResults")
    scores = _share_equal(tuple([_build_score(one, marks=marks) for one in parts]))
    grading, error = result.text("gradingResult.reason"), result.text("error")
    why = (error if broke else grading or error) or None
    ending = _classify_error(why or "") if broke else _build_ending(result, scores, why)
    content = fingerprint_json(f"[{dump_sorted_json(variables)},{asserted}]")
    return ResultRow(
        suite=_format_suite(result, numbers),
        id=name.name,
        place=place,
        **ending._asdict(),
        scores=scores,
        score=result.number("score"),
        prompt=_format_prompt(variables),
        expectation=tuple(map(_describe_assertion, asserts.members()[:50])),
        response=result.text_or_none("response.output"),
        trace=result.text("metadata.traceId", "response.metadata.traceId") or None,
        turns=build_turns(result.members("response.metadata.messages")),
        duration_ms=result.milliseconds("latencyMs"),
        cost_usd=result.cost("cost") or None,  # 0 if it is unknown
        usage=result.usage("tokenUsage.prompt", "tokenUsage.completion") if result.get("tokenUsage.total") else None,
        description=description[:500],
        content=content,
        digests=digest_prompt("vars", variables, asserted),
        repeat=content,
        rerun_name=description.strip() if name.named_by != "metadata.testCaseId" else None,
        longer_name=name.longer_name,
        named_by=name.named_by,
        unstable_reason=name.unstable_reason,
    )


def _classify_error(error: str) -> ExecutionEnding:
    """Classify an error by its first words, and by promptfoo's own stack frames below them."""
    message, *frames = _STACK_FRAMES.split(error, maxsplit=1)
    if _TIMED_OUT.match(message):
        return ExecutionEnding(Status.ERROR, ErrorKind.EVALUATION_ERROR, f"not run: {message}")
    if frames and _GRADING_FRAME.search(frames[0]):
        return ExecutionEnding(Status.ERROR, ErrorKind.EVALUATION_ERROR, error)
    return ExecutionEnding(Status.ERROR, classify_error_kind(message), error)


def _build_ending(result: Fields, scores: Sequence[RowScore], why: str | None) -> ExecutionEnding:
    """Build the ending of a result without an agent error."""
    own, against = _SUCCESS.build_ending(result.get("success"), why), None
    for table in (_REASON, _GRADED):
        value = result.get(table.field)
        if (meaning := table.find_meaning(value)) is None:
            return table.build_ending(value, why)
        against = f"`{table.field}` {to_text(value)}" if meaning is Meaning.FAILED else against
    if own.status is Status.FAILED and (why or "").startswith(_SCORING_BROKE):
        return ExecutionEnding(Status.ERROR, ErrorKind.EVALUATION_ERROR, why)
    if own.status is Status.PASSED and why == _BLOCKED:
        scores = [one for one in scores if one.grader_failed]
    elif result.get("testCase.assertScoringFunction") is None:  # else the team's own function decides
        against = against or describe_low_score(result.number("score"), result.number("testCase.threshold"))
    return build_ending(own, scores, weighed=True, against=against)


def _format_suite(result: Fields, numbers: Mapping[int, int]) -> str:
    """Name the suite by provider and, of several prompts, the number: a prompt's text changes."""
    at = result.get("promptIdx")
    number = numbers.get(at, at) if isinstance(at, int) else 0
    suite = _format_provider(result)[:300] or "promptfoo"
    return f"{suite}, prompt {number + 1}" if number > 0 else suite


def _format_provider(result: Fields) -> str:
    return result.text("provider.label", "provider.id", "provider")


class _CaseName(NamedTuple):
    """Name of a test: `longer_name` if several share it, `unstable_reason` why it may change by itself."""

    name: str
    named_by: str
    longer_name: str | None = None
    unstable_reason: str | None = None


def _choose_name(result: Fields, description: str, variables: JsonValue) -> _CaseName:
    if own := result.get("metadata.testCaseId", "testCase.metadata.testCaseId"):
        return _CaseName(to_text(own)[:300], "metadata.testCaseId")
    description = description.strip()[:300]
    vars_text = dump_compact_json(variables) if variables else ""
    if len(vars_text) > _SHOWN_VARS:
        vars_text = f"{vars_text[:_SHOWN_VARS]}… {compute_digest(variables)[:8]}"
    if description:
        return _CaseName(description, "description and vars", f"{description} {vars_text}" if vars_text else None)
    if vars_text:
        return _CaseName(vars_text, "vars")
    return _CaseName(f"test {result.get('testIdx')}", "place", unstable_reason=_NO_NAME_HINT)


def _format_prompt(variables: JsonValue) -> str:
    """Format the variables of a test, or only the value if a single variable is given."""
    if isinstance(variables, dict) and len(variables) == 1:
        return to_text(next(iter(variables.values())))
    return to_text(variables) if variables else ""


def _add_sent_prompt(row: ResultRow, result: Fields, facts: FileFacts) -> ResultRow:
    sent = result.get("prompt.raw") if facts.needs_sent_prompts else None
    return row._replace(prompt=sent) if isinstance(sent, str) else row


@lru_cache(1_000)
def _share_equal(scores: tuple[RowScore, ...]) -> tuple[RowScore, ...]:
    """Return the first scores that are equal to these: most results have the same."""
    return scores


def _describe_assertion(one: Fields) -> str:
    """Describe an assertion in a few words, such as `contains "4711"`."""
    kind, value = one.text("type") or "assertion", one.get("value")
    return to_text(f"{kind} {dump_compact_json(value)[:300]}") if value is not None else kind


def _build_score(one: Fields, *, marks: bool) -> RowScore:
    reason, assertion = one.text("reason"), one.at("assertion")
    name = (assertion.text("metric", "type") or "assertion")[:200]
    if _has_failed_grader(one, reason, marks=marks):
        return RowScore(name, None, None, reason, grader_failed=True)
    minimum = assertion.number("threshold") if assertion.text("type") in _MINIMUMS else None
    score = RowScore(name, one.number("score"), None, reason, threshold=minimum, is_minimum=True)
    return _PASS.apply_verdict(score, one.get("pass"))


def _has_failed_grader(one: Fields, reason: str, *, marks: bool) -> bool:
    """Return whether the grader failed: by its mark, else by its words; for a set, by its members."""
    kind, passed = one.text("assertion.type"), one.get("pass") is True
    if one.get("assertion.weight") == 0:  # decides nothing
        return False
    if one.get("metadata.graderError") is True:
        return True
    inner = [each for each in one.members("componentResults") if isinstance(each.value, dict)]
    if inner:
        scores = [_build_score(each, marks=marks) for each in inner]
        return any(each.grader_failed for each in scores) and all(each.grader_failed or each.passed for each in scores)
    plain = kind.removeprefix("not-")
    if plain in _SCRIPT_ASSERTIONS:
        return not passed and bool(_SCRIPT_BROKE.match(reason))
    graded = plain in _MODEL_ASSERTIONS and not (marks and plain in _MARKED_ASSERTIONS)
    return graded and not (passed and plain == kind) and bool(_NO_GRADE.match(reason))
