"""promptfoo's assertions as checks of a tool-forge case: the same answers pass, or it is said that there are none.

Source: promptfoo 0.121, src/assertions. What a model checks (`llm-rubric` and its like) becomes a rubric of yes or no;
no two models grade alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeGuard

from eval_gate.importing.imported import CannotCarryError
from eval_gate.importing.promptfoo import patterns
from eval_gate.importing.promptfoo.templates import DATE, as_text, render_template
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import PATTERN_CHARACTERS
from eval_gate.struct import FrozenStruct, Struct, field
from eval_gate.text.javascript.strings import js_string

BASE_TYPES: Final = frozenset(
    {
        *("agent-rubric", "answer-relevance", "bleu", "classifier", "contains", "contains-all", "contains-any"),
        *("contains-html", "contains-json", "contains-sql", "contains-xml", "context-faithfulness", "context-recall"),
        *("context-relevance", "conversation-relevance", "cost", "equals", "factuality", "finish-reason", "g-eval"),
        *("gleu", "guardrails", "icontains", "icontains-all", "icontains-any", "is-html", "is-json", "is-refusal"),
        *("is-sql", "is-valid-function-call", "is-valid-openai-function-call", "is-valid-openai-tools-call", "is-xml"),
        *("javascript", "latency", "levenshtein", "llm-rubric", "pi", "meteor", "model-graded-closedqa"),
        *("model-graded-factuality", "moderation", "perplexity", "perplexity-score", "python", "regex", "rouge-n"),
        *("ruby", "similar", "similar:cosine", "similar:dot", "similar:euclidean", "starts-with", "tool-call-f1"),
        *("skill-used", "trajectory:goal-success", "trajectory:tool-args-match", "trajectory:step-count"),
        *("trajectory:tool-sequence", "trajectory:tool-used", "trace-error-spans", "trace-span-count"),
        *("trace-span-duration", "search-rubric", "webhook", "word-count"),
    }
)
"""What promptfoo knows as an assertion."""
_PROGRAMS: Final = frozenset({"javascript", "python", "ruby", "webhook"})
_KEYS: Final = frozenset({"type", "value", "threshold", "weight", "metric", "provider", "description", "label", "id"})
_ALL: Final = 1.0
"""The threshold that wants all of them."""
_MOST_COUNTED: Final = 2_000
"""Words that a pattern counts to."""


class PromptfooAssertion(FrozenStruct):
    """One assertion that decides. `read` gives the text of a `file://` value."""

    kind: str
    inverse: bool
    value: JsonValue
    threshold: JsonValue
    metric: str | None
    variables: Mapping[str, JsonValue]
    read: Callable[[str], str]

    def text(self) -> str:
        """The value as one text with something in it. Raises CannotCarryError."""
        return self.filled(self.written(self.value))

    def texts(self) -> list[str]:
        """The values of a list, or of a text with commas. Raises CannotCarryError."""
        value = self.value
        if isinstance(value, str):
            found = comma_separated(self.written(value))
        elif isinstance(value, list):
            found = [self.written(member) for member in value]
        else:
            raise CannotCarryError(f"{self.kind} has no list of values")
        if not found:
            raise CannotCarryError(f"{self.kind} has no values")
        return [self.filled(one) for one in found]

    def written(self, value: JsonValue) -> str:
        """One value as a text, which may be empty. Raises CannotCarryError."""
        if isinstance(value, str):
            if value.startswith("package:"):
                raise CannotCarryError("its value is a program, and no program is run")
            return self.read(value) if value.startswith("file://") else render_template(value, self.variables)
        return as_text(value, f"the value of {self.kind}")

    def filled(self, text: str) -> str:
        """The text. Raises CannotCarryError where there is nothing in it."""
        if not text:
            raise CannotCarryError(f"{self.kind} has an empty value")
        return text


def comma_separated(text: str) -> list[str]:
    """The fields of `a, "b, c", d`. Raises CannotCarryError for what promptfoo refuses."""
    found: list[str] = []
    at = 0
    while at < len(text):
        while at < len(text) and (text[at].isspace() or text[at] == ","):
            at += 1
        if at >= len(text):
            break
        if text[at] == '"':
            field_, at = _quoted(text, at + 1)
            while at < len(text) and text[at].isspace():
                at += 1
            if at < len(text) and text[at] != ",":
                raise CannotCarryError("its list of values is not what promptfoo reads: a comma is missing")
        else:
            end = text.find(",", at)
            end = len(text) if end < 0 else end
            field_, at = text[at:end].strip(), end
        found.append(field_)
    return found


def _quoted(text: str, at: int) -> tuple[str, int]:
    """What stands in quotes from here on, and where it goes on behind them."""
    parts: list[str] = []
    while at < len(text):
        pair = text[at : at + 2]
        if pair in {'\\"', "\\\\", '""'}:
            parts.append(pair[1])
            at += 2
        elif text[at] == '"':
            return "".join(parts), at + 1
        else:
            parts.append(text[at])
            at += 1
    raise CannotCarryError("its list of values is not what promptfoo reads: a quote is missing")


class CaseChecks(Struct):
    """The checks of one case, as its `expect` and `rubric` are written.

    `graded` are types of assertions that a model answers; `counted` says how many decide over the case.
    """

    contains: list[JsonValue] = field(default_factory=list)
    contains_any: list[JsonValue] = field(default_factory=list)
    not_contains: list[JsonValue] = field(default_factory=list)
    matches: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    """Patterns that somebody else has written: whether they are any is not known here."""
    latency: float | None = None
    rubric: list[JsonValue] = field(default_factory=list)
    graded: set[str] = field(default_factory=set)
    counted: int = 0

    def expect(self) -> dict[str, JsonValue] | None:
        """The case's `expect`; None where only a model judges it."""
        made: dict[str, JsonValue] = {
            "responseContains": self.contains,
            "responseContainsAny": self.contains_any,
            "responseNotContains": self.not_contains,
            "responseMatches": [*self.matches],
            "maxLatencyMs": self.latency,
        }
        return {key: value for key, value in made.items() if value not in (None, [])} or None


