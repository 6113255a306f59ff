"""Review of drafts: selects and renders them with their responses, and accepts or drops them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from eval_gate.drafts.case_edit import CaseFile, RawCase
from eval_gate.drafts.stored_responses import StoredResponses
from eval_gate.drafts.turn_joining import list_questions, split_turns
from eval_gate.drafts.update import UNSCORED, list_failures
from eval_gate.errors import GateError, Problem, format_suggestion
from eval_gate.evaluators.base import EvaluatorError
from eval_gate.evaluators.expectation import describe_expectation
from eval_gate.model.base import JsonValue
from eval_gate.model.case import CaseKey, EvalCase
from eval_gate.model.conversation import Message, Response, ToolCall
from eval_gate.text import globs
from eval_gate.text.escape import format_count, to_console_line
from eval_gate.text.javascript.regex import PatternMatcher, PatternWorkerError
from eval_gate.text.javascript.strings import dump_compact_json
from eval_gate.text.tokens import TokenData

ALL: Final = "all"
"""The name that stands for every draft, unless a case has this id."""
_REMARK_KEYS: Final = ("note", "notes", "comment", "$comment")
_MAX_RESPONSES: Final = 4
"""Different responses of a draft that are shown."""
_MAX_CALLS: Final = 5
_MAX_CALL: Final = 300
_MAX_LINES: Final = 10
_MAX_TEXT: Final = 1_500
"""Characters and lines of a response that are shown."""


def list_drafts(file: CaseFile) -> tuple[EvalCase, ...]:
    """List the drafts of a file, in its order."""
    return tuple(case for case in file.suite.cases if case.draft)


def select_drafts(files: Iterable[CaseFile], names: Sequence[str]) -> frozenset[CaseKey]:
    """Find drafts by id or glob, or all. Raises GateError `draft-not-found` with every name that is no draft."""
    cases = [case for file in files for case in file.suite.cases]
    drafts = [case for case in cases if case.draft]
    keys: set[CaseKey] = set()
    problems: list[Problem] = []
    for name in dict.fromkeys(names):
        exact = [case for case in cases if case.id == name]
        if exact or name != ALL:
            matching = exact or [case for case in drafts if globs.matches_glob(name, case.id)]
        else:
            matching = drafts
        keys.update(case.key for case in matching if case.draft)
        if not any(case.draft for case in matching):
            near = "" if exact else format_suggestion(name, [case.id for case in drafts])
            why = "is not a draft" if exact else f"there is no such draft{near}"
            problems.append(Problem(f"{to_console_line(name, 200)}: {why}"))
    if problems:
        raise GateError(
            "draft-not-found",
            "nothing was changed: some of the named cases are no drafts",
            "list the drafts with `eval-gate draft --review FILE`",
            problems=problems,
        )
    return frozenset(keys)


def decide_drafts(file: CaseFile, *, accepted: Collection[str] = (), dropped: Collection[str] = ()) -> CaseFile:
    """Return the file with accepted drafts unmarked and dropped ones removed, unwritten. Raises GateError."""
    marked = {case.id: case for case in list_drafts(file)}
    raw = file.find_raw_cases(marked[name] for name in accepted if name in marked)
    changes: dict[str, RawCase | None] = {
        name: {key: value for key, value in one.items() if key != "draft"} for name, one in raw.items()
    }
    changes |= dict.fromkeys((name for name in dropped if name in marked), None)
    return file.replace_cases(changes) if changes else file


def render_draft(file: CaseFile, case: EvalCase, stored: StoredResponses | None = None) -> Iterator[str]:
    """Render a draft for people: its id, remarks, messages, responses and expectations."""
    yield f"{to_console_line(case.id, 200)}  ({to_console_line(case.location.file, 200)}:{case.location.line})"
    if case.description:
        yield f"  {to_console_line(case.description)}"
    raw = file.find_raw_case(case)
    for key in _REMARK_KEYS:
        if isinstance(remark := raw.get(key), str):
            yield f"  {to_console_line(remark)}"
    yield from (f"  {_render_message(message)}" for message in case.messages)
    if case.conversation is not None:
        responses = stored.turns if stored is not None else ()
        for number, question in enumerate(list_questions(case), 1):
            yield f"  turn {number}, {_render_message(Message(role='user', content=question))}"
            if stored is not None and number <= len(responses) and responses[number - 1]:
                yield from _render_responses(responses[number - 1], stored)
    elif stored is not None:
        yield from _render_responses(stored.responses, stored)
    expectation = describe_expectation(case, TokenData())
    yield from (f"  → {to_console_line(line)}" for line in expectation.lines)
    if expectation.is_truncated:
        yield "  → and more: see the file"


def _render_message(message: Message) -> str:
    content = message.content if isinstance(message.content, str) else "a message of several parts"
    return to_console_line(f"{message.role}: {content}", 500)


def _render_responses(responses: Sequence[Response], stored: StoredResponses) -> Iterator[str]:
    different = {_identify_response(response): response for response in responses}
    counts = Counter(map(_identify_response, responses))
    executions = format_count(len(responses) + stored.error_count, "execution")
    for key, count in counts.most_common(_MAX_RESPONSES):
        yield f"  response, {count} of {executions}:"
        yield from (f"    {line}" for line in _render_response(different[key]))
    if (more := len(counts) - _MAX_RESPONSES) > 0:
        yield f"  and {format_count(more, 'more different response')}"
    if stored.error_count:
        yield f"  no response, {stored.error_count} of {executions}"


def _identify_response(response: Response) -> tuple[str, str]:
    calls: list[JsonValue] = [[call.name, call.params, call.success] for call in response.tool_calls]
    return response.text, dump_compact_json(calls)


def _render_response(response: Response) -> Iterator[str]:
    yield from (f"calls {_render_call(call)}" for call in response.tool_calls[:_MAX_CALLS])
    if (more := len(response.tool_calls) - _MAX_CALLS) > 0:
        yield f"and {format_count(more, 'more call')}"
    lines = [line for line in response.text[:_MAX_TEXT].splitlines() if line.strip()]
    first_lines = [to_console_line(line) for line in lines[:_MAX_LINES]]
    yield from first_lines or ["(an empty response)"]
    if len(lines) > _MAX_LINES or len(response.text) > _MAX_TEXT:
        yield f"… ({len(response.text):,} characters in all)"


def _render_call(call: ToolCall) -> str:
    failed = " (failed)" if call.success is False else ""
    return to_console_line(f"{call.name} {dump_compact_json(call.params)}", _MAX_CALL) + failed


async def describe_stored_check(case: EvalCase, stored: StoredResponses, tokens: TokenData) -> str:
    """Describe whether the stored responses pass a case, such as after an edit. LLM judges and programs do not run."""
    specs = [spec for turn in split_turns(case) for spec in turn.evaluators]
    left_out = sum(isinstance(spec, UNSCORED) for spec in specs)
    if left_out == len(specs):
        return "nothing in the case can be checked with the stored responses"
    responses = stored.turns or (stored.responses,)
    count = sum(map(len, responses))
    matcher = PatternMatcher()
    try:
        failures = await list_failures(case, responses, tokens, matcher)
    except (EvaluatorError, PatternWorkerError) as error:
        return f"the stored responses cannot be checked: {to_console_line(str(error), 500)}"
    finally:
        await matcher.aclose()
    summary = f"{count - len(failures)} of {count} stored responses pass"
    unchecked = f" ({left_out} not checked: an LLM judge or a program decides)" if left_out else ""
    return f"{summary}{unchecked}{f': {to_console_line(failures[0], 500)}' if failures else ''}"
