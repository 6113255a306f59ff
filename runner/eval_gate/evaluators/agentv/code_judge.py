"""Evaluators that run a command: JSON on stdin, a score on stdout.

Source: agentv behaviour 6.2 (`evaluate_code_judge`), and AgentV 4.42.4, "Code Graders" (`evaluate_code_grader`: the
score, the assertions or the exit code). A command that breaks is an evaluation error, never a score of 0; so is output
that begins like JSON and is invalid, which AgentV 4 scores as 1 if the exit code is 0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from eval_gate.evaluators.base import EvaluationContext, EvaluatorError, EvaluatorScore
from eval_gate.evaluators.judge.llm_judge import get_brief, score_from_verdict
from eval_gate.evaluators.judge.reply import (
    MAX_ITEM,
    JudgeVerdict,
    fit_to_scale,
    format_raw_score,
    iter_texts,
    parse_number,
    parse_text,
)
from eval_gate.evaluators.trace import (
    find_messages,
    list_calls,
    message_to_json,
    messages_to_json,
    summarize_trace,
    summary_to_json,
    trace_to_json,
)
from eval_gate.evaluators.weighted_mean import is_full
from eval_gate.evaluators.wording import format_score, limit_items, truncate
from eval_gate.model import limits
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Response
from eval_gate.model.specs.evaluator import CodeAggregator, CodeGrader, CodeJudge
from eval_gate.process.misplaced_files import find_path_hint
from eval_gate.process.run import Command, FinishedProgram, ProcessError, run
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, parse_untrusted_json, require_single_score
from eval_gate.text.untrusted.surrogates import to_well_formed

TIME_LIMIT_S: Final = limits.GRADER_S
MAX_OUTPUT: Final = limits.GRADER_BYTES
MAX_ERRORS: Final = 64_000
WORKSPACE_VARIABLE: Final = "AGENTV_WORKSPACE_PATH"
MAX_QUOTED: Final = 200
"""Characters of invalid output, or of stderr, in a message."""


async def evaluate_code_judge(spec: CodeJudge, context: EvaluationContext) -> EvaluatorScore:
    """Score the response with the command of a `CodeJudge`. Raises EvaluatorError if the command returns no score."""
    verdict = await run_judge_command(spec.name, spec, _build_judge_input(context), context)
    return score_from_verdict(spec.name, verdict, {"command": format_command(spec)})


async def evaluate_code_grader(spec: CodeGrader, context: EvaluationContext) -> EvaluatorScore:
    """Score the response with the command of a `CodeGrader`. Raises EvaluatorError if the command returns no score."""
    finished = await _run_command(spec.name, spec, _build_grader_input(spec, context), context)
    if not _is_plain_failure(finished):
        _raise_failure(spec.name, spec, finished, context)
    with _name_verdict_problem(spec.name, finished):
        score, hits, misses = _parse_grader_verdict(finished)
    error = f"{truncate(spec.name)}: score {format_score(score)}{f', {truncate(misses[0], 200)}' if misses else ''}"
    return EvaluatorScore(
        score=score,
        hits=limit_items(hits),
        misses=limit_items(misses),
        error=None if score >= 1.0 else error,
        checks_run=1,
        provider_request={"command": format_command(spec)},
    )


def _is_plain_failure(finished: FinishedProgram) -> bool:
    """Whether it failed as a check does: with an exit code, and only text for people on stdout."""
    silent = not finished.timed_out and not finished.stdout.is_truncated and not finished.stderr.format_last_line(1)
    return finished.code > 0 and silent and not _read_plain_output(finished).startswith(("{", "["))


def _read_plain_output(finished: FinishedProgram) -> str:
    return parse_text(finished.stdout.data.decode("utf-8", "replace"), MAX_ITEM) or ""


def _parse_grader_verdict(finished: FinishedProgram) -> tuple[float, tuple[str, ...], tuple[str, ...]]:
    """Parse a grader's output into score, hits and misses: words or nothing count as 1, a failing exit code as 0."""
    words = _read_plain_output(finished)
    if finished.code:
        return 0.0, (), (words or finished.ending,)
    if not words.startswith(("{", "[")):
        return 1.0, (words or "exit code 0",), ()
    verdict = _parse_object(finished)
    assertions = verdict.get("assertions")
    lines = [_parse_assertion(one) for one in assertions] if isinstance(assertions, list) else []
    hits = tuple(text for text, passed in filter(None, lines) if passed)
    misses = tuple(text for text, passed in filter(None, lines) if not passed)
    score = parse_number(verdict.get("score"))
    if score is None and (hits or misses):
        score = len(hits) / (len(hits) + len(misses))
    if score is None:
        raise _NoVerdictError("its output has neither `score` nor `assertions`")
    return _fit_score(score), hits, misses


