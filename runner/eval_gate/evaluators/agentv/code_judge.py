"""A command grades: JSON about case and answer on stdin, a score on stdout.

Source: agentv behaviour 6.2. A command that breaks has not judged: its exit code, its silence and its chatter are
errors of the evaluation, never a score of 0.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from eval_gate.evaluators.base import Evaluation, EvaluationContext, EvaluatorError
from eval_gate.evaluators.judge.judge import brief_of, of_verdict
from eval_gate.evaluators.judge.reply import JudgeVerdict, number, on_scale, shown_score, text_of, texts_in
from eval_gate.evaluators.trace import messages_json, messages_of, summary_json, trace_json, trace_summary
from eval_gate.evaluators.weighing import is_full
from eval_gate.evaluators.wording import cut, items
from eval_gate.model import limits
from eval_gate.model.base import JsonValue
from eval_gate.model.specs.evaluator import CodeAggregator, CodeJudge
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
    verdict = await ask_command(spec.name, spec, _material(context), context)
    return of_verdict(spec.name, verdict, {"command": command_text(spec)})


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
        return _verdict(_object(finished.stdout.data))
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


def _verdict(found: dict[str, JsonValue]) -> JudgeVerdict:
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


def _material(context: EvaluationContext) -> JsonValue:
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
