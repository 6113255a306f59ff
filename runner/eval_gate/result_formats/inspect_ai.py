"""Inspect's logs: `.eval`, a zip whose members are compressed with zstd, or `.json` (read from 0.3.285).

An Inspect score is a value and no verdict: C passes, I and N do not, true and false, yes and no are what they say. Of
P and of numbers, also such that are texts, a rule has to say from where on they pass. Of a scorer that gives several
values each is a score of its own, `scorer.key`. An epoch is a trial.
"""

from __future__ import annotations

import re
import struct
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from eval_gate.errors import needing
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import ToolCall
from eval_gate.model.execution import Blame, Status
from eval_gate.model.limits import ARCHIVE_ENTRIES, BROUGHT_LINE_BYTES
from eval_gate.model.usage import Usage
from eval_gate.result_formats.rows import (
    Ending,
    FileFacts,
    ResultRow,
    RowPlace,
    RowScore,
    broken_off,
    ending,
    mapping,
    members,
    name_of,
    nested,
    number,
    seconds,
    unreadable,
    usage,
    whole_number,
    words,
)
from eval_gate.result_formats.streaming import document, value_of
from eval_gate.results.archive import DAMAGED, has_more_entries
from eval_gate.text.digest import fingerprint

_GRADER_FAILED: Final = "grader_failed"
"""A score's `reason` where the model that grades gave no grade; its value is not a number then, or a list of such."""
_SCORED: Final = re.compile(r"[\\/]inspect_ai[\\/](?:scorer[\\/]|[^\n]{0,200}\n[ |]*[^\n]{0,100}\bawait scorer\()")
"""Inspect's own frames in a traceback where a scorer broke: its scorers, and the line that calls everybody else's."""
_SOLVED: Final = re.compile(r"[\\/]inspect_ai[\\/](?:solver|agent)[\\/]")
"""The same of a solver or an agent: what is called like a scorer is their own then."""
_SCORE: Final = re.compile(r", in (?:\w{1,60}\.<locals>\.)?score$", re.MULTILINE)
"""How Inspect's documentation calls the function of a scorer, for a traceback without frames of Inspect's."""
_ZSTD: Final = 93
_MOST: Final = 4 * BROUGHT_LINE_BYTES
"""Bytes of one member, unpacked."""
_MOST_WINDOW: Final = 1 << 25
"""Bytes that unpacking may keep to look back at: twice the largest member."""
_LOCAL_HEADER: Final = struct.Struct("<26xHH")
HEADER: Final = "header.json"
_BEGUN: Final = "_journal/"
"""What a log has from its beginning."""
_PLAIN: Final = frozenset({"C", "I"})
"""Values of which Inspect's accuracy is the share of `C`."""
_ROUNDED: Final = 1e-6
_VERDICTS: Final = {"C": True, "I": False, "N": False, "yes": True, "true": True, "no": False, "false": False}
_VALUES: Final = {"P": 0.5} | {word: float(passed) for word, passed in _VERDICTS.items()}