def _parse_assertion(value: JsonValue) -> tuple[str, bool] | None:
    if not isinstance(value, dict):
        return None
    text = parse_text(value.get("text"), MAX_ITEM)
    return None if text is None else (text, bool(value.get("passed")))


def _build_grader_input(spec: CodeGrader, context: EvaluationContext) -> JsonValue:
    brief, response, workspace = get_brief(context), context.response, context.workspace
    usage = response.usage
    return {
        "criteria": brief.expected_outcome,
        "expected_output": brief.expected_messages or [],
        "output": response.text,
        "messages": _build_messages(response),
        "input_files": list(brief.input_files),
        "input": brief.input_messages,
        "metadata": brief.metadata,
        "trace": _build_trace(response),
        "trace_summary": _build_trace_summary(response),
        "token_usage": None
        if usage is None
        else {"input": usage.input_tokens or 0, "output": usage.output_tokens or 0},
        "cost_usd": response.cost_usd,
        "duration_ms": response.duration_ms,
        "start_time": None,
        "end_time": None,
        "file_changes": context.get_changes(spec.name),
        "workspace_path": None if workspace is None else workspace.path,
        "config": spec.config,
    }


def _build_messages(response: Response) -> list[JsonValue]:
    """Return the messages of the target as JSON; a bare text becomes one assistant message."""
    messages = find_messages(response)
    if messages is None:
        return [{"role": "assistant", "content": response.text}]
    return [message_to_json(message, snake_case=True) for message in messages]


def _build_trace_summary(response: Response) -> JsonValue:
    summary = summarize_trace(response)
    if summary is None:
        return None
    return {
        "event_count": summary.event_count,
        "tool_calls": dict(summary.tool_calls_by_name),
        "error_count": summary.error_count,
    }


def _build_trace(response: Response) -> JsonValue:
    summary = _build_trace_summary(response)
    if list_calls(response) is None or not isinstance(summary, dict):
        return None
    return {"messages": _build_messages(response), **summary}


def format_command(spec: CodeJudge | CodeAggregator) -> str:
    """Format the command of an evaluator in one line for people."""
    return truncate(_join_command(spec), 2 * MAX_QUOTED)


def _join_command(spec: CodeJudge | CodeAggregator) -> str:
    return spec.command if isinstance(spec.command, str) else " ".join(spec.command)


async def run_judge_command(
    name: str, spec: CodeJudge | CodeAggregator, material: JsonValue, context: EvaluationContext
) -> JudgeVerdict:
    """Run the command with the material on stdin. Raises EvaluatorError when it prints no verdict, for any reason."""
    finished = await _run_command(name, spec, material, context)
    _raise_failure(name, spec, finished, context)
    with _name_verdict_problem(name, finished):
        return _parse_judge_verdict(_parse_object(finished))


def _get_time_limit(spec: CodeJudge | CodeAggregator) -> float:
    return (spec.timeout_seconds if isinstance(spec, CodeJudge) else None) or TIME_LIMIT_S


