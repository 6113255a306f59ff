"""Conversion of promptfoo assertions to tool-forge checks that pass for the same responses.

Source: promptfoo 0.121, src/assertions. What a model checks (`llm-rubric` and its like) becomes a rubric of yes or no;
no two models grade alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeGuard

from eval_gate.importers.import_result import NotImportableError
from eval_gate.importers.promptfoo import patterns
from eval_gate.importers.promptfoo.templates import DATE_KEY, render_template, value_to_text
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import PATTERN_CHARACTERS
from eval_gate.struct import FrozenStruct, Struct, field
from eval_gate.text.javascript.strings import format_js_string

KNOWN_TYPES: Final = frozenset(
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
_PROGRAM_TYPES: Final = frozenset({"javascript", "python", "ruby", "webhook"})
_KEYS: Final = frozenset({"type", "value", "threshold", "weight", "metric", "provider", "description", "label", "id"})
_FULL_THRESHOLD: Final = 1.0
"""The threshold that wants all of them."""
_MAX_WORD_COUNT: Final = 2_000
"""Words that a pattern counts to."""


class PromptfooAssertion(FrozenStruct):
    """One assertion with a weight above 0. `read_file` returns the text of a `file://` value."""

    kind: str
    inverse: bool
    value: JsonValue
    threshold: JsonValue
    metric: str | None
    variables: Mapping[str, JsonValue]
    read_file: Callable[[str], str]

    def read_text(self) -> str:
        """Return the value as one text that is not empty.

        Raises NotImportableError.
        """
        return self.require_text(self.render_value(self.value))

    def read_texts(self) -> list[str]:
        """Return the values of a list, or of a text separated by commas.

        Raises NotImportableError.
        """
        value = self.value
        if isinstance(value, str):
            found = split_commas(self.render_value(value))
        elif isinstance(value, list):
            found = [self.render_value(member) for member in value]
        else:
            raise NotImportableError(f"{self.kind} has no list of values")
        if not found:
            raise NotImportableError(f"{self.kind} has no values")
        return [self.require_text(one) for one in found]

    def render_value(self, value: JsonValue) -> str:
        """One value as a text, which may be empty. Raises CannotCarryError."""
        if isinstance(value, str):
            if value.startswith("package:"):
                raise NotImportableError("its value is a program, and programs are not run")
            return self.read_file(value) if value.startswith("file://") else render_template(value, self.variables)
        return value_to_text(value, f"the value of {self.kind}")

    def require_text(self, text: str) -> str:
        """Return the text if it is not empty.

        Raises NotImportableError otherwise.
        """
        if not text:
            raise NotImportableError(f"{self.kind} has an empty value")
        return text


def split_commas(text: str) -> list[str]:
    """Split a text such as `a, "b, c", d` into its fields.

    Raises NotImportableError for a text that promptfoo rejects.
    """
    found: list[str] = []
    at = 0
    while at < len(text):
        while at < len(text) and (text[at].isspace() or text[at] == ","):
            at += 1
        if at >= len(text):
            break
        if text[at] == '"':
            field_, at = _read_quoted(text, at + 1)
            while at < len(text) and text[at].isspace():
                at += 1
            if at < len(text) and text[at] != ",":
                raise NotImportableError("promptfoo cannot read its list of values: a comma is missing")
        else:
            end = text.find(",", at)
            end = len(text) if end < 0 else end
            field_, at = text[at:end].strip(), end
        found.append(field_)
    return found


def _read_quoted(text: str, at: int) -> tuple[str, int]:
    """Read a quoted field from position `at`, and return it with the position after its closing quote.

    Raises NotImportableError if the closing quote is missing.
    """
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
    raise NotImportableError("promptfoo cannot read its list of values: a quote is missing")


class CaseChecks(Struct):
    """The checks of one case, in the form of its `expect` and `rubric`.

    `graded_types` are assertion types that a model scores; `assertion_count` is the number of assertions that decide
    the case.
    """

    contains: list[JsonValue] = field(default_factory=list)
    contains_any: list[JsonValue] = field(default_factory=list)
    not_contains: list[JsonValue] = field(default_factory=list)
    matches: list[str] = field(default_factory=list)
    untrusted_patterns: list[str] = field(default_factory=list)
    """Patterns that somebody else has written: whether they are any is not known here."""
    latency: float | None = None
    rubric: list[JsonValue] = field(default_factory=list)
    graded_types: set[str] = field(default_factory=set)
    assertion_count: int = 0

    def build_expect(self) -> dict[str, JsonValue] | None:
        """Build the `expect` of the case, or return None if only an LLM judge scores it."""
        made: dict[str, JsonValue] = {
            "responseContains": self.contains,
            "responseContainsAny": self.contains_any,
            "responseNotContains": self.not_contains,
            "responseMatches": [*self.matches],
            "maxLatencyMs": self.latency,
        }
        return {key: value for key, value in made.items() if value not in (None, [])} or None


def convert_assertions(
    assertions: list[JsonValue],
    threshold: JsonValue,
    variables: Mapping[str, JsonValue],
    read: Callable[[str], str],
) -> CaseChecks:
    """All of them as checks of one case, which passes when all hold. Raises CannotCarryError for one that has none."""
    checks = CaseChecks()
    _add_assertions(checks, assertions, variables, read)
    if not checks.assertion_count:
        raise NotImportableError("its assertions have no effect")
    _refuse_partial_threshold(checks, threshold)
    return checks


def _add_assertions(
    checks: CaseChecks, assertions: list[JsonValue], variables: Mapping[str, JsonValue], read: Callable[[str], str]
) -> None:
    for one in assertions:
        if not isinstance(one, dict) or not isinstance(one.get("type"), str):
            raise NotImportableError("an assertion has no type")
        if one["type"] == "assert-set":
            members = one.get("assert")
            inner = CaseChecks()
            _add_assertions(inner, members if isinstance(members, list) else [], variables, read)
            _refuse_partial_threshold(inner, one.get("threshold"))
            _merge_checks(checks, inner)
        elif _read_weight(one) > 0:
            _add_assertion(checks, _parse_assertion(one, variables, read))


def _merge_checks(checks: CaseChecks, inner: CaseChecks) -> None:
    checks.contains += inner.contains
    checks.contains_any += inner.contains_any
    checks.not_contains += inner.not_contains
    checks.matches += inner.matches
    checks.untrusted_patterns += inner.untrusted_patterns
    checks.rubric += inner.rubric
    checks.graded_types |= inner.graded_types
    checks.assertion_count += inner.assertion_count
    if inner.latency is not None:
        _limit_latency(checks, inner.latency)


def _read_weight(one: Mapping[str, JsonValue]) -> float:
    weight = one.get("weight", 1)
    if weight is None:
        return 1
    if isinstance(weight, bool) or not isinstance(weight, int | float) or weight < 0:
        raise NotImportableError("an assertion has an invalid weight")
    return weight


def _refuse_partial_threshold(checks: CaseChecks, threshold: JsonValue) -> None:
    """Raise NotImportableError for a threshold with which a case passes although some checks fail.

    In Eval Gate a case passes only if all of its checks pass.
    """
    if threshold is None:
        return
    if isinstance(threshold, bool) or not isinstance(threshold, int | float):
        raise NotImportableError("its threshold is not a number")
    alone = checks.assertion_count == 1 and 0 < threshold <= _FULL_THRESHOLD
    if checks.graded_types or not (alone or threshold == _FULL_THRESHOLD):
        raise NotImportableError(
            f"it passes from a score of {format_js_string(threshold)}, but a case of an eval file needs all its checks"
        )


def _parse_assertion(
    one: Mapping[str, JsonValue], variables: Mapping[str, JsonValue], read: Callable[[str], str]
) -> PromptfooAssertion:
    written = str(one["type"])
    inverse = written.startswith("not-")
    kind = written.removeprefix("not-")
    if kind in _PROGRAM_TYPES:
        raise NotImportableError(f"{kind} is a program, and programs are not run to check a response")
    if kind not in _CONVERTERS:
        known = "" if kind in KNOWN_TYPES or kind.startswith(("promptfoo:", "select-", "max-")) else ", nor promptfoo's"
        raise NotImportableError(f"{kind[:60]} is not among the checks of an eval file{known}")
    for key in one:
        if key not in _KEYS:
            raise NotImportableError(f"`{key[:60]}` of an assertion changes what is checked")
    value, metric = one.get("value"), one.get("metric")
    if isinstance(value, dict) and DATE_KEY in value:
        raise NotImportableError(
            f"the value of {kind} is a date without quotes, which promptfoo reads as a point in time"
        )
    return PromptfooAssertion(
        kind=kind,
        inverse=inverse,
        value=value,
        threshold=one.get("threshold"),
        metric=metric if isinstance(metric, str) and metric else None,
        variables=variables,
        read_file=read,
    )


def _add_assertion(checks: CaseChecks, one: PromptfooAssertion) -> None:
    _CONVERTERS[one.kind](checks, one)
    checks.assertion_count += 1


def _add_pattern(checks: CaseChecks, pattern: str) -> None:
    if len(pattern) > PATTERN_CHARACTERS:
        raise NotImportableError(f"its text results in a pattern of more than {PATTERN_CHARACTERS:,} characters")
    checks.matches.append(pattern)


def _add_contains(checks: CaseChecks, one: PromptfooAssertion) -> None:
    (checks.not_contains if one.inverse else checks.contains).append(one.read_text())


def _add_contains_any(checks: CaseChecks, one: PromptfooAssertion) -> None:
    values: list[JsonValue] = [*one.read_texts()]
    if one.inverse:
        checks.not_contains += values
    else:
        checks.contains_any.append(values)


def _add_contains_all(checks: CaseChecks, one: PromptfooAssertion) -> None:
    values = one.read_texts()
    if one.inverse:
        _add_pattern(checks, patterns.match_not_all(map(patterns.escape_literal, values)))
    else:
        checks.contains += values


def _add_icontains(checks: CaseChecks, one: PromptfooAssertion) -> None:
    _add_case_insensitive(checks, [one.read_text()], inverse=one.inverse)


def _add_icontains_any(checks: CaseChecks, one: PromptfooAssertion) -> None:
    _add_case_insensitive(checks, one.read_texts(), inverse=one.inverse)


def _add_case_insensitive(checks: CaseChecks, values: list[str], *, inverse: bool) -> None:
    """One of these, in whatever case; or none of them."""
    found = [patterns.match_any_case(value, forbidden=inverse) for value in values]
    if inverse:
        for pattern in found:
            _add_pattern(checks, patterns.match_absence(pattern))
    else:
        _add_pattern(checks, patterns.match_any(found))


def _add_icontains_all(checks: CaseChecks, one: PromptfooAssertion) -> None:
    found = [patterns.match_any_case(value, forbidden=one.inverse) for value in one.read_texts()]
    if one.inverse:
        _add_pattern(checks, patterns.match_not_all(found))
    else:
        for pattern in found:
            _add_pattern(checks, pattern)


def _add_equals(checks: CaseChecks, one: PromptfooAssertion) -> None:
    if one.value is None or isinstance(one.value, list | dict):
        raise NotImportableError("equals compares the response as JSON, which checks of an eval file cannot do")
    value = one.render_value(one.value)  # an empty text is a value here
    pattern = patterns.match_whole(patterns.escape_literal(value))
    _add_pattern(checks, patterns.match_not_at_start(pattern[1:]) if one.inverse else pattern)


def _add_starts_with(checks: CaseChecks, one: PromptfooAssertion) -> None:
    if not isinstance(one.value, str):
        raise NotImportableError("starts-with has no text")
    pattern = patterns.escape_literal(one.read_text())
    _add_pattern(checks, patterns.match_not_at_start(pattern) if one.inverse else patterns.match_start(pattern))


def _add_regex(checks: CaseChecks, one: PromptfooAssertion) -> None:
    if not isinstance(one.value, str):
        raise NotImportableError("regex has no text")
    pattern = one.read_text()
    checks.untrusted_patterns.append(pattern)
    _add_pattern(checks, patterns.match_absence(pattern) if one.inverse else pattern)


def _add_latency(checks: CaseChecks, one: PromptfooAssertion) -> None:
    limit = one.threshold
    if one.inverse or isinstance(limit, bool) or not isinstance(limit, int | float) or limit <= 0:
        raise NotImportableError("not-latency expects slow responses" if one.inverse else "latency has no threshold")
    _limit_latency(checks, int(limit) if limit == int(limit) else limit)


def _limit_latency(checks: CaseChecks, limit: float) -> None:
    checks.latency = limit if checks.latency is None else min(limit, checks.latency)


def _add_word_count(checks: CaseChecks, one: PromptfooAssertion) -> None:
    least, most = _parse_bounds(one)
    if one.inverse:
        raise NotImportableError("not-word-count has no equivalent")
    if max(least, most or 0) > _MAX_WORD_COUNT:
        raise NotImportableError(f"word-count of more than {_MAX_WORD_COUNT:,}")
    _add_pattern(checks, patterns.match_word_count(least, most))


def _parse_bounds(one: PromptfooAssertion) -> tuple[int, int | None]:
    value = one.value
    if isinstance(value, dict) and set(value) <= {"min", "max"} and value:
        least, most = value.get("min", 0), value.get("max")
        if _is_whole_number(least) and (most is None or (_is_whole_number(most) and least <= most)):
            return least, most
    elif isinstance(value, str) and re.fullmatch(r"\d{1,6}", value):
        return int(value), int(value)
    elif _is_whole_number(value):
        return value, value
    raise NotImportableError("word-count needs a whole number, or `min` and `max`")


def _is_whole_number(value: JsonValue) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _add_rubric(checks: CaseChecks, one: PromptfooAssertion) -> None:
    value = one.value
    texts = value if one.kind == "g-eval" and isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        raise NotImportableError(f"the value of {one.kind} is not text")
    _add_dimension(checks, one, "\n".join(one.require_text(one.render_value(text)) for text in texts))


def _add_factuality(checks: CaseChecks, one: PromptfooAssertion) -> None:
    _add_dimension(checks, one, f"Nothing in the answer disagrees with this expert answer:\n{one.read_text()}")


def _add_dimension(checks: CaseChecks, one: PromptfooAssertion, criteria: str) -> None:
    if one.inverse:
        raise NotImportableError(f"not-{one.kind} reverses a rubric, which is not supported")
    taken = {str(part["dimension"]) for part in checks.rubric if isinstance(part, dict)}
    name = one.metric or one.kind
    name = next(found for found in (name, *(f"{name} {number}" for number in range(2, 9_999))) if found not in taken)
    checks.rubric.append({"dimension": name, "maxScore": 1, "criteria": criteria})
    checks.graded_types.add(one.kind)


_CONVERTERS: Final[Mapping[str, Callable[[CaseChecks, PromptfooAssertion], None]]] = {
    "contains": _add_contains,
    "contains-any": _add_contains_any,
    "contains-all": _add_contains_all,
    "icontains": _add_icontains,
    "icontains-any": _add_icontains_any,
    "icontains-all": _add_icontains_all,
    "equals": _add_equals,
    "starts-with": _add_starts_with,
    "regex": _add_regex,
    "word-count": _add_word_count,
    "latency": _add_latency,
    "llm-rubric": _add_rubric,
    "g-eval": _add_rubric,
    "model-graded-closedqa": _add_rubric,
    "factuality": _add_factuality,
    "model-graded-factuality": _add_factuality,
}
