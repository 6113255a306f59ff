"""Azure AI Evaluation's results: the `output_path` of `evaluate()`, or `evaluation_results.json` in that folder.

A row has `inputs.X`, what the target returned as `outputs.X`, and `outputs.EVALUATOR.KEY`. An evaluator with a
threshold says pass or fail in `KEY_result`. One that broke leaves all of its keys empty, and so does a target without a
response.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from eval_gate.external_results.chat_turns import format_content
from eval_gate.external_results.json_streaming import iter_records, open_document
from eval_gate.external_results.records import Fields
from eval_gate.external_results.result_rows import FileFacts, ResultRow, RowPlace, RowScore, parse_number, to_text
from eval_gate.external_results.statuses import (
    Meaning,
    PromptedCase,
    build_prompted_row,
    build_score,
    end_execution,
    let_verdicts_decide,
    parse_tables,
)
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import ToolCall

_SUITE: Final = "evaluation"
STATUSES: Final = parse_tables("""
Azure AI Evaluation 1.18.10: status of an evaluator
  no verdict: -, completed; skipped: skipped
Azure AI Evaluation 1.18.10: result of an evaluator
  passed: pass, true; failed: fail, false; skipped: not_applicable, not applicable
  evaluation error: unknown; no verdict: -
Azure AI Evaluation 1.18.10: passed of an evaluator
  passed: true, pass; failed: false, fail; no verdict: -
""")
_ORDER: Final = (
    *(None, Meaning.EVALUATION_ERROR, Meaning.SKIPPED),
    *(Meaning.FAILED, Meaning.PASSED, Meaning.NO_VERDICT),
)
"""Which of several fields counts: one that is unknown before all others."""
_MINIMUMS: Final = frozenset(
    {"bleu", "coherence", "f1", "fluency", "gleu", "groundedness", "intent_resolution", "meteor", "relevance"}
    | {"response_completeness", "retrieval", "rouge_f1", "rouge_precision", "rouge_recall", "similarity"}
)
"""Scores of Azure's own evaluators that pass from their threshold on."""
_VERDICT_KEYS: Final = ("result", "passed")
_DETAIL_KEYS: Final = ("threshold", "reason", "score", "status", "label", "properties", "details", "model")
"""Parts of a score that are no scores of their own, behind its name and a line."""
_NO_SCORES: Final = ("_tokens", "threshold")
"""How numbers end that score nothing."""
_RESPONSE_KEYS: Final = frozenset({"response", "error", "tool_calls", "line_number"})
"""Inputs that are no part of what is asked: recorded responses, and what the library adds."""


