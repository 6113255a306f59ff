"""Inspect logs: `.eval` (a zip compressed with zstd) or `.json` (since 0.3.285).

A score of Inspect is a value without a verdict: C, yes and true pass; I, N, no and false fail. P and numbers, also as
text, need a rule. Each value of a scorer with several is a score of its own, `scorer.key`. An epoch is a trial.
"""

from __future__ import annotations

import re
import struct
import zipfile
from collections import Counter
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import IO, Final

from eval_gate.errors import require_extra
from eval_gate.external_results.chat_turns import build_turns, is_of_user
from eval_gate.external_results.json_streaming import open_document, parse_value
from eval_gate.external_results.prompt_digests import digest_prompt
from eval_gate.external_results.records import Fields, require_record
from eval_gate.external_results.result_rows import (
    ExecutionEnding,
    FileFacts,
    ResultRow,
    RowPlace,
    RowScore,
    build_ending,
    build_usage,
    classify_error_kind,
    parse_number,
    to_text,
)
from eval_gate.external_results.statuses import Meaning, parse_tables
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import ToolCall
from eval_gate.model.execution import ErrorKind, Status, TurnResult
from eval_gate.model.limits import ARCHIVE_ENTRIES, EXTERNAL_LINE_BYTES
from eval_gate.model.usage import Usage
from eval_gate.results.archive import ARCHIVE_ERRORS, has_more_entries
from eval_gate.struct import replace
from eval_gate.text.digest import compute_fingerprint

STATUSES: Final = parse_tables("""
Inspect 0.3.285: status of a log
  no verdict: -, success; incomplete: started, cancelled, error
Inspect 0.3.285: limit that ended a sample
  no verdict: -, context, cost, custom, message, time, token, turn, working; evaluation error: operator
Inspect 0.3.285: reason of a score, where any other is the scorer's own and has no verdict
  no verdict: -, invalid_response_format, refusal, no_response; evaluation error: grader_failed, scoring_failed
Inspect 0.3.285: value of a score that is no number
  passed: C, yes, true; failed: I, N, no, false; no verdict: P
""")
_LOG, _LIMIT, _REASON, _VALUE = STATUSES
_SCORER_FRAME: Final = re.compile(
    r"[\\/]inspect_ai[\\/](?:scorer[\\/]|[^\n]{0,200}\n[ |]*[^\n]{0,100}\bawait scorer\()"
)
"""Inspect's own frames in a traceback where a scorer broke: its own scorers, and the line that calls any other."""
_SOLVER_FRAME: Final = re.compile(r"[\\/]inspect_ai[\\/](?:solver|agent)[\\/]")
"""The same of a solver or an agent: what is called like a scorer is their own then."""
_SCORE_FUNCTION: Final = re.compile(r", in (?:\w{1,60}\.<locals>\.)?score$", re.MULTILINE)
"""How Inspect's documentation calls the function of a scorer, for a traceback without frames of Inspect's."""
_ZSTD: Final = 93
_MAX_ENTRY_BYTES: Final = 4 * EXTERNAL_LINE_BYTES
"""Bytes of one member, unpacked."""
_MAX_WINDOW_BYTES: Final = 1 << 25
"""Bytes that unpacking may keep to look back at: twice the largest member."""
_LOCAL_HEADER: Final = struct.Struct("<26xHH")
HEADER: Final = "header.json"
_JOURNAL_PREFIX: Final = "_journal/"
"""What a log has from its beginning."""
_PLAIN: Final = frozenset({"C", "I"})
"""Inspect's accuracy is the share of `C` among these values."""
_ROUNDING: Final = 1e-6
_NUMBERS: Final = {Meaning.PASSED: 1.0, Meaning.FAILED: 0.0, Meaning.NO_VERDICT: 0.5}
"""What Inspect counts a value as that is no number."""