def checks_of(
    assertions: list[JsonValue],
    threshold: JsonValue,
    variables: Mapping[str, JsonValue],
    read: Callable[[str], str],
) -> CaseChecks:
    """All of them as checks of one case, which passes when all hold. Raises CannotCarryError for one that has none."""
    checks = CaseChecks()
    _add_all(checks, assertions, variables, read)
    if not checks.counted:
        raise CannotCarryError("it asserts nothing that counts")
    _refuse_share(checks, threshold)
    return checks


def _add_all(
    checks: CaseChecks, assertions: list[JsonValue], variables: Mapping[str, JsonValue], read: Callable[[str], str]
) -> None:
    for one in assertions:
        if not isinstance(one, dict) or not isinstance(one.get("type"), str):
            raise CannotCarryError("an assertion has no type")
        if one["type"] == "assert-set":
            members = one.get("assert")
            inner = CaseChecks()
            _add_all(inner, members if isinstance(members, list) else [], variables, read)
            _refuse_share(inner, one.get("threshold"))
            _join(checks, inner)
        elif _weight(one) > 0:
            _add(checks, _assertion(one, variables, read))


def _join(checks: CaseChecks, inner: CaseChecks) -> None:
    checks.contains += inner.contains
    checks.contains_any += inner.contains_any
    checks.not_contains += inner.not_contains
    checks.matches += inner.matches
    checks.foreign += inner.foreign
    checks.rubric += inner.rubric
    checks.graded |= inner.graded
    checks.counted += inner.counted
    if inner.latency is not None:
        _max_latency(checks, inner.latency)


def _weight(one: Mapping[str, JsonValue]) -> float:
    weight = one.get("weight", 1)
    if weight is None:
        return 1
    if isinstance(weight, bool) or not isinstance(weight, int | float) or weight < 0:
        raise CannotCarryError("an assertion has a weight that is none")
    return weight


