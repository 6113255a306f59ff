"""Wording for a model call that is not in the recording: what differs from the nearest recorded request."""

from __future__ import annotations

import json
import os.path
from collections.abc import Mapping
from itertools import islice
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.model_calls.recording_file import CallRecording, ModelCall
from eval_gate.text.escape import format_count, to_one_line, truncate_text
from eval_gate.text.json_values import ValuePath, iter_leaves
from eval_gate.text.redaction import Redactor
from eval_gate.text.sources.validation_errors import format_field_path

MAX_COMPARED: Final = 300
"""Recorded requests that are compared with one that is missing."""
_MAX_PATH: Final = 100
_MAX_VALUE: Final = 80
_CONTEXT: Final = 20
"""Characters before the first difference of two texts that are shown."""


def describe_miss(call: ModelCall, recording: CallRecording, redact: Redactor) -> str:
    """Describe as half a sentence why the recording has no answer, without keys."""
    what = f"`{to_one_line(call.method, 10)} {to_one_line(redact(call.path), _MAX_PATH)}`"
    if recorded := recording.list_calls(call.key):
        return f"{what} came more often in one execution than it is recorded ({format_count(len(recorded), 'time')})"
    what += " is not in the recording"
    same_path = (one for one in recording if (one.method, one.path) == (call.method, call.path))
    mine = dict(iter_leaves(call.mask_body(redact)))
    candidates = [dict(iter_leaves(one.request)) for one in islice(same_path, MAX_COMPARED)]
    if not candidates:
        return f"{what}, and no other request to this path is"
    nearest = min(candidates, key=lambda theirs: len(_list_differences(theirs, mine)))
    differences = _list_differences(nearest, mine)
    if not differences:
        return f"{what}: it differs from the nearest request only in masked text"
    first, rest = differences[0], len(differences) - 1
    texts = [_format_value(side.get(first, "")) for side in (nearest, mine)]
    begin = max(len(os.path.commonprefix(texts)) - _CONTEXT, 0)  # noqa: RUF071 (of texts, not of paths)
    old, new = (
        f"`{'…' if begin else ''}{truncate_text(text[begin:], _MAX_VALUE)}`" if text else "nothing" for text in texts
    )
    more = f", and {format_count(rest, 'more difference')}" if rest else ""
    place = to_one_line(format_field_path(first).replace("`", "'"), _MAX_PATH) or "body"
    return f"{what}: `{place}` differs (recorded {old}, now {new}){more}"


def _list_differences(
    recorded: Mapping[ValuePath, JsonValue], current: Mapping[ValuePath, JsonValue]
) -> list[ValuePath]:
    """List the places of different values: in the order of the request, then those that only the recorded one has."""
    no_value = object()
    return [path for path in {**current, **recorded} if current.get(path, no_value) != recorded.get(path, no_value)]


def _format_value(value: JsonValue) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return to_one_line(text.replace("`", "'"), 3 * len(text))
