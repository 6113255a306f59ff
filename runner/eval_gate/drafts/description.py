"""Tells a description that `draft` wrote from one that a person wrote or changed.

Nothing in an eval file says who wrote a description. One counts as ours if it only repeats, in the words of
`DraftExpectation.description`, what its case expects: nothing is lost then when it is written anew. Words that somebody
adds to the list of what differed cannot be told from it; an update shows them in its diff.
"""

from __future__ import annotations

import re
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.text.json_values import iter_texts

_NOT_QUOTED: Final = re.compile(r"^one of | and \d+ more$|…$")
"""Words of a list that are no part of its members, and the end of a shortened member."""
_REMARK: Final = (
    r"(?:(?:A call failed|Left out, because it differed between \d+ executions|Left out as values of this moment|"
    r"Only sent, because the value looks like one of this moment|"
    r"The question depends on the day, so these may differ later): (?:[^.]|\.(?! ))*|"
    r"\d+ more numbers and names of the response are not expected|\d+ of \d+ executions had no response)"
)
_DESCRIPTION: Final = re.compile(
    r"(?:calls (?P<tools>.+?))??(?:, )?(?:answers with (?P<facts>.+?)|answers in words|refuses)?"
    rf"(?:\. {_REMARK})*"
)
"""A summary, and sentences about what was left out; a sentence of a person is none of these."""
_EITHER_CASE: Final = re.compile(r"\[(\w)\w\]")
"""`[Oo]` of a pattern that finds a word in either case."""
_NO_TOOL: Final = "no tool"
_MAX_LENGTH: Final = 3_000
"""Characters of the longest description that is searched."""


def is_drafted_description(description: str, expectation: JsonValue) -> bool:
    """Whether a description says nothing but what this expectation, as it is written in the file, expects."""
    found = _DESCRIPTION.fullmatch(description) if 0 < len(description) <= _MAX_LENGTH else None
    if found is None:
        return False
    written = [*iter_texts(expectation)]
    texts = [*written, *(_EITHER_CASE.sub(r"\1", text.replace("\\", "")) for text in written)]  # what patterns find
    tools = [name for name in _split(found["tools"], r", | or ") if name != _NO_TOOL]
    named = all(name in texts for name in tools)
    facts = [fact.casefold() for fact in _split(found["facts"], ", ")]
    return named and all(any(fact in text.casefold() for text in texts) for fact in facts)


def _split(listed: str | None, between: str) -> list[str]:
    """Split a list of names or facts, each without the words around it."""
    return [_NOT_QUOTED.sub("", one) for one in re.split(between, _NOT_QUOTED.sub("", listed))] if listed else []
