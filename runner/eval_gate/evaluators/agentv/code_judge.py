"""A command grades: JSON about case and answer on stdin, a score on stdout.

Source: agentv behaviour 6.2 (`code_judge`), and AgentV 4.42.4, "Code Graders" (`code_grader`: a score, assertions or an
exit code as the answer). A command that breaks has not judged: its exit code, its silence and its chatter are errors of
the evaluation, never a score of 0. Nor has what looks like JSON and is none, of which AgentV 4 makes 1 where it exits
with 0.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from msgspec import structs

from eval_gate.evaluators.base import Evaluation, EvaluationContext, EvaluatorError
from eval_gate.evaluators.judge.judge import brief_of, of_verdict
from eval_gate.evaluators.judge.reply import MAX_ITEM, JudgeVerdict, number, on_scale, shown_score, text_of, texts_in
from eval_gate.evaluators.trace import made_calls, messages_json, messages_of, summary_json, trace_json, trace_summary
from eval_gate.evaluators.weighing import is_full
from eval_gate.evaluators.wording import cut, items, score_text
from eval_gate.model import limits
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import OutputCall, OutputMessage, Response
from eval_gate.model.specs.evaluator import CodeAggregator, CodeGrader, CodeJudge
from eval_gate.process.run import Command, FinishedProgram, ProcessError, run
from eval_gate.text.foreign.json import ForeignJsonError, one_score, read_foreign
from eval_gate.text.foreign.well_formed import well_formed

TIME_LIMIT_S: Final = limits.GRADER_S
"""For a command whose evaluator sets no limit."""
MAX_OUTPUT: Final = limits.GRADER_BYTES
"""Bytes of the verdict."""
MAX_ERRORS: Final = 64_000
MAX_QUOTED: Final = 200
"""Characters of what is no verdict that are shown, and of stderr."""


async def code_judge(spec: CodeJudge, context: EvaluationContext) -> Evaluation:
    """The command's score. Raises EvaluatorError when it gives none."""
    verdict = await ask_command(spec.name, spec, _judge_input(context), context)
    return of_verdict(spec.name, verdict, {"command": command_text(spec)})


async def code_grader(spec: CodeGrader, context: EvaluationContext) -> Evaluation:
    """The command's score. Raises EvaluatorError when it gives none."""
    finished = await run_command(spec.name, spec, _grader_input(spec, context), context)
    trouble = None if _says_no(finished) else trouble_of(finished, limit_of(spec))
    if trouble is not None:
        raise broken(spec.name, spec, trouble, context)
    score, hits, misses = _grader_verdict(spec, finished)
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


def _grader_verdict(spec: CodeGrader, finished: FinishedProgram) -> tuple[float, tuple[str, ...], tuple[str, ...]]:
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


def _grader_input(spec: CodeGrader, context: EvaluationContext) -> JsonValue:
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


def _given(call: OutputCall) -> JsonValue:
    return {name: value for name, value in structs.asdict(call).items() if value is not None}


def _message(message: OutputMessage) -> JsonValue:
    calls: list[JsonValue] = [_given(call) for call in message.tool_calls]
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


def command_text(spec: CodeJudge | CodeAggregator) -> str:
    """The command in one line, for people."""
    return cut(_shell_text(spec), 2 * MAX_QUOTED)


def _shell_text(spec: CodeJudge | CodeAggregator) -> str:
    """All words of the command, in which a shell may find names of variables."""
    return spec.command if isinstance(spec.command, str) else " ".join(spec.command)


async def ask_command(
    name: str, spec: CodeJudge | CodeAggregator, material: JsonValue, context: EvaluationContext
) -> JudgeVerdict:
    """Run the command with the material on stdin, and read its verdict.

    Raises EvaluatorError when it cannot be started, fails, takes too long, or prints no verdict.
    """
    finished = await run_command(name, spec, material, context)
    trouble = trouble_of(finished, limit_of(spec))
    if trouble is not None:
        raise broken(name, spec, trouble, context)
    try:
        return _judge_verdict(_object(finished.stdout.data))
    except _NoVerdictError as error:
        raise EvaluatorError(f"{cut(name)}: {error}: {beginning(finished.stdout.data)}") from error


