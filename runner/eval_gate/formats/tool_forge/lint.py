"""Warnings about a valid tool-forge file, above all assertions that check nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, TypeAlias

from pydantic.alias_generators import to_camel

from eval_gate.errors import format_suggestion
from eval_gate.formats.document_reader import FileModel, Findings, Path, get_known_keys
from eval_gate.formats.tool_forge.file_model import (
    CaseInput,
    Envelope,
    Expect,
    ParamAssertion,
    ToolForgeCase,
    ToolForgeTurn,
    ToolForgeUser,
)
from eval_gate.model.case import Tier
from eval_gate.text.json_values import iter_leaves, iter_texts
from eval_gate.text.tokens import SOURCES, find_snapshot_tokens, find_tokens, find_unknown_tokens

UNSUPPORTED_ASSERTIONS = frozenset(
    {
        *("maxCost", "minToolCalls", "maxToolCalls", "jsonValid", "schemaData", "requiredKeys", "typeChecks"),
        *("minLength", "maxLength", "copOutPhrases", "requiresPreamble"),
    }
)
"""Keys of the shipped tool-forge runner that its contract does not know: recognised, so not called typos."""
_Part: TypeAlias = ToolForgeCase | ToolForgeTurn
"""A part of a case that may have expectations."""
_SENT: Final[Mapping[str, Any]] = {
    "input": {"message"},
    "turns": {"__all__": {"message"}},
    "user": set(ToolForgeUser.model_fields),
}
"""Fields of a case whose texts are sent."""
_MAX_KEYS: Final = 50
"""Maximum unknown keys of a case that are searched for expectations."""
_ALWAYS_HOLDS: Final = '"" is in every response: this always passes'


def lint_keys(envelope: Envelope, findings: Findings) -> None:
    """Find unknown keys of the file, outside of its cases."""
    _lint_unknown_keys(envelope, (), findings)
    if envelope.metadata:
        _lint_unknown_keys(envelope.metadata, ("metadata",), findings)


def lint_case(case: ToolForgeCase, path: Path, tier: Tier, findings: Findings, *, is_unchecked: bool) -> None:
    """Find oddities of one case. `is_unchecked`: none of its known expectations can fail."""
    parts = dict(_iter_parts(case, path))
    unknown: dict[Path, str] = {}
    for place, part in parts.items():
        unknown |= _find_unknown_expectations(part, place, findings, is_unchecked=is_unchecked)
    if unknown and is_unchecked:
        findings.skip_case(unknown.values(), next(iter(unknown)))
    else:
        for place, words in unknown.items():
            findings.add(f"{words}: it is not checked", place, silent=True)
    for place, part in parts.items():
        _lint_unknown_keys(part, place, findings, [one for one in unknown if one[:-1] == place])
    for key, source in (("input", case.input), ("user", case.user)):
        if source is not None:
            _lint_unknown_keys(source, (*path, key), findings)
    for place, text in _iter_sent_texts(case, path):
        for token in find_tokens(text):
            findings.add(f"{token} is sent as it is: tokens are not replaced in messages", place)
    expectations = {(*place, "expect"): part.expect for place, part in parts.items() if part.expect is not None}
    _lint_expectations(expectations, findings, is_unchecked=is_unchecked and not unknown)
    if tier is Tier.REGRESSION and expectations:
        _lint_regression(case, path, expectations, findings)


def _lint_expectations(expectations: Mapping[Path, Expect], findings: Findings, *, is_unchecked: bool) -> None:
    if expectations and is_unchecked:
        is_empty = not any(one.model_fields_set for one in expectations.values())
        what = "`expect` is empty" if is_empty else "nothing is checked"
        findings.add(f"{what}: the case passes with every response", next(iter(expectations)), silent=True)
    for place, expect in expectations.items():
        _lint_expect(expect, place, findings)


def _iter_parts(case: ToolForgeCase, path: Path) -> Iterator[tuple[Path, _Part]]:
    """Yield the parts of a case that may have expectations: it, and its turns."""
    yield path, case
    for index, turn in enumerate(case.turns or ()):
        yield (*path, "turns", index), turn


def _iter_sent_texts(case: ToolForgeCase, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the messages of a case, and the texts from which a simulated user writes its own."""
    leaves = iter_leaves(case.model_dump(by_alias=True, include=_SENT))
    yield from (((*path, *steps), text) for steps, text in leaves if isinstance(text, str))


