"""Derive what a draft case expects: what was the same in all executions of its question.

What differed, and values of the moment such as time stamps and ids, are left out and named in a remark.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from enum import Enum
from itertools import islice, pairwise
from typing import Final

from eval_gate.drafts.observation import Observation
from eval_gate.drafts.refusal import REFUSAL
from eval_gate.drafts.response_facts import (
    Clock,
    ResponseFact,
    SharedFacts,
    Wording,
    find_shared_facts,
    is_safe_text,
    iter_leaf_texts,
)
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Response
from eval_gate.model.limits import DRAFT_FACTS
from eval_gate.model.specs.evaluator import ParamCheck
from eval_gate.struct import FrozenStruct, field, replace
from eval_gate.text.dotted_path import FIELD_PATTERN
from eval_gate.text.escape import format_first_few, to_one_line
from eval_gate.text.javascript.strings import dump_compact_json
from eval_gate.text.json_values import are_json_equal, find_at, iter_leaves

_COUNTS: Final = frozenset({"usage", "costUsd", "cost_usd", "tokenUsage", "token_usage"})
"""Keys under which targets report what a response used."""
_RAW_JSON: Final = '{"'
_EXPECTED_CALLS: Final = 50
"""Calls of one response that are expected one by one."""
_MAX_ACCEPTABLE: Final = 2
"""Largest number of acceptable sets of tools; with more, nothing is expected of the tools."""
_MAX_VALUE: Final = 300
"""Characters of an argument that is expected as it is."""
_MIN_LENGTH: Final = 40
"""Shortest response, in characters, that gets a minimum length, so that half of it fails."""
_MAX_LENGTH_RATIO: Final = 1.6
_LENGTH_SHARE: Final = 0.6
_MAX_LISTED: Final = 6
"""Things of one kind that a remark names."""
_MAX_SHOWN: Final = 40
_MAX_FACTS_SHOWN: Final = 3


class ToolMode(Enum):
    """How the tools of a case are expected."""

    IN_ORDER = "in order"
    """The same tools in the same order in all executions."""
    ANY_ORDER = "any order"
    ACCEPTABLE = "acceptable"
    """One of several sets of tools."""
    UNKNOWN = "unknown"
    """Nothing is expected of the tools."""


class DraftExpectation(FrozenStruct):
    """What a draft case expects of a response."""

    tool_mode: ToolMode = ToolMode.UNKNOWN
    tools: tuple[str, ...] = ()
    """Names of the called tools; empty if no tool is called."""
    tool_sets: tuple[tuple[str, ...], ...] = ()
    call_args: tuple[dict[str, JsonValue], ...] = field(default_factory=tuple)
    """The stable arguments of each call, in the order of `tools`; only for tools in order."""
    params: tuple[ParamCheck, ...] = ()
    """Checks of the first call of each tool."""
    fields: tuple[tuple[str, JsonValue], ...] = ()
    """Path and value of fields of the agent's JSON."""
    no_tool_errors: bool = False
    non_empty: bool = False
    contains: tuple[str, ...] = ()
    contains_any: tuple[tuple[str, ...], ...] = ()
    numbers: tuple[str, ...] = ()
    """Numbers, dates and codes, which a response may write in another way."""
    patterns: tuple[str, ...] = ()
    """ECMAScript patterns that find words, or a minimum length."""
    not_contains: tuple[str, ...] = ()
    facts: tuple[ResponseFact, ...] = ()
    """What `contains`, `numbers` and `patterns` were made of."""
    refusal: str | None = None
    """What an LLM judge has to find in the response; with it, nothing else is expected of the text."""
    remarks: tuple[str, ...] = ()
    """What was left out and why, in sentences."""

    @property
    def has_tools(self) -> bool:
        """Whether something is expected of the tools, such as that none is called."""
        return self.tool_mode is not ToolMode.UNKNOWN

    @property
    def checks_nothing(self) -> bool:
        """Whether a wrong response would pass too, because no tool, fact or refusal is expected."""
        has_call = self.has_tools and bool(self.tools or self.tool_sets)
        return not (has_call or self.facts or self.contains_any or self.refusal)

    @property
    def description(self) -> str:
        """The description of the case: what it expects in short, and what was left out."""
        return ". ".join((self._summary, *self.remarks))

    @property
    def _summary(self) -> str:
        match self.tool_mode:
            case ToolMode.UNKNOWN:
                tools = ""
            case ToolMode.ACCEPTABLE:
                tools = f"calls {' or '.join(_format_tools(one) for one in self.tool_sets)}"
            case _:
                tools = f"calls {_format_tools(self.tools)}"
        texts = [to_one_line(fact.text, _MAX_SHOWN) for fact in self.facts]
        if self.contains_any and not texts:
            texts = [f"one of {format_first_few(self.contains_any[0], _MAX_LISTED)}"]
        facts = f"answers with {format_first_few(texts, _MAX_FACTS_SHOWN)}" if texts else ""
        return ", ".join(filter(None, (tools, "refuses" if self.refusal else facts)))


