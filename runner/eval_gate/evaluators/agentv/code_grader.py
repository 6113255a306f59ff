"""A command grades as today's AgentV asks it: JSON on stdin; a score, assertions or an exit code as the answer.

Source: AgentV 4.42.4, "Code Graders". What looks like JSON and is none has not judged, nor has a command that breaks:
errors of the evaluation, where AgentV makes 1 of the first (it exits with 0) and 0 of the second.
"""

from __future__ import annotations

from eval_gate.evaluators.agentv.code_judge import (
    beginning,
    broken,
    command_text,
    limit_of,
    other_scale,
    run_command,
    trouble_of,
)
from eval_gate.evaluators.base import Evaluation, EvaluationContext, EvaluatorError
from eval_gate.evaluators.judge.judge import brief_of
from eval_gate.evaluators.judge.reply import MAX_ITEM, number, on_scale, text_of
from eval_gate.evaluators.trace import made_calls, messages_of, trace_summary
from eval_gate.evaluators.weighing import is_full
from eval_gate.evaluators.wording import cut, items, score_text
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import OutputMessage, Response
from eval_gate.model.specs.evaluator import CodeGrader
from eval_gate.process.run import FinishedProgram
from eval_gate.text.foreign.json import ForeignJsonError, one_score, read_foreign


async def code_grader(spec: CodeGrader, context: EvaluationContext) -> Evaluation:
    """The command's score. Raises EvaluatorError when it gives none."""
    finished = await run_command(spec.name, spec, _material(spec, context), context)
    trouble = None if _says_no(finished) else trouble_of(finished, limit_of(spec))
    if trouble is not None:
        raise broken(spec.name, spec, trouble, context)
    score, hits, misses = _verdict(spec, finished)
    error = f"{cut(spec.name)}: score {score_text(score)}{f', {cut(misses[0], 200)}' if misses else ''}"
    return Evaluation(
        score=score,
        hits=items(hits),
        misses=items(misses),
        error=None if score >= 1.0 else error,
        checks_run=1,
        provider_request={"command": command_text(spec)},
    )


def _says_no(finished: FinishedProgram) -> bool:
    """Whether it failed as a check fails: with an exit code, and nothing but words for people on stdout."""
    silent = not finished.timed_out and not finished.stdout.cut and not finished.stderr.last_words(1)
    return finished.code > 0 and silent and not _words(finished).startswith(("{", "["))


def _words(finished: FinishedProgram) -> str:
    return text_of(finished.stdout.data.decode("utf-8", "replace"), MAX_ITEM) or ""


def _verdict(spec: CodeGrader, finished: FinishedProgram) -> tuple[float, tuple[str, ...], tuple[str, ...]]:
    """The score of an object, of its assertions where it has none, or 1 for words without any."""
    words = _words(finished)
    if finished.code:
        return 0.0, (), (words or finished.ending,)
    if not words.startswith(("{", "[")):
        return 1.0, (words or "exit code 0",), ()
    try:
        found = read_foreign(finished.stdout.data.decode("utf-8-sig"), pairs=one_score)
    except (UnicodeDecodeError, ForeignJsonError) as error:
        what = error if isinstance(error, ForeignJsonError) else "is not JSON"
        said = f"{cut(spec.name)}: what it printed {what}: {beginning(finished.stdout.data)}"
        raise EvaluatorError(said) from error
    if not isinstance(found, dict):
        raise EvaluatorError(f"{cut(spec.name)}: what it printed is no JSON object: {beginning(finished.stdout.data)}")
    given = found.get("assertions")
    lines = [_line(one) for one in given] if isinstance(given, list) else []
    hits = tuple(text for text, passed in filter(None, lines) if passed)
    misses = tuple(text for text, passed in filter(None, lines) if not passed)
    score = number(found.get("score"))
    if score is None and (hits or misses):
        score = len(hits) / (len(hits) + len(misses))
    if score is None:
        said = f"{cut(spec.name)}: neither `score` nor `assertions`: {beginning(finished.stdout.data)}"
        raise EvaluatorError(said)
    held = on_scale(score, 1)
    if held is None:
        raise EvaluatorError(f"{cut(spec.name)}: {other_scale(score)}: {beginning(finished.stdout.data)}")
    return (1.0 if is_full(held) else held), hits, misses


def _line(value: JsonValue) -> tuple[str, bool] | None:
    if not isinstance(value, dict):
        return None
    text = text_of(value.get("text"), MAX_ITEM)
    return None if text is None else (text, bool(value.get("passed")))


def _material(spec: CodeGrader, context: EvaluationContext) -> JsonValue:
    """What the command is told, all names in snake_case."""
    brief, response = brief_of(context), context.response
    usage = response.usage
    return {
        "criteria": brief.expected_outcome,
        "expected_output": brief.expected_messages or [],
        "output": response.text,
        "messages": _messages(response),
        "input_files": list(brief.input_files),
        "input": brief.input_messages,
        "metadata": brief.metadata,
        "trace": _trace(response),
        "trace_summary": _summary(response),
        "token_usage": None
        if usage is None
        else {"input": usage.input_tokens or 0, "output": usage.output_tokens or 0},
        "cost_usd": response.cost_usd,
        "duration_ms": response.duration_ms,
        "start_time": None,
        "end_time": None,
        "file_changes": None,
        "workspace_path": None,
        "config": spec.config,
    }


def _messages(response: Response) -> list[JsonValue]:
    """The target's messages; a bare text is one of the assistant."""
    found = messages_of(response)
    if found is None:
        return [{"role": "assistant", "content": response.text}]
    return [_message(message) for message in found]


def _message(message: OutputMessage) -> JsonValue:
    calls: list[JsonValue] = [call.model_dump(exclude_none=True) for call in message.tool_calls]
    said: dict[str, JsonValue] = {
        "role": message.role,
        "name": message.name,
        "content": message.content,
        "tool_calls": calls or None,
        "metadata": message.metadata,
    }
    return {key: value for key, value in said.items() if value is not None}


def _summary(response: Response) -> JsonValue:
    summary = trace_summary(response)
    if summary is None:
        return None
    return {
        "event_count": summary.event_count,
        "tool_calls": dict(summary.tool_calls_by_name),
        "error_count": summary.error_count,
    }


def _trace(response: Response) -> JsonValue:
    summary = _summary(response)
    if made_calls(response) is None or not isinstance(summary, dict):
        return None
    return {"messages": _messages(response), **summary}