def read_inspect(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Yield every sample and epoch of a log as JSON."""
    head, graded = dict[str, JsonValue](), _GradeCounter()
    with open_document(file, shown_as) as walked:
        for key in walked.iter_keys():
            if key == "samples":
                _check_finished(Fields(head), shown_as)
                for place, sample in walked.iter_records("samples"):
                    yield graded.add_sample(sample, _build_row(sample, Fields(head), place))
            elif key in {"status", "eval", "error", "results"}:
                head[key] = walked.read_value()
            else:
                walked.read_value()
        walked.require_end()
    _check_finished(Fields(head), shown_as)  # it may stand behind the samples
    _set_facts(Fields(head), facts)
    graded.check_counts(Fields(head), shown_as)


def read_inspect_archive(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Yield every sample and epoch of a log in an `.eval` archive."""
    try:
        if has_more_entries(file, ARCHIVE_ENTRIES):
            raise RowPlace(shown_as).build_error(f"has more than {ARCHIVE_ENTRIES:,} entries")
        with zipfile.ZipFile(file) as archive:
            entries = {one.filename: one for one in archive.infolist()}
            if HEADER not in entries:
                if any(name.startswith(_JOURNAL_PREFIX) for name in entries):
                    what = f"has no {HEADER}: Inspect was stopped before it wrote one"
                    raise RowPlace(shown_as).build_incomplete_error(what)
                raise RowPlace(shown_as).build_error(f"has no {HEADER}, so it is not an Inspect log")
            head = require_record(_read_entry(archive, entries[HEADER], shown_as), RowPlace(f"{shown_as}!{HEADER}"))
            _check_finished(head, shown_as)
            _set_facts(head, facts)
            graded = _GradeCounter()
            for name, one in entries.items():
                if name.startswith("samples/") and name.endswith(".json"):
                    place = RowPlace(f"{shown_as}!{name[:200]}")
                    sample = require_record(_read_entry(archive, one, shown_as), place)
                    yield graded.add_sample(sample, _build_row(sample, head, place))
            graded.check_counts(head, shown_as)
    except (struct.error, NotImplementedError, *ARCHIVE_ERRORS) as error:
        raise RowPlace(shown_as).build_error(f"is not a readable archive: {error}") from None


def _read_entry(archive: zipfile.ZipFile, one: zipfile.ZipInfo, shown_as: str) -> JsonValue:
    place = RowPlace(f"{shown_as}!{one.filename[:200]}")
    if one.compress_type == _ZSTD:
        data = _decompress_entry(archive, one)
    else:
        try:
            with archive.open(one) as stream:
                data = stream.read(_MAX_ENTRY_BYTES + 1)
        except (NotImplementedError, RuntimeError, *ARCHIVE_ERRORS) as error:  # another method, and a password
            raise place.build_error(f"cannot be unpacked: {error}") from None
    if len(data) > _MAX_ENTRY_BYTES:
        raise place.build_error(f"is larger than {_MAX_ENTRY_BYTES:,} bytes")
    return parse_value(data, place)


def _decompress_entry(archive: zipfile.ZipFile, one: zipfile.ZipInfo) -> bytes:
    """Decompress an archive member that uses zstd. Python's own zipfile module supports zstd only from 3.14 on."""
    with require_extra("inspect", "an Inspect log in its .eval form"):
        import zstandard
    packed = _read_compressed(archive.fp, one)
    try:
        with zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES).stream_reader(packed) as stream:
            return stream.read(_MAX_ENTRY_BYTES + 1)
    except zstandard.ZstdError as error:
        raise zipfile.BadZipFile(str(error)) from None


def _read_compressed(stream: IO[bytes] | None, one: zipfile.ZipInfo) -> bytes:
    if stream is None or one.compress_size > _MAX_ENTRY_BYTES:
        raise zipfile.BadZipFile(f"{one.filename[:200]} is too large")
    stream.seek(one.header_offset)
    name, extra = _LOCAL_HEADER.unpack(stream.read(_LOCAL_HEADER.size))
    stream.seek(name + extra, 1)
    return stream.read(one.compress_size)


def _check_finished(head: Fields, shown_as: str) -> None:
    status = head.get("status")
    if (meaning := _LOG.find_meaning(status)) is not Meaning.NO_VERDICT:
        why = head.text("error.message")[:300]
        what = f"is {to_text(status)[:40]}" if meaning else _LOG.describe(status)
        raise RowPlace(shown_as, field="status").build_incomplete_error(f"{what}{f': {why}' if why else ''}")


def _set_facts(head: Fields, facts: FileFacts) -> None:
    facts.tool = f"Inspect {head.text('eval.packages.inspect_ai')[:40]}".rstrip()
    facts.executions = head.count("results.total_samples")


