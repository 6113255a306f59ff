"""What a valid tool-forge file may still get wrong: above all, checks that silently do not check anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from eval_gate.formats.reader import Findings, keys_of
from eval_gate.formats.tool_forge.wire import Case, CaseInput, Envelope, Expect, Metadata, ParamAssertion
from eval_gate.model.case import Tier
from eval_gate.model.specs.everywhere import finds_everywhere
from eval_gate.text.tokens import find_tokens, snapshot_tokens, unknown_sources

NOT_SUPPORTED = frozenset(
    {
        *("maxCost", "minToolCalls", "maxToolCalls", "jsonValid", "schemaData", "requiredKeys", "typeChecks"),
        *("minLength", "maxLength", "copOutPhrases", "requiresPreamble"),
    }
)
"""Keys of the shipped tool-forge runner that its contract does not know: recognised, so not called typos."""
_HARMLESS = {
    Case: frozenset({"requiresPreamble", "name", "notes", "comment", "$comment"}),
    Metadata: frozenset(
        {
            *("skillVersion", "generatedAt", "generatedBy", "createdAt", "updatedAt", "overlapMapVersion", "caseCount"),
            *("description", "version", "counts", "distribution", "seedManifest", "notes", "$comment"),
        }
    ),
    Envelope: frozenset({"$schema", "$comment"}),
}
"""Further keys that upstream's generators write and nothing depends on."""
_ALWAYS: Final = '"" is in every answer: this always holds'


def check_keys(envelope: Envelope, findings: Findings) -> None:
    """Unknown keys of the file as a whole."""
    _unknown(envelope, (), findings)
    if envelope.metadata:
        _unknown(envelope.metadata, ("metadata",), findings)


def check_case(case: Case, path: tuple[str | int, ...], tier: Tier, findings: Findings) -> None:
    """Find what is odd in one case: unknown keys, tokens that stay as they are, checks that check nothing."""
    _unknown(case, path, findings)
    _unknown(case.input, (*path, "input"), findings)
    for token in find_tokens(case.input.message):
        findings.add(f"{token} is sent as it is: tokens are not replaced in messages", (*path, "input", "message"))
    if case.expect is not None:
        _expect(case.expect, (*path, "expect"), findings)
    if tier is Tier.REGRESSION and case.expect is not None:
        _regression(case, path, findings)


def _expect(expect: Expect, path: tuple[str | int, ...], findings: Findings) -> None:
    for key in expect.model_extra or {}:
        if key in NOT_SUPPORTED:
            message = f'the assertion "{key}" is recognised, but not supported: it is not checked'
        else:
            message = f'unknown assertion "{key[:80]}"{findings.hint(key, keys_of(Expect))}: it is not checked'
        findings.add(message, (*path, key), silent=True)
    if not expect.model_fields_set:
        findings.add("`expect` is empty: the case passes whatever the agent answers", path, silent=True)
    for index, one in enumerate(expect.tool_params or ()):
        _unknown(one, (*path, "toolParams", index), findings)
    _always_hold(expect, path, findings)
    if "" in (expect.response_not_contains or ()):
        findings.add('"" is in every answer: this always fails', (*path, "responseNotContains"))
    _tokens(expect, path, findings)


def _always_hold(expect: Expect, path: tuple[str | int, ...], findings: Findings) -> None:
    """Values that hold for every answer."""
    for index, group in enumerate(expect.response_contains_any or ()):
        if "" in group or not group:
            message = _ALWAYS if group else "an empty group is skipped"
            findings.add(message, (*path, "responseContainsAny", index), silent=True)
    if "" in (expect.response_contains or ()):
        findings.add(_ALWAYS, (*path, "responseContains"), silent=True)
    named = [("responseMatches", pattern) for pattern in expect.response_matches or ()]
    for key, pattern in (*named, ("regexPattern", expect.regex_pattern)):
        if pattern is not None and finds_everywhere(pattern):
            message = f"/{pattern[:80]}/ finds something in every answer: this always holds"
            findings.add(message, (*path, key), silent=True)


_TOKENS_ALLOWED = {
    name: to_camel(name)
    for name in ("response_contains", "response_contains_any", "response_not_contains", "tool_params")
}
_TOKENS_LITERAL = {
    name: to_camel(name)
    for name in ("tools_called", "tools_called_any_order", "tools_acceptable", "tools_not_called", "response_matches")
}


def _tokens(expect: Expect, path: tuple[str | int, ...], findings: Findings) -> None:
    for name, key in _TOKENS_ALLOWED.items():
        for text in _texts(getattr(expect, name)):
            for token in unknown_sources(text):
                findings.add(f"{token} has an unknown source and is taken literally", (*path, key))
    for name, key in _TOKENS_LITERAL.items():
        for text in _texts(getattr(expect, name)):
            for token in find_tokens(text):
                findings.add(f"{token} is taken literally: tokens are not replaced in {key}", (*path, key))


def _texts(value: object) -> Iterator[str]:
    """Every text in a value that could hold a token."""
    match value:
        case str():
            if "{{" in value:
                yield value
        case list():
            for member in value:
                yield from _texts(member)
        case dict():
            yield from _texts(list(value.values()))
        case ParamAssertion():
            yield from _texts(value.value)


def _regression(case: Case, path: tuple[str | int, ...], findings: Findings) -> None:
    for key, value in (("createdAt", case.created_at), ("bugRef", case.bug_ref)):
        if not value:
            findings.add(f"a regression case names its {key}", path)
    assert case.expect is not None
    for name, key in _TOKENS_ALLOWED.items():
        for text in _texts(getattr(case.expect, name)):
            for token in snapshot_tokens(text):
                message = f"{token} changes from run to run: regression cases use seed values only"
                findings.add(message, (*path, "expect", key))


def _unknown(part: BaseModel, path: tuple[str | int, ...], findings: Findings) -> None:
    """Keys nobody reads, with the nearest one that is read."""
    for key in part.model_extra or {}:
        if key in _HARMLESS.get(type(part), frozenset()):
            continue
        hint = findings.hint(key, keys_of(type(part)))
        if isinstance(part, Case) and key in keys_of(Expect):
            hint = " (it belongs into `expect`)"
        silent = isinstance(part, Case | ParamAssertion | CaseInput) and bool(hint)
        findings.add(f'unknown key "{key[:80]}"{hint}: it is not read', (*path, key), silent=silent)