def limit_of(spec: CodeJudge | CodeAggregator) -> float:
    """The seconds that the command may take."""
    return (spec.timeout_seconds if isinstance(spec, CodeJudge) else None) or TIME_LIMIT_S


def broken(name: str, spec: CodeJudge | CodeAggregator, trouble: str, context: EvaluationContext) -> EvaluatorError:
    """The command came to no verdict; with the variable that was kept from it, where that may be why."""
    missing = context.withheld.needed(_shell_text(spec), trouble)
    return EvaluatorError(f"{cut(name)}: Code evaluator failed: {trouble}{f'; {missing}' if missing else ''}")


async def run_command(
    name: str, spec: CodeJudge | CodeAggregator, material: JsonValue, context: EvaluationContext
) -> FinishedProgram:
    """What the command did with the material on stdin. Raises EvaluatorError when it cannot be started."""
    command = Command(
        spec.command,
        Path(spec.cwd),
        context.environment,
        stdin=json.dumps(material).encode(),
        timeout_s=limit_of(spec),
        max_output=MAX_OUTPUT,
        max_errors=MAX_ERRORS,
        end_when_cut=True,
        mask=context.mask,
    )
    try:
        return await run(command)
    except ProcessError as error:
        raise EvaluatorError(f"{cut(name)}: the code evaluator could not be run: {error}") from error


def trouble_of(finished: FinishedProgram, limit_s: float) -> str | None:
    """Why what it printed does not count; None when it does."""
    words = finished.stderr.last_words(MAX_QUOTED)
    said = f": {words}" if words else ""
    if finished.timed_out:
        return f"no verdict within {limit_s:g} s{said}"
    if finished.stdout.cut:
        return f"it printed more than {MAX_OUTPUT:,} bytes"
    if finished.code:
        return f"{finished.ending}{said}"
    return None


class _NoVerdictError(Exception):
    """What was printed is no verdict; the message says in which way."""


def _object(printed: bytes) -> dict[str, JsonValue]:
    """The one JSON object that was printed."""
    try:
        value = read_foreign(printed.decode("utf-8-sig"), pairs=one_score)
    except UnicodeDecodeError as error:
        raise _NoVerdictError("what it printed is not JSON") from error
    except ForeignJsonError as error:
        raise _NoVerdictError(f"what it printed {error}") from error
    if not isinstance(value, dict):
        raise _NoVerdictError("what it printed is no JSON object")
    return value


def _judge_verdict(found: dict[str, JsonValue]) -> JudgeVerdict:
    score = number(found.get("score"))
    if score is None:
        raise _NoVerdictError("`score` is missing or no number")
    held = on_scale(score, 1)
    if held is None:
        raise _NoVerdictError(other_scale(score))
    return JudgeVerdict(
        1.0 if is_full(held) else held,
        items(texts_in(found.get("hits"))),
        items(texts_in(found.get("misses"))),
        text_of(found.get("reasoning")),
    )


def other_scale(score: float) -> str:
    """What is wrong with a score that is outside of 0 to 1."""
    return f"the score {shown_score(score)} is outside of the scale, which is 0 to 1"


def beginning(printed: bytes) -> str:
    """The first words of what was printed."""
    text = " ".join(well_formed(printed[: MAX_QUOTED * 8].decode("utf-8", "replace")).split())
    return cut(text, MAX_QUOTED) or "(nothing)"


def _judge_input(context: EvaluationContext) -> JsonValue:
    """What the command is told. Names are snake_case on top and camelCase within, as AgentV has them."""
    brief, response = brief_of(context), context.response
    return {
        "question": brief.question,
        "expected_outcome": brief.expected_outcome,
        "expected_messages": brief.expected_messages,
        "reference_answer": brief.reference_answer,
        "candidate_answer": response.text,
        "output_messages": messages_json(messages_of(response)),
        "guideline_files": list(brief.guideline_files),
        "input_files": list(brief.input_files),
        "input_messages": brief.input_messages,
        "candidate_trace": trace_json(response.trace),
        "candidate_trace_summary": summary_json(trace_summary(response)),
    }