async def _run_command(
    name: str, spec: CodeJudge | CodeAggregator, material: JsonValue, context: EvaluationContext
) -> FinishedProgram:
    """Run a command with `material` as JSON on its input. Raises EvaluatorError if it cannot be started."""
    place = {} if context.workspace is None else {WORKSPACE_VARIABLE: context.workspace.path}
    command = Command(
        spec.command,
        Path(spec.cwd),
        {**context.environment, **place},
        stdin=json.dumps(material).encode(),
        timeout_s=_get_time_limit(spec),
        max_output=MAX_OUTPUT,
        max_errors=MAX_ERRORS,
        end_when_cut=True,
        mask=context.mask,
    )
    try:
        return await run(command)
    except ProcessError as error:
        hint = find_path_hint(spec.command, Path(spec.cwd))
        raise EvaluatorError(f"{truncate(name)}: the code evaluator could not be run: {error}", hint=hint) from error


def _raise_failure(
    name: str, spec: CodeJudge | CodeAggregator, finished: FinishedProgram, context: EvaluationContext
) -> None:
    """Raise an error if what the command printed does not count; name a withheld variable that may be the cause."""
    words = finished.stderr.format_last_line(MAX_QUOTED)
    ending = f": {words}" if words else ""
    if finished.timed_out:
        trouble = f"no result within {_get_time_limit(spec):g} s{ending}"
    elif finished.stdout.is_truncated:
        trouble = f"it printed more than {MAX_OUTPUT:,} bytes"
    elif finished.code:
        trouble = f"{finished.ending}{ending}"
    else:
        return
    variable_hint = context.withheld_variables.find_hint(_join_command(spec), trouble)
    message = f"{truncate(name)}: Code evaluator failed: {trouble}{f'; {variable_hint}' if variable_hint else ''}"
    raise EvaluatorError(message, hint=find_path_hint(spec.command, Path(spec.cwd)))


class _NoVerdictError(Exception):
    """Output without a valid verdict; the message says why."""


@contextmanager
def _name_verdict_problem(name: str, finished: FinishedProgram) -> Iterator[None]:
    """Raise EvaluatorError for output without a verdict, with its beginning."""
    try:
        yield
    except _NoVerdictError as error:
        text = " ".join(to_well_formed(finished.stdout.data[: MAX_QUOTED * 8].decode("utf-8", "replace")).split())
        raise EvaluatorError(f"{truncate(name)}: {error}: {truncate(text, MAX_QUOTED) or '(nothing)'}") from error


def _parse_object(finished: FinishedProgram) -> dict[str, JsonValue]:
    """Parse the single JSON object that the command printed."""
    try:
        value = parse_untrusted_json(finished.stdout.data.decode("utf-8-sig"), pairs=require_single_score)
    except (UnicodeDecodeError, UntrustedJsonError) as error:
        what = error if isinstance(error, UntrustedJsonError) else "is not JSON"
        raise _NoVerdictError(f"its output {what}") from error
    if not isinstance(value, dict):
        raise _NoVerdictError("its output is not a JSON object")
    return value


def _fit_score(score: float) -> float:
    held = fit_to_scale(score, 1)
    if held is None:
        raise _NoVerdictError(f"the score {format_raw_score(score)} is outside of the scale (0 to 1)")
    return 1.0 if is_full(held) else held


def _parse_judge_verdict(verdict: dict[str, JsonValue]) -> JudgeVerdict:
    score = parse_number(verdict.get("score"))
    if score is None:
        raise _NoVerdictError("`score` is missing or not a number")
    return JudgeVerdict(
        _fit_score(score),
        limit_items(iter_texts(verdict.get("hits"))),
        limit_items(iter_texts(verdict.get("misses"))),
        parse_text(verdict.get("reasoning")),
    )


def _build_judge_input(context: EvaluationContext) -> JsonValue:
    """Build a judge command's input; AgentV has names in snake_case at the top level and in camelCase below."""
    brief, response = get_brief(context), context.response
    return {
        "question": brief.question,
        "expected_outcome": brief.expected_outcome,
        "expected_messages": brief.expected_messages,
        "reference_answer": brief.reference_answer,
        "candidate_answer": response.text,
        "output_messages": messages_to_json(find_messages(response)),
        "guideline_files": list(brief.guideline_files),
        "input_files": list(brief.input_files),
        "input_messages": brief.input_messages,
        "candidate_trace": trace_to_json(response.trace),
        "candidate_trace_summary": summary_to_json(summarize_trace(response)),
    }
