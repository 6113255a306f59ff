"""Warnings about a valid tool-forge file, above all assertions that check nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from eval_gate.formats.document_reader import Findings, get_known_keys
from eval_gate.formats.tool_forge.file_model import (
    CaseInput,
    Envelope,
    Expect,
    ParamAssertion,
    ToolForgeCase,
    ToolForgeMetadata,
)
from eval_gate.model.case import Tier
from eval_gate.model.specs.match_all_patterns import matches_every_text
from eval_gate.text.tokens import SOURCES, find_snapshot_tokens, find_tokens, find_unknown_tokens

UNSUPPORTED_ASSERTIONS = frozenset(
    {
        *("maxCost", "minToolCalls", "maxToolCalls", "jsonValid", "schemaData", "requiredKeys", "typeChecks"),
        *("minLength", "maxLength", "copOutPhrases", "requiresPreamble"),
    }
)
"""Keys of the shipped tool-forge runner that its contract does not know: recognised, so not called typos."""
_IGNORED_KEYS = {
    ToolForgeCase: frozenset({"requiresPreamble", "name", "notes", "comment", "$comment"}),
    ToolForgeMetadata: frozenset(
        {
            *("skillVersion", "generatedAt", "generatedBy", "createdAt", "updatedAt", "overlapMapVersion", "caseCount"),
            *("description", "version", "counts", "distribution", "seedManifest", "notes", "$comment"),
        }
    ),
    Envelope: frozenset({"$schema", "$comment"}),
}
"""Further keys that upstream's generators write and nothing depends on."""
_ALWAYS_HOLDS: Final = '"" is in every response: this always passes'


def lint_keys(envelope: Envelope, findings: Findings) -> None:
    """Unknown keys of the file as a whole."""
    _lint_unknown_keys(envelope, (), findings)
    if envelope.metadata:
        _lint_unknown_keys(envelope.metadata, ("metadata",), findings)


def lint_case(case: ToolForgeCase, path: tuple[str | int, ...], tier: Tier, findings: Findings) -> None:
    """Find what is odd in one case: unknown keys, tokens that stay as they are, checks that check nothing."""
    _lint_unknown_keys(case, path, findings)
    _lint_unknown_keys(case.input, (*path, "input"), findings)
    for token in find_tokens(case.input.message):
        findings.add(f"{token} is sent as it is: tokens are not replaced in messages", (*path, "input", "message"))
    if case.expect is not None:
        _lint_expect(case.expect, (*path, "expect"), findings)
    if tier is Tier.REGRESSION and case.expect is not None:
        _lint_regression(case, path, findings)


def _lint_expect(expect: Expect, path: tuple[str | int, ...], findings: Findings) -> None:
    for key in expect.model_extra or {}:
        if key in UNSUPPORTED_ASSERTIONS:
            message = f'the assertion "{key}" is recognised, but not supported: it is not checked'
        else:
            message = (
                f'unknown assertion "{key[:80]}"{findings.suggest_word(key, get_known_keys(Expect))}: it is not checked'
            )
        findings.add(message, (*path, key), silent=True)
    if not expect.model_fields_set:
        findings.add("`expect` is empty: the case passes with every response", path, silent=True)
    for index, one in enumerate(expect.tool_params or ()):
        _lint_unknown_keys(one, (*path, "toolParams", index), findings)
    _lint_always_true(expect, path, findings)
    if "" in (expect.response_not_contains or ()):
        findings.add('"" is in every response: this always fails', (*path, "responseNotContains"))
    _lint_tokens(expect, path, findings)


def _lint_always_true(expect: Expect, path: tuple[str | int, ...], findings: Findings) -> None:
    """Values that hold for every answer."""
    for index, group in enumerate(expect.response_contains_any or ()):
        if "" in group or not group:
            message = _ALWAYS_HOLDS if group else "an empty group is skipped"
            findings.add(message, (*path, "responseContainsAny", index), silent=True)
    if "" in (expect.response_contains or ()):
        findings.add(_ALWAYS_HOLDS, (*path, "responseContains"), silent=True)
    named = [("responseMatches", pattern) for pattern in expect.response_matches or ()]
    for key, pattern in (*named, ("regexPattern", expect.regex_pattern)):
        if pattern is not None and matches_every_text(pattern):
            message = f"/{pattern[:80]}/ matches every response: this always passes"
            findings.add(message, (*path, key), silent=True)


_TOKENS_ALLOWED = {
    name: to_camel(name)
    for name in ("response_contains", "response_contains_any", "response_not_contains", "tool_params")
}
_TOKENS_LITERAL = {
    name: to_camel(name)
    for name in ("tools_called", "tools_called_any_order", "tools_acceptable", "tools_not_called", "response_matches")
}


def _lint_tokens(expect: Expect, path: tuple[str | int, ...], findings: Findings) -> None:
    for name, key in _TOKENS_ALLOWED.items():
        for text in _iter_token_texts(getattr(expect, name)):
            for token in find_unknown_tokens(text):
                said = f"{token} has an unknown source and is used literally (sources: {', '.join(SOURCES)})"
                findings.add(said, (*path, key))
    for name, key in _TOKENS_LITERAL.items():
        for text in _iter_token_texts(getattr(expect, name)):
            for token in find_tokens(text):
                findings.add(f"{token} is used literally: tokens are not replaced in {key}", (*path, key))


def _iter_token_texts(value: object) -> Iterator[str]:
    """Every text in a value that could hold a token."""
    match value:
        case str():
            if "{{" in value:
                yield value
        case list():
            for member in value:
                yield from _iter_token_texts(member)
        case dict():
            yield from _iter_token_texts(list(value.values()))
        case ParamAssertion():
            yield from _iter_token_texts(value.value)


def _lint_regression(case: ToolForgeCase, path: tuple[str | int, ...], findings: Findings) -> None:
    for key, value in (("createdAt", case.created_at), ("bugRef", case.bug_ref)):
        if not value:
            findings.add(f"a regression case needs {key}", path)
    assert case.expect is not None
    for name, key in _TOKENS_ALLOWED.items():
        for text in _iter_token_texts(getattr(case.expect, name)):
            for token in find_snapshot_tokens(text):
                message = f"{token} changes from run to run: regression cases use seed values only"
                findings.add(message, (*path, "expect", key))


def _lint_unknown_keys(part: BaseModel, path: tuple[str | int, ...], findings: Findings) -> None:
    """Keys nobody reads, with the nearest one that is read."""
    for key in part.model_extra or {}:
        if key in _IGNORED_KEYS.get(type(part), frozenset()):
            continue
        hint = findings.suggest_word(key, get_known_keys(type(part)))
        if isinstance(part, ToolForgeCase) and key in get_known_keys(Expect):
            hint = " (it belongs in `expect`)"
        silent = isinstance(part, ToolForgeCase | ParamAssertion | CaseInput) and bool(hint)
        findings.add(f'unknown key "{key[:80]}"{hint}: it is ignored', (*path, key), silent=silent)
