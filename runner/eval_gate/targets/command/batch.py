"""Many cases in one call: the file that says which, and the answers, a line of JSON each, in any order."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Response
from eval_gate.model.limits import DOCUMENT_VALUES
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.command.call import CommandCall
from eval_gate.targets.command.envelope import parse_object, read_record
from eval_gate.text.escape import first_few
from eval_gate.text.foreign.json import ForeignJsonError, refuse_too_much
from eval_gate.text.foreign.quote import quote


def batch_input(calls: Iterable[CommandCall]) -> bytes:
    """The cases as JSONL: id, prompt, guidelines and files of each."""
    lines: list[dict[str, JsonValue]] = [
        {"id": call.eval_id, "prompt": call.prompt, "guidelines": call.guidelines, "files": [*call.files]}
        for call in calls
    ]
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode()


def read_batch(content: str, wanted: Collection[str]) -> dict[str, Response]:
    """The answers by id; ids that nobody asked for are left out.

    Raises TargetError for the whole batch: for a line that is no record, an id that comes twice, one that is missing.
    Who writes one wrong line may have mixed up the others.
    """
    try:
        refuse_too_much(content.encode("utf-8", "replace"), DOCUMENT_VALUES)
    except ForeignJsonError as error:
        raise _broken(f"it {error}") from error
    found: dict[str, Response] = {}
    for number, line in enumerate(content.removeprefix("\ufeff").split("\n"), 1):
        if not line.strip():
            continue
        record = parse_object(line)
        if record is None:
            raise _broken(f"line {number} is no JSON object: it begins {_quoted(line)}")
        case_id = record.get("id")
        if not isinstance(case_id, str) or not case_id:
            raise _broken(f"line {number} has no id")
        if case_id in found:
            raise _broken(f"line {number} answers {_quoted(case_id)} a second time")
        found[case_id] = read_record(record)
    missing = [case_id for case_id in wanted if case_id not in found]
    if missing:
        raise _broken(f"no answer for {first_few(missing, 3, _quoted)}")
    return {case_id: found[case_id] for case_id in wanted}


def _quoted(text: str) -> str:
    return quote(text.encode("utf-8", "replace"))


def _broken(what: str) -> TargetError:
    return TargetError(f"the batch's output cannot be used: {what}", fault=TargetFault.MALFORMED)