def _refuse_share(checks: CaseChecks, threshold: JsonValue) -> None:
    """A threshold lets a case pass of which a part fails. Here all of its checks hold, or it fails."""
    if threshold is None:
        return
    if isinstance(threshold, bool) or not isinstance(threshold, int | float):
        raise CannotCarryError("its threshold is no number")
    alone = checks.counted == 1 and 0 < threshold <= _ALL
    if checks.graded or not (alone or threshold == _ALL):
        raise CannotCarryError(
            f"it passes from a score of {js_string(threshold)} on, and a case here when all of its checks hold"
        )


def _assertion(
    one: Mapping[str, JsonValue], variables: Mapping[str, JsonValue], read: Callable[[str], str]
) -> PromptfooAssertion:
    written = str(one["type"])
    inverse = written.startswith("not-")
    kind = written.removeprefix("not-")
    if kind in _PROGRAMS:
        raise CannotCarryError(f"{kind} is a program, and no program is run to check an answer")
    if kind not in _MAKERS:
        known = "" if kind in BASE_TYPES or kind.startswith(("promptfoo:", "select-", "max-")) else ", nor promptfoo's"
        raise CannotCarryError(f"{kind[:60]} is not among the checks of an eval file{known}")
    for key in one:
        if key not in _KEYS:
            raise CannotCarryError(f"`{key[:60]}` of an assertion changes what is checked")
    value, metric = one.get("value"), one.get("metric")
    if isinstance(value, dict) and DATE in value:
        raise CannotCarryError(f"the value of {kind} is a date without quotes, a point in time to promptfoo")
    return PromptfooAssertion(
        kind=kind,
        inverse=inverse,
        value=value,
        threshold=one.get("threshold"),
        metric=metric if isinstance(metric, str) and metric else None,
        variables=variables,
        read=read,
    )


def _add(checks: CaseChecks, one: PromptfooAssertion) -> None:
    _MAKERS[one.kind](checks, one)
    checks.counted += 1


def _pattern(checks: CaseChecks, pattern: str) -> None:
    if len(pattern) > PATTERN_CHARACTERS:
        raise CannotCarryError(f"its text makes a pattern of more than {PATTERN_CHARACTERS:,} characters")
    checks.matches.append(pattern)


def _contains(checks: CaseChecks, one: PromptfooAssertion) -> None:
    (checks.not_contains if one.inverse else checks.contains).append(one.text())


def _contains_any(checks: CaseChecks, one: PromptfooAssertion) -> None:
    values: list[JsonValue] = [*one.texts()]
    if one.inverse:
        checks.not_contains += values
    else:
        checks.contains_any.append(values)


def _contains_all(checks: CaseChecks, one: PromptfooAssertion) -> None:
    values = one.texts()
    if one.inverse:
        _pattern(checks, patterns.not_all(map(patterns.literal, values)))
    else:
        checks.contains += values


def _icontains(checks: CaseChecks, one: PromptfooAssertion) -> None:
    _folded(checks, [one.text()], inverse=one.inverse)


def _icontains_any(checks: CaseChecks, one: PromptfooAssertion) -> None:
    _folded(checks, one.texts(), inverse=one.inverse)


def _folded(checks: CaseChecks, values: list[str], *, inverse: bool) -> None:
    """One of these, in whatever case; or none of them."""
    found = [patterns.any_case(value, forbidden=inverse) for value in values]
    if inverse:
        for pattern in found:
            _pattern(checks, patterns.without(pattern))
    else:
        _pattern(checks, patterns.either(found))


def _icontains_all(checks: CaseChecks, one: PromptfooAssertion) -> None:
    found = [patterns.any_case(value, forbidden=one.inverse) for value in one.texts()]
    if one.inverse:
        _pattern(checks, patterns.not_all(found))
    else:
        for pattern in found:
            _pattern(checks, pattern)


def _equals(checks: CaseChecks, one: PromptfooAssertion) -> None:
    if one.value is None or isinstance(one.value, list | dict):
        raise CannotCarryError("equals compares with the answer read as JSON, which no check of an eval file does")
    value = one.written(one.value)  # an empty text is a value here
    pattern = patterns.whole_answer(patterns.literal(value))
    _pattern(checks, patterns.not_from_the_start(pattern[1:]) if one.inverse else pattern)


