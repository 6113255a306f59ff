"""Score of a conversation: each turn by its own evaluators, the whole by those of the case, both joined into one score.

Source: AgentV 4.42.4, `mode: conversation` (mean, min and max); for tool-forge the first failure decides, as among the
assertions of one case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from eval_gate.evaluators.aggregation import MAX_ERROR, score_evaluators, warn_nothing_checked
from eval_gate.evaluators.base import CaseScore, EvaluationContext
from eval_gate.evaluators.trace import summarize_trace
from eval_gate.evaluators.weighted_mean import compute_weighted_mean, is_full, reaches_pass_score
from eval_gate.evaluators.wording import format_score, truncate
from eval_gate.model.base import JsonValue
from eval_gate.model.case import CaseBrief, CaseTurn, ConversationSpec, TurnAggregation
from eval_gate.model.conversation import Message
from eval_gate.model.execution import EvaluatorResult
from eval_gate.model.usage import Usage, add_up
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.turns import format_content, format_transcript, list_texts

WHOLE: Final = "conversation"
"""Name of the member that scores the whole conversation (AgentV)."""
_NOT_SENT: Final = "not sent, because of an earlier turn"


async def score_turn(context: EvaluationContext, turn: CaseTurn, history: Sequence[Message]) -> CaseScore:
    """Score the response to one turn. Raises EvaluatorError, whose message does not name the turn.

    `history` are the messages that graders see, up to the response and with it. A turn without evaluators has the full
    score.
    """
    if not turn.evaluators:
        return CaseScore(passed=True, score=1.0)
    messages = tuple(history)
    case = replace(
        context.case,
        conversation=None,
        messages=messages,
        evaluators=turn.evaluators,
        brief=context.case.brief and _build_turn_brief(context.case.brief, turn, messages),
    )
    return await score_evaluators(replace(context, case=case, history=messages))


async def score_conversation(
    context: EvaluationContext, turns: Sequence[CaseScore | None], history: Sequence[Message]
) -> CaseScore:
    """Score the whole conversation, and join this score with those of its turns.

    The response of the context is that of all turns: the last text, the calls in order, and sums. A turn that was not
    sent has no score, or is missing at the end. Costs are those of the whole alone. Raises EvaluatorError.
    """
    spec = context.case.conversation
    assert spec is not None
    unbilled = (one and replace(one, judge_usage=None, judge_cost_usd=None) for one in turns)
    turns = (*unbilled, *[None] * (len(spec.turns) - len(turns)))
    if spec.aggregation is TurnAggregation.FIRST_FAILURE:
        return await _score_until_failure(context, spec, turns, history)
    # take the mean, lowest or highest score of the turns and the whole; a turn that was not sent scores 0
    unsent = CaseScore(passed=False, score=0.0, error=_NOT_SENT)
    parts = [_Part(f"turn {number}", unsent if score is None else score) for number, score in enumerate(turns, 1)]
    if context.case.evaluators:
        parts.append(_Part(WHOLE, await _score_whole(context, spec, history)))
    score = _COMBINATIONS[spec.aggregation]([part.score.score for part in parts])
    pass_score = context.case.pass_score
    reached = is_full(score) if pass_score is None else reaches_pass_score(score, pass_score)
    passed = reached and not any(part.is_vetoed for part in parts)
    failure = next((part for part in parts if not part.score.passed), None)
    reason = None if passed or failure is None else failure.describe_failure()
    joined = _join_scores(parts, CaseScore(passed=passed, score=score, error=reason), None)
    return replace(joined, trace_summary=summarize_trace(context.response))


def format_expected(expected: JsonValue) -> str | None:
    """Format the expected response: the content of the last message, as text or as JSON."""
    last = expected[-1] if isinstance(expected, list) and expected else expected
    content = last["content"] if isinstance(last, dict) and "content" in last else last
    return format_content(content) if content else None


def _build_turn_brief(brief: CaseBrief, turn: CaseTurn, window: Sequence[Message]) -> CaseBrief:
    """Build what graders of one turn get: the messages of the window, and the response that the turn expects."""
    newest = max((number for number, message in enumerate(window) if message.role == "user"), default=len(window))
    return _change_brief(brief, format_transcript(window[: newest + 1]), window, turn.expected_messages)


def _change_brief(
    brief: CaseBrief, question: str, messages: Sequence[Message], expected: JsonValue = None
) -> CaseBrief:
    return replace(
        brief,
        question=question,
        linked_question=question,
        reference_answer=format_expected(expected),
        input_messages=[{"role": message.role, "content": message.content} for message in messages],
        expected_messages=expected,
    )


async def _score_whole(context: EvaluationContext, spec: ConversationSpec, history: Sequence[Message]) -> CaseScore:
    """Score by the evaluators of the case; a format may show them the transcript as response."""
    context = replace(context, history=tuple(history))
    if not spec.scores_transcript:
        return await score_evaluators(context)
    # join the messages as AgentV does for its assertions about the whole: `role: text`, with a blank line between
    transcript = "\n\n".join(f"{role}: {text}" for role, text in list_texts(history))
    question = format_transcript(history)  # of `role: text` alone, a response could add lines of the user
    brief = _change_brief(context.case.brief or CaseBrief(question="", linked_question=""), question, history)
    response = replace(context.response, text=transcript)
    return await score_evaluators(replace(context, case=replace(context.case, brief=brief), response=response))


async def _score_until_failure(
    context: EvaluationContext,
    spec: ConversationSpec,
    turns: Sequence[CaseScore | None],
    history: Sequence[Message],
) -> CaseScore:
    """Take the turns in order, then the whole, up to the first failure (tool-forge, "Assertion Execution")."""
    parts = [_Part(f"turn {number}", score) for number, score in enumerate(turns, 1) if score is not None]
    failure = next((part for part in parts if not part.score.passed), None)
    whole, outcome = None, CaseScore(passed=True, score=1.0)
    if failure is not None:
        outcome = CaseScore(passed=False, score=failure.score.score, error=failure.describe_failure())
    elif context.case.evaluators:
        outcome = whole = await _score_whole(context, spec, history)
    joined = _join_scores([part for part in parts if part.score.results], outcome, whole)
    return joined if joined.assertions_run else warn_nothing_checked(joined)


_COMBINATIONS: Final[Mapping[TurnAggregation, Callable[[Sequence[float]], float]]] = {
    TurnAggregation.MEAN: lambda scores: compute_weighted_mean((1.0, score) for score in scores),
    TurnAggregation.MIN: min,
    TurnAggregation.MAX: max,
}


class _Part(FrozenStruct):
    """Score of one turn, or of the whole, under its name."""

    name: str
    score: CaseScore

    @property
    def is_vetoed(self) -> bool:
        """Whether something required is missing that the score does not show: a missed minimum makes it 0."""
        return self.score.score > 0 and any(one.vetoed and one.weight > 0 for one in self.score.results)

    def describe_failure(self) -> str:
        """Say what failed first, after the name of the part."""
        reason = self.score.error or f"score {format_score(self.score.score)}"
        return truncate(f"{self.name}: {reason}", MAX_ERROR)

    def build_result(self) -> EvaluatorResult:
        return EvaluatorResult(
            name=self.name,
            type=WHOLE if self.name == WHOLE else "turn",
            score=self.score.score,
            misses=() if self.score.results or self.score.error is None else (self.score.error,),
            evaluator_results=self.score.results,
            vetoed=self.is_vetoed,
        )


def _join_scores(parts: Sequence[_Part], outcome: CaseScore, whole: CaseScore | None) -> CaseScore:
    """Add the counts, results and costs of the parts, and of the whole where it is no part, to the outcome."""
    scores = [*(part.score for part in parts), *([] if whole is None else [whole])]
    warnings = [f"{part.name}: {warning}" for part in parts for warning in part.score.warnings]
    return replace(
        outcome,
        assertions_run=sum(one.assertions_run for one in scores),
        assertions_skipped=sum(one.assertions_skipped for one in scores),
        skipped_tokens=tuple(token for one in scores for token in one.skipped_tokens),
        warnings=(*warnings, *(() if whole is None else whole.warnings)),
        results=(*(part.build_result() for part in parts), *(() if whole is None else whole.results)),
        judge_usage=Usage.add_up([one.judge_usage for one in scores]),
        judge_cost_usd=add_up([one.judge_cost_usd for one in scores]),
    )
