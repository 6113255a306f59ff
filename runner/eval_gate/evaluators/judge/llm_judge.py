"""Evaluator that asks an LLM judge, with retries until the reply holds a verdict.

Source: agentv evaluation spec, "LLM Judge Evaluator JSON Contract", "LLM judge may consume trace"; behaviour 6.1.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Generic, TypeVar

from eval_gate.evaluators.base import EvaluationContext, EvaluatorError, EvaluatorScore, Judge, JudgeReply
from eval_gate.evaluators.judge.prompt import (
    VERDICT_SCHEMA,
    Prompts,
    build_custom_prompt,
    build_default_prompt,
    format_json,
)
from eval_gate.evaluators.judge.reply import JudgeVerdict, read_verdict
from eval_gate.evaluators.trace import build_prompt_messages, format_calls, summarize_trace, summary_to_json
from eval_gate.evaluators.wording import format_names, format_score, truncate
from eval_gate.model.base import JsonValue
from eval_gate.model.case import CaseBrief
from eval_gate.model.conversation import Response
from eval_gate.model.specs.evaluator import LlmJudge
from eval_gate.model.usage import Usage, add_up
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.javascript.strings import dump_compact_json
from eval_gate.text.judge_template import FILE_CHANGES, find_template_problem
from eval_gate.text.turns import flatten_messages

MAX_REPLIES: Final = 3
"""Maximum requests until a reply can be read."""
MAX_EXCERPT: Final = 300
"""Characters of an unreadable reply in a message."""

VerdictT = TypeVar("VerdictT")


class JudgeExchange(FrozenStruct, Generic[VerdictT]):
    """One request to a judge with all its replies; `verdict` is None when no reply could be parsed."""

    prompts: Prompts
    verdict: VerdictT | None
    replies: tuple[JudgeReply, ...]

    @property
    def usage(self) -> Usage | None:
        """Tokens of all replies; unknown if no reply has them."""
        return Usage.add_up(reply.usage for reply in self.replies)

    @property
    def cost_usd(self) -> float | None:
        """Cost over all replies, as far as it is known."""
        return add_up(reply.cost_usd for reply in self.replies)

    @property
    def request(self) -> dict[str, JsonValue]:
        """Build `evaluatorProviderRequest`: the prompts, the number of replies, and the model if known."""
        request: dict[str, JsonValue] = {
            "systemPrompt": self.prompts.system,
            "userPrompt": self.prompts.user,
            "replies": len(self.replies),
        }
        if self.replies[-1].model is not None:
            request["model"] = self.replies[-1].model
        if self.verdict is None:
            request["judgeParseFailed"] = True
        return request

    def build_error(self, failure: str) -> EvaluatorError:
        """Build the error that this failure of the replies is, with the last of them, and their usage and cost."""
        message = f"{failure}; the last reply: {self._last_excerpt}"
        return EvaluatorError(message, usage=self.usage, cost_usd=self.cost_usd)

    def to_zero_score(self, name: str, checks_run: int = 1) -> EvaluatorScore:
        """Build the score of 0 that AgentV defines for unreadable replies; it asks for no warning about them."""
        count = len(self.replies)
        return EvaluatorScore(
            score=0.0,
            error=self.describe_failure(name),
            checks_run=checks_run,
            reasoning=f"None of {count} replies held a valid JSON verdict; the last reply: {self._last_excerpt}",
            provider_request=self.request,
            usage=self.usage,
            cost_usd=self.cost_usd,
            warnings=self.prompts.warnings,
        )

    def describe_failure(self, name: str) -> str:
        """Say that no reply could be parsed; `name` is the evaluator."""
        return f"{truncate(name)}: none of {len(self.replies)} replies of the judge held a valid JSON verdict"

    @property
    def _last_excerpt(self) -> str:
        return truncate(" ".join(self.replies[-1].text[: MAX_EXCERPT * 4].split()), MAX_EXCERPT) or "(empty)"


def get_judge(name: str, context: EvaluationContext, target: str | None = None) -> Judge:
    """Find the target that the evaluator `name` names, else the default. Raises EvaluatorError without one."""
    if target is not None:
        judge = context.judges.get(target)
        if judge is None:
            suggestion = f"; known: {format_names(sorted(context.judges))}" if context.judges else ""
            raise EvaluatorError(f"{truncate(name)}: unknown judge target '{truncate(target)}'{suggestion}")
        return judge
    if context.judge is None:
        raise EvaluatorError(
            f"{truncate(name)}: no LLM judge is configured: set `judge` in the configuration to a target's name or to "
            "`provider:model`, or `judge_target` at the target that is evaluated"
        )
    return context.judge


async def ask_judge(
    name: str,
    judge: Judge,
    prompts: Prompts,
    read: Callable[[str], VerdictT | None],
    schema: Mapping[str, JsonValue] = VERDICT_SCHEMA,
) -> JudgeExchange[VerdictT]:
    """Ask a judge until `read` accepts a reply, three times at most; `schema` as for `ask_until_valid`.

    Raises EvaluatorError when the judge cannot be reached: that is never a bad grade.
    """
    try:
        return await ask_until_valid(judge.ask, prompts, read, schema, MAX_REPLIES)
    except EvaluatorError as error:
        raise error.add_prefix(truncate(name)) from error


async def ask_until_valid(
    ask: Callable[[str, str, Mapping[str, JsonValue] | None], Awaitable[JudgeReply]],
    prompts: Prompts,
    read: Callable[[str], VerdictT | None],
    schema: Mapping[str, JsonValue],
    most: int,
) -> JudgeExchange[VerdictT]:
    """Ask a model until `read` accepts a reply, at most `most` times.

    `schema` is the form that the prompts ask for. The last attempt is without it, as the form itself may be why
    a reply cannot be read. Raises EvaluatorError as `ask`, with what the replies cost.
    """
    exchange = JudgeExchange[VerdictT](prompts, None, ())
    while exchange.verdict is None and len(exchange.replies) < most:
        number = len(exchange.replies) + 1
        try:
            reply = await ask(prompts.system, prompts.format_attempt(number), schema if number < most else None)
        except EvaluatorError as error:
            error.usage, error.cost_usd = exchange.usage, exchange.cost_usd
            raise
        exchange = JudgeExchange(prompts, read(reply.text), (*exchange.replies, reply))
    return exchange


async def evaluate_llm_judge(spec: LlmJudge, context: EvaluationContext) -> EvaluatorScore:
    """Score the response with an LLM judge. Only 1 passes; the policy decides about lower scores."""
    judge = get_judge(spec.name, context, spec.judge_target)
    prompts = render_prompts(spec, get_brief(context), context.judged_response, context.get_changes(spec.name))
    target_text = collect_target_text(context)
    outcome = await ask_judge(spec.name, judge, prompts, lambda reply: read_verdict(reply, target_text))
    if outcome.verdict is None:
        return outcome.to_zero_score(spec.name)
    score = score_from_verdict(spec.name, outcome.verdict, outcome.request)
    warnings = (*score.warnings, *prompts.warnings)
    return replace(score, usage=outcome.usage, cost_usd=outcome.cost_usd, warnings=warnings)


def score_from_verdict(name: str, verdict: JudgeVerdict, request: dict[str, JsonValue]) -> EvaluatorScore:
    """Build the score of the evaluator `name` from the verdict in reply to `request`."""
    what = verdict.misses[0] if verdict.misses else verdict.reasoning
    short = f"{truncate(name)}: score {format_score(verdict.score)}{f', {truncate(what, 200)}' if what else ''}"
    outside = f"{truncate(name)}: the score {verdict.raw_score} is outside of 0 to 1 and counts as {verdict.score:g}"
    return EvaluatorScore(
        score=verdict.score,
        hits=verdict.hits,
        misses=verdict.misses,
        error=None if verdict.score >= 1.0 else short,
        checks_run=1,
        reasoning=verdict.reasoning,
        provider_request=request,
        warnings=() if verdict.raw_score is None else (outside,),
    )


def collect_target_text(context: EvaluationContext) -> str:
    """Collect all text of the target that a judge may see: a verdict in it is not the judge's own."""
    response = context.response
    contents = (message.content for message in response.messages or ())
    texts = (content for content in contents if isinstance(content, str))
    return "\n".join((response.text, *texts, context.transcript))


