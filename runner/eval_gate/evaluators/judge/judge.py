"""A model grades the answer, and how a judge is asked until it gives a verdict that can be read.

Source: agentv evaluation spec, "LLM Judge Evaluator JSON Contract", "LLM judge may consume trace"; behaviour 6.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeVar

from eval_gate.evaluators.base import Evaluation, EvaluationContext, EvaluatorError, Judge, JudgeReply
from eval_gate.evaluators.judge.prompt import VERDICT_SCHEMA, Prompts, default_prompt, json_text, own_prompt
from eval_gate.evaluators.judge.reply import JudgeVerdict, read_verdict
from eval_gate.evaluators.trace import call_lines, shown_messages, summary_json, trace_summary
from eval_gate.evaluators.wording import cut, names, score_text
from eval_gate.model.base import JsonValue
from eval_gate.model.case import Brief
from eval_gate.model.conversation import Response
from eval_gate.model.specs.evaluator import LlmJudge
from eval_gate.model.usage import Usage, total
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.javascript.strings import compact_json
from eval_gate.text.judge_template import template_problem
from eval_gate.text.turns import flat

MAX_REPLIES: Final = 3
"""A reply that cannot be read is asked for again at most twice."""
MAX_EXCERPT: Final = 300
"""Characters of an unreadable reply that are shown."""

Read = TypeVar("Read")


class JudgeAnswer(FrozenStruct, Generic[Read]):
    """What became of one question: the verdict, None when no reply could be read, and every reply that it took."""

    prompts: Prompts
    verdict: Read | None
    replies: tuple[JudgeReply, ...]

    @property
    def usage(self) -> Usage | None:
        """Tokens over all replies; what no reply says stays unknown."""
        return Usage.total(reply.usage for reply in self.replies)

    @property
    def cost_usd(self) -> float | None:
        """Cost over all replies, as far as it is known."""
        return total(reply.cost_usd for reply in self.replies)

    @property
    def request(self) -> dict[str, JsonValue]:
        """What goes into `evaluatorProviderRequest`: the prompts, the number of replies, the model where known."""
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

    def no_verdict(self, name: str) -> EvaluatorError:
        """Replies nobody could read, where that says nothing about the answer; what they cost is kept."""
        return EvaluatorError(
            f"{self._unread(name)}; the last one: {self._last}", usage=self.usage, cost_usd=self.cost_usd
        )

    def unreadable(self, name: str, checks_run: int = 1) -> Evaluation:
        """The zero that stands for replies nobody could read (AgentV). No warning: the spec wants none."""
        count = len(self.replies)
        return Evaluation(
            score=0.0,
            error=self._unread(name),
            checks_run=checks_run,
            reasoning=f"None of {count} replies held a valid JSON verdict; the last one: {self._last}",
            provider_request=self.request,
            usage=self.usage,
            cost_usd=self.cost_usd,
            warnings=self.prompts.warnings,
        )

    def _unread(self, name: str) -> str:
        return f"{cut(name)}: none of {len(self.replies)} replies of the judge held a valid JSON verdict"

    @property
    def _last(self) -> str:
        return cut(" ".join(self.replies[-1].text[: MAX_EXCERPT * 4].split()), MAX_EXCERPT) or "(empty)"


def judge_of(name: str, context: EvaluationContext, target: str | None = None) -> Judge:
    """Who grades for the evaluator `name`: the target it names, else the default.

    Raises EvaluatorError when there is nobody.
    """
    if target is not None:
        judge = context.judges.get(target)
        if judge is None:
            known = f"; there are {names(sorted(context.judges))}" if context.judges else ""
            raise EvaluatorError(f"{cut(name)}: there is no judge target '{cut(target)}'{known}")
        return judge
    if context.judge is None:
        raise EvaluatorError(
            f"{cut(name)}: no judge is configured: set `judge` in the configuration to a target's name or to "
            "`provider:model`, or `judge_target` at the target that is evaluated"
        )
    return context.judge


async def ask(
    name: str,
    judge: Judge,
    prompts: Prompts,
    read: Callable[[str], Read | None],
    schema: Mapping[str, JsonValue] = VERDICT_SCHEMA,
) -> JudgeAnswer[Read]:
    """Ask until `read` makes something of a reply, three times at most.

    `schema` is the form that the prompts ask for. The last time it is left out: what a model writes when it is held to
    a form may be the very reason why nobody can read it.

    Raises EvaluatorError when the judge cannot be reached: that is never a bad grade.
    """
    replies: list[JudgeReply] = []
    verdict: Read | None = None
    while verdict is None and len(replies) < MAX_REPLIES:
        number = len(replies) + 1
        try:
            replies.append(
                await judge.ask(prompts.system, prompts.again(number), schema if number < MAX_REPLIES else None)
            )
        except EvaluatorError as error:
            raise EvaluatorError(
                f"{cut(name)}: {error}",
                usage=Usage.total(reply.usage for reply in replies),
                cost_usd=total(reply.cost_usd for reply in replies),
            ) from error
        verdict = read(replies[-1].text)
    return JudgeAnswer(prompts, verdict, tuple(replies))


async def llm_judge(spec: LlmJudge, context: EvaluationContext) -> Evaluation:
    """The judge's score. Only 1 passes here; what a gate makes of less is the policy's affair."""
    judge = judge_of(spec.name, context, spec.judge_target)
    prompts = render(spec, brief_of(context), context.response)
    said = said_by(context.response)
    asked = await ask(spec.name, judge, prompts, lambda reply: read_verdict(reply, said))
    if asked.verdict is None:
        return asked.unreadable(spec.name)
    made = of_verdict(spec.name, asked.verdict, asked.request)
    warnings = (*made.warnings, *prompts.warnings)
    return replace(made, usage=asked.usage, cost_usd=asked.cost_usd, warnings=warnings)


def of_verdict(name: str, verdict: JudgeVerdict, request: dict[str, JsonValue]) -> Evaluation:
    """What an evaluator of this name says by the verdict of whoever it asked `request`."""
    what = verdict.misses[0] if verdict.misses else verdict.reasoning
    short = f"{cut(name)}: score {score_text(verdict.score)}{f', {cut(what, 200)}' if what else ''}"
    outside = f"{cut(name)}: the score {verdict.outside} is outside of 0 to 1 and counts as {verdict.score:g}"
    return Evaluation(
        score=verdict.score,
        hits=verdict.hits,
        misses=verdict.misses,
        error=None if verdict.score >= 1.0 else short,
        checks_run=1,
        reasoning=verdict.reasoning,
        provider_request=request,
        warnings=() if verdict.outside is None else (outside,),
    )


def said_by(response: Response) -> str:
    """Everything the target said that a judge may be shown: a verdict in it is none of the judge's own."""
    contents = (message.content for message in response.messages or ())
    return "\n".join((response.text, *(content for content in contents if isinstance(content, str))))