class _GradeCounter:
    """Grades by scorer, to compare with the counts of Inspect."""

    def __init__(self) -> None:
        self._samples: dict[str, set[str]] = {}
        """The samples that each scorer graded."""
        self._values: dict[str, Counter[str]] = {}
        self._count = 0

    def add_sample(self, sample: Fields, row: ResultRow) -> ResultRow:
        """Count the scores of a sample and return its row."""
        self._count += 1
        for name, one in sample.items("scores"):
            value = one.get("value")
            plain = isinstance(value, str) and value in _PLAIN and not one.members("history")
            self._samples.setdefault(name, set()).add(row.id)
            self._values.setdefault(name, Counter())[str(value) if plain else ""] += 1
        return row

    def check_counts(self, head: Fields, shown_as: str) -> None:
        """Raise GateError where a scorer graded fewer samples, or let more of them pass, than Inspect counted."""
        for at, one in enumerate(head.members("results.scores")):
            place, scorer = RowPlace(shown_as, field=f"results.scores[{at}]"), one.text("scorer")
            number = len(self._samples.get(scorer, ()))
            place.check_count(one.count("scored_samples"), number, f"samples that {scorer[:100]} graded")
            accuracy, values = one.number("metrics.accuracy.value"), self._values.get(scorer, Counter())
            if accuracy is None or number != values.total() or number != self._count or not set(values) <= _PLAIN:
                continue  # of epochs, and of values that a metric reads in its own way, it is another figure
            if accuracy < (share := values["C"] / number) - _ROUNDING:
                what = f"reports an accuracy of {accuracy:g}, but its samples make {share:g}"
                raise place.build_incomplete_error(what)


def _build_row(sample: Fields, head: Fields, place: RowPlace) -> ResultRow:
    scores = tuple(score for name, one in sample.items("scores") for score in _iter_scores(name[:200], one))
    if not sample.get("error"):
        scores = (*scores, *_iter_missing_scores(sample, head))
    ending, limit = _build_ending(sample, scores), sample.text("limit.type")
    inputs, target, epoch = sample.get("input"), sample.get("target"), sample.get("epoch")
    content = compute_fingerprint([inputs, target])
    prompt = inputs if isinstance(inputs, str) else "\n\n".join(map(_format_message, sample.members("input")))
    task, args = head.text("eval.task") or "inspect", head.get("eval.task_args_passed")
    suite = f"{task[:200]} {to_text(args)[:200]}" if args else task[:200]
    model = head.text("eval.model")[:200]
    return ResultRow(
        suite=suite,
        id=sample.name("id", place=place),
        status=ending.status,
        place=place,
        scores=scores,
        prompt=to_text(prompt),
        expectation=(to_text(target),) if target not in (None, "", []) else (),
        response=sample.text("output.completion") or None,
        trace=sample.text("uuid") or None,
        error=f"stopped by its {limit} limit" if limit and ending.status is not Status.ERROR else ending.error,
        error_kind=ending.error_kind,
        duration_ms=sample.seconds("total_time"),
        usage=_sum_usage(sample),
        calls=tuple(_iter_tool_calls(sample)),
        turns=_build_turns(sample),
        content=content,
        digests=digest_prompt("input", inputs, target),
        repeat=f"{content} {model}" if isinstance(epoch, int) else None,
        run=head.text("eval.run_id") or None,
        trial=f"epoch {epoch} of {model}" if isinstance(epoch, int) else None,
        longer_suites=(f"{suite}, {model}",) if model else (),
        named_by="task and sample id",
    )


def _build_ending(sample: Fields, scores: tuple[RowScore, ...]) -> ExecutionEnding:
    """Build the ending of a sample. An error is the agent's, unless its traceback goes through a scorer."""
    stopped = _LIMIT.build_ending(sample.get("limit.type"), sample.text("limit.reason") or None)
    if sample.get("invalidation"):
        by = sample.text("invalidation.author")[:100] or "somebody"
        why = ": ".join(filter(None, (f"{by} invalidated the sample", sample.text("invalidation.reason"))))
        return ExecutionEnding(Status.ERROR, ErrorKind.EVALUATION_ERROR, why)
    if sample.get("error"):
        message, of_scorer = sample.text("error.message"), _has_scorer_frame(sample.text("error.traceback"))
        kind = ErrorKind.EVALUATION_ERROR if of_scorer else classify_error_kind(message)
        return ExecutionEnding(Status.ERROR, kind, message)
    if stopped.status is not Status.ERROR and not scores:
        return ExecutionEnding(Status.ERROR, ErrorKind.EVALUATION_ERROR, "no score was given")
    missed = "; ".join(f"{one.name}: {one.reason or one.value}" for one in scores if one.passed is not True)
    return build_ending(stopped._replace(error=stopped.error or missed or None), scores)


