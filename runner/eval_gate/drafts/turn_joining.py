"""Join observations of the turns of one session to one conversation, and split a conversation's case into its turns.

A conversation that a person writes sends the messages of its user, whatever the agent responds. So sessions in which
the user writes the same are executions of one conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TypeAlias

from eval_gate.drafts.observation import Observation
from eval_gate.model.case import EvalCase
from eval_gate.model.conversation import Message
from eval_gate.model.limits import DRAFT_EXECUTIONS
from eval_gate.struct import replace

_History: TypeAlias = tuple[tuple[str, str], ...]
"""Messages before a turn, each as role and text."""
_Script: TypeAlias = tuple[tuple[_History, str], ...]
"""Messages of the user up to a turn, the first with the messages before it that the source does not show as turns."""


def list_turns(observation: Observation) -> tuple[Observation, ...]:
    """List the turns of an observation: itself if it is one question."""
    return observation.turns or (observation,)


def list_questions(case: EvalCase) -> tuple[str, ...]:
    """List the messages of the user that a case sends and whose responses are scored."""
    if case.conversation is not None:
        return tuple(turn.message for turn in case.conversation.turns)
    content = case.messages[-1].content if case.messages else None
    return (content,) if isinstance(content, str) else ()


def split_turns(case: EvalCase) -> tuple[EvalCase, ...]:
    """Split a conversation into a case for each turn, with the expectations of this turn; any other case is one."""
    if case.conversation is None:
        return (case,)
    return tuple(
        replace(
            case,
            conversation=None,
            messages=(Message(role="user", content=turn.message),),
            evaluators=turn.evaluators,
        )
        for turn in case.conversation.turns
    )


def join_conversations(observations: Sequence[Observation]) -> tuple[Observation, ...]:
    """Join the turns of each conversation, and leave everything else as it is, such as conversations that were asked.

    An observation whose messages and response begin another one's is its earlier turn, as is one without a response. A
    conversation stands where its last turn with a response was.
    """
    single = [one for one in observations if not one.turns]
    scripts = _find_scripts(single)
    by_script: dict[_Script, list[Observation]] = {}
    for one in single:
        by_script.setdefault(scripts[id(one)], []).append(one)
    merged = {script: _merge_executions(several) for script, several in by_script.items()}
    continued = set[_Script]()
    for longest in sorted(merged, key=len, reverse=True):
        if merged[longest].responses or longest in continued:
            continued.add(longest[:-1])
    joined: list[Observation] = []
    for one in observations:
        script = scripts.get(id(one))
        if script is None or not (merged[script].responses or script in continued):
            joined.append(one)
        elif script not in continued and one is by_script[script][0]:
            joined.append(_build_conversation([merged[script[: at + 1]] for at in range(len(script))]))
    return tuple(joined)


def _find_scripts(observations: Sequence[Observation]) -> dict[int, _Script]:
    """Find what the user wrote up to each observation. One with fewer messages before it is never a later turn."""
    begun: dict[_History, _Script] = {}
    scripts: dict[int, _Script] = {}
    for one in sorted(observations, key=lambda one: len(one.earlier_messages)):
        history = tuple((message.role, str(message.content).strip()) for message in one.earlier_messages)
        earlier = begun.get(history, ())
        scripts[id(one)] = script = (*earlier, (() if earlier else history, one.question))
        for text in (*(response.text.strip() for response in one.responses), *([""] if one.errors else ())):
            reply = (("assistant", text),) if text else ()
            begun.setdefault((*history, ("user", one.question.strip()), *reply), script)
    return scripts


def _merge_executions(observations: Sequence[Observation]) -> Observation:
    """Merge observations after which the user wrote the same, and before which too."""
    if len(observations) == 1:
        return observations[0]
    return replace(
        observations[0],
        responses=tuple(chain.from_iterable(one.responses for one in observations))[:DRAFT_EXECUTIONS],
        errors=tuple(chain.from_iterable(one.errors for one in observations)),
    )


def _build_conversation(turns: Sequence[Observation]) -> Observation:
    """Build the observation of a conversation, which begins with messages that can be sent again."""
    earlier = turns[0].earlier_messages
    roles = [one.role for one in earlier]
    are_in_turn = roles == ["user", "assistant"] * (len(roles) // 2)
    if len(turns) == 1 and not (earlier and are_in_turn):
        return turns[0]
    if not are_in_turn:
        return replace(turns[-1], earlier_messages=earlier, turns=tuple(turns))
    unseen = [Observation(str(one.content), ()) for one in earlier if one.role == "user"]
    return replace(turns[-1], earlier_messages=(), turns=(*unseen, *turns))
