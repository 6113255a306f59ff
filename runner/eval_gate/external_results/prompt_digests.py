"""Digests of what a case asks and expects, field by field, with and without what may be new in every run.

A new thread id, date or request id in the variables is not a new prompt. Only a later comparison shows what differs,
and a row keeps no values: each field has a digest of its value, one without times and random words, and one without all
words that have a digit. Values and variables that the expectation names are never left out.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from eval_gate.model.base import JsonValue
from eval_gate.model.result import FieldDigests
from eval_gate.text.digest import compute_digest
from eval_gate.text.javascript.strings import as_text
from eval_gate.text.json_values import iter_leaves
from eval_gate.text.sources.validation_errors import format_field_path
from eval_gate.text.volatile_words import iter_volatile_words, replace_volatile_words

_MAX_FIELDS: Final = 50
"""Fields of a prompt; one with more is a single field."""
_MAX_NAME: Final = 100
_DIGIT: Final = re.compile(r"[0-9]")
_DIGITS: Final = re.compile(r"[0-9]+")
_WORD: Final = re.compile(r"[A-Za-z0-9_.:+/@-]+")


class PromptDigests(NamedTuple):
    """Digests of one case: of its expectation, and of each field of its prompt."""

    expectation: str
    fields: tuple[FieldDigests, ...]


def digest_prompt(name: str, prompt: JsonValue, expectation: JsonValue) -> PromptDigests:
    """Compute the digests of a prompt, which the tool calls `name`, and of what is expected."""
    leaves = list(islice(iter_leaves(prompt), _MAX_FIELDS + 1))
    if not leaves or len(leaves) > _MAX_FIELDS:
        leaves = [((), as_text(prompt))]
    expected = as_text(expectation)
    fields = [_digest_field((name, *path), leaf, expected) for path, leaf in leaves]
    return PromptDigests(compute_digest(expectation), tuple(sorted(fields, key=lambda one: (one.name, one.value))))


def _digest_field(path: tuple[str | int, ...], leaf: JsonValue, expected: str) -> FieldDigests:
    name, text, value = format_field_path(path)[:_MAX_NAME], as_text(leaf), compute_digest(leaf)
    if not _DIGIT.search(text) or not _split_words(expected).isdisjoint(path[1:]):
        return FieldDigests(name=name, value=value)
    stable = text
    if all(word not in expected for word in iter_volatile_words(text)):
        stable = replace_volatile_words(text)
    numbers = _DIGITS.findall(stable)
    fixed = stable if not _split_words(expected).isdisjoint(numbers) else _WORD.sub(_replace_number, stable)
    return FieldDigests(
        name=name,
        value=value,
        stable=compute_digest(stable) if stable != text else None,
        fixed=compute_digest(fixed) if fixed != text else None,
    )


@lru_cache(1)
def _split_words(expected: str) -> frozenset[str]:
    """Split an expectation into its words and numbers; the fields of a case share them."""
    return frozenset(re.findall(r"\w+", expected)) | frozenset(_DIGITS.findall(expected))


def _replace_number(word: re.Match[str]) -> str:
    return "<number>" if _DIGIT.search(word[0]) else word[0]