def derive_expectation(
    observation: Observation, moment: datetime | None = None, wording: Wording | None = None
) -> DraftExpectation:
    """Derive what all responses have in common, at this `moment`; `wording` are the words of other answers."""
    responses = observation.responses
    if not responses:
        return DraftExpectation()
    clock = Clock.from_prompt(observation.question, len(responses), moment)
    refusal = REFUSAL if any(observation.refusals) else None
    shared = SharedFacts() if refusal else find_shared_facts(observation.question, responses, moment, wording)
    tools = _derive_tools(responses)
    params = _ParamDerivation(observation.question, clock)
    checks = tuple(params.iter_checks(responses)) if tools.has_tools else ()
    args = params.list_call_args(responses) if tools.tool_mode is ToolMode.IN_ORDER else ()
    calls = [call for response in responses for call in response.tool_calls]
    texts = [response.text for response in responses]
    patterns = [fact.pattern for fact in shared.facts if fact.pattern]
    if not refusal:
        patterns += _iter_length_patterns(shared.facts, texts)
    differing = [*tools.remarks, *params.differing]
    if shared.differing:
        differing.append(f"in the response: {_format_names(shared.differing)}")
    return replace(
        tools,
        call_args=args,
        params=checks,
        fields=tuple(islice(params.iter_fields(responses), DRAFT_FACTS)),
        no_tool_errors=tools.has_tools and bool(calls) and all(call.success is True for call in calls),
        non_empty=all(text.replace("\ufeff", "").strip() for text in texts),  # which patterns take for a blank
        contains=tuple(fact.text for fact in shared.facts if not fact.pattern and not fact.is_number),
        contains_any=shared.word_groups,
        numbers=tuple(fact.text for fact in shared.facts if fact.is_number),
        patterns=tuple(patterns),
        not_contains=(_RAW_JSON,) if calls and not any(_RAW_JSON in text for text in texts) else (),
        facts=shared.facts,
        refusal=refusal,
        remarks=tuple(_iter_remarks(observation, differing, params.volatile, shared, asks_about_now=clock.is_relative)),
    )


def _derive_tools(responses: Sequence[Response]) -> DraftExpectation:
    """Derive the expectation of the tools; `remarks` names what differed."""
    if any(response.tool_calls_known is not True and not response.tool_calls for response in responses):
        return DraftExpectation()
    sequences = [tuple(call.name for call in response.tool_calls) for response in responses]
    names = {name for one in sequences for name in one}
    if not all(name and is_safe_text(name) for name in names) or max(map(len, sequences)) > _EXPECTED_CALLS:
        return DraftExpectation()
    if len(set(sequences)) == 1:
        return DraftExpectation(tool_mode=ToolMode.IN_ORDER, tools=sequences[0])
    if all(Counter(one) == Counter(sequences[0]) for one in sequences):
        return DraftExpectation(
            tool_mode=ToolMode.ANY_ORDER, tools=tuple(sorted(sequences[0])), remarks=("the order of the tools",)
        )
    sets = list(dict.fromkeys(tuple(dict.fromkeys(one)) for one in sequences))
    sets = list({frozenset(one): one for one in reversed(sets)}.values())[::-1]
    if len(sets) == 1:
        return DraftExpectation(
            tool_mode=ToolMode.ACCEPTABLE, tool_sets=tuple(sets), remarks=("how often tools were called",)
        )
    remark = f"the tools: {' or '.join(_format_tools(one) for one in sets[:_MAX_LISTED])}"
    if len(sets) > _MAX_ACCEPTABLE or not _are_nested(sets):
        return DraftExpectation(remarks=(remark,))
    return DraftExpectation(tool_mode=ToolMode.ACCEPTABLE, tool_sets=tuple(sets), remarks=(remark,))


def _are_nested(sets: Sequence[Sequence[str]]) -> bool:
    """Whether each set but the largest is a part of the next larger one, and none is empty."""
    by_size = sorted(map(set, sets), key=len)
    return all(by_size) and all(small <= large for small, large in pairwise(by_size))


