"""The answer holds a text, begins or ends with it, is it, matches a pattern, or is JSON.

Source: AgentV 4.42.4, "Deterministic graders". Blanks around answer and value do not count for `equals`, `starts-with`
and `ends-with`.
"""

from __future__ import annotations

from typing import Final

from eval_gate.evaluators.base import Evaluation, EvaluationContext, EvaluatorError
from eval_gate.evaluators.wording import cut, double, names
from eval_gate.model.specs.agentv import TextAssertion
from eval_gate.text.foreign.json import is_json
from eval_gate.text.foreign.well_formed import well_formed
from eval_gate.text.javascript.regex import PatternError

_BLANKS: Final = (
    "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""What `trim` takes away in JavaScript."""


async def text_assertion(spec: TextAssertion, context: EvaluationContext) -> Evaluation:
    """1 where the answer is as it is asked for, else 0. Raises EvaluatorError for a pattern that is none."""
    text = context.response.text
    if spec.type == "regex":
        return _said(spec, await _matches(spec, context), f"matches /{cut(spec.values[0])}/{cut(spec.flags, 20)}")
    if spec.type == "is-json":
        return _said(spec, is_json(text), "is JSON")
    if spec.type in {"starts-with", "ends-with", "equals"}:
        return _edge(spec, text.strip(_BLANKS), spec.values[0].strip(_BLANKS))
    return _contains(spec, text)


def _edge(spec: TextAssertion, text: str, value: str) -> Evaluation:
    match spec.type:
        case "starts-with":
            return _said(spec, text.startswith(value), f"starts with {double(value)}")
        case "ends-with":
            return _said(spec, text.endswith(value), f"ends with {double(value)}")
        case _:
            return _said(spec, text == value, f"equals {double(value)}")


def _contains(spec: TextAssertion, text: str) -> Evaluation:
    """One value, any of them, or all; in lower case on both sides for those that begin with `i`."""
    loose = spec.type.startswith("i")
    text = text.lower() if loose else text
    there = [value for value in spec.values if (value.lower() if loose else value) in text]
    if spec.type.endswith("-any"):
        what = f"contains any of {names(spec.values)}"
        return _said(spec, bool(there), f"contains {double(there[0])}" if there else what)
    missing = [value for value in spec.values if value not in there]
    shown = spec.values[0] if len(spec.values) == 1 else None
    if shown is not None:
        return _said(spec, not missing, f"contains {double(shown)}")
    return _said(spec, not missing, f"contains all of {names(missing or spec.values)}")


async def _matches(spec: TextAssertion, context: EvaluationContext) -> bool:
    try:
        return await context.patterns.search(spec.values[0], context.response.text, spec.flags)
    except PatternError as error:
        # no score of 0: turned round that would be a pass
        raise EvaluatorError(f"{cut(spec.name)}: {error}") from error


def _said(spec: TextAssertion, holds: object, what: str) -> Evaluation:
    if holds:
        return Evaluation(score=1.0, hits=(well_formed(f"Output {what}"),), checks_run=1)
    sentence = well_formed(f"Output does not hold: {what}")
    return Evaluation(score=0.0, misses=(sentence,), error=well_formed(f"{cut(spec.name)}: {sentence}"), checks_run=1)
