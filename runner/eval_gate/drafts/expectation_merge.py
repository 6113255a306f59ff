"""Merge the expectations of a case with the current responses: failing parts are replaced, passing ones stay.

A part of an expectation is the smallest thing that can fail by itself: one text, one pattern, one parameter.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from eval_gate.drafts.case_writers import build_assertions, build_expect
from eval_gate.drafts.expectations import DraftExpectation
from eval_gate.drafts.response_facts import ResponseFact
from eval_gate.model.base import JsonValue
from eval_gate.text.json_values import iter_texts
from eval_gate.text.number_search import has_number, parse_number
from eval_gate.text.tokens import find_tokens

Part: TypeAlias = Mapping[str, JsonValue]
PartCheck: TypeAlias = Callable[[Part], Awaitable[bool]]
"""Whether a part of an expectation, written as in its format, fails for at least one of the responses."""
_TextParts: TypeAlias = tuple[Sequence[str], Sequence[tuple[str, ...]], Sequence[str], Sequence[str]]
"""Expectations of the text: texts, groups that need one match each, numbers, and patterns."""
_ROUTING: Final = ("toolsCalled", "toolsCalledAnyOrder", "toolsAcceptable")
_TEXT_KEYS: Final = ("responseContains", "responseContainsAny", "responseContainsNumber", "responseMatches")
_LITERALS: Final = ("contains", "contains-all")
_GROUP: Final = "contains-any"
_NUMBER: Final = "contains-number"
_PATTERN: Final = "regex"
_TEXT_TYPES: Final = frozenset(
    {
        *(*_LITERALS, _GROUP, _NUMBER, _PATTERN),
        *("icontains", "icontains-any", "icontains-all", "starts-with", "ends-with", "equals"),
    }
)
_TOOL_TYPES: Final = frozenset({"tool-trajectory", "tool_trajectory"})
_CALL_COUNT: Final = frozenset({"type", "max_tool_calls"})
"""The keys of a limit on the number of tool calls."""
_COUNTING_FIELDS: Final = ("name", "weight", "required", "min_score")
"""Fields of an assertion that weigh it. They expect nothing."""


class ExpectationMerger:
    """Merges old expectations with the current ones, derived from responses that called `called_tools`."""

    def __init__(self, current: DraftExpectation, called_tools: Collection[str], fails: PartCheck) -> None:
        self._current = current
        self._called = called_tools
        self._fails = fails

    async def merge_expect(self, old: Part) -> dict[str, JsonValue]:
        """Merge the `expect` of a tool-forge case. What cannot be found in responses stays as it is."""
        derived = build_expect(self._current)
        routing = next((key for key in _ROUTING if key in old), None)
        new = dict(old)
        tools_changed = False
        if routing is not None and self._current.has_tools:
            tools_changed = await self._fails({routing: old[routing]})
            new = _replace_routing(new, routing, derived) if tools_changed else new
        if "toolParams" in old:
            new["toolParams"] = await self._merge_params(old, derived, tools_changed=tools_changed)
        for key in ("toolsNotCalled", "responseNotContains"):
            if failing := await self._list_failing(old, key):
                new[key] = [one for one in _get_list(old, key) if one not in failing]
        if isinstance(fields := old.get("fields"), dict):
            current = [one for one in self._current.fields if one[0] in fields]
            new["fields"] = fields | {
                path: value for path, value in current if await self._fails({"fields": {path: fields[path]}})
            }
        await self._merge_expected_texts(old, new)
        return {key: value for key, value in new.items() if value != [] or old.get(key) == [] or key in _ROUTING}

    async def _list_failing(self, old: Part, key: str) -> list[JsonValue]:
        """List the failing elements of a list. Those with tokens, which only people write, count as passing."""
        parts = (one for one in _get_list(old, key) if not any(map(find_tokens, iter_texts(one))))
        return [one for one in parts if await self._fails({key: [one]})]

    async def _merge_params(self, old: Part, derived: Part, *, tools_changed: bool) -> list[JsonValue]:
        """Merge the checks of parameters. If the tools changed, drop checks of tools that are no longer called."""
        fresh = [one for one in _get_list(derived, "toolParams") if isinstance(one, dict)]
        by_param = {(one["tool"], one["paramName"]): one for one in fresh}
        failing, merged = await self._list_failing(old, "toolParams"), list[JsonValue]()
        old_tools = set[JsonValue]()
        for check in _get_list(old, "toolParams"):
            assert isinstance(check, dict)
            tool, name = check["tool"], check["paramName"]
            old_tools.add(str(tool))
            new = by_param.get((tool, name), check) if check in failing else check
            if not (tools_changed and tool not in self._called) and new not in merged:
                merged.append(new)
        return merged + [one for one in fresh if tools_changed and one["tool"] not in old_tools]

    async def _merge_expected_texts(self, old: Part, new: dict[str, JsonValue]) -> None:
        texts, groups, numbers, patterns = _TEXT_KEYS
        failing = {key: await self._list_failing(old, key) for key in _TEXT_KEYS}
        single = old.get("regexPattern")
        single_fails = single is not None and await self._fails({"regexPattern": single})
        if not any(failing.values()) and not single_fails:
            return
        passing = {key: [one for one in _get_list(old, key) if one not in values] for key, values in failing.items()}
        added = self._list_new_texts(
            [str(one) for one in (*passing[texts], *passing[numbers])],
            [*passing[groups]],
            [*passing[patterns], *([] if single is None or single_fails else [single])],
            with_groups=bool(failing[groups]),
            with_lengths=bool(failing[patterns]) or single_fails,
        )
        if not any(added) and not any(passing.values()):
            return  # nothing would be expected of the text any more
        for key, more in zip(_TEXT_KEYS, added, strict=True):
            if key in old or more:
                fresh: list[JsonValue] = [one if isinstance(one, str) else list(one) for one in more]
                new[key] = _merge_list(_get_list(old, key), failing[key], fresh)
        if single_fails:
            del new["regexPattern"]

    def _list_new_texts(
        self,
        literals: Sequence[str],
        groups: Sequence[JsonValue],
        patterns: Sequence[JsonValue],
        *,
        with_groups: bool,
        with_lengths: bool,
    ) -> _TextParts:
        """List the facts that passing expectations do not cover yet."""
        facts = [
            fact
            for fact in self._current.facts
            if not (fact.pattern and fact.pattern in patterns) and not any(_covers(one, fact) for one in literals)
        ]
        own = {fact.pattern for fact in self._current.facts}
        lengths = [one for one in self._current.patterns if with_lengths and one not in own and one not in patterns]
        return (
            [fact.text for fact in facts if not fact.pattern and not fact.is_number],
            [one for one in self._current.contains_any if with_groups and list(one) not in groups],
            [fact.text for fact in facts if fact.is_number],
            [fact.pattern for fact in facts if fact.pattern] + lengths,
        )

    async def merge_assertions(self, old: Sequence[JsonValue]) -> list[JsonValue]:
        """Merge the assertions of an AgentV case. What cannot be found in responses stays as it is."""
        failing: list[JsonValue] = [one for one in old if _is_mergeable(one) and await self._fails(_as_part(one))]
        tools = [one for one in failing if _is_about_tools(one)]
        texts = [one for one in failing if not _is_about_tools(one)]
        new = list(old)
        if tools and self._current.has_tools:
            passing = [one for one in new if one not in tools]
            derived = [one for one in build_assertions(self._current) if _is_about_tools(one)]
            new = _merge_list(new, tools, [one for one in _inherit(tools, derived) if one not in passing])
        negated = [one for one in texts if _as_part(one).get("negate")]
        new = [one for one in new if one not in negated]
        positive = [one for one in texts if one not in negated]
        return await self._merge_text_assertions(new, positive) if positive else new

    async def _merge_text_assertions(self, old: Sequence[JsonValue], failing: Sequence[JsonValue]) -> list[JsonValue]:
        """Merge assertions about the text. Of a list of texts, those that pass stay in it."""
        parts: dict[int, list[str]] = {id(one): await self._list_passing_texts(_as_part(one)) for one in failing}
        other_parts = [_as_part(one) for one in old if isinstance(one, dict) and one not in failing]
        literals = [text for one in other_parts for text in _list_texts(one) if one["type"] in {*_LITERALS, _NUMBER}]
        literals += [text for texts in parts.values() for text in texts]
        types = {_as_part(one)["type"] for one in failing}
        added = self._list_new_texts(
            literals,
            [one.get("value") for one in other_parts],
            [one.get("value") for one in other_parts],
            with_groups=_GROUP in types,
            with_lengths=_PATTERN in types,
        )
        if not any(added) and not any(parts.values()) and not any(one["type"] in _TEXT_TYPES for one in other_parts):
            return list(old)  # nothing would be expected of the text any more
        return list(self._iter_text_assertions(old, failing, parts, added))

    def _iter_text_assertions(
        self,
        old: Sequence[JsonValue],
        failing: Sequence[JsonValue],
        passing: Mapping[int, Sequence[JsonValue]],
        added: _TextParts,
    ) -> Iterator[JsonValue]:
        contains, groups, numbers, patterns = added
        first = next(one for one in old if one in failing)
        listed = next((one for one in failing if _as_part(one)["type"] == "contains-all"), None)
        for one in old:
            if one not in failing:
                yield one
                continue
            texts: list[JsonValue] = [*passing[id(one)], *(contains if one is listed else ())]
            if texts:
                yield {**_as_part(one), "value": texts}
            if one is first:
                if listed is None and contains:
                    is_one = len(contains) == 1
                    yield _build_assertion(*(("contains", contains[0]) if is_one else ("contains-all", [*contains])))
                yield from (_build_assertion(_GROUP, [*group]) for group in groups)
                yield from (_build_assertion(_NUMBER, number) for number in numbers)
                yield from (_build_assertion(_PATTERN, pattern) for pattern in patterns)

    async def _list_passing_texts(self, part: Part) -> list[str]:
        """List the texts of a failing list that pass by themselves."""
        if part["type"] != "contains-all":
            return []
        return [text for text in _list_texts(part) if not await self._fails({**part, "value": [text]})]


def _covers(literal: str, fact: ResponseFact) -> bool:
    """Whether a literal that passes expects a fact already; a number is never a part of another one."""
    if fact.is_number:
        return has_number(literal, fact.text)
    return fact.text in literal or (literal in fact.text and literal != "" and parse_number(literal) is None)


def _replace_routing(expect: Part, routing: str, derived: Part) -> dict[str, JsonValue]:
    """Replace the expectation of the tools, in its place; an order that the case leaves open stays open."""
    key = next(one for one in _ROUTING if one in derived)
    value = derived[key]
    if key == "toolsCalled" and routing != key:
        assert isinstance(value, list)
        names = [str(name) for name in value]
        value = list(names) if routing == "toolsCalledAnyOrder" else [list(dict.fromkeys(names)) or ["__none__"]]
        key = routing
    return {(key if name == routing else name): (value if name == routing else one) for name, one in expect.items()}


def _merge_list(old: Sequence[JsonValue], failing: Sequence[JsonValue], added: Sequence[JsonValue]) -> list[JsonValue]:
    """Return the list with the added elements in the place of the first failing one, and without the others."""
    places = [place for place, one in enumerate(old) if one in failing]
    first = places[0] if places else len(old)
    head, tail = old[:first], [one for one in old[first:] if one not in failing]
    return [*head, *added, *tail]


def _inherit(old: Sequence[JsonValue], new: Sequence[JsonValue]) -> list[JsonValue]:
    """Give the first new assertion the weight of the only old one."""
    if len(old) != 1 or not new:
        return list(new)
    old_fields = {key: value for key, value in _as_part(old[0]).items() if key in _COUNTING_FIELDS}
    return [{**_as_part(new[0]), **old_fields}, *new[1:]]


def _build_assertion(kind: str, value: JsonValue) -> JsonValue:
    return {"type": kind, "value": value}


def _get_list(part: Part, key: str) -> list[JsonValue]:
    listed = part.get(key)
    return listed if isinstance(listed, list) else []


def _as_part(value: JsonValue) -> dict[str, JsonValue]:
    assert isinstance(value, dict)
    return value


def _list_texts(part: Part) -> list[str]:
    value = part.get("value")
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]


def _is_about_tools(assertion: JsonValue) -> bool:
    part = _as_part(assertion)
    return part["type"] in _TOOL_TYPES or (
        part["type"] == "execution-metrics" and part.keys() - _COUNTING_FIELDS <= _CALL_COUNT
    )


def _is_mergeable(assertion: JsonValue) -> bool:
    """Whether an assertion is of a kind that can be found in responses."""
    if not isinstance(assertion, dict) or not isinstance(assertion.get("type"), str):
        return False
    return assertion["type"] in _TEXT_TYPES or _is_about_tools(assertion)