def read_inspect(file: Path, shown: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Every sample and epoch of a log as JSON."""
    head, graded = dict[str, JsonValue](), _Graded()
    with document(file, shown) as walked:
        for key in walked.names():
            if key == "samples":
                _finished(head, shown)
                for at, sample in enumerate(walked.members()):
                    place = RowPlace(shown, field=f"samples[{at}]")
                    yield graded.also(mapping(sample, place), _row(mapping(sample, place), head, place))
            elif key in {"status", "eval", "error", "results"}:
                head[key] = walked.value()
            else:
                walked.value()
        walked.end()
    _finished(head, shown)  # it may stand behind the samples
    _take_head(head, facts)
    graded.refuse_fewer(head, shown)


def read_inspect_archive(file: Path, shown: str, facts: FileFacts) -> Iterator[ResultRow]:
    """The same of an `.eval` archive."""
    try:
        if has_more_entries(file, ARCHIVE_ENTRIES):
            raise unreadable(RowPlace(shown), f"has more than {ARCHIVE_ENTRIES:,} entries")
        with zipfile.ZipFile(file) as archive:
            entries = {one.filename: one for one in archive.infolist()}
            if HEADER not in entries:
                if any(name.startswith(_BEGUN) for name in entries):
                    raise broken_off(RowPlace(shown), f"has no {HEADER} yet: Inspect was ended before it wrote one")
                raise unreadable(RowPlace(shown), f"has no {HEADER}, and is no log of Inspect's")
            head = mapping(_entry(archive, entries[HEADER], shown), RowPlace(f"{shown}!{HEADER}"))
            _finished(head, shown)
            _take_head(head, facts)
            graded = _Graded()
            for name, one in entries.items():
                if name.startswith("samples/") and name.endswith(".json"):
                    place = RowPlace(f"{shown}!{name[:200]}")
                    sample = mapping(_entry(archive, one, shown), place)
                    yield graded.also(sample, _row(sample, head, place))
            graded.refuse_fewer(head, shown)
    except (struct.error, NotImplementedError, *DAMAGED) as error:
        raise unreadable(RowPlace(shown), f"is not an archive that can be read: {error}") from None


def _entry(archive: zipfile.ZipFile, one: zipfile.ZipInfo, shown: str) -> JsonValue:
    place = RowPlace(f"{shown}!{one.filename[:200]}")
    if one.compress_type == _ZSTD:
        data = _unpacked(archive, one)
    else:
        try:
            with archive.open(one) as stream:
                data = stream.read(_MOST + 1)
        except (NotImplementedError, RuntimeError, *DAMAGED) as error:  # the first two: another method, and a password
            raise unreadable(place, f"cannot be unpacked: {error}") from None
    if len(data) > _MOST:
        raise unreadable(place, f"is larger than {_MOST:,} bytes")
    return value_of(data, place)


def _unpacked(archive: zipfile.ZipFile, one: zipfile.ZipInfo) -> bytes:
    """The member's bytes; Python's own zipfile knows zstd only from 3.14 on."""
    with needing("inspect", "an Inspect log in its .eval form"):
        import zstandard
    packed = _raw(archive.fp, one)
    try:
        with zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW).stream_reader(packed) as stream:
            return stream.read(_MOST + 1)
    except zstandard.ZstdError as error:
        raise zipfile.BadZipFile(str(error)) from None


def _raw(stream: IO[bytes] | None, one: zipfile.ZipInfo) -> bytes:
    if stream is None or one.compress_size > _MOST:
        raise zipfile.BadZipFile(f"{one.filename[:200]} is too large")
    stream.seek(one.header_offset)
    name, extra = _LOCAL_HEADER.unpack(stream.read(_LOCAL_HEADER.size))
    stream.seek(name + extra, 1)
    return stream.read(one.compress_size)


def _finished(head: dict[str, JsonValue], shown: str) -> None:
    status = head.get("status")
    if status is not None and status != "success":
        why = words(nested(head, "error", "message"))[:300]
        raise broken_off(RowPlace(shown, field="status"), f"is {words(status)[:40]}{f': {why}' if why else ''}")


def _take_head(head: dict[str, JsonValue], facts: FileFacts) -> None:
    facts.tool = _tool(head)
    facts.executions = whole_number(nested(head, "results", "total_samples"))


class _Graded:
    """What each scorer gave, to be held against what Inspect counted."""

    def __init__(self) -> None:
        self._samples: dict[str, set[str]] = {}
        """The samples that each scorer graded."""
        self._values: dict[str, Counter[str]] = {}
        self._count = 0

    def also(self, sample: dict[str, JsonValue], row: ResultRow) -> ResultRow:
        """The row of this sample, which is counted."""
        self._count += 1
        given = sample.get("scores")
        for name, one in given.items() if isinstance(given, dict) else ():
            value = nested(one, "value")
            plain = isinstance(value, str) and value in _PLAIN and not members(nested(one, "history"))
            self._samples.setdefault(name, set()).add(row.id)
            self._values.setdefault(name, Counter())[str(value) if plain else ""] += 1
        return row

    def refuse_fewer(self, head: dict[str, JsonValue], shown: str) -> None:
        """Raise GateError where a scorer graded fewer samples, or let more of them pass, than Inspect counted."""
        for at, one in enumerate(members(nested(head, "results", "scores"))):
            place, scorer = RowPlace(shown, field=f"results.scores[{at}]"), words(nested(one, "scorer"))
            said, found = whole_number(nested(one, "scored_samples")), len(self._samples.get(scorer, ()))
            if found < said:
                raise broken_off(place, f"counts {said:,} samples that {scorer[:100]} graded, and {found:,} are in it")
            accuracy = number(nested(one, "metrics", "accuracy", "value"))
            values = self._values.get(scorer, Counter())
            if accuracy is None or found != values.total() or found != self._count or not set(values) <= _PLAIN:
                continue  # of epochs, and of values that a metric reads in its own way, it is another figure
            if accuracy < (made := values["C"] / found) - _ROUNDED:
                raise broken_off(place, f"reports an accuracy of {accuracy:g}, and the samples in it make {made:g}")


def _tool(head: dict[str, JsonValue]) -> str:
    version = words(nested(head, "eval", "packages", "inspect_ai"))[:40]
    return f"Inspect {version}".rstrip()


def _row(sample: dict[str, JsonValue], head: dict[str, JsonValue], place: RowPlace) -> ResultRow:
    scores = _scores(sample.get("scores"))
    if not sample.get("error"):
        scores = (*scores, *_not_given(sample.get("scores"), head))
    error = words(nested(sample, "error", "message"))
    ended = _ended(sample.get("error"), scores)
    limit = words(nested(sample, "limit", "type"))
    given = sample.get("input")
    content = fingerprint([given, sample.get("target")])
    question = given if isinstance(given, str) else "\n\n".join(_message(one) for one in members(given))
    target = sample.get("target")
    epoch, suite = sample.get("epoch"), _suite(head)
    model = words(nested(head, "eval", "model"))[:200]
    return ResultRow(
        suite=suite,
        id=name_of(sample.get("id"), place, "id"),
        status=ended.status,
        place=place,
        scores=scores,
        question=words(question),
        expectation=(words(target),) if target not in (None, "", []) else (),
        answer=words(nested(sample, "output", "completion")) or None,
        error=error or (f"stopped by its {limit} limit" if limit else ended.error),
        blame=ended.blame,
        duration_ms=seconds(sample.get("total_time")),
        cost_usd=None,
        usage=_usage(sample.get("model_usage")),
        calls=tuple(_calls(sample.get("messages"))),
        content=content,
        repeat=f"{content} {model}" if isinstance(epoch, int) else None,
        run=words(nested(head, "eval", "run_id")) or None,
        trial=f"epoch {epoch} of {model}" if isinstance(epoch, int) else None,
        longer_suites=(f"{suite}, {model}",) if model else (),
        named_by="task and sample id",
    )


def _suite(head: dict[str, JsonValue]) -> str:
    task, given = words(nested(head, "eval", "task")) or "inspect", nested(head, "eval", "task_args_passed")
    return f"{task[:200]} {words(given)[:200]}" if given else task[:200]


def _ended(error: JsonValue, scores: tuple[RowScore, ...]) -> Ending:
    """How the sample ended. An error is the agent's, but where the way that it came goes through a scorer."""
    if error:
        said = words(nested(error, "message"))
        if _went_through_scorer(words(nested(error, "traceback"))):
            return Ending(Status.ERROR, Blame.OURS, said)
        return ending(Status.ERROR, scores, said)
    if not scores:
        return Ending(Status.ERROR, Blame.OURS, "nothing was scored")
    return ending(None, scores, _why(scores))


def _went_through_scorer(traceback: str) -> bool:
    if _SCORED.search(traceback):
        return True
    return _SOLVED.search(traceback) is None and _SCORE.search(traceback) is not None


def _scores(given: JsonValue) -> tuple[RowScore, ...]:
    found = given.items() if isinstance(given, dict) else ()
    return tuple(score for name, one in found for score in _scores_of(name[:200], one))


def _not_given(given: JsonValue, head: dict[str, JsonValue]) -> Iterator[RowScore]:
    """The scorers that graded samples of this log, and not this one."""
    there = given if isinstance(given, dict) else {}
    for one in members(nested(head, "results", "scores")):
        scorer = words(nested(one, "scorer"))[:200]
        if scorer not in there and whole_number(nested(one, "scored_samples")):
            yield RowScore(scorer, None, None, "it graded other samples, and not this one", broke=True)


def _scores_of(name: str, one: JsonValue) -> Iterator[RowScore]:
    value, reason = nested(one, "value"), words(nested(one, "explanation")) or None
    broke = nested(one, "reason") == _GRADER_FAILED
    if value in ({}, []):
        yield RowScore(name, None, None, reason or "its value is empty", broke=True)
    elif isinstance(value, dict):
        yield from (_score(f"{name}.{key[:200]}", inner, reason, broke=broke) for key, inner in value.items())
    elif isinstance(value, list):
        yield from (_score(f"{name}.{at}", inner, reason, broke=broke) for at, inner in enumerate(value))
    else:
        yield _score(name, value, reason, broke=broke)


def _score(name: str, value: JsonValue, reason: str | None, *, broke: bool) -> RowScore:
    if broke:
        return RowScore(name, None, None, reason, broke=True)
    if isinstance(value, bool):
        return RowScore(name, float(value), value, reason)
    if isinstance(value, str):
        word = value if value in _VALUES else value.lower()
        return RowScore(name, _VALUES.get(word, _number_in(value)), _VERDICTS.get(word), reason)
    return RowScore(name, number(value), None, reason, broke=value is None)  # not-a-number: it was not scored


def _number_in(text: str) -> float | None:
    try:
        return number(float(text))
    except ValueError:
        return None


def _why(scores: tuple[RowScore, ...]) -> str | None:
    missed = [f"{one.name}: {one.reason or one.value}" for one in scores if one.passed is not True]
    return "; ".join(missed) or None


def _message(one: JsonValue) -> str:
    content = nested(one, "content")
    parts = [content] if isinstance(content, str) else [nested(piece, "text") or piece for piece in members(content)]
    return f"{words(nested(one, 'role'))}: {' '.join(words(piece) for piece in parts)}"


def _calls(messages: JsonValue) -> Iterator[ToolCall]:
    results = {words(nested(one, "tool_call_id")): one for one in members(messages) if nested(one, "role") == "tool"}
    for message in members(messages):
        for call in members(nested(message, "tool_calls")):
            answer, given = results.get(words(nested(call, "id"))), nested(call, "arguments")
            yield ToolCall(
                name=words(nested(call, "function"))[:1_000],
                params=given if isinstance(given, dict) else {},
                result=nested(answer, "content"),
                success=None if answer is None else nested(answer, "error") is None,
            )


def _usage(given: JsonValue) -> Usage | None:
    sides = list(given.values()) if isinstance(given, dict) else []
    counted = [sum(int(number(nested(one, name)) or 0) for one in sides) for name in ("input_tokens", "output_tokens")]
    return usage(counted[0], counted[1]) if sides else None