def brief_of(context: EvaluationContext) -> Brief:
    """What the case says to graders; of a format that says nothing more, its messages as one text."""
    if context.case.brief is not None:
        return context.case.brief
    question = flat(context.case.messages)
    return Brief(
        question=question,
        linked_question=question,
        expected_outcome=context.case.description,
        input_messages=[{"role": message.role, "content": message.content} for message in context.case.messages],
    )


def render(spec: LlmJudge, brief: Brief, response: Response) -> Prompts:
    """Both prompts of this evaluator for this response. Raises EvaluatorError for a template without an answer."""
    trace = trace_summary(response) if spec.include_trace else None
    trace_text = None if trace is None else json_text(summary_json(trace))
    values = {
        "candidate_answer": response.text,
        "reference_answer": brief.reference_answer or "",
        "expected_outcome": brief.expected_outcome,
        "question": brief.question,
    }
    if spec.prompt is None:
        return default_prompt(values, trace_text)
    problem = template_problem(spec.prompt)
    if problem is not None:
        raise EvaluatorError(f"{cut(spec.name)}: {problem}")
    values["input_messages"] = json_text(brief.input_messages)
    values["expected_messages"] = json_text(brief.expected_messages)
    values["output_messages"] = json_text(shown_messages(response))
    values["agentv_tool_calls"] = "\n".join(f"- {line}" for line in call_lines(response))
    values["agentv_metadata"] = "" if brief.metadata is None else json_text(brief.metadata)
    values["agentv_metadata_json"] = "" if brief.metadata is None else compact_json(brief.metadata)
    return own_prompt(spec.prompt, values, trace_text)
