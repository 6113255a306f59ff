"""What an assertion of a suite says: a message, what was expected, what was seen.

Messages: agent-evals behaviour 3.3. All three parts stay apart for reports, and are one bounded sentence for people.
"""

from __future__ import annotations

from typing import Final

from eval_gate.evaluators.base import Evaluation
from eval_gate.evaluators.wording import MAX_VALUE, cut, double
from eval_gate.model.base import JsonValue
from eval_gate.model.specs.agent_evals import SuiteAssertion
from eval_gate.text.apart import values_apart
from eval_gate.text.foreign.json import ForeignJsonError, read_foreign
from eval_gate.text.foreign.well_formed import well_formed
from eval_gate.text.javascript.strings import as_text, compact_json

MAX_KEPT: Final = 500
"""Characters of what was seen that are kept in a result."""
MAX_MESSAGE: Final = 400
_FENCE: Final = "```"


class NotJsonError(Exception):
    """A text is not JSON; the message says why."""


def assertion_passed(spec: SuiteAssertion, message: str, expected: JsonValue, seen: JsonValue) -> Evaluation:
    """The assertion is true of the answer."""
    message = well_formed(cut(message, MAX_MESSAGE))
    return Evaluation(score=1.0, hits=(message,), checks_run=1, provider_request=_facts(spec, message, expected, seen))


def assertion_failed(
    spec: SuiteAssertion, message: str, expected: JsonValue, seen: JsonValue, *, why: str | None = None
) -> Evaluation:
    """The assertion is not true of the answer. `why` ends the sentence where expected and seen would say it badly."""
    message = well_formed(cut(message, MAX_MESSAGE))
    wanted, got = values_apart(expected, seen, quoted_value, MAX_VALUE)
    reason = f"expected {wanted}, got {got}" if why is None else why
    sentence = well_formed(f"{cut(spec.name)}: {message}{': ' if reason else ''}{reason}")
    return Evaluation(
        score=0.0,
        misses=(sentence,),
        error=sentence,
        checks_run=1,
        provider_request=_facts(spec, message, expected, seen),
    )


def quoted_value(value: JsonValue) -> str:
    """A value in a sentence: text in quotes, all else as JSON, bounded."""
    return double(value) if isinstance(value, str) else cut(compact_json(value))


def _facts(spec: SuiteAssertion, message: str, expected: JsonValue, seen: JsonValue) -> dict[str, JsonValue]:
    """The parts by the names that reports have for them."""
    return {
        "assertion": {key: _kept(value) for key, value in spec.as_written.items()},
        "message": message,
        "expected": _kept(expected),
        "actual": _kept(seen),
    }


def _kept(value: JsonValue) -> JsonValue:
    """The value as it is; where it is long, or holds what no file can, the beginning of its text."""
    text = as_text(value)
    kept = well_formed(cut(text, MAX_KEPT))
    return value if kept == text else kept


def as_json(text: str, *, fenced: bool = True) -> JsonValue:
    """The value a text holds as JSON. `fenced`: of a text that is nothing but one fenced block, what is in the fence.

    Raises NotJsonError.
    """
    try:
        return read_foreign(_unfenced(text) if fenced else text)
    except ForeignJsonError as error:
        raise NotJsonError(error.detail or str(error)) from None


def _unfenced(text: str) -> str:
    first, _, rest = text.strip().partition("\n")
    language = first.removeprefix(_FENCE).strip().lower()
    if not first.startswith(_FENCE) or language not in {"", "json"} or not rest.endswith(_FENCE):
        return text
    return rest.removesuffix(_FENCE)