def _starts_with(checks: CaseChecks, one: PromptfooAssertion) -> None:
    if not isinstance(one.value, str):
        raise CannotCarryError("starts-with has no text")
    pattern = patterns.literal(one.text())
    _pattern(checks, patterns.not_from_the_start(pattern) if one.inverse else patterns.begins(pattern))


def _regex(checks: CaseChecks, one: PromptfooAssertion) -> None:
    if not isinstance(one.value, str):
        raise CannotCarryError("regex has no text")
    pattern = one.text()
    checks.foreign.append(pattern)
    _pattern(checks, patterns.without(pattern) if one.inverse else pattern)


def _latency(checks: CaseChecks, one: PromptfooAssertion) -> None:
    limit = one.threshold
    if one.inverse or isinstance(limit, bool) or not isinstance(limit, int | float) or limit <= 0:
        raise CannotCarryError("not-latency asks for slow answers" if one.inverse else "latency has no threshold")
    _max_latency(checks, int(limit) if limit == int(limit) else limit)


def _max_latency(checks: CaseChecks, limit: float) -> None:
    checks.latency = limit if checks.latency is None else min(limit, checks.latency)


def _word_count(checks: CaseChecks, one: PromptfooAssertion) -> None:
    least, most = _bounds(one)
    if one.inverse:
        raise CannotCarryError("not-word-count has no counterpart here")
    if max(least, most or 0) > _MOST_COUNTED:
        raise CannotCarryError(f"word-count of more than {_MOST_COUNTED:,}")
    _pattern(checks, patterns.words(least, most))


def _bounds(one: PromptfooAssertion) -> tuple[int, int | None]:
    value = one.value
    if isinstance(value, dict) and set(value) <= {"min", "max"} and value:
        least, most = value.get("min", 0), value.get("max")
        if _whole(least) and (most is None or (_whole(most) and least <= most)):
            return least, most
    elif isinstance(value, str) and re.fullmatch(r"\d{1,6}", value):
        return int(value), int(value)
    elif _whole(value):
        return value, value
    raise CannotCarryError("word-count is no whole number, and no `min` and `max`")


def _whole(value: JsonValue) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _rubric(checks: CaseChecks, one: PromptfooAssertion) -> None:
    value = one.value
    texts = value if one.kind == "g-eval" and isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        raise CannotCarryError(f"the value of {one.kind} is no text")
    _dimension(checks, one, "\n".join(one.filled(one.written(text)) for text in texts))


def _factuality(checks: CaseChecks, one: PromptfooAssertion) -> None:
    _dimension(checks, one, f"Nothing in the answer disagrees with this expert answer:\n{one.text()}")


def _dimension(checks: CaseChecks, one: PromptfooAssertion, criteria: str) -> None:
    if one.inverse:
        raise CannotCarryError(f"not-{one.kind} asks a model for the opposite of its rubric")
    taken = {str(part["dimension"]) for part in checks.rubric if isinstance(part, dict)}
    name = one.metric or one.kind
    name = next(found for found in (name, *(f"{name} {number}" for number in range(2, 9_999))) if found not in taken)
    checks.rubric.append({"dimension": name, "maxScore": 1, "criteria": criteria})
    checks.graded.add(one.kind)


_MAKERS: Final[Mapping[str, Callable[[CaseChecks, PromptfooAssertion], None]]] = {
    "contains": _contains,
    "contains-any": _contains_any,
    "contains-all": _contains_all,
    "icontains": _icontains,
    "icontains-any": _icontains_any,
    "icontains-all": _icontains_all,
    "equals": _equals,
    "starts-with": _starts_with,
    "regex": _regex,
    "word-count": _word_count,
    "latency": _latency,
    "llm-rubric": _rubric,
    "g-eval": _rubric,
    "model-graded-closedqa": _rubric,
    "factuality": _factuality,
    "model-graded-factuality": _factuality,
}
