"""Reader for the conversations of an AgentV 4 file (`mode: conversation`): turns, their scoring, and when to stop.

Source: AgentV 4.42.4, its documentation of conversations and what the program does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Final

from eval_gate.formats.agentv.case_messages import MessageTurn, TurnReader, turns_to_json
from eval_gate.formats.agentv.case_reader import EvaluatorSet, to_comparable
from eval_gate.formats.agentv.findings import AgentVFindings, Path
from eval_gate.formats.agentv.v4 import file_model
from eval_gate.model.base import JsonValue
from eval_gate.model.case import CaseTurn, ConversationSpec, EvalCase, TurnAggregation
from eval_gate.model.conversation import Message
from eval_gate.model.limits import TURNS
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.digest import compute_digest, compute_fingerprint
from eval_gate.text.sources.validation_errors import describe_value

_NEED_MODE: Final = ("turns", "aggregation", "on_turn_failure", "window_size")
ONLY_TEXT: Final = "is text in a conversation: AgentV sends the JSON of anything else, and reads no files"
_ONLY_TEXT_IN_TURN: Final = "the input of a turn is text: AgentV sends the JSON of anything else, and reads no files"
DEFAULT_STOP_SCORE: Final = 0.8
"""Score below which a turn fails if the case has no `threshold`; the file's does not count (AgentV)."""


class ConversationRead(FrozenStruct):
    """Turns of a case, and what its fingerprints have to know of their expectations."""

    turns: tuple[CaseTurn, ...]
    identity: JsonValue
    expectation: JsonValue


class TurnParts(FrozenStruct):
    """Readers for the parts of a turn, which are read as those of a case."""

    read_assertions: Callable[[dict[str, JsonValue], Path, tuple[MessageTurn, ...]], EvaluatorSet | None]
    """Read the assertions of a turn with this expected output; None if it has none."""
    read_expected: Callable[[JsonValue, Path], tuple[MessageTurn, ...]]
    fill: Callable[[JsonValue], JsonValue]
    """Fill in the variables of the case."""
    default: EvaluatorSet
    """The default LLM judge."""


def has_mode(case: Mapping[str, JsonValue], path: Path, findings: AgentVFindings) -> bool:
    """Whether the case is meant as a conversation. Report its keys that miss each other, or exclude it."""
    if "mode" not in case:
        for key in _NEED_MODE:
            if key in case:
                findings.add_problem(f"`{key}` needs `mode: conversation`", (*path, key))
    elif "turns" not in case:
        findings.add_problem("`mode: conversation` needs `turns`", (*path, "mode"))
    if "mode" not in case and "turns" not in case:
        return False
    for key in file_model.OUTPUT:
        if case.get(key) is not None:
            findings.add_problem("set it in a turn, as AgentV asks", (*path, key))
    return True


class ConversationReader:
    """Read the conversations of one eval file, and record what is wrong with them."""

    def __init__(self, findings: AgentVFindings, texts: TurnReader) -> None:
        self._findings = findings
        self._texts = texts

    def read(self, raw: JsonValue, path: Path, parts: TurnParts) -> ConversationRead | None:
        """Read the turns at `path`, or return None after reporting a problem."""
        if not isinstance(raw, list) or not raw:
            words = "needs at least 1" if raw == [] else "expected a list"
            self._findings.add_problem(f"{words}, got {describe_value(raw)}", path)
            return None
        if len(raw) > TURNS:
            self._findings.add_problem(f"has more than {TURNS}", path)
            return None
        turns = [self._read_turn(one, (*path, index), parts) for index, one in enumerate(raw)]
        complete = [turn for turn in turns if turn is not None]
        if len(complete) < len(turns):
            return None
        built, identities, expectations = zip(*complete, strict=True)
        return ConversationRead(built, [*identities], [*expectations])

    def _read_turn(self, raw: JsonValue, path: Path, parts: TurnParts) -> tuple[CaseTurn, JsonValue, JsonValue] | None:
        """Read a turn, with what identifies its expectation, with and without the graders."""
        if not isinstance(raw, dict):
            self._findings.add_problem(f"expected a turn, got {describe_value(raw)}", path)
            return None
        turn = {key: parts.fill(value) if key in _TEMPLATED else value for key, value in raw.items()}
        message = self._read_message(turn, path)
        key = next((name for name in file_model.OUTPUT if turn.get(name) not in (None, "")), None)
        expected = parts.read_expected(turn[key], (*path, key)) if key is not None else ()
        judged = parts.read_assertions(turn, path, expected) or (parts.default if key is not None else None)
        if message is None:
            return None
        compared: JsonValue = to_comparable(expected)
        built = CaseTurn(
            message=message,
            evaluators=judged.specs if judged is not None else (),
            expected_messages=turns_to_json(expected) if expected else None,
        )
        fingerprints = (judged.fingerprint, judged.expectation) if judged is not None else (None, None)
        return built, [compared, fingerprints[0]], [compared, fingerprints[1]]

    def _read_message(self, turn: dict[str, JsonValue], path: Path) -> str | None:
        """Read the message of a turn, and check the turn's keys."""
        where = (*path, "input")
        is_structured = isinstance(turn.get("input"), dict | list)
        if is_structured:
            self._findings.add_problem(_ONLY_TEXT_IN_TURN, where)
            turn = {**turn, "input": "-"}  # so that the rest of the turn is checked
        entry = self._findings.read_part(file_model.AgentV4Turn, turn, path)
        if entry is None or is_structured:
            return None
        if not entry.input.strip():
            self._findings.add_problem("must not be blank", where)
            return None
        (message,) = self._texts.read(entry.input, where, "user")
        return str(message.content)


_TEMPLATED: Final = frozenset({"input", *file_model.OUTPUT})
"""Fields of a turn in which variables are filled in."""


def add_conversation(
    case: EvalCase,
    entry: file_model.AgentV4Case,
    read: ConversationRead,
    history: Sequence[MessageTurn],
    pass_score: float | None,
) -> EvalCase:
    """Add a conversation to its case. Each message of `history` keeps its role, because the turns follow it.

    `pass_score` is the `threshold` of the case itself.
    """
    stop_score = (DEFAULT_STOP_SCORE if pass_score is None else pass_score) if entry.on_turn_failure == "stop" else None
    prompt: JsonValue = [[turn.message for turn in read.turns], stop_score, entry.window_size]
    return replace(
        case,
        messages=tuple(Message(role=turn.role, content=str(turn.content)) for turn in history if turn.is_visible),
        conversation=ConversationSpec(
            turns=read.turns,
            aggregation=TurnAggregation(entry.aggregation),
            stop_score=stop_score,
            window=entry.window_size,
            scores_transcript=True,
            all_evaluators=(*chain.from_iterable(turn.evaluators for turn in read.turns), *case.evaluators),
        ),
        fingerprint=compute_fingerprint([case.fingerprint, prompt, entry.aggregation, read.identity]),
        prompt_fingerprint=compute_digest([case.prompt_fingerprint, prompt]),
        expectation_fingerprint=compute_digest([case.expectation_fingerprint, entry.aggregation, read.expectation]),
    )