def _find_unknown_expectations(part: _Part, path: Path, findings: Findings, *, is_unchecked: bool) -> dict[Path, str]:
    """Find unchecked expectations, with messages: in `expect`, or outside by a name that belongs there."""
    keys = get_known_keys(Expect)
    messages = {}
    for key in (part.expect.model_extra if part.expect else None) or {}:
        words = f'unknown assertion "{key[:80]}"{findings.suggest_word(key, keys)}'
        if key in UNSUPPORTED_ASSERTIONS:
            words = f'the assertion "{key}" is recognised, but not supported'
        messages[(*path, "expect", key)] = words
    for key in islice(part.model_extra or {}, _MAX_KEYS):
        # a turn has no keys for people, so that an unknown one is meant as an expectation
        is_meant = isinstance(part, ToolForgeTurn) and key not in part.ignored_keys
        if key in keys:
            hint = " (it belongs in `expect`)"
        elif is_meant:
            is_of_case = key in get_known_keys(ToolForgeCase)
            hint = " (it belongs in the case)" if is_of_case else findings.suggest_word(key, get_known_keys(type(part)))
        else:  # where nothing else is checked, a key of a case that resembles these is an expectation too
            hint = format_suggestion(key, ("expect", "rubric")) if is_unchecked else ""
        if hint or is_meant:
            messages[(*path, key)] = f'unknown key "{key[:80]}"{hint}'
    return messages


def _lint_expect(expect: Expect, path: Path, findings: Findings) -> None:
    for index, one in enumerate(expect.tool_params or ()):
        _lint_unknown_keys(one, (*path, "toolParams", index), findings)
    _lint_always_true(expect, path, findings)
    if "" in (expect.response_not_contains or ()):
        findings.add('"" is in every response: this always fails', (*path, "responseNotContains"))
    _lint_tokens(expect, path, findings)


def _lint_always_true(expect: Expect, path: Path, findings: Findings) -> None:
    """Find values that hold for every response."""
    for index, group in enumerate(expect.response_contains_any or ()):
        if "" in group or not group:
            message = _ALWAYS_HOLDS if group else "an empty group is skipped"
            findings.add(message, (*path, "responseContainsAny", index), silent=True)
    if "" in (expect.response_contains or ()):
        findings.add(_ALWAYS_HOLDS, (*path, "responseContains"), silent=True)
    for index, pattern in enumerate(expect.response_matches or ()):
        findings.lint_pattern(pattern, "", (*path, "responseMatches", index))
    if expect.regex_pattern is not None:
        findings.lint_pattern(expect.regex_pattern, "", (*path, "regexPattern"))
    for index, one in enumerate(expect.tool_params or ()):
        if one.assertion == "matches" and isinstance(one.value, str) and not find_tokens(one.value):
            findings.lint_pattern(one.value, "", (*path, "toolParams", index, "value"))
    for name, value in (expect.fields or {}).items():
        regex = value.get("matches") if isinstance(value, dict) else None
        if isinstance(regex, str) and not find_tokens(regex):
            findings.lint_pattern(regex, "", (*path, "fields", name, "matches"))


_TOKENS_ALLOWED = {
    name: to_camel(name)
    for name in ("response_contains", "response_contains_any", "response_not_contains", "tool_params", "fields")
}
_TOKENS_LITERAL = {
    name: to_camel(name)
    for name in ("tools_called", "tools_called_any_order", "tools_acceptable", "tools_not_called", "response_matches")
}


def _lint_tokens(expect: Expect, path: Path, findings: Findings) -> None:
    for name, key in _TOKENS_ALLOWED.items():
        for text in _iter_token_texts(getattr(expect, name)):
            for token in find_unknown_tokens(text):
                message = f"{token} has an unknown source and is used literally (sources: {', '.join(SOURCES)})"
                findings.add(message, (*path, key))
    for name, key in _TOKENS_LITERAL.items():
        for text in _iter_token_texts(getattr(expect, name)):
            for token in find_tokens(text):
                findings.add(f"{token} is used literally: tokens are not replaced in {key}", (*path, key))


def _iter_token_texts(value: Any) -> Iterator[str]:
    """Yield every text in a value that could hold a token."""
    leaves: Iterator[Any] = (leaf for _, leaf in iter_leaves(value))
    for leaf in leaves:
        texts = iter_texts(leaf.value if isinstance(leaf, ParamAssertion) else leaf)
        yield from (text for text in texts if "{{" in text)


def _lint_regression(case: ToolForgeCase, path: Path, expectations: Mapping[Path, Expect], findings: Findings) -> None:
    for key, value in (("createdAt", case.created_at), ("bugRef", case.bug_ref)):
        if not value:
            findings.add(f"a regression case needs {key}", path)
    for place, expect in expectations.items():
        for name, key in _TOKENS_ALLOWED.items():
            for text in _iter_token_texts(getattr(expect, name)):
                for token in find_snapshot_tokens(text):
                    message = f"{token} changes from run to run: regression cases use seed values only"
                    findings.add(message, (*place, key))


def _lint_unknown_keys(part: FileModel, path: Path, findings: Findings, reported: Iterable[Path] = ()) -> None:
    ignored = {str(place[-1]) for place in reported}
    silent = isinstance(part, ToolForgeCase | ToolForgeTurn | ToolForgeUser | ParamAssertion | CaseInput)
    findings.lint_unknown_keys(part, path, ignored, silent=silent)