def _has_scorer_frame(traceback: str) -> bool:
    if _SCORER_FRAME.search(traceback):
        return True
    return _SOLVER_FRAME.search(traceback) is None and _SCORE_FUNCTION.search(traceback) is not None


def _iter_missing_scores(sample: Fields, head: Fields) -> Iterator[RowScore]:
    """Yield a grader failure for each scorer that graded other samples of the log but not this one."""
    sample_scores = sample.at("scores")
    for one in head.members("results.scores"):
        scorer = one.text("scorer")[:200]
        if not sample_scores.has(scorer) and one.count("scored_samples"):
            yield RowScore(scorer, None, None, "it graded other samples, but not this one", grader_failed=True)


def _iter_scores(name: str, one: Fields) -> Iterator[RowScore]:
    value, reason = one.get("value"), one.text("explanation") or None
    broke = _REASON.find_meaning(one.get("reason", "metadata.unscored_reason")) is Meaning.EVALUATION_ERROR
    if value in ({}, []):
        yield RowScore(name, None, None, reason or "its value is empty", grader_failed=True)
    elif isinstance(value, dict):
        yield from (_build_score(f"{name}.{key[:200]}", inner, reason, broke=broke) for key, inner in value.items())
    elif isinstance(value, list):
        yield from (_build_score(f"{name}.{at}", inner, reason, broke=broke) for at, inner in enumerate(value))
    else:
        yield _build_score(name, value, reason, broke=broke)


def _build_score(name: str, value: JsonValue, reason: str | None, *, broke: bool) -> RowScore:
    if broke:
        return RowScore(name, None, None, reason, grader_failed=True)
    if isinstance(value, bool):
        return RowScore(name, float(value), value, reason)
    if isinstance(value, str):
        word = value if _VALUE.find_meaning(value) else value.lower()
        meaning, number = _VALUE.find_meaning(word), _parse_number_text(value)
        score = RowScore(name, number if meaning is None else _NUMBERS[meaning], None, reason)
        return score if number is not None or meaning is Meaning.NO_VERDICT else _VALUE.apply_verdict(score, word)
    return RowScore(name, parse_number(value), None, reason, grader_failed=value is None)  # not-a-number: not scored


def _parse_number_text(text: str) -> float | None:
    try:
        return parse_number(float(text))
    except ValueError:
        return None


def _format_message(one: Fields) -> str:
    content = one.get("content")
    parts = (
        [content] if isinstance(content, str) else [part.get("text") or part.value for part in one.members("content")]
    )
    return f"{one.text('role')}: {' '.join(map(to_text, parts))}"


def _iter_tool_calls(sample: Fields) -> Iterator[ToolCall]:
    messages = sample.members("messages")
    results = {one.text("tool_call_id"): one for one in messages if one.get("role") == "tool"}
    for call in (call for message in messages for call in message.members("tool_calls")):
        response = results.get(call.text("id"))
        tool_call = call.call("function", "arguments", None if response is None else response.get("content"))
        yield replace(tool_call, success=None if response is None else response.get("error") is None)


def _build_turns(sample: Fields) -> tuple[TurnResult, ...]:
    """Build the turns of a sample, from the last message of its input on: the others are examples."""
    messages = sample.members("messages")
    inputs = list(takewhile(lambda one: one.get("source") == "input", messages))
    begin = next((at for at in reversed(range(len(inputs))) if is_of_user(inputs[at])), 0)
    earlier = messages[:begin]
    return () if any(one.members("tool_calls") for one in earlier) else build_turns(messages[begin:], "tool_calls")


def _sum_usage(sample: Fields) -> Usage | None:
    models = [one for _, one in sample.items("model_usage")]
    counted = [sum(int(one.number(f"{side}_tokens") or 0) for one in models) for side in ("input", "output")]
    return build_usage(*counted) if models else None