class _ParamDerivation:
    """Derives checks of arguments, and collects what differed and what is volatile."""

    def __init__(self, question: str, clock: Clock) -> None:
        self._question = question
        self._clock = clock
        self.differing: list[str] = []
        self.volatile: list[str] = []

    def iter_checks(self, responses: Sequence[Response]) -> Iterator[ParamCheck]:
        """Yield the checks of the first call of each tool that every response called."""
        for tool in dict.fromkeys(call.name for call in responses[0].tool_calls):
            calls = [next((one for one in response.tool_calls if one.name == tool), None) for response in responses]
            present = [call.params for call in calls if call is not None]
            if len(present) < len(responses):
                continue
            for name in dict.fromkeys(key for params in present for key in params):
                if name and is_safe_text(name):
                    yield from self._iter_param_checks(tool, name, present)

    def _iter_param_checks(self, tool: str, name: str, present: Sequence[dict[str, JsonValue]]) -> Iterator[ParamCheck]:
        label = f"{to_one_line(name, _MAX_SHOWN)} of {to_one_line(tool, _MAX_SHOWN)}"
        if not all(name in params for params in present):
            self.differing.append(f"whether {label} is sent")
            return
        values = [params[name] for params in present]
        if not self._are_same(values):
            self.differing.append(f"the value of {label}")
        elif self._is_lasting(values[0]):
            yield ParamCheck(tool=tool, param_name=name, assertion="equals", value=values[0])
            return
        elif _is_expectable(values[0]):
            self.volatile.append(label)
        yield ParamCheck(tool=tool, param_name=name, assertion="exists")

    def iter_fields(self, responses: Sequence[Response]) -> Iterator[tuple[str, JsonValue]]:
        """Yield the fields of the agent's JSON, outside of lists, that are lasting and the same in several responses.

        The text of the response, its model and what it used are left out: they have expectations of their own.
        """
        bodies = [response.body for response in responses]
        if len(bodies) == 1 or not all(isinstance(body, dict) for body in bodies):
            return
        for steps, value in iter_leaves(bodies[0]):
            path = ".".join(map(str, steps))
            if path.split(".") != [*steps] or not re.fullmatch(FIELD_PATTERN, path) or not is_safe_text(path):
                continue  # within a list, or a key that no path can name
            is_read = steps[0] in _COUNTS or any(value in (one.text, one.model) for one in responses)
            is_same = value is not None and self._are_same([find_at(body, steps) for body in bodies])
            if is_same and not is_read and self._is_lasting(value):
                yield path, value

    def list_call_args(self, responses: Sequence[Response]) -> tuple[dict[str, JsonValue], ...]:
        """List the arguments of each call that are lasting and the same in all responses, which call the same tools."""
        call_args: list[dict[str, JsonValue]] = []
        for calls in zip(*(response.tool_calls for response in responses), strict=True):
            first, *other_calls = calls
            call_args.append(
                {
                    name: value
                    for name, value in first.params.items()
                    if name
                    and is_safe_text(name)
                    and self._is_lasting(value)
                    and all(name in call.params and are_json_equal(value, call.params[name]) for call in other_calls)
                }
            )
        return tuple(call_args)

    def _are_same(self, values: Sequence[JsonValue]) -> bool:
        """Whether all values are equal, and written as the same JSON: some formats compare the text."""
        return all(are_json_equal(values[0], one) for one in values) and (
            len({dump_compact_json(one) for one in values}) == 1
        )

    def _is_lasting(self, value: JsonValue) -> bool:
        """Whether a later execution may be expected to send this value."""
        return _is_expectable(value) and not any(
            text not in self._question and self._clock.is_volatile(text) for text in iter_leaf_texts(value)
        )


def _is_expectable(value: JsonValue) -> bool:
    """Whether a value can be written as an expectation: it is short, and nothing in it is masked, hidden or a token."""
    text = dump_compact_json(value)
    parts = (part for path, leaf in iter_leaves(value) for part in (*path, leaf) if isinstance(part, str))
    return len(text) <= _MAX_VALUE and all(map(is_safe_text, (text, *parts)))


def _iter_length_patterns(facts: Iterable[ResponseFact], texts: Sequence[str]) -> Iterator[str]:
    """Yield a pattern for a minimum length, if no fact distinguishes half of a response from all of it."""
    lengths = [len(text.strip()) for text in texts]
    least = min(lengths)
    in_second_half = any(fact.place >= 0.5 for fact in facts)
    if least >= _MIN_LENGTH and max(lengths) <= least * _MAX_LENGTH_RATIO and not in_second_half:
        yield rf"[\s\S]{{{int(least * _LENGTH_SHARE)}}}"


def _iter_remarks(
    observation: Observation,
    differing: Sequence[str],
    volatile: Sequence[str],
    shared: SharedFacts,
    *,
    asks_about_now: bool,
) -> Iterator[str]:
    count = len(observation.responses)
    failed = dict.fromkeys(
        call.name for response in observation.responses for call in response.tool_calls if call.success is False
    )
    if failed:
        yield f"A call failed: {_format_tools(tuple(failed))}"
    if differing:
        yield f"Left out, because it differed between {count} executions: {'; '.join(differing)}"
    if volatile:
        yield f"Only sent, because the value looks like one of this moment: {format_first_few(volatile, _MAX_LISTED)}"
    if shared.omitted_count:
        yield f"{shared.omitted_count} more numbers and names of the response are not expected"
    if observation.errors:
        yield f"{len(observation.errors)} of {count + len(observation.errors)} executions had no response"
    if shared.of_now:
        yield f"Left out as values of this moment: {format_first_few(shared.of_now, _MAX_LISTED)}"
    numbers = [fact.text for fact in shared.facts if fact.is_number]
    if asks_about_now and numbers:
        yield f"The question depends on the day, so these may differ later: {format_first_few(numbers, _MAX_LISTED)}"


def _format_tools(names: Sequence[str]) -> str:
    return _format_names(names) if names else "no tool"


def _format_names(names: Sequence[str]) -> str:
    return format_first_few([to_one_line(name, _MAX_SHOWN) for name in names], _MAX_LISTED)