def get_brief(context: EvaluationContext) -> CaseBrief:
    """Return the brief of the case; a format that has none gets one from the messages, joined into one text."""
    if context.case.brief is not None:
        return context.case.brief
    question = flatten_messages(context.case.messages)
    return CaseBrief(
        question=question,
        linked_question=question,
        expected_outcome=context.case.description,
        input_messages=[{"role": message.role, "content": message.content} for message in context.case.messages],
    )


def render_prompts(spec: LlmJudge, brief: CaseBrief, response: Response, changes: str | None = None) -> Prompts:
    """Build the prompts for this response and the workspace `changes`. Raises EvaluatorError for a bad template."""
    trace = summarize_trace(response) if spec.include_trace else None
    trace_text = None if trace is None else format_json(summary_to_json(trace))
    values = {
        "candidate_answer": response.text,
        "reference_answer": brief.reference_answer or "",
        "expected_outcome": brief.expected_outcome,
        "question": brief.question,
    }
    if spec.prompt is None:
        return build_default_prompt(values, trace_text, changes)
    problem = find_template_problem(spec.prompt)
    if problem is not None:
        raise EvaluatorError(f"{truncate(spec.name)}: {problem}")
    values["input_messages"] = format_json(brief.input_messages)
    values["expected_messages"] = format_json(brief.expected_messages)
    values["output_messages"] = format_json(build_prompt_messages(response))
    values["agentv_tool_calls"] = "\n".join(f"- {line}" for line in format_calls(response))
    values["agentv_metadata"] = "" if brief.metadata is None else format_json(brief.metadata)
    values["agentv_metadata_json"] = "" if brief.metadata is None else dump_compact_json(brief.metadata)
    values[FILE_CHANGES] = changes or ""
    return build_custom_prompt(spec.prompt, values, trace_text)