def read_azure(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Yield every row of the data."""
    facts.tool = "Azure AI Evaluation"
    with open_document(file, shown_as) as document:
        for place, row in iter_records(document, shown_as, ("rows",)):
            yield _build_row(row, place)


def _build_row(row: Fields, place: RowPlace) -> ResultRow:
    inputs, outputs, evaluators = row.columns("inputs."), dict[str, JsonValue](), dict[str, dict[str, JsonValue]]()
    for key, value in row.columns("outputs.").items():  # what the target returned, and what each evaluator did
        evaluator, dot, kind = key.partition(".")
        if dot:
            evaluators.setdefault(evaluator, {})[kind] = value
        elif evaluator:
            outputs[evaluator] = value
    prompt_inputs = {key: value for key, value in inputs.items() if key not in _RESPONSE_KEYS}
    prompt = to_text(inputs["query"] if inputs.get("query") is not None else prompt_inputs)
    response = _find_response(inputs, outputs)
    scores = let_verdicts_decide([score for name, values in evaluators.items() for score in _iter_scores(name, values)])
    ending = end_execution(scores, _find_agent_error(inputs, outputs, response, scores))
    name = inputs.get("id")
    case = PromptedCase(_SUITE, prompt, inputs.get("ground_truth"), "inputs.query" if name is None else "inputs.id")
    built = build_prompted_row(case, ending, place, name)
    return built._replace(scores=scores, response=response, calls=tuple(_iter_calls(Fields(inputs), Fields(outputs))))


def _find_agent_error(
    inputs: Mapping[str, JsonValue], outputs: Mapping[str, JsonValue], response: str | None, scores: Sequence[RowScore]
) -> str | None:
    """Return the error in place of a response; having neither is one too, unless an evaluator scored that."""
    if response is not None or not (outputs or "response" in inputs):  # it has one, or no column for one
        return None
    error = to_text(outputs.get("error") or inputs.get("error"))
    return error or ("the target returned no response" if all(one.grader_failed for one in scores) else None)


def _find_response(inputs: Mapping[str, JsonValue], outputs: Mapping[str, JsonValue]) -> str | None:
    """Return the response of the target, else the recorded one, else all that the target returned."""
    for response in (outputs.get("response"), inputs.get("response")):
        if isinstance(response, list):
            messages = [format_content(one) for one in map(Fields, response) if one.get("role") != "tool"]
            return to_text("\n".join(filter(None, messages)))
        if response is not None:
            return to_text(response)
    parts: dict[str, JsonValue] = {key: value for key, value in outputs.items() if value is not None and key != "error"}
    if not parts:
        return None
    return to_text(next(iter(parts.values()))) if len(parts) == 1 else to_text(parts)


def _iter_calls(inputs: Fields, outputs: Fields) -> Iterator[ToolCall]:
    """Yield the tool calls, which are a list of their own or parts of the messages of the response."""
    listed = outputs.members("tool_calls") or inputs.members("tool_calls")
    messages = outputs.members("response") or inputs.members("response")
    parts = [part for one in messages for part in one.members("content") if part.get("type") == "tool_call"]
    yield from (call.call("name", "arguments") for call in listed or parts)


def _iter_scores(name: str, values: Mapping[str, JsonValue]) -> Iterator[RowScore]:
    """Yield the scores of one evaluator: those with a verdict, then other numbers."""
    if all(value is None for value in values.values()):
        yield RowScore(name[:200], None, reason="gave no result: see the log of the run", grader_failed=True)
        return
    covered = set[str]()
    for stem in dict.fromkeys(stem for key in values for stem in _list_stems(key)):
        covered |= {stem, *(_join_key(stem, detail) for detail in (*_VERDICT_KEYS, *_DETAIL_KEYS))}
        yield _build_verdict(name, stem, values)
    for key, value in values.items():
        if key not in covered and not key.endswith(_NO_SCORES) and isinstance(value, bool | int | float):
            yield build_score(STATUSES[2], _format_name(name, key), value)


def _list_stems(key: str) -> Iterator[str]:
    """Yield the name of the score that this key is the verdict of: `f1` of `f1_result`, none of `result` alone."""
    for verdict in _VERDICT_KEYS:
        if key == verdict:
            yield ""
        elif key.endswith(f"_{verdict}"):
            yield key.removesuffix(f"_{verdict}")


def _join_key(stem: str, detail: str) -> str:
    return f"{stem}_{detail}" if stem and detail else stem or detail


def _build_verdict(name: str, stem: str, values: Mapping[str, JsonValue]) -> RowScore:
    """Build the score of a verdict: one that says no says enough, and one without its number could not judge."""

    def get(*details: str) -> JsonValue:
        candidates = (values.get(_join_key(stem, detail)) for detail in details)
        return next((one for one in candidates if one is not None), None)

    value, threshold = parse_number(get("score", "")), parse_number(get("threshold"))
    reason, minimum = to_text(get("reason")), stem.removesuffix("_score") in _MINIMUMS
    if not reason and value is not None:
        reason = f"{value:g}" if threshold is None else f"{value:g}, threshold {threshold:g}"
    score = RowScore(_format_name(name, stem), value, None, reason or None, threshold=threshold, is_minimum=minimum)
    verdicts = [(table, to_text(get(table.field)).lower()) for table in STATUSES]
    table, word = min(verdicts, key=lambda one: _ORDER.index(one[0].find_meaning(one[1])))
    score = table.apply_verdict(score, word)
    if table.find_meaning(word) is Meaning.NO_VERDICT:
        why = reason or "gave no result: see the log of the run"
        return score._replace(reason=why, grader_failed=True, decides=True)
    has_number = {stem, _join_key(stem, "score")} & values.keys()
    if score.passed is not None and has_number and get("score", "") is None:
        return score._replace(passed=None, reason=f"gave no number, but {table.field} {word}", grader_failed=True)
    return score


def _format_name(evaluator: str, key: str) -> str:
    stem = key.removesuffix("_score")
    return evaluator[:200] if stem in {"", evaluator} else f"{evaluator}.{key}"[:200]
